"""Joins, stacks, repetitions and frames of large arrays.

XLA:CPU copies pieces one after the other on one thread, or tests for each element which piece holds
it. A kernel (native/copy.cc) copies them on all threads. It cannot be fused, so it is for programs
that only move elements. The columns of a stack are selected by their number, which is vectorized.
In other programs, a roll along the last axis selects elements by their index.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, memo_jaxpr
from weft.cpu.calls import call_kernel
from weft.cpu.elements import is_fused, only_moves
from weft.cpu.rewriting import Reading, Replacement
from weft.cpu.scope import Scope
from weft.optimize.views import find_views, row_major_steps, view_whole
from weft.primitives.elementwise import eq, select
from weft.primitives.families import insert_item
from weft.primitives.layout import broadcast_in_dim, broadcasted_iota, fill, reshape
from weft.primitives.slicing import pad, padding_mask

INT32 = np.dtype(np.int32)
MIN_COPY_BYTES = 1 << 18  # the call of a kernel pays for results of this size, and larger ones
MIN_RUN_BYTES = 2048  # copies of this many contiguous bytes are quicker than loops
MIN_ROLLED_BYTES = 64  # contiguous bytes of rows that are rolled
MAX_PARTS = 64  # each part is an operand
MAX_PIECES = 2  # slices of an array that are selected by index; a roll has two
MIN_ROLLED = 64  # elements of a vector in a loop, which are chosen by their places
MAX_COLUMNS = 8  # more columns are not chosen by their numbers
MIN_COLUMNS_SIZE = 1 << 15  # elements of a result: for smaller ones, choosing columns does not pay


def can_copy(out: ShapedArray, run: int, scope: Scope) -> bool:
    """Return True if the kernel is quicker for a result, in runs of `run` elements."""
    bits = dtypes.itemsize_bits(out.dtype)
    return (
        scope.target.kernels
        and has_many_bytes(out)
        and bits >= 8
        and run * bits >= 8 * MIN_RUN_BYTES
    )


def has_many_bytes(aval: ShapedArray) -> bool:
    """Return True for an array of `MIN_COPY_BYTES`, or more."""
    known = type(aval.size) is int
    return known and aval.size * dtypes.itemsize_bits(aval.dtype) >= 8 * MIN_COPY_BYTES


def choose_join(eqn: Eqn, scope: Scope) -> Reading | None:
    """Join large parts by the kernel; a part that is a slice along the axis is read in place."""
    out, axis = eqn.outvars[0].aval, eqn.params["dimension"]
    if scope.moves and (rolled := find_rolls(eqn, scope)):
        whole, starts = rolled
        return Reading(lambda x: [roll(x, starts)], [whole])
    if not can_join(out, axis, len(eqn.invars), scope):
        if rolls_by_one(eqn, scope):
            return Reading(lambda *xs: [join_element(xs, out)], eqn.invars)
        found = joins_slices(eqn, scope)
        return Reading(lambda *xs: [join_by_choice(xs, axis, out)], eqn.invars) if found else None
    sizes = [a.aval.shape[axis] for a in eqn.invars]
    atoms, starts = zip(*[find_whole(a, axis, scope) for a in eqn.invars], strict=True)
    return Reading(lambda *xs: [join(xs, starts, sizes, axis, out)], atoms)


def can_join(out: ShapedArray, axis: int, count: int, scope: Scope) -> bool:
    """Return True if the kernel is quicker at joining parts."""
    if not scope.moves or count > MAX_PARTS:
        return False
    return can_copy(out, math.prod(out.shape[axis:]), scope)


def find_whole(part: Atom, axis: int, scope: Scope) -> tuple[Atom, int]:
    """Return the array that a part is cut from along an axis, and where; else the part, and 0."""
    maker = scope.maker(part)
    if maker is None or len(maker.invars) != 1:
        return part, 0
    (whole,) = maker.invars
    views = find_views(maker, {whole: view_whole(whole)})
    if views is None:
        return part, 0
    view, shape = views[maker.outvars.index(part)], whole.aval.shape
    steps, others = row_major_steps(shape), [*range(axis), *range(axis + 1, len(shape))]
    if view.steps != steps or any(view.sizes[i] != shape[i] for i in others):
        return part, 0
    return whole, view.start // steps[axis]


def join(
    xs: Sequence[Any], starts: Sequence[int], sizes: Sequence[int], axis: int, out: ShapedArray
) -> Any:
    """Join parts of arrays along an axis by the kernel: `sizes` elements of each from `starts`."""
    rows, lanes = math.prod(out.shape[:axis]), math.prod(out.shape[axis + 1 :])
    operands = [reshape(x, (rows, x.shape[axis], lanes)) for x in xs]
    result = ShapedArray((rows, out.shape[axis], lanes), out.dtype)
    attributes = {"starts": tuple(starts), "sizes": tuple(sizes)}
    (y,) = call_kernel("weft_concatenate", operands, [result], attributes)
    return reshape(y, out.shape)


def find_rolls(eqn: Eqn, scope: Scope) -> tuple[Atom, tuple[int, ...]] | None:
    """Return the array that a join, and the joins before it, roll, and where each axis starts.

    None for an array rolled along one axis in long rows, for which joining is as quick.
    """
    out = eqn.outvars[0].aval
    bits, starts = dtypes.itemsize_bits(out.dtype), [0] * out.ndim
    if not scope.target.kernels or not has_many_bytes(out) or bits < 8:
        return None
    whole: Any = eqn.outvars[0]
    join: Eqn | None = eqn
    count = 0
    while join is not None and join.primitive.form is Form.JOIN:
        axis = join.params["dimension"]
        found = [(a.aval.shape[axis], *find_whole(a, axis, scope)) for a in join.invars]
        size = out.shape[axis]
        if len(found) != 2 or found[0][1] is not found[1][1] or found[0][1].aval.shape != out.shape:
            break
        (length, whole, start), (_, _, first) = found
        if first or start + length != size:
            break
        starts[axis] = (starts[axis] + start) % size
        join, count = scope.old_makers.get(whole), count + 1
    rolled = [i for i, start in enumerate(starts) if start]
    run = math.prod(out.shape[max(rolled) :]) if rolled else 0
    if run * bits < 8 * MIN_ROLLED_BYTES or (count == 1 and can_copy(out, run, scope)):
        return None
    return whole, tuple(starts)


def roll(x: Any, starts: Sequence[int]) -> Any:
    """Roll an array by the kernel so that each axis begins with an element of the operand."""
    last = max(i for i, start in enumerate(starts) if start)
    lanes = math.prod(x.shape[last + 1 :])
    shape = (*x.shape[:last], x.shape[last] * lanes)
    places = (*starts[:last], starts[last] * lanes)
    out = ShapedArray(shape, x.dtype)
    (y,) = call_kernel("weft_roll", [reshape(x, shape)], [out], {"starts": places})
    return reshape(y, x.shape)


def joins_slices(eqn: Eqn, scope: Scope) -> bool:
    """Return True if a few large slices of one array are joined along its last axis, as by a roll.

    XLA:CPU writes such slices, and then their join, to memory, where the parts of other axes are
    read in the loop that reads the join.
    """
    out, axis = eqn.outvars[0].aval, eqn.params["dimension"]
    last = axis == out.ndim - 1 > 0 and len(eqn.invars) <= MAX_PIECES and has_many_bytes(out)
    if not last or scope.moves or scope.target.devices:
        return False
    wholes = {find_whole(a, axis, scope)[0] for a in eqn.invars}
    return len(wholes) == 1 and wholes.isdisjoint(eqn.invars) and moves_stored(scope.program)


def rolls_by_one(eqn: Eqn, scope: Scope) -> bool:
    """Return True if a vector that a loop carries is rolled by one element.

    XLA:CPU tests for each element which slice has it, and writes no vector instructions.
    """
    out = eqn.outvars[0].aval
    if not scope.target.loops or scope.target.devices or out.ndim != 1 or len(eqn.invars) != 2:
        return False
    if type(out.size) is not int or out.size < MIN_ROLLED or eqn.params["dimension"] != 0:
        return False
    wholes = {find_whole(a, 0, scope)[0] for a in eqn.invars}
    stored = len(wholes) == 1 and scope.maker(*wholes) is None
    return stored and 1 in [a.aval.size for a in eqn.invars]


def join_element(xs: Sequence[Any], out: ShapedArray) -> Any:
    """Join an element and a vector, which is before or after it, by the places of elements."""
    first = xs[0].shape == (1,)
    (one, rest), place = (xs, 0) if first else (xs[::-1], out.size - 1)
    here = eq(broadcasted_iota(INT32, out.shape, 0), place)
    one = broadcast_in_dim(reshape(one, ()), out.shape, ())
    return select(here, one, pad(rest, fill((), 0, out.dtype), [(int(first), int(not first), 0)]))


@memo_jaxpr
def moves_stored(jaxpr: Jaxpr) -> bool:
    """Return True if a program computes no large array before it moves the elements.

    XLA would compute such an array again for each place that elements are moved to.
    """
    stored = {*jaxpr.invars, *jaxpr.constvars}
    for eqn in jaxpr.eqns:
        if not is_fused(eqn):
            stored.update(eqn.outvars)
        elif only_moves(eqn):
            large = [a for a in eqn.invars if has_many_bytes(a.aval)]
            if not stored.issuperset(large):
                return False
            stored.update(eqn.outvars)
    return True


def join_by_choice(xs: Sequence[Any], axis: int, out: ShapedArray) -> Any:
    """Join parts of arrays, each element chosen by its place."""
    start, zero, y = 0, fill((), 0, out.dtype), None
    for x in xs:
        config = [(0, 0, 0)] * out.ndim
        config[axis] = (start, out.shape[axis] - start - x.shape[axis], 0)
        part = pad(x, zero, config)
        y = part if y is None else select(padding_mask(typeof(x), config), y, part)
        start += x.shape[axis]
    return y


def choose_stack(eqn: Eqn, scope: Scope) -> Callable[..., list] | None:
    """Stack large arrays by the kernel; few columns that are arguments by their numbers."""
    out, axis, count = eqn.outvars[0].aval, eqn.params["axis"], len(eqn.invars)
    if can_join(out, axis, count, scope):
        row = insert_item(eqn.invars[0].aval.shape, axis, 1)
        zeros, ones = [0] * count, [1] * count
        return lambda *xs: [join([reshape(x, row) for x in xs], zeros, ones, axis, out)]
    few = type(out.size) is int and out.size >= MIN_COLUMNS_SIZE and count <= MAX_COLUMNS
    if not few or axis != out.ndim - 1 or scope.target.devices:
        return None
    # of columns that are computed, XLA would compute all for each column
    given = all(map(scope.is_argument, eqn.invars))
    if not given or dtypes.itemsize_bits(out.dtype) < 8:
        return None
    return lambda *xs: [choose_columns(xs, out)]


def choose_columns(xs: Sequence[Any], out: ShapedArray) -> Any:
    """Return arrays as the columns of a result."""
    axis = out.ndim - 1
    number = broadcasted_iota(INT32, out.shape, axis)
    *columns, y = (broadcast_in_dim(x, out.shape, range(axis)) for x in xs)
    for k, column in reversed([*enumerate(columns)]):
        y = select(eq(number, k), column, y)
    return y


def choose_tile(eqn: Eqn, scope: Scope) -> Callable[..., list] | None:
    """Repeat a large array along one axis by the kernel."""
    out, reps = eqn.outvars[0].aval, eqn.params["reps"]
    repeated = [i for i, r in enumerate(reps) if r > 1]
    if len(repeated) != 1 or 0 in reps:
        return None
    (axis,) = repeated
    count = reps[axis]
    if not can_join(out, axis, count, scope):
        return None
    size = eqn.invars[0].aval.shape[axis]
    return lambda x: [join([x] * count, [0] * count, [size] * count, axis, out)]


def choose_frame(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Write a large array within a frame of one value by the kernel."""
    out, config = eqn.outvars[0].aval, eqn.params["padding_config"]
    if not scope.moves or not any(map(any, config)):
        return None
    if min(map(min, config)) < 0 or any(step for _, _, step in config):
        return None
    last = max(
        i for i, widths in enumerate(config) if any(widths)
    )  # later axes are contiguous with it
    lanes = math.prod(out.shape[last + 1 :])
    if not can_copy(out, out.shape[last] * lanes, scope):
        return None
    low = (*(a for a, _, _ in config[:last]), config[last][0] * lanes)
    flat = lambda shape: (*shape[:last], shape[last] * lanes)

    def frame(x: Any, fill: Any) -> list:
        result = ShapedArray(flat(out.shape), out.dtype)
        operands = [reshape(x, flat(x.shape)), fill]
        (y,) = call_kernel("weft_pad", operands, [result], {"low": low})
        return [reshape(y, out.shape)]

    return frame
