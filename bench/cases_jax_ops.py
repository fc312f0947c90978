"""One large operation each, under jit, for a package with JAX's public API.

Whole programs and the cost of calls are in cases_jax.py. A row gives the name, the function and
one maker for each argument; makers and functions run only when their case does.
"""

import numpy as np


def add_operations(p):
    """Register the group op."""
    groups = add_dense, add_scans_and_sorts, add_indexing, add_random, add_linalg, add_sparse
    for add in (*groups, add_control):
        add(p, lambda name, f, *makers: add_operation(p, name, f, makers))


def add_operation(p, name, f, makers):
    """One case: `f` compiled, on arguments made once."""

    def make():
        args, compiled = [maker() for maker in makers], p.jax.jit(f)
        return lambda: compiled(*args)

    p.suite.add("op/" + name, make)


def floats(p, *shape):
    """A maker of standard normal values."""
    return lambda: p.floats(*shape)


def ints(p, high, *shape):
    """A maker of integers in [0, high)."""
    return lambda: p.ints(high, *shape)


def add_dense(p, op):
    """Elementwise work, reductions, products and convolutions."""
    jnp, lax = p.jnp, p.lax
    vector, square = floats(p, 1_000_000), floats(p, 2000, 2000)
    images = floats(p, 16, 56, 56, 32)
    heads = floats(p, 8, 8, 128, 64)

    def conv(x, w):
        layout = ("NHWC", "HWIO", "NHWC") if x.ndim == 4 else ("NWC", "WIO", "NWC")
        strides = (1,) * (x.ndim - 2)
        return lax.conv_general_dilated(x, w, strides, "SAME", dimension_numbers=layout)

    def pool(x):
        window = (1, 2, 2, 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")

    op("fuse_5000", lambda a: a * a + a * 2.0, floats(p, 5000, 5000))
    op("large_results", lambda a: (a + 1.5, a * 2.0, a - 3.0), floats(p, 4096, 4096))
    op("matmul_1024", lambda a: a @ a, floats(p, 1024, 1024))
    op("matmul_batch", lambda a: a @ a, floats(p, 64, 128, 128))
    op("matvec_2000", lambda a, b: a @ b, square, floats(p, 2000))
    op("einsum_attn", lambda a, b: jnp.einsum("bhqd,bhkd->bhqk", a, b), heads, heads)
    op("tanh_1e6", lambda a: jnp.tanh(a), vector)
    op("exp_1e6", lambda a: jnp.exp(a), vector)
    op("log1p_1e6", lambda a: jnp.log1p(jnp.abs(a)), vector)
    op("erf_1e6", lambda a: lax.erf(a), vector)
    op("sum_1e6", lambda a: jnp.sum(a), vector)
    op("sum_axis0", lambda a: a.sum(0), square)
    op("sum_axis1", lambda a: a.sum(1), square)
    op("var_axis", lambda a: a.var(0), square)
    op("argmax_1e6", lambda a: jnp.argmax(a), vector)
    op("softmax_2000", lambda a: p.nn.softmax(a, -1), square)
    op("logsumexp_2000", lambda a: p.nn.logsumexp(a, -1), square)
    op("where_clip", lambda a: jnp.where(a > 0, jnp.clip(a, -1, 1), 0), vector)
    op("conv2d_3x3", conv, images, floats(p, 3, 3, 32, 32))
    op("conv1d", conv, floats(p, 16, 1000, 32), floats(p, 5, 32, 32))
    op("maxpool", pool, images)


def add_scans_and_sorts(p, op):
    """Add cumulative operations, sorting and functions based on them."""
    jnp, lax = p.jnp, p.lax
    vector, square, short = floats(p, 1_000_000), floats(p, 2000, 2000), floats(p, 100_000)

    def sorted_floats(n):
        return lambda: jnp.sort(p.floats(n))

    op("cumsum_1e6", lambda a: jnp.cumsum(a), vector)
    op("cumsum_axis", lambda a: jnp.cumsum(a, 0), square)
    op("cummax_1e6", lambda a: lax.cummax(a), vector)
    op("sort_1e6", lambda a: jnp.sort(a), vector)
    op("argsort_1e6", lambda a: jnp.argsort(a), vector)
    op("top_k_1e6", lambda a: lax.top_k(a, 10)[0], vector)
    op(
        "searchsorted",
        lambda a, b: jnp.searchsorted(a, b),
        sorted_floats(1_000_000),
        floats(p, 10_000),
    )
    op("unique_size", lambda a: jnp.unique(a, size=1000), ints(p, 1000, 100_000))
    op("bincount", lambda a: jnp.bincount(a, length=100_000), ints(p, 100_000, 1_000_000))
    op("histogram", lambda a: jnp.histogram(a, 100)[0], vector)
    op("interp", lambda a, b, c: jnp.interp(a, b, c), short, sorted_floats(1000), floats(p, 1000))
    op("median", lambda a: jnp.median(a), short)
    op("convolve", lambda a, b: jnp.convolve(a, b), short, floats(p, 64))


def add_indexing(p, op):
    """Gathering, scattering and moving values about."""
    jnp = p.jnp
    vector, square = floats(p, 1_000_000), floats(p, 2000, 2000)
    indices, rows = ints(p, 100_000, 1_000_000), ints(p, 100_000, 100_000)

    def segment_sum(u, i):
        return p.ops.segment_sum(u, i, 100_000)

    op("gather_1e6", lambda a, i: a[i], vector, indices)
    op("scatter_add_1e6", lambda i, u: jnp.zeros(100_000).at[i].add(u), indices, vector)
    op("segment_sum", segment_sum, floats(p, 100_000, 8), rows)
    op("transpose_2000", lambda a: a.T + 0, square)
    op("concat", lambda a: jnp.concatenate([a, a]), vector)
    op("roll", lambda a: jnp.roll(a, 7), vector)
    op("pad", lambda a: jnp.pad(a, 3), square)
    op("one_hot", lambda i: p.nn.one_hot(i, 1000), ints(p, 1000, 2000))


def add_random(p, op):
    """Drawing numbers."""

    def key():
        return p.random.PRNGKey(0)

    shape = (1_000_000,)
    op("random_bits_1e6", lambda k: p.random.bits(k, shape), key)
    op("random_uniform_1e6", lambda k: p.random.uniform(k, shape), key)
    op("random_normal_1e6", lambda k: p.random.normal(k, shape), key)
    op("random_permutation_1e5", lambda k: p.random.permutation(k, 100_000), key)
    op("random_categorical", lambda k, a: p.random.categorical(k, a), key, floats(p, 1000, 1000))
    op("random_gamma_1e4", lambda k: p.random.gamma(k, 2.0, (10_000,)), key)

    def draw(name, size, *args):
        function = lambda k: getattr(p.random, name)(k, *args, shape=(size,))
        op(f"random_{name}_1e{len(str(size)) - 1}", function, key)

    for name in ("exponential", "gumbel", "laplace", "logistic", "cauchy", "rademacher"):
        draw(name, 1_000_000)
    draw("bernoulli", 1_000_000, 0.3)
    draw("truncated_normal", 1_000_000, -1.0, 2.0)
    op("random_randint_1e6", lambda k: p.random.randint(k, shape, 0, 1000), key)
    op("random_choice_1e6", lambda k: p.random.choice(k, 1000, shape), key)
    op(
        "random_choice_with_p_1e5",
        lambda k, q: p.random.choice(k, 1000, (100_000,), p=q),
        key,
        lambda: np.full(1000, 1e-3, np.float32),
    )
    draw("beta", 100_000, 2.0, 0.5)
    draw("dirichlet", 10_000, np.ones(10, np.float32))
    draw("poisson", 100_000, 3.0)
    op("random_poisson_large_1e5", lambda k: p.random.poisson(k, 100.0, (100_000,)), key)
    draw("binomial", 100_000, 10.0, 0.3)
    op("random_binomial_large_1e5", lambda k: p.random.binomial(k, 1e3, 0.3, (100_000,)), key)
    op("random_orthogonal_100", lambda k: p.random.orthogonal(k, 100), key)
    mean, cov = np.zeros(8, np.float32), np.eye(8, dtype=np.float32)
    draw("multivariate_normal", 100_000, mean, cov)


def add_linalg(p, op):
    """Fourier transforms and linear algebra."""
    jnp, square = p.jnp, floats(p, 256, 256)

    def positive():
        s = p.floats(256, 256)
        return s @ s.T + 256 * jnp.eye(256)

    op("fft_2e18", lambda a: jnp.abs(jnp.fft.fft(a)), floats(p, 2**18))
    op("fft2_512", lambda a: jnp.abs(jnp.fft.fft2(a)), floats(p, 512, 512))
    op("cholesky_256", lambda a: jnp.linalg.cholesky(a), positive)
    op("solve_256", lambda a, b: jnp.linalg.solve(a, b), square, floats(p, 256))
    op("inv_256", lambda a: jnp.linalg.inv(a), square)
    op("eigh_256", lambda a: jnp.linalg.eigh(a)[0], positive)
    op("svd_256", lambda a: jnp.linalg.svd(a)[1], square)
    op("qr_256", lambda a: jnp.linalg.qr(a)[0], square)
    op("expm_256", lambda a: p.scipy.linalg.expm(a), square)
    add_small_linalg(p, op)


def add_small_linalg(p, op):
    """Linear algebra where what surrounds LAPACK counts, and where it can be done without."""
    jnp, square = p.jnp, floats(p, 100, 100)
    eights, threes = floats(p, 1000, 8, 8), floats(p, 100_000, 3, 3)
    op("det_100", lambda a: jnp.linalg.det(a), square)
    op("inv_100", lambda a: jnp.linalg.inv(a), square)
    op("solve_100", lambda a, b: jnp.linalg.solve(a, b), square, floats(p, 100))
    op("svd_100", lambda a: jnp.linalg.svd(a)[1], square)
    op("eigh_100", lambda a: jnp.linalg.eigh(a + a.T)[0], square)
    op("det_batch", lambda a: jnp.linalg.det(a), eights)
    op("solve_batch", lambda a, b: jnp.linalg.solve(a, b), eights, floats(p, 1000, 8, 1))
    op("eigh_batch", lambda a: jnp.linalg.eigh(a + a.mT)[0], eights)
    op("solve_3x3", lambda a, b: jnp.linalg.solve(a, b), threes, floats(p, 100_000, 3, 1))
    op("inv_3x3", lambda a: jnp.linalg.inv(a), threes)
    op("det_4x4", lambda a: jnp.linalg.det(a), floats(p, 100_000, 4, 4))


def add_sparse(p, op):
    """Products of a sparse matrix [100,000, 100,000] of 10 entries a row, and a sparse Jacobian."""
    n, sparse = 100_000, p.__getattr__("experimental.sparse")

    def by_rows():
        return sparse.BCSR(tuple(map(p.jnp.asarray, p.suite.sparse_rows(n, 10))), shape=(n, n))

    def by_entry():
        data, columns, _ = p.suite.sparse_rows(n, 10)
        indices = np.stack([np.repeat(np.arange(n, dtype=np.int32), 10), columns], 1)
        args = p.jnp.asarray(data), p.jnp.asarray(indices)
        return sparse.BCOO(args, shape=(n, n), indices_sorted=True)

    for name, make in (("bcsr", by_rows), ("bcoo", by_entry)):
        op(f"sparse_{name}_vector", lambda a, x: a @ x, make, floats(p, n))
        op(f"sparse_{name}_matrix", lambda a, x: a @ x, make, floats(p, n, 32))

    def bratu(u):
        """Residuals of Bratu's equation on a square grid."""
        around = p.jnp.pad(u.reshape(50, 50), 1)
        inner = around[1:-1, 1:-1]
        sides = around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2]
        return (sides - 4 * inner + p.jnp.exp(inner)).reshape(-1)

    # JAX has no Jacobian that is sparse by itself: the dense one is what its users compute.
    derivative = getattr(p.jax, "sparse_jacobian", p.jax.jacfwd)(bratu)

    def entries(u):
        found = derivative(u)
        return getattr(found, "data", found)

    op("sparse_jacobian", entries, floats(p, 2500))


def add_control(p, op):
    """Loops and branches inside compiled code."""
    jnp, lax = p.jnp, p.lax

    def count_up(x):
        step = lambda s: (s[0] + 1, s[1] * 0.999 + 1)
        return lax.while_loop(lambda s: s[0] < 10_000, step, (0, x))[1]

    def scan(xs):
        return lax.scan(lambda h, z: (jnp.tanh(h + z), h), jnp.zeros(8), xs)[1]

    def double_each(x):
        return lax.fori_loop(0, 1000, lambda i, s: s.at[i].set(s[i] * 2), x)

    op("while_10000", count_up, lambda: jnp.float32(1.0))
    op("scan_1000_small", scan, floats(p, 1000, 8))
    op("fori_scatter", double_each, floats(p, 1000))
    op("cond", lambda a: lax.cond(a[0] > 0, lambda z: z * 2, lambda z: z + 1, a), floats(p, 8))
