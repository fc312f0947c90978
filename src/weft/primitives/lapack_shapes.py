"""The shapes that LAPACK's kernels take and give, for programs that somebody else wrote.

The kernels of jaxlib take sizes from the first operand, and write results of any size. What weft
lowers fits them. A file or a text may not, so its calls are compared with this table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

PREFIXES = ("lapack_", "tridiagonal_")  # of the names of the kernels

# What the complex routines are called whose real ones have another name.
COMPLEX_NAMES = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}

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


def fit_call(
    target: str,
    operands: Sequence[tuple[int, ...]],
    results: Sequence[tuple[int, ...]],
    options: Mapping[str, int],
) -> bool:
    """Return True if the shapes of a call fit the routine that its target names.

    `options` are LAPACK's letters and numbers. A target that names no routine fits nothing.
    """
    pattern = find_pattern(target, options)
    return bool(pattern) and fit_shapes(pattern, len(operands), [*operands, *results], options)


def find_pattern(target: str, options: Mapping[str, int]) -> str:
    """Return the shapes of the routine that a target names; empty if there is none."""
    found = re.fullmatch("lapack_([sdcz])([a-z0-9]+)_ffi", target)
    letter, routine = found.groups() if found else ("", target)
    if letter in ("c", "z") and routine in ("geev", "gees"):  # eigenvalues in one array
        return "nn -> n nn nn ." if routine == "geev" else "nn -> nn nn n . ."
    if options.get("mode") == ALL_VECTORS and routine in ("gesdd", "gesvd"):
        return "mn -> mn k mm nn ."
    return SHAPES.get(routine, "")


def fit_shapes(
    pattern: str, count: int, shapes: Sequence[tuple[int, ...]], options: Mapping[str, int]
) -> bool:
    """Return True if `shapes` fit a pattern. The first `count` shapes are operands."""
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
