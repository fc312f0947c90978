"""Floating-point operations that XLA's cost analysis counts in another way than books do.

XLA counts a product of complex matrices like one of real matrices. It counts a Fourier transform as
8 N operations times the product of the logarithms of its lengths. Books count 5 N log2(N) for N
complex numbers along all axes, and half of that for real ones: Van Loan, "Computational Frameworks
for the Fast Fourier Transform" (1992), section 1.4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

# `re` compiles a pattern at its first use and keeps it, so `import weft` does not.
_DEFINED = r"%?([^\s=]+) = [a-z]+\d+\[([\d,]*)\]"
_PRODUCT = (
    r"= c(?:64|128)\[([\d,]*)\]\S* dot\((?:\S+\[\S+ )?%?([^\s,)]+).*lhs_contracting_dims={([\d,]*)}"
)
_TRANSFORM = r"= [a-z]+\d+\[([\d,]*)\]\S* fft\(.*fft_type=(\w+), fft_length={([\d,]*)}"


def correct_flops(text: str) -> float:
    """Return the operations by books less those by XLA, of a module's text.

    Args:
      text: HLO as XLA prints it, an instruction a line. Each instruction counts once.

    >>> from weft.primitives.hlo_work import correct_flops
    >>> lowered = weft.jit(lambda x: x @ x).lower(jnp.ones((10, 10), "complex64"))
    >>> correct_flops(lowered.compiler_ir("hlo").as_hlo_text())  # 8 * 10**3 - 2 * 10**3
    6000.0
    """
    total = 0.0
    if " dot(" in text and re.search(_PRODUCT, text):
        shapes = {name: read_sizes(dims) for name, dims in re.findall(_DEFINED, text)}
        for dims, left, axes in re.findall(_PRODUCT, text):
            contracted = [shapes[left][axis] for axis in read_sizes(axes)]
            total += 6.0 * math.prod(read_sizes(dims)) * math.prod(contracted)
    if " fft(" in text:
        for dims, kind, lengths in re.findall(_TRANSFORM, text):
            total += correct_transform(read_sizes(dims), kind, read_sizes(lengths))
    return total


def correct_transform(shape: Sequence[int], kind: str, lengths: Sequence[int]) -> float:
    """Return the operations of a Fourier transform by books less those by XLA.

    `shape` is the shape of its result.
    """
    batch = math.prod(shape[: len(shape) - len(lengths)])
    size = batch * math.prod(lengths)
    if not size:
        return 0.0
    read = size // lengths[-1] * (lengths[-1] // 2 + 1) if kind == "IRFFT" else size
    by_xla = 8.0 * read * math.prod(n.bit_length() - 1 for n in lengths)
    half = 1.0 if kind in ("FFT", "IFFT") else 0.5
    return half * 5.0 * size * math.log2(math.prod(lengths)) - by_xla


def read_sizes(text: str) -> tuple[int, ...]:
    """Return the numbers in a list of HLO."""
    return tuple(map(int, filter(None, text.split(","))))
