"""External callbacks: pure ones, ones with effects, debugging, and derivatives of them."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jax import custom_jvp, grad, jit, lax, pure_callback, vmap
from jax.experimental import io_callback


@jit
def f(x):
    jax.debug.print("x: {x}, twice: {y:.2f}", x=x, y=x * 2)
    return jnp.sin(x)


print(f(1.0))
jax.effects_barrier()


def f_host(x):
    assert isinstance(x, (np.ndarray, jax.Array))
    return np.sin(x).astype(x.dtype)


def by_host(x):
    return pure_callback(
        f_host, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential"
    )


x = jnp.arange(4.0)
print(by_host(x), jit(by_host)(x), vmap(by_host)(x.reshape(2, 2)))
print(lax.scan(lambda _, x: (None, by_host(x)), None, x)[1])

# Derivatives: none by themselves, and given by a rule.
try:
    grad(by_host)(x[0])
except ValueError:
    print("ValueError: callbacks have no derivative")


def jv(v, z):
    v, z = jnp.asarray(v), jnp.asarray(z)
    shape = jnp.broadcast_shapes(v.shape, z.shape)
    result = jax.ShapeDtypeStruct(shape, jnp.promote_types(jnp.float32, z.dtype))
    host = lambda v, z: scipy.special.jv(v, z).astype(result.dtype)
    return pure_callback(host, result, v, z, vmap_method="expand_dims")


jv = custom_jvp(jv)


@jv.defjvp
def _jv_jvp(primals, tangents):
    v, z = primals
    _, z_dot = tangents
    derivative = jnp.where(v == 0, -jv(v + 1, z), 0.5 * (jv(v - 1, z) - jv(v + 1, z)))
    return jv(v, z), z_dot * derivative


print(jv(1, 2.0), grad(jv, argnums=1)(2, 1.5), jit(grad(grad(jv, 1), 1))(2, 1.5))
print(vmap(lambda z: jv(1, z))(x))

# Effects, in order.
log = []
numpy_rng = np.random.default_rng(0)


def host_side_random_like(x):
    return numpy_rng.uniform(size=x.shape).astype(x.dtype)


@jit
def numpy_random_like(x):
    return io_callback(host_side_random_like, x, x)


print(numpy_random_like(jnp.zeros(3)))


@jit
def ordered(xs):
    lax.fori_loop(
        0, 3, lambda i, c: io_callback(lambda i: log.append(int(i)), None, i, ordered=True) or c, 0
    )
    return xs


ordered(x)
jax.effects_barrier()
print(log)


def watch(y):
    log.append(float(y))


@jit
def g(x):
    jax.debug.callback(watch, x)
    return x**2


print(g(3.0), grad(g)(4.0), log[-2:])
jax.debug.print("{}", "done")


def fails(x):
    raise RuntimeError("the host failed")


try:
    jit(lambda x: pure_callback(fails, x, x))(1.0).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    print("JaxRuntimeError", "the host failed" in str(error))
