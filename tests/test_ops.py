import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import grad, jit, ops, vmap
from weft.errors import DtypeError, ShapeError, TracerError

IDS = np.array([0, 2, 1, -1, 2, 7, 0])
REDUCE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
EMPTY = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf}


def reference(name, data, ids, count):
    start = EMPTY[name]
    if np.isinf(start) and data.dtype.kind != "f":
        limits = (
            (0, 1) if data.dtype == bool else (np.iinfo(data.dtype).min, np.iinfo(data.dtype).max)
        )
        start = limits[name == "min"]
    out = np.full((count, *data.shape[1:]), start, data.dtype)
    inside = (ids >= 0) & (ids < count)
    REDUCE[name].at(out, ids[inside], data[inside])
    return out


def test_doctests():
    check_examples(ops)


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32, np.uint8, bool, jnp.bfloat16])
@pytest.mark.parametrize("name", REDUCE)
def test_segments(name, dtype, rng):
    truths = np.dtype(dtype) == bool
    if truths and name in ("sum", "prod"):
        return
    f = getattr(ops, f"segment_{name}")
    data = rng.integers(0, 2 if truths else 5, (7, 3)).astype(dtype)
    wide = data.astype(np.float32) if dtype == jnp.bfloat16 else data
    want = reference(name, wide, IDS, 5)
    unsorted = {"indices_are_sorted": False, "unique_indices": False}

    @jit
    def otherwise(data, ids):
        last = f(data[:, 0], ids.astype(np.int8), num_segments=5)
        return f(data, ids, 5, bucket_size=3), f(data, ids, 5, **unsorted), last

    *others, last = otherwise(data, IDS)
    for got in (f(data, IDS, 5), *others):
        assert got.dtype == dtype
        np.testing.assert_array_equal(np.asarray(got).astype(wide.dtype), want)
    np.testing.assert_array_equal(
        np.asarray(last).astype(wide.dtype), reference(name, wide[:, 0], IDS, 5)
    )


@pytest.mark.parametrize("name", REDUCE)
def test_how_many_segments(name):
    f = getattr(ops, f"segment_{name}")
    data = np.arange(7.0, dtype=np.float32)
    np.testing.assert_array_equal(f(data, IDS), reference(name, data, IDS, 8))
    assert f(data[:0], IDS[:0]).shape == (0,) and f(data, IDS, 0).shape == (0,)
    assert f(data, np.int32(-1) + 0 * IDS).shape == (0,)
    clipped = np.clip(IDS, 0, 2)
    np.testing.assert_array_equal(f(data, IDS, 3, mode="clip"), reference(name, data, clipped, 3))
    sorted_ids = np.sort(IDS)
    got = f(data, sorted_ids, 8, indices_are_sorted=True)
    np.testing.assert_array_equal(got, reference(name, data, sorted_ids, 8))
    np.testing.assert_array_equal(ops.segment_sum(1, clipped, 3), [3, 1, 3])


def test_derivatives_and_batches(rng):
    data = rng.normal(size=(2, 7)).astype(np.float32)
    ids = np.stack([IDS, IDS[::-1]])
    for name in ("sum", "max", "min"):
        f = getattr(ops, f"segment_{name}")
        got = vmap(lambda d, i, f=f: f(d, i, 4))(data, ids)
        want = np.stack([reference(name, d, i, 4) for d, i in zip(data, ids, strict=True)])
        np.testing.assert_allclose(got, want, rtol=1e-6)
        slope = grad(lambda d, f=f: jnp.sum(f(d, IDS, 4)[:3] ** 2))(data[0])
        chosen = {"sum": IDS[:, None] == np.arange(3)}.get(name)
        if chosen is None:
            chosen = (IDS[:, None] == np.arange(3)) & (data[0][:, None] == want[0][:3])
        np.testing.assert_allclose(slope, 2 * chosen @ want[0][:3], rtol=1e-5)
    unique = np.array([3, 0, 1])
    got = grad(lambda d: jnp.sum(ops.segment_prod(d, unique, 4, unique_indices=True)[:2] ** 2))
    np.testing.assert_allclose(got(data[0, :3]), [0, *2 * data[0, 1:3]], rtol=1e-6)


def test_index_functions():
    x = jnp.arange(6.0).reshape(2, 3)
    assert ops.index[1, ::2] == (1, slice(None, None, 2))
    for name, method in (
        ("update", "set"), ("add", "add"), ("mul", "multiply"), ("min", "min"), ("max", "max"),
    ):  # fmt: skip
        got = getattr(ops, f"index_{name}")(x, ops.index[:, 1], 2.0)
        np.testing.assert_array_equal(got, getattr(x.at[:, 1], method)(2.0))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda d: ops.segment_sum(d, [0, 1]), DtypeError, "segment_sum: .* got a list"),
        (lambda d: ops.segment_max(d, d), DtypeError,
         r"segment_max: segment_ids must be integers; got f32\[3\]. Hint: segment_ids.astype"),
        (lambda d: ops.segment_sum(d > 0, IDS[:3]), DtypeError, "data must be numbers; got bool"),
        (lambda d: ops.segment_min(d, IDS), ShapeError,
         r"data must have a row for each of segment_ids; got f32\[3\], i32\[7\]"),
        (lambda d: jit(ops.segment_sum)(d, IDS[:3]), TracerError, "num_segments must be given"),
        (lambda d: jit(ops.segment_sum)(d, IDS[:3], 3), TypeError, r"static_argnames='num_seg"),
        (lambda d: ops.segment_sum(d, IDS[:3], -1), ValueError, "must be at least 0; got -1"),
        (lambda d: ops.segment_sum(d, IDS[:3], bucket_size=0), ValueError, "bucket_size must be"),
        (lambda d: ops.segment_sum(d, IDS[:3], mode="wrap"), ValueError, "mode"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(np.ones(3, np.float32))


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("rest", [(), (2,)])
@pytest.mark.parametrize("zeros", [(), (1,), (1, 2), (0, 4, 5)])
def test_derivatives_of_products_of_segments(zeros, rest):
    """To the second order, where rows are zero too, against products one by one."""
    ids = np.array([2, 0, 0, 5, 2, 2])
    x = np.random.default_rng(0).standard_normal((6, *rest))
    x[list(zeros)] = 0

    def one_by_one(x):
        found = [jnp.ones(rest, x.dtype)] * 3
        for k, i in enumerate(ids):
            if i < 3:
                found[i] = found[i] * x[k]
        return jnp.stack(found)

    losses = [
        lambda x, f=f: jnp.sum(f(x) ** 2 + f(x))
        for f in (lambda x: ops.segment_prod(x, ids, 3), one_by_one)
    ]
    with weft.enable_x64(True):
        for derivative in (weft.grad, weft.hessian, lambda f: weft.jacfwd(weft.jit(f))):
            found, want = (weft.jit(derivative(f))(x) for f in losses)
            np.testing.assert_allclose(found, want, atol=1e-12)
        mapped = weft.vmap(weft.grad(losses[0]))(np.stack([x, 2 * x]))
        np.testing.assert_allclose(mapped[1], weft.jit(weft.grad(losses[1]))(2 * x), atol=1e-12)
