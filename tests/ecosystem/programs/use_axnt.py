"""axnt: state of jitted functions and methods that is passed on implicitly."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from axnt import implicit, managed, restores

momentum: jax.Array


@restores(momentum=jnp.ones(()))
def block(x):
    global momentum
    momentum += x
    return x + momentum


@jax.jit(donate_argnames=["state"])
@implicit(argname="state")
def step(x):
    return block(x)


state, out = step(None, 2.0)
print(out, jax.tree.leaves(state))
state, out = step(state, 3.0)
print(out, jax.tree.leaves(state))


@jax.tree_util.register_dataclass
@dataclass
class Model:
    @jax.jit(donate_argnames=["state"])
    @implicit("state")
    def forward(self, x):
        return block(x)


state, out = Model().forward(None, 2.0)
state, out = Model.forward(Model(), state, 3.0)
print(out)


@managed("subsystem")
@jax.jit
@implicit
def inner(x):
    return block(x)


@jax.jit
@implicit
def outer(x):
    return inner(..., x)


state, out = outer(None, 2.0)
state, out = outer(state, 3.0)
print(out)
