"""Products that are scaled and added to arrays in one call, against NumPy and XLA's own loops."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, NO_KERNELS, show_prepared
from tests.settings import ALL
from weft import lax
from weft.cpu import epilogues, kernels
from weft.cpu.epilogues import group_sizes
from weft.options import config

NATIVE = pytest.mark.skipif(bool(kernels.load_kernels()), reason="the kernels are not built")
SAME: Callable = lambda x: x
M, N, K = 70, 90, 80

# Products of operands x and y, after functions of each; the shapes of x, y and the result.
PRODUCTS = {
    "matrices": (lambda x, y, f, g: f(x) @ g(y), (M, K), (K, N), (M, N)),
    "left turned": (lambda x, y, f, g: f(x).T @ g(y), (K, M), (K, N), (M, N)),
    "right turned": (lambda x, y, f, g: f(x) @ g(y).T, (M, K), (N, K), (M, N)),
    "stack": (lambda x, y, f, g: f(x) @ g(y), (5, M, K), (5, K, N), (5, M, N)),
    "rows of a stack": (lambda x, y, f, g: f(x) @ g(y), (2, 35, K), (K, N), (2, 35, N)),
    "packed": (lambda x, y, f, g: f(x) @ g(y), (280, 260), (260, 250), (280, 250)),
    "symmetric": (lambda x, y, f, g: f(y).T @ g(y), (1,), (K, N), (N, N)),
    "symmetric, packed": (lambda x, y, f, g: f(y) @ g(y).T, (1,), (450, 300), (450, 450)),
    "long sums": (lambda x, y, f, g: f(x) @ g(y), (40, 600), (600, 40), (40, 40)),
    "one row": (lambda x, y, f, g: g(y) @ f(x), (700, 600), (1, 700), (1, 600)),
    "one column": (lambda x, y, f, g: f(x) @ g(y), (600, 700), (700, 1), (600, 1)),
    "vector": (lambda x, y, f, g: f(x) @ g(y), (601, 703), (703,), (601,)),
    "vector, turned": (lambda x, y, f, g: g(y) @ f(x), (701, 603), (701,), (603,)),
}


class Form(NamedTuple):
    """What a program computes with a product.

    Attributes:
      compute: a function of the product, which is a function of functions of its operands, and of
        numbers a and b, an array c of the shape of the result, a row r and a column s of it.
      extras: the names of the kernel's operands besides those that it multiplies.
      exact: the results for operands of `draw` are exact, whatever the order of sums is.
    """

    compute: Callable
    extras: str
    exact: bool = True


FORMS = {
    "left": Form(lambda p, a, b, c, r, s: p(lambda x: a * x), "left"),
    "right": Form(lambda p, a, b, c, r, s: p(SAME, lambda y: y * b), "right"),
    "both": Form(lambda p, a, b, c, r, s: p(lambda x: a * x, lambda y: b * y), "left right"),
    "left by a literal": Form(lambda p, a, b, c, r, s: p(lambda x: 2.5 * x), "left"),
    "left divided": Form(lambda p, a, b, c, r, s: p(lambda x: x / 3), "left", False),
    "scale": Form(lambda p, a, b, c, r, s: a * p(), "scale"),
    "divided": Form(lambda p, a, b, c, r, s: p() / 99, "scale", False),
    "add": Form(lambda p, a, b, c, r, s: p() + c, "add"),
    "added to": Form(lambda p, a, b, c, r, s: c + p(), "add"),
    "subtract": Form(lambda p, a, b, c, r, s: p() - c, "subtract"),
    "subtract from": Form(lambda p, a, b, c, r, s: c - p(), "subtract_from"),
    "row": Form(lambda p, a, b, c, r, s: p() + r, "add"),
    "column": Form(lambda p, a, b, c, r, s: s - p(), "subtract_from"),
    "number": Form(lambda p, a, b, c, r, s: p() + a, "add"),
    "literal": Form(lambda p, a, b, c, r, s: p() - 1.5, "subtract"),
    "weight": Form(lambda p, a, b, c, r, s: p() + b * c, "add weight"),
    "weight subtracted": Form(lambda p, a, b, c, r, s: 2 * p() - c * b, "scale subtract weight"),
    "gemm": Form(lambda p, a, b, c, r, s: p(lambda x: a * x) + b * c, "left add weight"),
    "all": Form(
        lambda p, a, b, c, r, s: b * c - a * p(lambda x: b * x, lambda y: y / 3),
        "left right scale subtract_from weight",
        False,
    ),
}


def draw(product: str, rng: np.random.Generator, exact: bool) -> list:
    """Draw operands; if `exact`, small multiples of 1/4, whose sums of products are exact."""
    _, x, y, out = PRODUCTS[product]
    shapes = [x, y, (), (), out, out[-1:], (*out[:-1], 1)]
    pick = (lambda s: rng.integers(-8, 9, s) / 4) if exact else rng.standard_normal
    return [np.asarray(pick(s)) for s in shapes]


def apply_form(product: str, form: str) -> Callable:
    """Return the program of a form and a product."""
    multiply, compute = PRODUCTS[product][0], FORMS[form].compute
    return lambda x, y, *more: compute(lambda f=SAME, g=SAME: multiply(x, y, f, g), *more)


def add_loop(program: Callable) -> Callable:
    """Return a program that also has a loop of XLA's, which keeps no epilogue from being fused."""
    return lambda *args: (program(*args), jnp.exp(jnp.arange(2000.0) * jnp.ravel(args[0])[0]))


def list_extras(text: str) -> list[str]:
    return [*filter(None, re.findall(r"extras='([^']*)'", text))]


CASES = [
    (p, f)
    for p in PRODUCTS
    for f in FORMS
    if ALL or p in ("matrices", "symmetric", "vector") or f in ("both", "row", "column", "all")
]


@NATIVE
@pytest.mark.parametrize(("product", "form"), CASES)
def test_forms(product, form, monkeypatch):
    """Results are those of NumPy, and of the separate loops: to the bit if no sum is fused."""
    rng, program = np.random.default_rng(8), apply_form(product, form)
    for dtype in (np.float32, np.float64):
        run, run_apart = (weft.jit(add_loop(apply_form(product, form))) for _ in range(2))
        for exact in (True, False):
            given = [x.astype(dtype) for x in draw(product, rng, exact)]
            with config.scope(enable_x64=True, native=True):
                got = np.asarray(run(*given)[0])
                assert list_extras(show_prepared(add_loop(program), *given)) == [FORMS[form].extras]
                with monkeypatch.context() as patch:
                    patch.setattr(epilogues, "fuse_epilogues", lambda jaxpr, target: jaxpr)
                    apart = np.asarray(run_apart(*given)[0])
            want = program(*(x.astype(float) for x in given))
            assert (got.dtype, got.shape) == (dtype, want.shape)
            if exact and FORMS[form].exact:
                np.testing.assert_array_equal(got, want)
            terms = program(*(np.abs(x).astype(float) for x in given[:2]), *map(abs, given[2:]))
            scale = np.abs(np.max(terms)) + np.abs(np.max(want))
            atol = np.finfo(dtype).eps * scale
            np.testing.assert_allclose(got, want, rtol=0, atol=32 * atol)
            if "weight" in form or form in ("gemm", "all"):
                np.testing.assert_allclose(got, apart, rtol=0, atol=2 * atol)
            else:
                np.testing.assert_array_equal(got, apart)


@NATIVE
@pytest.mark.parametrize("product", ["matrices", "symmetric", "packed", "vector", "vector, turned"])
def test_overflow_and_nan_are_those_of_the_program(product):
    """A number never moves from an operand to the product, and 0 times NaN is NaN."""
    _, x, y, out = PRODUCTS[product]
    ones = [np.ones(s, np.float32) for s in (x, y, out)]
    compute = PRODUCTS[product][0]
    with config.scope(native=True):
        run = weft.jit(add_loop(lambda x, y, c, a, b: compute(x, y, lambda v: a * v, SAME) + b * c))
        symmetric = "symm" in product
        for a, b, left, right, times, want in [
            (1e30, 1.0, 1e15, 1e15 if symmetric else 1e-15, 1, np.inf),
            (1e-30, 1.0, 1e-20, 1e-20 if symmetric else 1e20, 1, 1.0),
            (1.0, 0.0, 1, 1, np.nan, np.nan),
            (1.0, 0.0, 1, 1, np.inf, np.nan),
            (0.0, 1.0, np.inf, np.inf, 1, np.nan),
        ]:
            x, y, c = (v * np.float32(n) for v, n in zip(ones, (left, right, times), strict=True))
            got, _ = run(x, y, c, np.float32(a), np.float32(b))
            np.testing.assert_array_equal(got, np.full(got.shape, want, np.float32))
        signs = weft.jit(add_loop(lambda x, y, c: c - compute(x, y, SAME, SAME)))
        zero, _ = signs(*(v * 0 for v in ones))
        assert not np.signbit(zero).any()


X, Y = jnp.ones((M, K)), jnp.ones((K, N))
C = jnp.ones((M, N))
# Programs of x [M, K], y [K, N] and c [M, N], and the names of further operands of their kernels.
PROGRAMS = {
    "in a function": (lambda x, y, c: weft.jit(lambda x: 2 * x @ y)(x) + 1, ["left"]),
    "in a branch": (
        lambda x, y, c: lax.cond(c[0, 0] > 0, lambda: x @ y + c, lambda: c - x @ y),
        ["subtract_from", "add"],
    ),
    "two products": (lambda x, y, c: x @ y + (2 * x) @ y, ["left", "add"]),
    "three products": (lambda x, y, c: (x @ y) @ (c.T @ x) * 2, ["scale"]),
    "the addend is an operand": (lambda x, y, c: c @ y.T + x, ["add"]),
    "bias and activation": (lambda x, y, c: jnp.tanh(x @ y + c[0]), []),
    "a kernel reads the result": (lambda x, y, c: (x @ y + c).sum(), ["add"]),
    "read twice": (lambda x, y, c: ((z := x @ y) + c, z), []),
    "read twice by one": (lambda x, y, c: (z := x @ y) + z, []),
    "the sum is read by loops": (lambda x, y, c: jnp.exp(x @ y + c) * c, []),
    "the addend is computed": (lambda x, y, c: x @ y + jnp.tanh(c), []),
    "the addend is computed and scaled": (lambda x, y, c: x @ y + 2 * jnp.tanh(c), []),
    "the operand is computed": (lambda x, y, c: (2 * jnp.tanh(x)) @ y, []),
    "the operand is read twice": (lambda x, y, c: ((z := 2 * x) @ y, z), []),
    "an array is no number": (lambda x, y, c: (x * c[:, :1]) @ y, []),
    "the product is transposed": (lambda x, y, c: (x @ y).T + c.T, []),
    "the product is repeated": (lambda x, y, c: (x @ y)[None] + jnp.stack([c, c]), []),
    "a number and a sum": (lambda x, y, c: (x @ y + c) * 2, []),
    "other dtypes": (lambda x, y, c: (x @ y).astype("f2") + c.astype("f2"), []),
    "divided by a number": (lambda x, y, c: (x @ y) / c[0, 0], []),
}


def assert_close(got, want):
    """Compare results within rounding errors of their largest terms."""
    eps = float(jnp.finfo(want.dtype).eps)
    largest = np.max(np.abs(want), where=np.isfinite(want), initial=0)
    np.testing.assert_allclose(got, want, 8 * eps, 32 * eps * float(largest))


@pytest.mark.parametrize("name", PROGRAMS)
def test_which_loops_are_part_of_a_call(name, rng):
    program, extras = add_loop(PROGRAMS[name][0]), PROGRAMS[name][1]
    assert list_extras(show_prepared(program, X, Y, C)) == extras
    for target in (NO_KERNELS, KERNELS._replace(located=True)):
        assert not list_extras(show_prepared(program, X, Y, C, target=target))
    given = [rng.standard_normal(a.shape).astype("f") for a in (X, Y, C)]
    with config.scope(native=True):
        got = weft.jit(program)(*given)
    with config.scope(native=False):
        want = weft.jit(lambda *xs: program(*xs))(*given)
    weft.tree.map(assert_close, got, want)


@NATIVE
def test_loops_gradients_and_vmap(rng):
    """Transformations come before the pass, so derivatives are those of the separate operations."""
    w = rng.standard_normal((600, 600)).astype("f") / 30
    c, v = rng.standard_normal((2, 600)).astype("f")
    step = lambda w, x, c: 0.5 * (w @ x) + c
    loop = lambda w, x, c: lax.fori_loop(0, 3, lambda _, x: step(w, x, c), x)
    gram = lambda w, x, c: ((w @ x - c) @ (w @ x - c)) / 2
    programs = {
        "loop": loop,
        "gradient": weft.grad(gram, argnums=1),
        "gradient of the matrix": weft.grad(lambda w, x, c: loop(w, x, c).sum()),
        "vmap": lambda w, x, c: weft.vmap(step, (None, 0, 0))(
            w, jnp.stack([x] * 9), jnp.stack([c] * 9)
        ),
        "jvp": lambda w, x, c: weft.jvp(lambda x: step(w, x, c), (x,), (c,)),
    }
    for name, program in programs.items():
        with config.scope(native=True):
            got = weft.jit(program)(w, v, c)
            if name in ("loop", "gradient"):
                assert list_extras(show_prepared(program, w, v, c)), name
        with config.scope(native=False):
            want = program(w, v, c)
        weft.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-4), got, want)


@NATIVE
def test_the_buffer_of_a_donated_addend_is_not_written_too_early():
    x, y, c = np.ones((30, 40), "f"), np.ones((40, 50), "f"), np.ones((30, 50), "f")
    with config.scope(native=True):
        run = weft.jit(lambda x, y, c: x @ y - 2 * c, donate_argnums=2)
        got = run(x, y, jnp.asarray(c))
        assert list_extras(show_prepared(lambda x, y, c: x @ y - 2 * c, x, y, c))
    np.testing.assert_array_equal(got, np.full((30, 50), 38, np.float32))


@pytest.mark.parametrize("chained", [False, True])
def test_pairs_of_products_with_more_operands(chained, rng):
    """The residual of least squares and its gradient read the matrix once."""
    a = rng.standard_normal((700, 613))
    x, y = rng.standard_normal(613), rng.standard_normal(700)
    if chained:
        program = lambda a, x, y: (a.T @ (a @ x - y) / 700 + 2 * x,)
        names = ["extras='subtract'", "turned_extras='scale add weight'"]
    else:
        program = lambda a, x, y: (a @ x + y, x - 3 * (y @ a))
        names = ["extras='add'", "turned_extras='scale subtract_from'"]
    with config.scope(enable_x64=True, native=True):
        text = show_prepared(add_loop(program), a, x, y)
        assert text.count("kernel=weft_matvec_pair") == 1 and all(name in text for name in names), (
            text
        )
        got, _ = weft.jit(add_loop(program))(a, x, y)
    for z, want in zip(got, program(a, x, y), strict=True):
        np.testing.assert_allclose(z, want, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("sizes", "shape", "product", "grouped"),
    [
        ((4, 5), (4, 5), (20,), (20,)),
        ((1, 5), (4, 5), (4, 5), (1, 5)),
        ((1, 1, 5), (2, 3, 5), (6, 5), (1, 5)),
        ((2, 3, 1), (2, 3, 5), (6, 5), (6, 1)),
        ((1, 3, 1), (2, 3, 5), (6, 5), None),
        ((1, 5), (6, 5), (2, 3, 5), None),
        ((1, 1), (7, 1), (7,), (1,)),
        ((1, 3), (1, 3), (3, 1), (3, 1)),
    ],
)
def test_sizes_in_the_shape_of_a_product(sizes, shape, product, grouped):
    assert group_sizes(sizes, shape, product) == grouped
