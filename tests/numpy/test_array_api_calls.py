"""The functions of the array API standard for whole arrays, at every dtype, with 64-bit types.

Dtypes and values are NumPy's, which conforms to the standard. test_array_api.py has the functions
that go element by element.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
REAL, INEXACT = [*INTEGERS, *FLOATS], [*FLOATS, *COMPLEX]
NUMBERS = [*REAL, *COMPLEX]
ALL = ["bool", *NUMBERS]

# p is a namespace, x and y are of shape (3, 4). By the dtypes that the standard names.
CALLS = [
    (
        ALL,
        {
            "all": lambda p, x, y: (
                p.all(x),
                p.all(x, axis=0),
                p.all(x, axis=(0, 1), keepdims=True),
            ),
            "any": lambda p, x, y: (p.any(x), p.any(x, axis=1, keepdims=True)),
            "count_nonzero": lambda p, x, y: (
                p.count_nonzero(x),
                p.count_nonzero(x, axis=0),
                p.count_nonzero(x, axis=(0, 1), keepdims=True),
            ),
            "concat": lambda p, x, y: (
                p.concat([x, y]),
                p.concat([x, y], axis=None),
                p.concat((x, y), axis=-1),
            ),
            "expand_dims": lambda p, x, y: p.expand_dims(x, axis=-1),
            "flip": lambda p, x, y: (p.flip(x), p.flip(x, axis=0), p.flip(x, axis=(0, 1))),
            "broadcast_to": lambda p, x, y: p.broadcast_to(x, (2, 3, 4)),
            "matrix_transpose": lambda p, x, y: p.matrix_transpose(x),
            "moveaxis": lambda p, x, y: p.moveaxis(x, 0, 1),
            "permute_dims": lambda p, x, y: p.permute_dims(x, (1, 0)),
            "repeat": lambda p, x, y: (p.repeat(x, 2), p.repeat(x, np.array([1, 2, 0]), axis=0)),
            "reshape": lambda p, x, y: (p.reshape(x, (4, 3)), p.reshape(x, (-1,), copy=True)),
            "roll": lambda p, x, y: (p.roll(x, 1), p.roll(x, (1, -1), axis=(0, 1))),
            "squeeze": lambda p, x, y: p.squeeze(x[None], axis=0),
            "stack": lambda p, x, y: (p.stack([x, y]), p.stack([x, y], axis=-1)),
            "take": lambda p, x, y: (
                p.take(x, np.array([1, 0]), axis=1),
                p.take(x[0], np.array([[1], [0]])),
            ),
            "take_along_axis": lambda p, x, y: (
                p.take_along_axis(x, np.array([[1, 0]]), axis=1),
                p.take_along_axis(x, np.array([[1], [0], [2]])),
            ),
            "tile": lambda p, x, y: (p.tile(x, (2, 1)), p.tile(x, (2, 1, 2))),
            "tril": lambda p, x, y: (p.tril(x), p.tril(x, k=1)),
            "triu": lambda p, x, y: p.triu(x, k=-1),
            "unstack": lambda p, x, y: tuple(p.unstack(x)) + tuple(p.unstack(x, axis=1)),
            "where": lambda p, x, y: p.where(x == y, x, y),
            "zeros_like": lambda p, x, y: (p.zeros_like(x), p.zeros_like(x, dtype="float32")),
            "ones_like": lambda p, x, y: p.ones_like(x),
            "full_like": lambda p, x, y: (p.full_like(x, 1), p.full_like(x, True)),
            "isin": lambda p, x, y: (p.isin(x, y), p.isin(x, y, invert=True)),
            "meshgrid": lambda p, x, y: (
                tuple(p.meshgrid(x[0], y[1])) + tuple(p.meshgrid(x[0], y[1], indexing="ij"))
            ),
            "astype": lambda p, x, y: (p.astype(x, "bool"), p.astype(x, "complex128")),
            "linalg.diagonal": lambda p, x, y: (
                p.linalg.diagonal(x),
                p.linalg.diagonal(x, offset=-1),
            ),
            "linalg.matrix_transpose": lambda p, x, y: p.linalg.matrix_transpose(x),
        },
    ),
    (
        NUMBERS,
        {
            "sum": lambda p, x, y: (
                p.sum(x),
                p.sum(x, axis=0, keepdims=True),
                p.sum(x, axis=(0, 1)),
                p.sum(x, dtype="float32"),
            ),
            "prod": lambda p, x, y: (p.prod(x), p.prod(x, axis=0), p.prod(x, dtype="complex64")),
            "cumulative_sum": lambda p, x, y: (
                p.cumulative_sum(x[0]),
                p.cumulative_sum(x, axis=1, include_initial=True),
                p.cumulative_sum(x, axis=0, dtype="float64"),
            ),
            "cumulative_prod": lambda p, x, y: (
                p.cumulative_prod(x[0]),
                p.cumulative_prod(x, axis=1, include_initial=True),
            ),
            "matmul": lambda p, x, y: (p.matmul(x, y.T), p.matmul(x, y[0])),
            "tensordot": lambda p, x, y: (
                p.tensordot(x, y, axes=2),
                p.tensordot(x, y.T, axes=1),
                p.tensordot(x, y, axes=((1,), (1,))),
            ),
            "vecdot": lambda p, x, y: (p.vecdot(x, y), p.vecdot(x, y, axis=0)),
            "diff": lambda p, x, y: (
                p.diff(x),
                p.diff(x, axis=0, n=2),
                p.diff(x, prepend=y[:, :1], append=y[:, :2]),
                p.diff(x, n=0),
            ),
            "linalg.matmul": lambda p, x, y: p.linalg.matmul(x, y.T),
            "linalg.trace": lambda p, x, y: (
                p.linalg.trace(x),
                p.linalg.trace(x, offset=1),
                p.linalg.trace(x, dtype="float32"),
            ),
            "linalg.outer": lambda p, x, y: p.linalg.outer(x[0], y[1]),
            "linalg.cross": lambda p, x, y: (
                p.linalg.cross(x[:, :3], y[:, :3]),
                p.linalg.cross(x, y, axis=0),
            ),
            "linalg.vecdot": lambda p, x, y: p.linalg.vecdot(x, y, axis=-1),
            "fft.fftshift": lambda p, x, y: (p.fft.fftshift(x), p.fft.fftshift(x, axes=0)),
            "fft.ifftshift": lambda p, x, y: p.fft.ifftshift(x, axes=(1,)),
            "linalg.tensordot": lambda p, x, y: p.linalg.tensordot(x, y, axes=2),
        },
    ),
    (
        REAL,
        {
            "argmax": lambda p, x, y: (p.argmax(x), p.argmax(x, axis=1, keepdims=True)),
            "argmin": lambda p, x, y: (p.argmin(x), p.argmin(x, axis=0)),
            "argsort": lambda p, x, y: (
                p.argsort(x, stable=True),
                p.argsort(x, axis=0, stable=True),
            ),
            "sort": lambda p, x, y: (p.sort(x), p.sort(x, axis=0, stable=True)),
            "max": lambda p, x, y: (
                p.max(x),
                p.max(x, axis=(0, 1)),
                p.max(x, axis=1, keepdims=True),
            ),
            "min": lambda p, x, y: (p.min(x), p.min(x, axis=0)),
            "searchsorted": lambda p, x, y: (
                p.searchsorted(p.sort(x[0]), y),
                p.searchsorted(x[0], y, side="right", sorter=p.argsort(x[0])),
            ),
            "clip": lambda p, x, y: (
                p.clip(x, 1, 3),
                p.clip(x, None, y),
                p.clip(x, max=2),
                p.clip(x, y, y + 1),
            ),
        },
    ),
    (
        INEXACT,
        {
            "mean": lambda p, x, y: (
                p.mean(x),
                p.mean(x, axis=0, keepdims=True),
                p.mean(x, axis=(0, 1)),
            ),
            "std": lambda p, x, y: (
                p.std(x),
                p.std(x, axis=0, correction=1),
                p.std(x, axis=1, keepdims=True, correction=0.5),
            ),
            "var": lambda p, x, y: (
                p.var(x),
                p.var(x, axis=0, correction=1.0),
                p.var(x, keepdims=True),
            ),
            "linspace": lambda p, x, y: p.linspace(x, y, 5, axis=0),
            "linalg.vector_norm": lambda p, x, y: (
                p.linalg.vector_norm(x),
                p.linalg.vector_norm(x, axis=1, keepdims=True, ord=1),
                p.linalg.vector_norm(x, axis=0, ord=np.inf),
                p.linalg.vector_norm(x, ord=3.5),
                p.linalg.vector_norm(x, axis=(0, 1), ord=0),
                p.linalg.vector_norm(x, ord=-np.inf),
            ),
            "linalg.matrix_norm": lambda p, x, y: tuple(
                (
                    p.linalg.matrix_norm(x, ord=o, keepdims=k)
                    for o, k in [
                        ("fro", True),
                        ("nuc", False),
                        (1, False),
                        (-1, True),
                        (2, False),
                        (-2, False),
                        (np.inf, False),
                        (-np.inf, False),
                    ]
                )
            ),
            "linalg.matrix_rank": lambda p, x, y: (
                p.linalg.matrix_rank(x),
                p.linalg.matrix_rank(x, rtol=0.5),
            ),
            "linalg.pinv": lambda p, x, y: (p.linalg.pinv(x), p.linalg.pinv(x, rtol=0.01)),
            "linalg.inv": lambda p, x, y: p.linalg.inv(x[:, :3]),
            "linalg.det": lambda p, x, y: p.linalg.det(x[:, :3]),
            "linalg.slogdet": lambda p, x, y: tuple(p.linalg.slogdet(x[:, :3])),
            "linalg.solve": lambda p, x, y: (
                p.linalg.solve(x[:, :3], y),
                p.linalg.solve(x[:, :3], y[:, 0]),
            ),
            "linalg.matrix_power": lambda p, x, y: (
                p.linalg.matrix_power(x[:, :3], 3),
                p.linalg.matrix_power(x[:, :3], -1),
                p.linalg.matrix_power(x[:, :3], 0),
            ),
            "linalg.svdvals": lambda p, x, y: p.linalg.svdvals(x),
            "linalg.svd": lambda p, x, y: (
                tuple(a.shape and p.abs(p.ones_like(a)) for a in p.linalg.svd(x))
                + tuple(p.ones_like(a) for a in p.linalg.svd(x, full_matrices=False))
            ),
            "linalg.qr": lambda p, x, y: (
                p.abs(p.linalg.qr(x)[1]),
                p.abs(p.linalg.qr(x, mode="complete")[0]) * 0,
            ),
            "linalg.eigvalsh": lambda p, x, y: p.linalg.eigvalsh(x[:, :3] + x[:, :3].conj().T),
            "linalg.eigh": lambda p, x, y: p.linalg.eigh(x[:, :3] + x[:, :3].conj().T)[0],
            "linalg.cholesky": lambda p, x, y: (
                p.linalg.cholesky(x[:, :3] @ x[:, :3].conj().T + 3 * np.eye(3, dtype=x.dtype)),
                p.linalg.cholesky(
                    x[:, :3] @ x[:, :3].conj().T + 3 * np.eye(3, dtype=x.dtype), upper=True
                ),
            ),
            "fft.fft": lambda p, x, y: (p.fft.fft(x), p.fft.fft(x, n=3, axis=0, norm="ortho")),
            "fft.ifft": lambda p, x, y: p.fft.ifft(x, n=6, norm="forward"),
            "fft.fftn": lambda p, x, y: (
                p.fft.fftn(x),
                p.fft.fftn(x, s=(2, 2), axes=(0, 1), norm="ortho"),
            ),
            "fft.ifftn": lambda p, x, y: p.fft.ifftn(x, axes=(0,)),
            "fft.irfft": lambda p, x, y: (p.fft.irfft(x), p.fft.irfft(x, n=5, axis=0)),
            "fft.irfftn": lambda p, x, y: (p.fft.irfftn(x), p.fft.irfftn(x, s=(3, 5), axes=(0, 1))),
            "fft.hfft": lambda p, x, y: (p.fft.hfft(x), p.fft.hfft(x, n=5, axis=0, norm="ortho")),
        },
    ),
    (
        FLOATS,
        {
            "fft.rfft": lambda p, x, y: (p.fft.rfft(x), p.fft.rfft(x, n=3, axis=0)),
            "fft.rfftn": lambda p, x, y: p.fft.rfftn(x, axes=(0, 1)),
            "fft.ihfft": lambda p, x, y: (p.fft.ihfft(x), p.fft.ihfft(x, n=5, norm="forward")),
        },
    ),
    (ALL[:9], {}),
    (INTEGERS, {}),
    (COMPLEX, {}),
]

NOW = {  # how many there are depends on values
    "nonzero": lambda p, x: p.nonzero(x),
    "unique_all": lambda p, x: tuple(p.unique_all(x)),
    "unique_counts": lambda p, x: tuple(p.unique_counts(x)),
    "unique_inverse": lambda p, x: tuple(p.unique_inverse(x)),
}


def make_operands(dtype):
    rng = np.random.default_rng(0)
    if dtype[0] in "bui":
        return rng.integers(0, 5, (3, 4)).astype(dtype), rng.integers(1, 4, (3, 4)).astype(dtype)
    x, y = rng.normal(size=(3, 4)) + 2, rng.normal(size=(3, 4)) * 0.3 + 2
    return (x + 1j * y if dtype[0] == "c" else x).astype(dtype), y.astype(dtype)


def check(name, found, wanted):
    found, wanted = (r if isinstance(r, tuple | list) else (r,) for r in (found, wanted))
    for got, want in zip(found, wanted, strict=True):
        got, want = np.asarray(got), np.asarray(want)
        assert (got.shape, got.dtype) == (want.shape, want.dtype), name
        near = 1e-4 if want.dtype in (np.float32, np.complex64) else 1e-9
        np.testing.assert_allclose(got, want, rtol=10 * near, atol=near, err_msg=name)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.sample(one_in=14)
@pytest.mark.parametrize("dtype", ALL)
def test_functions_of_whole_arrays_at_every_dtype(dtype):
    x, y = make_operands(dtype)
    calls = {n: f for kinds, fs in CALLS if dtype in kinds for n, f in fs.items()}
    with weft.enable_x64(True):
        found = weft.jit(lambda x, y: {n: f(jnp, x, y) for n, f in calls.items()})(x, y)
        for name, f in calls.items():
            check(name, found[name], f(np, x, y))
        for name, f in NOW.items():
            check(name, f(jnp, jnp.array(x)), f(np, x))


@pytest.mark.parametrize("dtype", ALL)
def test_indices_and_running_products_have_the_default_dtype(dtype):
    x = make_operands(dtype)[0]
    for wide in (False, True):
        with weft.enable_x64(wide):
            index = jnp.__array_namespace_info__().default_dtypes()["indexing"]
            if dtype in REAL:
                assert weft.eval_shape(jnp.searchsorted, x[0], x).dtype == index
                assert weft.eval_shape(jnp.digitize, x, x[0]).dtype == index
            if dtype in NUMBERS:
                made = [weft.eval_shape(f, x[0]).dtype for f in (jnp.cumulative_prod, jnp.prod)]
                assert made[0] == made[1]
