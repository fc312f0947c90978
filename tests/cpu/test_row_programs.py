"""Programs on floats of 16 bits, and small ones of float32, that one kernel does, against NumPy."""

import math
import operator

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import weft
import weft.numpy as jnp
from weft import config, lax, nn
from weft.cpu import groups
from weft.cpu.kernels import load_kernels

pytestmark = pytest.mark.skipif(bool(load_kernels()), reason="there are no kernels")


@pytest.fixture(autouse=True)
def leave_groups(monkeypatch):
    """Have what these plans leave compiled by XLA, not computed by calls of a later pass."""
    monkeypatch.setattr(groups, "call_operations", lambda jaxpr: jaxpr)


F16, BF16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
BOTH = pytest.mark.parametrize("dtype", [F16, BF16], ids=lambda d: d.name)
RNG = np.random.default_rng(0)


def widen(x):
    with np.errstate(invalid="ignore"):
        return np.asarray(x).astype(np.float64)


def every(dtype):
    """All numbers of a dtype: NaN, infinities, those below the normal ones of float16."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    return x if dtype == F16 else np.where(abs(widen(x)) < 2.0**-126, np.zeros((), dtype), x)


def draw(dtype, *shape):
    return RNG.standard_normal(shape).astype(dtype)


def is_called(fun, *args):
    return "weft_program" in weft.jit(fun).lower(*args).as_text()


def assert_rounded(found, want, dtype, units=0.51, terms=0):
    """Assert that `found` is within `units` ulp of float64's `want`; both overflow alike.

    `terms` are the sums of the absolute values of terms that may cancel. They are rounded to
    float32, so a small difference of large terms is less accurate than its own ulp.
    """
    found, info = np.asarray(found), ml_dtypes.finfo(dtype)
    assert found.dtype == dtype and found.shape == want.shape
    found = widen(found)
    least = 2.0**-119 if dtype == BF16 else 0  # smaller results may be 0 or inexact
    with np.errstate(all="ignore"):
        unit = np.maximum(abs(want), float(info.smallest_normal)) * float(info.eps)
        beyond = abs(want) >= float(info.max) * (1 + float(info.eps) / 4)
        near = abs(found - want) <= units * unit + least + 2.0**-23 * terms
        near |= found == want
        near |= np.isnan(found) & np.isnan(want)
        near |= beyond & (abs(found) >= float(info.max)) & (np.sign(found) == np.sign(want))
    bad = np.flatnonzero(~near)
    assert not bad.size, (bad[:5], found.flat[bad[:5]], want.flat[bad[:5]])


UNARY = {
    "abs": (lax.abs, np.abs),
    "neg": (lax.neg, np.negative),
    "sign": (lax.sign, lambda x: np.where(x == 0, x, np.sign(x))),
    "exp": (lax.exp, np.exp),
    "log": (lax.log, np.log),
    "logistic": (lax.logistic, scipy.special.expit),
    "tanh": (lax.tanh, np.tanh),
    "sqrt": (lax.sqrt, np.sqrt),
    "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x)),
    "square": (lax.square, np.square),
    "cube": (lambda x: lax.integer_pow(x, 3), lambda x: x**3),
    "reciprocal": (lambda x: lax.integer_pow(x, -1), lambda x: 1 / x),
    "expm1": (lax.expm1, np.expm1),
    "log1p": (lax.log1p, np.log1p),
    "relu": (nn.relu, lambda x: np.where(x <= 0, 0, x)),
    "clamp": (lambda x: lax.clamp(np.array(-1, x.dtype), x, np.array(2, x.dtype)),
              lambda x: np.clip(x, -1, 2)),
    "silu": (nn.silu, lambda x: x * scipy.special.expit(x)),
    "softplus": (nn.softplus, lambda x: np.logaddexp(x, 0)),
    "a third": (lambda x: x / 3, lambda x: x / 3),
    "from a number": (lambda x: 1 - x, lambda x: 1 - x),
    **{name: (getattr(lax, name), getattr(np, name)) for name in ("cbrt", "ceil", "floor", "exp2")},
    "rint": (jnp.rint, np.rint),
    "erfc": (lax.erfc, scipy.special.erfc),
    "sinh": (lax.sinh, np.sinh),
    "widened": (lambda x: x.astype("float32"), lambda x: x),
}  # fmt: skip


@pytest.mark.sample(one_in=4)
@BOTH
@pytest.mark.parametrize("name", UNARY)
def test_every_number(name, dtype):
    x = every(dtype)
    assert is_called(UNARY[name][0], x) == (name != "clamp")  # XLA's: there is nothing to round
    check_every(name, *UNARY[name], x)
    if name in ("abs", "clamp", "relu"):  # as one of two steps too
        fun, numpys = (lambda x, f=f: -f(x) for f in UNARY[name])
        assert is_called(fun, x)
        check_every(name, fun, numpys, x)


def check_every(name, fun, numpys, x):
    dtype, found, u = x.dtype, np.asarray(weft.jit(fun)(x)), widen(x)
    with np.errstate(all="ignore"):
        want = numpys(u)
    if name == "widened":
        np.testing.assert_array_equal(found, want)
        return
    assert_rounded(found, want, dtype)
    signs = np.signbit(found) == np.signbit(want)
    assert signs[(want == 0) & (u == 0)].all()


@BOTH
def test_two_operands(dtype):
    x, y = every(dtype), RNG.permutation(every(dtype))
    u, v = widen(x), widen(y)
    cases = {
        lax.add: np.add, lax.sub: np.subtract, lax.mul: np.multiply, lax.div: np.divide,
        lax.max: np.maximum, lax.min: np.minimum,
        (lambda x, y: -lax.max(x, y)): lambda x, y: -np.maximum(x, y),
        (lambda x, y: -lax.min(x, y)): lambda x, y: -np.minimum(x, y),
    }  # fmt: skip
    for fun, numpys in cases.items():
        assert is_called(fun, x, y)
        with np.errstate(all="ignore"):
            assert_rounded(weft.jit(fun)(x, y), numpys(u, v), dtype)
    for fun in (lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge):
        with np.errstate(all="ignore"):
            want = np.asarray(getattr(operator, fun.__name__)(u, v))
        of_more = lambda x, y, fun=fun: fun(x, lax.neg(lax.neg(y)))
        assert is_called(of_more, x, y) and not is_called(fun, x, y)
        np.testing.assert_array_equal(weft.jit(of_more)(x, y), want)
    zero, negative = np.zeros(2048, dtype), -np.zeros(2048, dtype)
    assert not np.signbit(weft.jit(lax.max)(negative, zero)).any()
    assert np.signbit(weft.jit(lambda x, y: -lax.max(x, y))(negative, zero)).all()
    assert np.signbit(weft.jit(lax.min)(zero, negative)).all()
    assert not np.signbit(weft.jit(lambda x, y: -lax.min(x, y))(zero, negative)).any()


@BOTH
def test_conversions(dtype):
    x = RNG.standard_normal(5000).astype(np.float32) * 10.0 ** RNG.integers(-9, 6, 5000)
    x[:7] = np.nan, np.inf, -np.inf, 0.0, -0.0, 65520, 3.3961775e38
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        half = x.astype(dtype)
    bits = lambda x: np.where(np.isnan(x.astype(np.float32)), 0, x.view(np.uint16))
    narrow = lambda x: x.astype(dtype)
    assert is_called(narrow, x)
    np.testing.assert_array_equal(bits(np.asarray(weft.jit(narrow)(x))), bits(half))
    wide = weft.jit(lambda x: x.astype(dtype).astype("float32"))
    np.testing.assert_array_equal(wide(x), half.astype(np.float32))
    found = weft.jit(lambda x: x.astype("int32"))(half)
    limits = np.nan_to_num(half.astype(np.float64), nan=0, posinf=1e30, neginf=-1e30)
    np.testing.assert_array_equal(found, np.clip(limits, -(2**31), 2**31 - 1).astype(np.int32))
    other = F16 if dtype == BF16 else BF16
    with np.errstate(all="ignore"):
        want = bits(half.astype(np.float32).astype(other))
    np.testing.assert_array_equal(bits(np.asarray(weft.jit(lambda x: x.astype(other))(half))), want)


@pytest.mark.sample(one_in=6)
@BOTH
@pytest.mark.parametrize("size", [1024, 1025, 1039, 1040, 2047, 16384, 16389, 70001])
def test_all_sizes(size, dtype):
    x, y = draw(dtype, size), draw(dtype, size)
    a, b = widen(x), widen(y)
    for fun, want, terms in (
        (lambda x, y: x + y, a + b, 0),
        (lambda x, y: x * 2, a * 2, 0),
        (lambda x, y: x - jnp.exp(y) * x, a - np.exp(b) * a, abs(a) + 2 * np.exp(b) * abs(a)),
    ):
        assert is_called(fun, x, y)
        assert_rounded(weft.jit(fun)(x, y), want, dtype, terms=terms)


@pytest.mark.sample(one_in=6)
@BOTH
@pytest.mark.parametrize("size", [65536, 70001])
def test_scalars_that_are_computed_beside_arrays(size, dtype):
    """The size is no multiple of a block's: what is computed once is no value of each row."""
    x, s, t = draw(dtype, size), dtype.type(1.5), dtype.type(0.3)
    for fun in (
        lambda x, s, t: jnp.exp(x) * (s / t) + x,
        lambda x, s, t: jnp.tanh(x * s - t * s) + jnp.exp(s),
        lambda x, s, t: x * jnp.sqrt(s * s),
    ):
        with config.scope(native=False):
            wide = weft.jit(lambda *xs, f=fun: f(*(v.astype("float32") for v in xs)))
            want = np.asarray(wide(x, s, t), np.float64)
        assert_rounded(weft.jit(fun)(x, s, t), want, dtype)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def standardize(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def wide_norm(x, g):
    y = x.astype("float32")
    y = y * lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)
    return y.astype(x.dtype) * g


ROWS = {
    "softmax": (lambda x, g: nn.softmax(x), lambda x, g: softmax(x)),
    "log_softmax": (lambda x, g: nn.log_softmax(x), lambda x, g: np.log(softmax(x))),
    "logsumexp": (lambda x, g: nn.logsumexp(x, -1), lambda x, g: np.log(np.exp(x).sum(-1))),
    "standardize": (lambda x, g: nn.standardize(x), lambda x, g: standardize(x)),
    "scaled": (lambda x, g: nn.standardize(x) * g + g, lambda x, g: standardize(x) * g + g),
    "rms": (wide_norm, lambda x, g: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g),
    "sum": (lambda x, g: jnp.sum(jnp.exp(x), -1), lambda x, g: np.exp(x).sum(-1)),
    "mean": (lambda x, g: jnp.mean(x, -1), lambda x, g: x.mean(-1)),
    "var": (lambda x, g: jnp.var(x, -1), lambda x, g: x.var(-1)),
    "norm of rows": (
        lambda x, g: jnp.linalg.norm(x, axis=-1),
        lambda x, g: np.linalg.norm(x, axis=-1),
    ),
    "distance": (lambda x, g: jnp.sum(jnp.square(x - g), -1), lambda x, g: ((x - g) ** 2).sum(-1)),
    "to the mean": (
        lambda x, g: jnp.sum(jnp.square(jnp.mean(x, -1, keepdims=True) - x), -1),
        lambda x, g: x.var(-1) * x.shape[-1],
    ),
    "weighed": (lambda x, g: jnp.sum(x * g, -1), lambda x, g: (x * g).sum(-1)),
    "less the last": (lambda x, g: g - x, lambda x, g: g - x),
}


@pytest.mark.sample(one_in=12)
@BOTH
@pytest.mark.parametrize(
    "shape", [(37, 1003), (64, 64), (35, 96), (3, 4096), (1, 2000), (2, 3, 777)]
)
@pytest.mark.parametrize("name", ROWS)
def test_rows(name, shape, dtype):
    fun, numpys = ROWS[name]
    x, g = draw(dtype, *shape), draw(dtype, shape[-1])
    assert is_called(fun, x, g)
    want = numpys(x.astype(np.float64), g.astype(np.float64))
    rough = {"scaled": 1.1, "rms": 1.6}.get(name, 0.52)
    found = np.asarray(weft.jit(fun)(x, g))
    if name == "scaled":  # sums that cancel
        size = abs(want) + abs(g.astype(np.float64))
        info = ml_dtypes.finfo(dtype)
        near = rough * float(info.eps) * size + float(info.smallest_subnormal)
        assert (abs(found.astype(np.float64) - want) <= near).all()
        return
    with np.errstate(all="ignore"):
        floor = 1e-3 if name in ("mean", "weighed", "var") else 0
    near = abs(want) > floor
    assert_rounded(found[near], want[near], dtype, rough)


F32 = np.dtype(np.float32)
SINGLES = {
    **ROWS,
    "norm": (lambda x, g: jnp.linalg.norm(x), lambda x, g: np.linalg.norm(x.ravel())),
    "all": (lambda x, g: jnp.sum(x * x), lambda x, g: (x * x).sum()),
    "divided": (lambda x, g: x / (x * x).sum(-1, keepdims=True),) * 2,
    "the first axis": (lambda x, g: jnp.var(x, 0), lambda x, g: x.var(0)),
}  # fmt: skip


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize(
    "shape", [(16, 64), (7, 131), (3, 4096), (1, 520), (64, 64), (13, 96), (2, 3, 500)]
)
@pytest.mark.parametrize("name", SINGLES)
def test_rows_of_singles(name, shape):
    """Programs on float32 of few elements are no less exact than XLA's."""
    fun, numpys = SINGLES[name]
    x, g = draw(F32, *shape) * 3 + 1, draw(F32, shape[-1])
    found, u, v = np.asarray(weft.jit(fun)(x, g)), x.astype(np.float64), g.astype(np.float64)
    whole = name in ("norm", "all") and x.size <= 4096
    reduces = name in SINGLES.keys() - {"norm", "all", "mean", "less the last", "the first axis"}
    assert is_called(fun, x, g) == (whole or reduces)
    want = numpys(u, v)
    terms = abs(u * v).sum(-1) if name == "weighed" else 1
    error = abs(found - want) / np.maximum(abs(want), terms)
    assert found.dtype == F32 and error.max() <= {"softmax": 12}.get(name, 6) * 2.0**-23, (
        error.max()
    )


def test_which_axis_is_repeated():
    """If all axes have one size, only the program tells which axis a row's sum belongs to."""
    x = draw(F16, 64, 64)
    u = x.astype(np.float64)
    along = lambda x: x - jnp.sum(x, 1)
    across = lambda x: x - jnp.sum(x, 1, keepdims=True)
    assert is_called(across, x) and not is_called(along, x)
    tolerance = dict(atol=0.02, rtol=2e-3)
    np.testing.assert_allclose(weft.jit(along)(x), u - u.sum(1), **tolerance)
    np.testing.assert_allclose(weft.jit(across)(x), u - u.sum(1, keepdims=True), **tolerance)
    g = draw(F16, 64)
    rows = lambda x, g: jnp.sum(x, 1) * g
    np.testing.assert_allclose(weft.jit(rows)(x, g), u.sum(1) * g, atol=0.05, rtol=2e-3)
    column = lambda x, g: x * g[:, None]
    np.testing.assert_allclose(weft.jit(column)(x, g), u * g[:, None], **tolerance)


def test_explicit_roundings_stay():
    x = np.float32(1) + np.arange(2048, dtype=np.float32) * 1e-5
    back = lambda x: (x.astype("float16").astype("float32") - 1).astype("bfloat16")
    want = (x.astype(F16).astype(np.float32) - 1).astype(BF16)
    assert is_called(back, x)
    np.testing.assert_array_equal(weft.jit(back)(x), want)
    half = np.full(2048, 300, F16)
    assert is_called(lambda x: jnp.isinf(x * x), half)
    assert weft.jit(lambda x: jnp.isinf(x * x))(half).all()
    assert not weft.jit(lambda x: jnp.isfinite(x * x))(half).any()
    assert weft.jit(lambda x: x * x < jnp.inf)(half).sum() == 0
    assert np.isinf(weft.jit(lambda x: (x * x).astype("float32"))(half)).all()
    mean = weft.jit(lambda x: jnp.mean((x * x).reshape(2, -1), 1))  # of more than 65504
    assert np.isinf(mean(half)).all()
    assert np.isfinite(weft.jit(lambda x: jnp.mean((x * x / 4).reshape(2, -1), 1))(half)).all()


def test_choices_by_masks():
    x, y = draw(BF16, 3000), draw(BF16, 3000)
    which = RNG.random(3000) < 0.5
    assert not is_called(jnp.where, which, x, y)
    np.testing.assert_array_equal(weft.jit(jnp.where)(which, x, y), np.where(which, x, y))
    relu = lambda x: jnp.where(x <= 0, jnp.zeros((), x.dtype), x) + (x <= 0).astype(x.dtype)
    np.testing.assert_array_equal(weft.jit(relu)(x), np.where(x <= 0, 1, x))
    twice = lambda x: jnp.where(lax.le(x, y := jnp.zeros((), x.dtype)), y, x) * x
    np.testing.assert_array_equal(weft.jit(twice)(x), np.where(x <= 0, 0, x) * x)
    rows = lambda x: jnp.where(jnp.sum(x, 1, keepdims=True) < 0, x, -x)
    u = x.reshape(30, 100)
    want = np.where(u.astype(np.float32).sum(1, keepdims=True) < 0, u, -u)
    assert is_called(rows, u)
    np.testing.assert_array_equal(weft.jit(rows)(u), want)


def test_transformations():
    x = draw(F16, 40, 100)
    u = x.astype(np.float64)
    mapped = weft.jit(weft.vmap(nn.softmax))
    np.testing.assert_allclose(mapped(x), softmax(u), atol=1e-5, rtol=1e-3)
    gradient = weft.jit(weft.grad(lambda x: jnp.sum(nn.silu(x).astype("float32"))))
    s = scipy.special.expit(u)
    np.testing.assert_allclose(gradient(x), s * (1 + u * (1 - s)), atol=1e-3, rtol=2e-3)
    with config.scope(native=False):
        assert not is_called(nn.softmax, x)
        plain = weft.jit(lambda x: nn.softmax(x))(x)
    np.testing.assert_allclose(weft.jit(nn.softmax)(x), plain, atol=1e-5, rtol=5e-3)


def test_what_is_left():
    x, wide = draw(F16, 64, 64), RNG.standard_normal((64, 64)).astype(np.float32)
    left = {
        "float32 alone": (jnp.exp, wide),
        "float32, another axis": (lambda x: jnp.exp(x).sum(0), wide),
        "float32, many elements": (lambda x: jnp.exp(x).sum(-1), np.repeat(wide, 5, 0)),
        "few elements": (jnp.exp, draw(F16, 1023)),
        "two results": (lambda x: (x + 1, x - 1), x),
        "another axis": (lambda x: nn.softmax(x, 0), x),
        "all axes": (lambda x: x - jnp.max(x), x),
        "short rows": (nn.softmax, draw(F16, 100, 63)),
        "long rows": (nn.softmax, draw(F16, 2, 4097)),
        "other operations": (lambda x: jnp.sort(x) + 1, x),
        "a move": (lambda x: x.reshape(-1), x),
        "integers": (lambda x: x.astype("int32") + 1, x),
        "a product": (lambda x: x @ x, x),
        "NaN to be kept": (lambda x: jnp.max(x, 1), x),
        "many values": (lambda x: math.prod([x + i for i in range(40)], start=x), x),
    }
    for name, (fun, x) in left.items():
        assert not is_called(fun, x), name


@pytest.mark.parametrize("dtype", [F16, BF16, np.dtype(np.float32)], ids=lambda d: d.name)
def test_nan_in_rows(dtype):
    x = draw(dtype, 20, 100)
    x[3, 50], x[4, 0], x[5, 99], x[6, 7] = np.nan, np.nan, np.inf, -np.inf
    found = np.asarray(weft.jit(nn.softmax)(x)).astype(np.float64)
    assert np.isnan(found[[3, 4, 5]]).any(1).all() and not np.isnan(found[6:]).any()
    assert found[6, 7] == 0


@pytest.mark.parametrize("size", [64, 65, 71, 79, 80, 127, 1000, 4095, 4096])
@pytest.mark.parametrize("dtype", [F16, BF16, np.dtype(np.float32)], ids=lambda d: d.name)
def test_sums_of_squares_of_rows(dtype, size):
    """Variances far from zero, and rows with infinities, NaN and one value only."""
    x = (draw(dtype, max(4, 2000 // size), size) + np.asarray(50, dtype)).astype(dtype)
    x[0, size // 2], x[1, -1], x[2, 0], x[3] = np.nan, np.inf, -np.inf, dtype.type(3)
    assert is_called(lambda x: jnp.var(x, -1), x)
    u = widen(x)
    with np.errstate(invalid="ignore"):
        wants = u.var(-1), np.sqrt((u * u).sum(-1))
    funs = lambda x: jnp.var(x, -1), lambda x: jnp.linalg.norm(x, axis=-1)
    for fun, want in zip(funs, wants, strict=True):
        found = widen(weft.jit(fun)(x))
        np.testing.assert_allclose(found, want, rtol=2 * float(ml_dtypes.finfo(dtype).eps))
