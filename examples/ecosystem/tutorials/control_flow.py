"""Control flow and logical operators under jit: cond, switch, loops, scan, and Python's own."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jit, lax, vmap


def f(x):
    return 3.0 * x**2 if x < 3 else -4 * x


print(grad(f)(2.0), grad(f)(4.0))


@jit
def loop(x):
    for _ in range(3):
        x = 2 * x
    return x


print(loop(3))
try:
    jit(f)(2.0)
except jax.errors.TracerBoolConversionError:
    print("TracerBoolConversionError")
print(jit(f, static_argnums=0)(2.0))


def example_fun(length, val):
    return jnp.ones((length,)) * val


print(jit(example_fun, static_argnames="length")(5, 4))
try:
    jit(example_fun)(10, 4)
except TypeError:
    print("TypeError: shapes must be known")

operand = jnp.array([0.0])
print(lax.cond(True, lambda x: x + 1, lambda x: x - 1, operand))
print(lax.cond(False, lambda x: x + 1, lambda x: x - 1, operand))
print([lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], 1.0) for i in (0, 1, 5)])
print(lax.while_loop(lambda x: x < 10, lambda x: x + 1, 0))
print(lax.fori_loop(0, 10, lambda i, x: x + i, 0))
print(lax.scan(lambda c, x: (c + x, c * x), 0.0, jnp.arange(5.0)))
print(lax.scan(lambda c, x: (c + x, c), 0.0, jnp.arange(5.0), reverse=True)[1])
print(lax.map(lambda x: x**2, jnp.arange(4)), lax.associative_scan(jnp.add, jnp.arange(6)))
print(lax.select(jnp.array([True, False]), jnp.ones(2), jnp.zeros(2)))
print(
    jnp.where(jnp.arange(4) > 1, 1, -1),
    jnp.piecewise(jnp.arange(4.0), [jnp.arange(4) < 2], [-1, 1]),
)


@jit
def branches(x):
    return lax.cond(x.sum() > 0, lambda: jnp.sin(x), lambda: jnp.cos(x))


print(
    vmap(branches)(jnp.array([[1.0, 2.0], [-1.0, -2.0]])),
    grad(lambda x: branches(x).sum())(operand),
)


def newton(x):
    step = lambda i, y: 0.5 * (y + x / y)
    return lax.fori_loop(0, 10, step, x)


print(newton(2.0), grad(newton)(2.0), vmap(newton)(jnp.array([2.0, 9.0])))
print(jax.jvp(lambda x: lax.while_loop(lambda y: y < 100, lambda y: y * y, x), (2.0,), (1.0,)))


def python_check_positive_even(x):
    is_even = x % 2 == 0
    return is_even and (x > 0)


@jit
def jax_check_positive_even(x):
    is_even = x % 2 == 0
    return jnp.logical_and(is_even, x > 0)


x = jnp.array([-1, 2, 5])
print(python_check_positive_even(24), jax_check_positive_even(24), jax_check_positive_even(x))
try:
    bool(x > 0)
except ValueError:
    print("ValueError: truth of an array")


@functools.partial(jit, static_argnums=1)
def power(x, n):
    return x if n <= 1 else x * power(x, n - 1)


print(
    power(2.0, 5),
    np.asarray(lax.scan(lambda h, _: (jnp.tanh(h + 1), h), jnp.zeros(2), None, length=3)[1]),
)
