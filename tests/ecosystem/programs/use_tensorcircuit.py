"""tensorcircuit-ng on JAX: a variational circuit, jitted, mapped and differentiated."""

import jax.numpy as jnp
import tensorcircuit as tc

backend = tc.set_backend("jax")
n, layers = 4, 2


def energy(params):
    c = tc.Circuit(n)
    for j in range(layers):
        for i in range(n - 1):
            c.cnot(i, i + 1)
        for i in range(n):
            c.rx(i, theta=params[j, i, 0])
            c.rz(i, theta=params[j, i, 1])
    zz = sum(c.expectation_ps(z=[i, i + 1]) for i in range(n - 1))
    return backend.real(zz + sum(c.expectation_ps(x=[i]) for i in range(n)))


params = jnp.linspace(0.1, 1.7, layers * n * 2).reshape(layers, n, 2)
value, slope = backend.jit(backend.value_and_grad(energy))(params)
print(value, slope)
print(backend.vmap(energy)(jnp.stack([params, params * 2])))
c = tc.Circuit(3)
c.h(0)
c.cnot(0, 1)
c.ry(2, theta=0.3)
print(c.state(), c.probability(), c.expectation((tc.gates.z(), [2])))
print(backend.hessian(lambda t: energy(params * t))(jnp.float32(1.0)))
