"""Helpers of collectives: axes in scope, elements along one dimension, text for devices.

The operations are in collective.py.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Primitive
from weft.errors import UnboundAxisError
from weft.options import named_axes
from weft.primitives.expr import Expr
from weft.primitives.indexing import GatherDimensionNumbers, GatherScatterMode, gather
from weft.primitives.layout import reshape, transpose, zeros
from weft.primitives.slicing import concatenate, slice_in_dim
from weft.xla.hlo import TOKEN

INT = np.dtype(np.int32)
U32 = np.dtype(np.uint32)
Name = Hashable
Groups = tuple[tuple[int, ...], ...]


# --- named axes ---------------------------------------------------------------------------------


def named_axis(op: str, name: Name) -> Any:
    """The innermost axis in scope of this name."""
    for axis in reversed(named_axes.value):
        if axis.name == name:
            return axis
    raise UnboundAxisError(describe_unbound(op, name, [(a.name, a.size) for a in named_axes.value]))


def describe_unbound(op: str, name: Name, scope: Sequence[tuple[Name, int]]) -> str:
    """Return the message for an axis that is not in scope."""
    given = ", ".join(f"{n!r} (size {size})" for n, size in scope if n is not None)
    return (
        f"{op}: axis_name must be an axis in scope; got {name!r}, in scope {given or 'none'}. "
        f"Hint: vmap(f, axis_name={name!r}), or shard_map over a mesh with this axis."
    )


def axis_names(params: dict) -> tuple[Name, ...]:
    """The axes that an application is along."""
    names = params["axes"] if "axes" in params else params["axis_name"]
    return names if type(names) is tuple else (names,)


def count_copies(op: str, names: Sequence[Name]) -> int:
    """Return the number of copies along axes in scope."""
    return math.prod(named_axis(op, n).size for n in names)


def name_text(names: Any) -> str:
    """Axis names in an error."""
    names = names if type(names) is tuple else (names,)
    return repr(names[0]) if len(names) == 1 else repr(names)


class Meeting(Primitive):
    """A family: operations that synchronize the devices along named axes of a mesh."""

    of_all = False  # on CPU, all devices of the mesh are synchronized, whatever the axes


# --- moving elements of one dimension -----------------------------------------------------------

FEW = 8  # with at most this number of slices and zeros, they cost less than a gather


def arrange(x: Any, places: Sequence[int], dim: int) -> Any:
    """out[k] = x[places[k]] along `dim`; zeros where places[k] is negative."""
    aval = typeof(x)
    if list(places) == list(range(aval.shape[dim])):
        return x
    runs = find_runs(places)
    if len(runs) > FEW:
        return gather_places(x, places, dim)
    parts = []
    for start, count in runs:
        if start >= 0:
            parts.append(slice_in_dim(x, start, start + count, 1, dim))
        else:
            shape = (*aval.shape[:dim], count, *aval.shape[dim + 1 :])
            parts.append(zeros(aval.update(shape=shape)))
    return concatenate(parts, dim) if len(parts) > 1 else parts[0]


def find_runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Places as (first, count) of runs that ascend by one, or stay negative."""
    runs: list[tuple[int, int]] = []
    for p in places:
        first, count = runs[-1] if runs else (0, 0)
        if runs and (p == first + count if first >= 0 else p < 0):
            runs[-1] = first, count + 1
        else:
            runs.append((p, 1))
    return runs


def gather_places(x: Any, places: Sequence[int], dim: int) -> Any:
    """`arrange`, for many runs."""
    shape = typeof(x).shape
    others = tuple(i for i in range(len(shape)) if i != dim)
    numbers = GatherDimensionNumbers(others, collapsed_slice_dims=(dim,), start_index_map=(dim,))
    sizes = tuple(1 if i == dim else n for i, n in enumerate(shape))
    indices, mode = np.asarray(places, INT)[:, None], GatherScatterMode.FILL_OR_DROP
    return gather(x, indices, numbers, sizes, mode=mode, fill_value=0)


def move_dim(x: Any, source: int, target: int) -> Any:
    """`x` with its axis `source` at place `target`."""
    order = [i for i in range(typeof(x).ndim) if i != source]
    order.insert(target, source)
    return transpose(x, order)


def merge_dims(x: Any, dim: int) -> Any:
    """`x` with axes `dim` and `dim + 1` as one."""
    shape = typeof(x).shape
    return reshape(x, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def split_dim(x: Any, dim: int, count: int) -> Any:
    """`x` with axis `dim` as two, the first of size `count`."""
    shape = typeof(x).shape
    return reshape(x, (*shape[:dim], count, shape[dim] // count, *shape[dim + 1 :]))


# --- text of communication ----------------------------------------------------------------------

CHANNEL = "#stablehlo.channel_handle<handle = 1, type = 1>"


def device_rows(hlo: Any, op: str, names: Sequence[Name]) -> np.ndarray:
    """The devices that take part in a collective together, one row for each set of them."""
    mesh = hlo.part.axes if hlo.part is not None else ()
    place = {name: i for i, (name, _) in enumerate(mesh)}
    for name in names:
        if name not in place:
            raise UnboundAxisError(describe_unbound(op, name, mesh))
    sizes = [size for _, size in mesh]
    ids = np.arange(math.prod(sizes)).reshape(sizes)
    along = [place[name] for name in names]
    others = [i for i in range(len(mesh)) if i not in along]
    return ids.transpose(*others, *along).reshape(-1, math.prod(sizes[i] for i in along))


def i64_matrix(rows: Sequence[Sequence[int]]) -> str:
    """A matrix attribute."""
    listed = [[int(i) for i in row] for row in rows]
    return f"dense<{listed}> : tensor<{len(listed)}x{len(listed[0])}xi64>"


def replica_groups(hlo: Any, op: str, names: Sequence[Name], groups: Groups | None) -> str:
    """The devices that take part together, as an attribute; short rows end in -1."""
    rows = device_rows(hlo, op, names)
    if groups is None:
        return i64_matrix(rows)
    longest = max(map(len, groups))
    parts = [[*row[list(g)], *[-1] * (longest - len(g))] for row in rows for g in groups]
    return i64_matrix(parts)


def all_reduce(hlo: Any, x: Any, groups: str, combine: Primitive) -> list:
    """Write the reduction of `x` over groups of devices."""
    cell = x.aval.update(shape=())
    return hlo.op(
        "stablehlo.all_reduce",
        [x],
        [x.aval],
        [hlo.block([cell, cell], lambda a, b: combine.lower(hlo, a, b))],
        channel_handle=CHANNEL,
        replica_groups=groups,
        use_global_device_ids="unit",
    )


def gather_devices(
    hlo: Any, x: Any, groups: str, count: int, dim: int = 0, tiled: bool = False
) -> list:
    """Write what brings the operands of `count` devices together, along `dim`."""
    if not tiled:
        shape = x.aval.shape
        one = x.aval.update(shape=(*shape[:dim], 1, *shape[dim:]))
        (x,) = hlo.op("stablehlo.reshape", [x], [one])
    shape = list(x.aval.shape)
    shape[dim] *= count
    return hlo.op(
        "stablehlo.all_gather", [x], [x.aval.update(shape=tuple(shape))],
        all_gather_dim=f"{dim} : i64", channel_handle=CHANNEL, replica_groups=groups,
        use_global_device_ids="unit",
    )  # fmt: skip


def write_for_device(hlo: Any, write: Callable[[Any], Any]) -> Any:
    """Return the int32 that `write` computes from the number of the device.

    It is the same along the mesh axes that the compiler splits over. A program has a device number
    only if there are no such axes, so the value is written out for each of these devices.
    """

    def number() -> Any:
        (device,) = hlo.op("stablehlo.partition_id", [], [ShapedArray((), U32)])
        return write(device)

    if not hlo.part.automatic:
        return number()
    return write_alone(hlo, [], ShapedArray((), INT), number)


def write_alone(hlo: Any, xs: Sequence[Any], out: ShapedArray, write: Callable) -> Any:
    """Write what each device makes by itself, also along axes that the compiler splits over.

    Within a program for one device along other axes. `write` gets all of each value in `xs`, and
    its result, of type `out`, is the same on all of these devices.
    """
    part = hlo.part
    whole = lambda ndim: f"<{part.symbol}, [{', '.join(['{}'] * ndim)}]>"

    def body() -> None:
        ys = [hlo.value(x.aval) for x in xs]
        if ys:
            hlo.lines.append(f"^bb0({', '.join(f'{y.name}: {y.aval.hlo}' for y in ys)}):")
        hlo.part = part._replace(automatic=())
        hlo.op("sdy.return", [write(*ys)], [])
        hlo.part = part

    names = ", ".join(f'"{n}"' for n in part.automatic)
    (made,) = hlo.op(
        "sdy.manual_computation", xs, [out], [body],
        in_shardings=f"#sdy.sharding_per_value<[{', '.join([whole(x.aval.ndim) for x in xs])}]>",
        out_shardings=f"#sdy.sharding_per_value<[{whole(out.ndim)}]>",
        manual_axes=f"#sdy<manual_axes{{{names}}}>",
    )  # fmt: skip
    return made


def call_host(
    hlo: Any,
    prim: Any,
    function: Callable,
    operands: Sequence[Any],
    out_avals: Sequence = (),
    partitioned: bool = False,
) -> list:
    """Write a call of a Python function for the primitive `prim`; see `Builder.host_call`.

    Where the compiler splits over some axes, the first device along these makes it. A call that is
    `partitioned` is made by each device, with its parts of the operands.
    """
    part, op, effect = hlo.part, prim.name, prim.effect
    if partitioned and hlo.devices and part is None and not effect.ordered:
        return call_on_parts(hlo, function, operands)
    if effect is None or part is None or not part.automatic:
        return hlo.host_call(function, operands, out_avals, effect)
    if out_avals:
        raise NotImplementedError(
            f"{op}: must have no results within a shard_map over some axes of a mesh alone; got "
            f"results where the compiler splits over {name_text(part.automatic)}. Hint: shard_map "
            "over all axes, or pure_callback."
        )

    def call(token: Any, *values: Any) -> Any:
        hlo.token = token
        (device,) = hlo.op("stablehlo.partition_id", [], [ShapedArray((), U32)])
        places = [index_along(hlo, op, n, device) for n in part.automatic]
        total = functools.reduce(lambda a, b: a + b, places).value
        first = hlo.compare("EQ", total, hlo.constant(0, total.aval))
        make = lambda: hlo.host_call(function, values, [], effect)
        branch = Expr(hlo, first).convert(INT).value
        hlo.case(branch, [list, make], [], ordered=True)
        return hlo.token

    hlo.token = write_alone(hlo, [hlo.token, *operands], TOKEN, call)
    return []


def call_on_parts(hlo: Any, function: Callable, operands: Sequence[Any]) -> list:
    """Write a call that each device makes with its parts of the operands.

    The partitioner of XLA knows it by its name, and asks for layouts and no results.
    """

    def call(*args: Any) -> None:
        function(*args)

    hlo.host_calls.append(call)
    operands = [hlo.token, *operands]
    orders = [[*range(v.aval.ndim)[::-1]] for v in operands]
    texts = [f"dense<{order or ''}> : tensor<{len(order)}xindex>" for order in orders]
    return hlo.custom_call(
        hlo.host_target("partitioned_"),
        operands,
        [],
        f"{{index = {len(hlo.host_calls) - 1} : ui64}}",
        {"sdy.sharding": hlo.on_host([TOKEN])},
        has_side_effect="true",
        operand_layouts=f"[{', '.join(texts)}]",
        result_layouts="[]",
    )


def index_along(hlo: Any, op: str, name: Name, device: Any) -> Expr:
    """Return the place of a device along an axis, of its number."""
    rows = device_rows(hlo, op, (name,))
    stride = int(rows[0, 1] - rows[0, 0]) if rows.shape[1] > 1 else 1
    return (Expr(hlo, device) / stride).apply("remainder", rows.shape[1]).convert(INT)


def own_index(hlo: Any, rows: np.ndarray) -> Any:
    """The place of a device in its row of devices that take part together."""
    place = np.zeros(rows.size, INT)
    place[rows] = np.arange(rows.shape[1], dtype=INT)
    write = lambda device: look_up(hlo, place, Expr(hlo, device)).reshape(()).value
    return write_for_device(hlo, write)


def look_up(hlo: Any, table: np.ndarray, at: Expr) -> Expr:
    """Entry `at` of a vector of numbers, as a vector of one."""
    return Expr(hlo, hlo.constant(table, ShapedArray(table.shape, INT))).slice_at([at], (1,))


def fetch_copies(hlo: Any, x: Any, rows: np.ndarray, groups: Groups | None, nothing: Any) -> Any:
    """The operands of all devices of a row, in front; with groups, `nothing` for other groups'."""
    count = rows.shape[1]
    (y,) = gather_devices(hlo, x, i64_matrix(rows), count)
    if groups is None:
        return y
    place = {i: k for k, g in enumerate(groups) for i in g}
    listed = np.array([place[i] for i in range(count)], INT)
    mine = look_up(hlo, listed, Expr(hlo, own_index(hlo, rows))).broadcast(y.aval.shape, [0])
    table = Expr(hlo, hlo.constant(listed, ShapedArray((count,), INT)))
    here = table.broadcast(y.aval.shape, [0]).compare("EQ", mine)
    return here.select(Expr(hlo, y), nothing).value
