"""Checks of indices, made as programs run: under every transformation, with the user's line."""

import inspect

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.experimental import checkify
from weft.primitives import checks

X = np.arange(3.0, dtype=np.float32)


def rows(x, i):
    return lax.scan(lambda c, k: (c + x[k], c), 0.0, i)[0]


def loop(x, i):
    return lax.fori_loop(0, i[-1] + 1, lambda k, c: c + x[k], 0.0)


def branch(x, i):
    return lax.cond(i[-1] < 9, lambda: x[i].sum(), lambda: 0.0)


def remat(x, i):
    return weft.checkpoint(lambda x: jnp.sin(x[i]).sum())(x)


def user_check(x, i):
    checkify.check(x[0] == 0, "x must begin with 0")
    return x[i].sum()


@pytest.mark.parametrize("f", [rows, loop, branch, remat, user_check])
def test_an_index_out_of_bounds_raises_under(f):
    """In compiled programs, mapped and not, and their derivatives; and none that is inside."""
    fun = (lambda x, i: checkify.checkify(f)(x, i)[1]) if f is user_check else f
    over = weft.vmap(fun, (None, 0))
    x, bad = jnp.array(X), np.array([[0, 1], [1, 7]])
    with weft.config.scope(check_bounds="all"):
        for run in (lambda i: fun(x, jnp.array(i[1])), weft.jit(lambda i: over(x, i))):
            assert np.isfinite(run(np.minimum(bad, 2))).all()
            with pytest.raises(weft.errors.IndexingError, match=r"; got [37]\."):
                run(bad)
        if f not in (loop, user_check):
            with pytest.raises(weft.errors.IndexingError, match=r"got 7\."):
                weft.jit(weft.grad(f))(X, bad[1])


def test_a_branch_that_is_not_taken_is_not_checked():
    f = weft.jit(weft.vmap(lambda i: lax.cond(i < 3, lambda: jnp.array(X)[i], lambda: -1.0)))
    with weft.config.scope(check_bounds="all"):
        assert f(np.array([1, 7])).tolist() == [1, -1]


def test_the_error_names_the_line():
    with weft.config.scope(check_bounds="all"):
        line = inspect.currentframe().f_lineno + 1
        f = weft.jit(lambda x, i: jnp.take(x, i, axis=1))
        with pytest.raises(IndexError) as info:
            f(np.zeros((2, 4), np.float32), np.array([3, -5]))
    assert "index must be in [-4, 4) on axis 1 of f32[2,4]; got -5." in str(info.value)
    assert f"test_checks.py:{line})" in str(info.value)


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda x, i: lax.dynamic_slice(x, (i,), (2,)), r"dynamic_slice: .* in \[0, 1\] on axis 0"),
        (lambda x, i: lax.dynamic_index_in_dim(x, i), r"dynamic_slice: .* in \[0, 2\] on axis 0"),
        (
            lambda x, i: lax.dynamic_update_slice(x, x[:2], (i,)),
            r"_slice: start must be in \[0, 1\]",
        ),
    ],
)
def test_slices_that_would_be_moved(f, text):
    with weft.config.scope(check_bounds="all"):
        for run in (f, weft.jit(f)):
            assert run(X, np.int32(-2)).size
            for place in (5, -4):
                with pytest.raises(IndexError, match=text):
                    run(X, np.int32(place))


@pytest.mark.parametrize("kind", ["known", "traced"])
def test_the_first_index_outside_is_told(kind):
    """Indices of [low, high), with the ends of small dtypes, which no bound may exceed."""
    for dtype in (np.int8, np.uint8, np.int32):
        for low, high in ((0, 3), (-2, 5), (0, 127), (-128, 300)):
            if low < 0 and dtype == np.uint8:
                continue
            top = min(high, np.iinfo(dtype).max + 1)
            inside = np.array([low, top - 1, (low + top) // 2], dtype)
            check = lambda xs, low=low, high=high: checks.check_inside("got {}.", xs, low, high)
            run = check if kind == "known" else weft.jit(lambda xs, check=check: (check(xs), xs)[1])
            run(inside)
            for bad in (low - 1, high):
                if np.iinfo(dtype).min <= bad <= np.iinfo(dtype).max:
                    with pytest.raises(weft.errors.IndexingError, match=rf"^got {bad}\."):
                        np.asarray(run(np.array([low, bad, low, high - 1], dtype)))
