"""The common cases of the field that NumPy and SciPy support, under the names of cases_jax.py."""

import numpy as np
import scipy.sparse

from suite import Suite


def add_eager(suite):
    """One operation on eight numbers."""
    rows = {
        "add": lambda x: x + x,
        "add_scalar": lambda x: x + 1,
        "sin": np.sin,
        "sum": lambda x: x.sum(),
        "index0": lambda x: x[0],
        "slice": lambda x: x[2:5],
        "index_array": lambda x: x[np.array([1, 2])],
        "reshape": lambda x: x.reshape(2, 4),
        "zeros": lambda x: np.zeros(3),
        "float": lambda x: float(x[0]),
        "where": lambda x: np.where(x > 0, x, 0.0),
        "concatenate": lambda x: np.concatenate([x, x]),
    }
    for name, f in rows.items():

        def make(f=f):
            x = suite.floats(8)
            return lambda: f(x)

        suite.add("eager/" + name, make)


def add_operations(suite):
    """One large operation each."""
    g = np.random.default_rng(0)
    vector, square = (1_000_000,), (2000, 2000)

    def op(name, f, *shapes):
        def make():
            args = [shape() if callable(shape) else suite.floats(*shape) for shape in shapes]
            return lambda: f(*args)

        suite.add("op/" + name, make)

    def ints(*args):
        return lambda: suite.ints(*args)

    def positive():
        s = suite.floats(256, 256)
        return s @ s.T + 256 * np.eye(256, dtype=np.float32)

    def sorted_floats(n):
        return lambda: np.sort(suite.floats(n))

    def scatter_add(i, u):
        np.add.at(np.zeros(100_000, np.float32), i, u)

    op("fuse_5000", lambda a: a * a + a * 2.0, (5000, 5000))
    op("large_results", lambda a: (a + 1.5, a * 2.0, a - 3.0), (4096, 4096))
    op("matmul_1024", lambda a: a @ a, (1024, 1024))
    op("matmul_batch", lambda a: a @ a, (64, 128, 128))
    op("matvec_2000", lambda a, b: a @ b, square, (2000,))
    op("tanh_1e6", np.tanh, vector)
    op("exp_1e6", np.exp, vector)
    op("log1p_1e6", lambda a: np.log1p(np.abs(a)), vector)
    op("sum_1e6", np.sum, vector)
    op("sum_axis0", lambda a: a.sum(0), square)
    op("sum_axis1", lambda a: a.sum(1), square)
    op("var_axis", lambda a: a.var(0), square)
    op("argmax_1e6", np.argmax, vector)
    op("cumsum_1e6", np.cumsum, vector)
    op("cumsum_axis", lambda a: np.cumsum(a, 0), square)
    op("cummax_1e6", np.maximum.accumulate, vector)
    op("sort_1e6", np.sort, vector)
    op("argsort_1e6", np.argsort, vector)
    op("top_k_1e6", lambda a: np.partition(a, -10)[-10:], vector)
    op("searchsorted", np.searchsorted, sorted_floats(1_000_000), (10_000,))
    op("unique_size", np.unique, ints(1000, 100_000))
    op("bincount", lambda a: np.bincount(a, minlength=100_000), ints(100_000, 1_000_000))
    op("histogram", lambda a: np.histogram(a, 100)[0], vector)
    op("interp", np.interp, (100_000,), sorted_floats(1000), (1000,))
    op("median", np.median, (100_000,))
    op("convolve", np.convolve, (100_000,), (64,))
    op("gather_1e6", lambda a, i: a[i], vector, ints(100_000, 1_000_000))
    op("scatter_add_1e6", scatter_add, ints(100_000, 1_000_000), vector)
    op("transpose_2000", lambda a: a.T.copy(), square)
    op("concat", lambda a: np.concatenate([a, a]), vector)
    op("roll", lambda a: np.roll(a, 7), vector)
    op("pad", lambda a: np.pad(a, 3), square)
    op("random_uniform_1e6", lambda: g.random(1_000_000, np.float32))
    op("random_normal_1e6", lambda: g.standard_normal(1_000_000, np.float32))
    op("random_permutation_1e5", lambda: g.permutation(100_000))
    op("random_gamma_1e4", lambda: g.standard_gamma(2.0, 10_000))
    op("fft_2e18", lambda a: np.abs(np.fft.fft(a)), (2**18,))
    op("fft2_512", lambda a: np.abs(np.fft.fft2(a)), (512, 512))
    op("cholesky_256", np.linalg.cholesky, positive)
    op("solve_256", np.linalg.solve, (256, 256), (256,))
    op("inv_256", np.linalg.inv, (256, 256))
    op("eigh_256", np.linalg.eigh, positive)
    op("svd_256", np.linalg.svd, (256, 256))
    op("qr_256", np.linalg.qr, (256, 256))
    op("det_batch", np.linalg.det, (1000, 8, 8))
    n = 100_000

    def by_rows():
        return scipy.sparse.csr_array(suite.sparse_rows(n, 10), shape=(n, n))

    for name, make in (("bcsr", by_rows), ("bcoo", lambda: by_rows().tocoo())):
        op(f"sparse_{name}_vector", lambda a, x: a @ x, make, (n,))
        op(f"sparse_{name}_matrix", lambda a, x: a @ x, make, (n, 32))


def numpy_suite():
    """All cases that NumPy has."""
    suite = Suite()
    add_eager(suite)
    add_operations(suite)
    return suite
