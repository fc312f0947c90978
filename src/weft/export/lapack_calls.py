"""Check calls of LAPACK kernels in a module: a kernel must not write more than its results hold.

primitives/lapack_shapes.py says which shapes fit.
"""

from __future__ import annotations

from typing import Any

from weft.primitives.lapack_shapes import PREFIXES, fit_call


def check_lapack_calls(op: str, module: Any) -> None:
    """Raise if a call of a kernel has shapes that do not fit; the kernel does not check them."""
    for target, call in find_calls(module):
        types = types_of(call)
        # calls with symbolic sizes are checked again when the sizes are known
        if all(t.has_static_shape for t in types):
            shapes, count = [tuple(t.shape) for t in types], len(call.operands)
            if not fit_call(target, shapes[:count], shapes[count:], read_options(call)):
                raise ValueError(
                    f"{op} must call LAPACK with shapes that fit; got {target!r} of "
                    f"{shapes[:count]} -> {shapes[count:]}."
                )


def find_calls(module: Any) -> list[tuple[str, Any]]:
    """Return the calls of LAPACK's kernels in a module, with their targets."""
    from jaxlib.mlir import ir

    calls: list[tuple[str, Any]] = []

    def visit(operation: Any) -> Any:
        if operation.name == "stablehlo.custom_call":
            target = ir.StringAttr(operation.attributes["call_target_name"]).value
            if target.startswith(PREFIXES):
                calls.append((target, operation))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return calls


def types_of(call: Any) -> list[Any]:
    """Return the types of the operands and of the results of a call."""
    from jaxlib.mlir import ir

    return [ir.RankedTensorType(x.type) for x in (*call.operands, *call.results)]


def read_options(operation: Any) -> dict[str, int]:
    """Return the letters and numbers among the attributes of a call."""
    from jaxlib.mlir import ir

    if "backend_config" not in operation.attributes:
        return {}
    config = operation.attributes["backend_config"]
    if not isinstance(config, ir.DictAttr):
        return {}
    pairs = [(e.name, e.attr) if hasattr(e, "attr") else (e, config[e]) for e in config]
    return {name: x.value for name, x in pairs if isinstance(x, ir.IntegerAttr | ir.BoolAttr)}
