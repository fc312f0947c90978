"""jacfwd, jacrev and hessian, on pytrees, against closed forms and each other."""

import numpy as np
import pytest

import weft
from tests.api.compare import same, total
from weft import hessian, jacfwd, jacrev, lax

A = np.array([1.0, 2.0, 3.0], np.float32)
B = np.array([4.0, 5.0, 6.0], np.float32)
both = pytest.mark.parametrize("jac", [jacfwd, jacrev])


@both
def test_output_axes_come_first_and_pytrees_nest_outputs_outside(jac):
    same(jac(lambda x: x * x)(A), np.diag(2 * A))
    same(jac(lambda x: lax.reshape(x, (1, 3)) * 2)(A), 2 * np.eye(3)[None])
    got = jac(lambda p: {"o": p["a"] * p["b"], "s": total(p["a"])})({"a": A, "b": B})
    want = {"o": {"a": np.diag(B), "b": np.diag(A)}, "s": {"a": np.ones(3), "b": np.zeros(3)}}
    same(got, want)
    same(jac(lambda x: {"a": None, "b": x})(A), {"a": None, "b": np.eye(3)})


@both
def test_argnums_aux_keywords(jac):
    same(jac(lambda x, y: x * y, (0, 1))(A, B), (np.diag(B), np.diag(A)))
    same(jac(lambda x, y: x * y, -1)(A, B), np.diag(A))
    same(jac(lambda x, k: x * k)(A, k=B), np.diag(B))
    same(jac(lambda x: (x * x, {"a": x}), has_aux=True)(A), (np.diag(2 * A), {"a": A}))


@both
def test_scalars_constants_and_nothing(jac):
    out = jac(lambda x: x * x)(3.0)
    assert float(out) == 6.0 and out.shape == () and out.weak_type
    same(jac(lambda x: A)(B), np.zeros((3, 3)))
    assert jac(lambda x: x * x)(np.zeros(0, np.float32)).shape == (0, 0)
    assert jac(lambda x: ())(A) == ()


@both
def test_dtypes(jac):
    assert jac(lambda x: x * x)(A.astype(np.float16)).dtype == np.float16
    z = np.array([1 + 2j], np.complex64)
    same(jac(lambda x: x * x, holomorphic=True)(z), np.array([[2 + 4j]]))


def test_what_only_one_of_them_can_do():
    same(jacfwd(lambda x: lax.complex(x, x))(A), (1 + 1j) * np.eye(3))
    same(jacrev(lambda z: lax.real(z))(np.array([1 + 2j], np.complex64)), np.array([[1.0]]))
    out = jacrev(lambda x: x * 1.0, allow_int=True)(np.arange(3))
    assert out.shape == (3, 3) and out.dtype == np.int32 and not np.asarray(out).any()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: jacfwd(lambda x: x)(np.arange(3)), "jacfwd: inputs must be floating-point"),
        (lambda: jacrev(lambda x: x)(np.arange(3)), "jacrev: inputs must be floating-point"),
        (lambda: jacfwd(lambda x: x)(np.complex64(1)), "jacfwd: inputs must be real"),
        (lambda: jacrev(lambda x: lax.complex(x, x))(A), "jacrev: results must be real"),
        (lambda: jacrev(lambda x: x > 0)(A), "jacrev: results must be real"),
        (lambda: jacrev(2.5), "jacrev: needs a function"),
        (lambda: jacfwd(None), "jacfwd: needs a function"),
    ],
)
def test_what_they_refuse(call, text):
    with pytest.raises(TypeError) as caught:
        call()
    assert text in str(caught.value)


@both
def test_they_nest_with_each_other_and_with_jit_and_vmap(jac):
    cube = lambda x: total(x * x * x)
    for outer in (jacfwd, jacrev):
        same(outer(jac(cube))(A), np.diag(6 * A))
    same(weft.jit(jac(lax.sin))(A), np.diag(np.cos(A)))
    x = np.stack([A, B])
    want = np.stack([np.diag(np.cos(row)) for row in x])
    same(weft.vmap(jac(lax.sin))(x), want)
    same(weft.vmap(weft.jit(jac(lax.sin)))(x), want)


def test_hessian():
    same(hessian(lambda x: total(x * x * x))(A), np.diag(6 * A))
    same(hessian(lambda x: x**3)(2.0), np.float32(12))
    got = hessian(lambda p: total(p["a"] * p["a"] * p["b"]))({"a": A, "b": B})
    zero = np.zeros((3, 3))
    same(
        got,
        {"a": {"a": np.diag(2 * B), "b": np.diag(2 * A)}, "b": {"a": np.diag(2 * A), "b": zero}},
    )
    same(hessian(lambda x, y: total(x * y * y), (0, 1))(A, B)[1][1], np.diag(2 * A))
    same(hessian(lambda x: (total(x * x), x), has_aux=True)(A), (2 * np.eye(3), A))
    same(hessian(lambda x: x**3, holomorphic=True)(2.0 + 1j), np.complex64(12 + 6j))


@pytest.mark.parametrize("n", [8, 200])
def test_a_large_basis_is_computed_not_held(n):
    x = np.arange(n, dtype=np.float32)
    program = weft.jit(jacrev(lambda x: x * x)).lower(x).compile()
    assert program.memory_analysis().argument_size_in_bytes == 4 * n
    half = x.astype(weft.numpy.bfloat16)
    got = jacfwd(lambda x: x + x)(half)
    assert got.dtype == half.dtype
    np.testing.assert_array_equal(np.asarray(got, np.float32), 2 * np.eye(n))


def test_results_that_are_not_complex():
    for op in ("jacrev", "hessian"):
        with pytest.raises(weft.errors.DtypeError) as info:
            getattr(weft, op)(lambda x: abs(x), holomorphic=True)(np.complex64([1j, 2]))
        said = "jacrev: with holomorphic=True results must be complex; got f32[2]."
        assert str(info.value) == said
