"""Wrong programs: a checker must find a mistake in each marked line, and in no other."""

from functools import partial

import weft
import weft.numpy as jnp
from weft import Array, lax, nn, random


def loss(w: Array, x: Array) -> Array:
    return jnp.sum(w * x)


def no_result(x: Array) -> None:
    print(x)


@partial(weft.jit, static_argnames="n")
def rooted(x: Array, n: int) -> Array:
    return x ** (1 / n)


@weft.jit(static_argnames="n")
def power(x: Array, n: int) -> Array:
    return x**n


x = jnp.ones((2, 3))
rooted(x)  # wrong
rooted(x, "2")  # wrong
rooted(x, 2, 3)  # wrong
rooted(x, 2) + "x"  # wrong
power(x)  # wrong
power(x, "2")  # wrong
power.lower(x)  # wrong
jnp.zeros(3, 4)  # wrong
jnp.sin([1.0, 2.0])  # wrong
jnp.sum(x, axes=0)  # wrong
jnp.sum(x, axis="rows")  # wrong
jnp.concatenat([x, x])  # wrong
jnp.reshape(x)  # wrong
jnp.linspace(0, 1, "3")  # wrong
x.relu()  # wrong
x.numpy()  # wrong
x.shape[0] + "1"  # wrong
x @ "w"  # wrong
weft.jit(loss)(x)  # wrong
weft.jit(loss)(x, x, x)  # wrong
weft.grad(loss)(x, y=x)  # wrong
weft.jit(loss, static_argnum=0)  # wrong
weft.grad(no_result)(x)  # wrong
weft.vmap(loss)(x, "x")  # wrong
weft.grad(loss)(x, x).w  # wrong
weft.checkpoint(loss)(x, 3, 4)  # wrong
lax.fori_loop(0, 3, lambda i, c: str(c), x)  # wrong
lax.while_loop(lambda c: c > 0, lambda: x, x)  # wrong
lax.scan(lambda c: c, x, x)  # wrong
nn.softmax(x, axs=-1)  # wrong
nn.relu()  # wrong
random.normal((3,))  # wrong
random.normal(random.key(0), shape="3,")  # wrong
random.split(random.key(0), 1.5)  # wrong
weft.device_count().shape  # wrong
x.at[0].set(1.0, mod="drop")  # wrong
x.at[0].add()  # wrong
x.at[0].get(mode=3)  # wrong
jnp.zeros(3, device=3)  # wrong
jnp.zeros(3, device="cpu")  # wrong
jnp.ravel(x, out_sharding="i")  # wrong
weft.grad(loss, argnums=(0, 1))(x, x).w  # wrong
weft.export.export(loss, platform="cpu")  # wrong
