"""Calls of LAPACK's kernels in a module: whether their results are as large as what is written.

The kernels of jaxlib take sizes from the first operand, and write results of any size; what weft
lowers fits them, and a file may not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# The shapes of operands and results after the axes of a batch, a letter for an axis: k is the
# smaller of m and n, p is n - 1, a dot is a number. The kernels of complex dtypes have other names.
SHAPES = {
    "potrf": "nn -> nn .",
    "getrf": "mn -> mn k .",
    "geqrf": "mn -> mn k",
    "geqp3": "mn n -> mn n k",
    "orgqr": "mn t -> mn",
    "ungqr": "mn t -> mn",
    "ormqr": "st t mn -> mn",
    "unmqr": "st t mn -> mn",
    "gesdd": "mn -> mn k mk kn .",
    "gesvd": "mn -> mn k mk kn .",
    "syevd": "nn -> nn n .",
    "heevd": "nn -> nn n .",
    "geev": "nn -> n n nn nn .",
    "gees": "nn -> nn nn n n . .",
    "gehrd": "nn -> nn p .",
    "sytrd": "nn -> nn n p p .",
    "hetrd": "nn -> nn n p p .",
    "trsm": "ss mn -> mn",
    "gtsv": "n n n nr -> n n n nr .",
    "tridiagonal_solve_perturbed_ffi": "n n n nr -> nr",
}
ALL_VECTORS, LEFT = ord("A"), ord("L")  # as LAPACK's options are given


def check_lapack_calls(op: str, module: Any) -> None:
    """Raise where a call of a kernel has shapes that the kernel does not compare."""
    for target, call in find_calls(module):
        types = types_of(call)
        # others are compiled when their sizes are known, and seen again
        if all(t.has_static_shape for t in types):
            shapes, count = [tuple(t.shape) for t in types], len(call.operands)
            options = read_options(call)
            pattern = find_pattern(target, options)
            if not pattern or not fit_shapes(pattern, count, shapes, options):
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
            if target.startswith(("lapack_", "tridiagonal_")):
                calls.append((target, operation))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return calls


def types_of(call: Any) -> list[Any]:
    """Return the types of the operands and of the results of a call."""
    from jaxlib.mlir import ir

    return [ir.RankedTensorType(x.type) for x in (*call.operands, *call.results)]


def find_pattern(target: str, options: dict[str, int]) -> str:
    """Return the shapes of the routine that a target names; empty if there is none."""
    found = re.fullmatch("lapack_([sdcz])([a-z0-9]+)_ffi", target)
    letter, routine = found.groups() if found else ("", target)
    if letter in ("c", "z") and routine in ("geev", "gees"):  # eigenvalues in one array
        return "nn -> n nn nn ." if routine == "geev" else "nn -> nn nn n . ."
    if options.get("mode") == ALL_VECTORS and routine in ("gesdd", "gesvd"):
        return "mn -> mn k mm nn ."
    return SHAPES.get(routine, "")


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


def fit_shapes(
    pattern: str, count: int, shapes: Sequence[tuple[int, ...]], options: dict[str, int]
) -> bool:
    """Return True if shapes, of which the first `count` are operands, are those of a pattern."""
    operands, results = [part.split() for part in pattern.split(" -> ")]
    axes = [name.strip(".") for name in (*operands, *results)]
    if len(operands) != count or len(axes) != len(shapes):
        return False
    if any(len(shape) < len(names) for names, shape in zip(axes, shapes, strict=True)):
        return False
    batch = shapes[0][: len(shapes[0]) - len(axes[0])]
    sizes: dict[str, int] = {}
    for names, shape in zip(axes, shapes, strict=True):
        if shape[: len(shape) - len(names)] != batch:
            return False
        for name, size in zip(names, shape[len(shape) - len(names) :], strict=True):
            if name in "kp" and "n" in sizes:
                n = sizes["n"]
                known = min(sizes.get("m", n), n) if name == "k" else max(n - 1, 0)
            else:
                known = sizes.setdefault(name, size)
            if size != known:
                return False
    on_left = options.get("left", options.get("side") == LEFT)
    if "s" in sizes and sizes["s"] != sizes["m" if on_left else "n"]:
        return False
    return sizes.get("t", 0) <= sizes.get("s", sizes["n"])
