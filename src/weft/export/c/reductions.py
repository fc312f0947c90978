"""Operations of StableHLO with a program for two elements: reductions, windows, scatter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from weft.core.element import Operator
from weft.core.jaxpr import Eqn
from weft.export.c.emit import Scalar, index_of, row_major
from weft.export.c.index import Index, choose_extremum, compare_indices, index_number, index_term
from weft.export.c.kinds import KINDS
from weft.export.c.nodes import Copy
from weft.export.c.writer import Writer
from weft.export.recorder import read_dims, read_numbers


def start_totals(w: Writer, names: Sequence[str], kinds: Sequence[Any]) -> list[Scalar]:
    """Write variables that change, with values to begin with."""
    return [
        Scalar(w.let(k.computed, "{0}", [name], mutable=True), k)
        for name, k in zip(names, kinds, strict=True)
    ]


def combine(w: Writer, region: Any, totals: Sequence[Scalar], items: Sequence[Scalar]) -> None:
    """Write new totals: what a program gives of the old ones and of items."""
    outs = w.write_program(region, [*totals, *items])
    known = {t.name for t in totals}
    names = [
        w.let(x.kind.computed, "{0}", [x.name], mutable=True) if x.name in known else x.name
        for x in outs
    ]
    for t, name in zip(totals, names, strict=True):
        w.assign(t.name, name)


def store_results(
    w: Writer, eqn: Eqn, outs: Sequence[Any], index: Sequence[Index], totals: Sequence[Scalar]
) -> None:
    """Write totals to an element of each result."""
    for to, total in zip(outs, totals, strict=True):
        w.write_element(to, index, total.name)


def write_reduce(w: Writer, eqn: Eqn) -> list[Any]:
    """Write a reduction of several arrays together over some axes."""
    attrs, (region,) = dict(eqn.params["attrs"]), eqn.params["regions"]
    axes, n = read_numbers(attrs["dimensions"]), len(eqn.invars) // 2
    xs = [w.settle(a) for a in eqn.invars[:n]]
    kinds = [KINDS[a.aval.dtype] for a in eqn.invars[:n]]
    starts = [w.find(a).name for a in eqn.invars[n:]]
    shape = eqn.invars[0].aval.shape
    free = [k for k in range(len(shape)) if k not in axes]
    sizes = [shape[k] for k in free]
    outs = [w.choose_target(eqn, v) for v in eqn.outvars] if sizes else []
    with w.loops(sizes) as index:
        totals = start_totals(w, starts, kinds)
        with w.loops([shape[k] for k in axes]) as places:
            at = dict(zip((*free, *axes), (*index, *places), strict=True))
            spot = [at[k] for k in range(len(shape))]
            items = [Scalar(w.read(x, spot), k) for x, k in zip(xs, kinds, strict=True)]
            combine(w, region, totals, items)
        store_results(w, eqn, outs, index, totals if sizes else [])
    return outs or totals


class Windows:
    """The windows of an operation: their sizes, and where each element of one is."""

    def __init__(self, attrs: dict, ndim: int, shape: Sequence[int]):
        pick = lambda name, other: read_numbers(attrs[name]) if name in attrs else other
        self.shape = shape
        self.sizes = pick("window_dimensions", ())
        self.strides = pick("window_strides", (1,) * ndim)
        self.base = pick("base_dilations", (1,) * ndim)
        self.wide = pick("window_dilations", (1,) * ndim)
        text = re.sub(r": tensor<.*>$", "", str(attrs.get("padding", "")))
        numbers = list(map(int, re.findall(r"-?\d+", text))) or [0] * (2 * ndim)
        if len(numbers) == 1:
            numbers *= 2 * ndim
        self.low = numbers[::2]

    def find(self, index: Sequence[Index], inside: Sequence[Index]) -> tuple[Any, list[Index]]:
        """Return the condition that an element of a window is one of the array, and its index."""
        tests, places = list[Any](), []
        rows = zip(index, inside, self.strides, self.wide, self.low, self.base, self.shape,
                   strict=True)  # fmt: skip
        for o, k, stride, wide, low, base, size in rows:
            at = o.scale(stride).add(k, wide).add(index_number(low), -1)
            tests.append(compare_indices(Operator.AT_MOST, index_number(0), at))
            rest = at.remainder(base)
            tests.append(compare_indices(Operator.EQUAL, rest, index_number(0)))
            at = at.divide(base)
            tests.append(compare_indices(Operator.LESS, at, index_number(size)))
            places.append(at)
        return join_tests(tests), places


def join_tests(tests: Sequence[bool | str]) -> bool | str:
    """Return the condition that all of some hold."""
    if any(t is False for t in tests):
        return False
    return " && ".join([t for t in tests if isinstance(t, str)]) or True


def write_reduce_window(w: Writer, eqn: Eqn) -> list[Any]:
    """Write a reduction of arrays over windows."""
    attrs, (region,) = dict(eqn.params["attrs"]), eqn.params["regions"]
    n = len(eqn.invars) // 2
    xs = [w.settle(a) for a in eqn.invars[:n]]
    kinds = [KINDS[a.aval.dtype] for a in eqn.invars[:n]]
    starts = [w.find(a).name for a in eqn.invars[n:]]
    shape = eqn.invars[0].aval.shape
    windows = Windows(attrs, len(shape), shape)
    outs = [w.choose_target(eqn, v) for v in eqn.outvars]
    if not shape:
        return [Scalar(w.read(x, []), k) for x, k in zip(xs, kinds, strict=True)]
    with w.loops(eqn.outvars[0].aval.shape) as index:
        totals = start_totals(w, starts, kinds)
        with w.loops(windows.sizes) as inside:
            test, places = windows.find(index, inside)
            with w.when(test):
                items = [Scalar(w.read(x, places), k) for x, k in zip(xs, kinds, strict=True)]
                combine(w, region, totals, items)
        store_results(w, eqn, outs, index, totals)
    return outs


def write_select_and_scatter(w: Writer, eqn: Eqn) -> list[Any]:
    """Write numbers added where an operand has the element that a program selects of a window."""
    attrs, (choose, region) = dict(eqn.params["attrs"]), eqn.params["regions"]
    operand, source = (w.settle(a) for a in eqn.invars[:2])
    start, kind = w.find(eqn.invars[2]), operand.kind
    (var,) = eqn.outvars
    to = w.choose_target(eqn, var)
    w.fill(to, start)
    windows = Windows(attrs, len(operand.shape), operand.shape)
    with w.loops(source.shape) as index:
        found = w.let("ptrdiff_t", "-1", mutable=True)
        best = start_totals(w, [start.name], [kind])
        with w.loops(windows.sizes) as inside:
            test, places = windows.find(index, inside)
            with w.when(test):
                x = w.read(operand, places)
                (keep,) = w.write_program(choose, [best[0], Scalar(x, kind)])
                with w.when(f"{found} < 0 || !{keep.name}"):
                    w.assign(best[0].name, x)
                    at = row_major(places, operand.shape)
                    w.assign(found, f"({at})")
        with w.when(f"{found} >= 0"):
            at = to.offset.add(index_term(found, 0, to.size - 1))
            old = Scalar(w.load(to.buffer, at), kind)
            more = Scalar(w.read(source, index), kind)
            (new,) = w.write_program(region, [old, more])
            w.store(to.buffer, at, new.name)
    return [to]


def write_scatter(w: Writer, eqn: Eqn) -> list[Any]:
    """Write updates to windows of an operand at indices; windows that do not fit are skipped."""
    attrs, (region,) = dict(eqn.params["attrs"]), eqn.params["regions"]
    text = attrs["scatter_dimension_numbers"]
    dims = read_dims(text)
    pick = lambda name: dims.get(name, ())
    x_aval = eqn.invars[0].aval
    indices = w.settle(eqn.invars[1])
    updates = w.settle(eqn.invars[2])
    to = w.take(eqn, eqn.invars[0], eqn.outvars[0])
    axes = pick("update_window_dims")
    out_of = (*pick("inserted_window_dims"), *pick("input_batching_dims"))
    inner = [k for k in range(x_aval.ndim) if k not in out_of]
    sizes = dict.fromkeys(range(x_aval.ndim), 1)
    shape = eqn.invars[2].aval.shape
    sizes.update(zip(inner, [shape[a] for a in axes], strict=True))
    mapped = pick("scatter_dims_to_operand_dims")
    vector = pick("index_vector_dim")[0]
    outer = [a for a in range(len(shape)) if a not in axes]
    batches = dict(
        zip(pick("input_batching_dims"), pick("scatter_indices_batching_dims"), strict=True)
    )
    with w.loops([shape[a] for a in outer]) as spot:
        starts = {k: index_number(0) for k in range(x_aval.ndim)}
        whole = eqn.invars[1].aval.ndim == vector
        for n, k in enumerate(mapped):
            at = list(spot) if whole else [*spot[:vector], index_number(n), *spot[vector:]]
            name = w.read(indices, at)
            wide = w.let("ptrdiff_t", "(ptrdiff_t){0}", [name])
            starts[k] = index_term(wide)
        for k, axis in batches.items():
            starts[k] = spot[axis - (axis > vector)]
        tests = []
        for k in mapped:
            last = index_number(x_aval.shape[k] - sizes[k])
            tests.append(compare_indices(Operator.AT_MOST, index_number(0), starts[k]))
            tests.append(compare_indices(Operator.AT_MOST, starts[k], last))
        with w.when(join_tests(tests)), w.loops([shape[a] for a in axes]) as window:
            moved = dict(zip(inner, window, strict=True))
            place = [starts[k].add(moved.get(k, Index())) for k in range(x_aval.ndim)]
            index = dict(zip((*outer, *axes), (*spot, *window), strict=True))
            update = w.read(updates, [index[a] for a in range(len(shape))])
            old = Scalar(w.read(to, place), to.kind)
            (new,) = w.write_program(region, [old, Scalar(update, to.kind)])
            w.write_element(to, place, new.name)
    return [to]


def write_update(w: Writer, eqn: Eqn) -> list[Any]:
    """Write a part of an array, in place."""
    x, update, *starts = eqn.invars
    if not x.aval.shape:
        return [w.find(update)]
    part = w.find(update)
    if update.aval.size == 1 and not isinstance(part, Scalar):
        name = w.read(part, [index_number(0)] * update.aval.ndim)
        part = w.frame.env[update] = Scalar(name, part.kind)
    elif part.buffers & w.find(x).buffers:
        part = w.settle(update)
    names = [w.find(s) for s in starts]
    to = w.take(eqn, x, eqn.outvars[0])
    first = []
    for s, n, m in zip(names, x.aval.shape, update.aval.shape, strict=True):
        at = choose_extremum(True, index_of(s.name, s.kind), index_number(n - m))
        at = choose_extremum(False, at, index_number(0))
        if at.number is None:
            at = index_term(w.let("ptrdiff_t", at.text), 0, n - m)
        first.append(at)
    with w.loops(update.aval.shape) as index:
        place = [s.add(k) for s, k in zip(first, index, strict=True)]
        w.write_element(to, place, w.read(part, index))
    return [to]


def write_bits(w: Writer, eqn: Eqn) -> list[Any]:
    """Write the bytes of an array as elements of another width."""
    x = w.settle_array(eqn.invars[0])
    (var,) = eqn.outvars
    to = w.choose_target(eqn, var)
    if to.size:
        w.write(Copy(to.pointer, x.pointer, to.size * (to.kind.bits // 8)))
    if not var.aval.shape:
        return [w.as_scalar(to)]
    return [to]


REDUCTIONS = {
    "reduce": write_reduce, "reduce_window": write_reduce_window, "scatter": write_scatter,
    "select_and_scatter": write_select_and_scatter, "dynamic_update_slice": write_update,
    "bitcast_convert": write_bits,
}  # fmt: skip
