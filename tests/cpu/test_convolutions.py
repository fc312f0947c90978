"""Convolutions by the kernel, against loops; where it is not built, XLA's own."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, NO_KERNELS, OVER_MESH, expect, show_prepared
from tests.primitives.cases_conv import loops
from weft import lax
from weft.cpu import convolutions, kernels
from weft.options import config
from weft.primitives.conv import conv_dimension_numbers, conv_general_dilated

NATIVE = [  # (lhs, rhs, strides, padding, dilation, numbers): NHWC and HWIO, except for some
    ((2, 9, 11, 5), (3, 3, 5, 9), (1, 1), ((1, 1), (1, 1)), (1, 1), None),
    ((1, 17, 16, 4), (5, 2, 4, 37), (2, 3), ((3, 0), (0, 4)), (1, 2), None),  # panels, a tail
    ((3, 20, 7, 3), (1, 1, 3, 16), (1, 1), ((0, 0), (0, 0)), (1, 1), None),
    ((2, 12, 12, 8), (3, 3, 8, 8), (1, 2), ((-1, 2), (2, -3)), (2, 1), None),  # cut
    ((2, 6, 10, 9), (7, 6, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), ("NCHW", "OIHW", "NCHW")),
    ((40, 40, 2, 3), (2, 9, 12, 3), (2, 2), ((2, 2), (9, 9)), (1, 1), ("HWCN", "IHWO", "HWNC")),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row", range(len(NATIVE)))
def test_the_kernel_convolves(row, dtype, monkeypatch, rng):
    lhs, rhs, strides, padding, dilation, numbers = NATIVE[row]
    for limit in ("WORK", "USES", "INPUTS", "OUTPUTS"):
        monkeypatch.setattr(convolutions, f"MIN_{limit}", 0)
    numbers = conv_dimension_numbers(lhs, rhs, numbers or ("NHWC", "HWIO", "NHWC"))
    args = {"window_strides": strides, "padding": padding, "rhs_dilation": dilation}
    f = lambda x, k: conv_general_dilated(x, k, **args, dimension_numbers=numbers)
    with config.scope(enable_x64=True, native=True):
        x, k = (rng.normal(size=shape).astype(dtype) for shape in (lhs, rhs))
        ct = rng.normal(size=weft.eval_shape(f, x, k).shape).astype(dtype)
        both = weft.jit(lambda x, k, ct: (f(x, k), weft.vjp(f, x, k)[1](ct)))
        called = both.lower(x, k, ct).as_text().count("weft_conv")
        y, (_, slope) = both(x, k, ct)
    options = dict(lhs_dilation=(1, 1), dimension_numbers=numbers)
    want = loops(x.astype(np.float64), k.astype(np.float64), **args, **options)
    close = functools.partial(np.testing.assert_allclose, rtol=0)
    close(y, want, atol=1e-4 if dtype == np.float32 else 1e-12)
    step = rng.normal(size=rhs)  # <ct, conv(x, step)> = <slope, step>
    moved = np.vdot(ct, loops(x.astype(np.float64), step, **args, **options))
    close(np.vdot(slope, step), moved, atol=1e-3 if dtype == np.float32 else 1e-11)
    assert called >= (0 if kernels.load_kernels() else 2)


def test_what_the_kernel_does_not_convolve():
    ones = [(1, 1)] * 2
    f = lambda x, k, **options: conv_general_dilated(x, k, (1, 1), ones, **options)
    text = lambda *args, **options: weft.jit(functools.partial(f, **options)).lower(*args).as_text()
    x, k = np.ones((4, 16, 32, 32), np.float32), np.ones((16, 16, 3, 3), np.float32)
    with config.scope(native=True):
        assert ("weft_conv" in text(x, k)) == (not kernels.load_kernels())
        assert "weft_conv" not in text(x[:1, :, :15, :15], k)  # too little to do
        assert "weft_conv" not in text(x, k[:, :1], feature_group_count=16)
        assert "weft_conv" not in text(x, k, lhs_dilation=(2, 1))
        assert "weft_conv" not in text(x.astype(np.float16), k.astype(np.float16))
    with config.scope(native=False):
        assert "weft_conv" not in text(x, k)


def convolve(x, k, **options):
    return lax.conv_general_dilated(x, k, (1, 1), "VALID", **options)


@pytest.mark.parametrize("target", [NO_KERNELS, OVER_MESH], ids=["no kernels", "over a mesh"])
def test_features_are_put_last_unless_they_are(target):
    x, k = jnp.ones((2, 3, 9, 9)), jnp.ones((4, 3, 2, 2))
    text = show_prepared(convolve, x, k, target=target)
    assert "lower_features_last" in text and "conv_general_dilated" not in text
    last = lambda x, k: convolve(x, k, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    text = show_prepared(last, jnp.ones((2, 9, 9, 3)), jnp.ones((2, 2, 3, 4)), target=target)
    assert "conv_general_dilated" in text and "formula" not in text


def test_the_kernel_takes_features_last():
    x, k = jnp.ones((4, 32, 32, 16)), jnp.ones((3, 3, 16, 16))
    last = lambda x, k: convolve(x, k, dimension_numbers=("NHWC", "HWIO", "NHWC"))
    expect(
        show_prepared(last, x, k),
        """
        { lambda ; a:f32[4,32,32,16] b:f32[3,3,16,16]. let
            c:f32[4,30,30,16] = cpu_call[
              dilation=array([1, 1])
              is_derivative=False
              kernel=weft_conv
              low=array([0, 0])
              stride=array([1, 1])
            ] a b
          in (c,) }
        """,
    )


def test_complex_arrays_are_convolved_by_three_convolutions():
    x, k = jnp.ones((2, 3, 9, 9), "complex64"), jnp.ones((4, 3, 2, 2), "complex64")
    for target in (KERNELS, NO_KERNELS, OVER_MESH):
        assert show_prepared(convolve, x, k, target=target).count("lower_features_last") == 3


def test_nothing_is_convolved_where_there_is_nothing():
    x, k = jnp.ones((0, 3, 9, 9)), jnp.ones((4, 3, 2, 2))
    text = show_prepared(convolve, x, k, target=OVER_MESH)
    assert "conv" not in text and "broadcast_in_dim" in text
