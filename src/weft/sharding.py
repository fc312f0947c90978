"""Distribute arrays over devices: meshes, specs and shardings; the names of `jax.sharding`.

The objects are parallel/'s; arrays are laid out by `weft.device_put` and `weft.jit`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.api.functions import check_callable
from weft.api.jit import jit
from weft.api.shard_map import meshes_around, reshard
from weft.core.aval import typeof
from weft.mesh.mesh import (
    EMPTY,
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    MeshScope,
    get_abstract_mesh,
    get_mesh,
    retype_axes,
    set_mesh,
    use_abstract_mesh,
    use_mesh,
)
from weft.mesh.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    make_single_device_sharding,
)
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import kind_of_mesh
from weft.parallel.constraint import constrain
from weft.primitives.reshard import reshard_p
from weft.primitives.varying import ManualAxisType
from weft.pytrees import broadcast_prefix, flatten, is_none, leaves, unflatten
from weft.util import list_public

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding",
    "PartitionSpec", "Sharding", "SingleDeviceSharding", "auto_axes", "explicit_axes",
    "get_abstract_mesh", "get_mesh", "make_single_device_sharding", "reshard", "set_mesh",
    "use_abstract_mesh", "use_mesh",
]  # fmt: skip
__dir__ = list_public(__name__)


def auto_axes(
    f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None
) -> Callable:
    """Return a function within which the compiler decides how values are split over explicit axes.

    Explicit axes state the split in the types of values. Code that was not written for this, such
    as a library's, runs under `auto_axes`.

    Args:
      f: a function of pytrees of arrays. Without it, `auto_axes(...)` is a decorator.
      axes: the name of an explicit axis of the mesh, or several. None, the default, means all.
      out_sharding: the shardings of the results over these axes, a pytree prefix of specs or
        shardings. It may also be passed at the call, as a keyword.

    Returns:
      A function like `f`.

    >>> mesh = weft.make_mesh((1,), ("x",))
    >>> over_x = NamedSharding(mesh, PartitionSpec("x"))
    >>> weft.jit(auto_axes(jnp.sin, out_sharding=over_x))(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    return run_retyped("auto_axes", f, axes, "out_sharding", out_sharding, AxisType.Auto)


def explicit_axes(
    f: Callable | None = None, /, *, axes: Any = None, in_sharding: Any = None
) -> Callable:
    """Return a function within which types state how values are split over automatic axes.

    Args:
      f: a function of pytrees of arrays. Without it, `explicit_axes(...)` is a decorator.
      axes: the name of an automatic axis of the mesh, or several. None, the default, means all.
      in_sharding: the shardings of the arguments, a pytree prefix of their tuple, of specs or
        shardings. It may also be passed at the call, as a keyword.

    Returns:
      A function like `f`. The compiler decides again how its results are split over these axes.

    >>> mesh = weft.make_mesh((1,), ("x",), AxisType.Auto)
    >>> with weft.set_mesh(mesh):
    ...     weft.jit(explicit_axes(jnp.sin, in_sharding=PartitionSpec("x")))(jnp.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    return run_retyped("explicit_axes", f, axes, "in_sharding", in_sharding, AxisType.Explicit)


def run_retyped(
    op: str, f: Callable | None, axes: Any, what: str, sharding: Any, kind: AxisType
) -> Any:
    """A function that runs `f` with axes of the mesh of another type; see `auto_axes`."""
    if f is None:
        return lambda f: run_retyped(op, f, axes, what, sharding, kind)
    check_callable(op, f, wraps=True)
    given, names = sharding, (axes,) if isinstance(axes, str) else axes

    @functools.wraps(f)
    def retyped(*args: Any, **kwargs: Any) -> Any:
        sharding = kwargs.pop(what, given)
        run = functools.partial(run_between, op, f, names, sharding, kind)
        return jit(run, inline=True)(*args, **kwargs)

    return retyped


def run_between(
    op: str, f: Callable, names: Any, sharding: Any, kind: AxisType, *args: Any, **kwargs: Any
) -> Any:
    """The results of `f` with axes of the mesh of type `kind`, and back to those they are of."""
    flat = leaves((sharding, args))
    outer: Any = next((x.mesh for x in flat if isinstance(x, NamedSharding)), None)
    outer = outer or next(meshes_around(args), EMPTY)
    if outer.empty:
        if sharding is None:
            return f(*args, **kwargs)
        raise ValueError(f"{op}: needs a mesh; got none in scope. Hint: weft.set_mesh(mesh).")
    names = outer.axis_names if names is None else names
    if sharding is None and (kind is AxisType.Explicit or {*names} & {*outer.explicit_axes}):
        what = "in_sharding" if kind is AxisType.Explicit else "out_sharding"
        raise TypeError(f"{op}: needs {what}; got none. Hint: {op}(f, {what}=P('x')).")
    inner = retype_axes(outer, names, kind)
    if kind is AxisType.Explicit:  # programs do not store this mesh, only its kind
        inner = kind_of_mesh(inner)

    def move(what: str, tree: Any, mesh: Any, src: Any, prefix: Any = None) -> Any:
        flat, treedef = flatten(tree)
        specs: Any = [None] * len(flat)
        if prefix is not None:
            specs = broadcast_prefix(prefix, tree, is_none, op=op, names=(what, "the values"))
        moved = []
        for x, s in zip(flat, specs, strict=True):
            lies = typeof(x).sharded
            if s is None and lies is None:
                moved.append(x)
                continue
            if s is None:
                kept = [tuple(n for n in e if n in mesh.explicit_axes) for e in lies.entries]
                s = PartitionSpec(*kept)
            to = NamedSharding(mesh, getattr(s, "spec", s))
            if not (mesh.explicit_axes or src.explicit_axes):
                moved.append(constrain(x, to))
                continue
            moved += reshard_p.apply(x, dst_sharding=to, src_mesh=src)
        return unflatten(treedef, moved)

    going = sharding if kind is AxisType.Explicit else None
    args, kwargs = move("in_sharding", (args, kwargs), inner, outer, going and (going, None))
    with MeshScope(inner):
        out = f(*args, **kwargs)
    return move("out_sharding", out, outer, inner, None if going else sharding)
