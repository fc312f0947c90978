"""Helpers of tests of weft.numpy: comparisons with NumPy, and common arrays."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import weft
import weft.numpy as jnp

NAN, INF = np.nan, np.inf
FLOATS = np.array([[0.3, -1.7, 2.5], [-0.5, 3.5, 0.9]], np.float32)
SPECIAL = np.array([NAN, INF, -INF, 0.0, -0.0, 1, -1, 2.5, -2.5, 0.5], np.float32)
INTS = np.array([-7, -1, 0, 1, 2, 7, 50], np.int32)
OTHERS = np.array([3, -3, 2, -2, 5, 7, -7], np.int32)
BOOLS = np.array([True, False, True])

# Where the kind of weft's results is not NumPy's.
OTHER_KINDS = ("signbit", "rint", "reciprocal", "poly")


_DEFERRED: list | None = None  # the calls of `agree` that wait for the end of `in_one_program`


@contextlib.contextmanager
def in_one_program() -> Iterator[None]:
    """Run the calls of `agree` within as one program, which compiles in a fraction of the time.

    The first operands are arguments of the program, and other arguments are constants. Decorates
    tests as well.
    """
    global _DEFERRED
    calls: list = []
    _DEFERRED = calls
    try:
        yield
    finally:
        _DEFERRED = None
    run = lambda xs: [
        getattr(jnp, name)(x, *args, **kwargs)
        for x, (name, (_, *args), _, kwargs) in zip(xs, calls, strict=True)
    ]
    founds = weft.jit(run)([args[0] for _, args, _, _ in calls])
    for got, (name, args, rtol, kwargs) in zip(founds, calls, strict=True):
        compare(got, name, args, rtol, kwargs)


def agree(name: str, *args: Any, rtol: float = 1e-5, **kwargs: Any) -> None:
    """Assert that a function returns what NumPy's returns, one array or several."""
    if _DEFERRED is not None:
        _DEFERRED.append((name, args, rtol, kwargs))
        return
    compare(getattr(jnp, name)(*args, **kwargs), name, args, rtol, kwargs)


def compare(got: Any, name: str, args: tuple, rtol: float, kwargs: dict) -> None:
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*args, **kwargs)
    several = isinstance(want, tuple | list)
    for g, w in zip(got if several else [got], want if several else [want], strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape
        assert g.dtype.kind == w.dtype.kind or name in OTHER_KINDS
        np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-5)


def same(got: Any, want: Any) -> None:
    """Shapes, dtypes and values are equal."""
    assert got.dtype == want.dtype
    same_values(got, want)


def same_values(got: Any, want: Any) -> None:
    """Shapes and values are equal; NumPy's integers may be wider."""
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


def close(got: Any, want: Any, tol: float = 2e-4) -> None:
    """Matrices are equal to `tol`, relative to each element and to the largest."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol * max(1, np.abs(want).max(initial=0)))
