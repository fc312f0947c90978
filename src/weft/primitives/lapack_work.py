"""Floating-point operations of LAPACK's routines, which XLA's cost analysis does not count.

The counts are the leading terms, as books on numerical linear algebra have them. Sources: LAPACK
Working Note 41 (Blackford and Dongarra), appendix C, for factorizations and products with Q; Golub
and Van Loan, "Matrix Computations", 4th edition, sections 5.4, 7.5, 8.3 and 8.6, for eigenvalues
and singular values. Their counts depend on how fast an iteration converges.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence

from weft.primitives.lapack_shapes import COMPLEX_NAMES, find_pattern

Sizes = Mapping[str, int]  # by the letters of lapack_shapes.SHAPES
VECTORS_NOT_WANTED = ord("N")


def count_lu(sizes: Sizes) -> float:
    m, n, k = sizes["m"], sizes["n"], min(sizes["m"], sizes["n"])
    return 2 * m * n * k - (m + n) * k**2 + 2 * k**3 / 3


def count_reflectors(sizes: Sizes) -> float:
    m, n = sizes["m"], sizes["n"]
    return 2 * min(m, n) ** 2 * (max(m, n) - min(m, n) / 3)


def count_columns_of_q(sizes: Sizes) -> float:
    m, n, t = sizes["m"], sizes["n"], sizes["t"]
    return 4 * m * n * t - 2 * (m + n) * t**2 + 4 * t**3 / 3


def count_product_with_q(sizes: Sizes) -> float:
    m, n, s, t = sizes["m"], sizes["n"], sizes["s"], sizes["t"]
    return 2 * (m * n // s) * t * (2 * s - t)


def count_singular_values(sizes: Sizes) -> float:
    m, n = max(sizes["m"], sizes["n"]), min(sizes["m"], sizes["n"])
    return 14 * m * n**2 + 8 * n**3 if sizes["vectors"] else 4 * m * n**2 - 4 * n**3 / 3


COUNTS: dict[str, Callable[[Sizes], float]] = {
    "potrf": lambda s: s["n"] ** 3 / 3,
    "getrf": count_lu,
    "geqrf": count_reflectors,
    "geqp3": count_reflectors,
    "orgqr": count_columns_of_q,
    "ormqr": count_product_with_q,
    "gesdd": count_singular_values,
    "gesvd": count_singular_values,
    "syevd": lambda s: (9 if s["vectors"] else 4 / 3) * s["n"] ** 3,
    "geev": lambda s: (25 if s["vectors"] else 10) * s["n"] ** 3,
    "gees": lambda s: (25 if s["vectors"] else 10) * s["n"] ** 3,
    "gehrd": lambda s: 10 * s["n"] ** 3 / 3,
    "sytrd": lambda s: 4 * s["n"] ** 3 / 3,
    "trsm": lambda s: s["m"] * s["n"] * s["s"],
    "gtsv": lambda s: (5 * s["r"] + 3) * s["n"],
    "tridiagonal_solve_perturbed_ffi": lambda s: (5 * s["r"] + 3) * s["n"],
}
REAL_NAMES = {name: real for real, name in COMPLEX_NAMES.items()}

# `re` compiles a pattern at its first use and keeps it, so `import weft` does not.
_TARGET = r'custom_call_target="(?:lapack_([sdcz])(\w+?)_ffi|(tridiagonal_\w+))"'
_SHAPE = r"[a-z]+\d+\[([\d,]*)\]"
_OPTION = r"(\w+) = (\d+) : ui8"


def count_library_flops(text: str) -> float:
    """Return the operations of all calls of LAPACK in a module's text, each counted once.

    Args:
      text: HLO as XLA prints it, an instruction a line.

    >>> from weft.primitives.lapack_work import count_library_flops
    >>> lowered = weft.jit(jnp.linalg.cholesky).lower(jnp.ones((90, 90), "complex64"))
    >>> count_library_flops(lowered.compiler_ir("hlo").as_hlo_text())
    972000.0
    """
    lines = text.split("\n")
    calls = ((line, call) for line in lines for call in re.finditer(_TARGET, line))
    return float(sum(itertools.starmap(count_call, calls)))


def count_call(line: str, target: re.Match) -> float:
    """Return the operations of the call that a line has; 0 for a routine not in the table."""
    letter, routine, other = target.groups()
    options = {k: int(v) for k, v in re.findall(_OPTION, line)}
    pattern = find_pattern(other or f"lapack_{letter}{routine}_ffi", options)
    constraints = line.partition("operand_layout_constraints={")[2]
    operands = read_shapes(constraints.partition("api_version=")[0])
    name = other or REAL_NAMES.get(routine, routine)
    axes = pattern.partition(" -> ")[0].split()
    if name not in COUNTS or len(operands) < len(axes):
        return 0.0
    sizes: dict[str, int] = {}
    for letters, shape in zip(axes, operands, strict=False):
        sizes.update(zip(letters, shape[len(shape) - len(letters) :], strict=True))
    asked = [v for k, v in options.items() if k in ("mode", "compute_left", "compute_right")]
    sizes["vectors"] = any(v != VECTORS_NOT_WANTED for v in asked)
    batch = math.prod(operands[0][: len(operands[0]) - len(axes[0])])
    return batch * (4 if letter in ("c", "z") else 1) * COUNTS[name](sizes)


def read_shapes(text: str) -> Sequence[tuple[int, ...]]:
    """Return the shapes of the arrays in a text of HLO."""
    return [tuple(map(int, filter(None, dims.split(",")))) for dims in re.findall(_SHAPE, text)]
