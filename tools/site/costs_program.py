"""The program whose costs costs.py draws."""

import weft
import weft.numpy as jnp


def layer(w, h):
    return jnp.tanh(h @ w)


def loss(ws, x):
    h = x
    for w in ws:
        h = layer(w, h)
    h = jnp.sort(h, axis=0)
    return jnp.mean(h**2)


ws = [jnp.ones((400, 400))] * 3
x = jnp.ones((3000, 400))
step = weft.jit(weft.value_and_grad(loss))
report = weft.explain(step)(ws, x)
