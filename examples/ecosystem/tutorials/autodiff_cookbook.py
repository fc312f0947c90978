"""The autodiff cookbook: gradients, Jacobians, Hessians, products with them, complex numbers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, hessian, jacfwd, jacrev, jit, jvp, random, value_and_grad, vjp, vmap

key = random.key(0)
print(grad(jnp.tanh)(2.0), grad(grad(jnp.tanh))(2.0), grad(grad(grad(jnp.tanh)))(2.0))


def sigmoid(x):
    return 0.5 * (jnp.tanh(x / 2) + 1)


def predict(W, b, inputs):
    return sigmoid(jnp.dot(inputs, W) + b)


inputs = jnp.array(
    [[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]]
)
targets = jnp.array([True, True, False, True])


def loss(W, b):
    preds = predict(W, b, inputs)
    label_probs = preds * targets + (1 - preds) * (1 - targets)
    return -jnp.sum(jnp.log(label_probs))


key, W_key, b_key = random.split(key, 3)
W, b = random.normal(W_key, (3,)), random.normal(b_key, ())
print(grad(loss, argnums=0)(W, b), grad(loss, 1)(W, b), grad(loss, (0, 1))(W, b))


def loss2(params):
    return loss(params["W"], params["b"])


print(grad(loss2)({"W": W, "b": b}))
print(value_and_grad(loss, (0, 1))(W, b))

key, subkey = random.split(key)
vec = random.normal(subkey, W.shape)
unit = vec / jnp.sqrt(jnp.vdot(vec, vec))
print(jnp.vdot(grad(loss)(W, b), unit))

f = lambda W: predict(W, b, inputs)
print(jacfwd(f)(W), jacrev(f)(W), hessian(f)(W), sep="\n")
print(jax.jacobian(loss2)({"W": W, "b": b}))


def hvp(f, primals, tangents):
    return jvp(grad(f), primals, tangents)[1]


def f(X):
    return jnp.sum(jnp.tanh(X) ** 2)


key, subkey1, subkey2 = random.split(key, 3)
X, V = random.normal(subkey1, (6, 4)), random.normal(subkey2, (6, 4))
np.testing.assert_allclose(
    hvp(f, (X,), (V,)), jnp.tensordot(hessian(f)(X), V, 2), rtol=1e-4, atol=1e-4
)
print(grad(lambda x: jnp.vdot(grad(f)(x), V))(X)[0])


def vmap_mjp(f, x, M):
    _, vjp_fun = vjp(f, x)
    (outs,) = vmap(vjp_fun)(M)
    return outs


def vmap_jmp(f, W, M):
    push = lambda v: jvp(f, (W,), (v,))[1]
    return vmap(push, in_axes=0, out_axes=-1)(M)


g = lambda W: predict(W, b, inputs)
print(vmap_mjp(g, W, random.normal(key, (2, 4))), vmap_jmp(g, W, random.normal(key, (2, 3))))
print(jax.linearize(g, W)[1](vec))


def holomorphic(z):
    return jnp.sin(z)


z = 3.0 + 4j
print(grad(holomorphic, holomorphic=True)(z))


def complex_to_real(z):
    x, y = jnp.real(z), jnp.imag(z)
    return x**2 + y**2


print(grad(complex_to_real)(z))

A = jnp.array([[5.0, 2.0, 3j], [2.0, 7.0, 4.0 - 1j], [-3j, 4.0 + 1j, 9.0]])


def total(X):
    L = jnp.linalg.cholesky(X)
    return jnp.sum((L - jnp.sin(L)) ** 2)


print(jnp.round(grad(total, holomorphic=True)(A), 3))


# Per-example gradients, and a step that is not differentiated.
per_example = jit(vmap(grad(lambda w, x: jnp.sin(w @ x)), in_axes=(None, 0)))
print(per_example(W, inputs))
print(grad(lambda x: x * jax.lax.stop_gradient(x))(3.0))
value, aux = grad(lambda x: (x**2, {"x": x + 1}), has_aux=True)(2.0)
print(value, aux)
