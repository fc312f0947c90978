"""gramschmidt: A = Q R by the modified Gram-Schmidt process (Golub and Van Loan, 5.2.8)."""

import numpy as np

sizes = {"small": (60, 50), "medium": (240, 200), "large": (800, 600)}


def make(size, rng):
    m, n = sizes[size]
    return (rng.rand(m, n) + np.eye(m, n),)


def numpy_form(a):
    a = a.copy()
    n = a.shape[1]
    q, r = np.zeros_like(a), np.zeros((n, n), a.dtype)
    for k in range(n):
        r[k, k] = np.sqrt(a[:, k] @ a[:, k])
        q[:, k] = a[:, k] / r[k, k]
        r[k, k + 1 :] = q[:, k] @ a[:, k + 1 :]
        a[:, k + 1 :] -= q[:, k, None] * r[k, k + 1 :]
    return q, r


def jax_form(jax, a):
    jnp, lax = jax.numpy, jax.lax
    n = a.shape[1]
    columns = jnp.arange(n)

    def step(k, state):
        a, q, r = state
        norm = jnp.sqrt(a[:, k] @ a[:, k])
        unit = a[:, k] / norm
        row = jnp.where(columns > k, unit @ a, 0)
        a = a - unit[:, None] * row
        return a, q.at[:, k].set(unit), r.at[k].set(row.at[k].set(norm))

    return lax.fori_loop(0, n, step, (a, jnp.zeros_like(a), jnp.zeros((n, n), a.dtype)))[1:]


def torch_form(torch, a):
    a = a.clone()
    n = a.shape[1]
    q, r = torch.zeros_like(a), torch.zeros((n, n), dtype=a.dtype)
    for k in range(n):
        r[k, k] = torch.sqrt(a[:, k] @ a[:, k])
        q[:, k] = a[:, k] / r[k, k]
        r[k, k + 1 :] = q[:, k] @ a[:, k + 1 :]
        a[:, k + 1 :] -= q[:, k, None] * r[k, k + 1 :]
    return q, r


loops = numpy_form
