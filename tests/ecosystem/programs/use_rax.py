"""rax: fit scores of a ranking by its losses, and measure it."""

import jax
import jax.numpy as jnp
import optax
import rax

features = jax.random.normal(jax.random.key(0), (4, 6, 5))
labels = jax.random.randint(jax.random.key(1), (4, 6), 0, 3).astype(jnp.float32)
where = jnp.arange(6) < jnp.array([6, 5, 4, 3])[:, None]

losses = [
    rax.softmax_loss,
    rax.pairwise_logistic_loss,
    rax.pairwise_hinge_loss,
    rax.pointwise_mse_loss,
    rax.pointwise_sigmoid_loss,
    rax.listmle_loss,
    rax.poly1_softmax_loss,
    rax.unique_softmax_loss,
]
for loss in losses:

    def compute(w, loss=loss):
        return loss(features @ w, labels, where=where)

    value, slope = jax.jit(jax.value_and_grad(compute))(jnp.linspace(-1.0, 1.0, 5))
    print(value, slope)

w, optimizer = jnp.zeros(5), optax.adam(0.1)
state = optimizer.init(w)


@jax.jit
def step(w, state):
    slope = jax.grad(lambda w: rax.softmax_loss(features @ w, labels, where=where))(w)
    updates, state = optimizer.update(slope, state)
    return optax.apply_updates(w, updates), state


for _ in range(20):
    w, state = step(w, state)
print(w)
for metric in (rax.ndcg_metric, rax.mrr_metric, rax.ap_metric, rax.precision_metric):
    print(metric(features @ w, labels, where=where, topn=3))
print(rax.utils.ranks(features @ w))
