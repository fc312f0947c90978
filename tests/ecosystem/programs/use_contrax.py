"""contrax: a linear-quadratic regulator, and the derivative of its cost through the design."""

import contrax as cx
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
A, B = jnp.array([[1.0, 0.05], [0.0, 1.0]]), jnp.array([[0.0], [0.05]])
system = cx.dss(A, B, jnp.eye(2), jnp.zeros((2, 1)), dt=0.05)


def cost(log_q, log_r):
    gain = cx.lqr(system, jnp.diag(jnp.exp(log_q)), jnp.exp(log_r)[None, None]).K
    start = jnp.array([1.0, 0.0])
    _, xs, _ = cx.simulate(system, start, lambda t, x: -gain @ x, num_steps=80)
    return jnp.sum(xs**2) + 1e-2 * jnp.sum((xs[:-1] @ gain.T) ** 2)


print(*jax.jit(jax.value_and_grad(cost, argnums=(0, 1)))(jnp.zeros(2), jnp.array(0.0)))
