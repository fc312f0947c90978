"""kernex: stencils, mapped and scanned over arrays."""

import jax
import jax.numpy as jnp
import kernex as kex


@kex.kmap(kernel_size=(3, 3), padding="valid", relative=True)
def laplacian(x):
    return x[1, 0] + x[0, -1] - 4 * x[0, 0] + x[0, 1] + x[-1, 0]


@kex.kscan(kernel_size=(3,))
def running(x):
    return jnp.sum(x)


x = jnp.sin(jnp.arange(25.0)).reshape(5, 5)
print(laplacian(x), jax.grad(lambda x: (laplacian(x) ** 2).sum())(x)[1])
print(running(jnp.arange(1, 6)))
pool = jax.vmap(kex.kmap(kernel_size=(3, 3), strides=(2, 2))(jnp.mean))
print(jax.jit(pool)(x[None]))

steps = kex.kscan(
    kernel_size=(3, 3), padding=((1, 1), (1, 1)), named_axis={0: "n", 1: "i"}, relative=True
)
steps[:, 0] = steps[:, -1] = lambda u: 1
steps[:, :3] = steps[:, 5:] = lambda u: 1
steps[0:1, 3:5] = lambda u: 2
steps[1:, 1:-1] = lambda u: u["i", "n-1"] - 0.3 * (u["i", "n-1"] - u["i-1", "n-1"])
print(steps(jnp.ones((4, 9))))
