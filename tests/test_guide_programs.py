"""Five programs that a reader writes with only the guide open: docs/guide/first-steps.md and on.

They use what the guide shows, in combinations that it does not show.
"""

import dataclasses
import pickle

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

import weft
import weft.numpy as jnp
from weft import grad, jacfwd, jit, lax, nn, random, tree, value_and_grad, vmap
from weft.flatten_util import ravel_pytree
from weft.tree_util import register_dataclass


def test_logistic_regression_on_a_data_set():
    data = load_breast_cancer()  # float64 and int64 arrays of NumPy
    order = np.random.default_rng(0).permutation(len(data.data))
    x, y = data.data[order], data.target[order]
    x = (x - x[:400].mean(0)) / x[:400].std(0)

    def loss(params, x, y):
        z = x @ params["w"] + params["b"]
        log_p = y * nn.log_sigmoid(z) + (1 - y) * nn.log_sigmoid(-z)
        return -jnp.mean(log_p) + 1e-3 * jnp.sum(params["w"] ** 2)

    @jit
    def step(params, x, y, rate):
        value, grads = value_and_grad(loss)(params, x, y)
        return tree.map(lambda p, g: p - rate * g, params, grads), value

    params = {"w": jnp.zeros(30), "b": 0.0}
    for _ in range(300):
        params, value = step(params, x[:400], y[:400], 0.5)
    right = (x[400:] @ params["w"] + params["b"] > 0) == y[400:]
    assert value < 0.08 and right.mean() > 0.95


def test_a_simulation_is_fitted_through_its_steps():
    def simulate(params, state=(10.0, 5.0), dt=0.05):
        def step(state, _):
            prey, hunters = state
            birth = params["birth"] * prey - params["hunt"] * prey * hunters
            death = params["death"] * hunters - 0.1 * prey * hunters
            state = prey + dt * birth, hunters - dt * death
            return state, jnp.array(state)

        return lax.scan(step, state, length=200)[1]

    true = {"birth": 1.1, "hunt": 0.4, "death": 0.4}
    data = simulate(true)
    data = data + 0.1 * random.normal(random.key(0), data.shape)
    run = jit(value_and_grad(lambda params: jnp.mean((simulate(params) - data) ** 2)))
    params = {"birth": 1.0, "hunt": 0.45, "death": 0.45}
    speed = tree.map(jnp.zeros_like, params)
    for _ in range(400):
        value, grads = run(params)
        speed = tree.map(lambda s, g: 0.9 * s + g, speed, grads)
        params = tree.map(lambda p, s: p - 3e-4 * s, params, speed)
    assert value < 0.012
    assert all(abs(params[k] - true[k]) < 0.01 for k in true)
    moved = jacfwd(lambda birth: simulate({**true, "birth": birth})[-1])(1.1)
    apart = [simulate({**true, "birth": b})[-1] for b in (1.1 + 1e-2, 1.1 - 1e-2)]
    np.testing.assert_allclose(moved, (apart[0] - apart[1]) / 2e-2, rtol=2e-2)


def test_a_batch_of_newton_solves_has_implicit_derivatives():
    def kepler(mean, e):  # the anomaly E of an orbit: E - e sin E = mean
        def solve(f, x):
            def step(state):
                x, _ = state
                new = x - f(x) / grad(f)(x)
                return new, abs(new - x)

            return lax.while_loop(lambda state: state[1] > 1e-6, step, (x, jnp.inf))[0]

        equation = lambda x: x - e * jnp.sin(x) - mean
        return lax.custom_root(equation, mean, solve, lambda g, y: y / g(1.0))

    means, e = jnp.linspace(0.1, 3.0, 6), 0.6
    found = jit(vmap(kepler, in_axes=(0, None)))(means, e)
    np.testing.assert_allclose(found - e * jnp.sin(found), means, rtol=1e-5)
    by_mean, by_e = jit(vmap(grad(kepler, argnums=(0, 1)), in_axes=(0, None)))(means, e)
    slope = 1 / (1 - e * np.cos(found))
    np.testing.assert_allclose(by_mean, slope, rtol=1e-5)
    np.testing.assert_allclose(by_e, np.sin(found) * slope, rtol=1e-4)


@dataclasses.dataclass
class Dense:
    w: object
    b: object
    activation: str = "relu"

    def __call__(self, x):
        return getattr(nn, self.activation)(x @ self.w + self.b)


register_dataclass(Dense, data_fields=["w", "b"], meta_fields=["activation"])


def test_a_model_of_a_class_learns_in_minibatches_and_is_saved(tmp_path):
    def dense(key, n, m, *activation):
        return Dense(random.normal(key, (n, m)) * jnp.sqrt(2 / n), jnp.zeros(m), *activation)

    keys = random.split(random.key(0))
    model = [dense(keys[0], 64, 64), dense(keys[1], 64, 10, "log_softmax")]
    predict = lambda model, x: model[1](model[0](x))

    def loss(model, x, y):
        return -jnp.mean(jnp.take_along_axis(predict(model, x), y[:, None], axis=1))

    @jit
    def step(model, speed, x, y):
        value, grads = value_and_grad(loss)(model, x, y)
        speed = tree.map(lambda s, g: 0.9 * s + g, speed, grads)
        return tree.map(lambda p, s: p - 0.05 * s, model, speed), speed, value

    data, rng = load_digits(), np.random.default_rng(0)
    order = rng.permutation(len(data.data))
    x, y = (data.data / 16)[order].astype(np.float32), data.target[order]
    speed = tree.map(jnp.zeros_like, model)
    for _ in range(6):
        rows = rng.permutation(1500)
        for i in range(0, 1500, 100):
            batch = rows[i : i + 100]
            model, speed, _ = step(model, speed, x[batch], y[batch])
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    again = pickle.loads((tmp_path / "model.pkl").read_bytes())
    assert type(again[0]) is Dense and again[1].activation == "log_softmax"
    assert (jnp.argmax(predict(again, x[1500:]), axis=1) == y[1500:]).mean() > 0.9


def test_gradients_of_examples_and_a_fit_by_jacobians():
    key, noise = random.split(random.key(1))
    x = 4 * random.uniform(key, (50,))
    y = 2.5 * jnp.exp(-1.3 * x) + 0.5 + 0.01 * random.normal(noise, (50,))
    model = lambda p, x: p["a"] * jnp.exp(-p["k"] * x) + p["c"]
    loss = lambda p, x, y: (model(p, x) - y) ** 2
    params = {"a": 1.0, "k": 1.0, "c": 0.0}
    each = jit(vmap(grad(loss), in_axes=(None, 0, 0)))(params, x, y)
    size = lambda g: jnp.sqrt(tree.reduce(lambda total, g: total + g**2, g, 0.0))
    clipped = vmap(lambda g: tree.map(lambda part: part / jnp.maximum(1.0, size(g)), g))(each)
    assert vmap(size)(each).max() > 1.5 and vmap(size)(clipped).max() < 1.0001

    flat, unravel = ravel_pytree(params)
    residuals = lambda flat: model(unravel(flat), x) - y

    @jit
    def gauss_newton(flat):
        return flat - jnp.linalg.lstsq(jacfwd(residuals)(flat), residuals(flat))[0]

    for _ in range(6):
        flat = gauss_newton(flat)
    fitted = unravel(flat)
    assert all(abs(fitted[k] - v) < 0.03 for k, v in {"a": 2.5, "k": 1.3, "c": 0.5}.items())
    jacobian = jacfwd(residuals)(flat)
    errors = jnp.sqrt(jnp.diag(jnp.linalg.inv(jacobian.T @ jacobian)) * 1e-4)
    assert errors.max() < 0.01
    assert weft.jacrev(lambda p: vmap(model, (None, 0))(p, x))(params)["a"].shape == (50,)
