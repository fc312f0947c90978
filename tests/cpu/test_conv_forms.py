"""Convolutions that are written as others, each against the loops that define one."""

import re

import numpy as np
import pytest

import weft
from tests.primitives.cases_conv import loops
from weft import lax
from weft.primitives import conv

# shape and kernel (batch, feature, spatial), what else differs, the operations that it is made of
CASES = {
    "volumes": [(2, 3, 6, 5, 7), (4, 3, 3, 2, 3), {"window_strides": (2, 1, 1)}, "convolution"],
    "long windows": [(2, 3, 9, 9, 9), (4, 3, 7, 6, 8), {"rhs_dilation": (1, 1, 1)}, "dot_general"],
    "volumes in groups": [(1, 4, 5, 5, 5), (6, 2, 3, 3, 3),
        {"feature_group_count": 2}, "dot_general"],
    "wide groups": [(1, 16, 6, 6), (4, 8, 3, 3), {"feature_group_count": 2}, "convolution"],
    "groups of batches": [(4, 8, 6, 6), (6, 8, 2, 3), {"batch_group_count": 2}, "convolution"],
    "few windows": [(3, 2, 9, 8), (4, 2, 8, 6), {"padding": ((0, 0), (1, 1))}, "dot_general"],
    "phases": [(3, 2, 5, 4), (4, 2, 10, 8),
        {"lhs_dilation": (2, 3), "padding": ((2, 1), (-1, 0))}, "dot_general"],
    "a negative padding": [(2, 3, 6, 5), (4, 3, 2, 2),
        {"padding": ((0, 0), (-1, 1))}, "convolution"],
    "four axes": [(1, 2, 4, 4, 4, 4), (2, 2, 2, 2, 3, 2), {}, "dot_general"],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name, rng):
    shape, kernel, given, made_of = CASES[name]
    rank = len(shape) - 2
    params = dict.fromkeys(("window_strides", "lhs_dilation", "rhs_dilation"), (1,) * rank)
    params |= {"padding": ((0, 0),) * rank, **given}
    order = (0, *range(2, rank + 2), 1)  # channels last, as users have them
    x, k = (rng.standard_normal(s) for s in (shape, kernel))
    numbers = conv.conv_dimension_numbers(shape, kernel, None)
    want = loops(x, k, dimension_numbers=numbers, **params)
    last = conv.ConvDimensionNumbers(*[tuple(np.argsort(order).tolist())] * 3)
    f = weft.jit(lambda x, k: lax.conv_general_dilated(x, k, dimension_numbers=last, **params))
    x, k = (np.transpose(a, order).astype(np.float32) for a in (x, k))
    text = f.lower(x, k).as_text()
    assert ("stablehlo.dot_general" in text) == (made_of == "dot_general")
    assert ("stablehlo.convolution" in text) == (made_of == "convolution")
    assert "batch_group_count = 2" not in text
    assert "feature_group_count = 2" not in text
    np.testing.assert_allclose(
        np.transpose(f(x, k), np.argsort(order)), want, atol=1e-6 * np.abs(want).max()
    )


@pytest.mark.parametrize("layout", [("NCHW", "OIHW"), ("NHWC", "HWIO"), ("CHWN", "IHWO")])
@pytest.mark.parametrize("steps", [((1, 1), (1, 1)), ((2, 1), (1, 2))])
def test_windows_are_copied_by_one_kernel(layout, steps, rng):
    """XLA would compile a loop for each slice that is a window."""
    axes, kernel = layout
    sizes = {"N": 3, "C": 2, "H": 11, "W": 9, "O": 4, "I": 2}
    x = rng.standard_normal([sizes[a] for a in axes]).astype(np.float32)
    sizes |= {"H": 7 // steps[1][0], "W": 7 // steps[1][1]}
    k = rng.standard_normal([sizes[a] for a in kernel]).astype(np.float32)

    def convolve(x, k):
        strides, dilation = steps
        return lax.conv_general_dilated(
            x, k, strides, "VALID", rhs_dilation=dilation, dimension_numbers=(axes, kernel, axes)
        )

    f = weft.jit(convolve)
    text = f.lower(x, k).as_text()
    assert text.count("weft_view") == 1 and "stablehlo.slice" not in text
    with weft.config.scope(native=False):
        by_slices = weft.jit(lambda x, k: convolve(x, k))
        assert "stablehlo.slice" in by_slices.lower(x, k).as_text()
        np.testing.assert_allclose(f(x, k), by_slices(x, k), rtol=1e-5, atol=1e-5)


def test_of_nothing():
    x, k = np.ones((0, 3, 5), np.float32), np.ones((4, 3, 2), np.float32)  # groups: XLA fails
    f = weft.jit(lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", batch_group_count=2))
    assert f(x, k).shape == (0, 4, 5) and "convolution" not in f.lower(x, k).as_text()
    assert not f(np.ones((4, 0, 5), np.float32), np.ones((4, 0, 2), np.float32)).any()


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("layout", [("NCHW", "OIHW"), ("CNHW", "IOHW"), ("NHCW", "HWIO")])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_windows_of_one_element(layout, strides, rng):
    axes, kernel = layout
    sizes = {"N": 8, "C": 96, "H": 41, "W": 38, "O": 32, "I": 96}
    x = rng.standard_normal([sizes[a] for a in axes]).astype(np.float32)
    sizes |= {"H": 1, "W": 1}
    k = rng.standard_normal([sizes[a] for a in kernel]).astype(np.float32)
    f = weft.jit(
        lambda x, k: lax.conv_general_dilated(
            x, k, strides, "VALID", dimension_numbers=(axes, kernel, axes)
        )
    )
    count = lambda f: len(re.findall("weft_dot|stablehlo.dot_general", f.lower(x, k).as_text()))
    assert count(f) == 1
    spec = f"{axes},{kernel.replace('H', 'a').replace('W', 'b')}->{axes.replace('C', 'O')}"
    spec = spec.replace("I", "C")

    def want(x, k):
        cut = [slice(None, None, dict(zip("HW", strides, strict=True)).get(a)) for a in axes]
        return np.einsum(spec, np.float64(x[tuple(cut)]), k, optimize=True)

    np.testing.assert_allclose(f(x, k), want(x, k), atol=1e-4)
    g = weft.jit(weft.grad(lambda x, k: (f(x, k) ** 2).sum(), (0, 1)))
    dx, dk = g(x, k)
    assert count(g) == (3 if strides == (1, 1) else 1)
    moved = rng.standard_normal(k.shape).astype(np.float32)
    slope = 2 * (want(x, k) * want(x, moved)).sum()
    np.testing.assert_allclose((np.float64(dk) * moved).sum(), slope, rtol=1e-4)
    np.testing.assert_allclose((np.float64(dx) * x).sum(), 2 * (want(x, k) ** 2).sum(), rtol=1e-5)
