import numpy as np
import pytest

import weft
import weft.export
import weft.numpy as jnp
from weft import enable_x64, grad, make_jaxpr, vmap
from weft.errors import DtypeError, ShapeError
from weft.numpy import products


def draw(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


PAIRS = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((), (3,)), ((), ())]
STACKS = [
    *PAIRS[:4],
    ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)),
    ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4)), ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", [*PAIRS, ((5, 2, 3), (4, 3, 2)), ((5, 2, 3), (3,))])
def test_dot(shapes, rng):
    a, b = (draw(rng, *s) for s in shapes)
    np.testing.assert_allclose(products.dot(a, b), np.dot(a, b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shapes", STACKS)
def test_matmul(shapes, rng):
    a, b = (draw(rng, *s) for s in shapes)
    got = products.matmul(a, b)
    np.testing.assert_allclose(got, np.matmul(a, b), rtol=1e-5, atol=1e-6)
    assert got.shape == np.matmul(a, b).shape


@pytest.mark.parametrize("name", ["vecdot", "matvec", "vecmat", "inner", "vdot", "outer", "kron"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_other_products(name, dtype, rng):
    shapes = {
        "vecdot": ((4, 3), (3,)), "matvec": ((5, 2, 3), (3,)), "vecmat": ((3,), (5, 3, 2)),
        "inner": ((2, 3), (4, 3)), "vdot": ((2, 3), (3, 2)), "outer": ((2, 3), (4,)),
        "kron": ((2, 3), (4,)),
    }[name]  # fmt: skip
    a, b = (draw(rng, *s).astype(dtype) * (1 + 1j if dtype == np.complex64 else 1) for s in shapes)
    expected = getattr(np, name)(a, b)
    got = getattr(products, name)(a, b)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axes", [0, 1, 2, ([1], [0]), ([2, 1], [1, 0]), (-1, 1)])
def test_tensordot(axes, rng):
    shapes = {0: ((2, 3), (4,)), 1: ((2, 3, 4), (4, 5)), 2: ((2, 3, 4), (3, 4, 5))}
    by_pair = {1: ((2, 4, 3), (4, 5)), 2: ((2, 3, 4), (3, 4, 5))}
    if isinstance(axes, int):
        shape = shapes[axes]
    else:
        shape = by_pair[np.size(axes[0])] if axes != (-1, 1) else ((2, 3), (4, 3))
    a, b = (draw(rng, *s) for s in shape)
    np.testing.assert_allclose(
        products.tensordot(a, b, axes), np.tensordot(a, b, axes), rtol=1e-5, atol=1e-5
    )


def test_products_of_truth_values():
    x = np.array([[True, False], [True, True]])
    for subscripts in ("ii", "ii->i", "ij->i", "ij,jk", "ij,ij->"):
        operands = [x] * (subscripts.count(",") + 1)
        same = jnp.einsum(subscripts, *operands) == np.einsum(subscripts, *operands)
        assert same.dtype == bool and same.all()
    assert (jnp.outer(x[0], x[1]) == np.outer(x[0], x[1])).all()


def test_matmul_is_one_operation():
    jaxpr = make_jaxpr(products.matmul)(jnp.ones((4, 5, 2, 3)), jnp.ones((4, 5, 3, 2)))
    assert [e.primitive.name for e in jaxpr.eqns] == ["dot_general"]


def test_gradients_and_batching(rng):
    a, b = draw(rng, 4, 2, 3), draw(rng, 4, 3, 5)
    got = grad(lambda a: jnp.sum(jnp.einsum("bij,bjk->bik", a, b) ** 2))(a)
    expected = 2 * np.einsum("bik,bjk->bij", a @ b, b)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(vmap(products.matmul)(a, b), a @ b, rtol=1e-5, atol=1e-5)


def test_integers_and_preferred_types():
    a = np.arange(6, dtype=np.int8).reshape(2, 3)
    assert products.matmul(a, a.T).dtype == np.int8
    wide = products.matmul(a, a.T, preferred_element_type=np.int32)
    assert wide.dtype == np.int32
    np.testing.assert_array_equal(wide, a.astype(np.int32) @ a.T.astype(np.int32))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda x: products.dot(x, x),
            ShapeError,
            r"dot: axis 1 of x and axis 0 of y must be equal in size; got f32\[2,3\]",
        ),
        (lambda x: products.matmul(x, x), ShapeError, "matmul: axis 1 of x and axis 0 of y"),
        (lambda x: products.matmul(x, 2.0), ShapeError, r"at least one axis.* Hint: a \* b"),
        (lambda x: products.matmul([1.0], x), DtypeError, r"Hint: jnp.array\(\[1.0\]\)"),
        (lambda x: jnp.einsum("ij,jk", x, x), ShapeError, "got 3 and 2 for 'j'"),
        (lambda x: jnp.einsum("ijk", x), ValueError, "must have a letter for each axis"),
        (lambda x: jnp.einsum("ij->ik", x), ValueError, "must name axes of operands"),
        (lambda x: jnp.einsum("ij,jk", x), ValueError, "must name each operand's axes"),
        (lambda x: products.vecdot(x, 2.0), ShapeError, r"vecdot: .* rank 1 or more; got f32\[\]"),
        (lambda x: products.matvec(x[0], x[0]), ShapeError, "matvec: operands must have rank 2 or"),
        (lambda x: products.vecmat(x[0], x[0]), ShapeError, "vecmat: operands must have rank 2 or"),
        (lambda x: products.vecmat(1.0, x), ShapeError, "vecmat: operands must have rank 1 or"),
        (lambda x: products.tensordot(x, x, 3), ShapeError, "at most the rank of both"),
        (
            lambda x: products.tensordot(x, x, ([0], [0, 1])),
            TypeError,
            "two sequences of equal length",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(np.ones((2, 3), np.float32))


@pytest.mark.parametrize("offset", [-1, 0, 2])
def test_trace(offset, rng):
    x = draw(rng, 3, 4)
    np.testing.assert_allclose(jnp.trace(x, offset), np.trace(x, offset), rtol=1e-5)
    y = rng.integers(0, 9, (2, 3, 4)).astype(np.int8)
    got = jnp.trace(y, offset, axis1=-1, axis2=1)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, np.trace(y, offset, -1, 1))


def test_trace_adds_in_the_dtype_of_sum():
    for x64 in (False, True):
        with enable_x64(x64):
            for dtype in ("uint8", "uint32", "int8", "int32", "bool", "float16"):
                x = jnp.full((2, 2), 1, dtype)
                assert jnp.trace(x).dtype == jnp.sum(x).dtype
    with enable_x64():
        x = np.full((2, 2), 2**63 - 1, np.uint64)
        assert jnp.trace(x).dtype == np.uint64 and int(jnp.trace(x)) == 2**64 - 2
    assert jnp.trace(jnp.diag(jnp.float16([60000, 60000, -60000]))) == 60000


@pytest.mark.parametrize("sizes", [(3, 3), (2, 3), (3, 2), (2, 2)])
def test_cross(sizes, rng):
    a, b = draw(rng, 4, sizes[0]), draw(rng, sizes[1])
    # NumPy 2.5 takes no vectors of length 2 any more: they are padded to the plane z = 0.
    flat = [np.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, 3 - v.shape[-1])]) for v in (a, b)]
    want = np.cross(*flat)
    want = want[..., 2] if sizes == (2, 2) else want
    np.testing.assert_allclose(jnp.cross(a, b), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axes", [{}, {"axisa": 1, "axisc": 0}, {"axisb": 0}, {"axis": 1}])
def test_the_axes_of_cross(axes, rng):
    a, b = draw(rng, 3, 3, 3), draw(rng, 3, 3, 3)
    np.testing.assert_allclose(
        jnp.cross(a, b, **axes), np.cross(a, b, **axes), rtol=1e-5, atol=1e-6
    )


def test_products_of_mixed_dtypes():
    a, b = jnp.ones(3, jnp.bfloat16), jnp.ones(3)
    assert jnp.dot(a, b).dtype == np.float32
    assert jnp.dot(jnp.arange(3), b).dtype == np.float32
    assert (jnp.ones(3, bool) @ jnp.ones(3, bool)).dtype == np.bool_


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
@pytest.mark.parametrize(
    ("a", "b"),
    [((50, 50), (20, 20)), ((3, 9, 9), (2, 40, 20)), ((60,), (50, 20)), ((9, 7), (10, 10, 6))],
)
def test_kron_of_many_elements(a, b, dtype, rng):
    """Its rows are made of long ones, which are kept."""
    x, y = (np.rint(9 * rng.normal(size=s)).astype(dtype) for s in (a, b))
    np.testing.assert_array_equal(jnp.kron(x, y), np.kron(x, y))
    with weft.config.scope(native=False):
        np.testing.assert_array_equal(weft.jit(jnp.kron)(x, y), np.kron(x, y))


def test_kron_of_many_elements_has_derivatives_and_batches(rng):
    x, y = (rng.normal(size=s).astype(np.float32) for s in ((2, 50, 20), (10, 6)))
    kron = lambda x: jnp.kron(x, y)
    assert "keep" in str(make_jaxpr(kron)(x[0]))
    np.testing.assert_array_equal(vmap(kron)(x), [np.kron(a, y) for a in x])
    (found,) = weft.vjp(kron, x[0])[1](np.ones((500, 120), np.float32))
    np.testing.assert_allclose(found, np.full((50, 20), y.sum()), rtol=1e-4)
    np.testing.assert_array_equal(weft.jvp(kron, (x[0],), (x[1],))[1], np.kron(x[1], y))


def test_kron_of_any_number_of_rows(rng):
    (n,) = weft.export.symbolic_shape("n")
    y = rng.normal(size=(40, 30)).astype(np.float32)
    aval = weft.ShapeDtypeStruct((n, 9), np.float32)
    kron = weft.export.export(weft.jit(lambda x: jnp.kron(x, y)))(aval)
    x = rng.normal(size=(8, 9)).astype(np.float32)
    np.testing.assert_array_equal(kron.call(x), np.kron(x, y))
