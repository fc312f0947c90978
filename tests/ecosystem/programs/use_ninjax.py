"""ninjax: modules with state, trained by a pure function."""

import flax
import jax
import jax.numpy as jnp
import ninjax as nj
import optax

Linear = nj.FromFlax(flax.linen.Dense)


class Model(nj.Module):
    lr: float = 1e-2

    def __init__(self, size):
        self.size = size
        self.h1 = Linear(8, name="h1")
        self.opt = optax.adam(self.lr)

    def loss(self, x, y):
        x = self.sub("h2", Linear, self.size, use_bias=False)(jax.nn.relu(self.h1(x)))
        x += self.value("bias", jnp.zeros, self.size)
        self.write("bias", self.read("bias") + 0.1)
        return ((x - y) ** 2).mean()

    def train(self, x, y):
        where = [self.h1, f"{self.path}/h2", f"{self.path}/bias"]
        loss, params, grads = nj.grad(self.loss, where)(x, y)
        state = self.sub("optstate", nj.Tree, self.opt.init, params)
        updates, new = self.opt.update(grads, state.read(), params)
        nj.context().update(optax.apply_updates(params, updates))
        state.write(new)
        return loss


model = Model(3, name="model")
x, y = jnp.ones((4, 5)), jnp.ones((4, 3))
state = nj.init(model.train)({}, x, y, seed=0)
train = jax.jit(nj.pure(model.train))
for _ in range(5):
    state, loss = train(state, x, y)
    print(loss, state["model/bias"])
