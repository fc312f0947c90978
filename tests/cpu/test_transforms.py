"""cpu/transforms.py: which transforms are computed in rows; values: primitives/test_fft.py."""

import pytest

from tests.cpu.prepared import KERNELS, NO_KERNELS, OVER_MESH, show_prepared
from weft import ShapeDtypeStruct, lax


@pytest.mark.parametrize("target", [KERNELS, NO_KERNELS])
def test_long_transforms_are_those_of_rows(target):
    transform = lambda x: lax.fft(x, "fft", x.shape)
    count = lambda n, dtype="complex64", target=target: show_prepared(
        transform, ShapeDtypeStruct((n,), dtype), target=target
    ).count("= fft[")
    assert count(200_000) == 2
    assert count(200_000, target=OVER_MESH) == 1
    assert count(100_000) == count(1 << 20) == count(200_003) == 1
