"""Helpers of tests of weft.numpy: comparisons with NumPy, and common arrays."""

from typing import Any

import numpy as np

import weft.numpy as jnp

NAN, INF = np.nan, np.inf
FLOATS = np.array([[0.3, -1.7, 2.5], [-0.5, 3.5, 0.9]], np.float32)
SPECIAL = np.array([NAN, INF, -INF, 0.0, -0.0, 1, -1, 2.5, -2.5, 0.5], np.float32)
INTS = np.array([-7, -1, 0, 1, 2, 7, 50], np.int32)
OTHERS = np.array([3, -3, 2, -2, 5, 7, -7], np.int32)
BOOLS = np.array([True, False, True])

# Where the kind of weft's results is not NumPy's.
OTHER_KINDS = ("signbit", "rint", "reciprocal", "poly")


def agree(name: str, *args: Any, rtol: float = 1e-5, **kwargs: Any) -> None:
    """Assert that a function returns what NumPy's returns, one array or several."""
    got = getattr(jnp, name)(*args, **kwargs)
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
