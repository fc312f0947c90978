"""Programs with symbolic shapes: exported once, as StableHLO and as C, against the function.

Groups of operations are one program each, for a compilation costs more than they do.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests import settings
from tests.export.c.rows import list_rows
from weft import export, image, lax, nn, random
from weft.errors import InconclusiveDimensionOperation, IndexingError, ShapeError
from weft.export.c.compiler import WARNINGS
from weft.scipy import linalg

ROWS = [row for row in list_rows() if row.case.args]  # of the conformance suite


def arrays(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=s).astype(np.float32) for s in shapes]


def sized(*texts, dtype=np.float32, constraints=()):
    scope = export.SymbolicScope(constraints)
    return [weft.ShapeDtypeStruct(export.symbolic_shape(t, scope=scope), dtype) for t in texts]


def conv(x, k, stride, padding):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, k, (stride, stride), padding, dimension_numbers=numbers)


def attend(x):
    mask = jnp.tril(jnp.ones((x.shape[1],) * 2, bool))
    return nn.softmax(jnp.where(mask, x @ jnp.swapaxes(x, 1, 2), -jnp.inf)) @ x


def update(x):
    return [x.at[0].set(1.0), x.at[:, 1].add(2.0), x.at[jnp.array([0, 1])].multiply(3.0)]


def take_two(x, i):
    """Two elements of a vector, and their derivative."""
    part = lambda x: lax.dynamic_slice(x, (i,), (2,)) ** 2
    return part(x), weft.grad(lambda x: part(x).sum())(x)


def recur(u, v, x):
    """The derivative of a recurrent unit along the first axis, by the matrices of its state."""

    def loss(u, v):
        def step(h, row):
            update = nn.sigmoid(row + h @ u)
            h = update * h + (1 - update) * jnp.tanh(row + (h * h) @ v)
            return h, h

        return jnp.sum(lax.scan(step, jnp.zeros((x.shape[1], 5)), x)[1] ** 2)

    return weft.grad(loss, (0, 1))(u, v)


def loops(x):
    rows = lax.scan(lambda c, r: (c + r.sum(), c * r), jnp.float32(0), x)
    turns = lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i] * i, jnp.zeros(3))
    ends = lax.while_loop(lambda c: (c < 5).all(), lambda c: c + 1, x)
    branch = lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - jnp.ones_like(x), x)
    inner = weft.jit(lambda y: y * y.shape[0] + jnp.ones_like(y))(x)
    mapped = weft.vmap(lambda r: (r * r).sum() + r)(x)
    return rows, turns, ends, branch, inner, mapped


PROGRAMS = {
    "elements": (
        lambda x, y: [jnp.sin(x) + y[:, None], x * x.shape[0] + x.size / 2, nn.gelu(x),
                      jnp.where(x > 0, x, 0), jnp.clip(x, 0, 1), jnp.int8(3) + x.shape[0]],
        ("b, k", "b"), [((2, 3), (2,)), ((4, 1), (4,))],
    ),
    "shapes": (
        lambda x: [x.reshape(-1), x.reshape((-1, 2, x.shape[1])), x.T, x[None], x[:, None, :],
                   jnp.broadcast_to(x, (2, *x.shape)), jnp.concatenate([x, x[:, :1]], 1),
                   jnp.stack([x, x]), jnp.pad(x, 1), jnp.split(x, 2), jnp.repeat(x, 2, 0),
                   jnp.zeros(x.shape[0] + 1), jnp.tile(x, (2, 1)), jnp.roll(x, 1, 0)],
        ("2*b, c",), [((4, 3),), ((2, 1),)],
    ),
    "slices": (
        lambda x: [x[1:], x[:-1], x[::2], x[::-1], x[0], x[-1], x[:2], x[: x.shape[0] // 2],
                   lax.dynamic_slice(x, (1, 0), (x.shape[0] - 1, 2)), x[-3:], x[:, 1],
                   lax.dynamic_slice(x, (9, -2), (x.shape[0] - 1, 2))],
        ("b, 3",), [((2, 3),), ((5, 3),)],
    ),
    "counting": (
        lambda x: [jnp.arange(x.shape[0]), x + jnp.arange(1, x.shape[0] + 1),
                   jnp.arange(x.shape[0], 0, -1), jnp.eye(x.shape[0]), jnp.outer(x, x)],
        ("b",), [((3,),), ((1,),)],
    ),
    "numbers of elements": (
        lambda x: [*jnp.array_split(x, 3), *jnp.array_split(x, [1, 3]), jnp.tile(x, x.shape[0]),
                   jnp.repeat(x, x.shape[0]), jnp.roll(x, x.shape[0] // 2), x[x.shape[0] // 2 :],
                   jnp.arange(0.0, x.shape[0]), jnp.linspace(0, 1, x.shape[0]), x[1::2], x[::-3],
                   nn.one_hot(jnp.argsort(x), x.shape[0]), jnp.take(x, jnp.array([0, -1])),
                   jnp.einsum("i,ij,j->", x, jnp.outer(x, x), x), jnp.append(x, 1.0),
                   jnp.split(x, [1, x.shape[0] - 1]), jnp.geomspace(1.0, 2.0, x.shape[0]),
                   weft.jacrev(lambda x: x * x.sum())(x), weft.hessian(lambda x: (x**3).sum())(x)],
        ("n + 2",), [((5,),), ((4,),), ((8,),)],
    ),
    "reductions": (
        lambda x: [jnp.mean(x), jnp.std(x, 0), x.sum(1), x.max(0), jnp.argmax(x, 1),
                   jnp.argmin(x), nn.softmax(x), nn.logsumexp(x, 0), jnp.linalg.norm(x, axis=1),
                   jnp.cumsum(x, 0), jnp.cumsum(x, 1), jnp.sort(x, 0), jnp.argsort(x),
                   (x > 0).any(0), lax.top_k(x, 2)],
        ("b, 3",), [((7, 3),)],
    ),
    "products": (
        lambda x, y: [x @ y, x @ x.T, jnp.einsum("bk,kn->nb", x, y), jnp.dot(x, y[:, 0])],
        ("b, k", "k, n"), [((2, 3), (3, 4)), ((5, 1), (1, 2))],
    ),
    "lookups": (
        lambda x: [x[jnp.argsort(x[:, 0])], jnp.take_along_axis(x, jnp.argsort(x, 0), 0),
                   jnp.ones((5, 2))[jnp.argmax(x, 1)], update(x)],
        ("b, 3",), [((2, 3),), ((4, 3),)],
    ),
    "control": (loops, ("b, 3",), [((4, 3),)]),
    "convolutions": (
        lambda x, k: [conv(x, k, 1, "SAME"), conv(x, k, 2, "VALID"), conv(x, k, 2, "SAME")],
        ("b, h, w, 2", "3, 3, 2, 4"), [((2, 6, 5, 2), (3, 3, 2, 4)), ((1, 4, 8, 2), (3, 3, 2, 4))],
    ),
    "windows": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"),
        ("b, 5, 4, 2",), [((2, 5, 4, 2),)],
    ),
    "shorter or longer than a number": (
        lambda x: [jnp.resize(x, (2, 2)), jnp.resize(x, x.size + 2),
                   jnp.compress(np.array([True, False, False]), x, size=2, fill_value=9.0),
                   lax.reduce_window(x, 0.0, lax.add, (3,), (2,), "SAME"),
                   lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "SAME_LOWER"),
                   weft.grad(lambda x: lax.reduce_window(
                       x, -jnp.inf, lax.max, (2,), (2,), "SAME") @ jnp.arange(-(-x.size // 2)))(x)],
        ("b",), [((1,),), ((2,),), ((5,),)],
    ),
    "attention": (attend, ("b, n, 4",), [((2, 3, 4),), ((1, 5, 4),)]),
    "random": (
        lambda x: [x + weft.random.normal(weft.random.key(0), x.shape),
                   weft.random.bernoulli(weft.random.key(1), 0.5, x.shape)],
        ("b, 4",), [((3, 4),), ((2, 4),)],
    ),
    "padding": (
        lambda x: [jnp.pad(x, (2 * x.shape[0], 1)), jnp.pad(x, x.shape[0]),
                   jnp.pad(x, (x.shape[0], 2), constant_values=3.0),
                   lax.pad(x, 0.0, [(0, 1, x.shape[0])]),
                   *[jnp.pad(x, (2, 1), mode=m) for m in ("edge", "reflect", "symmetric", "wrap")],
                   jnp.zeros((x.shape[0] + 13) % x.shape[0]), jnp.split(x, [2]), jnp.median(x),
                   jnp.tile(x, x.shape[0]), jnp.percentile(x, jnp.array([3.0, 30.0]))],
        ("n + 3",), [((5,),), ((4,),)],
    ),
    "gradient": (
        lambda w, x: weft.grad(lambda w: jnp.tanh(attend(x @ w)).mean())(w),
        ("3, 4", "b, n, 3"), [((3, 4), (2, 4, 3))],
    ),
    "mapped": (
        lambda x, y: [weft.vmap(lambda x, i: x[i])(x, i := jnp.abs(y).astype(int)),
                      weft.vmap(take_two)(x, i[:, 0]),
                      lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 3), "SAME")],
        ("b, n + 4", "b, 2"), [((3, 5), (3, 2)), ((1, 7), (1, 2))],
    ),
    "recurrent": (
        recur, ("5, 5", "5, 5", "n, b, 5"),
        [((5, 5), (5, 5), (4, 1, 5)), ((5, 5), (5, 5), (2, 3, 5))],
    ),
}  # fmt: skip


@pytest.mark.sample(one_in=16)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f, texts, calls = PROGRAMS[name]
    constraints = ["n >= 2"] if name == "gradient" else ["b >= 2"] if name == "slices" else ()
    specs = sized(*texts, constraints=constraints)
    found = export.export(weft.jit(f))(*specs)
    written = export.to_c(f, name="f")(*specs).build(flags=["-O0", *WARNINGS, "-Werror"])
    for shapes in calls:
        xs = arrays(*shapes)
        want = f(*map(jnp.asarray, xs))
        for got in (found.call(*xs), written(*xs)):
            assert weft.tree.structure(got) == weft.tree.structure(want)
            for a, b in zip(weft.tree.leaves(got), weft.tree.leaves(want), strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.sample(one_in=32)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_rules_do_not_compare_the_size_of_a_mapped_axis(row):
    (size,) = export.symbolic_shape("b")
    with weft.config.scope(enable_x64=row.wide, hints=False):
        specs = [weft.ShapeDtypeStruct((size, *x.shape), x.dtype) for x in row.arrays()]
        export.to_c(weft.vmap(lambda *xs: row.case.apply(*xs)), name="f")(*specs)


def test_mapped_kernels_of_a_convolution():
    """They are groups, whose number StableHLO has to know; in C there may be any number."""
    mapped = weft.vmap(lambda x, k: conv(x, k, 2, "SAME"))
    graded = weft.grad(lambda x, k: jnp.sum(mapped(x, k) ** 2), (0, 1))
    x, k = arrays((2, 1, 4, 5, 2), (2, 3, 3, 2, 2))
    specs = sized("b, 1, 4, 5, 2", "b, 3, 3, 2, 2")
    want = graded(x, k)
    got = export.to_c(graded, name="f")(*specs).build(flags=["-O0"])(x, k)
    weft.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-4), got, want)
    with pytest.raises(ShapeError, match=r"feature_group_count of a convolution must be known"):
        export.export(weft.jit(mapped))(*specs)


# Functions of a vector of a symbolic size, which hold for all sizes from one on.
def compose(first, second):
    """Affine maps, one after the other."""
    return first[0] * second[0], second[0] * first[1] + second[1]


def matrix(x):
    """A positive definite matrix of the size of a vector, with distinct eigenvalues."""
    return jnp.outer(x, x) / 9 + jnp.diag(jnp.arange(2.0, x.shape[0] + 2))


def stack(x):
    """A positive definite matrix of two rows for each element."""
    return jnp.eye(2) * 3 + jnp.cos(x)[:, None, None]


def rows(x):
    """An image with a row for each element."""
    return jnp.cos(x)[:, None, None] * jnp.arange(20.0).reshape(5, 4)


KEY = random.key(0)
METHODS = ("nearest", "linear", "cubic", "lanczos3", "cubic-pytorch", "area")

OF_A_VECTOR = {
    "associative_scan": lambda x: [lax.associative_scan(jnp.add, x, reverse=r) for r in (0, 1)],
    "strided": lambda x: [
        x[1::2], x[::2], x[1::3], x[::-2], x[-1::-1], x[1:], x[:-1], x[::2] + x[::2],
    ],
    "strided to an end": lambda x: [
        x[:-1:2], x[:-1:3], x[1:-1], x[:-2:3], x[-2::-1], x[:0:-1], x[:-3:-1], x[2::-1],
        x.at[:-1:2].set(0.0), weft.grad(lambda x: jnp.sum(x[:-1:2] ** 2))(x),
    ],
    "taken out": lambda x: [
        jnp.delete(x, -1), jnp.delete(x, 0), jnp.delete(x, np.array([0, 0])),
        jnp.delete(x, slice(1)),
    ],
    "strided updates": lambda x: [x.at[::2].set(0.0), x.at[1::2].add(1.0), x.at[1::3].mul(x[1::3])],
    "gradients": lambda x: [
        weft.grad(lambda x: jnp.sum(x[1::2] ** 2))(x), weft.grad(lambda x: jnp.sum(x[::3] ** 2))(x),
    ],
    "sizes": lambda x: [
        jnp.nonzero(x, size=x.shape[0])[0], jnp.unique(x, size=x.shape[0]),
    ],
    "running": lambda x: [
        jnp.cumsum(x.astype(int)), jnp.cumprod(x.astype(int)), lax.cummax(x.astype(int)),
        lax.cumlogsumexp(x), lax.cumsum(x.astype(int), reverse=True),
    ],
    "random orders": lambda x: [
        *[random.permutation(KEY, y) for y in (x.shape[0], x, jnp.outer(x, x))],
        random.permutation(KEY, jnp.outer(x, x), axis=1, independent=True),
        random.choice(KEY, x.shape[0]), random.choice(KEY, x, (3,)),
        random.choice(KEY, x.shape[0], x.shape, replace=False),
        random.choice(KEY, x, (1,), replace=False, p=nn.softmax(x)), random.categorical(KEY, x),
        random.key_data(random.split(KEY, x.shape[0])), random.randint(KEY, (4,), 0, x.shape[0]),
    ],
    "samples": lambda x: [random.gamma(KEY, x + 1), random.poisson(KEY, x + 1)],
    "calculus": lambda x: [
        jnp.diff(x), jnp.trapezoid(x), jnp.interp(x, jnp.sort(x), x), jnp.ediff1d(x),
    ],
    "associative": lambda x: [
        lax.associative_scan(jnp.add, x), *lax.associative_scan(compose, (x, x + 1), reverse=True),
        lax.associative_scan(jnp.matmul, jnp.cos(x)[:, None, None] + jnp.eye(2)),
        lax.associative_scan(jnp.maximum, jnp.outer(jnp.cos(x), x), axis=1),
    ],
    "made": lambda x: [
        jnp.arange(x.shape[0]), jnp.arange(1, x.shape[0]), jnp.arange(0, x.shape[0], 2),
        jnp.eye(x.shape[0]), jnp.repeat(x, 2), jnp.roll(x, 1), jnp.insert(x, 0, 1.0),
        jnp.roll(x, 2), jnp.roll(x, -3), jnp.roll(x, 40),
    ],
    "images": lambda x: [
        *[image.resize(rows(x), (x.shape[0] * 2, 5, 2), method) for method in METHODS],
        *[image.resize(rows(x), (3, 5, 4), method, antialias=False) for method in METHODS[::3]],
        image.resize(rows(x), (x.shape[0], 6, 4), "linear"),
        image.resize(rows(x)[:1].repeat(3, 0), (x.shape[0], 5, 4), "linear"),
        weft.grad(lambda x: jnp.sum(image.resize(rows(x), (9, 6, 4), "cubic") ** 2))(x),
    ],
    "diagonals and chains": lambda x: [
        jnp.fill_diagonal(matrix(x), 2.0, inplace=False),
        jnp.fill_diagonal(stack(x)[0], jnp.array([3]), inplace=False),
        jnp.linalg.multi_dot([x, jnp.outer(x, x), jnp.ones((x.shape[0], 2)), jnp.ones(2)]),
    ],
    "factors": lambda x: [
        jnp.linalg.cholesky(matrix(x)), jnp.linalg.qr(matrix(x))[1], jnp.linalg.inv(matrix(x)),
        jnp.linalg.svd(matrix(x))[1], *jnp.linalg.slogdet(matrix(x)), lax.linalg.lu(matrix(x))[0],
        jnp.linalg.eigh(matrix(x))[0], jnp.sort(jnp.linalg.eigvals(matrix(x) * 1j).imag),
        jnp.linalg.solve(matrix(x), x), jnp.linalg.pinv(matrix(x)),
        linalg.solve_triangular(matrix(x), x), linalg.expm(matrix(x) / 50),
        linalg.cho_solve(linalg.cho_factor(matrix(x)), x), linalg.schur(matrix(x))[0],
    ],
    "stacks of factors": lambda x: [
        jnp.linalg.cholesky(stack(x)), jnp.linalg.svd(stack(x))[1], jnp.linalg.inv(stack(x)),
        jnp.linalg.eigh(stack(x))[0], jnp.linalg.qr(stack(x))[1], jnp.linalg.det(stack(x)),
    ],
    "gradients of factors": lambda x: [
        weft.grad(lambda x: jnp.linalg.slogdet(matrix(x))[1])(x),
        weft.grad(lambda x: jnp.sum(jnp.linalg.cholesky(stack(x)) ** 3))(x),
    ],
}  # fmt: skip


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("name", OF_A_VECTOR)
def test_functions_of_a_vector_of_a_symbolic_size(name):
    f, data = OF_A_VECTOR[name], np.array([3, 0, 1, 2, 0, 7, 5], np.float32)
    found = export.export(weft.jit(f))(*sized("n"))
    for n in (7, 2, 1):
        got, want = found.call(data[:n]), weft.jit(f)(data[:n])
        for a, b in zip(got, want, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_orders_need_more_rounds_of_larger_sizes():
    """Up to 1625 elements are sorted once, more twice; gathered samples begin at 1024."""
    shuffle = weft.jit(lambda x: random.permutation(KEY, x.shape[0]))
    draw = weft.jit(lambda x: random.gamma(KEY, x + 1))
    for f, sizes in ((shuffle, (1025, 1625, 1626)), (draw, (1025,))):
        found = export.export(f)(*sized("n"))
        for n in sizes:
            x = np.linspace(0, 2, n, dtype=np.float32)
            np.testing.assert_array_equal(found.call(x), f(x))


@pytest.mark.parametrize(
    ("f", "match"),
    [
        (
            lambda x: lax.top_k(x, x.shape[0]),
            r"chlo.top_k must have a number as k; got the symbolic",
        ),
        (lambda x: linalg.hessenberg(jnp.outer(x, x)), r"must have a number as high; got the symb"),
    ],
)
def test_sizes_that_have_to_be_numbers(f, match):
    with pytest.raises(InconclusiveDimensionOperation, match=match):
        export.export(weft.jit(f))(*sized("n"))


def test_sizes_as_values_of_64_bits():
    def f(x):
        with weft.enable_x64(True):
            return (jnp.arange(3) * x.shape[0]).astype(np.float32) + x[0]

    found = export.export(weft.jit(f))(*sized("n"))
    np.testing.assert_array_equal(found.call(np.ones(5, np.float32)), [1, 6, 11])


NEED_TWO = {
    "linspace": lambda x: jnp.linspace(0.0, 1.0, x.shape[0]),
    "logspace": lambda x: jnp.logspace(0.0, 1.0, x.shape[0]),
    "gradient": lambda x: jnp.gradient(x),
}


@pytest.mark.parametrize("name", NEED_TWO)
def test_functions_that_need_two_elements_say_by_which_constraint(name):
    with pytest.raises(InconclusiveDimensionOperation, match=r"constraints=\('n >= 2',\)"):
        export.export(weft.jit(NEED_TWO[name]))(*sized("n"))


def test_an_artefact_with_its_derivative_and_constraints():
    f = weft.jit(lambda w, i, x: (jnp.tanh(x @ w)[i].sum(), x.shape[0]))
    scope = export.SymbolicScope(["b >= 2"])
    x, i = [export.symbolic_shape(t, scope=scope) for t in ("b, 3", "k")]
    struct = weft.ShapeDtypeStruct
    specs = struct((3, 2), np.float32), struct(i, np.int32), struct(x, np.float32)
    made = export.export(f, platforms=("cpu", "cuda"))(*specs)
    found = export.deserialize(made.serialize(vjp_order=1))
    assert repr(found) == (
        "Exported(<lambda>: (f32[3,2], i32[k], f32[b,3]) -> (f32[], i32[]), "
        "platforms=('cpu', 'cuda'))"
    )
    assert str(found.vjp().out_avals[1]) == "float0[k]" and "dim_as_value" not in str(found.vjp())
    w, x = arrays((3, 2), (4, 3))
    i = np.array([2, 0, 2], np.int32)
    np.testing.assert_allclose(found.call(w, i, x)[0], f(w, i, x)[0], rtol=1e-5)
    for argument in (0, 2):
        first = lambda g: lambda *xs: g(*xs)[0]
        grads = [weft.grad(first(g), argument)(w, i, x) for g in (found.call, f)]
        np.testing.assert_allclose(*grads, rtol=1e-5)
    with pytest.raises(ShapeError, match="where k = 3, b = 1: b >= 2 does not hold"):
        found.call(w, i, x[:1])


def count_rows(x):
    return x * x, jnp.arange(x.shape[0])


DIFFERENTIATED = [
    lambda x: x[1:] * x[:-1], lambda x: x[: x.shape[0] // 2], lambda x: jnp.roll(x, 1) * x,
    lambda x: x[-1] ** 2, lambda x: x[::2] ** 3, lambda x: jnp.pad(x, (2 * x.shape[0], 1)) ** 2,
    lambda x: jnp.pad(x, (2, 1), mode="reflect") ** 2, lambda x: x.at[1:].set(0.0) * x,
    lambda x: lax.dynamic_slice_in_dim(x, 1, x.shape[0] - 1) ** 2, lambda x: jnp.median(x) * x,
    lambda x: jnp.concatenate([x, x * x]), lambda x: jnp.sort(x) * x, lambda x: jnp.diff(x) ** 2,
    lambda x: [(i + 1) * y**2 for i, y in enumerate(jnp.array_split(x, 3))], lambda x: x[::-1] * x,
    lambda x: jnp.roll(x, x.shape[0] // 2) * x, lambda x: jnp.repeat(x, x.shape[0]) ** 2,
    lambda x: jnp.tile(x, 2) ** 2, lambda x: jnp.take(x, jnp.array([0, -1])) ** 2,
    lambda x: jnp.einsum("i,j,i->j", x, x, x), lambda x: jnp.cumsum(x) ** 2, lambda x: x[1::2] ** 2,
    lambda x: lax.scan(lambda c, a: (c * 0.5 + a, c * a), jnp.float32(1), x),
    lambda x: weft.vmap(lambda a: a * jnp.sum(x * a))(x), lambda x: x.reshape(-1, 1) ** 2,
    lambda x: nn.one_hot(jnp.argsort(x), x.shape[0]) * x, lambda x: jnp.stack([x, x * x], 1),
    lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c * 0.5 + x[i], jnp.float32(1)) ** 2,
    lambda x: lax.associative_scan(compose, (jnp.cos(x), x)),
    lambda x: jnp.linspace(0, 1, x.shape[0]) * x**2, lambda x: jnp.arange(0.0, x.shape[0]) * x**2,
]  # fmt: skip


def test_derivatives_of_each_with_symbolic_sizes():
    """Programs that take, shift and pad elements, and one more derivative of all together."""
    f = jit_all(DIFFERENTIATED)
    (x,) = arrays((5,))
    found = export.deserialize(export.export(f)(*sized("n + 2")).serialize(vjp_order=2))
    total = lambda call: lambda x: sum(jnp.sum(jnp.sin(y)) for y in weft.tree.leaves(call(x)))
    for order in (1, 2) if settings.ALL else (2,):
        got, want = total(found.call), total(f)
        for _ in range(order):
            got, want = [weft.grad(lambda x, g=g: jnp.sum(g(x) ** 2)) for g in (got, want)]
        np.testing.assert_allclose(got(x), want(x), rtol=1e-3, atol=1e-3)


def jit_all(functions):
    return weft.jit(lambda x: [f(x) for f in functions])


def test_integers_of_symbolic_sizes_have_no_cotangents():
    """Their float0 cotangents have the symbolic size that the program was exported for."""
    (x,) = arrays((5,))
    found = export.deserialize(
        export.export(weft.jit(count_rows))(*sized("n")).serialize(vjp_order=1)
    )
    np.testing.assert_allclose(weft.grad(lambda x: found.call(x)[0].sum())(x), 2 * x)
    (y,) = found.vjp().call(x, x, np.zeros(5, weft.float0))
    np.testing.assert_allclose(y, 2 * x * x)


def test_a_program_called_in_another_with_symbolic_shapes():
    f = lambda x: jnp.sin(x).sum(0) + x.shape[0]
    inner = export.export(weft.jit(f), platforms=("cpu", "cuda"))(*sized("b, k"))
    g = lambda call, y: call(y.T).sum() + call(y)
    outer = export.export(weft.jit(lambda y: g(inner.call, y)))(*sized("n, 4"))
    (y,) = arrays((3, 4))
    np.testing.assert_allclose(outer.call(y), g(f, y), rtol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "problem"),
    [
        (((5,), (3,)), r"where b = 2: 2\*b = 5"),
        (((4,), (2,)), "where b = 2, c = 0: c is not at least 1"),
        (((4,), (3,)), "where b = 2, c = 1: b <= c does not hold"),
    ],
)
def test_sizes_that_do_not_fit(shapes, problem):
    specs = sized("2*b", "b + c", constraints=["b <= c"])
    found = export.export(weft.jit(lambda x, y: x))(*specs)
    with pytest.raises(ShapeError, match=rf"must be called with sizes that fit .*{problem}\.$"):
        found.call(*arrays(*shapes))
    found = export.export(weft.jit(lambda x: x))(*sized("b, b"))
    with pytest.raises(ShapeError, match=r"fit \(f32\[b,b\]\); got .*, where b = 2: b is not 3"):
        found.call(*arrays((2, 3)))
    with pytest.raises(ShapeError, match=r"types it was exported for, f32\[b,b\] for args\[0\]"):
        found.call(*arrays((2,)))


def test_what_symbolic_shapes_do_not_say():
    (x,) = sized("b")
    y, z = sized("b*c", "b")
    branch = lambda x: x if x.shape[0] > 3 else -x
    for f, args, text in [
        (branch, [x], r"^comparison: must have the same answer for all sizes; got b > 3\. Hint"),
        (lambda x: x + jnp.ones(3), [x], r"^add: shapes must broadcast together; got f32\[b\], f3"),
        (lambda x: x.reshape(2, -1), [x], "^reshape: the sizes given must divide the size of x, b"),
        (lambda x: x, [y], "^export: <lambda>: each variable must follow from a size that is lin"),
        (lambda x, y: x, [x, z], "^symbolic sizes: must be of one scope; got b of another"),
        (
            lambda x: jnp.fft.fft(x),
            [x],
            "^export: stablehlo.fft must have known sizes along the axes",
        ),
    ]:
        with pytest.raises(TypeError, match=text):
            export.export(weft.jit(f))(*args)
    for use in (weft.jit(lambda x: x + 1).lower, lambda x: jnp.zeros(x.shape)):
        with pytest.raises(
            InconclusiveDimensionOperation, match=r"must have known sizes to be com"
        ):
            use(x)


def test_a_size_in_a_program():
    jaxpr = weft.make_jaxpr(lambda x: (x * x.shape[0]).reshape(-1))(*sized("b, 3"))
    text = str(jaxpr)
    assert "a:f32[b,3]" in text and "f32[3*b]" in text
    assert "i32[] = dim_as_value[dim=b dtype=int32]" in text


def test_places_taken_out_of_a_symbolic_axis():
    """Each needs a minimum size of the axis; the error names the constraint."""
    spec = lambda *constraints: weft.ShapeDtypeStruct(
        export.symbolic_shape("n", constraints=constraints), np.float32
    )
    for places in (1, [1, 0], [-1, -2, -1], slice(0, 2), slice(-2, -1)):
        take = lambda x, places=places: jnp.delete(
            x, np.array(places) if type(places) is list else places
        )
        found = export.export(weft.jit(take))(spec("n >= 2"))
        for size in (2, 5):
            x = np.arange(size, dtype=np.float32)
            np.testing.assert_array_equal(found.call(x), np.delete(x, places))
    with pytest.raises(InconclusiveDimensionOperation, match="n >= 2"):
        export.export(weft.jit(lambda x: jnp.delete(x, 1)))(spec())
    with pytest.raises(IndexingError, match="delete: places .* must be of one sign; got"):
        export.export(weft.jit(lambda x: jnp.delete(x, np.array([0, -1]))))(spec("n >= 2"))
    with pytest.raises(ShapeError, match="delete: a slice .* must have an end; got slice"):
        export.export(weft.jit(lambda x: jnp.delete(x, slice(1, None))))(spec("n >= 2"))
