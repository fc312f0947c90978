"""cpu/transforms.py: the kernel of short transforms, and which are computed in rows."""

import numpy as np
import pytest
import scipy.fft

import weft
import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, NO_KERNELS, OVER_MESH, show_prepared
from weft import ShapeDtypeStruct, lax
from weft.cpu.kernels import load_kernels


@pytest.mark.parametrize("target", [KERNELS, NO_KERNELS])
def test_long_transforms_are_those_of_rows(target):
    transform = lambda x: lax.fft(x, "fft", x.shape)
    count = lambda n, dtype="complex64", target=target: show_prepared(
        transform, ShapeDtypeStruct((n,), dtype), target=target
    ).count("= fft[")
    assert count(200_000) == 2
    assert count(200_000, target=OVER_MESH) == 1
    assert count(480 * 512) == 2  # only the rows have multiples of 512 points
    assert count(100_000) == count(1 << 18) == count(1 << 20) == count(200_003) == 1


LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 14, 16, 30, 35, 49, 64, 105, 125, 343, 1000, 2187]


@pytest.mark.skipif(bool(load_kernels()), reason="there are no kernels")
@pytest.mark.sample(one_in=5)
@pytest.mark.parametrize("n", LENGTHS)
def test_short_transforms_are_calls(n):
    """Each kind, both precisions, real and complex values, beside SciPy in long doubles."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((4096 // n if n > 999 else 3, n))
    z = x + 1j * rng.standard_normal(x.shape)
    half = z[:, : n // 2 + 1]
    given = {"fft": (x, z), "ifft": (x, z), "rfft": (x,), "irfft": (half, half.real)}
    for name, arrays in given.items():
        size = {"n": n} if name == "irfft" else {}
        fun = weft.jit(lambda x, f=getattr(jnp.fft, name), size=size: f(x, **size))
        for a in arrays:
            want = getattr(scipy.fft, name)(a.astype("g" if name == "rfft" else "G"), **size)
            for dtype in ("fF", "dD"):
                with weft.enable_x64(dtype == "dD"):
                    b = a.astype(dtype[a.dtype == "D"])
                    assert "weft_fft" in fun.lower(b).as_text()
                    error = np.linalg.norm(np.asarray(fun(b)) - want) / np.linalg.norm(want)
                    assert error <= 3 * np.finfo(b.dtype).eps, (name, b.dtype, error)


def test_which_transforms_are_calls():
    """A prime factor above 7, several axes, many points and other targets are XLA's."""

    def count(shape, lengths, kind="fft", target=KERNELS):
        dtype = "float32" if kind == "rfft" else "complex64"
        show = show_prepared(
            lambda x: lax.fft(x, kind, lengths), ShapeDtypeStruct(shape, dtype), target=target
        )
        return show.count("weft_fft")

    assert count((1000,), (1000,)) == count((4, 1000), (1000,), "rfft") == 1
    assert not count((1000,), (1000,), target=NO_KERNELS)
    assert not count((1001,), (1001,))
    assert not count((5, 1000), (1000,)) and not count((0, 8), (8,))
    assert not count((8, 8), (8, 8))


@pytest.mark.skipif(bool(load_kernels()), reason="there are no kernels")
def test_what_is_not_finite_spreads_as_in_numpy():
    x = np.zeros((3, 60), np.float32)
    x[0, 7], x[1, 3] = np.nan, np.inf
    for name in ("fft", "ifft", "rfft"):
        found = np.asarray(weft.jit(getattr(jnp.fft, name))(x))
        assert np.isnan(found[0]).all() and not np.isfinite(found[1]).any() and not found[2].any()
