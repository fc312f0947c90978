"""`to_c` on programs as users write them: derivatives, loops, steps of training, random numbers."""

import subprocess

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.export.c.sanitized import WARNINGS
from weft import export, lax, nn, random


def check(fun, *args, rtol=2e-5, atol=1e-6):
    """Compile a program without warnings, and compare two calls with what `fun` gives."""
    program = export.to_c(fun)(*args)
    call = program.build(flags=["-O1", *WARNINGS])
    want = weft.jit(fun)(*args)
    compare = lambda a, b: np.testing.assert_allclose(a, b, rtol, atol)
    for _ in range(2):
        weft.tree.map(compare, call(*args), want)
    return program, call


def neuron(params, state):
    """FitzHugh and Nagumo's equations, 500 steps."""

    def step(state, _):
        v, w = state
        dv = v - v**3 / 3 - w + params[0]
        dw = params[1] * (v + params[2] - params[3] * w)
        return (v + 0.1 * dv, w + 0.1 * dw), v

    _, vs = lax.scan(step, (state[0], state[1]), None, length=500)
    return jnp.mean(vs**2)


def test_the_derivative_of_a_loop_is_16_kilobytes():
    with weft.enable_x64(True):
        args = np.array([0.5, 0.08, 0.7, 0.8]), np.array([0.1, 0.2])
        program, call = check(weft.value_and_grad(neuron), *args, rtol=1e-10)
    assert len(program.source) < 6000
    assert call.library.stat().st_size < 20_000
    needs = subprocess.run(["ldd", str(call.library)], capture_output=True, text=True, check=False)
    assert not needs.stdout or "libstdc++" not in needs.stdout


def make_data(*shapes):
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def test_steps_of_training():
    x, w = make_data((32, 5), (5,))
    y = (x @ w > 0).astype(np.float32)

    def logistic(w):
        return jnp.mean(jnp.logaddexp(0, -(2 * y - 1) * (x @ w)))

    check(lambda w: w - 0.1 * weft.grad(logistic)(w), 0 * w)

    def loss(params, x, labels):
        hidden = nn.relu(x @ params["w"] + params["b"])
        logits = nn.log_softmax(hidden @ params["v"])
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))

    @weft.jit
    def step(params, momentum, x, labels):
        value, grads = weft.value_and_grad(loss)(params, x, labels)
        momentum = weft.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        return weft.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum, value

    params = dict(zip("wbv", make_data((5, 16), (16,), (16, 3)), strict=True))
    labels = np.arange(32, dtype=np.int32) % 3
    check(step, params, weft.tree.map(np.zeros_like, params), x, labels)


def test_a_convolutional_network():
    images, k1, k2, w = make_data((2, 8, 8, 1), (3, 3, 1, 4), (3, 3, 4, 6), (24, 10))

    def forward(images, k1, k2, w):
        names = "NHWC", "HWIO", "NHWC"
        x = images
        for k in (k1, k2):
            x = nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=names))
            x = lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return nn.softmax(x.reshape(len(x), -1) @ w)

    check(forward, images, k1, k2, w, rtol=1e-4)
    check(weft.grad(lambda *xs: forward(*xs)[:, 0].sum(), argnums=(1, 2)), images, k1, k2, w)


def test_a_kalman_filter():
    def run(x, p, ys):
        a, q, r = jnp.array([[1, 0.1], [0, 1]]), 0.01 * jnp.eye(2), jnp.eye(1)
        h = jnp.array([[1.0, 0.0]])

        def step(state, y):
            x, p = a @ state[0], a @ state[1] @ a.T + q
            gain = jnp.linalg.solve(h @ p @ h.T + r, h @ p).T
            x = x + gain @ (y - h @ x)
            return (x, p - gain @ h @ p), x

        return lax.scan(step, (x, p), ys)

    check(run, np.zeros(2, np.float32), np.eye(2, dtype=np.float32), *make_data((20, 1)))


def test_random_numbers_are_the_same():
    def sample(key):
        a, b, c = random.split(key, 3)
        return (
            random.normal(a, (5,)), random.uniform(b, (3, 2)), random.randint(c, (4,), 0, 10),
            random.key_data(c),
        )  # fmt: skip

    check(sample, random.key(3), atol=1e-6)


def test_a_step_of_hamiltonian_monte_carlo():
    def energy(x):
        return 0.5 * jnp.sum(x**2) + jnp.sum(jnp.cos(x))

    def step(x, seed):
        a, b = random.split(random.key(seed))
        p = random.normal(a, x.shape)

        def leap(_, state):
            x, p = state
            p = p - 0.05 * weft.grad(energy)(x)
            x = x + 0.1 * p
            return x, p - 0.05 * weft.grad(energy)(x)

        y, q = lax.fori_loop(0, 10, leap, (x, p))
        change = energy(x) + 0.5 * jnp.sum(p**2) - energy(y) - 0.5 * jnp.sum(q**2)
        return jnp.where(jnp.log(random.uniform(b)) < change, y, x)

    check(step, *make_data((6,)), np.int32(5), rtol=1e-4)


def test_an_adaptive_solver():
    def solve(y):
        def step(state):
            t, y, h = state
            f = lambda y: jnp.array([y[1], -y[0]])
            k1 = f(y)
            k2 = f(y + h * k1)
            error = jnp.max(jnp.abs(h * (k2 - k1))) / 2
            ok = error < 1e-3
            factor = jnp.clip(0.9 * jnp.sqrt(1e-3 / (error + 1e-12)), 0.2, 2.0)
            return jnp.where(ok, t + h, t), jnp.where(ok, y + h * (k1 + k2) / 2, y), h * factor

        return lax.while_loop(lambda s: s[0] < 1, step, (0.0, y, 0.1))

    check(solve, np.float32([1, 0]), rtol=1e-4)


def test_functions_of_weft_and_static_arguments():
    check(jnp.sin, np.float32([1, 2]))
    power = weft.jit(lambda x, n: x**n, static_argnums=1)
    call = export.to_c(power)(np.float32(3), 2).build()
    assert call(np.float32(4)) == 16


def test_what_it_says_of_itself():
    fun = lambda params, x: {"y": params["w"] @ x, "n": 1}
    program = export.to_c(fun, name="apply")({"w": np.ones((2, 3), np.float32)}, np.ones(3, "f"))
    assert repr(program) == (
        "CProgram(apply: (params_w: f32[2,3], x: f32[3]) -> (result_n: i32[], result_y: f32[2]))"
    )
    report = program.report()
    assert report.source_bytes == len(program.source)
    assert report.operations >= 6
    assert str(report).startswith("source ")


def test_constants_are_part_of_the_source():
    table = np.linspace(0, 1, 10, dtype=np.float32)
    program, _ = check(lambda i: jnp.asarray(table)[i], np.int32(3))
    assert "static const float" in program.source
    assert program.report().constant_bytes == 40


def test_errors():
    with pytest.raises(TypeError, match="to_c: needs a function; got 3"):
        export.to_c(3)
    ref = weft.new_ref(jnp.ones(3))
    with pytest.raises(ValueError, match="must be a program of arrays; got a reference"):
        export.to_c(lambda x: ref[...] + x)(np.ones(3, np.float32))
    with pytest.raises(ValueError, match="must be arrays of numbers; got random keys"):
        export.to_c(random.key)(0)
