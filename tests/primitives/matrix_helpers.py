"""Helpers of tests of linear algebra: random matrices, tolerances, products of rows."""

from typing import Any

import numpy as np

from weft.primitives.matrices import adjoint, identity_like, product

DTYPES = "f32 f64 c64 c128"
SIZES = (3, 5)  # written out, and LAPACK's


def random(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(2, *shape))
    return (parts[0] + 1j * parts[1] if np.dtype(dtype).kind == "c" else parts[0]).astype(dtype)


def t(x):
    return np.swapaxes(np.asarray(x), -1, -2).conj()


def close(x, y, factor=1.0):
    """Equal to some hundred units in the last place of the largest."""
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape
    scale = max(np.abs(y).max(initial=0), 1e-30)
    np.testing.assert_allclose(x, y, rtol=0, atol=factor * 100 * np.finfo(x.dtype).eps * scale)


def unitary(q):
    close(
        t(q) @ np.asarray(q),
        np.broadcast_to(np.eye(q.shape[-1], dtype=q.dtype), (*q.shape[:-2], *[q.shape[-1]] * 2)),
    )


def positive(x: Any) -> Any:
    """A positive definite matrix, of weft's or NumPy's."""
    if isinstance(x, np.ndarray) and x.dtype in (np.float64, np.complex128):
        return x @ t(x) + np.eye(x.shape[-1])
    return product(x, adjoint(x)) + identity_like(x)


def of_rows(fun: Any, *xs: np.ndarray) -> np.ndarray:
    """A function of single matrices, for each of a batch."""
    batch = xs[0].shape[:-2]
    flat = [x.reshape(-1, *x.shape[len(batch) :]) for x in xs]
    return np.stack([fun(*one) for one in zip(*flat, strict=True)]).reshape(
        *batch, *xs[-1].shape[-2:]
    )
