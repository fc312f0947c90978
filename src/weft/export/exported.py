"""`export` and its result `Exported`: a program with the types and structures needed to call it.

container.py reads and writes the bytes of a file. lowering.py writes the StableHLO module, and
modules.py serializes and checks modules.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft import dtypes
from weft.api.custom_rules import custom_vjp
from weft.api.functions import avals_of, leaf_names
from weft.api.grad import vjp
from weft.api.jit import jit
from weft.api.programs import StagedProgram
from weft.api.shape_struct import ShapeDtypeStruct
from weft.core.aval import ShapedArray, typeof
from weft.errors import ShapeError, is_own_file
from weft.export import container
from weft.export.calling import call_exported_p
from weft.export.dims import evaluate_size
from weft.export.lowering import lower_exported
from weft.export.modules import (
    DisabledSafetyCheck,
    check_custom_calls,
    read_artefact,
    write_artefact,
)
from weft.export.solving import find_scope, solve_sizes
from weft.mesh.client import default_device, platform_of
from weft.mesh.plugins import PLATFORMS
from weft.mesh.sharding import NamedSharding
from weft.primitives.layout import random_unwrap_p, random_wrap_p, zeros
from weft.pytrees import PyTreeDef, flatten, structure, unflatten
from weft.util import insert_at, unzip2


@dataclasses.dataclass(frozen=True, eq=False, repr=False, slots=True, weakref_slot=True)
class Exported:
    """A program in StableHLO with the types needed to call it; `export` makes one.

    Attributes:
      fun_name: the name of the function.
      in_tree, out_tree: the structures of `(args, kwargs)` and of the result.
      in_avals, out_avals: the types of arguments and results, flat; sizes may be symbolic.
      in_shardings_hlo, out_shardings_hlo: XLA's shardings of both; None leaves one free.
      nr_devices: the number of devices that the program runs on.
      platforms: the platforms that the program can be compiled for.
      ordered_effects, unordered_effects: side effects of the program: none, in this version.
      disabled_safety_checks: see `DisabledSafetyCheck`.
      mlir_module_serialized: the module, as a portable artefact of StableHLO.
      calling_convention_version: how the main function of the module is called.
      module_kept_var_idx: the indices of the flat arguments that the main function takes.
      uses_global_constants: True if shapes have to be refined, or a platform chosen, first.

    >>> exported = weft.export.export(weft.jit(lambda x: 2 * x))(jnp.ones(3))
    >>> exported.in_avals, exported.nr_devices
    ((ShapedArray(float32[3]),), 1)
    >>> exported.call(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    _in_named_shardings: tuple
    _out_named_shardings: tuple
    nr_devices: int
    platforms: tuple[str, ...]
    mlir_module_serialized: bytes
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None = None
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...] = ()
    ordered_effects: tuple = ()
    unordered_effects: tuple = ()
    calling_convention_version: int = container.maximum_supported_calling_convention_version
    _made: dict[str, Any] = dataclasses.field(init=False, default_factory=dict)  # a cache

    def __repr__(self) -> str:
        listed = lambda avals: "(" + ", ".join(map(str, avals)) + ")"
        more = f", nr_devices={self.nr_devices}" if self.nr_devices > 1 else ""
        return (
            f"Exported({self.fun_name}: {listed(self.in_avals)} -> {listed(self.out_avals)}, "
            f"platforms={self.platforms}{more})"
        )

    __str__ = __repr__

    def __reduce__(self) -> Any:
        raise TypeError(
            f"pickle: an exported program has bytes of its own; got {self}. Hint: "
            "exported.serialize(), and export.deserialize."
        )

    @property
    def in_shardings_hlo(self) -> tuple:
        """XLA's shardings of the arguments, None where free."""
        return engine_shardings(self._in_named_shardings, self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple:
        """XLA's shardings of the results, None where free."""
        return engine_shardings(self._out_named_shardings, self.out_avals)

    def in_shardings_jax(self, mesh: Any) -> tuple:
        """The shardings of the arguments over a mesh with axes of the same names and sizes."""
        return self._over(mesh, self._in_named_shardings)

    def out_shardings_jax(self, mesh: Any) -> tuple:
        """The shardings of the results over a mesh with axes of the same names and sizes."""
        return self._over(mesh, self._out_named_shardings)

    def _over(self, mesh: Any, shardings: Sequence[Any]) -> tuple:
        if mesh.size != self.nr_devices:
            raise ShapeError(
                f"{self.fun_name}: the mesh must have the {self.nr_devices} devices that it was "
                f"exported for; got {mesh.size}."
            )
        return tuple([s and NamedSharding(mesh, s.spec) for s in shardings])

    def mlir_module(self) -> str:
        """The module as text."""
        return str(read_artefact(self.mlir_module_serialized))

    def has_vjp(self) -> bool:
        """Return True if the program of its derivative is here."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The program of its reverse derivative.

        It takes the arguments, flat, and a cotangent for each result; and gives a tuple with the
        cotangent of each argument.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"{self.fun_name}: its derivative must have been exported with it; got a program "
                "without. Hint: exported.serialize(vjp_order=1), and one more for each further "
                "derivative."
            )
        if "vjp" not in self._made:
            self._made["vjp"] = self._get_vjp(self)
        return self._made["vjp"]

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The program as bytes, for `deserialize`, with its first `vjp_order` derivatives.

        Classes of pytrees in arguments and results need a name (register_pytree_node_serialization,
        register_namedtuple_serialization); tuples, lists and dicts have one.
        """
        return container.serialize_program(self, vjp_order)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the program, with arguments of the structure and types it was exported for.

        Arguments may be traced: it can be called in functions under `jit`, `vmap` (for each element
        in turn), `grad` and `vjp`, the last two if its derivative was exported with it.
        """
        leaves, tree = flatten((args, kwargs))
        if tree != self.in_tree:
            raise TypeError(
                f"{self.fun_name}: an exported program must be called with the structure it was "
                f"exported for, {self.in_tree}; got {tree}."
            )
        avals = avals_of(self.fun_name, leaves, tree, self.call)
        self._check_types(avals)
        return unflatten(self.out_tree, self._call_flat(leaves))

    def _check_types(self, avals: Sequence[ShapedArray]) -> None:
        """Raise if the types of the arguments are not the types of the program."""
        for i, (got, want) in enumerate(zip(avals, self.in_avals, strict=True)):
            fits = [type(n) is not int or n == m for n, m in zip(want.shape, got.shape)]
            if got.dtype != want.dtype or got.ndim != want.ndim or not all(fits):
                where = leaf_names("", self.in_tree)[i]
                where = f"{('args', 'kwargs')[int(where[1])]}{where[3:]}"
                raise ShapeError(
                    f"{self.fun_name}: an exported program must be called with the types it was "
                    f"exported for, {want} for {where}; got {got}."
                )

    def _call_flat(self, leaves: Sequence[Any]) -> list:
        """The flat results of flat arguments, with their derivative; float0 is left out of it."""
        given = [
            None if holds_nothing(a) else x for x, a in zip(leaves, self.in_avals, strict=True)
        ]
        out_avals = self._types_of_results(given)
        hidden = {i: zeros(a) for i, a in enumerate(out_avals) if holds_nothing(a)}
        if "apply" not in self._made:
            self._made["apply"] = self._make_function()
        return insert_at(self._made["apply"](*[x for x in given if x is not None]), hidden)

    def _types_of_results(self, leaves: Sequence[Any]) -> Sequence[ShapedArray]:
        """Types of the results for flat arguments. Arguments of float0 are None."""
        pairs = zip(self.in_avals, leaves, strict=True)
        seen = [(want, typeof(x)) for want, x in pairs if x is not None]  # float0 tells nothing
        sizes = solve_sizes(self.fun_name, *unzip2(seen))
        shape_of = lambda a: tuple([evaluate_size(n, sizes) for n in a.shape])
        return [a.update(shape=shape_of(a)) for a in self.out_avals] if sizes else self.out_avals

    def _make_function(self) -> Callable[..., tuple]:
        """The program as a function of flat arguments, with its derivative, without float0."""
        unseen = [i for i, a in enumerate(self.in_avals) if holds_nothing(a)]

        @custom_vjp
        def apply(*leaves: Any) -> tuple:
            return self._bind(insert_at(leaves, dict.fromkeys(unseen)))

        def pull(leaves: tuple, cts: tuple) -> tuple:
            every = insert_at(leaves, dict.fromkeys(unseen))
            moving = iter(cts)
            given = [None if holds_nothing(a) else next(moving) for a in self.out_avals]
            grads = self.vjp()._call_flat([*every, *given])
            return tuple(
                [
                    None if holds_nothing(typeof(g)) else g
                    for g, a in zip(grads, self.in_avals, strict=True)
                    if not holds_nothing(a)
                ]
            )

        apply.defvjp(lambda *leaves: (apply(*leaves), leaves), pull)
        apply.__name__ = self.fun_name
        return jit(apply)

    def _bind(self, leaves: Sequence[Any]) -> tuple:
        """Results of flat arguments, without float0 results. Arguments of float0 are None."""
        out_avals = self._types_of_results(leaves)
        kept = [
            random_unwrap_p.apply(x)[0] if dtypes.is_extended(typeof(x).dtype) else x
            for x in [leaves[i] for i in self.module_kept_var_idx]
        ]
        made = [a.update(dtype=bool) if holds_nothing(a) else a.physical for a in out_avals]
        outs = call_exported_p.apply(*kept, exported=self, result_avals=tuple(made))
        return tuple(
            [
                random_wrap_p.apply(y, dtype=a.dtype)[0] if dtypes.is_extended(a.dtype) else y
                for a, y in zip(out_avals, outs, strict=True)
                if not holds_nothing(a)
            ]
        )

    def _module_for(self, platform: str) -> tuple[Any, int | None]:
        """The module, and for several platforms the index of this one."""
        allowed = DisabledSafetyCheck.platform() in self.disabled_safety_checks
        if platform not in self.platforms and not allowed:
            raise ValueError(
                f"{self.fun_name}: must be called on a platform it was exported for, "
                f"{' or '.join(self.platforms)}; got {platform}. Hint: "
                f"export(f, platforms={(*self.platforms, platform)})."
            )
        index = self.platforms.index(platform) if platform in self.platforms else 0
        module = read_artefact(self.mlir_module_serialized)
        return module, index if len(self.platforms) > 1 else None


def holds_nothing(aval: ShapedArray) -> bool:
    """Return True if a type is float0, of tangents of integers."""
    return aval.dtype == dtypes.float0


def engine_shardings(shardings: Sequence[Any], avals: Sequence[ShapedArray]) -> tuple:
    """Shardings as XLA has them."""
    return tuple(
        [s and s._to_xla_hlo_sharding(a.ndim) for s, a in zip(shardings, avals, strict=True)]
    )


def default_export_platform() -> str:
    """Return the platform for which programs are exported if no platform is named.

    Returns:
      The name of the default device's platform: "cpu", "cuda", "rocm" or "tpu".

    >>> weft.export.default_export_platform() in ("cpu", "cuda", "rocm", "tpu")
    True
    """
    return platform_of(default_device())


def export(
    fun_jit: Callable,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Return a function that exports `fun_jit` for given types of arguments.

    The exported program can be called and serialized. Another process can call it without the
    Python code.

    Args:
      fun_jit: a function that `jit` returned, or a function of weft such as `jnp.sin`. It must not
        call Python (`pure_callback`), and must not take references.
      platforms: a sequence of "cpu", "cuda", "rocm" and "tpu". The program runs on all of them.
        None, the default, is the platform of the default device.
      disabled_checks: a sequence of `DisabledSafetyCheck`s. The default is none.

    Returns:
      A function of the arguments of `fun_jit` that returns an `Exported`. The arguments are arrays
      or `ShapeDtypeStruct`s. Their sizes may be symbolic (`symbolic_shape`).

    >>> exported = weft.export.export(weft.jit(jnp.sin))(np.float32([0, 1]))
    >>> exported
    Exported(sin: (f32[2]) -> (f32[2]), platforms=('cpu',))
    >>> weft.export.deserialize(exported.serialize()).call(np.float32([0, 0]))
    Array([0., 0.], dtype=float32)
    """
    if is_own_file(getattr(getattr(fun_jit, "__code__", None), "co_filename", "")):
        fun_jit = jit(fun_jit)  # jnp.sin
    if not callable(getattr(fun_jit, "trace", None)):
        raise ValueError(
            f"export: needs a function that jit has made; got {fun_jit!r}. Hint: "
            "export(weft.jit(f))(x)."
        )
    names = tuple(platforms) if platforms is not None else (default_export_platform(),)
    if isinstance(platforms, str) or not names or not set(names) <= set(PLATFORMS):
        raise ValueError(
            f"export: platforms must be some of {', '.join(map(repr, PLATFORMS))}; got "
            f"{platforms!r}."
        )

    @functools.wraps(fun_jit)
    def of_types(*args: Any, **kwargs: Any) -> Exported:
        find_scope([x for x in flatten((args, kwargs))[0] if hasattr(x, "shape")])
        traced = fun_jit.trace(*args, **kwargs)
        return export_program(traced._program, traced._placement, names, tuple(disabled_checks))

    del of_types.__wrapped__
    return of_types


def export_program(
    program: StagedProgram,
    placement: Any,
    platforms: tuple[str, ...],
    disabled: tuple[DisabledSafetyCheck, ...],
) -> Exported:
    """The exported form of a staged program."""
    name = program.spec.name
    if program.jaxpr.calls_host or program.stateful:
        found = "a callback" if program.jaxpr.calls_host else "a reference"
        raise ValueError(
            f"export: {name} must be a program of arrays alone, which another process can run; "
            f"got {found}."
        )
    lowered = lower_exported(program, placement, platforms)
    artefact = write_artefact(lowered.text)
    allowed = {check.is_custom_call() for check in disabled}
    check_custom_calls(f"export: {name}", read_artefact(artefact), allowed)
    ins, outs = lowered.shardings
    return Exported(
        name, program.in_tree, tuple(program.in_avals), program.out_tree, tuple(program.out_avals),
        tuple(ins), tuple(outs), len(placement.devices), platforms, artefact, lowered.kept,
        len(platforms) > 1 or find_scope(program.in_avals) is not None,
        lambda exported: export_derivative(exported, program), disabled,
    )  # fmt: skip


def export_derivative(exported: Exported, program: StagedProgram) -> Exported:
    """The exported reverse derivative of a program."""
    jaxpr, consts, out_avals = program.jaxpr, program.consts, program.out_avals
    primals = [a for i, a in enumerate(program.in_avals) if i not in program.hidden]
    takes = [i for i, a in enumerate(primals) if dtypes.is_inexact(a.dtype)]
    n, moving = len(primals), [dtypes.is_inexact(a.dtype) for a in jaxpr.out_avals]

    def fun_vjp(*args_and_cts: Any) -> tuple:
        args, cts = list(args_and_cts[:n]), iter(args_and_cts[n:])

        def f(*xs: Any) -> list:
            values = [*args]
            for i, x in zip(takes, xs, strict=True):
                values[i] = x
            outs = jaxpr(*consts, *values)
            return [y for y, m in zip(outs, moving, strict=True) if m]

        return vjp(f, *[args[i] for i in takes])[1](list(cts))

    fun_vjp.__name__ = f"vjp_{exported.fun_name}"
    avals = [*program.in_avals, *[a.to_tangent() for a in out_avals]]
    gives = [a.to_tangent() for a in program.in_avals]
    places = [*exported._in_named_shardings, *exported._out_named_shardings]
    structs = [
        ShapeDtypeStruct.of(a).update(sharding=s)
        for a, s in zip(avals, places, strict=True)
        if not holds_nothing(a)
    ]
    traced = jit(fun_vjp).trace(*structs)
    # float0 values are not traced, but the description of the program lists them
    nothing = lambda avals: {
        i: ShapeDtypeStruct.of(a) for i, a in enumerate(avals) if holds_nothing(a)
    }
    whole = traced._program._replace(
        in_avals=avals,
        hidden=nothing(avals),
        hidden_results=nothing(gives),
        in_tree=structure((tuple(avals), {})),
        out_tree=structure(tuple(gives)),
    )
    return export_program(
        whole, traced._placement, exported.platforms, exported.disabled_safety_checks
    )


def deserialize(blob: bytes | bytearray) -> Exported:
    """Read a program that `Exported.serialize` wrote.

    All of it is checked before any part is used. Nothing in it is executed before it is called.

    Args:
      blob: the bytes.

    Returns:
      An `Exported`.

    Raises:
      ValueError: the bytes are damaged, of another format, or of a later version.

    >>> exported = weft.export.export(weft.jit(lambda x: 2 * x))(np.float32(1))
    >>> weft.export.deserialize(exported.serialize()).call(np.float32(3))
    Array(6., dtype=float32)
    """
    found: Exported | None = None
    for fields in reversed(container.read_container(blob)):
        rest = found if found is None else functools.partial(give_derivative, found)
        found = Exported(**fields, _get_vjp=rest)
    assert found is not None
    return found


def give_derivative(derivative: Exported, exported: Exported) -> Exported:
    """The derivative of a program that came with it."""
    return derivative
