"""Training a network with optax: schedules, chains, clipping, states, accumulated gradients."""

import functools

import jax
import jax.numpy as jnp
import optax
from sklearn.datasets import load_digits

data, labels = load_digits(return_X_y=True)
data, labels = jnp.asarray(data / 16, jnp.float32), jnp.asarray(labels)
train, test = (data[:1500], labels[:1500]), (data[1500:], labels[1500:])


def init(key, sizes):
    keys = jax.random.split(key, len(sizes))
    return [
        {"w": jax.random.normal(k, (n, m)) / jnp.sqrt(n), "b": jnp.zeros(m)}
        for k, n, m in zip(keys, sizes[:-1], sizes[1:])
    ]


def apply(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, y):
    losses = optax.softmax_cross_entropy_with_integer_labels(apply(params, x), y)
    return losses.mean() + 1e-4 * optax.tree.norm(params, squared=True)


schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 20, 200, 1e-3)
print([float(schedule(i)) for i in (0, 10, 20, 100, 200)])
optimizer = optax.chain(
    optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.add_decayed_weights(1e-4),
    optax.scale_by_learning_rate(schedule),
)  # fmt: skip


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(params, state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, state = optimizer.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


params = init(jax.random.key(0), (64, 32, 10))
state = optimizer.init(params)
for i in range(200):
    rows = jax.random.choice(jax.random.key(i), 1500, (64,))
    params, state, loss = step(params, state, train[0][rows], train[1][rows])
    if i < 3:
        print(f"{loss:.4f}")
accuracy = jnp.mean(apply(params, test[0]).argmax(-1) == test[1])
print(bool(accuracy > 0.9), state[1].count)

# Optimizers by parts, gradients accumulated, and one whose state is inspected.
params = init(jax.random.key(1), (64, 10))
labels_of = jax.tree.map_with_path(lambda path, _: path[-1].key, params)
parts = optax.multi_transform({"w": optax.adamw(1e-3), "b": optax.sgd(1e-2)}, labels_of)
several = optax.MultiSteps(parts, every_k_schedule=2)
state = several.init(params)
for _ in range(4):
    grads = jax.jit(jax.grad(loss_fn))(params, train[0][:32], train[1][:32])
    updates, state = jax.jit(several.update)(grads, state, params)
    params = optax.apply_updates(params, updates)
    print(state.mini_step, f"{optax.global_norm(updates):.5f}")
print(f"{loss_fn(params, *test):.3f}")
adam = optax.inject_hyperparams(optax.adam)(learning_rate=0.1)
state = adam.init(params)
state.hyperparams["learning_rate"] = 0.2
print(state.hyperparams["learning_rate"])

# A quasi-Newton method with a line search.
solver = optax.lbfgs()
fun = lambda w: jnp.sum(100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2)
w, state = jnp.zeros(3), solver.init(jnp.zeros(3))
value_and_grad = optax.value_and_grad_from_state(fun)


@jax.jit
def search(w, state):
    value, grad = value_and_grad(w, state=state)
    updates, state = solver.update(grad, state, w, value=value, grad=grad, value_fn=fun)
    return optax.apply_updates(w, updates), state


for _ in range(40):
    w, state = search(w, state)
print(jnp.round(w, 2))
