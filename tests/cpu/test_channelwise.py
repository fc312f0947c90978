"""Convolutions of one channel are written in three ways; each against SciPy, with derivatives."""

import numpy as np
import pytest
from scipy import signal

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, show_prepared
from weft import lax
from weft.cpu.kernels import load_kernels

# (shape of the operand, of the kernel, the operations of the program)
WAYS = {
    "slices": [((70,), (7,)), ((12, 10), (4, 3)), ((5, 6, 7), (2, 3, 4)), ((5,), (9,))],
    "blocks": [((900,), (70,)), ((700,), (600,)), ((40, 30), (9, 11)), ((40, 30), (11, 9))],
    "plain": [((60,), (20,))],
}
NUMBERS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def full(x, k):
    """The convolution at all places where x and k overlap."""
    rank = x.ndim
    k = lax.rev(k, range(rank))[..., None, None]
    padding = [(n - 1, n - 1) for n in k.shape[:rank]]
    out = lax.conv_general_dilated(
        x[None, ..., None], k, (1,) * rank, padding, dimension_numbers=NUMBERS[rank]
    )
    return out[0, ..., 0]


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize(
    ("way", "shapes"), [(w, s) for w, cases in WAYS.items() for s in cases], ids=str
)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_values_and_derivatives(way, shapes, dtype, rng):
    def draw(shape):
        x = rng.standard_normal(shape)
        return (x + 1j * rng.standard_normal(shape) if dtype == np.complex64 else x).astype(dtype)

    x, k = map(draw, shapes)
    f = weft.jit(full)
    text = f.lower(x, k).as_text()
    assert ("stablehlo.case" in text) == (way == "blocks")
    assert ("stablehlo.convolution" in text) == (way != "slices")
    y, vjp = weft.vjp(f, x, k)
    want = signal.convolve(x, k, method="direct")
    np.testing.assert_allclose(y, want, atol=1e-5 * np.abs(want).max())
    ct = draw(want.shape)
    for got, other, size in zip(vjp(ct), (k, x), shapes, strict=True):
        flipped = np.flip(other)
        want = signal.fftconvolve(ct, flipped)
        start = [n - 1 for n in other.shape]
        want = want[tuple(slice(a, a + n) for a, n in zip(start, size, strict=True))]
        np.testing.assert_allclose(got, want, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("batch", [1, 3])
def test_few_results_of_large_kernels(batch, rng):
    x = rng.standard_normal((batch, 120, 90)).astype(np.float32)
    k = rng.standard_normal((118, 89)).astype(np.float32)

    def valid(x, k):
        ones = dict(window_strides=(1, 1), padding="VALID", dimension_numbers=NUMBERS[2])
        return lax.conv_general_dilated(x[..., None], k[..., None, None], **ones)[..., 0]

    text = weft.jit(valid).lower(x, k).as_text()
    assert "dot_general" in text and "case" not in text and "stablehlo.convolution" not in text
    want = [signal.correlate(y, k, mode="valid", method="direct") for y in x]
    np.testing.assert_allclose(weft.jit(valid)(x, k), want, atol=2e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_blocks_do_not_spread_what_is_not_finite(bad, rng):
    x, k = rng.standard_normal(900).astype(np.float32), np.ones(70, np.float32)
    x[300] = bad
    got = np.asarray(weft.jit(full)(x, k))
    np.testing.assert_allclose(got, np.convolve(x, k), atol=1e-4)
    assert np.isfinite(got[:300]).all()
    assert np.isfinite(got[370:]).all()


@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
@pytest.mark.parametrize("dilations", [((1, 1), (1, 1)), ((2, 1), (1, 2))])
def test_a_kernel_for_each_feature(strides, dilations, rng):
    x = rng.standard_normal((2, 9, 8, 5)).astype(np.float32)
    k = rng.standard_normal((3, 2, 1, 5)).astype(np.float32)

    def conv(x, k, groups):
        return lax.conv_general_dilated(
            x, k, strides, [(1, 1), (-1, 2)], *dilations, NUMBERS[2], groups
        )

    each = [conv(x[..., i : i + 1], k[..., i : i + 1], 1) for i in range(5)]
    got = weft.jit(conv, static_argnums=2)(x, k, 5)
    np.testing.assert_allclose(got, np.concatenate(each, -1), atol=1e-5)
    alike = [  # as one of five channels; the others are zero
        conv(x * (np.arange(5) == i), np.where(np.eye(5)[i][:, None], k[..., i : i + 1], 0), 1)
        for i in range(5)
    ]
    np.testing.assert_allclose(got, np.concatenate(alike, -1), atol=1e-5)
    ct = rng.standard_normal(got.shape).astype(np.float32)
    back = weft.jit(lambda x, k: weft.vjp(lambda x, k: conv(x, k, 5), x, k)[1](ct))(x, k)
    for i in range(5):
        one = slice(i, i + 1)
        _, vjp = weft.vjp(lambda x, k: conv(x, k, 1), x[..., one], k[..., one])
        for whole, part in zip(back, vjp(ct[..., one]), strict=True):
            np.testing.assert_allclose(whole[..., one], part, atol=2e-5)


def test_many_batches_under_vmap(rng):
    xs = rng.standard_normal((3, 2, 200)).astype(np.float32)
    ks = rng.standard_normal((3, 300)).astype(np.float32)
    got = weft.jit(weft.vmap(lambda x, k: weft.vmap(full, (0, None))(x, k)))(xs, ks)
    want = [[np.convolve(x, k) for x in rows] for rows, k in zip(xs, ks, strict=True)]
    np.testing.assert_allclose(got, want, atol=1e-4)
    got = weft.jit(weft.vmap(full, (0, None)))(xs[0], ks[0])
    np.testing.assert_allclose(got, want[0], atol=1e-4)


# (spatial shape, kernel, what else differs): the operations that a convolution is written in
CHOSEN = [
    ((100,), (12,), {}, "12 multiply"), ((100,), (13,), {}, "convolution"),
    ((2600,), (13,), {}, "blocks"), ((80, 80), (8, 8), {}, "64 multiply"),
    ((80, 80), (5, 13), {}, "blocks"), ((4, 4, 4), (1, 1, 1), {}, "convolution"),
    ((131072,), (131041,), {}, "32 dot_general"), ((131103,), (131072,), {}, "blocks"),
    ((140000,), (139969,), {}, "blocks"), ((2097152,), (2097151,), {}, "2 dot_general"),
    ((2097153,), (2097152,), {}, "blocks"), ((5000000,), (5000000,), {}, "1 dot_general"),
    ((2600,), (13,), {"dtype": np.float16}, "convolution"),
    ((100,), (3,), {"dtype": np.float64}, "3 multiply"),
    ((100,), (3,), {"dtype": np.int32}, "convolution"),
    ((5200,), (13,), {"stride": 2}, "convolution"), ((200,), (13,), {"groups": 2}, "13 multiply"),
    ((200,), (64,), {"groups": 2}, "64 multiply"), ((200,), (65,), {"groups": 2}, "convolution"),
    ((70,), (7,), {"parts": 3}, "64 multiply"), ((80,), (10,), {"parts": 3}, "10 multiply"),
    ((70,), (7,), {"batch": 6, "parts": 3}, "7 multiply"), ((0,), (3,), {}, ""),
]  # fmt: skip


def test_what_is_chosen():
    def operations(size, kernel, dtype=np.float32, stride=1, groups=1, parts=1, batch=None):
        rank = len(size)
        fun = weft.jit(
            lambda x, k: lax.conv_general_dilated(
                x,
                k,
                (stride,) * rank,
                [(0, 4 * (0 in size))] * rank,
                dimension_numbers=NUMBERS[rank],
                feature_group_count=groups,
                batch_group_count=parts,
            )
        )
        shapes = (batch or parts, *size, groups), (*kernel, 1, max(groups, parts))
        text = fun.lower(*[weft.ShapeDtypeStruct(s, dtype) for s in shapes]).as_text()
        counts = {w: text.count(f"stablehlo.{w}") for w in ("multiply", "dot_general")}
        if "stablehlo.case" in text:
            return "blocks"
        if "stablehlo.convolution" in text:
            return "convolution"
        return " ".join(f"{n} {w}" for w, n in counts.items() if n)

    with weft.config.scope(hints=False, native=False):
        found = [operations(*row, **given) for *row, given, _ in CHOSEN]
    assert found == [row[-1] for row in CHOSEN]


LAYOUTS = {
    "first": ("NCHW", "OIHW", "NCHW"), "last": ("NHWC", "HWIO", "NHWC"),
    "mixed": ("NHWC", "OIHW", "NCHW"), "one axis": ("NCW", "OIW", "NCW"),
    "one axis, last": ("NWC", "WIO", "NWC"),
}  # fmt: skip


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("channels", "size", "given"),
    [
        (3, 21, {"padding": "SAME"}),
        (20, 9, {"window_strides": 2, "padding": 2}),
        (16, 40, {"rhs_dilation": 2, "padding": 1}),
        (2, 9, {"window_strides": 3, "rhs_dilation": 2, "padding": -1}),
    ],
)
@pytest.mark.parametrize("x64", [False, True])
def test_what_moves_kernels_of_each_channel(layout, channels, size, given, x64, rng):
    """The kernel of native/depthwise.cc, against XLA's sums of products of slices."""
    numbers, dtype = LAYOUTS[layout], np.float64 if x64 else np.float32
    axes = len(numbers[0]) - 2
    shape = {"N": 5, "C": channels, "O": channels, "I": 1, "H": size, "W": size + 1}
    x = rng.standard_normal([shape[a] for a in numbers[0]]).astype(dtype)
    shape |= {"H": 3, "W": 2}
    k = rng.standard_normal([shape[a] for a in numbers[1]]).astype(dtype)
    given = {"window_strides": 1, **given}
    each = lambda name, n: n if n == "SAME" else [(n, n) if name == "padding" else n] * axes
    params = {name: each(name, n) for name, n in given.items()}
    params |= {"feature_group_count": channels, "dimension_numbers": numbers}
    with weft.enable_x64(x64):
        y = lambda k: lax.conv_general_dilated(x, k, **params)
        ct = rng.standard_normal(weft.eval_shape(y, k).shape).astype(dtype)
        pull = weft.jit(lambda k, ct: weft.vjp(y, k)[1](ct)[0])
        got = pull(k, ct)
        assert ("weft_depthwise" in pull.lower(k, ct).as_text()) == (not load_kernels())
        with weft.config.scope(native=False):
            want = pull(k, ct)
            assert "weft_depthwise" not in pull.lower(k, ct).as_text()
        assert got.dtype == want.dtype == dtype
        np.testing.assert_allclose(
            got, want, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-4
        )
        twice = weft.vmap(lambda ct: pull(k, ct))(np.stack([ct, 2 * ct]))
        np.testing.assert_allclose(twice[1], 2 * want, rtol=1e-3, atol=1e-3)


def test_values_decide_between_blocks_and_the_convolution():
    text = show_prepared(full, jnp.ones(900), jnp.ones(70), target=NO_KERNELS)
    assert text.count("cond[") == 1 and text.count("lower_features_last") == 1
    assert "is_finite" in text
