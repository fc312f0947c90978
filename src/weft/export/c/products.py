"""Products of matrices, as a function in C that keeps a block of the right factor in the cache.

Small products, and products of integers or complex numbers, are loops around a sum (writer.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from weft.core.element import Place, Read
from weft.core.jaxpr import Eqn
from weft.export.c.emit import Array, Lazy
from weft.export.c.index import index_number
from weft.export.c.kinds import KINDS, Kind
from weft.export.c.nodes import Call
from weft.export.c.sizes import find_typical, write_size
from weft.export.c.sorting import point_at
from weft.export.c.writer import Writer
from weft.export.dims import Size

MIN_PRODUCTS = 4096  # of numbers; fewer take less time than the loops around the blocks
MIN_COLUMNS, MIN_TERMS = 8, 4  # of the result, and of each sum: a vector, and one step of the loops

# Two rows of the result and four terms at a time: all factors are in registers of AVX2. `row` and
# `term` are the steps in `a` from row to row and from term to term.
PRODUCT = """\
#ifdef WEFT_CBLAS
#include <cblas.h>
#endif

static void NAME(ptrdiff_t m, ptrdiff_t n, ptrdiff_t terms, ptrdiff_t row, ptrdiff_t term,
                 const T *a, const T *b, T *restrict c) {
#ifdef WEFT_CBLAS
  const bool plain = term == 1;
  cblas_Lgemm(CblasRowMajor, plain ? CblasNoTrans : CblasTrans, CblasNoTrans, (int)m, (int)n,
                 (int)terms, 1, a, (int)(plain ? row : term), b, (int)n, 0, c, (int)n);
#else
  for (ptrdiff_t i = 0; i < m * n; ++i) c[i] = 0;
  for (ptrdiff_t j0 = 0; j0 < n; j0 += 512) {
    const ptrdiff_t columns = n - j0 < 512 ? n - j0 : 512;
    for (ptrdiff_t k0 = 0; k0 < terms; k0 += 64) {
      const ptrdiff_t count = terms - k0 < 64 ? terms - k0 : 64, quads = count - count % 4;
      const T *const block = b + k0 * n + j0;
      for (ptrdiff_t i = 0; i < m; i += 2) {
        const bool last = i + 1 == m;
        const T *const p = a + i * row + k0 * term, *const q = last ? p : p + row;
        T *restrict const c0 = c + i * n + j0;
        T *restrict const c1 = last ? c0 : c0 + n;
        for (ptrdiff_t k = 0; k < quads; k += 4) {
          const T *const u = p + k * term, *const v = q + k * term;
          const T u0 = u[0], u1 = u[term], u2 = u[2 * term], u3 = u[3 * term];
          const T v0 = v[0], v1 = v[term], v2 = v[2 * term], v3 = v[3 * term];
          const T *const b0 = block + k * n, *const b1 = b0 + n, *const b2 = b1 + n;
          const T *const b3 = b2 + n;
          for (ptrdiff_t j = 0; last && j < columns; ++j)
            c0[j] += (u0 * b0[j] + u1 * b1[j]) + (u2 * b2[j] + u3 * b3[j]);
          for (ptrdiff_t j = 0; !last && j < columns; ++j) {
            c0[j] += (u0 * b0[j] + u1 * b1[j]) + (u2 * b2[j] + u3 * b3[j]);
            c1[j] += (v0 * b0[j] + v1 * b1[j]) + (v2 * b2[j] + v3 * b3[j]);
          }
        }
        for (ptrdiff_t k = quads; k < count; ++k) {
          const T *const b0 = block + k * n;
          const T u0 = p[k * term], v0 = q[k * term];
          for (ptrdiff_t j = 0; j < columns; ++j) c0[j] += u0 * b0[j];
          for (ptrdiff_t j = 0; !last && j < columns; ++j) c1[j] += v0 * b0[j];
        }
      }
    }
  }
#endif
}"""


def write_product(w: Writer, eqn: Eqn) -> list[Any] | None:
    """Write a product as calls of the function; None if a sum for each element is as fast."""
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    left, right = (a.aval for a in eqn.invars)
    (var,) = eqn.outvars
    kind = KINDS[var.aval.dtype]
    if kind.letter != "f" or kind.is_half or any(KINDS[x.dtype] is not kind for x in (left, right)):
        return None
    rows = [k for k in range(left.ndim) if k not in (*lc, *lb)]
    columns = [k for k in range(right.ndim) if k not in (*rc, *rb)]
    m, n, terms = (
        math.prod([x.shape[k] for k in axes])
        for x, axes in ((left, rows), (right, columns), (left, lc))
    )
    typical = [find_typical(size) for size in (m, n, terms)]
    if math.prod(typical) < MIN_PRODUCTS or typical[1] < MIN_COLUMNS or typical[2] < MIN_TERMS:
        return None
    turned = (*lb, *lc, *rows) == tuple(range(left.ndim)) and bool(rows)
    a = arrange(w, eqn.invars[0], (*lb, *lc, *rows) if turned else (*lb, *rows, *lc))
    b = arrange(w, eqn.invars[1], (*rb, *rc, *columns))
    to = w.choose_target(eqn, var)
    name = w.find_text(("product", kind), f"apply_product_{kind.name}", lambda s: fill(kind, s))
    steps: Sequence[Size] = (1, m) if turned else (terms, 1)
    sizes = [write_size(size) for size in (m, n, terms, *steps)]
    batch = len(lb)
    with w.loops(var.aval.shape[:batch]) as index:
        places = [
            point_at(x, [*index, *[index_number(0)] * (len(x.shape) - batch)]) for x in (a, b, to)
        ]
        w.write(Call(name, [*sizes, *places]))
    return [to]


def fill(kind: Kind, name: str) -> str:
    """Return the text of the function for a kind."""
    words = {"NAME": name, "T": kind.computed, "cblas_Lgemm": f"cblas_{'sd'[kind.bits == 64]}gemm"}
    return re.sub(r"\b(NAME|T|cblas_Lgemm)\b", lambda m: words[m[0]], PRODUCT)


def arrange(w: Writer, atom: Any, axes: Sequence[int]) -> Array:
    """Return an operand in memory, with its axes in an order."""
    x = w.settle(atom)
    if tuple(axes) == tuple(range(len(x.shape))):
        return x
    to = w.new_array(x.kind, [x.shape[k] for k in axes])
    places = [Place(f"i{k}") for k in range(len(axes))]
    moved = Read(0, tuple([places[axes.index(k)] for k in range(len(axes))]))
    w.fill(to, Lazy(places, moved, [x], to.shape, x.kind, False, x.buffers))
    return to
