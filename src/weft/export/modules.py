"""StableHLO modules as bytes that last, and as functions of another program.

The bytes are StableHLO's portable artefact, which later releases of XLA read.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Collection, Sequence
from typing import Any

from jaxlib import _jax

from weft.core.aval import ShapedArray
from weft.util import Record
from weft.xla.callbacks import mlir_context, parse_module
from weft.xla.foreign import refuse_private_target
from weft.xla.hlo import Builder, PlaceholderMesh, Value

ARTEFACT = b"ML\xefR\rStableHLO_v"  # how a portable artefact begins

_MESH = re.compile(r"<@([\w.$]+), ")  # where a sharding names its mesh

# What modules may call though it is not a kernel: for the partitioner, and for refinement.
MARKERS = frozenset((
    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement",
    "shape_assertion", "stablehlo.dynamic_approx_top_k", "xla.sdy.FuncResultSharding",
))  # fmt: skip

# Custom calls that later releases of jaxlib keep, by how their names begin.
STABLE_CALLS = ("lapack_", "cusolver_", "hipsolver_", "cublas_", "hipblas_", "tridiagonal_")
STABLE_TARGETS = frozenset((
    "cu_threefry2x32_ffi", "cu_lu_pivots_to_permutation", "hip_threefry2x32_ffi",
    "hip_lu_pivots_to_permutation", "Eigh", "Qr", "ProductOfElementaryHouseholderReflectors",
    "LuDecomposition", "ApproxTopK", "TopK", "mhlo.topk", "mhlo.erf", "mhlo.tan", "chlo.top_k",
))  # fmt: skip


class DisabledSafetyCheck(Record):
    """A safety check to disable in `export`, or in a call.

    `custom_call(target)` lets the program call a target that later releases may not have.
    `platform()` lets the program run on a platform for which it was not exported.

    Attributes:
      custom_call: a class method that returns the check of a custom call's target.
      platform: a class method that returns the check of the platform.

    >>> check = weft.export.DisabledSafetyCheck.platform()
    >>> _ = weft.export.export(weft.jit(jnp.sin), disabled_checks=[check])
    """

    __slots__ = ("_impl",)

    def __init__(self, _impl: str):
        self._impl = _impl

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Let the module call `target_name`, which has to be registered where it runs."""
        return cls(f"custom_call:{target_name}")

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Let the program be called on other platforms than those it was exported for."""
        return cls("platform")

    def is_custom_call(self) -> str | None:
        """The target that may be called; None if this is another check."""
        kind, _, target = self._impl.partition(":")
        return target if kind == "custom_call" else None

    def __repr__(self) -> str:
        return self._impl

    __str__ = __repr__


@functools.cache
def stablehlo() -> Any:
    """XLA's module on StableHLO, with its passes known."""
    from jaxlib.mlir.dialects import stablehlo as found

    found.register_stablehlo_passes()
    return found


def write_artefact(text: str) -> bytes:
    """A module as a portable artefact, of a version that releases of the last month read too.

    Operations of CHLO, which has no versions, become StableHLO's first.
    """
    from jaxlib.mlir import passmanager

    known = stablehlo()
    module = parse_module(text)
    with mlir_context():
        passes = "chlo-legalize-to-stablehlo,shape-legalize-to-stablehlo"
        passmanager.PassManager.parse(f"builtin.module(func.func({passes}))").run(module.operation)
    drop_casts(module)
    month = known.StablehloCompatibilityRequirement.WEEK_4
    version = known.get_version_from_compatibility_requirement(month)
    shards = "sdy.mesh" in text  # Shardy's operations have no versions, and stay unchanged
    return known.serialize_portable_artifact(module, version, shards)


def drop_casts(module: Any) -> None:
    """Drop the casts that those passes leave: there and back again, between types of an index."""
    from jaxlib.mlir import ir

    casts: list = []

    def visit(op: Any) -> Any:
        if op.name == "builtin.unrealized_conversion_cast":
            casts.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for op in casts:
        before = op.operands[0].owner
        if getattr(before, "name", "") == "builtin.unrealized_conversion_cast":
            op.results[0].replace_all_uses_with(before.operands[0])
    for op in reversed(casts):
        op.erase()


def read_artefact(artefact: bytes) -> Any:
    """The module of a portable artefact."""
    if not artefact.startswith(ARTEFACT):
        raise ValueError(
            "deserialize: the module must be a portable artefact of StableHLO; got bytes that "
            f"begin with {artefact[:16]!r}."
        )
    given = artefact[len(ARTEFACT) :].split(b"\0", 1)[0].decode("latin-1")
    newest = stablehlo().get_current_version()
    if not given.replace(".", "").isdigit() or order_version(given) > order_version(newest):
        raise ValueError(
            f"deserialize: the version of StableHLO must be at most {newest}, which this jaxlib "
            f"reads; got {given}. Hint: a later jaxlib."
        )
    try:
        return stablehlo().deserialize_portable_artifact(mlir_context(), artefact)
    except Exception as error:
        raise ValueError(
            f"deserialize: the module must be StableHLO as this jaxlib reads it; got {error}."
        ) from error


def order_version(text: str) -> tuple[int, ...]:
    """Parse a version into numbers, so that versions can be ordered."""
    return tuple([int(x) for x in text.split(".") if x])


def find_custom_calls(module: Any) -> list[str]:
    """The targets of the custom calls of a module, in order, except for markers."""
    from jaxlib.mlir import ir

    found: dict[str, None] = {}

    def visit(op: Any) -> Any:
        if op.name == "stablehlo.custom_call":
            found.setdefault(ir.StringAttr(op.attributes["call_target_name"]).value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return [target for target in found if target not in MARKERS]


def check_custom_calls(op: str, module: Any, allowed: Collection[str | None]) -> None:
    """Raise if a module calls a target that other releases may lack, or one of this process only.

    `allowed` are further targets that the module may call.
    """
    for target in find_custom_calls(module):
        refuse_private_target(op, target)
        if target not in STABLE_TARGETS | allowed and not target.startswith(STABLE_CALLS):
            raise ValueError(
                f"{op} must call what later releases of jaxlib keep; got a custom call of "
                f"{target!r}. Hint: export(..., disabled_checks=[DisabledSafetyCheck."
                f"custom_call({target!r})]), and register it where it runs."
            )


def module_bytes(module: Any) -> bytes:
    """A module as MLIR's bytecode."""
    file = io.BytesIO()
    module.operation.write_bytecode(file)
    return file.getvalue()


def refine_module(module: Any, leading: Sequence[int], avals: Sequence[ShapedArray]) -> Any:
    """Refine a module to arguments of these types, which determine all shapes in it.

    `leading` are the values of the integers that its main function takes first. The module that is
    passed is changed in place.
    """
    from jaxlib.mlir import ir

    functions = {f.attributes["sym_name"].value: f for f in functions_of(module)}
    main, function = "refined_main", functions["main"]
    while main in functions:
        main += "_"
    rename_symbols(module, {"main": main})
    function.attributes["sym_visibility"] = string_attribute("private")
    types = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    takes, gives = [*map(str, types.inputs)], [*map(str, types.results)]
    names = [f"%c{i}" for i in range(len(takes))]
    n = len(leading)
    lines = [
        f"{name} = stablehlo.constant dense<{x}> : {kind}"
        for name, x, kind in zip(names, leading, takes, strict=False)
    ]
    lines += [
        f'{name} = "stablehlo.convert"(%arg{i}) : ({aval.hlo}) -> {kind}'
        for i, (name, aval, kind) in enumerate(zip(names[n:], avals, takes[n:], strict=True))
    ]
    results, outs = ", ".join(gives), ", ".join([f"%r#{i}" for i in range(len(gives))])
    lines += [
        f'{f"%r:{len(gives)} = " if gives else ""}"func.call"({", ".join(names)}) '
        f"<{{callee = @{main}}}> : ({', '.join(takes)}) -> ({results})",
        f'"func.return"({outs}) : ({results}) -> ()',
    ]
    listed = ", ".join([f"%arg{i}: {a.hlo}" for i, a in enumerate(avals)])
    head = f"func.func public @main({listed}) -> ({results}) {{"
    text = module.operation.get_asm(enable_debug_info=False).rstrip()
    whole = "\n".join([text.removesuffix("}"), head, *lines, "}", "}"])
    refined = _jax.mlir.refine_polymorphic_shapes(
        module_bytes(parse_module(whole)),
        enable_shape_assertions=True,
        validate_static_shapes=True,
        enable_shardy=True,
    )
    return parse_module(refined)


def functions_of(module: Any) -> list[Any]:
    """The functions of a module."""
    return [op.operation for op in module.body.operations if op.operation.name == "func.func"]


def main_types(module: Any) -> tuple[list[str], list[str]] | None:
    """Return the types that the main function of a module takes and gives; None without one."""
    from jaxlib.mlir import ir

    for function in functions_of(module):
        if function.attributes["sym_name"].value == "main":
            types = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
            return [*map(str, types.inputs)], [*map(str, types.results)]
    return None


def rename_symbols(module: Any, names: dict[str, str]) -> None:
    """Call functions and meshes of a module by other names, where they are defined and used."""
    from jaxlib.mlir import ir

    context = mlir_context()

    def visit(op: Any) -> Any:
        if op.name == "stablehlo.constant":  # names nothing; jaxlib cannot read complex elements
            return ir.WalkResult.ADVANCE
        for entry in list(op.attributes):
            name, value = (entry.name, entry.attr) if hasattr(entry, "attr") else (entry, None)
            value = op.attributes[name] if value is None else value
            if name == "sym_name" and value.value in names:
                op.attributes[name] = ir.StringAttr.get(names[value.value], context)
            elif isinstance(value, ir.FlatSymbolRefAttr) and value.value in names:
                op.attributes[name] = ir.FlatSymbolRefAttr.get(names[value.value], context)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)


def call_module(
    hlo: Builder, module: Any, operands: Sequence[Value], out_avals: Sequence[ShapedArray]
) -> list[Value]:
    """Write the functions of a module into the one being written, and a call of its main one."""
    from jaxlib.mlir import ir

    functions = functions_of(module)
    given = [f.attributes["sym_name"].value for f in functions]
    names = {name: hlo.unique(f"exported_{name}") for name in given}
    types = ir.FunctionType(
        ir.TypeAttr(functions[given.index("main")].attributes["function_type"]).value
    )
    rename_symbols(module, names)
    meshes = {
        op.operation.attributes["sym_name"].value: hlo.named(
            PlaceholderMesh(str(op.operation.attributes["mesh"]).removeprefix("#sdy.mesh"))
        )
        for op in module.body.operations
        if op.operation.name == "sdy.mesh"
    }
    for function in functions:
        function.attributes["sym_visibility"] = string_attribute("private")
        for key in ("arg_attrs", "res_attrs"):
            if key in function.attributes:
                del function.attributes[key]
        text = function.get_asm(enable_debug_info=False)
        hlo.functions.append(_MESH.sub(lambda found: f"<{meshes[found[1]]}, ", text))

    def convert(x: Value, given: str, wanted: str, aval: ShapedArray) -> Value:
        """A value of a type with known sizes as one of a type without, or the other way."""
        if given == wanted:
            return x
        y = hlo.value(aval)
        hlo.lines.append(f'{y.name} = "stablehlo.convert"({x.name}) : ({given}) -> {wanted}')
        return y

    takes, gives = [*map(str, types.inputs)], [*map(str, types.results)]
    values = [convert(x, x.aval.hlo, kind, x.aval) for x, kind in zip(operands, takes, strict=True)]
    outs = [*map(hlo.value, out_avals)]
    left = ", ".join([y.name for y in outs]) + " = " if outs else ""
    hlo.lines.append(
        f'{left}"func.call"({", ".join([x.name for x in values])}) '
        f"<{{callee = @{names['main']}}}> : ({', '.join(takes)}) -> ({', '.join(gives)})"
    )
    return [convert(y, kind, y.aval.hlo, y.aval) for y, kind in zip(outs, gives, strict=True)]


def string_attribute(text: str) -> Any:
    """A string as an attribute."""
    from jaxlib.mlir import ir

    return ir.StringAttr.get(text, mlir_context())
