"""`pmap`: the public function, on pytrees; the primitive is parallel/pmap.py's."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.api.arguments import Marked, fix_static, mark_arguments
from weft.api.arrays import make_array_from_process_local_data, make_array_from_single_device_arrays
from weft.api.devices import local_devices, process_count
from weft.api.functions import FlatFun, argument_origins, check_callable
from weft.api.jit import JitFunction
from weft.api.programs import StagedProgram
from weft.api.shape_struct import ShapeDtypeStruct
from weft.api.vmap import MappedAxes
from weft.core.aval import typeof
from weft.core.source import boundary
from weft.core.stage import close_jaxpr
from weft.core.trace import is_eager
from weft.errors import check_hashable
from weft.mesh.mesh import Mesh
from weft.mesh.sharding import NamedSharding
from weft.mesh.spec import PartitionSpec
from weft.parallel.distributed import is_initialized
from weft.parallel.pmap import axis_of, find_mesh, xla_pmap_p
from weft.primitives.families import as_sequence
from weft.primitives.layout import move_to_front
from weft.primitives.slicing import index_in_dim
from weft.pytrees import flatten, unflatten
from weft.run.pipeline import JitSpec
from weft.transforms.batch import in_scope, mapped_aval
from weft.util import fun_name
from weft.watch.leaks import stage_function
from weft.xla.array import ArrayImpl

__all__ = ["pmap"]


def pmap(
    fun: Callable,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """Map a function over an axis of its arguments, with one device for each element.

    It maps as `vmap` does, but the program is compiled for one device per element of the axis, and
    runs on all of these devices. Collectives such as `lax.psum(x, axis_name)` are communication
    between the devices. The results stay on the devices, so that a further call transfers nothing.
    `jit` and `shard_map` are for programs over meshes.

    Where several processes have joined (`weft.distributed`), each calls the function with as many
    elements as it has devices to use, and receives the results of those. Collectives are between
    the devices of all processes.

    Args:
      fun: a function of pytrees of arrays.
      axis_name: a name of the axis, for collectives. The default is no name.
      in_axes: the axis of each argument that is mapped: an int, None for an argument that every
        device has in full, or a tuple with one entry for each argument, each a pytree prefix of it.
        The default is 0.
      out_axes: the position of the mapped axis in the results. None is for a result that is the
        same on all devices. The default is 0.
      static_broadcasted_argnums: the positions of arguments that are Python values, as
        `static_argnums` of `jit`.
      devices: the devices to use. By default the first ones.
      backend: the platform to use. None is the default platform.
      axis_size: the size of the axis, which is needed where no argument is mapped.
      donate_argnums: the positions of arguments whose buffers the results may use.

    Returns:
      A function like `fun`, whose mapped arguments and results have one more axis.

    Raises:
      ValueError: the axis is longer than the number of devices.

    >>> weft.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([4.0]))
    Array([1.], dtype=float32)
    """
    check_callable("pmap", fun, wraps=True)
    check_hashable("pmap", axis_name=axis_name)
    static = mark_arguments(fun, static_broadcasted_argnums, None, "static_broadcasted_argnums")
    donate = mark_arguments(fun, donate_argnums, None, "donate_argnums")
    params = {
        "axis_name": Anonymous() if axis_name is None else axis_name,
        "backend": backend,
        "devices": None if devices is None else as_sequence("pmap", "devices", devices),
        "global_axis_size": None,
        "name": fun_name(fun),
    }
    mapped = MappedFunction(fun, in_axes, out_axes, axis_size, Marked(static.nums), donate, params)
    call = mapped.make_callable()
    if devices is not None or not is_initialized():
        return call
    return functools.wraps(call)(MultiProcessPmap(call, mapped))


class MultiProcessPmap:
    """A pmapped function on the devices of all processes: each passes, and is given, its part."""

    def __init__(self, local: Callable, mapped: MappedFunction):
        self.local = local  # on the devices of this process, under a transformation
        self.mapped = mapped
        self.sizes: dict[int, tuple[Any, Mesh]] = {}  # by how many devices each process gives

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not is_eager():
            return self.local(*args, **kwargs)
        mapped = self.mapped
        _, dynamic, fun, kwargs = fix_static(mapped.fun, mapped.static, args, kwargs)
        mapping = mapped.mapping(fun, len(dynamic))
        leaves, tree, dims, size, _ = mapping.read_arguments(dynamic, kwargs)
        call, mesh = self.sizes.get(size) or self.over(size)
        split = lambda d: PartitionSpec(*[None] * d, mesh.axis_names[0])
        whole = [
            x if d is None else join_processes(x, mesh, split(d)) for x, d in zip(leaves, dims)
        ]
        dynamic, kwargs = unflatten(tree, whole)
        result = fix_static(call, mapped.static, args, {}).fun(*dynamic, **kwargs)
        outs, out_tree = flatten(result)
        wanted = mapping.out_axes_of(out_tree)
        specs = [PartitionSpec() if d is None else split(d % y.ndim) for y, d in zip(outs, wanted)]
        return unflatten(
            out_tree,
            [join_parts(y, NamedSharding(mesh.local_mesh, s)) for y, s in zip(outs, specs)],
        )

    def over(self, size: int) -> tuple[Any, Mesh]:
        """The function for this many devices of each process, and those."""
        mapped = self.mapped
        given: list[Any] = []
        for rank in range(process_count()):
            own = local_devices(rank, mapped.params["backend"])
            if len(own) < size:
                raise ValueError(
                    "pmap: the mapped axis must not be longer than each process has devices; got "
                    f"size {size}, and process {rank} has {len(own)}."
                )
            given += own[:size]
        name = mapped.params["axis_name"]
        mesh = Mesh(given, (name if isinstance(name, str) else "pmap",))
        found = self.sizes[size] = mapped.over(given).make_callable(), mesh
        return found


def join_processes(x: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    """Return the array over all processes that has `x` as the part of this process."""
    sharding, local = NamedSharding(mesh, spec), NamedSharding(mesh.local_mesh, spec)
    if type(x) is ArrayImpl and x.sharding is local:  # what a call has given
        return join_parts(x, sharding)
    return make_array_from_process_local_data(sharding, np.asarray(x))


def join_parts(x: Any, sharding: NamedSharding) -> Any:
    """The array that the parts of `x` on this process's devices are parts of under `sharding`."""
    parts = [shard.data for shard in x.addressable_shards]
    counts, _ = sharding._tiles(x.ndim)
    shape = tuple(n * count for n, count in zip(parts[0].shape, counts, strict=True))
    return make_array_from_single_device_arrays(shape, sharding, parts)


class Anonymous:
    """The name of an axis without a name from the user."""

    _numbers = itertools.count()

    def __init__(self) -> None:
        self.number = next(self._numbers)

    def __repr__(self) -> str:
        return f"<axis {self.number}>"


class JittedMap(JitFunction):
    """A jitted function that binds a primitive of its own where it is traced."""

    def bind_call(self, args: tuple, kwargs: dict) -> Any:
        return self.fun(*args, **kwargs)


@dataclasses.dataclass(eq=False)
class MappedFunction:
    """A function mapped over devices: binding the primitive, and the shardings of its arguments."""

    fun: Callable
    in_axes: Any
    out_axes: Any
    axis_size: int | None
    static: Marked
    donate: Marked
    params: dict  # of the primitive, except for those that depend on the call

    def over(self, devices: Sequence[Any]) -> MappedFunction:
        """The same over these devices, of all processes."""
        size = len(devices)
        params = {**self.params, "devices": tuple(devices), "global_axis_size": size}
        axis_size = None if self.axis_size is None else size
        return dataclasses.replace(self, axis_size=axis_size, params=params)

    def make_callable(self) -> Any:
        """The function as users call it: jitted, each argument on the devices it is mapped to."""
        call, spec = boundary(self.bind, self.fun), JitSpec(self.params["name"])
        return JittedMap(
            call, spec, self.static, self.donate, op="pmap", shardings=self
        ).make_callable()

    def mapping(self, fun: Callable, count: int) -> MappedAxes:
        """The axes of the `count` arguments that are not static."""
        axes = self.in_axes
        if isinstance(axes, list | tuple) and len(axes) > count:
            axes = tuple(a for i, a in enumerate(axes) if i not in self.static.nums)
        return MappedAxes("pmap", fun, axes, self.out_axes, self.axis_size)

    def bind(self, *args: Any, **kwargs: Any) -> Any:
        """The results of a call under the current trace."""
        _, dynamic, fun, kwargs = fix_static(self.fun, self.static, args, kwargs)
        mapping = self.mapping(fun, len(dynamic))
        leaves, in_tree, dims, size, _ = mapping.read_arguments(dynamic, kwargs)
        leaves = [
            x if d is None else move_to_front(x, d) for x, d in zip(leaves, dims, strict=True)
        ]
        avals = [
            typeof(x) if d is None else mapped_aval(typeof(x), 0)
            for x, d in zip(leaves, dims, strict=True)
        ]
        flat = FlatFun(fun, in_tree, "pmap")
        params = {**self.params, "axis_size": size}
        names = functools.partial(argument_origins, fun, in_tree, "pmap")
        with in_scope([axis_of(params)]):
            jaxpr, consts = stage_function(flat, avals, self.params["name"], names)
        mapped = (*[False] * len(consts), *[d is not None for d in dims])
        outs = xla_pmap_p.apply(
            *consts, *leaves, call_jaxpr=close_jaxpr(jaxpr), mapped_invars=mapped, **params
        )
        wanted = mapping.out_axes_of(flat.out_tree)
        outs = [index_in_dim(y, 0, 0, False) if w is None else y for y, w in zip(outs, wanted)]
        out_dims = [None if w is None else 0 for w in wanted]
        return flat.result(mapping.place_results(outs, out_dims, flat.out_tree, size))

    def check_bound(self, leaves: Sequence[Any], shardings: Sequence[Any]) -> None:
        """Nothing: arguments that are bound elsewhere are moved."""

    def type_arguments(self, fun: Any, in_tree: Any, avals: Any) -> Any:
        """Return the types of arguments, which may be on any device."""
        return avals

    def find_shardings(self, program: StagedProgram) -> tuple[tuple, tuple]:
        """Each mapped argument along its axis, the others whole on each device."""
        structs = map(ShapeDtypeStruct.of, program.in_avals)
        args, kwargs = unflatten(program.in_tree, structs)
        dims = self.mapping(program.fun(), len(args)).read_arguments(args, kwargs).dims
        mesh = find_mesh(program.jaxpr)
        split = lambda d: () if d is None else (*[None] * d, mesh.axis_names[0])
        return tuple([NamedSharding(mesh, PartitionSpec(*split(d))) for d in dims]), ()
