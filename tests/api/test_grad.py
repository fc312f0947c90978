"""grad, value_and_grad, vjp, jvp, linearize and linear_transpose on pytrees; their errors."""

from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.api.compare import same, total
from weft import errors, grad, jvp, lax, linear_transpose, linearize, value_and_grad, vjp
from weft.core.trace import current_trace
from weft.dtypes import float0

A = np.array([1.0, 2.0, 3.0], np.float32)
B = np.array([4.0, 5.0, 6.0], np.float32)
FLOAT0 = np.zeros(3, float0)


class Pair(NamedTuple):
    a: object
    b: object


# --- grad -----------------------------------------------------------------------------------


def test_argnums_int_gives_one_gradient_and_a_tuple_gives_a_tuple():
    f = lambda x, y: total(x * y)
    same(grad(f)(A, B), B)
    same(grad(f, 1)(A, B), A)
    same(grad(f, -1)(A, B), A)
    same(grad(f, (0, 1))(A, B), (B, A))
    same(grad(f, (-1, 0))(A, B), (A, B))
    same(grad(f, [0])(A, B), (B,))


def test_pytrees_in_and_out():
    same(
        grad(lambda p: total(p["w"] * A) + p["b"])({"w": A, "b": 1.0}), {"w": A, "b": np.float32(1)}
    )
    same(grad(lambda p: total(p.a * A) + p.b[0])(Pair(A, [1.0, None])), Pair(A, [1.0, None]))


def test_keyword_arguments_pass_through():
    assert float(grad(lambda x, *, k: x * k)(2.0, k=3.0)) == 3.0
    assert float(grad(lambda x, k=5: x * k)(2.0, k=3)) == 3.0


def test_aux_is_returned_without_derivatives():
    gradient, aux = grad(lambda x: (x * x, {"y": x + 1, "x": x, "s": "text"}), has_aux=True)(2.0)
    assert float(gradient) == 4.0
    assert aux == {"y": 3.0, "x": 2.0, "s": "text"}
    assert not any(isinstance(leaf, weft.core.Tracer) for leaf in weft.tree.leaves(aux))
    (value, aux), gradient = value_and_grad(lambda x: (x * x, None), has_aux=True)(2.0)
    assert (float(value), aux, float(gradient)) == (4.0, None, 4.0)


def test_aux_is_built_after_the_trace():
    class Box:
        def __init__(self, x):
            self.x, self.where = x, current_trace()

    weft.tree_util.register_pytree_node(Box, lambda b: ((b.x,), None), lambda _, xs: Box(*xs))
    _, aux = grad(lambda x: (x * x, Box(x + 1)), has_aux=True)(2.0)
    assert (aux.x, aux.where) == (3.0, current_trace())


def test_aux_keeps_the_derivatives_of_outer_functions():
    def outer(x):
        gradient, aux = grad(lambda y: (y * x, y * x * x), has_aux=True)(2.0)
        return gradient + aux

    assert float(grad(outer)(3.0)) == 1.0 + 2 * 2.0 * 3.0


def test_gradient_of_a_constant_is_zero_in_the_type_of_the_input():
    same(grad(lambda x: 3.0)(A), np.zeros(3, np.float32))
    same(grad(lambda x: np.float32(3))(2.0), np.float32(0))


def test_dtypes_and_weak_types_of_gradients_are_those_of_the_inputs():
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32):
        assert grad(lambda x: x * x * 3.0)(dtype(2)).dtype == dtype
    assert grad(lambda x: x * np.float32(3))(2.0).weak_type
    assert not grad(lambda x: x * 3.0)(np.float32(2)).weak_type
    assert grad(lambda x: lax.reduce_sum(A * x, (0,)))(2.0).weak_type
    with weft.enable_x64():
        assert grad(lambda x: x * x)(np.float64(2)).dtype == np.float64


def test_zero_size_inputs():
    assert grad(lambda x: total(x * x))(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_integers_under_allow_int_have_float0_gradients():
    gx, gi = grad(lambda x, i: total(x * i), (0, 1), allow_int=True)(A, np.arange(3))
    same(gx, np.arange(3.0))
    assert gi.dtype == float0 and gi.shape == (3,)


def test_float0_passes_through_jit_and_vmap():
    g = grad(lambda x, i: x * i, (0, 1), allow_int=True)
    for f in (weft.vmap(g), weft.jit(weft.vmap(g)), weft.vmap(weft.jit(g))):
        gx, gi = f(A, np.arange(3))
        same(gx, np.arange(3.0))
        assert gi.dtype == float0 and gi.shape == (3,)
    pushed = weft.jit(lambda x, t: jvp(lambda x, i: x * i, (x, np.arange(3)), (x, t)))
    same(pushed(A, FLOAT0)[1], A * np.arange(3))
    assert weft.jit(lambda t: t)(FLOAT0).dtype == float0
    out = weft.vmap(grad(lambda i: total(i * 2.0), allow_int=True), out_axes=1)(
        np.ones((2, 3), np.int32)
    )
    assert out.dtype == float0 and out.shape == (3, 2)


def test_arguments_beside_a_float0_keep_their_names():
    def f(x, t, y):
        return x if y else t

    for run in (weft.jit(f), weft.jit(f).lower):
        with pytest.raises(weft.errors.TracerError, match="from argument `y` of f"):
            run(A, FLOAT0, 1.0)


def test_the_convention_for_complex_inputs():
    z = np.complex64(1 + 2j)
    same(grad(lambda z: lax.real(z * lax.conj(z)))(z), np.complex64(2 - 4j))
    same(grad(lambda z: lax.abs(z))(np.complex64(3 + 4j)), np.complex64(0.6 - 0.8j))
    same(grad(lambda z: lax.imag(z * z))(z), np.complex64(4 - 2j))
    same(
        grad(lambda z, x: lax.real(z * lax.complex(x, x)), (0, 1))(z, np.float32(3)),
        (np.complex64(3 + 3j), np.float32(-1)),
    )
    same(grad(lambda z: z * z, holomorphic=True)(z), np.complex64(2 + 4j))


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: grad(lambda x: x)(A), ValueError, "must return a scalar; got f32[3]"),
        (lambda: grad(lambda x: (x, x))(1.0), TypeError, "must return one scalar"),
        (lambda: grad(lambda x: None)(1.0), TypeError, "must return one scalar"),
        (lambda: grad(lambda x: x * 2.0)(2), TypeError, "inputs must be floating-point"),
        (lambda: grad(lambda x: x * 2.0)(True), TypeError, "got bool[] as argument 0"),
        (lambda: grad(lambda p: p["i"] * 2.0)({"i": 1}), TypeError, "argument 0['i'] of"),
        (lambda: grad(lambda x: 3)(2.0), TypeError, "floating-point scalar; got i32[]"),
        (lambda: grad(lambda z: z * z)(1j), TypeError, "holomorphic=True"),
        (lambda: grad(lambda x: x, holomorphic=True)(1.0), TypeError, "inputs must be complex"),
        (lambda: grad(lambda x: x, 1)(1.0), TypeError, "got 1 for a call of <lambda> with 1"),
        (lambda: grad(lambda x: x)(x=1.0), TypeError, "keyword arguments cannot"),
        (lambda: grad(lambda x, y: x, (0, -2))(1.0, 1.0), ValueError, "must be distinct"),
        (lambda: grad(lambda x: x, 1.5), TypeError, "argnums must be an int"),
        (lambda: grad(3.0), TypeError, "needs a function; got 3.0"),
        (lambda: grad(3.0), TypeError, "Hint: grad(f)(x), not grad(f(x))"),
        (lambda: grad(lambda x: x)("a"), TypeError, "got 'a' of type str at x of <lambda>"),
        (lambda: grad(lambda x: x * x, has_aux=True)(1.0), TypeError, "a pair (output, aux)"),
    ],
)  # fmt: skip
def test_what_grad_refuses(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_numpy_on_a_value_that_is_differentiated_is_an_error_though_the_value_is_known():
    with pytest.raises(errors.TracerArrayConversionError, match=r"Hint: jnp.sin"):
        grad(lambda x: np.sin(x))(1.0)


def test_python_numbers_of_a_value_that_is_differentiated():
    same(grad(lambda x: x * int(x) * x.item())(2.0), np.float32(4))
    same(grad(lambda x: x[0] * x.tolist()[1])(A), np.array([2.0, 0, 0], np.float32))


# --- vjp ------------------------------------------------------------------------------------


def test_vjp_gives_a_tuple_with_one_cotangent_for_each_argument():
    out, pull = vjp(lambda x, y: (x * y, {"q": y}), A, B)
    same(out, (A * B, {"q": B}))
    same(pull((A, {"q": B})), (A * B, A * A + B))
    same(pull((A, {"q": B})), (A * B, A * A + B))


def test_vjp_with_aux_and_without_arguments():
    out, pull, aux = vjp(lambda x: (x * x, "hi"), 3.0, has_aux=True)
    assert (float(out), aux) == (9.0, "hi")
    same(pull(1.0), (np.float32(6),))
    assert vjp(lambda: 1.0)[1](1.0) == ()


def test_integer_outputs_take_any_cotangent_of_their_shape():
    f = lambda x: (x * 2, x > 0)
    for ct in (FLOAT0, np.zeros(3, bool), np.zeros(3, np.float32)):
        same(vjp(f, A)[1]((A, ct)), (2 * A,))


def test_a_pullback_is_a_pytree_that_jit_and_vmap_can_return():
    out, pull = weft.jit(lambda x: vjp(lax.sin, x))(A)
    same(out, np.sin(A))
    same(pull(B), (np.cos(A) * B,))
    same(weft.jit(lambda f, x: f(x))(vjp(lax.sin, A)[1], B), (np.cos(A) * B,))
    same(weft.vmap(vjp(lax.sin, A)[1])(np.eye(3, dtype=np.float32)), (np.diag(np.cos(A)),))


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda pull: pull(), TypeError, "; got 0"),
        (lambda pull: pull((A,)), ValueError, "structure of the outputs"),
        (lambda pull: pull(1.0), ValueError, "got f32[] for f32[3]"),
        (lambda pull: pull(np.arange(3)), ValueError, "got i32[3] for f32[3]"),
        (lambda pull: pull(A.astype(np.float16)), ValueError, "got f16[3] for f32[3]"),
    ],
)
def test_what_a_pullback_refuses(call, kind, text):
    with pytest.raises(kind) as caught:
        call(vjp(lambda x: x * x, A)[1])
    assert text in str(caught.value)


# --- jvp and linearize ----------------------------------------------------------------------


def test_jvp_on_pytrees():
    f = lambda x, y: {"a": x * y, "b": (x, 1.0)}
    value, dot = jvp(f, (A, B), (B, A))
    same(value, {"a": A * B, "b": (A, 1.0)})
    same(dot, {"a": A * A + B * B, "b": (B, 0.0)})
    same(jvp(lambda x: x[0] * 2, [(A, None)], [(B, None)])[1], 2 * B)


def test_tangents_of_integers_are_float0_in_and_out():
    same(jvp(lambda x, i: x * i, (A, np.arange(3)), (B, FLOAT0))[1], B * np.arange(3))
    _, dot = jvp(lambda x: (x > 0, 3), (A,), (A,))
    assert [t.dtype for t in dot] == [float0, float0]
    assert [t.shape for t in dot] == [(3,), ()]


def test_jvp_with_aux():
    value, dot, aux = jvp(lambda x: (x * x, {"a": x}), (A,), (B,), has_aux=True)
    same((value, dot, aux), (A * A, 2 * A * B, {"a": A}))
    assert type(aux["a"]) is np.ndarray


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: jvp(lambda x: x, 3.0, 1.0), TypeError, "primals must be a tuple or list"),
        (lambda: jvp(lambda x: x, (A,), 1.0), TypeError, "tangents must be a tuple or list"),
        (lambda: jvp(lambda x: x, (A,), (A, A)), TypeError, "structure of the primals"),
        (lambda: jvp(lambda x: x, (A,), (1.0,)), ValueError, "got f32[] for f32[3]"),
        (lambda: jvp(lambda x: x, (A,), (np.arange(3),)), TypeError, "got i32[3] for f32[3]"),
        (lambda: jvp(lambda x: x, (3.0,), (1,)), TypeError, "got i32[] for f32[]"),
        (lambda: jvp(lambda i: i, (1,), (1,)), TypeError, "must be float0; got i32[]"),
    ],
)
def test_what_jvp_refuses(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


def test_linearize_does_the_nonlinear_work_once():
    calls = []

    def f(x):
        calls.append(1)
        return lax.sin(x) * x

    out, push = linearize(f, A)
    same(out, np.sin(A) * A)
    for t in (A, B):
        same(push(t), (np.cos(A) * A + np.sin(A)) * t)
    assert len(calls) == 1
    primitives = [e.primitive.name for e in weft.make_jaxpr(push)(A).eqns]
    assert primitives and "sin" not in primitives and "cos" not in primitives


def test_linearize_on_pytrees_with_aux_under_vmap_and_jit():
    out, push = linearize(lambda x, d: (x * d["b"], 1.0), A, {"b": B})
    same(push(A, {"b": B}), (A * B + A * B, 0.0))
    out, push, aux = linearize(lambda x: (x * x, x), 3.0, has_aux=True)
    assert (float(out), float(push(2.0)), aux) == (9.0, 12.0, 3.0)
    same(weft.vmap(linearize(total, A)[1])(np.eye(3, dtype=np.float32)), np.ones(3))
    out, push = weft.jit(lambda x: linearize(lax.sin, x))(A)
    same(push(B), np.cos(A) * B)
    with pytest.raises(TypeError, match="structure of the primals"):
        push(A, A)


# --- linear_transpose -----------------------------------------------------------------------


def test_linear_transpose_agrees_with_the_inner_product():
    f = lambda x, y: {"s": x + 2 * y, "t": total(x)}
    same(linear_transpose(f, A, B)({"s": A, "t": np.float32(3)}), (A + 3, 2 * A))


def test_linear_transpose_of_types_integers_jit_constants_and_unused_arguments():
    struct = weft.ShapeDtypeStruct((3,), np.float32)
    same(linear_transpose(lambda x: 2 * x, struct)(A), (2 * A,))
    same(linear_transpose(lambda x: 2 * x, np.arange(3))(np.arange(3)), (2 * np.arange(3),))
    same(
        linear_transpose(weft.jit(lambda x: weft.jit(total)(x) * 2), A)(np.float32(2)),
        (np.full(3, 4, np.float32),),
    )
    same(linear_transpose(lambda x: (x, A), A)((B, A)), (B,))
    same(linear_transpose(lambda x, y: x, A, B)(A), (A, np.zeros(3, np.float32)))
    z = np.complex64(1j)
    same(linear_transpose(lambda x: (2 + 1j) * x, z)(z), (np.complex64(-1 + 2j),))


@pytest.mark.parametrize(
    ("f", "op"),
    [
        (lambda x: jnp.dot(x, x), "dot_general"),
        (lambda x: jnp.where(x > 0, x, 0.0).sum(), "select_n"),
        (lambda x: x[x[0].astype(int)], "dynamic_slice"),
        (lambda x: lax.cond(x[0] > 0, lambda: x[1], lambda: x[2]), "cond"),
    ],
)
def test_linear_transpose_of_what_is_not_linear_in_all_operands(f, op):
    for transposed in (linear_transpose(f, A), weft.jit(linear_transpose(f, A))):
        with pytest.raises(TypeError, match=f"^{op}: must be linear in what is transposed; got a"):
            transposed(1.0)


def test_what_linear_transpose_refuses():
    with pytest.raises(NotImplementedError, match="sin: has no `transpose` rule"):
        linear_transpose(lax.sin, A)(A)
    with pytest.raises(TypeError, match=r"got f32\[\] for f32\[3\]"):
        linear_transpose(lambda x: 2 * x, A)(1.0)
    with pytest.raises(TypeError, match="structure of the outputs"):
        linear_transpose(lambda x: 2 * x, A)((A,))


def test_a_program_of_ten_thousand_operations():
    def f(x):
        for _ in range(10_000):
            x = x * 1.0001
        return x

    np.testing.assert_allclose(grad(f)(1.0), 1.0001**10_000, rtol=1e-3)
    assert len(weft.make_jaxpr(grad(f))(1.0).eqns) >= 10_000


def test_the_two_passes_of_a_function():
    fwd, bwd = weft.fwd_and_bwd(lambda w, x: (w * x).sum(), argnums=0)
    for w in (A, B):  # both functions may be called again: nothing is compiled
        y, residuals = fwd(w, B)
        assert y == np.dot(w, B)
        same(bwd(residuals, np.float32(2)), 2 * B)
    assert fwd._cache_size() == bwd._cache_size() == 1
    fwd, bwd = weft.fwd_and_bwd(lambda w, x: (w @ x, w), (1, 0), has_aux=True, jitted=False)
    y, residuals, aux = fwd(A, B)
    same([*bwd(residuals, np.float32(1)), aux], [A, B, A])
    with pytest.raises(TypeError, match="fwd_and_bwd: argnums must name positional .*; got 3"):
        weft.fwd_and_bwd(abs, 3)[0](1.0)


def test_what_becomes_of_each_cotangent():
    pull, total = vjp(lambda *xs: xs[0] * xs[1] * xs[2], 1.0, 2.0, 3.0)[1], weft.new_ref(0.0)
    dropped, kept, added = pull.with_refs(weft.ad.DontWant(), weft.ad.GradValue(), total)(1.0)
    assert type(dropped) is weft.ad.DidntWant
    assert (kept, added, total[...]) == (3, None, 2)


def test_as_many_references_as_primals():
    pull = weft.vjp(lambda x, y: x * y, 1.0, 2.0)[1]
    with pytest.raises(TypeError) as info:
        pull.with_refs(None)(1.0)
    assert str(info.value) == (
        "with_refs: there must be one entry for each of primals; got 1 for 2. Hint: None for a "
        "cotangent to be returned."
    )
    assert [float(x) for x in pull.with_refs(None, None)(1.0)] == [2.0, 1.0]


@pytest.mark.parametrize(
    ("argnums", "where"),
    [
        (0, "argument 0['a']"),
        ((0, 2), "argument 0['a']"),
        ((2, 0), "argument 2[1]"),
        ((1, 2), "argument 2[1]"),
        (2, "argument 2[1]"),
    ],
)
def test_which_argument_is_of_no_dtype_for_derivatives(argnums, where):
    def f(x, y, z):
        return y

    with pytest.raises(errors.DtypeError) as info:
        grad(f, argnums)({"a": 1}, 1.0, (1.0, 2))
    assert str(info.value) == (
        f"grad: inputs must be floating-point or complex; got i32[] as {where} of f. "
        "Hint: x.astype(float), or allow_int=True."
    )
