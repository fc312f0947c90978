"""Rows for primitives/fft.py. Errors and the conversions of lax.fft: tests/numpy/test_fft.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.primitives.cases import Case
from weft.primitives.fft import FftType, fft_p

REFERENCES = {
    FftType.FFT: np.fft.fftn,
    FftType.IFFT: np.fft.ifftn,
    FftType.RFFT: np.fft.rfftn,
    FftType.IRFFT: np.fft.irfftn,
}


def row(kind: FftType, shape: tuple[int, ...], lengths: tuple[int, ...], **more: Any) -> Case:
    """A row for a transform of the last axes of an array of this shape."""

    def reference(x: np.ndarray) -> np.ndarray:
        return REFERENCES[kind](x, s=lengths, axes=range(-len(lengths), 0))

    return Case(
        fft_p,
        [shape],
        reference,
        {"fft_type": kind, "fft_lengths": lengths},
        dtypes="f32 f64" if kind == FftType.RFFT else "c64 c128",
        tol=16,
        weak=False,
        label=f"{kind.name} {shape} {lengths}",
        **more,
    )


CASES = [
    row(FftType.FFT, (3, 6), (6,), also=[((0, 6),), ((6,),)]),
    row(FftType.FFT, (5, 6), (5, 6)),
    row(FftType.IFFT, (3, 7), (7,)),
    row(FftType.IFFT, (2, 3, 4, 5), (3, 4, 5)),
    row(FftType.RFFT, (3, 6), (6,), also=[((0, 6),)]),
    row(FftType.RFFT, (7,), (7,)),
    row(FftType.RFFT, (2, 3, 4), (3, 4)),
    row(FftType.RFFT, (2, 3, 5), (2, 3, 5)),
    row(FftType.IRFFT, (3, 4), (6,), also=[((0, 4),)]),
    row(FftType.IRFFT, (4,), (7,)),
    row(FftType.IRFFT, (2, 3, 3), (3, 4)),
    row(FftType.IRFFT, (2, 3, 3), (2, 3, 5)),
]
