"""Functions made of convolutions, paddings, axes, texts, errors; its rules: cases_conv."""

from __future__ import annotations

import itertools
import re

import ml_dtypes
import numpy as np
import pytest
import scipy.signal

import weft
from tests.primitives.cases_conv import loops, padded, spread
from weft.errors import DtypeError, ShapeError
from weft.options import config
from weft.primitives.conv import (
    ConvDimensionNumbers,
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_general_dilated_local,
    conv_general_dilated_patches,
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose,
    conv_transpose_shape_tuple,
    conv_with_general_padding,
)
from weft.primitives.layout import reduce_sum

LAST = ("NHWC", "HWIO", "NHWC")


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def total(x):
    return reduce_sum(x, tuple(range(x.ndim)))


class TestValues:
    def test_scipy(self, rng):
        x, k = numbers(rng, 7, 8), numbers(rng, 3, 2)
        for padding, mode in ((((0, 0), (0, 0)), "valid"), (((2, 2), (1, 1)), "full")):
            out = conv_general_dilated(x[None, None], k[None, None], (1, 1), padding)
            close(np.asarray(out)[0, 0], scipy.signal.correlate2d(x, k, mode))

    def test_scipy_complex(self, rng):
        x = (numbers(rng, 9) + 1j * numbers(rng, 9)).astype(np.complex64)
        k = (numbers(rng, 4) + 1j * numbers(rng, 4)).astype(np.complex64)
        out = conv(x[None, None], k[None, None], (1,), "VALID")
        close(np.asarray(out)[0, 0], scipy.signal.correlate(x, k.conj(), "valid"))

    def test_resample(self, rng):
        """Dilation of lhs is upsampling, a stride is downsampling."""
        x, k = numbers(rng, 6), numbers(rng, 3)
        out = conv_with_general_padding(
            x[None, None], k[::-1][None, None], (3,), ((2, 2),), (2,), None
        )
        close(np.asarray(out)[0, 0], scipy.signal.upfirdn(k, x, up=2, down=3))

    @pytest.mark.parametrize(("dtype", "preferred"), [("int8", "int32"), ("bfloat16", "float32")])
    def test_preferred(self, dtype, preferred):
        x, k = np.full((1, 2, 4), 100, dtype), np.full((1, 2, 3), 3, dtype)
        out = conv(x, k, (1,), "VALID", preferred_element_type=preferred)
        assert out.dtype == preferred
        np.testing.assert_array_equal(out, np.full((1, 1, 2), 1800))

    def test_preferred_derivative(self, rng):
        x, k = (numbers(rng, 1, 2, 4), numbers(rng, 3, 2, 3))
        half = ml_dtypes.bfloat16

        def loss(x, k, **kwargs):
            return total(conv(x, k, (1,), "SAME", **kwargs))

        grads = weft.grad(lambda x, k: loss(x, k, preferred_element_type="float32"), (0, 1))(
            x.astype(half), k.astype(half)
        )
        for got, want in zip(grads, weft.grad(loss, (0, 1))(x, k), strict=True):
            assert got.dtype == half
            np.testing.assert_allclose(
                np.asarray(got).astype(np.float32), want, rtol=0.05, atol=0.05
            )


class TestPadding:
    @pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "same"])
    def test_same(self, padding):
        """The odd zero of the padding is at the end, or for SAME_LOWER at the start."""
        for n, k, s, d in itertools.product((1, 5, 6), (1, 2, 3), (1, 2, 3), (1, 2)):
            x = np.zeros((1, 1, n), np.float32)
            (eqn,) = weft.make_jaxpr(
                lambda x, k, s=s, d=d: conv_general_dilated(x, k, (s,), padding, None, (d,))
            )(x, np.zeros((1, 1, k), np.float32)).eqns
            assert eqn.outvars[0].aval.shape[2] == -(-n // s)
            ((lo, hi),) = eqn.params["padding"]
            assert (lo - hi if padding == "SAME_LOWER" else hi - lo) in (0, 1)

    def test_explicit(self, rng):
        x, k = numbers(rng, 2, 3, 6), numbers(rng, 4, 3, 2)
        numbers3 = conv_dimension_numbers(x.shape, k.shape, None)
        for pads in ([[1, 2]], [(-1, 0)], ((0, -3),)):
            out = conv_with_general_padding(x, k, (1,), pads, None, None)
            close(out, loops(x, k, (1,), pads, (1,), (1,), numbers3))

    def test_errors(self, rng):
        x, k = numbers(rng, 2, 3, 6), numbers(rng, 4, 3, 2)
        with pytest.raises(ShapeError, match=r"padding must be 'SAME', .* got 'HALF'"):
            conv(x, k, (1,), "HALF")
        with pytest.raises(ShapeError, match=r"padding must have a \(low, high\) pair for each"):
            conv_general_dilated(x, k, (1,), [(0, 0), (1, 1)])
        with pytest.raises(ShapeError, match=r"negative padding must not exceed the axis"):
            conv_general_dilated(x, k, (1,), [(-4, -3)])
        with pytest.raises(ShapeError, match=r"padding must be \(low, high\) pairs where lhs_dil"):
            conv_general_dilated(x, k, (1,), "SAME", (2,))


class TestDimensionNumbers:
    def test_forms(self, rng):
        x, k = numbers(rng, 2, 5, 4, 3), numbers(rng, 2, 2, 3, 4)
        named = conv_dimension_numbers(x.shape, k.shape, LAST)
        assert named == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
        assert conv_general_permutations(list(LAST)) == tuple(named)
        want = loops(x, k, (1, 1), ((0, 0),) * 2, (1, 1), (1, 1), named)
        for given in (LAST, list(LAST), named):
            close(conv_general_dilated(x, k, (1, 1), "VALID", dimension_numbers=given), want)

    def test_spatial_axes_follow_the_kernel(self):
        assert conv_general_permutations(("NHWC", "WHIO", "CWNH")) == (
            (0, 3, 2, 1),
            (3, 2, 0, 1),
            (2, 0, 1, 3),
        )

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (("NHWC", "HWIO", "NHWC"), r"must name each of 3 axes once; got \('NHWC'"),
            (ConvDimensionNumbers(*((0, 1, 2, 3),) * 3), r"must name each of 3 axes once"),
            (ConvDimensionNumbers(*((0, 1, 1),) * 3), r"must name each of 3 axes once"),
            (("NHX", "HIO", "NHC"), r"must name N, C and distinct spatial axes; got 'NHX'"),
            (("NHC", "WIO", "NHC"), r"must name the same spatial axes thrice"),
            (((0, 1, 2),) * 3, r"must be None, a ConvDimensionNumbers, or three strings"),
            (3, r"must be None, a ConvDimensionNumbers, or three strings"),
        ],
    )
    def test_errors(self, given, message):
        with pytest.raises(ShapeError, match="conv: .*dimension_numbers " + message):
            conv_dimension_numbers((2, 3, 4), (2, 3, 4), given)


class TestErrors:
    @pytest.mark.parametrize(
        ("kwargs", "message"),
        [
            ({"window_strides": (1, 1)}, r"window_strides must have a positive integer for each"),
            ({"window_strides": (0,)}, r"window_strides must have a positive integer"),
            ({"rhs_dilation": (0,)}, r"rhs_dilation must have a positive integer"),
            ({"lhs_dilation": (1, 1)}, r"lhs_dilation must have a positive integer"),
            ({"feature_group_count": 0}, r"group_count must be positive, and one of them 1"),
            ({"feature_group_count": 2, "batch_group_count": 2}, r"and one of them 1; got 2, 2"),
            ({"feature_group_count": 2}, r"lhs must have as many features as rhs has inputs"),
            ({"batch_group_count": 3}, r"group counts must divide the output features"),
        ],
    )
    def test_numbers(self, rng, kwargs, message):
        x, k = numbers(rng, 2, 4, 8), numbers(rng, 6, 4, 3)
        with pytest.raises(ShapeError, match=message):
            conv_general_dilated(x, k, **{"window_strides": (1,), "padding": "SAME", **kwargs})

    def test_operands(self, rng):
        x, k = numbers(rng, 2, 4, 8), numbers(rng, 6, 4, 3)
        with pytest.raises(DtypeError, match=r"operands must have equal dtypes; got f32\[2,4,8\]"):
            conv(x, k.astype(ml_dtypes.bfloat16), (1,), "SAME")
        with pytest.raises(ShapeError, match=r"lhs and rhs must have equal ranks"):
            conv(x, k[0], (1,), "SAME")
        with pytest.raises(ShapeError, match=r"the window must not be empty"):
            conv(x, k[..., :0], (1,), "VALID")


class TestText:
    def test_jaxpr(self, rng):
        x, k = numbers(rng, 2, 3, 6), numbers(rng, 4, 3, 2)
        text = str(weft.make_jaxpr(lambda x, k: conv(x, k, (2,), "SAME"))(x, k))
        assert re.sub(r"\s+", " ", text) == (
            "{ lambda ; a:f32[2,3,6] b:f32[4,3,2]. let c:f32[2,4,3] = conv_general_dilated[ "
            "batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), "
            "rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=(1,) "
            "out_sharding=None padding=((0, 0),) precision=None preferred_element_type=None "
            "rhs_dilation=(1,) window_strides=(2,) ] a b in (c,) }"
        )

    def test_stablehlo(self, rng):
        x, k = numbers(rng, 2, 8, 9, 4), numbers(rng, 3, 3, 4, 6)

        def fun(x, k):
            return conv_general_dilated(
                x, k, (2, 1), "SAME", None, (1, 2), LAST, precision="highest"
            )

        text = weft.jit(fun).lower(x, k).as_text()
        assert text.count('"stablehlo.') == 1
        assert "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>" in text
        assert "padding = dense<[[0, 1], [2, 2]]> : tensor<2x2xi64>" in text
        assert "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]" in text

    def test_precision_option(self, rng):
        x, k = numbers(rng, 2, 3, 6), numbers(rng, 4, 3, 2)
        with config.scope(default_matmul_precision="high"):
            text = str(weft.make_jaxpr(lambda x, k: conv(x, k, (2,), "SAME"))(x, k))
        assert "precision=(Precision.HIGH, Precision.HIGH)" in text

    def test_a_mapped_batch_is_reshaped_only(self, rng):
        x, k = numbers(rng, 5, 2, 3, 6), numbers(rng, 4, 3, 2)
        mapped = weft.vmap(lambda x, k: conv(x, k, (1,), "SAME"), (0, None))
        names = [e.primitive.name for e in weft.make_jaxpr(mapped)(x, k).eqns]
        assert names == ["reshape", "conv_general_dilated", "reshape"]


class TestNothing:
    @pytest.mark.parametrize(
        ("lhs", "rhs"),
        [((0, 3, 6), (4, 3, 2)), ((2, 3, 6), (0, 3, 2)), ((2, 0, 6), (4, 0, 2)), ((2, 3, 1),) * 2],
    )
    def test_derivative(self, lhs, rhs):
        rhs = (4, 3, 2) if rhs == (2, 3, 1) else rhs
        x, k = np.ones(lhs, np.float32), np.ones(rhs, np.float32)
        gx, gk = weft.grad(lambda x, k: total(conv(x, k, (1,), "VALID")), (0, 1))(x, k)
        np.testing.assert_array_equal(gx, np.zeros(lhs))
        np.testing.assert_array_equal(gk, np.zeros(rhs))

    def test_no_place_for_the_window(self):
        x, k = np.ones((2, 3, 1), np.float32), np.ones((4, 3, 5), np.float32)
        assert conv(x, k, (1,), "VALID").shape == (2, 4, 0)
        assert conv_shape_tuple(x.shape, k.shape, (1,), "VALID") == (2, 4, 0)

    def test_nothing_dilated_is_nothing(self):
        x, k = np.ones((2, 3, 0), np.float32), np.ones((4, 3, 2), np.float32)
        out = conv_general_dilated(x, k, (1,), [(2, 2)], (3,))
        np.testing.assert_array_equal(out, np.zeros((2, 4, 3)))

    def test_mapped_over_nothing(self):
        x, k = np.zeros((0, 2, 3, 6), np.float32), np.ones((4, 3, 2), np.float32)

        def fun(x, k):
            return weft.vmap(lambda x: conv(x, k, (1,), "VALID"))(x)

        assert fun(x, k).shape == (0, 2, 4, 5)
        gx, gk = weft.grad(lambda x, k: total(fun(x, k)), (0, 1))(x, k)
        assert gx.shape == x.shape
        np.testing.assert_array_equal(gk, np.zeros(k.shape))


class TestTranspose:
    @pytest.mark.parametrize("padding", ["SAME", "VALID"])
    @pytest.mark.parametrize(
        ("k", "s", "d"), [(3, 2, 1), (2, 3, 1), (4, 1, 1), (3, 2, 2), (1, 2, 1)]
    )
    def test_is_the_gradient(self, rng, padding, k, s, d):
        """With `transpose_kernel`, it is the gradient of the convolution from large to small."""
        window = (k - 1) * d + 1
        large = 5 * s if padding == "SAME" else 4 * s + max(window, s)
        x, kernel, ct = numbers(rng, 2, large, 3), numbers(rng, k, 3, 4), numbers(rng, 2, 5, 4)
        names = ("NHC", "HIO", "NHC")
        _, pull = weft.vjp(
            lambda x: conv_general_dilated(x, kernel, (s,), padding, None, (d,), names), x
        )
        (want,) = pull(ct)
        out = conv_transpose(ct, kernel, (s,), padding, (d,), transpose_kernel=True)
        close(out, want)
        assert out.shape == x.shape
        if d == 1:
            shape = conv_transpose_shape_tuple(ct.shape, (k, 4, 3), (s,), padding, names)
            assert shape == x.shape

    def test_consistent_padding(self, rng):
        x, kernel = numbers(rng, 2, 8, 3), numbers(rng, 3, 3, 4)
        names, pads = ("NHC", "HIO", "NHC"), ((1, 2),)
        out, pull = weft.vjp(
            lambda x: conv_general_dilated(x, kernel, (2,), pads, dimension_numbers=names), x
        )
        ct = numbers(rng, *out.shape)
        options = {"transpose_kernel": True, "use_consistent_padding": True}
        close(conv_transpose(ct, kernel, (2,), pads, **options), pull(ct)[0])

    def test_explicit(self, rng):
        x, k = numbers(rng, 2, 5, 4, 3), numbers(rng, 3, 2, 3, 4)
        pads = ((1, 2), (0, 1))
        axes = conv_dimension_numbers(x.shape, k.shape, LAST)
        want = loops(x, k, (1, 1), pads, (2, 3), (1, 1), axes)
        close(conv_transpose(x, k, (2, 3), pads), want)
        shape = conv_transpose_shape_tuple(x.shape, k.shape, (2, 3), pads, LAST)
        assert shape == want.shape

    def test_axes_must_be_named_beyond_rank_5(self):
        x = np.ones((1,) * 6, np.float32)
        with pytest.raises(ShapeError, match=r"dimension_numbers must be given for rank 6"):
            conv_transpose(x, x, (1,) * 4, "SAME")


PATCHES = [
    {"window_strides": (1, 1), "padding": ((1, 1), (0, 1))},
    {"window_strides": (2, 1), "padding": ((0, 0), (2, 0)), "rhs_dilation": (1, 2)},
    {"window_strides": (1, 2), "padding": ((0, 1), (1, 1)), "lhs_dilation": (2, 1)},
]


def windows(x, filter_shape, window_strides, padding, lhs_dilation=(1, 1), rhs_dilation=(1, 1)):
    """(n, c, i, j, h, w): what a window at (i, j) sees of x (n, c, h, w)."""
    x = padded(spread(x, lhs_dilation), padding)
    span = [(k - 1) * d + 1 for k, d in zip(filter_shape, rhs_dilation, strict=True)]
    seen = np.lib.stride_tricks.sliding_window_view(x, span, (2, 3))
    (s, t), (d, e) = window_strides, rhs_dilation
    return seen[:, :, ::s, ::t, ::d, ::e]


class TestPatches:
    @pytest.mark.parametrize("kwargs", PATCHES)
    @pytest.mark.parametrize("dtype", ["float32", "int32"])
    def test_values(self, rng, kwargs, dtype):
        x = (10 * numbers(rng, 2, 3, 6, 5)).astype(dtype)
        out = conv_general_dilated_patches(x, (3, 2), **kwargs)
        seen = windows(x, (3, 2), **kwargs)
        n, c, i, j, h, w = seen.shape
        want = seen.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * h * w, i, j)
        assert out.dtype == dtype
        np.testing.assert_array_equal(out, want)

    def test_axes(self, rng):
        """The axes of lhs, of the window (here w before h) and of the result are as named."""
        x = numbers(rng, 5, 2, 6, 3)
        out = conv_general_dilated_patches(
            x, (2, 3), (1, 1), "VALID", dimension_numbers=("WNHC", "WHOI", "CNHW")
        )
        seen = windows(x.transpose(1, 3, 2, 0), (3, 2), (1, 1), ((0, 0), (0, 0)))
        n, c, i, j, h, w = seen.shape
        want = seen.transpose(1, 5, 4, 0, 2, 3).reshape(c * w * h, n, i, j)
        np.testing.assert_array_equal(out, want)


class TestLocal:
    @pytest.mark.parametrize("kwargs", PATCHES)
    def test_values(self, rng, kwargs):
        x = numbers(rng, 2, 3, 6, 5)
        seen = windows(x, (3, 2), **kwargs)
        n, c, i, j, h, w = seen.shape
        k = numbers(rng, 4, c * h * w, i, j)
        want = np.einsum("ncijhw,ochwij->noij", seen, k.reshape(4, c, h, w, i, j))
        close(conv_general_dilated_local(x, k, filter_shape=(3, 2), **kwargs), want)

    def test_axes(self, rng):
        """With the same kernel everywhere it is a convolution."""
        x, k = numbers(rng, 2, 5, 6, 3), numbers(rng, 2, 3, 3, 4)
        want = conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=LAST)
        flat = k.transpose(2, 0, 1, 3).reshape(1, 1, 18, 4)
        rhs = np.broadcast_to(flat, (5, 6, 18, 4))
        out = conv_general_dilated_local(
            x, rhs, (1, 1), "SAME", (2, 3), dimension_numbers=LAST, precision="highest"
        )
        close(out, want)


class TestShapes:
    @pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 2), (-1, 0))])
    def test_agree(self, padding):
        x, k = np.zeros((2, 4, 8, 9), np.float32), np.zeros((6, 4, 3, 2), np.float32)
        out = conv_general_dilated(x, k, (2, 1), padding)
        assert conv_shape_tuple(x.shape, k.shape, (2, 1), padding) == out.shape
        last, kernel = (2, 8, 9, 4), (3, 2, 4, 6)
        shape = conv_general_shape_tuple(last, kernel, (2, 1), padding, LAST)
        assert shape == (2, *out.shape[2:], 6)
        assert all(type(d) is int for d in shape)
        assert conv_shape_tuple(x.shape, k.shape, (2, 1), padding, 2)[0] == 1

    def test_named_tuple(self):
        assert ConvDimensionNumbers._fields == ("lhs_spec", "rhs_spec", "out_spec")


def test_on_cpu_axes_are_in_the_order_of_the_fast_kernel():
    """XLA:CPU brings them into it, but not in branches and loops, which take 30 times as long."""
    x, k = np.ones((1, 2, 5, 5), np.float32), np.ones((3, 2, 3, 3), np.float32)
    for numbers in (("NCHW", "OIHW", "NCHW"), LAST, ("CHWN", "IHWO", "NHWC")):
        args = [a.transpose([names.index(n) for n in spec])
                for a, names, spec in zip((x, k), ("NCHW", "OIHW"), numbers)]  # fmt: skip

        def loss(x, k, numbers=numbers):
            y = conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=numbers)
            return reduce_sum(y * y, (0, 1, 2, 3))

        text = weft.jit(weft.grad(loss, (0, 1))).lower(*args).as_text()
        assert text.count("stablehlo.convolution") == 2  # the derivative in the kernel is a product
        assert text.count("[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]") == 2
