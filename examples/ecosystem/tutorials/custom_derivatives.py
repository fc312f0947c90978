"""Custom derivatives: for stability, to change gradients, and for implicit functions."""

import functools

import jax
import jax.numpy as jnp
from jax import custom_jvp, custom_vjp, grad, jit, jvp, lax, vjp, vmap


@custom_jvp
def f(x, y):
    return jnp.sin(x) * y


@f.defjvp
def f_jvp(primals, tangents):
    x, y = primals
    x_dot, y_dot = tangents
    return f(x, y), jnp.cos(x) * x_dot * y + jnp.sin(x) * y_dot


print(f(2.0, 3.0), jvp(f, (2.0, 3.0), (1.0, 0.0)), grad(f)(2.0, 3.0))


@custom_vjp
def g(x, y):
    return jnp.sin(x) * y


g.defvjp(
    lambda x, y: (g(x, y), (jnp.cos(x), jnp.sin(x), y)), lambda r, t: (r[0] * t * r[2], r[1] * t)
)
print(
    grad(g, (0, 1))(2.0, 3.0), jit(grad(g))(2.0, 3.0), vmap(grad(g))(jnp.arange(3.0), jnp.ones(3))
)


# Numerical stability.
@custom_jvp
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    ans = log1pexp(x)
    return ans, (1 - 1 / (1 + jnp.exp(x))) * x_dot


print(grad(log1pexp)(100.0), jit(grad(log1pexp))(100.0), vmap(jit(grad(log1pexp)))(jnp.arange(3.0)))


@custom_jvp
def h(x):
    return x / (1 + jnp.sqrt(x))


h.defjvps(lambda x_dot, ans, x: ((jnp.sqrt(x) + 2) / (2 * (jnp.sqrt(x) + 1) ** 2)) * x_dot)
print(grad(h)(0.0), grad(h)(1.0))


# Gradient clipping.
@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def clip_gradient(lo, hi, x):
    return x


clip_gradient.defvjp(lambda lo, hi, x: (x, None), lambda lo, hi, _, g: (jnp.clip(g, lo, hi),))
print(grad(lambda x: jnp.sin(clip_gradient(-0.75, 0.75, x)))(0.1))
print(vmap(grad(lambda x: clip_gradient(-1.0, 1.0, x) ** 3))(jnp.arange(3.0)))


# A fixed point, differentiated by the implicit function theorem.
def fixed_point(f, a, x_guess):
    def cond_fun(carry):
        x_prev, x = carry
        return jnp.abs(x_prev - x) > 1e-6

    return lax.while_loop(cond_fun, lambda c: (c[1], f(a, c[1])), (x_guess, f(a, x_guess)))[1]


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def fixed_point2(f, a, x_guess):
    return fixed_point(f, a, x_guess)


def fixed_point_fwd(f, a, x_init):
    x_star = fixed_point2(f, a, x_init)
    return x_star, (a, x_star)


def rev_iter(f, packed, u):
    a, x_star, x_star_bar = packed
    _, vjp_x = vjp(lambda x: f(a, x), x_star)
    return x_star_bar + vjp_x(u)[0]


def fixed_point_rev(f, res, x_star_bar):
    a, x_star = res
    _, vjp_a = vjp(lambda a: f(a, x_star), a)
    (a_bar,) = vjp_a(
        fixed_point(functools.partial(rev_iter, f), (a, x_star, x_star_bar), x_star_bar)
    )
    return a_bar, jnp.zeros_like(x_star)


fixed_point2.defvjp(fixed_point_fwd, fixed_point_rev)


def newton_sqrt(a):
    return fixed_point2(lambda a, x: 0.5 * (x + a / x), a, a)


print(newton_sqrt(2.0), grad(newton_sqrt)(2.0), jit(vmap(grad(newton_sqrt)))(jnp.arange(1.0, 4.0)))


# Pytrees, and a rule that the derivative may not see.
@custom_vjp
def scale(params, x):
    return {"out": params["w"] * x}


scale.defvjp(
    lambda p, x: (scale(p, x), (p, x)),
    lambda r, t: ({"w": 10 * jnp.sum(t["out"] * r[1])}, t["out"] * r[0]["w"]),
)
print(grad(lambda p: scale(p, jnp.arange(3.0))["out"].sum())({"w": 2.0}))
try:
    jvp(g, (2.0, 3.0), (1.0, 0.0))
except TypeError:
    print("TypeError: forward mode of a custom_vjp")
print(jax.jacfwd(f)(1.0, 2.0), jax.hessian(log1pexp)(1.0))
