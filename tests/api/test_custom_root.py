import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, hessian, jit, jvp, lax, make_jaxpr, vmap
from weft.errors import RefError

A = np.array([[3.0, 0.4, -0.2], [0.1, 2.5, 0.3], [-0.5, 0.2, 4.0]], np.float32)
B = np.array([1.0, -2.0, 0.5], np.float32)


def close(a, b, tol=2e-4):
    weft.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=tol, atol=tol), a, b)


def richardson(matvec, b):
    x = weft.tree.map(lambda y: 0.3 * y, b)
    for _ in range(25):
        x = weft.tree.map(lambda x, b, r: x + 0.3 * (b - r), x, b, matvec(x))
    return x


def solve(a, b, **options):
    options = {"transpose_solve": richardson, **options}
    return lax.custom_linear_solve(lambda x: a @ x, b, richardson, **options)


def exact(a, b):
    return jnp.sum(jnp.stack([cofactor(a, i) for i in range(3)]) * b[:, None], 0) / det(a)


def cofactor(a, i):
    (x, y, z), (u, v, w) = a[(i + 1) % 3], a[(i + 2) % 3]
    return jnp.stack([y * w - z * v, z * u - x * w, x * v - y * u])


def det(a):
    return jnp.sum(a[0] * cofactor(a, 0))


# --- linear systems -------------------------------------------------------------------------


TRANSFORMS = {
    "value": lambda f: f,
    "jvp": lambda f: lambda a, b: jvp(f, (a, b), (jnp.cos(a), jnp.sin(b))),
    "grad": lambda f: grad(lambda a, b: jnp.sum(jnp.sin(f(a, b))), argnums=(0, 1)),
    "hessian": lambda f: hessian(lambda a, b: jnp.sum(jnp.sin(f(a, b))), argnums=(0, 1)),
    "vmap b": lambda f: lambda a, b: vmap(f, (None, 1))(a, jnp.stack([b, 2 * b], 1)),
    "vmap a": lambda f: lambda a, b: vmap(f, (0, None))(jnp.stack([a, 0.8 * a]), b),
    "grad vmap": lambda f: grad(
        lambda a, b: jnp.sum(vmap(f, (None, 0))(a, jnp.stack([b, b * b])) ** 2)
    ),
    "vmap grad": lambda f: lambda a, b: vmap(grad(lambda a, b: f(a, b)[0]))(
        jnp.stack([a, 0.8 * a]), jnp.stack([b, b])
    ),
}  # fmt: skip


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_linear_solve_is_that_of_the_inverse(name):
    transform = TRANSFORMS[name]
    want = jit(transform(exact))(A, B)
    if name in ("value", "jvp", "grad"):
        close(transform(solve)(A, B), want)
    close(jit(transform(solve))(A, B), want)


def test_symmetric_pytrees_and_aux():
    s = A + A.T

    def f(s, b):
        out = lambda g: lambda mv, b: (richardson(mv, b), {"steps": 25, "b": b["x"]})
        scaled = lambda t: {"x": 0.5 * (s @ t["x"]), "y": t["y"] * 2.0}
        return lax.custom_linear_solve(scaled, b, out(0), symmetric=True, has_aux=True)

    b = {"x": B, "y": np.float32(3.0)}
    x, aux = f(s, b)
    close(x["x"], np.linalg.solve(s / 2, B))
    close(x["y"], 1.5)
    assert aux["steps"] == 25
    got = grad(lambda s, b: jnp.sum(f(s, b)[0]["x"] ** 2), argnums=1)(s, b)
    close(got["x"], 2 * np.linalg.solve(s / 2, np.linalg.solve(s / 2, B)))
    close(got["y"], 0.0)
    assert not np.any(grad(lambda b: jnp.sum(f(s, b)[1]["b"]))(b)["x"])  # aux has no derivative


def test_complex_systems():
    a, b = A + 1j * A.T[::-1] * 0.1, B + 0.5j
    close(solve(a, b), np.linalg.solve(a, b))
    loss = lambda f: lambda a: jnp.sum(jnp.abs(f(a, b)) ** 2)
    close(grad(loss(solve))(a), grad(loss(exact))(a))


def test_the_tangent_solve_is_the_only_one_that_waits():
    text = str(make_jaxpr(lambda b: weft.linearize(lambda b: solve(A, b), b)[1](b))(B))
    assert text.count("custom_linear_solve[") == 2


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: grad(lambda b: jnp.sum(solve(A, b, transpose_solve=None)))(B),
         "reverse mode needs a solver for the transposed system; got none. Hint: transpose_solve"),
        (lambda: lax.custom_linear_solve(A, B, richardson), "linear_solve: needs a function"),
        (lambda: lax.custom_linear_solve(lambda x: [x], B, richardson),
         "matvec must return the structure of b, .*; got "),
        (lambda: lax.custom_linear_solve(lambda x: x[0], B, richardson),
         r"matvec must return arrays of the shapes of b; got f32\[\] at result, where b has "),
        (lambda: lax.custom_linear_solve(lambda x: x, B, lambda f, b: b > 0),
         r"solve must return arrays of the dtypes of b; got bool\[3\] at result"),
        (lambda: lax.custom_linear_solve(lambda x: x, B, lambda f, b: b, has_aux=True),
         r"with has_aux=True solve must return a pair \(x, aux\); got "),
        (lambda: lax.custom_linear_solve(lambda x: x * x, B, richardson, richardson),
         "mul: must be linear in what is transposed; got a linear value and a linear value"),
        (lambda: lax.custom_root(lambda x: [x], 1.0, lambda f, x: x, lambda g, y: y),
         "f must return the structure of the initial guess, .*; got "),
        (lambda: lax.custom_root(lambda x: x, 1.0, lambda f, x: [x], lambda g, y: y),
         "solve must return the structure of the initial guess, .*; got "),
        (lambda: lax.custom_root(lambda x: x, 1.0, lambda f, x: x, lambda g, y: [y]),
         "tangent_solve must return the structure of the initial guess, .*; got "),
        (lambda: lax.custom_root(lambda x: x, 1, lambda f, x: x, lambda g, y: y),
         r"a solution must be of inexact dtype; got i32\[\] from solve. Hint: give the initial"),
        (lambda: lax.custom_root(lambda x: jnp.ones(3), 1.0, lambda f, x: x, lambda g, y: y),
         r"f must return arrays of the shapes of the initial guess; got f32\[3\] at result"),
    ],
)  # fmt: skip
def test_errors(call, message):
    with pytest.raises(TypeError, match=message):
        call()


# --- roots ----------------------------------------------------------------------------------


def newton(f, x):
    for _ in range(12):
        x = x - f(x) / grad(f)(x)
    return x


def cube_root(a):
    return lax.custom_root(lambda x: x**3 - a, a, newton, lambda g, y: y / g(1.0))


ROOTS = {
    "grad": grad,
    "grad grad": lambda f: grad(grad(f)),
    "jit grad": lambda f: jit(grad(f)),
    "grad jit": lambda f: grad(jit(f)),
    "vmap grad": lambda f: lambda a: vmap(grad(f))(jnp.stack([a, 2 * a])),
    "grad vmap": lambda f: grad(lambda a: jnp.sum(vmap(f)(a * np.arange(1.0, 3.0)))),
    "hessian": hessian,
    "jvp": lambda f: lambda a: jvp(f, (a,), (2.0,)),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", ROOTS)
def test_the_derivative_of_a_root_is_that_of_the_equation(name):
    close(ROOTS[name](cube_root)(2.0), ROOTS[name](jnp.cbrt)(2.0))


def test_a_root_of_a_pytree_with_a_linear_solve_inside():
    def circle(r, angle):  # x**2 + y**2 = r**2, y cos(angle) = x sin(angle)
        f = lambda p: {
            "x": p["x"] ** 2 + p["y"] ** 2 - r**2,
            "y": p["y"] * jnp.cos(angle) - p["x"] * jnp.sin(angle),
        }
        solve = lambda f, p: ({"x": r * jnp.cos(angle), "y": r * jnp.sin(angle)}, r)

        def tangent_solve(g, y):
            a, c = g({"x": 1.0, "y": 0.0}), g({"x": 0.0, "y": 1.0})
            det = a["x"] * c["y"] - c["x"] * a["y"]
            return {
                "x": (c["y"] * y["x"] - c["x"] * y["y"]) / det,
                "y": (a["x"] * y["y"] - a["y"] * y["x"]) / det,
            }

        guess = {"x": np.float32(1.0), "y": np.float32(1.0)}
        return lax.custom_root(f, guess, solve, tangent_solve, has_aux=True)

    explicit = lambda r, angle: {"x": r * jnp.cos(angle), "y": r * jnp.sin(angle)}
    implied = lambda r, angle: circle(r, angle)[0]
    for transform in (
        weft.jacfwd,
        weft.jacrev,
        lambda f, **k: weft.jacfwd(weft.jacrev(f, **k), **k),
    ):
        got = transform(implied, argnums=(0, 1))(2.0, 0.3)
        close(got, transform(explicit, argnums=(0, 1))(2.0, 0.3))
    assert grad(lambda r: circle(r, 0.3)[1])(2.0) == 0.0  # aux has no derivative


def test_what_a_tangent_solver_closes_over_is_differentiated_once_more():
    def f(a):
        return lax.custom_root(lambda x: a * x - a**3, 1.0, lambda f, x: a**2, lambda g, y: y / a)

    close([f(2.0), grad(f)(2.0), grad(grad(f))(2.0), jit(grad(grad(f)))(2.0)], [4.0, 4.0, 2.0, 2.0])


def test_references_are_the_functions_own():
    def double(x):
        r = weft.new_ref(x)
        r[...] *= 2.0
        return r[...]

    halve = lambda f, b: f(b) / 4.0
    solve = lambda b: lax.custom_linear_solve(double, b, halve, symmetric=True)
    assert weft.jit(weft.value_and_grad(solve))(4.0) == (2.0, 0.5)
    r = weft.new_ref(jnp.float32(2.0))
    must = "must not use a reference from outside; got a Ref"
    with pytest.raises(RefError, match=f"custom_linear_solve: matvec {must}"):
        lax.custom_linear_solve(lambda x: x * r[...], 4.0, halve, symmetric=True)
    with pytest.raises(RefError, match=f"custom_root: solve {must}"):
        lax.custom_root(lambda x: x - r[...], 1.0, lambda f, x: x - f(x), lambda g, y: y)
