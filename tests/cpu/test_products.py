"""Products of matrices, and of batches of them, by the kernel, against NumPy; else XLA's own."""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import KERNELS, NO_KERNELS, OVER_MESH, expect, show_prepared
from weft import lax
from weft.cpu import kernels
from weft.cpu import products as cpu_products
from weft.cpu.scope import Target
from weft.options import config

SIZES = [
    (3, 7, 33, 5),
    (2, 13, 16, 1),
    (5, 1, 1, 9),
    (2, 6, 40, 40),
    (3, 200, 9, 3),
    (9, 3, 150, 4),
    (1, 200, 70, 300),
    (1, 401, 17, 530),
    (1, 30, 300, 257),
    (40, 50, 40, 3),
]
LAYOUTS = ["bmk,bkn", "bmk,bnk", "bkm,bkn", "bkm,bnk"]


@pytest.fixture(autouse=True)
def all_sizes(monkeypatch):
    monkeypatch.setattr(cpu_products, "MIN_ROWS", 0)
    monkeypatch.setattr(cpu_products, "MIN_COLUMNS", 0)
    monkeypatch.setattr(cpu_products, "MIN_STACK_WORK", 0)
    monkeypatch.setattr(cpu_products, "MIN_WORK", 0)


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_the_kernel_multiplies(size, dtype, rng):
    sizes = dict(zip("bmnk", size, strict=True))
    with config.scope(enable_x64=True, native=True):
        shapes = [[[sizes[c] for c in s] for s in e.split(",")] for e in LAYOUTS]
        args = [[rng.normal(size=s).astype(dtype) for s in pair] for pair in shapes]

        @weft.jit
        def products(args):
            return [jnp.einsum(e + "->bmn", *a) for e, a in zip(LAYOUTS, args, strict=True)]

        called = products.lower(args).as_text().count("weft_dot")
        for e, pair, got in zip(LAYOUTS, args, products(args), strict=True):
            want = np.einsum(e + "->bmn", *(x.astype(np.float64) for x in pair))
            np.testing.assert_allclose(got, want, atol=1e-4 if dtype == np.float32 else 1e-12)
    assert called == (0 if kernels.load_kernels() else 4)


def test_axes_of_every_order(rng):
    """Several axes of each kind, and batches that are not first."""
    names, sizes = "abmnkl", (2, 3, 5, 34, 4, 7)
    size = dict(zip(names, sizes, strict=True))
    with config.scope(native=True):
        for lhs, rhs in itertools.product(["abmkl", "kbmal", "klabm"], ["ablkn", "anbkl", "klabn"]):
            x, y = (rng.normal(size=[size[c] for c in s]).astype(np.float32) for s in (lhs, rhs))
            e = f"{lhs},{rhs}->abmn"
            np.testing.assert_allclose(
                weft.jit(jnp.einsum, static_argnums=0)(e, x, y), np.einsum(e, x, y), atol=1e-4
            )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [(1, 1), (5, 1), (3, 70), (7, 1000), (5000, 9), (1300, 133)])
def test_the_kernel_multiplies_vectors(size, dtype, monkeypatch, rng):
    monkeypatch.setattr(cpu_products, "MIN_RUN", 0)
    m, k = size
    with config.scope(enable_x64=True, native=True):
        x, y, v = (rng.normal(size=s).astype(dtype) for s in ((m, k), (k, m), k))

        @weft.jit
        def products(x, y, v):
            return x @ v, v @ y, v[None] @ x.T, y.T @ v[:, None]

        called = products.lower(x, y, v).as_text().count("weft_matvec")
        wide = x.astype(np.float64) @ v, v @ y.astype(np.float64)
        wants = *wide, wide[0][None], wide[1][:, None]
        for got, want in zip(products(x, y, v), wants, strict=True):
            np.testing.assert_allclose(got, want, atol=1e-4 if dtype == np.float32 else 1e-12)
    assert called == (0 if kernels.load_kernels() else 4)


def test_what_the_kernel_does_not_multiply(monkeypatch):
    monkeypatch.undo()
    text = lambda x, y: weft.jit(jnp.matmul).lower(x, y).as_text()
    x = np.ones((8, 64, 64), np.float32)
    with config.scope(native=True):
        assert ("weft_dot" in text(x, x)) == (not kernels.load_kernels())
        wide = np.ones((100, 200), np.float32)
        assert ("weft_dot" in text(wide, wide.T)) == (not kernels.load_kernels())
        large = np.ones((1100, 1100), np.float32)
        assert "weft_dot" not in text(large, large)
        assert "weft_dot" not in text(large[:32], large)  # too much to add up
        assert "weft_dot" not in text(large[:4], large)
        with_more = weft.jit(lambda v, a: jnp.tanh(a) @ (v @ a))
        assert "weft_matvec" not in with_more.lower(wide[0, :100], wide).as_text()
        assert "weft_matvec" not in text(np.ones((9000, 100), np.float32), wide[0, :100])
        assert "weft_dot" not in text(x[:4], x[:4])  # too little to do
        assert "weft_dot" not in text(x, x[:, :, :8])
        assert "weft_dot" not in text(x[0, :4, :4], x[0, :4, :4])
        several = lambda x: weft.lax.scan(lambda y, _: (jnp.tanh(x @ y), None), x, None, 3)[0]
        assert "weft_dot" not in weft.jit(several).lower(x[0]).as_text()
        assert "weft_dot" not in weft.jit(lambda x: jnp.tanh(x @ x)).lower(x[0]).as_text()
        assert "weft_dot" not in text(x.astype(np.float16), x.astype(np.float16))
        assert "weft_dot" not in text(x[:0], x[:0])
    with config.scope(native=False):
        assert "weft_dot" not in text(x, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_products_wake_no_thread(monkeypatch, dtype, rng):
    """A product alone, or with few operations; also after programs where XLA computes it."""
    monkeypatch.undo()
    with config.scope(enable_x64=True, native=True):
        x, y = rng.normal(size=(20, 8)).astype(dtype), rng.normal(size=(8, 8)).astype(dtype)
        layers = weft.jit(lambda x, y: jnp.tanh(x @ y).sum())
        turned = weft.jit(lambda x, y: (y.T @ x.T).T, donate_argnums=0)
        loop = weft.jit(lambda x, y: weft.lax.fori_loop(0, 2, lambda _, x: x @ y, x))
        sizes = {f: f.lower(x, y).as_text().count("weft_dot") for f in (loop, layers, turned, loop)}
        called = int(not kernels.load_kernels())
        assert sizes == {loop: 0, layers: called, turned: called}
        tolerance = 1e-4 if dtype == np.float32 else 1e-12
        for got, want in [
            (layers(x, y), np.tanh(x @ y).sum()),
            (turned(jnp.asarray(x), y), x @ y),
            (jnp.asarray(x) @ y, x @ y),
            (loop(x, y), x @ y @ y),
            (weft.vmap(jnp.dot, (0, None))(x, y), x @ y),
            (weft.grad(lambda y: layers(x, y))(y), x.T @ (1 - np.tanh(x @ y) ** 2)),
        ]:
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [(9, 12), (120, 140), (200, 100)])
def test_small_products_of_vectors_wake_no_thread(monkeypatch, size, dtype, rng):
    monkeypatch.undo()
    m, n = size
    with config.scope(enable_x64=True, native=True):
        a, p, r = (rng.normal(size=s).astype(dtype) for s in ((m, n), n, m))
        both = weft.jit(lambda a, p, r: (a @ p, r @ a, a.T @ (a @ p)))
        text = both.lower(a, p, r).as_text()
        called = int(not kernels.load_kernels())
        assert (text.count("weft_matvec_pair"), "dot_general" in text) == (2 * called, not called)
        tolerance = 1e-4 if dtype == np.float32 else 1e-12
        for got, want in zip(both(a, p, r), (a @ p, r @ a, a.T @ (a @ p)), strict=True):
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=100 * tolerance)


def test_tiny_products_are_sums_of_outer_products():
    x = jnp.ones((16, 2, 2))
    for target in (KERNELS, NO_KERNELS):
        text = show_prepared(jnp.matmul, x, x, target=target)
        assert "dot_general" not in text
        assert [text.count(f"= {name} ") for name in ("mul", "add")] == [2, 1]
    assert "dot_general" in show_prepared(jnp.matmul, x, x, target=OVER_MESH)


@pytest.mark.parametrize("target", [KERNELS, NO_KERNELS, OVER_MESH])
def test_narrow_integers_are_added_up_in_32_bits(target):
    x = jnp.ones((4, 4), np.int8)
    expect(
        show_prepared(jnp.matmul, x, x, target=target),
        """
        { lambda ; a:i8[4,4] b:i8[4,4]. let
            c:i32[4,4] = dot_general[
              dimension_numbers=(([1], [0]), ([], []))
              preferred_element_type=int32
            ] a b
            d:i8[4,4] = convert_element_type[new_dtype=int8 weak_type=False] c
          in (d,) }
        """,
    )


def test_columns_are_passed_to_the_kernel_as_they_are():
    x, y = jnp.ones((300, 400)), jnp.ones((300, 200))
    expect(
        show_prepared(lambda x, y: jnp.einsum("km,kn->mn", x, y), x, y),
        """
        { lambda ; a:f32[300,400] b:f32[300,200]. let
            c:f32[400,200] = cpu_call[
              extras=''
              kernel=weft_dot
              left_turned=True
              right_turned=False
            ] a b
          in (c,) }
        """,
    )


def test_transposed_operands_are_passed_to_the_kernel_as_they_are():
    """A transpose would write the matrix a second time, as in `A.T @ (A @ x)`."""
    a, v, b = jnp.ones((600, 700)), jnp.ones(700), jnp.ones((64, 700))
    square = show_prepared(lambda a, v: a.T @ jnp.tanh(a @ v), a, v)
    assert "transpose" not in square and square.count("kernel=weft_matvec") == 2
    assert "turned=True" in square
    assert "transpose" not in show_prepared(lambda a, b: a @ b.T, a, b)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_product_of_a_transposed_operand_is_the_same(order):
    rng = np.random.RandomState(0)
    x, y = rng.randn(3, 4, 5).astype("f"), rng.randn(4, 5, 2).astype("f")
    given = np.ascontiguousarray(x.transpose(order))
    back = np.argsort(order)
    product = weft.jit(lambda x, y: jnp.einsum("abc,bcd->ad", jnp.transpose(x, back), y))
    np.testing.assert_allclose(product(given, y), np.einsum("abc,bcd->ad", x, y), rtol=1e-4)


@pytest.mark.parametrize(
    ("m", "k", "n", "dtype", "called"),
    [
        (320, 320, 320, "f4", True),
        (400, 400, 400, "f4", False),
        (256, 256, 256, "f8", True),
        (320, 320, 320, "f8", False),
        (1024, 32, 1024, "f4", False),  # a large result of few terms
        (32, 1024, 1024, "f8", True),  # few rows
        (1024, 1024, 32, "f4", True),
    ],
)
def test_the_kernel_multiplies_matrices_of_middle_sizes(m, k, n, dtype, called):
    with config.scope(enable_x64=True):
        x, y = (weft.ShapeDtypeStruct(s, dtype) for s in ((m, k), (k, n)))
        assert ("weft_dot" in show_prepared(lambda x, y: x @ y, x, y)) is called


STEPS = {"x @ y": 0, "x @ y.T": 0, "x.T @ y": 1}  # calls of the kernel in a loop


@pytest.mark.parametrize("product", STEPS)
def test_short_products_in_loops_are_xlas_except_of_columns(product, rng):
    """XLA pays the fixed cost of its product once for a loop."""
    multiply = eval(f"lambda x, y: {product}")
    x, y = (rng.normal(size=(32, 32)).astype(np.float32) / 8 for _ in range(2))

    def step(x, _):
        return jnp.tanh(multiply(x, y) + 1), None

    loop = lambda x: lax.scan(step, x, length=3)[0]
    nested = lambda x: lax.scan(lambda x, _: (weft.jit(loop)(x), None), x, length=1)[0]
    for fun in (loop, nested):
        assert show_prepared(fun, x).count("weft_dot") == STEPS[product]
    assert "weft_dot" in show_prepared(lambda x: step(x, None)[0], x)
    want = x
    for _ in range(3):
        want = np.tanh(multiply(want, y) + 1)
    with config.scope(native=True):
        np.testing.assert_allclose(weft.jit(nested)(x), want, rtol=1e-5, atol=1e-5)


def test_long_products_in_loops_are_the_kernels():
    x, y = (weft.ShapeDtypeStruct(s, "f4") for s in ((256, 256), (256, 256)))
    loop = lambda x, y: lax.fori_loop(0, 3, lambda _, x: x @ y, x)
    assert show_prepared(loop, x, y).count("weft_dot") == 1


def test_a_matrix_by_columns_is_multiplied_from_the_left_without_kernels():
    """XLA:CPU takes up to 20 times as long for the vector on the right."""
    rng = np.random.RandomState(0)
    a, v = rng.randn(60, 700).astype("f"), rng.randn(60).astype("f")
    for product in (lambda a, v: a.T @ v, lambda a, v: jnp.einsum("km,k->m", a, v)):
        text = show_prepared(product, a, v, target=NO_KERNELS)
        assert "transpose" not in text and "cpu_call" not in text
        assert "\n    ] b a\n" in text
        np.testing.assert_allclose(weft.jit(product)(a, v), a.T @ v, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "formula", "swapped"),
    [
        ("complex64", "kabi,ab->aki", True),  # the last axis of the matrices is not summed
        ("complex64", "akbi,ab->aki", True),
        ("complex64", "akib,ab->aki", False),
        ("complex64", "ab,aib->ai", True),  # the last axis is summed, but on the right
        ("complex64", "ab,abi->ai", False),
        ("complex128", "bi,b->i", True),
        ("float32", "kabi,ab->aki", True),
        ("float32", "akbi,ab->aki", False),  # the stack comes first
        ("float32", "ab,aib->ai", False),
        ("complex64", "kabi,abj->akij", False),  # no vectors
        ("complex64", "ka,a->ka", False),  # nothing is summed
    ],
)
def test_vectors_are_multiplied_from_the_side_that_needs_no_copy(dtype, formula, swapped, rng):
    sizes = dict(k=3, a=4, b=5, i=6, j=2)
    x, y = (rng.standard_normal([sizes[c] for c in s]) for s in formula.split("->")[0].split(","))
    if dtype.startswith("c"):
        x, y = x * (1 + 0.5j), y * (0.3 - 1j)
    x, y = x.astype(dtype), y.astype(dtype)
    expected = np.einsum(formula, x, y)
    with config.scope(enable_x64=dtype == "complex128"):
        product = lambda x, y: jnp.einsum(formula, x, y)
        text = show_prepared(product, x, y, target=NO_KERNELS)
        assert ("] b a\n" in text) == swapped
        np.testing.assert_allclose(weft.jit(product)(x, y), expected, rtol=1e-4, atol=1e-4)


def test_complex_matrices_of_many_columns_are_not_swapped():
    product = lambda x, y: jnp.einsum("abi,ab->ai", x, y)
    for count, swapped in ((1024, True), (1025, False)):
        x, y = (weft.ShapeDtypeStruct(s, "c8") for s in ((4, 5, count), (4, 5)))
        assert ("] b a\n" in show_prepared(product, x, y)) == swapped


@pytest.mark.parametrize("target", [NO_KERNELS, OVER_MESH], ids=["no kernels", "over a mesh"])
def test_without_kernels_large_products_stay(target):
    x = jnp.ones((300, 400))
    assert "cpu_call" not in show_prepared(lambda x: x @ x.T, x, target=target)


def test_reports_count_the_operations_of_small_products(monkeypatch):
    monkeypatch.undo()
    x, y = jnp.ones((20, 8)), jnp.ones((8, 8))
    layer = lambda x, y: lax.tanh(lax.dot(x, y))
    assert "weft_dot" in show_prepared(layer, x, y)
    assert "weft_dot" not in show_prepared(layer, x, y, target=Target(native=True, located=True))
