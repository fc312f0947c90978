"""Sorts and the largest elements of rows, as functions in C that are written for a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.core.jaxpr import Eqn, Jaxpr
from weft.export.c.emit import Array, Scalar, row_major
from weft.export.c.index import index_number
from weft.export.c.kinds import KINDS, Kind
from weft.export.c.memory import drop_unused
from weft.export.c.nodes import Call, Pointer, Statement
from weft.export.c.printer import print_block
from weft.export.c.sizes import write_size
from weft.export.c.writer import Writer
from weft.export.recorder import read_numbers

I32 = KINDS[np.dtype(np.int32)]
SORT = """\
static void {name}(ptrdiff_t n, ptrdiff_t step, {parameters}, int32_t *order, int32_t *spare) {{
  for (ptrdiff_t k = 0; k < n; ++k) order[k] = (int32_t)k;
  for (ptrdiff_t width = 1; width < n; width *= 2) {{
    for (ptrdiff_t low = 0; low < n; low += 2 * width) {{
      const ptrdiff_t mid = low + width < n ? low + width : n;
      const ptrdiff_t high = mid + width < n ? mid + width : n;
      ptrdiff_t a = low, b = mid;
      for (ptrdiff_t k = low; k < high; ++k) {{
        bool first = b >= high;
        if (!first && a < mid) {{
          const ptrdiff_t p = order[b] * step, q = order[a] * step;
          first = !{less}({pairs});
        }}
        spare[k] = first ? order[a++] : order[b++];
      }}
    }}
    int32_t *const swap = order;
    order = spare;
    spare = swap;
  }}
  for (ptrdiff_t k = 0; k < n; ++k) {{
    const ptrdiff_t from = order[k] * step;
{moves}
  }}
}}"""
LARGEST = """\
static void {name}(ptrdiff_t n, ptrdiff_t size, const {stored} *x, {stored} *values,
                   int32_t *places) {{
  ptrdiff_t count = 0;
  for (ptrdiff_t i = 0; i < n; ++i) {{
    const {stored} item = x[i];
    ptrdiff_t k = count < size ? count : size;
    while (k > 0 && {key_item} > {key_before}) --k;
    if (k >= size) continue;
    if (count < size) ++count;
    for (ptrdiff_t j = count - 1; j > k; --j) {{
      values[j] = values[j - 1];
      places[j] = places[j - 1];
    }}
    values[k] = item;
    places[k] = (int32_t)i;
  }}
}}"""


def load_text(kind: Kind, text: str) -> str:
    """Return the value of a stored element."""
    return f"weft_load_{kind.name}({text})" if kind.is_half else text


def write_comparison(w: Writer, region: Jaxpr) -> str:
    """Return the name of the function that a program of scalars is."""

    def write(name: str) -> str:
        kinds = [KINDS[a.dtype] for a in region.in_avals]
        args = [Scalar(f"x{n}", k) for n, k in enumerate(kinds)]
        block: list[Statement] = []
        known, w.known = w.known, [{}]
        with w.within(block):
            (out,) = w.write_program(region, args)
        w.known = known
        drop_unused(block, out.name)
        body = "\n".join(print_block(block))
        unread = [a.name for a in args if a.name not in f"{body} {out.name}"]
        body += "".join(f"\n  (void){n};" for n in unread)
        listed = ", ".join(f"{a.kind.computed} {a.name}" for a in args)
        return f"static bool {name}({listed}) {{\n{body}\n  return {out.name};\n}}"

    return w.find_text(("less", region), "apply_less", write)


def write_sort(w: Writer, eqn: Eqn) -> list[Any]:
    """Write a sort of arrays together along an axis."""
    attrs, (region,) = dict(eqn.params["attrs"]), eqn.params["regions"]
    axis = read_numbers(attrs["dimension"])[0]
    xs = [w.settle(a) for a in eqn.invars]
    outs = [w.choose_target(eqn, v) for v in eqn.outvars]
    kinds = [x.kind for x in xs]
    less = write_comparison(w, region)
    pairs = [load_text(k, f"x{n}[{p}]") for n, k in enumerate(kinds) for p in "pq"]
    name = w.find_text(
        ("sort", region),
        "apply_sort",
        lambda name: SORT.format(
            name=name,
            parameters=", ".join(
                f"const {k.stored} *x{n}, {k.stored} *y{n}" for n, k in enumerate(kinds)
            ),
            less=less,
            pairs=", ".join(pairs),
            moves="\n".join(f"    y{n}[k * step] = x{n}[from];" for n in range(len(kinds))),
        ),
    )
    shape = xs[0].shape
    count = shape[axis]
    order, spare = w.new_array(I32, (count,)), w.new_array(I32, (count,))
    step = math.prod(shape[axis + 1 :])
    with w.loops([n for k, n in enumerate(shape) if k != axis]) as index:
        at = [*index[:axis], index_number(0), *index[axis:]]
        rows: list[Any] = []
        for x, y in zip(xs, outs, strict=True):
            rows += [point_at(x, at), point_at(y, at)]
        sizes: Sequence[Any] = [write_size(count), write_size(step)]
        w.write(Call(name, [*sizes, *rows, order.pointer, spare.pointer]))
    return list(outs)


def point_at(x: Array, index: Sequence[Any]) -> Pointer:
    """Return the address of an element of an array."""
    return Pointer(x.buffer, x.offset.add(row_major(index, x.shape)))


def write_top_k(w: Writer, eqn: Eqn) -> list[Any]:
    """Write the largest elements of rows, and where they are."""
    count = read_numbers(dict(eqn.params["attrs"])["k"])[0]
    x = w.settle(eqn.invars[0])
    values, places = (w.choose_target(eqn, v) for v in eqn.outvars)
    kind = x.kind

    def key(text: str) -> str:
        value = load_text(kind, text)
        if kind.letter != "f":
            return value
        return f"weft_order_{'f64' if kind.computed == 'double' else 'f32'}({value})"

    name = w.find_text(
        ("top_k", kind),
        f"apply_top_k_{kind.name}",
        lambda name: LARGEST.format(
            name=name, stored=kind.stored, key_item=key("item"), key_before=key("values[k - 1]")
        ),
    )
    with w.loops(x.shape[:-1]) as index:
        at = [*index, index_number(0)]
        rows = [point_at(x, at), point_at(values, at), point_at(places, at)]
        w.write(Call(name, [write_size(x.shape[-1]), write_size(count), *rows]))
    return [values, places]


SORTING = {"sort": write_sort, "chlo.top_k": write_top_k}
