"""Factorizations in C++ on matrices that are hard for them: backward errors beside LAPACK's.

A case is called through XLA's interface without a program, which takes no time to compile. Errors
are computed in double precision for float32, and in long doubles for float64.
"""

import numpy as np
import pytest
import scipy.linalg

from tests.cpu.frames import Machine, load_handlers, make_buffer
from weft.cpu import kernels

pytestmark = pytest.mark.skipif(bool(kernels.load_kernels()), reason="the kernels are not built")

SIZES = [1, 2, 7, 25, 33, 97]
DTYPES = ["float32", "float64"]


def call(kernel: str, operands: list, results: list, **attributes) -> list[np.ndarray]:
    """Return the results of a kernel, of the given shapes and dtypes."""
    short = {"float32": "f32", "float64": "f64", "int32": "i32"}
    given = [make_buffer(short[x.dtype.name], x.shape, np.ravel(x)) for x in operands]
    made = [make_buffer(short[np.dtype(d).name], shape) for shape, d in results]
    error = Machine().call(load_handlers()[kernel], given, made, attributes)
    assert not error, error
    pairs = zip(made, results, strict=True)
    return [y.data.view(d).reshape(shape) for y, (shape, d) in pairs]


def widen(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64 if x.dtype == np.float32 else np.longdouble)


def measure(made: np.ndarray, x: np.ndarray, scale: np.ndarray | float | None = None) -> float:
    """Return the largest error of elements in relation to the largest element, in units of eps."""
    size = np.abs(x).max() if scale is None else scale
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(size > 0, np.abs(made - x) / size, np.abs(made - x))
    return float(error.max() / np.finfo(x.dtype).eps)


# --- matrices that are hard --------------------------------------------------------------------


def make_wilkinson(n: int, rng: np.random.Generator) -> np.ndarray:
    """Elements of U grow by 2 in each row: the most that pivots allow."""
    x = np.tril(-np.ones((n, n)), -1) + np.eye(n)
    x[:, -1] = 1
    return x


def make_near_singular(n: int, rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=(n, n))
    x[:, n // 2] = x[:, 0] * (1 + 1e-12) if n > 1 else 1e-12
    return x


def make_graded(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(n, n)) * np.logspace(0, -18, n) * np.logspace(0, -6, n)[:, None]


def make_lonely(n: int, rng: np.random.Generator) -> np.ndarray:
    """Columns whose squares are out of range: with zeros, denormal numbers, and huge numbers."""
    x = rng.normal(size=(n, n))
    scales = np.array([1e-44, 1e-30, 1e30, 1.0, 1e-20])
    return x * np.resize(scales, n) * (rng.uniform(size=(n, n)) < 0.5)


MATRICES = {
    "random": lambda n, rng: rng.normal(size=(n, n)),
    "hilbert": lambda n, rng: scipy.linalg.hilbert(n),
    "wilkinson": make_wilkinson,
    "near singular": make_near_singular,
    "graded": make_graded,
    "huge": lambda n, rng: rng.normal(size=(n, n)) * 1e30,
    "tiny": lambda n, rng: rng.normal(size=(n, n)) * 1e-36,
    "lonely": make_lonely,
    "rank one": lambda n, rng: np.outer(np.arange(1, n + 1), np.ones(n)),
    "zero": lambda n, rng: np.zeros((n, n)),
    "identity": lambda n, rng: np.eye(n),
}


def draw(name: str, n: int, dtype: str) -> np.ndarray:
    x = MATRICES[name](n, np.random.default_rng(n)).astype(dtype)
    return x * np.dtype(dtype).type(1e-270) if (name, dtype) == ("tiny", "float64") else x


CASES = pytest.mark.parametrize("name", MATRICES)
OF_DTYPES = pytest.mark.parametrize("dtype", DTYPES)


def compare(errors: list[tuple[float, float]], least: float = 4) -> None:
    """The worst error of the kernel is about as LAPACK's, or a few units of eps."""
    ours, lapack = map(max, zip(*errors, strict=True))
    assert ours <= max(2 * lapack, least), (ours, lapack)


@pytest.mark.sample(one_in=2)
@OF_DTYPES
@CASES
def test_lu_is_as_exact_as_lapack(name, dtype):
    errors = []
    for m, n in [(n, n) for n in SIZES] + [(97, 40), (40, 97)]:
        x = np.ascontiguousarray(draw(name, max(m, n), dtype)[:m, :n])
        k = min(m, n)
        y, pivots, order = call(
            "weft_lu", [x], [(x.shape, dtype), ((k,), np.int32), ((m,), np.int32)]
        )
        assert sorted(order) == [*range(m)] and (pivots >= range(k)).all()
        assert np.abs(np.tril(y, -1)).max(initial=0) <= 1
        with np.errstate(all="ignore"):
            getrf = scipy.linalg.get_lapack_funcs("getrf", (x,))
            other, swaps, _ = getrf(x)
        taken = [*range(m)]
        for i, j in enumerate(swaps):
            taken[i], taken[j] = taken[j], taken[i]
        pair = []
        for factors, rows in ((y, order), (other, taken)):
            left = np.tril(widen(factors), -1)[:, :k] + np.eye(m, k)
            scale = max(np.abs(x).max(), np.abs(np.triu(factors)).max())
            pair.append(measure(left @ np.triu(widen(factors))[:k], widen(x)[rows], scale))
        errors.append([e / np.finfo(dtype).eps * np.finfo(widen(x).dtype).eps for e in pair])
    compare(errors)


@pytest.mark.sample(one_in=2)
@OF_DTYPES
@CASES
def test_qr_is_as_exact_as_lapack(name, dtype):
    """Each column of R has the error of that column, however small it is."""
    errors, turned = [], []
    for m, n in [(n, n) for n in SIZES] + [(97, 40), (40, 97)]:
        x = np.ascontiguousarray(draw(name, max(m, n), dtype)[:m, :n])
        k = min(m, n)
        pair = []
        for wide in (k, m):
            q, r = call("weft_qr", [x], [((m, wide), dtype), ((wide, n), dtype)])
            pair.append(measure_qr(q, r, x))
            turned.append(measure_turn(q))
        errors.append((max(pair), measure_qr(*scipy.linalg.qr(x, mode="economic"), x)))
    compare(errors, 4)
    assert max(turned) < 32


def measure_qr(q: np.ndarray, r: np.ndarray, x: np.ndarray) -> float:
    """The largest error of an element in relation to the norm of its column, in units of eps."""
    assert not np.tril(r, -1).any()
    unit = np.finfo(x.dtype).eps
    size = np.maximum(np.sqrt((widen(x) ** 2).sum(0)), np.finfo(x.dtype).tiny / unit)
    return float(np.max(np.abs(widen(q) @ widen(r) - x) / size) / unit)


def measure_turn(q: np.ndarray) -> float:
    """The largest element of Q^T Q - 1, in units of eps."""
    gram = widen(q).T @ widen(q)
    return float(np.abs(gram - np.eye(len(gram))).max() / np.finfo(q.dtype).eps)


@OF_DTYPES
def test_qr_of_many_small_matrices(dtype):
    """One in each lane, with other scales and zeros in each, and lanes that are not used."""
    for m, n in [(1, 1), (2, 2), (3, 7), (7, 3), (20, 20), (32, 9), (9, 32), (32, 32)]:
        size = max(m, n)
        x = np.stack([draw(name, size, dtype)[:m, :n] for name in MATRICES])
        for wide in {m, min(m, n)}:
            results = [((len(x), m, wide), dtype), ((len(x), wide, n), dtype)]
            for q, r, given in zip(*call("weft_qr", [x], results), x, strict=True):
                other = measure_qr(*scipy.linalg.qr(given, mode="economic"), given)
                assert measure_qr(q, r, given) <= max(2 * other, 4)
                assert measure_turn(q) < 16
        x[3, m // 2, n // 2] = np.nan
        x[5, 0, 0] = np.inf
        q, r = call("weft_qr", [x], results)
        lost = ~np.isfinite(q).all((1, 2)) | ~np.isfinite(r).all((1, 2))
        assert [*np.flatnonzero(lost)] == [3, 5]


@OF_DTYPES
def test_cholesky_is_as_exact_as_lapack(dtype):
    errors = []
    unit = np.finfo(dtype).eps
    rng = np.random.default_rng(0)
    for n in SIZES:
        a = rng.normal(size=(n, n))
        scales = np.exp(rng.uniform(-20, 20, n))
        small = 1e-30 if dtype == "float32" else 1e-290
        matrices = [
            a @ a.T + np.eye(n),
            np.eye(n) * 2 - np.eye(n, k=1) - np.eye(n, k=-1),
            (a @ a.T + n * np.eye(n)) * np.outer(scales, scales),
            (a @ a.T + np.eye(n)) * small,
            (a @ a.T + np.eye(n)) / small,
            scipy.linalg.hilbert(n) + 4 * n * unit * np.eye(n),
        ]
        for x in (x.astype(dtype) for x in matrices):
            given = np.tril(x) + np.triu(np.full_like(x, np.nan), 1)  # which is not read
            (y,) = call("weft_cholesky", [given], [(x.shape, dtype)], symmetrize=False)
            assert not np.triu(y, 1).any()
            other = widen(scipy.linalg.cholesky(x, lower=True))
            scale = np.sqrt(np.outer(*[widen(np.diag(x))] * 2))
            pair = [np.abs(z @ z.T - x) / scale for z in (widen(y), other)]
            errors.append([e.max() / unit for e in pair])
    compare(errors)


@OF_DTYPES
def test_cholesky_of_sizes_about_those_of_panels_and_parts(dtype):
    rng = np.random.default_rng(8)
    unit = np.finfo(dtype).eps
    for n in [*range(1, 20), 23, 31, 32, 33, 47, 48, 63, 64, 65, 191, 192, 193, 240, 385, 400]:
        a = rng.normal(size=(n, n))
        x = (a @ a.T + np.eye(n)).astype(dtype)
        given = np.tril(x) + np.triu(np.full_like(x, np.nan), 1)
        (y,) = call("weft_cholesky", [given], [(x.shape, dtype)], symmetrize=False)
        assert not np.triu(y, 1).any()
        scale = np.sqrt(np.outer(*[np.diag(x)] * 2))
        y = y.astype(np.float64) if dtype == "float32" else y
        assert np.max(np.abs(y @ y.T - x) / scale) < 8 * unit


@OF_DTYPES
def test_cholesky_of_other_matrices_is_nan(dtype):
    """A negative, zero or NaN pivot anywhere makes one matrix of a batch NaN, and no other."""
    for n in (5, 24, 40, 130):
        for at in (0, n // 2, n - 1):
            for value in (-1, 0, np.nan):
                x = np.stack([np.eye(n, dtype=dtype)] * 12)
                x[5, at, at] = value
                x[2, n - 1, n // 2] = 7
                x[3, 1, 0] = np.nan
                (y,) = call("weft_cholesky", [x], [(x.shape, dtype)], symmetrize=False)
                for i, z in enumerate(y):
                    lost = np.isnan(z[np.tril_indices(n)])
                    assert lost.all() if i in (2, 3, 5) else not lost.any()
                    assert not z[np.triu_indices(n, 1)].any()


@OF_DTYPES
def test_cholesky_of_symmetrized_matrices(dtype):
    rng = np.random.default_rng(2)
    for shape in [(20, 7, 7), (3, 40, 40), (97, 97)]:
        x = rng.normal(size=shape).astype(dtype) + 4 * shape[-1] * np.eye(shape[-1], dtype=dtype)
        half = (x + np.swapaxes(x, -1, -2)) * np.dtype(dtype).type(0.5)
        (y,) = call("weft_cholesky", [x], [(shape, dtype)], symmetrize=True)
        (z,) = call("weft_cholesky", [half], [(shape, dtype)], symmetrize=False)
        np.testing.assert_array_equal(y, z)


def pull(low: np.ndarray, ct: np.ndarray) -> np.ndarray:
    """The cotangent of a matrix from that of its Cholesky factor, in double precision."""
    low, ct = low.astype(np.float64), ct.astype(np.float64)
    half = np.tril(np.swapaxes(low, -1, -2) @ ct)
    half -= np.tril(np.triu(half)) / 2
    inverse = np.linalg.inv(np.tril(low))
    return np.swapaxes(inverse, -1, -2) @ half @ inverse


def pull_by_kernel(
    low: np.ndarray,
    ct: np.ndarray,
    apart: bool = False,
    lower: bool = True,
    symmetric: bool = False,
) -> np.ndarray:
    """The same by the kernel, in one call or in two."""
    steps = [(True, False), (False, True)] if apart else [(True, True)]
    for product, solve in steps:
        result = [(low.shape, low.dtype)]
        how = {"product": product, "solve": solve, "lower": lower, "symmetric": symmetric}
        (ct,) = call("weft_cholesky_pullback", [low, ct], result, **how)
    return ct


@pytest.mark.sample(one_in=2)
@OF_DTYPES
def test_cotangents_through_cholesky(dtype):
    """Sizes below, at and above those of a block, and batches; elements above count as zeros."""
    rng = np.random.default_rng(6)
    sizes = [*range(1, 8), 47, 48, 49, 95, 96, 97, 98, 144, 145, 193, 250, 300]
    for shape in [*((n, n) for n in sizes), (5, 60, 60), (2, 3, 110, 110)]:
        n = shape[-1]
        low = np.tril(rng.normal(size=shape) / np.sqrt(n)) + 2 * np.eye(n)
        ct = np.tril(rng.normal(size=shape))
        want = pull(low, ct)
        low, ct = low.astype(dtype), ct.astype(dtype)
        error = 100 * np.sqrt(n) * np.finfo(dtype).eps * np.abs(want).max()
        whole = pull_by_kernel(low, ct)
        np.testing.assert_allclose(whole, want, rtol=0, atol=error)
        np.testing.assert_array_equal(pull_by_kernel(low, ct, apart=True), whole)
        more = ct + np.triu(rng.normal(size=shape).astype(dtype), 1)
        np.testing.assert_allclose(pull_by_kernel(low, more), want, rtol=0, atol=error)
        low += np.triu(more, 1)  # counts in the product, if it is not said to be lower
        want = pull(low, ct)
        error = 100 * np.sqrt(n) * np.finfo(dtype).eps * np.abs(want).max()
        made = pull_by_kernel(low, ct, lower=False)
        np.testing.assert_allclose(made, want, rtol=0, atol=error)


def test_nan_of_a_factor_or_its_cotangent_is_not_lost():
    """A NaN at (i, j) reaches rows up to i and columns up to j, and one in a factor all of them."""
    n = 250
    low, ct = np.eye(n) + np.tril(np.ones((n, n))) / n, np.tril(np.ones((n, n)))
    for i, j in [(0, 0), (100, 3), (100, 100), (n - 1, 0), (n - 1, n - 1)]:
        lost = ct.copy()
        lost[i, j] = np.nan
        made = np.isnan(pull_by_kernel(low, lost))
        assert made[: i + 1, : j + 1].all()
    failed = np.where(low == 0, 0, np.nan)
    assert np.isnan(pull_by_kernel(failed, ct)).all()
    assert np.isnan(pull_by_kernel(failed, np.zeros((n, n)))).all()


@pytest.mark.sample(one_in=2)
@OF_DTYPES
def test_symmetric_cotangents_through_cholesky(dtype):
    """The symmetric part is computed by another algorithm, which reads two lower triangles."""
    rng = np.random.default_rng(7)
    sizes = [*range(1, 10), 31, 32, 33, 47, 48, 49, 80, 96, 97, 100, 144, 145, 193, 250, 300]
    for shape in [*((n, n) for n in sizes), (5, 60, 60), (2, 3, 110, 110)]:
        n = shape[-1]
        low = np.tril(rng.normal(size=shape) / np.sqrt(n)) + 2 * np.eye(n)
        ct = np.tril(rng.normal(size=shape))
        want = pull(low, ct)
        want = (want + np.swapaxes(want, -1, -2)) / 2
        lost = np.triu(np.full((n, n), np.nan), 1)
        low, ct = (low + lost).astype(dtype), (ct + lost).astype(dtype)
        error = 30 * np.sqrt(n) * np.finfo(dtype).eps * np.abs(want).max()
        made = pull_by_kernel(low, ct, symmetric=True)
        np.testing.assert_allclose(made, want, rtol=0, atol=error)
        np.testing.assert_array_equal(made, np.swapaxes(made, -1, -2))


def test_nan_of_a_symmetric_cotangent_is_not_lost():
    """A NaN at (i, j) reaches every element that depends on it."""
    n = 250
    low, ct = np.eye(n) + np.tril(np.ones((n, n))) / n, np.tril(np.ones((n, n)))
    for i, j in [(0, 0), (40, 3), (100, 3), (100, 100), (n - 1, 0), (n - 1, n - 1)]:
        lost = ct.copy()
        lost[i, j] = np.nan
        made = np.isnan(pull_by_kernel(low, lost, symmetric=True))
        assert made[i, : j + 1].all() and made[: j + 1, : j + 1].all()
    failed = np.where(low == 0, 0, np.nan)
    assert np.isnan(pull_by_kernel(failed, ct, symmetric=True)).all()
    assert np.isnan(pull_by_kernel(failed, np.zeros((n, n)), symmetric=True)).all()


def test_nan_stays_nan():
    """No NaN or infinity is lost."""
    x = np.random.default_rng(0).normal(size=(60, 60)).astype(np.float32)
    for value in (np.nan, np.inf):
        x[31, 20] = value
        q, r = call("weft_qr", [x], [(x.shape, "float32")] * 2)
        assert not np.isfinite(r[20:, 20:]).all() and not np.isfinite(q).all()
        y, *_ = call("weft_lu", [x], [(x.shape, "float32"), ((60,), np.int32), ((60,), np.int32)])
        assert not np.isfinite(y).all()


@pytest.mark.sample(one_in=2)
@OF_DTYPES
def test_large_triangular_systems(dtype):
    """Every form of a system, divided and not, against solutions that are known."""
    rng = np.random.default_rng(3)
    for n, k in [(97, 1), (1091, 1), (130, 33), (250, 3), (24, 97), (3, 200)]:
        e = rng.normal(size=(n, n)) / np.sqrt(n) + 3 * np.eye(n)
        x = rng.normal(size=(n, k))
        for left, lower, transpose, unit in np.ndindex(2, 2, 2, 2):
            a = (np.tril if lower else np.triu)(e, 0)
            a[np.diag_indices(n)] = 1 if unit else np.diag(e)
            op = a.T if transpose else a
            b = op @ x if left else x.T @ op
            given = np.where(a == 0, np.nan, a)
            if unit:
                given[np.diag_indices(n)] = np.nan  # not read
            flags = map(bool, (left, lower, transpose, unit))
            how = dict(zip(("left", "lower", "transpose", "unit"), flags, strict=True))
            (y,) = call(
                "weft_trsm", [given.astype(dtype), b.astype(dtype)], [(b.shape, dtype)], **how
            )
            want = x if left else x.T
            np.testing.assert_allclose(y, want, atol=200 * n * np.finfo(dtype).eps, rtol=0)


@OF_DTYPES
def test_products_with_both_operands_packed(dtype):
    """Sums of more than one chunk, rows and columns that fill no tile, transposed operands."""
    rng = np.random.default_rng(4)
    for m, n, k in [(301, 290, 300), (100, 130, 512), (260, 260, 270)]:
        x, y = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        want = widen(x).astype(float) @ widen(y).astype(float)
        for left, right in np.ndindex(2, 2):
            operands = [np.ascontiguousarray(a.T if t else a) for a, t in ((x, left), (y, right))]
            how = {"left_turned": bool(left), "right_turned": bool(right), "extras": ""}
            (z,) = call("weft_dot", operands, [((m, n), dtype)], **how)
            np.testing.assert_allclose(z, want, rtol=0, atol=1000 * np.finfo(dtype).eps)


def test_large_factors_by_packed_products():
    rng = np.random.default_rng(5)
    n = 560
    a = rng.normal(size=(n, n))
    (y,) = call("weft_cholesky", [a @ a.T + n * np.eye(n)], [((n, n), "float64")], symmetrize=True)
    np.testing.assert_allclose(y @ y.T, a @ a.T + n * np.eye(n), atol=1e-10)
    y, _, order = call("weft_lu", [a], [((n, n), "float64"), ((n,), np.int32), ((n,), np.int32)])
    np.testing.assert_allclose((np.tril(y, -1) + np.eye(n)) @ np.triu(y), a[order], atol=1e-11)
    q, r = call("weft_qr", [a], [((n, n), "float64")] * 2)
    np.testing.assert_allclose(q @ r, a, atol=1e-12)
