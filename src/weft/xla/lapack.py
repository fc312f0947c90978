"""Calls of the LAPACK kernels that jaxlib brings for CPU: registered on first use, written here.

Which routine computes what, and what to do where one fails, is said by the primitives that call.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence

import numpy as np
from jaxlib import _jax

from weft.core.aval import ShapedArray
from weft.xla.hlo import Builder, Value

# The letter by which LAPACK tells the routines for a dtype apart.
LETTERS = dict(zip(("float32", "float64", "complex64", "complex128"), "sdcz", strict=True))

# What the complex routines are called whose real ones have another name.
_COMPLEX_NAMES = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}

_registering = threading.Lock()


def register() -> None:
    """Make the kernels known to the engine; needed before a program that calls one is loaded."""
    with _registering:
        register_once()


@functools.cache
def register_once() -> None:
    """A third of a second: the kernels take LAPACK's functions from SciPy."""
    from jaxlib.cpu import _lapack  # type: ignore[attr-defined]

    _lapack.initialize()
    for name, kernel in _lapack.registrations().items():
        _jax.register_custom_call_target(name, kernel, platform="cpu", api_version=1)


def target(routine: str, dtype: np.dtype) -> str:
    """The kernel of a routine, called by its real name, for a dtype."""
    if dtype.kind == "c":
        routine = _COMPLEX_NAMES.get(routine, routine)
    return f"lapack_{LETTERS[dtype.name]}{routine}_ffi"


def char(letter: str) -> str:
    """A letter, as LAPACK's options are given."""
    return f"{ord(letter)} : ui8"


def call_lapack(
    hlo: Builder,
    name: str,
    operands: Sequence[Value],
    out_avals: Sequence[ShapedArray],
    batch: int,
    aliases: dict[int, int] | None = None,
    **options: str,
) -> list[Value]:
    """Call the kernel `name`, which loops over the first `batch` axes of each value.

    Matrices are passed column by column; as they lie row by row, the transpose of a matrix is what
    costs nothing to pass. `aliases` says which result may take the buffer of which operand.
    """
    if hlo.platform != "cpu":
        raise NotImplementedError(
            f"{name}: is computed by LAPACK, on CPU alone; got platform {hlo.platform}."
        )
    register()

    def layouts(avals: Sequence[ShapedArray]) -> str:
        return f"[{', '.join(layout(a.ndim, batch) for a in avals)}]"

    alone = len(out_avals) == 1
    shared = ", ".join(
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{'' if alone else out}], "
        f"operand_index = {operand}, operand_tuple_indices = []>"
        for out, operand in (aliases or {}).items()
    )
    return hlo.custom_call(
        name,
        operands,
        out_avals,
        "{" + ", ".join(f"{k} = {v}" for k, v in options.items()) + "}",
        operand_layouts=layouts([v.aval for v in operands]),
        result_layouts=layouts(out_avals),
        output_operand_aliases=f"[{shared}]",
    )


def layout(rank: int, batch: int) -> str:
    """The order of axes in memory, the fastest first."""
    axes = list(reversed(range(rank)))
    if rank == batch + 2:
        axes[:2] = axes[1::-1]
    return f"dense<{axes if axes else ''}> : tensor<{rank}xindex>"
