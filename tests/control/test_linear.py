import numpy as np
import pytest

import weft
from weft import disable_jit, jit, jvp, make_jaxpr, vjp, vmap
from weft import numpy as jnp
from weft.control.linear import linear_solve_p
from weft.experimental.checkify import checkify
from weft.lax import custom_linear_solve
from weft.passes.check import check_jaxpr

D = np.array([2.0, 4.0], np.float32)


def scaled(d, b):
    return custom_linear_solve(lambda x: d * x, b, lambda f, b: b / d, lambda f, b: b / d)


def equations(jaxpr):
    return [e for e in jaxpr.jaxpr.eqns if e.primitive is linear_solve_p]


def test_the_programs_are_closed_and_take_what_they_close_over_first():
    jaxpr = make_jaxpr(scaled)(D, D)
    check_jaxpr(jaxpr)
    (eqn,) = equations(jaxpr)
    assert eqn.params["counts"] == (1, 1, 1, 1)
    assert [v.aval.shape for v in eqn.invars] == [(2,)] * 5
    b = eqn.params["vecmat"](D, jnp.ones(2))
    np.testing.assert_array_equal(b[0], D)  # the transpose of a diagonal is itself


def test_batching_maps_what_is_mapped():
    jaxpr = make_jaxpr(vmap(scaled, (None, 0)))(D, jnp.ones((3, 2)))
    check_jaxpr(jaxpr)
    (eqn,) = equations(jaxpr)
    assert [v.aval.shape for v in eqn.invars] == [(2,)] * 4 + [(3, 2)]


A = np.array([[2.0, 1.0], [0.5, 3.0]], np.float32)
W = np.array([2.0, -1.0], np.float32)
B = np.array([3.0, -4.0], np.float32)
INVERSE = np.linalg.inv(A)
X = INVERSE @ (B / W)


def solved(a, w, b, reverse=True):
    """x of w * (a @ x) = b near A and W, by programs that close over different values."""
    half, two = jnp.asarray(INVERSE / 2), jnp.asarray(2 / W)
    parts = [jnp.asarray(x, np.float32) for x in (INVERSE.T / 12, [[3.0]], [4.0])]

    def solve_transposed(vecmat, ct):
        return (parts[0] @ ct) * parts[1][0] * parts[2] / W

    return custom_linear_solve(
        lambda x: w * (a @ x),
        b,
        lambda matvec, b: half @ (b * two),
        solve_transposed if reverse else None,
    )


@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("run", ["as it is", "jit", "disable_jit", "checkify", "vmap"])
def test_each_program_is_given_its_own_values(run, reverse):
    f = lambda a, w, b: solved(a, w, b, reverse)
    (eqn,) = equations(make_jaxpr(f)(A, W, B))
    assert eqn.params["counts"] == ((2, 2, 2, 4) if reverse else (2, 0, 2, 0))

    def call(f, *args):
        if run == "disable_jit":
            with disable_jit():
                return f(*args)
        if run == "checkify":
            error, out = checkify(f)(*args)
            error.throw()
            return out
        if run == "vmap":
            return [y[1] for y in vmap(f)(*(np.stack([x, x]) for x in args))]
        return (jit(f) if run == "jit" else f)(*args)

    dots = np.float32([[1, 2], [3, 4]]), np.float32([1, -2]), np.float32([2, 1])
    move = lambda a, w, b: INVERSE @ ((b - w * (A @ X) - W * (a @ X)) / W)
    for i in range(3):  # one moves, and the others are constants
        moved = [t if i == j else np.zeros_like(t) for j, t in enumerate(dots)]
        given = lambda x, i=i: f(*[x if i == j else y for j, y in enumerate((A, W, B))])
        x, dx = call(lambda x, t, given=given: jvp(given, (x,), (t,)), (A, W, B)[i], dots[i])
        np.testing.assert_allclose(x, X, rtol=1e-5)
        np.testing.assert_allclose(dx, move(*moved), rtol=1e-5, atol=1e-5)
    if reverse:
        ct = np.float32([1, -3])
        found = call(lambda *args: vjp(f, *args)[1](ct), A, W, B)
        share = INVERSE.T @ ct / W
        expected = [-np.outer(share * W, X), -share * (A @ X), share]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_batching_maps_the_values_of_each_program():
    scale = np.float32([1, 2, 4])
    f = lambda s: custom_linear_solve(lambda x: s * x, B, lambda g, b: b / s, lambda g, b: b / s)
    np.testing.assert_allclose(vmap(f)(scale), B / scale[:, None])
    np.testing.assert_allclose(
        vmap(lambda s: jvp(f, (s,), (s,))[1])(scale), -B / scale[:, None], rtol=1e-6
    )


def test_disable_jit_runs_the_solver():

    with disable_jit():
        np.testing.assert_array_equal(scaled(D, D), [1.0, 1.0])


def test_without_a_solver_of_the_transposed_system():
    """Forward mode works; reverse mode raises an error that names the missing solver."""
    double, halve = lambda v: 2 * v, lambda _, b: b / 2
    solve = lambda b: weft.lax.custom_linear_solve(double, b, halve)
    one = np.ones(3, np.float32)
    np.testing.assert_array_equal(weft.jvp(solve, (one,), (4 * one,))[1], 2 * one)
    with pytest.raises(TypeError) as info:
        weft.grad(lambda b: solve(b).sum())(one)
    assert str(info.value) == (
        "custom_linear_solve: reverse mode needs a solver for the transposed system; got none. "
        "Hint: transpose_solve=..., or symmetric=True."
    )
