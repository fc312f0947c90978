"""Calls of factorizations, eigenvalues, linear systems and Fourier transforms in C.

They stand for the kernels of LAPACK that lowerings call. The functions in C are here, and those for
eigenvalues and singular values in spectra.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.core.jaxpr import Eqn
from weft.export.c.emit import Array
from weft.export.c.helpers import suffix_of
from weft.export.c.index import Index, index_number
from weft.export.c.kinds import KINDS, PARTS, Kind
from weft.export.c.nodes import Call
from weft.export.c.sizes import write_size
from weft.export.c.sorting import point_at
from weft.export.c.spectra import SPECTRA
from weft.export.c.writer import Writer
from weft.export.dims import Size
from weft.export.recorder import read_numbers

# Templates: T is the dtype, P the dtype of its real part. CONJ, REAL, IMAG, ABS and SIZE take real
# and complex numbers. `USE_name(` calls another routine. Matrices are in memory row by row.
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
EXCHANGE = """\
static void NAME(ptrdiff_t n, T *x, T *y, ptrdiff_t step) {
  /* Exchanges n numbers x[k * step] with those of y: rows or columns of a matrix. */
  for (ptrdiff_t k = 0; k < n; ++k) {
    const T item = x[k * step];
    x[k * step] = y[k * step];
    y[k * step] = item;
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
    if (best != j) USE_exchange(n, a + j * n, a + best * n, 1);
    for (ptrdiff_t i = j + 1; i < m; ++i) {
      a[i * n + j] /= a[j * n + j];
      for (ptrdiff_t k = j + 1; k < n; ++k) a[i * n + k] -= a[i * n + j] * a[j * n + k];
    }
  }
}"""
REFLECT = """\
static T NAME(ptrdiff_t n, T *v, ptrdiff_t step) {
  /* The adjoint of the reflection 1 - t w w^H makes the n + 1 numbers v[k * step] zero, except for
     the first one. Returns t; v[0] is that number then, and w is (1, v[step], v[2 * step], ...). */
  P rest = 0;
  for (ptrdiff_t k = 1; k <= n; ++k) rest = HYPOT(rest, ABS(v[k * step]));
  const T alpha = v[0];
  if (rest == 0 && IMAG(alpha) == 0) return 0;
  P beta = HYPOT(ABS(alpha), rest);
  if (REAL(alpha) > 0) beta = -beta;
  for (ptrdiff_t k = 1; k <= n; ++k) v[k * step] /= alpha - beta;
  v[0] = beta;
  return (beta - alpha) / beta;
}"""
REFLECT_ROWS = """\
static void NAME(ptrdiff_t m, ptrdiff_t n, const T *v, ptrdiff_t step, T t, T *c,
                 ptrdiff_t width) {
  /* Multiplies a matrix of m rows from the left by 1 - t w w^H; w is (1, v[step], ...). */
  for (ptrdiff_t k = 0; k < n; ++k) {
    T s = c[k];
    for (ptrdiff_t i = 1; i < m; ++i) s += CONJ(v[i * step]) * c[i * width + k];
    s *= t;
    c[k] -= s;
    for (ptrdiff_t i = 1; i < m; ++i) c[i * width + k] -= s * v[i * step];
  }
}"""
GEQRF = """\
static void NAME(ptrdiff_t m, ptrdiff_t n, T *a, T *tau) {
  for (ptrdiff_t j = 0; j < (m < n ? m : n); ++j) {
    T *const v = a + j * n + j;
    tau[j] = USE_reflect(m - j - 1, v, n);
    USE_reflect_rows(m - j, n - j - 1, v, n, CONJ(tau[j]), v + 1, n);
  }
}"""
GEQP3 = """\
static void NAME(ptrdiff_t m, ptrdiff_t n, T *a, int32_t *places, T *tau) {
  for (ptrdiff_t k = 0; k < n; ++k) places[k] = (int32_t)(k + 1);
  for (ptrdiff_t j = 0; j < (m < n ? m : n); ++j) {
    ptrdiff_t best = j;
    P longest = 0;
    for (ptrdiff_t k = j; k < n; ++k) {
      P size = 0;
      for (ptrdiff_t i = j; i < m; ++i) size = HYPOT(size, ABS(a[i * n + k]));
      if (size > longest) {
        longest = size;
        best = k;
      }
    }
    const int32_t place = places[j];
    places[j] = places[best];
    places[best] = place;
    if (best != j) USE_exchange(m, a + j, a + best, n);
    T *const v = a + j * n + j;
    tau[j] = USE_reflect(m - j - 1, v, n);
    USE_reflect_rows(m - j, n - j - 1, v, n, CONJ(tau[j]), v + 1, n);
  }
}"""
GTSV = """\
static void NAME(ptrdiff_t n, ptrdiff_t m, bool perturb, T *dl, T *d, T *du, T *b,
                 int32_t *info) {
  /* dl[i + 1] becomes the element of row i two places right of the diagonal. */
  P least = 0;
  *info = 0;
  for (ptrdiff_t i = 0; i < n; ++i) {
    if (ABS(d[i]) > least) least = ABS(d[i]);
    if (i > 0 && ABS(dl[i]) > least) least = ABS(dl[i]);
    if (i < n - 1 && ABS(du[i]) > least) least = ABS(du[i]);
  }
  least = least > 0 ? least * ULP : TINY;
  for (ptrdiff_t i = 0; i < n; ++i) {
    const bool last = i == n - 1, swap = !last && ABS(d[i]) < ABS(dl[i + 1]);
    if (!swap && (perturb ? ABS(d[i]) < least : d[i] == 0)) {
      if (!perturb) {
        *info = (int32_t)(i + 1);
        return;
      }
      d[i] = REAL(d[i]) < 0 ? -least : least;
    }
    if (last) break;
    T *const row = b + i * m, *const next = row + m;
    T above = 0;
    if (swap) {
      const T low = dl[i + 1], mid = d[i + 1], f = d[i] / low;
      d[i] = low;
      d[i + 1] = du[i] - f * mid;
      du[i] = mid;
      if (i < n - 2) {
        above = du[i + 1];
        du[i + 1] = -f * above;
      }
      for (ptrdiff_t k = 0; k < m; ++k) {
        const T item = row[k];
        row[k] = next[k];
        next[k] = item - f * row[k];
      }
    } else {
      const T f = dl[i + 1] / d[i];
      d[i + 1] -= f * du[i];
      for (ptrdiff_t k = 0; k < m; ++k) next[k] -= f * row[k];
    }
    dl[i + 1] = above;
  }
  for (ptrdiff_t i = n - 1; i >= 0; --i) {
    for (ptrdiff_t k = 0; k < m; ++k) {
      T s = b[i * m + k];
      if (i < n - 1) s -= du[i] * b[(i + 1) * m + k];
      if (i < n - 2) s -= dl[i + 1] * b[(i + 2) * m + k];
      b[i * m + k] = s / d[i];
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

ROUTINES = {
    **SPECTRA,
    "potrf": POTRF, "trsm": TRSM, "exchange": EXCHANGE, "getrf": GETRF, "reflect": REFLECT,
    "reflect_rows": REFLECT_ROWS, "geqrf": GEQRF, "geqp3": GEQP3, "ormqr": ORMQR, "gtsv": GTSV,
    "fft": FFT,
}  # fmt: skip
COMPLEX = {"f32": "c64", "f64": "c128", "c64": "c64", "c128": "c128"}
NUMBERS = {  # for float and double: a bound on errors, the unit in the last place, the least number
    "EPS": ("1e-7f", "1e-15"),
    "ULP": ("1.1920929e-7f", "2.220446049250313e-16"),
    "TINY": ("1.17549435e-38f", "2.2250738585072014e-308"),
}


def fill_routine(text: str, kind: Kind, name: str) -> str:
    """Return the text of a routine for a kind, without the names of the routines it calls."""
    is_complex, f = kind.letter == "c", suffix_of(kind)
    part = PARTS[kind.name].computed if is_complex else kind.computed
    either = lambda yes, no: yes if is_complex else no
    calls = {
        "CONJ": either(f"conj{f}(", "("),
        "REAL": either(f"creal{f}(", "("),
        "IMAG": either(f"cimag{f}(", "0 * ("),
        "ABS": either(f"cabs{f}(", f"fabs{f}("),
        "SIZE": either(f"weft_size_{kind.name}(", f"fabs{f}("),
        "RABS": f"fabs{f}(",
        "MAKE": f"weft_{COMPLEX[kind.name]}(",
    }
    functions = "SQRT HYPOT LDEXP CSQRT FMAX FMIN COPYSIGN".split()  # noqa: SIM905
    calls |= {function: f"{function.lower()}{f}(" for function in functions}
    text = re.sub(r" *if \(PAIRS\) " + either(r".*\n", ""), "", text)
    stored = either(r"w[k] = \1;", rf"w[k] = creal{f}(\1), w_imag[k] = cimag{f}(\1);")
    text = re.sub(r"SET\(w, k, (.*)\);", stored, text)
    scaled = either(rf"{kind.name}(2 * \1, ({part} *)\2)", rf"{kind.name}(\1, \2)")
    scaled = scaled.replace(kind.name, PARTS[kind.name].name if is_complex else kind.name, 1)
    text = re.sub(r"\bNORMALIZE\((.*), (\w+)\)", rf"weft_normalize_{scaled}", text)
    text = re.sub(r"\b([A-Z]+)\(", lambda m: calls.get(m[1], m[0]), text)
    words = {word: numbers[part == "double"] for word, numbers in NUMBERS.items()}
    words |= {"NAME": name, "T": kind.computed, "P": part, "C": f"{part} complex"}
    words["VALUES"] = either(f"{kind.computed} *w", f"{part} *w, {part} *w_imag")
    return re.sub(rf"\b({'|'.join(words)})\b", lambda m: words[m[0]], text)


def find_routine(w: Writer, kind: Kind, routine: str) -> str:
    """Return the name of a routine for a kind, after those that it calls."""

    def write(name: str) -> str:
        found = ROUTINES.get(routine)
        found = found or ROUTINES[f"{routine}_{'complex' if kind.letter == 'c' else 'real'}"]
        return re.sub(r"\bUSE_([a-z_]+|COMPLEX_[a-z_]+)\(", find, fill_routine(found, kind, name))

    def find(m: re.Match) -> str:
        inner = m[1].removeprefix("COMPLEX_")
        other = KINDS[np.result_type(kind.dtype, np.complex64)] if inner != m[1] else kind
        return f"{find_routine(w, other, inner)}("

    return w.find_text((routine, kind), f"apply_{routine}_{kind.name}", write)


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
    name = find_routine(w, a.kind, "potrf")
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
    name = find_routine(w, a.kind, "trsm")
    c.call(name, [*b.shape[-2:], *flags], [a, b])
    return [b]


def write_getrf(w: Writer, eqn: Eqn) -> list[Any]:
    """Write LU factorizations."""
    c = RoutineCall(w, eqn, (2, 1, 0))
    a = w.take(eqn, eqn.invars[0], eqn.outvars[0])
    pivots, info = (w.choose_target(eqn, v) for v in eqn.outvars[1:])
    c.call(find_routine(w, a.kind, "getrf"), a.shape[-2:], [a, pivots, info])
    return [a, pivots, as_value(w, info)]


def write_geqrf(w: Writer, eqn: Eqn) -> list[Any]:
    """Write QR factorizations."""
    c = RoutineCall(w, eqn, (2, 1))
    a, tau = w.take(eqn, eqn.invars[0], eqn.outvars[0]), w.choose_target(eqn, eqn.outvars[1])
    c.call(find_routine(w, a.kind, "geqrf"), a.shape[-2:], [a, tau])
    return [a, tau]


def write_ormqr(w: Writer, eqn: Eqn) -> list[Any]:
    """Write products with the reflections of QR factorizations."""
    c = RoutineCall(w, eqn, (2,))
    a, tau = w.settle(eqn.invars[0]), w.settle(eqn.invars[1])
    to = w.take(eqn, eqn.invars[2], eqn.outvars[0])
    flags = [bool(c.options["left"]), bool(c.options["transpose"])]
    sizes = [*to.shape[-2:], a.shape[-1], tau.shape[-1], *flags]
    c.call(find_routine(w, a.kind, "ormqr"), sizes, [a, tau, to])
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
    c.call(find_routine(w, a.kind, "ormqr"), sizes, [a, tau, to])
    return [to]


def write_geqp3(w: Writer, eqn: Eqn) -> list[Any]:
    """Write QR factorizations with pivoting. All columns are free to move."""
    c = RoutineCall(w, eqn, (2, 1, 1))
    a = w.take(eqn, eqn.invars[0], eqn.outvars[0])
    places, tau = (w.choose_target(eqn, v) for v in eqn.outvars[1:])
    c.call(find_routine(w, a.kind, "geqp3"), a.shape[-2:], [a, places, tau])
    return [a, places, tau]


def write_gtsv(w: Writer, eqn: Eqn) -> list[Any]:
    """Write solutions of tridiagonal systems."""
    perturb = len(eqn.outvars) == 1
    c = RoutineCall(w, eqn, (2,) if perturb else (1,))
    diagonals = [w.copy_value(w.find(a)) for a in eqn.invars[:3]]
    b = w.take(eqn, eqn.invars[3], eqn.outvars[0 if perturb else 3])
    info = w.choose_target(eqn, eqn.outvars[4]) if not perturb else None
    info = w.new_array(KINDS[np.dtype(np.int32)], c.batch) if info is None else info
    c.call(find_routine(w, b.kind, "gtsv"), [*b.shape[-2:], perturb], [*diagonals, b, info])
    return [b] if perturb else [*diagonals, b, as_value(w, info)]


def write_syevd(w: Writer, eqn: Eqn) -> list[Any]:
    """Write the eigenvalues and eigenvectors of Hermitian matrices, by Jacobi's rotations."""
    c = RoutineCall(w, eqn, (2, 1, 0))
    a = w.copy_value(w.find(eqn.invars[0]))
    outs = [w.choose_target(eqn, v) for v in eqn.outvars]
    c.call(find_routine(w, a.kind, "syevd"), [a.shape[-1], c.is_letter("uplo", "L")], [a, *outs])
    return [*outs[:2], as_value(w, outs[2])]


def write_gesdd(w: Writer, eqn: Eqn) -> list[Any]:
    """Write singular values and vectors, by rotations of pairs of columns."""
    c = RoutineCall(w, eqn, (2, 1, 2, 2, 0))
    a = w.copy_value(w.find(eqn.invars[0]))
    values, *vectors, info = (w.choose_target(eqn, v) for v in eqn.outvars[1:])
    sizes = [*a.shape[-2:], c.is_letter("mode", "A")]
    c.call(find_routine(w, a.kind, "gesdd"), sizes, [a, values, *vectors, info])
    return [a, values, *vectors, as_value(w, info)]


def write_sytrd(w: Writer, eqn: Eqn) -> list[Any]:
    """Write the tridiagonal forms of Hermitian matrices."""
    c = RoutineCall(w, eqn, (2, 1, 1, 1, 0))
    a = w.take(eqn, eqn.invars[0], eqn.outvars[0])
    outs = [w.choose_target(eqn, v) for v in eqn.outvars[1:]]
    c.call(find_routine(w, a.kind, "sytrd"), [a.shape[-1], c.is_letter("uplo", "L")], [a, *outs])
    return [a, *outs[:3], as_value(w, outs[3])]


def write_gehrd(w: Writer, eqn: Eqn) -> list[Any]:
    """Write the Hessenberg forms of matrices."""
    c = RoutineCall(w, eqn, (2, 1, 0))
    a = w.take(eqn, eqn.invars[0], eqn.outvars[0])
    outs = [w.choose_target(eqn, v) for v in eqn.outvars[1:]]
    c.call(find_routine(w, a.kind, "gehrd"), [a.shape[-1]], [a, *outs])
    return [a, outs[0], as_value(w, outs[1])]


def write_gees(w: Writer, eqn: Eqn) -> list[Any]:
    """Write Schur forms, by the QR algorithm."""
    c = RoutineCall(w, eqn, (2,))
    a = w.take(eqn, eqn.invars[0], eqn.outvars[0])
    outs = [w.choose_target(eqn, v) for v in eqn.outvars[1:]]
    tau = w.new_array(a.kind, (*c.batch, a.shape[-1]))
    c.call(find_routine(w, a.kind, "gees"), [a.shape[-1]], [a, *outs, tau])
    return [a, *outs[:-2], *[as_value(w, x) for x in outs[-2:]]]


def write_geev(w: Writer, eqn: Eqn) -> list[Any]:
    """Write eigenvalues and eigenvectors of general matrices, by their Schur forms."""
    c = RoutineCall(w, eqn, (1,))
    a = w.copy_value(w.find(eqn.invars[0]))
    outs = [w.choose_target(eqn, v) for v in eqn.outvars]
    n, kind = a.shape[-1], outs[-2].kind
    room = [w.new_array(kind, (*c.batch, *shape)) for shape in ((n, n), (n, n), (n,))]
    room += [w.new_array(a.kind, (*c.batch, *shape)) for shape in ((n, n), (n,))]
    room.append(w.new_array(PARTS.get(a.kind.name, a.kind), (*c.batch, n)))
    sides = [c.is_letter(f"compute_{side}", "V") for side in ("left", "right")]
    c.call(find_routine(w, a.kind, "geev"), [n, *sides], [a, *outs, *room])
    return [*outs[:-1], as_value(w, outs[-1])]


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
    name = find_routine(w, kind, "fft")
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
    **by_letter("geqp3", write_geqp3), **by_letter("gtsv", write_gtsv),
    **by_letter("orgqr", write_orgqr, "ungqr"), **by_letter("ormqr", write_ormqr, "unmqr"),
    **by_letter("syevd", write_syevd, "heevd"), **by_letter("gesdd", write_gesdd),
    **by_letter("gesvd", write_gesdd), **by_letter("sytrd", write_sytrd, "hetrd"),
    **by_letter("gehrd", write_gehrd), **by_letter("gees", write_gees),
    **by_letter("geev", write_geev), "tridiagonal_solve_perturbed_ffi": write_gtsv,
    "fft": write_fft,
}  # fmt: skip
