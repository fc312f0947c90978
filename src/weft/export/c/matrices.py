"""Factorizations, triangular systems and Fourier transforms, as functions in C.

They stand for the kernels of LAPACK that lowerings call, and take matrices row by row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.core.jaxpr import Eqn
from weft.export.c.emit import Array
from weft.export.c.expand import NotInC
from weft.export.c.helpers import suffix_of
from weft.export.c.index import Index, index_number
from weft.export.c.kinds import KINDS, PARTS, Kind
from weft.export.c.nodes import Call
from weft.export.c.sizes import write_size
from weft.export.c.sorting import point_at
from weft.export.c.writer import Writer
from weft.export.dims import Size
from weft.export.recorder import read_numbers

# T is the dtype, P the dtype of its real part; CONJ, REAL and ABS take real and complex numbers.
POTRF = """\
static void NAME(ptrdiff_t n, bool upper, T *a, int32_t *info) {
  *info = 0;
  for (ptrdiff_t j = 0; j < n; ++j) {
    P d = REAL(a[j * n + j]);
    for (ptrdiff_t k = 0; k < j; ++k) {
      const T v = upper ? a[k * n + j] : a[j * n + k];
      d -= REAL(v * CONJ(v));
    }
    if (!(d > 0)) {
      *info = (int32_t)(j + 1);
      return;
    }
    d = SQRT(d);
    a[j * n + j] = d;
    for (ptrdiff_t i = j + 1; i < n; ++i) {
      T s = upper ? a[j * n + i] : a[i * n + j];
      for (ptrdiff_t k = 0; k < j; ++k) {
        if (upper) s -= CONJ(a[k * n + j]) * a[k * n + i];
        else s -= a[i * n + k] * CONJ(a[j * n + k]);
      }
      if (upper) a[j * n + i] = s / d;
      else a[i * n + j] = s / d;
    }
  }
}"""
TRSM = """\
static void NAME(ptrdiff_t m, ptrdiff_t n, bool left, bool lower, int trans, bool unit,
                 const T *a, T *b) {
  const ptrdiff_t size = left ? m : n, others = left ? n : m;
  const bool forward = (lower != (trans != 0)) == left;
  for (ptrdiff_t c = 0; c < others; ++c) {
    for (ptrdiff_t r = 0; r < size; ++r) {
      const ptrdiff_t i = forward ? r : size - 1 - r;
      T s = left ? b[i * n + c] : b[c * n + i];
      for (ptrdiff_t q = 0; q < r; ++q) {
        const ptrdiff_t k = forward ? q : size - 1 - q;
        const bool plain = (trans == 0) == left;
        const T u = plain ? a[i * size + k] : a[k * size + i];
        const T v = trans == 2 ? CONJ(u) : u;
        s -= v * (left ? b[k * n + c] : b[c * n + k]);
      }
      if (!unit) s /= trans == 2 ? CONJ(a[i * size + i]) : a[i * size + i];
      if (left) b[i * n + c] = s;
      else b[c * n + i] = s;
    }
  }
}"""
GETRF = """\
static void NAME(ptrdiff_t m, ptrdiff_t n, T *a, int32_t *pivots, int32_t *info) {
  *info = 0;
  for (ptrdiff_t j = 0; j < (m < n ? m : n); ++j) {
    ptrdiff_t best = j;
    for (ptrdiff_t i = j + 1; i < m; ++i)
      if (SIZE(a[i * n + j]) > SIZE(a[best * n + j])) best = i;
    pivots[j] = (int32_t)(best + 1);
    if (a[best * n + j] == 0) {
      if (*info == 0) *info = (int32_t)(j + 1);
      continue;
    }
    for (ptrdiff_t k = 0; best != j && k < n; ++k) {
      const T v = a[j * n + k];
      a[j * n + k] = a[best * n + k];
      a[best * n + k] = v;
    }
    for (ptrdiff_t i = j + 1; i < m; ++i) {
      a[i * n + j] /= a[j * n + j];
      for (ptrdiff_t k = j + 1; k < n; ++k) a[i * n + k] -= a[i * n + j] * a[j * n + k];
    }
  }
}"""
GEQRF = """\
static void NAME(ptrdiff_t m, ptrdiff_t n, T *a, T *tau) {
  for (ptrdiff_t j = 0; j < (m < n ? m : n); ++j) {
    P rest = 0;
    for (ptrdiff_t i = j + 1; i < m; ++i) rest = HYPOT(rest, ABS(a[i * n + j]));
    const T alpha = a[j * n + j];
    tau[j] = 0;
    if (rest == 0 && IMAG(alpha) == 0) continue;
    P beta = HYPOT(ABS(alpha), rest);
    if (REAL(alpha) > 0) beta = -beta;
    tau[j] = (beta - alpha) / beta;
    for (ptrdiff_t i = j + 1; i < m; ++i) a[i * n + j] /= alpha - beta;
    a[j * n + j] = beta;
    for (ptrdiff_t k = j + 1; k < n; ++k) {
      T s = a[j * n + k];
      for (ptrdiff_t i = j + 1; i < m; ++i) s += CONJ(a[i * n + j]) * a[i * n + k];
      s *= CONJ(tau[j]);
      a[j * n + k] -= s;
      for (ptrdiff_t i = j + 1; i < m; ++i) a[i * n + k] -= s * a[i * n + j];
    }
  }
}"""
ORMQR = """\
static void NAME(ptrdiff_t m, ptrdiff_t n, ptrdiff_t width, ptrdiff_t count, bool left,
                 bool transpose, const T *a, const T *tau, T *c) {
  const bool forward = left == transpose;
  for (ptrdiff_t q = 0; q < count; ++q) {
    const ptrdiff_t j = forward ? q : count - 1 - q;
    const T t = transpose ? CONJ(tau[j]) : tau[j];
    const ptrdiff_t others = left ? n : m, size = left ? m : n;
    for (ptrdiff_t k = 0; k < others; ++k) {
      T s = left ? c[j * n + k] : c[k * n + j];
      for (ptrdiff_t i = j + 1; i < size; ++i) {
        if (left) s += CONJ(a[i * width + j]) * c[i * n + k];
        else s += c[k * n + i] * a[i * width + j];
      }
      s *= t;
      if (left) c[j * n + k] -= s;
      else c[k * n + j] -= s;
      for (ptrdiff_t i = j + 1; i < size; ++i) {
        if (left) c[i * n + k] -= s * a[i * width + j];
        else c[k * n + i] -= s * CONJ(a[i * width + j]);
      }
    }
  }
}"""
SYEVD = """\
static void NAME(ptrdiff_t n, bool lower, T *a, T *v, T *values, int32_t *info) {
  *info = 0;
  for (ptrdiff_t i = 0; i < n; ++i) {
    for (ptrdiff_t j = 0; j < n; ++j) {
      v[i * n + j] = i == j ? 1 : 0;
      if (j > i && lower) a[i * n + j] = a[j * n + i];
      if (j < i && !lower) a[i * n + j] = a[j * n + i];
    }
  }
  const int power = NORMALIZE(n * n, a);
  for (int sweep = 0; sweep < 60; ++sweep) {
    T off = 0, all = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
      for (ptrdiff_t j = 0; j < n; ++j) {
        all += a[i * n + j] * a[i * n + j];
        if (i != j) off += a[i * n + j] * a[i * n + j];
      }
    if (!(off > all * EPS * EPS)) break;
    for (ptrdiff_t p = 0; p < n; ++p) {
      for (ptrdiff_t q = p + 1; q < n; ++q) {
        const T apq = a[p * n + q];
        if (apq == 0) continue;
        const T theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
        const T t = (theta < 0 ? -1 : 1) / (ABS(theta) + SQRT(1 + theta * theta));
        const T c = 1 / SQRT(1 + t * t), s = t * c;
        for (ptrdiff_t k = 0; k < n; ++k) {
          const T x = a[k * n + p], y = a[k * n + q];
          a[k * n + p] = c * x - s * y;
          a[k * n + q] = s * x + c * y;
        }
        for (ptrdiff_t k = 0; k < n; ++k) {
          const T x = a[p * n + k], y = a[q * n + k];
          a[p * n + k] = c * x - s * y;
          a[q * n + k] = s * x + c * y;
          const T z = v[k * n + p], u = v[k * n + q];
          v[k * n + p] = c * z - s * u;
          v[k * n + q] = s * z + c * u;
        }
      }
    }
  }
  for (ptrdiff_t i = 0; i < n; ++i) values[i] = LDEXP(a[i * n + i], power);
  for (ptrdiff_t i = 0; i < n; ++i) {
    ptrdiff_t best = i;
    for (ptrdiff_t j = i + 1; j < n; ++j)
      if (values[j] < values[best]) best = j;
    const T value = values[i];
    values[i] = values[best];
    values[best] = value;
    for (ptrdiff_t k = 0; best != i && k < n; ++k) {
      const T x = v[k * n + i];
      v[k * n + i] = v[k * n + best];
      v[k * n + best] = x;
    }
  }
}"""
GESDD = """\
static void NAME(ptrdiff_t m, ptrdiff_t n, T *a, T *values, T *u, T *vt, int32_t *info) {
  /* Rotations of pairs of columns of b, the matrix or its transpose, which is tall. */
  const bool tall = m >= n;
  const ptrdiff_t rows = tall ? m : n, count = tall ? n : m;
  const ptrdiff_t bi = tall ? n : 1, bj = tall ? 1 : n, vi = tall ? 1 : count;
  const ptrdiff_t vj = tall ? count : 1, oi = tall ? count : 1, oj = tall ? 1 : rows;
  T *const v = tall ? vt : u, *const out = tall ? u : vt;
  const int power = NORMALIZE(m * n, a);
  bool again = true;
  *info = 0;
  for (ptrdiff_t i = 0; i < count; ++i)
    for (ptrdiff_t j = 0; j < count; ++j) v[i * vi + j * vj] = i == j ? 1 : 0;
  for (int sweep = 0; again && sweep < 60; ++sweep) {
    again = false;
    for (ptrdiff_t p = 0; p < count; ++p) {
      for (ptrdiff_t q = p + 1; q < count; ++q) {
        T alpha = 0, beta = 0, gamma = 0;
        for (ptrdiff_t i = 0; i < rows; ++i) {
          const T x = a[i * bi + p * bj], y = a[i * bi + q * bj];
          alpha += x * x;
          beta += y * y;
          gamma += x * y;
        }
        if (alpha < beta) again = true;
        else if (!(ABS(gamma) > EPS * SQRT(alpha) * SQRT(beta)) || gamma == 0) continue;
        else again = true;
        T c = 0, s = 1;
        if (gamma != 0) {
          const T zeta = (beta - alpha) / (2 * gamma);
          const T t = (zeta < 0 ? -1 : 1) / (ABS(zeta) + SQRT(1 + zeta * zeta));
          c = 1 / SQRT(1 + t * t);
          s = t * c;
        }
        if (alpha < beta && gamma != 0) {
          const T swap = c;
          c = s;
          s = -swap;
        }
        for (ptrdiff_t i = 0; i < rows; ++i) {
          const T x = a[i * bi + p * bj], y = a[i * bi + q * bj];
          a[i * bi + p * bj] = c * x - s * y;
          a[i * bi + q * bj] = s * x + c * y;
        }
        for (ptrdiff_t i = 0; i < count; ++i) {
          const T x = v[i * vi + p * vj], y = v[i * vi + q * vj];
          v[i * vi + p * vj] = c * x - s * y;
          v[i * vi + q * vj] = s * x + c * y;
        }
      }
    }
  }
  for (ptrdiff_t j = 0; j < count; ++j) {
    T size = 0;
    for (ptrdiff_t i = 0; i < rows; ++i) size = HYPOT(size, a[i * bi + j * bj]);
    values[j] = size;
    for (ptrdiff_t i = 0; i < rows; ++i)
      out[i * oi + j * oj] = size > 0 ? a[i * bi + j * bj] / size : 0;
    for (ptrdiff_t e = 0; !(size > EPS * values[0]) && e < rows; ++e) {
      /* A column of length zero: any unit vector that is orthogonal to those before it. */
      T rest = 0;
      for (ptrdiff_t i = 0; i < rows; ++i) out[i * oi + j * oj] = i == e ? 1 : 0;
      for (int twice = 0; twice < 2; ++twice) {
        for (ptrdiff_t k = 0; k < j; ++k) {
          T dot = 0;
          for (ptrdiff_t i = 0; i < rows; ++i) dot += out[i * oi + j * oj] * out[i * oi + k * oj];
          for (ptrdiff_t i = 0; i < rows; ++i) out[i * oi + j * oj] -= dot * out[i * oi + k * oj];
        }
      }
      for (ptrdiff_t i = 0; i < rows; ++i) rest = HYPOT(rest, out[i * oi + j * oj]);
      for (ptrdiff_t i = 0; rest > 0 && i < rows; ++i) out[i * oi + j * oj] /= rest;
      if (rest * rest * (T)rows > (T)0.5) break;
    }
  }
  for (ptrdiff_t j = 0; j < count; ++j) values[j] = LDEXP(values[j], power);
}"""
FFT = """\
static void NAME(ptrdiff_t n, ptrdiff_t step, P sign, const T *x, T *y, T *spare) {
  if (n == 1) {
    y[0] = x[0];
    return;
  }
  ptrdiff_t p = 2;
  while (n % p != 0) ++p;
  const ptrdiff_t m = n / p;
  for (ptrdiff_t r = 0; r < p; ++r) NAME(m, step * p, sign, x + r * step, y + r * m, spare);
  for (ptrdiff_t k = 0; k < m; ++k) {
    for (ptrdiff_t r = 0; r < p; ++r) {
      const double angle = 6.283185307179586 * (double)((r * k) % n) / (double)n;
      spare[r] = y[r * m + k] * MAKE((P)cos(angle), sign * (P)sin(angle));
    }
    for (ptrdiff_t q = 0; q < p; ++q) {
      T s = spare[0];
      for (ptrdiff_t r = 1; r < p; ++r) {
        const double angle = 6.283185307179586 * (double)((r * q) % p) / (double)p;
        s += spare[r] * MAKE((P)cos(angle), sign * (P)sin(angle));
      }
      y[q * m + k] = s;
    }
  }
}"""


def fill_routine(text: str, kind: Kind, name: str) -> str:
    """Return the text of a routine for a kind."""
    is_complex, f = kind.letter == "c", suffix_of(kind)
    part = PARTS[kind.name].computed if is_complex else kind.computed
    text = re.sub(r"\bCONJ\(", f"conj{f}(" if is_complex else "(", text)
    text = re.sub(r"\bREAL\(", f"creal{f}(" if is_complex else "(", text)
    text = re.sub(r"\bIMAG\(", f"cimag{f}(" if is_complex else "0 * (", text)
    text = re.sub(r"\bABS\(", f"{'c' * is_complex}{'' if is_complex else 'f'}abs{f}(", text)
    size = f"weft_size_{kind.name}(" if is_complex else f"fabs{f}("
    text = re.sub(r"\bSIZE\(", size, text)
    text = re.sub(r"\bNORMALIZE\(", f"weft_normalize_{kind.name}(", text)
    text = re.sub(r"\b(SQRT|HYPOT|LDEXP)\(", lambda m: f"{m[1].lower()}{f}(", text)
    text = re.sub(r"\bMAKE\(", f"weft_{kind.name}(", text)
    text = text.replace("EPS", "1e-7f" if part == "float" else "1e-15")
    words = {"NAME": name, "T": kind.computed, "P": part}
    return re.sub(r"\b(NAME|T|P)\b", lambda m: words[m[0]], text)


def find_routine(w: Writer, kind: Kind, routine: str, text: str) -> str:
    """Return the name of a routine for a kind."""
    return w.find_text(
        (routine, kind), f"apply_{routine}_{kind.name}", lambda name: fill_routine(text, kind, name)
    )


class RoutineCall:
    """A call of a routine for each matrix of a batch.

    Attributes:
      options: the options of LAPACK, as numbers: letters by their codes.
      outs: the results, in memory.
    """

    def __init__(self, w: Writer, eqn: Eqn, ranks: Sequence[int]):
        self.w, self.eqn = w, eqn
        text = str(dict(eqn.params["attrs"])["backend_config"])
        self.options = {
            k: v == "true" if v in ("true", "false") else int(v)
            for k, v in re.findall(r"(\w+) = (\d+|true|false)", text)
        }
        self.ranks = ranks
        self.batch = eqn.outvars[0].aval.shape[: eqn.outvars[0].aval.ndim - ranks[0]]

    def is_letter(self, option: str, letter: str) -> bool:
        """Return True if an option has a letter."""
        return self.options.get(option) == ord(letter)

    def call(self, name: str, sizes: Sequence[Any], arrays: Sequence[Array]) -> None:
        """Write the calls."""
        with self.w.loops(self.batch) as index:
            rows = []
            for x in arrays:
                inner = len(x.shape) - len(self.batch)
                rows.append(point_at(x, [*index, *[index_number(0)] * inner]))
            self.w.write(Call(name, [*map(write_option, sizes), *rows]))


def write_option(x: Any) -> str:
    """Return a size or an option as an argument."""
    return str(x).lower() if isinstance(x, bool) else write_size(x)


def write_potrf(w: Writer, eqn: Eqn) -> list[Any]:
    """Write Cholesky factorizations."""
    c = RoutineCall(w, eqn, (2, 0))
    a, info = w.take(eqn, eqn.invars[0], eqn.outvars[0]), w.choose_target(eqn, eqn.outvars[1])
    name = find_routine(w, a.kind, "potrf", POTRF)
    c.call(name, [a.shape[-1], c.is_letter("uplo", "U")], [a, info])
    return [a, as_value(w, info)]


def as_value(w: Writer, x: Array) -> Any:
    """Return an array, or its only element as a scalar where it has no axes."""
    return x if x.shape else w.as_scalar(x)


def write_trsm(w: Writer, eqn: Eqn) -> list[Any]:
    """Write solutions of triangular systems."""
    c = RoutineCall(w, eqn, (2,))
    a = w.settle(eqn.invars[0])
    b = w.take(eqn, eqn.invars[1], eqn.outvars[0])
    trans = 0 if c.is_letter("trans_x", "N") else 2 if c.is_letter("trans_x", "C") else 1
    flags = [c.is_letter("side", "L"), c.is_letter("uplo", "L"), trans, c.is_letter("diag", "U")]
    name = find_routine(w, a.kind, "trsm", TRSM)
    c.call(name, [*b.shape[-2:], *flags], [a, b])
    return [b]


def write_getrf(w: Writer, eqn: Eqn) -> list[Any]:
    """Write LU factorizations."""
    c = RoutineCall(w, eqn, (2, 1, 0))
    a = w.take(eqn, eqn.invars[0], eqn.outvars[0])
    pivots, info = (w.choose_target(eqn, v) for v in eqn.outvars[1:])
    c.call(find_routine(w, a.kind, "getrf", GETRF), a.shape[-2:], [a, pivots, info])
    return [a, pivots, as_value(w, info)]


def write_geqrf(w: Writer, eqn: Eqn) -> list[Any]:
    """Write QR factorizations."""
    c = RoutineCall(w, eqn, (2, 1))
    a, tau = w.take(eqn, eqn.invars[0], eqn.outvars[0]), w.choose_target(eqn, eqn.outvars[1])
    c.call(find_routine(w, a.kind, "geqrf", GEQRF), a.shape[-2:], [a, tau])
    return [a, tau]


def write_ormqr(w: Writer, eqn: Eqn) -> list[Any]:
    """Write products with the reflections of QR factorizations."""
    c = RoutineCall(w, eqn, (2,))
    a, tau = w.settle(eqn.invars[0]), w.settle(eqn.invars[1])
    to = w.take(eqn, eqn.invars[2], eqn.outvars[0])
    flags = [bool(c.options["left"]), bool(c.options["transpose"])]
    sizes = [*to.shape[-2:], a.shape[-1], tau.shape[-1], *flags]
    c.call(find_routine(w, a.kind, "ormqr", ORMQR), sizes, [a, tau, to])
    return [to]


def write_orgqr(w: Writer, eqn: Eqn) -> list[Any]:
    """Write the orthogonal matrices of QR factorizations: products with columns of the identity."""
    c = RoutineCall(w, eqn, (2,))
    a, tau = w.settle(eqn.invars[0]), w.settle(eqn.invars[1])
    to = w.choose_target(eqn, eqn.outvars[0])
    m, n = to.shape[-2:]
    with w.loops(to.shape) as index:
        test = f"({index[-2]}) == ({index[-1]})"
        name = w.convert(w.let("int32_t", test), KINDS[np.dtype(np.int32)], to.kind)
        w.write_element(to, index, name)
    sizes = [m, n, n, tau.shape[-1], True, False]
    c.call(find_routine(w, a.kind, "ormqr", ORMQR), sizes, [a, tau, to])
    return [to]


def write_syevd(w: Writer, eqn: Eqn) -> list[Any]:
    """Write the eigenvalues and eigenvectors of symmetric matrices, by Jacobi's rotations."""
    c = RoutineCall(w, eqn, (2, 1, 0))
    x = w.find(eqn.invars[0])
    if x.kind.letter == "c":
        raise NotInC("eigenvectors of complex matrices")
    a = w.copy_value(x)
    outs = [w.choose_target(eqn, v) for v in eqn.outvars]
    name = find_routine(w, a.kind, "syevd", SYEVD)
    c.call(name, [a.shape[-1], c.is_letter("uplo", "L")], [a, *outs])
    return [*outs[:2], as_value(w, outs[2])]


def write_gesdd(w: Writer, eqn: Eqn) -> list[Any]:
    """Write singular values and vectors of real matrices, by rotations of pairs of columns."""
    c = RoutineCall(w, eqn, (2, 1, 2, 2, 0))
    a = w.copy_value(w.find(eqn.invars[0]))
    m, n = a.shape[-2:]
    k, batch = min(m, n), a.shape[:-2]
    shapes = [(*batch, m, k), (*batch, k, n)]
    if a.kind.letter == "c":
        raise NotInC("singular vectors of complex matrices")
    if c.is_letter("mode", "A") and m != n:
        raise NotInC("all vectors of a matrix that is not square")
    values, *vectors, info = (w.choose_target(eqn, v) for v in eqn.outvars[1:])
    used = [
        x if x.shape == shape else w.new_array(a.kind, shape)
        for x, shape in zip(vectors, shapes, strict=True)
    ]
    c.call(find_routine(w, a.kind, "gesdd", GESDD), [m, n], [a, values, *used, info])
    return [a, values, *vectors, as_value(w, info)]


def write_fft(w: Writer, eqn: Eqn) -> list[Any]:
    """Write Fourier transforms along the last axes."""
    attrs, (var,) = dict(eqn.params["attrs"]), eqn.outvars
    kind_text = str(attrs["fft_type"]).split()[-1].rstrip(">")
    lengths = read_numbers(attrs["fft_length"])
    x, to = w.settle(eqn.invars[0]), w.choose_target(eqn, var)
    inverse = kind_text in ("IFFT", "IRFFT")
    letter = np.result_type(x.kind.dtype, np.complex64)
    kind = KINDS[np.dtype(letter)]
    ndim, n = len(x.shape), len(lengths)
    axes = list(range(ndim - n, ndim))
    order = axes if kind_text == "IRFFT" else axes[::-1]
    for count, (axis, length) in enumerate([(a, lengths[a - (ndim - n)]) for a in order], 1):
        last = count == n
        size = length
        if axis == ndim - 1 and kind_text == "RFFT":
            size = length // 2 + 1
        shape = list(x.shape)
        shape[axis] = size
        out = to if last else w.new_array(kind, shape)
        half = kind_text == "IRFFT" and axis == ndim - 1
        transform_axis(w, x, out, axis, length, kind, inverse, half)
        x = out
    return [to]


def transform_axis(
    w: Writer, x: Array, out: Array, axis: int, length: Size, kind: Kind, inverse: bool, half: bool
) -> None:
    """Write the transform of the rows along one axis."""
    row, image, spare = (w.new_array(kind, (length,)) for _ in range(3))
    name = find_routine(w, kind, "fft", FFT)
    part = PARTS[kind.name]
    with w.loops([n for k, n in enumerate(x.shape) if k != axis]) as index:
        at = lambda k: [*index[:axis], k, *index[axis:]]
        given = min(x.shape[axis], length)
        with w.loop(given) as k:
            w.write_element(row, [k], w.convert(w.read(x, at(k)), x.kind, kind))
        if half:  # the rest are the conjugates, in the other order
            with w.loop(length - given) as k:
                item = w.read(x, at(index_number(length - given).add(k, -1)))
                mirrored = w.let(kind.computed, f"conj{suffix_of(kind)}({{0}})", [item])
                w.write_element(row, [k.add(index_number(given))], mirrored)
            real = w.let(
                part.computed, f"creal{suffix_of(kind)}({{0}})", [w.load(row.buffer, Index())]
            )
            w.write_element(row, [index_number(0)], w.convert(real, part, kind))
        sign = "1" if inverse else "-1"
        divisor = length if type(length) is int else f"({part.computed})({write_size(length)})"
        w.write(
            Call(name, [write_size(length), "1", sign, row.pointer, image.pointer, spare.pointer])
        )
        with w.loop(out.shape[axis]) as k:
            item = w.read(image, [k])
            if inverse:
                item = w.let(kind.computed, f"{{0}} / {divisor}", [item])
            w.write_element(out, at(k), w.convert(item, kind, out.kind))


def by_letter(routine: str, write: Any, complex_name: str = "") -> dict[str, Any]:
    """Return the kernels of a routine, for real and complex dtypes."""
    names = [f"lapack_{c}{routine}_ffi" for c in "sd"]
    names += [f"lapack_{c}{complex_name or routine}_ffi" for c in "cz"]
    return dict.fromkeys(names, write)


MATRICES = {
    **by_letter("potrf", write_potrf), **by_letter("trsm", write_trsm),
    **by_letter("getrf", write_getrf), **by_letter("geqrf", write_geqrf),
    **by_letter("orgqr", write_orgqr, "ungqr"), **by_letter("ormqr", write_ormqr, "unmqr"),
    **by_letter("syevd", write_syevd, "heevd"), **by_letter("gesdd", write_gesdd),
    "fft": write_fft,
}  # fmt: skip
