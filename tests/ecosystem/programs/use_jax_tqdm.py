"""jax-tqdm: progress bars within loops, and loops that are mapped."""

import jax
import jax.numpy as jnp
from jax_tqdm import PBar, loop_tqdm, scan_tqdm


@scan_tqdm(50, print_rate=10)
def step(carry, i):
    return carry + i, carry * 0.5


@loop_tqdm(20)
def advance(i, value):
    return value + i


print(*jax.jit(lambda: jax.lax.scan(step, 0.0, jnp.arange(50)))())
print(jax.lax.fori_loop(0, 20, advance, 1))


def run(i):
    end, out = jax.lax.scan(step, PBar(id=i, carry=0.0), jnp.arange(50))
    return end.carry, out.sum()


print([run(i) for i in range(2)])
