"""Functions that say how they are split over devices: `jax.experimental.custom_partitioning`.

A program over a mesh has one operation for a call, whose splitting XLA asks this module for when it
compiles; elsewhere it has what the function computes.
"""

from __future__ import annotations

import functools
import itertools
import re
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from weft.api.bodies import stage_body
from weft.api.functions import as_tuple, avals_of, check_callable
from weft.api.shape_struct import ShapeDtypeStruct
from weft.control.call import Call
from weft.control.jit import jit_p
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Axis
from weft.errors import ShapeError
from weft.mesh.mesh import Mesh
from weft.mesh.sharding import sharding_of_result
from weft.options import config, x64_as
from weft.pytrees import PyTreeDef, flatten, structure, unflatten
from weft.transforms.batch import in_scope
from weft.util import fun_name, list_public
from weft.xla.hlo import Builder, Part
from weft.xla.lower import lower_jaxpr

__all__ = ["custom_partitioning"]
__dir__ = list_public(__name__)

TARGET = "WeftCustomPartitioning"
_calls: dict[str, Callable] = {}  # by the key in the text, what splits a call
_numbers = itertools.count()
_process = uuid.uuid4().hex  # in each key, so that no other process's executable is taken


class CustomPartitioning(Call):
    """The results of a program, which over a mesh `partitioner` splits."""

    name = "custom_partitioning"

    def lower(self, hlo, *args, jaxpr, partitioner):
        mesh = next((m for m in hlo.meshes if isinstance(m, Mesh)), None)
        if mesh is None or hlo.part is not None:  # for one device
            return super().lower(hlo, *args, jaxpr=jaxpr)
        register_partitioner()
        key = f"{_process}-{next(_numbers)}"
        avals = jaxpr.in_avals, jaxpr.out_avals
        x64, platform = config.enable_x64, hlo.platform
        _calls[key] = lambda *shardings: partitioner.split(mesh, platform, avals, x64, *shardings)
        rule = partitioner.rule(mesh, *avals)
        return hlo.op(
            "stablehlo.custom_call",
            args,
            avals[1],
            discardable=None if rule is None else {"sdy.sharding_rule": rule},
            call_target_name=f'"{TARGET}"',
            api_version="2 : i32",
            backend_config=f'"{key}"',
        )

    def rebuild(self, params, jaxpr, arrange=None):
        return jit_p, {"name": params["partitioner"].name, "jaxpr": jaxpr}


custom_partitioning_p = CustomPartitioning()


@functools.cache
def register_partitioner() -> None:
    """Have XLA ask here how a call is split."""

    def partition(
        arg_shapes: Any, arg_shardings: Any, shape: Any, sharding: Any, key: bytes
    ) -> tuple[bytes, list, Any]:
        return _calls[key.decode()](arg_shardings, shape, sharding)

    # Shardy propagates by the rule in the text, and asks for no more
    keep = lambda sharding, *_: sharding
    infer = lambda arg_shapes, arg_shardings, *_: arg_shardings[0]
    _jax.register_custom_call_partitioner(TARGET, keep, partition, infer, True)


class Partitioner:
    """The functions of a user that split one call, and the structures that they take."""

    def __init__(self, call: custom_partitioning, static: Sequence, trees: tuple):
        self.call = call
        self.static = static
        self.in_tree, self.out_tree = trees
        self.name = fun_name(call.fun)

    def rule(self, mesh: Mesh, in_avals: Sequence, out_avals: Sequence) -> str | None:
        """The rule for how shardings go through the call, as text."""
        found = self.call.sharding_rule
        if callable(found):
            of = lambda avals: [ShapeDtypeStruct.of(a) for a in avals]
            found = found(*self.static, mesh, of(in_avals), of(out_avals))
        if found is None:
            return None
        return write_rule(found, in_avals, out_avals, self.call.factors, self.call.factor_sizes)

    def split(
        self, mesh: Mesh, platform: str, avals: tuple, x64: bool, arg_shardings: Sequence,
        shape: Any, sharding: Any,
    ) -> tuple[bytes, list, Any]:  # fmt: skip
        """Return the program of one device, and the shardings of arguments and results for XLA."""
        in_avals, out_avals = avals
        many = len(out_avals) != 1
        found = sharding.tuple_elements() if many else [sharding]
        types = lambda avals, places: [
            ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding_of_result(s, mesh, a.ndim))
            for a, s in zip(avals, places, strict=True)
        ]
        args = unflatten(self.in_tree, types(in_avals, arg_shardings))
        result = unflatten(self.out_tree, types(out_avals, found))
        with x64_as(x64):
            mesh, fun, of_result, of_args = self.call.partition(*self.static, mesh, args, result)
            ins, outs = flatten(tuple(of_args))[0], flatten(of_result)[0]
            parts = [a.update(shape=s.shard_shape(a.shape)) for a, s in zip(in_avals, ins)]
            text = self.write(mesh, platform, fun, parts)
        hlo_ins, hlo_outs = (
            [s._to_xla_hlo_sharding(a.ndim) for a, s in zip(avals, places, strict=True)]
            for avals, places in ((in_avals, ins), (out_avals, outs))
        )
        whole = type(hlo_outs[0]).tuple_sharding(shape, hlo_outs) if many else hlo_outs[0]
        return text.encode(), hlo_ins, whole

    def write(self, mesh: Mesh, platform: str, fun: Callable, parts: list[ShapedArray]) -> str:
        """The module of what one device computes; the axes of the mesh are in scope."""
        with in_scope([Axis(size, name) for name, size in mesh.shape_tuple]):
            jaxpr, consts, *_ = stage_body("custom_partitioning", fun, self.in_tree, parts)
        hlo = Builder(tuple(mesh._device_assignment), platform)
        hlo.part = Part(mesh.shape_tuple, mesh)

        def write(*xs: Any) -> list:
            held = [hlo.constant(np.asarray(c), typeof(c)) for c in consts]
            return lower_jaxpr(hlo, jaxpr, [*held, *xs])

        hlo.function("main", parts, write, "public")
        return hlo.module("part")


class custom_partitioning:
    """A function that defines its own partition over a mesh, with `f.def_partition(...)`.

    It has the derivatives and the batching rule of the wrapped function; the compiler
    splits the derivatives. A call before `def_partition` raises a TypeError.

    Args:
      fun: a function of pytrees of arrays. It must not close over arrays.
      static_argnums: the positions of arguments that are not arrays, an int or a sequence of ints.
        They are passed first to the functions of `def_partition`. The default is the empty tuple.

    >>> @custom_partitioning
    ... def sort_rows(x):
    ...     return jnp.sort(x, axis=1)
    >>> def partition(mesh, arg_shapes, result_shape):
    ...     rows = NamedSharding(mesh, PartitionSpec("x"))
    ...     return mesh, lambda x: jnp.sort(x, axis=1), rows, (rows,)
    >>> sort_rows.def_partition(partition, sharding_rule="i j -> i j",
    ...     need_replication_factors=("j",))
    >>> sort_rows(jnp.array([[2, 1]]))
    Array([[1, 2]], dtype=int32)
    """

    partition: Any = None
    sharding_rule: Any = None

    def __init__(self, fun: Callable, static_argnums: int | Sequence[int] = ()):
        check_callable("custom_partitioning", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.static_argnums = as_tuple(static_argnums)
        self.factors: dict[str, Sequence[str]] = {}
        self.factor_sizes: dict[str, int] = {}

    def def_partition(
        self,
        partition: Callable,
        infer_sharding_from_operands: Callable | None = None,
        propagate_user_sharding: Callable | None = None,
        decode_shardings: bool = True,
        sharding_rule: str | Callable | None = None,
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        """Define the partition of the function.

        Args:
          partition: a function `partition(mesh, arg_shapes, result_shape)`. The types have the
            shardings that XLA suggests. It returns the mesh, the function that each device runs on
            its parts, the sharding of the result, and a tuple of the shardings of the arguments.
            The axes of the mesh are named axes in that function, for collectives.
          sharding_rule: the propagation of shardings, as `"i j, j k -> i k"`: names for the sizes
            of axes, `...` for axes in front, `(j k)` for an axis that is a product. It may be a
            function that returns the rule, given the mesh and the types of the arguments and
            results. Without a rule, no sharding is propagated.
          reduction_factors: names of sizes that are summed over.
          need_replication_factors: names of axes that every device needs completely.
          permutation_factors: names of axes along which devices exchange values.
          factor_sizes: the sizes of names that occur only in products.
          infer_sharding_from_operands: ignored; accepted for compatibility with JAX, as are
            `propagate_user_sharding` and `decode_shardings`. The rule is used instead.
        """
        self.partition, self.sharding_rule = partition, sharding_rule
        self.factors = {
            "reduction": reduction_factors,
            "need_replication": need_replication_factors,
            "permutation": permutation_factors,
        }
        self.factor_sizes = factor_sizes

    def __call__(self, *args: Any) -> Any:
        if self.partition is None:
            raise TypeError(
                f"{fun_name(self.fun)}: must be told how it is split; got no partition. Hint: "
                f"{fun_name(self.fun)}.def_partition(partition, sharding_rule=...)."
            )
        fixed = {i % len(args) for i in self.static_argnums}
        static = [args[i] for i in sorted(fixed)]
        given = tuple(x for i, x in enumerate(args) if i not in fixed)

        def fun(*xs: Any) -> Any:
            rest = iter(xs)
            return self.fun(*[args[i] if i in fixed else next(rest) for i in range(len(args))])

        leaves, tree = flatten((given, {}))
        avals = avals_of(fun_name(self.fun), leaves, tree, self.fun)
        in_tree: PyTreeDef = structure(given)
        jaxpr, consts, out_tree, _ = stage_body("custom_partitioning", fun, in_tree, avals)
        if consts:
            raise TypeError(
                f"{fun_name(self.fun)}: must take all arrays that it uses as arguments; got "
                f"{', '.join(str(typeof(c)) for c in consts)} closed over."
            )
        partitioner = Partitioner(self, static, (in_tree, out_tree))
        outs = custom_partitioning_p.apply(*leaves, jaxpr=jaxpr, partitioner=partitioner)
        return unflatten(out_tree, outs)


def write_rule(
    rule: str, in_avals: Sequence, out_avals: Sequence, kinds: dict, factor_sizes: dict
) -> str:
    """Shardy's text of a rule like `"i j, j k -> i k"` for values of these types."""
    sides = [part.split(",") for part in rule.split("->")]
    avals = (in_avals, out_avals)
    if len(sides) != 2 or [len(s) for s in sides] != [len(a) for a in avals]:
        raise ShapeError(
            "custom_partitioning: sharding_rule must name the axes of each operand and result; got "
            f"{rule!r} for {len(in_avals)} and {len(out_avals)}."
        )
    letters = itertools.chain("ijklmnopqrstuvwxyz", (f"z_{n}" for n in itertools.count(1)))
    symbols: dict[str, str] = {}
    sizes: dict[str, int] = {}

    def write_axis(text: str, size: int) -> str:
        names = text.strip("()").split()
        for name in names:
            symbols.setdefault(name, "") or symbols.update({name: next(letters)})
            sizes[name] = size if len(names) == 1 else sizes.get(name) or factor_sizes[name]
        return "".join(symbols[name] for name in names)

    def write_value(text: str, aval: ShapedArray) -> str:
        axes = re.findall(r"\([^)]*\)|\.\.\.|\w+", text)
        if axes[:1] == ["..."]:
            axes[:1] = [f"front{n}" for n in range(aval.ndim - len(axes) + 1)]
        if len(axes) != aval.ndim:
            raise ShapeError(
                "custom_partitioning: sharding_rule must name the axes of each value; got "
                f"{rule!r} for {aval}."
            )
        return f"[{', '.join(map(write_axis, axes, aval.shape))}]"

    left, right = (
        ", ".join(map(write_value, side, types)) for side, types in zip(sides, avals, strict=True)
    )
    counts = ", ".join(f"{symbols[n]}={size}" for n, size in sizes.items())
    special = "".join(
        f" {kind}={{{', '.join(symbols[n] for n in names)}}}"
        for kind, names in kinds.items()
        if names
    )
    return f"#sdy.op_sharding_rule<({left})->({right}) {{{counts}}}{special}, custom>"
