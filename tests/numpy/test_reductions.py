"""Reductions and running sums against NumPy: axes, dtypes, masks, empty arrays, NaN, errors."""

import zlib

import numpy as np
import pytest

import weft.numpy as jnp
from tests.numpy.compare import agree, in_one_program
from tests.settings import ALL
from weft import config, dtypes, grad, jit, make_jaxpr, nn, vmap
from weft.errors import DtypeError, ShapeError
from weft.scipy import special

NAN, INF = np.nan, np.inf
X = np.array([[[0.5, -2.0, 3.5], [1.5, 0.0, -0.5]]] * 2, np.float32) * [[[1]], [[-1.5]]]
X = X.astype(np.float32)
HOLES = np.where(np.arange(12).reshape(2, 2, 3) % 4 == 0, NAN, X).astype(np.float32)
HOLES[0, :, 1] = NAN
AXES = [None, 0, -1, (0, 2), ()]
MASK = np.array([True, False, True])
SUMS = ["sum", "prod", "mean", "var", "std"]
EXTREMES = ["max", "min", "ptp"]
TRUTHS = ["any", "all", "count_nonzero"]


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", [*SUMS, *EXTREMES, *TRUTHS])
def test_axes(name, axis, keepdims):
    agree(name, X, axis=axis, keepdims=keepdims)


@pytest.mark.sample(one_in=4)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("name", [f"nan{n}" for n in [*SUMS, "max", "min"]])
def test_nan_is_skipped(name, axis):
    agree(name, HOLES, axis=axis)
    agree(name, HOLES, axis=axis, keepdims=True)


@pytest.mark.sample(one_in=3)
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int32, np.float16, np.complex64])
@pytest.mark.parametrize("name", [*SUMS, "max"])
def test_dtypes(name, dtype):
    x = np.array([[1, 2, 0], [1, 1, 1]]).astype(dtype)
    got = getattr(jnp, name)(x)
    want = getattr(np, name)(x)
    np.testing.assert_allclose(got, want, rtol=1e-3)
    wide = {"b": np.int32, "i": np.int32, "u": np.uint32, "f": np.float16, "c": np.complex64}
    if name in ("sum", "prod"):
        assert got.dtype == wide[np.dtype(dtype).kind]
    elif name == "max":
        assert got.dtype == dtype


def test_dtypes_asked_for():
    x = jnp.arange(4, dtype=np.int8)
    assert jnp.sum(x, dtype=np.int8).dtype == np.int8
    assert jnp.sum(x, promote_integers=False).dtype == np.int8
    assert jnp.mean(x, dtype=np.int32).dtype == np.int32
    assert jnp.var(x, dtype=jnp.bfloat16).dtype == jnp.bfloat16
    with config.scope(enable_x64=True):
        assert jnp.sum(jnp.ones(3, np.int32)).dtype == np.int64
        assert jnp.mean(jnp.ones(3, np.int32)).dtype == np.float32
        assert jnp.argmax(jnp.ones(3)).dtype == np.int64


def test_small_floats_are_added_in_float32():
    x = jnp.full(4096, 1, jnp.float16)
    assert jnp.sum(x) == 4096 and jnp.mean(x).dtype == np.float16
    assert jnp.mean(jnp.full(4096, 60, jnp.float16)) == 60


@pytest.mark.parametrize("name", SUMS)
@in_one_program()
def test_masks(name):
    agree(name, X, where=MASK)
    agree(name, X, axis=2, where=MASK, keepdims=True)
    agree(name, X, axis=(0, 1), where=X > -1)


def test_both_extremes():
    low, high = jnp.minmax(X, axis=(0, 2), keepdims=True)
    np.testing.assert_array_equal(low, X.min((0, 2), keepdims=True))
    np.testing.assert_array_equal(high, X.max((0, 2), keepdims=True))


@in_one_program()
def test_initial_values_and_masks_of_extremes():
    agree("sum", X, axis=1, initial=2.5)
    agree("prod", X, initial=3, where=MASK)
    agree("max", X, axis=0, initial=1.0, where=MASK)
    agree("min", X, initial=-9, where=MASK)
    agree("max", X[:0], axis=0, initial=-INF)
    agree("any", X, axis=0, where=MASK)
    agree("all", X, where=MASK[None])


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
@in_one_program()
def test_degrees_of_freedom(name):
    agree(name, X, axis=0, ddof=1)
    agree(name, X + 1j * X[::-1], axis=-1, rtol=1e-4) if not name.startswith("nan") else None
    agree(name, X, axis=2, mean=np.mean(X, axis=2, keepdims=True))
    one = X[0, 0, :1]
    slope = grad(lambda x: getattr(jnp, name)(x, ddof=1))
    assert np.isnan(getattr(jnp, name)(one, ddof=1))
    assert "std" in name or slope(one) == 0  # a constant
    if not name.startswith("nan"):
        agree(name, X, correction=2)


@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
@in_one_program()
def test_positions(name):
    for axis in (None, 0, -2):
        agree(name, X, axis=axis)
        agree(name, X, axis=axis, keepdims=True)
    if name.startswith("nan"):
        assert getattr(jnp, name)(jnp.array([NAN, NAN])) == -1
        np.testing.assert_array_equal(getattr(jnp, name)(jnp.array([NAN, 1, 2])) > 0, True)
    else:
        agree(name, HOLES, axis=1)
        agree(name, np.array([1, 3, 3, 1, 1]))
        agree(name, np.array([True, False]))


@in_one_program()
def test_average():
    agree("average", X, axis=1)
    agree("average", X, weights=X * X)
    agree("average", X, axis=-1, weights=np.arange(3))
    agree("average", X, axis=(2, 1), weights=np.arange(6).reshape(3, 2))
    got = jnp.average(X, axis=0, weights=jnp.array([1, 3]), returned=True)
    want = np.average(X, axis=0, weights=[1, 3], returned=True)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
def test_running(name, axis):
    agree(name, HOLES if name.startswith("nan") else X, axis=axis)
    agree(name, np.array([[True, False, True]]), axis=axis)
    assert getattr(jnp, name)(jnp.ones(3, np.int8)).dtype == np.int8
    assert getattr(jnp, name)(jnp.ones(3, np.int8), dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running_from_the_start(name):
    agree(name, X[0, 0])
    agree(name, X, axis=1, include_initial=True)
    with pytest.raises(ShapeError, match="axis must be given unless x has one axis"):
        getattr(jnp, name)(X)


def test_sums_and_products_of_truth_values():
    x = np.array([0.5, 2, 0], np.float32)
    for name in ("sum", "prod", "cumsum", "cumprod"):
        got = getattr(jnp, name)(x, dtype=bool)
        assert got.dtype == bool
        np.testing.assert_array_equal(got, getattr(np, name)(x, dtype=bool))


def test_derivatives_pass_over_nan():
    x = jnp.array([1.0, 0.0, jnp.nan, 2.0, 0.0])
    for name in ("nansum", "nanmean", "nanvar", "nanstd"):
        got = grad(getattr(jnp, name))(x)
        held = grad(getattr(jnp, name[3:]))(x[jnp.array([0, 1, 3, 4])])
        np.testing.assert_allclose(got, jnp.insert(held, 2, 0.0), rtol=1e-5)


def test_cumulative_sum_adds_small_integers_in_the_default_dtype():
    assert jnp.cumulative_sum(jnp.full(3, 200, np.uint8)).tolist() == [200, 400, 600]
    assert jnp.cumulative_sum(jnp.ones(3, np.int8)).dtype == np.int32
    assert jnp.cumulative_sum(jnp.ones(3, np.int8), dtype=np.int8).dtype == np.int8


@in_one_program()
def test_nothing_to_reduce():
    empty = np.zeros((0, 3), np.float32)
    for name in ("sum", "prod", "any", "all", "count_nonzero"):
        agree(name, empty, axis=0)
        agree(name, empty)
    assert np.isnan(jnp.mean(empty))
    assert jnp.max(empty, axis=1).shape == (0,)
    with pytest.raises(ShapeError, match=r"max: needs at least one element.*f32\[0,3\].*initial=0"):
        jnp.max(empty)
    with pytest.raises(ShapeError, match="argmin: needs at least one element"):
        jnp.argmin(empty, axis=0)


def test_scalars_and_weak_types():
    assert jnp.sum(2.0) == 2 and not jnp.sum(2.0).weak_type
    assert not jnp.any(jnp.asarray(1.0)).weak_type
    assert jnp.max(3) == 3 and jnp.argmax(5) == 0 and jnp.cumsum(2).shape == (1,)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", [*SUMS, "max", "min", "nanmean", "nanmax", "cumsum"])
def test_under_transformations(name):
    f = getattr(jnp, name)
    x = jnp.array(X)
    np.testing.assert_allclose(jit(lambda v: f(v, axis=1))(x), f(x, axis=1), rtol=1e-5, atol=1e-6)
    want = np.stack([f(row) for row in X])
    np.testing.assert_allclose(vmap(f)(x), want, rtol=1e-5, atol=1e-6)
    y = jnp.array([0.3, 1.2, 2.0])
    step = 1e-2
    slope = grad(lambda v: f(v).sum())(y)
    for i in range(3):
        up, down = (f(y.at[i].add(s)).sum() for s in (step, -step))
        np.testing.assert_allclose(slope[i], (up - down) / (2 * step), rtol=2e-2, atol=2e-3)


def test_programs_are_as_short_as_can_be():
    x = jnp.ones((3, 2))
    names = lambda f: [e.primitive.name for e in make_jaxpr(f)(x).eqns]
    assert names(jnp.sum) == ["reduce_sum"]
    assert names(lambda v: v.max(axis=0)) == ["reduce_max"]
    assert names(jnp.mean) == ["reduce_sum", "div"]
    assert names(jnp.nansum) == ["reduce_nansum"]
    assert names(jnp.nanmean) == ["reduce_nansum", "reduce_nansum", "div"]
    assert names(lambda v: jnp.any(v, keepdims=True)) == ["ne", "reduce_or", "broadcast_in_dim"]
    assert names(lambda v: jnp.cumsum(v, 0)) == ["cumsum"]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: jnp.sum(x, axis=2), ShapeError, "sum: axis must name an axis .* rank 1; got 2"),
        (lambda x: jnp.sum(x, axis=(0, -1)), ShapeError, "sum: axes must be distinct"),
        (lambda x: jnp.sum(x, axis="0"), TypeError, "sum: axis must be an integer; got '0'"),
        (lambda x: jnp.sum([1, 2]), DtypeError, r"sum: .* Hint: jnp.array\(\[1, 2\]\)"),
        (lambda x: jnp.sum(x, where=x), DtypeError, r"where must be bool.*Hint: where=mask != 0"),
        (lambda x: jnp.sum(x, out=x), NotImplementedError, r"Hint: out = jnp.sum\(...\)"),
        (lambda x: jnp.max(x, where=x > 0), ValueError, "initial must be given"),
        (lambda x: jnp.max(x, initial=x), ShapeError, "initial must be a scalar"),
        (lambda x: jnp.var(x, ddof=1, correction=1), ValueError, "one of ddof and correction"),
        (lambda x: jnp.var(x * 1j, dtype=float), DtypeError, "var: dtype must be complex.*got f32"),
        (lambda x: jnp.nanstd(x * 1j, dtype=float), DtypeError, "nanstd: dtype must be complex"),
        (lambda x: jnp.average(x[None], weights=x), ShapeError, "average: weights must have"),
        (lambda x: jnp.cumsum(x, axis=3), ShapeError, "cumsum: axis must name"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(jnp.ones(3))
    with pytest.raises(error, match=message):
        jit(call)(jnp.ones(3))


# --- axes in any order ----------------------------------------------------------------------

ORDERS = [(-1, -2), (2, 0), [-1, 0, 1], (1, 0), -2]
LARGE = np.random.default_rng(5).normal(size=(24, 50, 36)).astype(np.float32)  # for kernels
LARGE_HOLES = np.where(LARGE > 1.5, NAN, LARGE).astype(np.float32)


def each_order(fun, orders=ORDERS):
    """Return the function over each order of axes, eager and compiled."""
    listed = [tuple(a) if type(a) is list else a for a in orders]
    run = lambda *xs: [fun(*xs, axis=axis) for axis in orders]
    return listed, [run, jit(run), lambda *xs: vmap(run, -1, -1)(*[x[..., None] for x in xs])]


REDUCED = {
    **{name: (getattr(jnp, name), getattr(np, name)) for name in [*SUMS, *EXTREMES, *TRUTHS]},
    **{f"nan{n}": (getattr(jnp, f"nan{n}"), getattr(np, f"nan{n}")) for n in [*SUMS, "max", "min"]},
    "median": (jnp.median, np.median),
    "nanmedian": (jnp.nanmedian, np.nanmedian),
    "quantile": (
        lambda x, axis: jnp.quantile(x, 0.3, axis=axis),
        lambda x, axis: np.quantile(x, 0.3, axis=axis),
    ),
    "percentile": (
        lambda x, axis: jnp.percentile(x, jnp.array([30, 90]), axis=axis),
        lambda x, axis: np.percentile(x, [30, 90], axis=axis),
    ),
    "nanquantile": (
        lambda x, axis: jnp.nanquantile(x, 0.3, axis=axis),
        lambda x, axis: np.nanquantile(x, 0.3, axis=axis),
    ),
    "average": (lambda x, axis: jnp.average(x, axis), lambda x, axis: np.average(x, axis)),
    "minmax": (
        lambda x, axis: jnp.stack(jnp.minmax(x, axis)),
        lambda x, axis: np.stack([x.min(axis), x.max(axis)]),
    ),
    "add.reduce": (jnp.add.reduce, np.add.reduce),
    "maximum.reduce": (jnp.maximum.reduce, np.maximum.reduce),
    "logical_or.reduce": (
        lambda x, axis: jnp.logical_or.reduce(x > 4, axis),
        lambda x, axis: np.logical_or.reduce(x > 4, axis),
    ),
    "any of comparisons": (
        lambda x, axis: jnp.any(x > 3, axis),
        lambda x, axis: np.any(x > 3, axis),
    ),
    "sum of comparisons": (
        lambda x, axis: (x > 1).sum(axis),
        lambda x, axis: (x > 1).sum(axis),
    ),
    "sum of bytes": (
        lambda x, axis: (x > 1).astype(np.int8).sum(axis, dtype=np.int8),
        lambda x, axis: (x > 1).astype(np.int8).sum(axis, dtype=np.int8),
    ),
    "max of integers": (
        lambda x, axis: (x * 99).astype(np.int16).max(axis),
        lambda x, axis: (x * 99).astype(np.int16).max(axis),
    ),
    "vector_norm": (
        lambda x, axis: jnp.linalg.vector_norm(x, axis=axis),
        lambda x, axis: np.sqrt((x * x).sum(axis)),
    ),
    "logsumexp": (
        lambda x, axis: nn.logsumexp(x, axis),
        lambda x, axis: np.log(np.exp(x).sum(axis)),
    ),
    "softmax": (
        lambda x, axis: nn.softmax(x, axis).max(axis),
        lambda x, axis: np.exp(x.max(axis)) / np.exp(x).sum(axis),
    ),
}  # fmt: skip


@pytest.mark.sample(one_in=16)
@pytest.mark.parametrize("name", REDUCED)
def test_axes_in_any_order(name):
    """Arrays that kernels take, as an argument, computed before, and mapped."""
    fun, reference = REDUCED[name]
    x = LARGE_HOLES if name.startswith("nan") else LARGE
    x = np.exp(x / 50) if "prod" in name else x
    axes, runs = each_order(fun)
    wide = x.astype(np.float64) if name in (*SUMS, *[f"nan{n}" for n in SUMS]) else x
    wants = [reference(wide, axis=axis) for axis in axes]
    for run in runs:
        for found, want in zip(run(jnp.asarray(x)), wants, strict=True):
            found = np.asarray(found).reshape(want.shape)
            np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize(
    "name", ["max", "min", "sum", "nanmax", "nanmean", "prod", "median", "var"]
)
def test_derivatives_along_axes_in_any_order(name):
    x = np.exp(LARGE[:6] / 50)
    pairs = [((-1, -2), (1, 2)), ((2, 0), (0, 2)), ((1, 0), (0, 1)), ((2, 1, 0), None)]
    if not ALL:  # half of the pairs, which differ from one name to the next
        pairs = pairs[zlib.crc32(name.encode()) % 2 :: 2]
    slope = lambda axis: grad(lambda x: (getattr(jnp, name)(x, axis=axis) ** 2).sum())
    for one, other in jit(lambda x: [[slope(axis)(x) for axis in pair] for pair in pairs])(x):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_matrix_norms_of_axes_in_any_order():
    x = LARGE[:, :5]
    pairs = [(2, 0), (-1, -3), (0, 2), (1, 0)]
    for ord in ("fro", 1, -1, np.inf, -np.inf, 2, "nuc"):
        norms = jit(lambda x, p=ord: [jnp.linalg.norm(x, p, axis) for axis in pairs])(x)
        for found, axis in zip(norms, pairs, strict=True):
            np.testing.assert_allclose(found, np.linalg.norm(x, ord, axis), rtol=1e-4)


@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
def test_places_along_negative_axes(name):
    axes = [-1, -2, -3, 0, 1, 2, None]
    for found in (lambda x: [getattr(jnp, name)(x, a) for a in axes], None):
        found = found or jit(lambda x: [getattr(jnp, name)(x, a) for a in axes])
        for place, axis in zip(found(LARGE), axes, strict=True):
            np.testing.assert_array_equal(place, getattr(np, name)(LARGE, axis))


def test_weights_of_axes_in_any_order():
    weights = np.abs(LARGE[:, 0]) + 1
    for axis, w in [((0, 2), weights), ((2, 0), weights.T), ((-1, -3), weights.T)]:
        found = jnp.average(LARGE, axis, w)
        want = np.average(LARGE.astype(float), (0, 2), weights.astype(float))
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6)


ORDERS = [None, 1, 2, 3, -1, -2, 0.5, np.inf, -np.inf]
OF_VECTORS = {
    "std": jnp.std,
    "nanstd": jnp.nanstd,
    "mean": jnp.mean,
    "average": lambda x: jnp.average(x, weights=jnp.abs(x)),
    "corrcoef": lambda x: jnp.corrcoef(x, jnp.sin(x)),
    "trapezoid": jnp.trapezoid,
    "trapezoid of places": lambda x: jnp.trapezoid(jnp.sin(x), x),
    "gradient": lambda x: jnp.gradient(x, jnp.sort(x)),
    "sinc": lambda x: jnp.sinc(x / 64),
    "logsumexp": special.logsumexp,
    "weighted logsumexp": lambda x: special.logsumexp(x / 64, b=jnp.abs(x)),
    "logmeanexp": nn.logmeanexp,
    "log_softmax": nn.log_softmax,
    "standardize": nn.standardize,
    "standardize, stable": lambda x: nn.standardize(x, algorithm="stable"),
    "squareplus": nn.squareplus,
    **{f"norm {o}": lambda x, o=o: jnp.linalg.norm(x, o) for o in ORDERS},
    "slope of the norm": grad(jnp.linalg.norm),
    "slope of std": grad(jnp.std),
}
OF_MATRICES = {
    **{f"norm {o}": lambda x, o=o: jnp.linalg.norm(x, o) for o in (None, "fro", 1, -1, np.inf)},
    "cov": lambda x: jnp.cov(x / 16),
    "trace": lambda x: jnp.trace(x),
}
OF_MANY = {
    "logsumexp": nn.logsumexp,
    "logmeanexp": nn.logmeanexp,
    "log_softmax": lambda x: nn.log_softmax(x)[:2],
    "softmax": lambda x: special.softmax(x)[:2],
    "norm": jnp.linalg.norm,
    "std": jnp.std,
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bits_hold_results_whose_squares_and_sums_they_do_not(dtype):
    """Results are those in float32, rounded."""
    info = dtypes.finfo(dtype)
    large = min(float(info.max) / 4, 1e18)
    row = np.array([1, 0.75, -0.5, 0.25, 0.875, -1])
    operands = [
        (OF_VECTORS, 300 * row),
        (
            {name: OF_VECTORS[name] for name in ("std", "nanstd", "norm None", "norm 2")},
            large * row,
        ),
        (OF_MATRICES, 3000 * np.outer(row[:3], row[:3])),
        (OF_MANY, np.ones(70000)),
    ]
    run = jit(
        lambda *xs: [
            {name: fun(x) for name, fun in functions.items()}
            for (functions, _), x in zip(operands, xs, strict=True)
        ]
    )
    xs = [x.astype(dtype) for _, x in operands]
    got, want = run(*xs), run(*[x.astype(np.float32) for x in xs])
    for outs, wanted in zip(got, want, strict=True):
        for name, out in outs.items():
            assert out.dtype == dtype, name
            w = np.asarray(wanted[name]).astype(dtype).astype(np.float32)
            assert np.isfinite(w).all(), name
            atol = 2 * float(info.eps) * np.abs(w).max()
            np.testing.assert_allclose(
                np.float32(out), w, rtol=3 * float(info.eps), atol=atol, err_msg=name
            )


@pytest.mark.parametrize("name", ["int32", "uint32"])
def test_variances_of_large_integers_that_are_near_each_other(name):
    limits = np.iinfo(name)
    host = np.stack([np.arange(20) % 7 + limits.min, limits.max - np.arange(20) % 5, np.arange(20)])
    host = host.astype(name)
    for fun, exact in ((jnp.var, np.var), (jnp.std, np.std), (jnp.nanvar, np.nanvar)):
        np.testing.assert_allclose(fun(host, axis=1), exact(host, axis=1), rtol=1e-6)
    np.testing.assert_allclose(jnp.var(host), np.var(host.astype(float)), rtol=1e-6)
    mask = np.arange(20) > 4
    found = jnp.var(host, axis=1, keepdims=True, where=mask)
    np.testing.assert_allclose(found, np.var(host[:, mask], axis=1, keepdims=True), rtol=1e-6)
