"""Values passed between processes, and barriers for all processes.

Every process must call the functions of this module, in the same order. weft.distributed joins
processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.api.arrays import make_array_from_process_local_data, make_array_from_single_device_arrays
from weft.api.devices import devices, process_count, process_index
from weft.api.jit import jit
from weft.core.aval import typeof
from weft.errors import ProcessFailureError
from weft.lax import reduce_sum
from weft.mesh.mesh import Mesh
from weft.mesh.sharding import NamedSharding
from weft.mesh.spec import PartitionSpec
from weft.parallel.distributed import reached_sync_point
from weft.pytrees import broadcast_prefix, flatten, flatten_with_path, keystr, unflatten
from weft.util import list_public, memoize
from weft.xla.array import ArrayImpl, host_view

__all__ = [
    "ProcessFailureError", "assert_equal", "broadcast_one_to_all",
    "global_array_to_host_local_array", "global_array_to_host_local_array_impl",
    "gtl_abstract_eval", "host_local_array_to_global_array",
    "host_local_array_to_global_array_impl", "ltg_abstract_eval", "ltg_batcher",
    "process_allgather", "reached_preemption_sync_point", "sync_global_devices",
]  # fmt: skip
__dir__ = list_public(__name__)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Return the values of all processes as NumPy arrays, in every process.

    It is for results that each process has computed for itself, such as metrics of its part of the
    data. The values must have the same structure, shapes and dtypes in all processes.

    Args:
      in_tree: a pytree of arrays or numbers. An array may be stored over the devices of several
        processes. Its complete content is then the result, which needs `tiled=True`.
      tiled: if True, the arrays of the processes are concatenated along their first axis, and
        scalars become a vector. If False, the default, they are stacked along a new first axis.

    Returns:
      A pytree of NumPy arrays with the structure of `in_tree`. Arrays of shape (n, ...) become
      (processes, n, ...), or (processes * n, ...) if `tiled`.

    Raises:
      ValueError: an array is stored over several processes, and `tiled` is False.
      DtypeError: a leaf is not an array or a number.

    >>> process_allgather(np.arange(3))
    array([[0, 1, 2]], dtype=int32)
    >>> process_allgather(np.arange(3), tiled=True)
    array([0, 1, 2], dtype=int32)
    """
    leaves, tree = flatten(in_tree)
    over_many = [type(x) is ArrayImpl and not x.is_fully_addressable for x in leaves]
    if any(over_many) and not tiled:
        x = leaves[over_many.index(True)]
        raise ValueError(
            f"process_allgather: an array over several processes must be gathered with tiled=True; "
            f"got {x.aval}. Hint: process_allgather(x, tiled=True)."
        )
    out = [gather_whole(x) if many else None for x, many in zip(leaves, over_many, strict=True)]
    local = [as_host(x) for x, many in zip(leaves, over_many, strict=True) if not many]
    rows = iter(gather_arrays(local))
    for i, many in enumerate(over_many):
        if not many:
            stacked = next(rows)
            join = tiled and stacked.ndim > 1
            out[i] = stacked.reshape(-1, *stacked.shape[2:]) if join else stacked
    return unflatten(tree, out)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Return the values of one process as NumPy arrays, in every process.

    It is for values that only one process can decide, such as a random seed or the number of a run.

    Args:
      in_tree: a pytree of arrays or numbers, of the same structure, shapes and dtypes in all
        processes. Only the values of the source are used.
      is_source: True in the one process that is the source, and False in the others. None, the
        default, makes process 0 the source.

    Returns:
      A pytree of NumPy arrays with the structure, shapes and dtypes of `in_tree`.

    >>> broadcast_one_to_all({"seed": 7})
    {'seed': array(7, dtype=int32)}
    """
    leaves, tree = flatten(in_tree)
    source = process_index() == 0 if is_source is None else is_source
    host = [as_host(x) for x in leaves]
    row = as_bytes(host)
    sent = combine_rows(row if source else np.zeros_like(row), add_rows)
    return unflatten(tree, from_bytes(sent, host))


def sync_global_devices(name: str) -> None:
    """Wait until every process has called this function with the same name.

    It is a barrier, for example before a process reads a file that another process writes.

    Args:
      name: a text that tells this barrier from others. The first 256 bytes count.

    Raises:
      AssertionError: the processes wait under different names.

    >>> sync_global_devices("checkpoint written")
    """
    said = name.encode()[:256]
    row = np.zeros(260, np.uint8)
    row[: len(said)] = np.frombuffer(said, np.uint8)
    row[256:] = np.frombuffer(np.int32(len(said)).tobytes(), np.uint8)
    names = [
        bytes(r[: int(r[256:].copy().view(np.int32)[0])]).decode()
        for r in combine_rows(row, keep_rows)
    ]
    other = next((i for i, n in enumerate(names) if n != names[process_index()]), None)
    if other is not None:
        raise AssertionError(
            f"sync_global_devices: name must be the same in every process; got {name!r} in "
            f"process {process_index()}, {names[other]!r} in process {other}."
        )


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise an error, in every process, unless all processes have the same values.

    NaNs at the same position count as equal.

    Args:
      in_tree: a pytree of arrays or numbers, of the same structure, shapes and dtypes in all
        processes.
      fail_message: a text that the message of the error begins with. The default is an empty text.

    Raises:
      AssertionError: a process has other values than process 0.

    >>> assert_equal({"steps": 100}, "the number of steps differs")
    """
    named = flatten_with_path(in_tree)[0]
    every = gather_arrays([as_host(x) for _, x in named])
    for (path, _), rows in zip(named, every, strict=True):
        for rank, row in enumerate(rows):
            if not np.array_equal(row, rows[0], equal_nan=row.dtype.kind in "fc"):
                raise AssertionError(
                    f"{fail_message + ': ' if fail_message else ''}assert_equal: every process "
                    f"must have the values of process 0; got {row} in process {rank}, {rows[0]} in "
                    f"process 0, at in_tree{keystr(path)}."
                )


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Make arrays over a mesh of all processes' devices from the parts of each process.

    It is for data that every process has loaded for its own devices, such as its part of a batch.
    The inverse is `global_array_to_host_local_array`.

    Args:
      local_inputs: a pytree of arrays: the part of this process. An array that is stored over
        several processes already is returned unchanged.
      global_mesh: a mesh of the devices of all processes.
      pspecs: the shardings of the complete arrays: a `PartitionSpec`, or a pytree prefix of them.
        None splits no axis.

    Returns:
      A pytree with the structure of `local_inputs`. Each array has a `NamedSharding` over
      `global_mesh`. An axis that is split over processes has the sum of the sizes of the parts.

    Raises:
      PytreeError: `pspecs` is not a prefix of `local_inputs`.

    >>> mesh = Mesh(devices(), ("x",))
    >>> host_local_array_to_global_array(np.ones(2), mesh, PartitionSpec("x"))
    Array([1., 1.], dtype=float32)
    """
    leaves, tree = flatten(local_inputs)
    op = "host_local_array_to_global_array"
    out = []
    for x, spec in zip(leaves, match_specs(op, pspecs, local_inputs), strict=True):
        whole = type(x) is ArrayImpl and not x.is_fully_addressable
        sharding = NamedSharding(global_mesh, spec)
        out.append(x if whole else make_array_from_process_local_data(sharding, as_host(x)))
    return unflatten(tree, out)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Return the parts on this process's devices of arrays over a mesh of all devices.

    It is the inverse of `host_local_array_to_global_array`.

    Args:
      global_inputs: a pytree of arrays. An array with another sharding is moved to the sharding of
        its spec first.
      global_mesh: a mesh of the devices of all processes.
      pspecs: the shardings of the complete arrays: a `PartitionSpec`, or a pytree prefix of them.
        None splits no axis.

    Returns:
      A pytree with the structure of `global_inputs`. Each array has a `NamedSharding` over the
      devices of this process, `global_mesh.local_mesh`. An axis that is split over processes is
      shorter than in the complete array.

    Raises:
      PytreeError: `pspecs` is not a prefix of `global_inputs`.

    >>> mesh = Mesh(devices(), ("x",))
    >>> global_array_to_host_local_array(np.ones(2), mesh, PartitionSpec("x"))
    Array([1., 1.], dtype=float32)
    """
    leaves, tree = flatten(global_inputs)
    op = "global_array_to_host_local_array"
    out = []
    for x, spec in zip(leaves, match_specs(op, pspecs, global_inputs), strict=True):
        if type(x) is ArrayImpl and x.is_fully_addressable and x.sharding.num_devices == 1:
            x = as_host(x)
        sharding = NamedSharding(global_mesh, spec)
        whole = lay_out(sharding)(x)
        local = NamedSharding(global_mesh.local_mesh, spec)
        held = {shard.device: shard.data for shard in whole.addressable_shards}
        counts = local._tiles(whole.ndim)[0]
        shape = [n * k for n, k in zip(sharding.shard_shape(whole.shape), counts, strict=True)]
        parts = [held[d] for d in local._device_assignment]
        out.append(make_array_from_single_device_arrays(tuple(shape), local, parts))
    return unflatten(tree, out)


def host_local_array_to_global_array_impl(arr: Any, *, global_mesh: Mesh, pspec: Any) -> Any:
    """Make one array over a mesh of all processes' devices from the parts of each process.

    It is `host_local_array_to_global_array` with its arguments by keyword.

    Args:
      arr: the part of this process, an array.
      global_mesh: a mesh of the devices of all processes.
      pspec: the sharding of the complete array, a `PartitionSpec`. None splits no axis.

    Returns:
      The complete array, with a `NamedSharding` over `global_mesh`.

    >>> mesh, spec = Mesh(devices(), ("x",)), PartitionSpec("x")
    >>> host_local_array_to_global_array_impl(np.ones(2), global_mesh=mesh, pspec=spec)
    Array([1., 1.], dtype=float32)
    """
    return host_local_array_to_global_array(arr, global_mesh, pspec)


def global_array_to_host_local_array_impl(arr: Any, *, global_mesh: Mesh, pspec: Any) -> Any:
    """Return the part on this process's devices of one array over a mesh of all devices.

    It is `global_array_to_host_local_array` with its arguments by keyword.

    Args:
      arr: the complete array.
      global_mesh: a mesh of the devices of all processes.
      pspec: the sharding of the complete array, a `PartitionSpec`. None splits no axis.

    Returns:
      An array with a `NamedSharding` over the devices of this process.

    >>> mesh, spec = Mesh(devices(), ("x",)), PartitionSpec("x")
    >>> global_array_to_host_local_array_impl(np.ones(2), global_mesh=mesh, pspec=spec)
    Array([1., 1.], dtype=float32)
    """
    return global_array_to_host_local_array(arr, global_mesh, pspec)


def ltg_abstract_eval(arr: Any, *, global_mesh: Mesh, pspec: Any) -> Any:
    """Return the type of a complete array, from the type of the part of one process.

    Args:
      arr: the type of the part of this process, a `ShapedArray`, as from `weft.typeof`.
      global_mesh: a mesh of the devices of all processes.
      pspec: the sharding of the complete array, a `PartitionSpec`. None splits no axis.

    Returns:
      A `ShapedArray`. The sizes of axes that are split over processes are larger than in `arr`.

    >>> mesh = Mesh(devices(), ("x",))
    >>> print(ltg_abstract_eval(typeof(jnp.ones(2)), global_mesh=mesh, pspec=None))
    f32[2]
    """
    return scale_aval(arr, global_mesh, pspec, lambda n, all_, own: n * all_ // own)


def gtl_abstract_eval(arr: Any, *, global_mesh: Mesh, pspec: Any) -> Any:
    """Return the type of the part of one process, from the type of the complete array.

    Args:
      arr: the type of the complete array, a `ShapedArray`, as from `weft.typeof`.
      global_mesh: a mesh of the devices of all processes.
      pspec: the sharding of the complete array, a `PartitionSpec`. None splits no axis.

    Returns:
      A `ShapedArray`. The sizes of axes that are split over processes are smaller than in `arr`.

    >>> mesh, spec = Mesh(devices(), ("x",)), PartitionSpec("x")
    >>> print(gtl_abstract_eval(typeof(jnp.ones(2)), global_mesh=mesh, pspec=spec))
    f32[2]
    """
    return scale_aval(arr, global_mesh, pspec, lambda n, all_, own: n * own // all_)


def ltg_batcher(
    insert_axis: Any, axis_data: Any, vals_in: Sequence, dims_in: Sequence, global_mesh: Mesh,
    pspec: Any,
) -> tuple[Any, int]:  # fmt: skip
    """Make an array over all processes' devices from parts that have a mapped axis.

    It is the batching rule of `host_local_array_to_global_array`: the mapped axis is not split.

    Args:
      insert_axis: ignored; an argument of JAX's rule.
      axis_data: ignored; an argument of JAX's rule.
      vals_in: a sequence that holds the part of this process, an array.
      dims_in: a sequence that holds the number of the mapped axis, an int.
      global_mesh: a mesh of the devices of all processes.
      pspec: the sharding of the complete array without the mapped axis, a `PartitionSpec`. None
        splits no axis.

    Returns:
      The complete array, and the number of its mapped axis.

    >>> mesh = Mesh(devices(), ("x",))
    >>> y, axis = ltg_batcher(None, None, [np.ones((3, 2))], [0], mesh, PartitionSpec("x"))
    >>> y.shape, axis, y.sharding.spec
    ((3, 2), 0, P(None, 'x'))
    """
    (x,), (d,) = vals_in, dims_in
    entries = list(pspec or ())
    entries += [None] * (d - len(entries))
    spec = PartitionSpec(*entries[:d], None, *entries[d:])
    return host_local_array_to_global_array(x, global_mesh, spec), d


def scale_aval(aval: Any, mesh: Mesh, pspec: Any, scale: Callable) -> Any:
    """A type with each size scaled: how often it is split over all devices, and over our own."""
    spec = PartitionSpec() if pspec is None else pspec
    meshes = (mesh, mesh.local_mesh)
    counts = [NamedSharding(m, spec)._tiles(aval.ndim)[0] for m in meshes]
    return aval.update(shape=tuple(map(scale, aval.shape, *counts)))


def reached_preemption_sync_point(step_id: int) -> bool:
    """Return True if a process is about to be stopped and all processes have come to the same step.

    Call it in every step of a training loop. Where it returns True, save the state of the program.
    It always returns False if no scheduler sends SIGTERM to processes before it stops them, or if
    the processes have not been joined by `weft.distributed`.

    Args:
      step_id: the number of the step, an int, the same in all processes.

    Returns:
      A bool, the same in all processes at the same step.

    >>> reached_preemption_sync_point(1)
    False
    """
    return reached_sync_point(step_id)


# --- helpers --------------------------------------------------------------------------------


def match_specs(op: str, pspecs: Any, tree: Any) -> list[PartitionSpec]:
    """Return the spec of each leaf; None leaves its axes unsplit."""
    specs = broadcast_prefix(
        pspecs,
        tree,
        is_leaf=lambda s: s is None or isinstance(s, PartitionSpec),
        op=op,
        names=("pspecs", "the arrays"),
    )
    return [PartitionSpec() if s is None else s for s in specs]


def as_host(x: Any) -> np.ndarray:
    """A value of this process as a NumPy array of the dtype that weft has for it."""
    if type(x) is ArrayImpl:
        return host_view(x)
    return np.asarray(x, typeof(x, "multihost_utils").dtype)


def as_bytes(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate arrays as bytes, so that any dtype is transferred unchanged."""
    every = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in arrays]
    return np.concatenate([np.zeros(0, np.uint8), *every])


def from_bytes(row: np.ndarray, like: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Split the bytes that `as_bytes` joined into arrays of these shapes and dtypes."""
    ends = np.cumsum([x.nbytes for x in like])
    cut = np.split(row, ends[:-1]) if like else []
    return [c.copy().view(x.dtype).reshape(x.shape) for c, x in zip(cut, like, strict=True)]


def gather_arrays(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Every process's arrays, stacked."""
    rows = [from_bytes(row, arrays) for row in combine_rows(as_bytes(arrays), keep_rows)]
    return [np.stack(column) for column in zip(*rows, strict=True)] if arrays else []


def gather_whole(x: Any) -> np.ndarray:
    """The whole content of an array over the devices of several processes."""
    return np.asarray(host_view(lay_out(x.sharding.whole)(x)))


def combine_rows(row: np.ndarray, combined: Callable) -> np.ndarray:
    """`combined` applied to the rows of all processes, in each process."""
    if process_count() == 1:
        return np.asarray(combined(row[None]))
    rows = make_array_from_process_local_data(
        NamedSharding(make_process_mesh(), PartitionSpec("processes")), row[None]
    )
    return np.array(host_view(compile_combination(combined)(rows)))


def keep_rows(rows: Any) -> Any:
    """The rows themselves."""
    return rows


def add_rows(rows: Any) -> Any:
    """Return the sum of the rows. All rows except one are zero."""
    return reduce_sum(rows, (0,))


# These live as long as the processes are joined: a jit for each way to combine and each sharding,
# made once so that the program is compiled once.
@memoize
def make_process_mesh() -> Mesh:
    """A mesh of the first device of each process, in the order of the processes."""
    first: dict[int, Any] = {}
    for device in devices():
        first.setdefault(device.process_index, device)
    return Mesh(np.array([first[rank] for rank in sorted(first)]), ("processes",))


@memoize
def compile_combination(combined: Callable) -> Callable:
    """A function of the rows of all processes, whose result each has."""
    return jit(combined, out_shardings=NamedSharding(make_process_mesh(), PartitionSpec()))


@memoize
def lay_out(sharding: Any) -> Callable:
    """Return a compiled identity that gives its result the sharding `sharding`."""
    return jit(keep_rows, out_shardings=sharding)
