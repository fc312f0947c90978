"""`sharding_constraint`: prescribes the sharding of a value inside a program.

api/shard_map.py handles pytrees and specs without a mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.aval import typeof
from weft.core.facts import Elements
from weft.core.primitive import Axis, References
from weft.core.ref import is_ref
from weft.core.trace import Tracer, current
from weft.mesh.sharding import (
    NamedSharding,
    SingleDeviceSharding,
    check_divisible,
    is_abstract,
    rank_error,
)
from weft.mesh.spec import UNCONSTRAINED, PartitionSpec, insert_entry
from weft.mesh.typed import entries_of
from weft.primitives.families import LinearPrimitive
from weft.primitives.layout import copy
from weft.primitives.reshard import hide_layout, reshard_p
from weft.xla.array import put

OP = "with_sharding_constraint"  # what users call


class ShardingConstraint(LinearPrimitive):
    """out = x, with the sharding `sharding`; parts of a value within a program may be uneven.

    Source: Shardy, sharding_constraint.
    """

    name = "sharding_constraint"
    elements = Elements.PLACED

    def abstract_eval(self, x, *, sharding, **params):
        if len(getattr(sharding, "spec", ())) > x.ndim:
            raise rank_error(OP, sharding.spec, x.ndim, f"the operand {x}")
        return [x]

    def impl(self, x, *, sharding, **params):
        check_divisible(OP, sharding, x.shape, f"the operand {typeof(x)}")
        if getattr(x, "is_fully_addressable", True):
            if UNCONSTRAINED in getattr(sharding, "spec", ()):  # whole: nothing else is planned
                entries = [None if e is UNCONSTRAINED else e for e in sharding.spec]
                sharding = sharding.with_spec(PartitionSpec(*entries))
            return [put(x, sharding, committed=True)]
        params = {"sharding": sharding}
        return current.trace.run_compiled(sharding_constraint_p, [x], params)  # between processes

    def refers(self, params):
        sharding = params["sharding"]
        return References(places=lambda: () if is_abstract(sharding) else (sharding.whole,))

    def lower(self, hlo, x, *, sharding, **params):
        if not isinstance(sharding, NamedSharding):
            return [x]
        text = sharding.sdy(x.aval.ndim, hlo.named(sharding.mesh))
        return hlo.op("sdy.sharding_constraint", [x], [x.aval], sharding=f"#sdy.sharding{text}")

    def transpose(self, cts, x, *, sharding):
        return self.apply(cts[0], sharding=sharding)

    def batch(self, axis, args, dims, *, sharding):
        return self.apply(*args, sharding=place_mapped(sharding, axis, *dims)), list(dims)


def place_mapped(sharding: Any, axis: Axis, dim: int) -> Any:
    """Return the sharding of a value that is mapped along its axis `dim`."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    entry = UNCONSTRAINED if axis.spmd is None else axis.spmd  # left to the compiler
    return sharding.with_spec(insert_entry(sharding.spec, dim, entry))


sharding_constraint_p = ShardingConstraint()


class DevicePut(ShardingConstraint):
    """out = x, moved to `sharding`, which may be a single device other than x's.

    `src` is the sharding of x, which cotangents get; None if it is not known. It is only for
    operations that run eagerly, since a compiled program runs where its operands are.
    """

    name = "device_put"

    def refers(self, params):
        one = isinstance(params["sharding"], SingleDeviceSharding)
        return References() if one else super().refers(params)

    def transpose(self, cts, x, *, sharding, src):
        return self.apply(cts[0], sharding=src, src=sharding) if src else list(cts)

    def batch(self, axis, args, dims, *, sharding, src):
        sharding = place_mapped(sharding, axis, *dims)
        return self.apply(*args, sharding=sharding, src=src), list(dims)


device_put_p = DevicePut()


def find_source(x: Any) -> Any:
    """Return the sharding of the array that a traced value is of, where there is one already.

    Of a mapped value, which has fewer axes, it is known only on one device.
    """
    mapped = False
    while isinstance(x, Tracer) and hasattr(x, "inner"):
        mapped = mapped or hasattr(x, "dim")
        x = x.inner
    source = getattr(x, "_sharding", None)
    return source if not mapped or isinstance(source, SingleDeviceSharding) else None


def put_traced(x: Any, sharding: Any) -> Any:
    """A traced value with a sharding: moved to it if it is computed at once."""
    named = isinstance(sharding, NamedSharding)
    source = None if named and sharding.mesh.explicit_axes else find_source(x)
    if source is not None:
        return device_put_p.apply(x, sharding=sharding, src=source)[0]
    return constrain(x, sharding) if named else copy(x)


def constrain_values(xs: list, shardings: Sequence[Any]) -> list:
    """Values with these shardings; None leaves a value unchanged, and () all of them.

    References are where they are.
    """
    if not shardings:
        return xs
    return [
        x if s is None or is_ref(x) else constrain(x, s) for x, s in zip(xs, shardings, strict=True)
    ]


def constrain(x: Any, sharding: Any) -> Any:
    """A value with a sharding: over explicit axes of a mesh, of a type that says so."""
    if not (isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes):
        x = hide_layout(x) if isinstance(x, Tracer) else x  # it is over explicit axes of a mesh
        return sharding_constraint_p.apply(x, sharding=sharding)[0]
    if UNCONSTRAINED in sharding.spec:  # along an explicit axis, unchanged
        aval = typeof(x)
        have = entries_of(aval)
        entries = [
            have[i] if e is UNCONSTRAINED and i < aval.ndim else e
            for i, e in enumerate(sharding.spec)
        ]
        sharding = sharding.with_spec(sharding.spec.update(partitions=entries))
    return reshard_p.apply(x, dst_sharding=sharding)[0]
