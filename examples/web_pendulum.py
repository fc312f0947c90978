"""Drag a pendulum that a network holds upright, in a browser.

A cart on a rail carries a pole. The network, of 16 units, gives the force on the cart. It is
trained through 3 seconds of the equations of motion: `value_and_grad` of a `scan`, mapped over 64
starts. One step of the equations with the network in it is written in C and compiled to
WebAssembly, and the page calls it at each frame with the push of the mouse. To see the page:
`python -m http.server -d examples/out/web_pendulum`. Needs zig (`pip install weft[c]`). Exits with
status 1 unless the pole is within 5 degrees of upright, for all of 200 new starts, after 8 seconds.

usage: python examples/web_pendulum.py [--steps 400] [--seed 0] [--out examples/out]
"""

import sys
from pathlib import Path

import numpy as np
from common import BLUE, arguments, axes, progress, save, verdict

import weft.numpy as jnp
from weft import export, jit, lax, random, value_and_grad, vmap
from weft.experimental import optimizers

CART, POLE, HALF, GRAVITY, FRICTION = 1.0, 0.2, 0.5, 9.81, 0.1  # kg, kg, m, m/s^2, N s/m
STRONGEST, STEP = 20.0, 0.02  # N, s
UNITS, STARTS, SECONDS = 16, 64, 3.0
GOAL, TEST_SECONDS = 5.0, 8.0  # degrees
PAGE = Path(__file__).resolve().with_name("web_pendulum.html")


def move(state, force, push):
    """The state after one step: place and speed of the cart, angle and speed of the pole.

    `force` is on the cart, `push` is sideways on the end of the pole. Equations of Barto, Sutton
    and Anderson (1983) with a push, integrated by the semi-implicit method of Euler.
    """
    x, v, angle, turn = state
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    total = CART + POLE
    drive = (force + push - FRICTION * v + POLE * HALF * turn**2 * sin) / total
    torque = GRAVITY * sin - cos * drive + 2 * push * cos / POLE
    turning = torque / (HALF * (4 / 3 - POLE * cos**2 / total))
    speed = v + STEP * (drive - POLE * HALF * turning * cos / total)
    turn = turn + STEP * turning
    return jnp.stack([x + STEP * speed, speed, angle + STEP * turn, turn])


def control(params, state):
    """The force on the cart."""
    x, v, angle, turn = state
    seen = jnp.stack([x, v, jnp.sin(angle), jnp.cos(angle) - 1, turn])
    hidden = jnp.tanh(seen @ params["w"] + params["b"])
    return STRONGEST * jnp.tanh(seen @ params["k"] + hidden @ params["v"])


def follow(params, start, seconds):
    """The states of a run without pushes, (time, 4)."""

    def step(state, _):
        state = move(state, control(params, state), 0.0)
        return state, state

    return lax.scan(step, start, length=round(seconds / STEP))[1]


def loss(params, starts):
    """Measure how far runs are from upright and from the middle, above all at the end."""
    x, v, angle, turn = jnp.moveaxis(vmap(lambda s: follow(params, s, SECONDS))(starts), 2, 0)
    cost = 4 * (1 - jnp.cos(angle)) + 0.2 * x**2 + 0.02 * v**2 + 0.02 * turn**2
    late = jnp.linspace(0.5, 1.5, cost.shape[1])
    return jnp.mean(late * jnp.log1p(cost))


def draw_starts(key, count):
    """States with the pole up to 23 degrees from upright."""
    return random.uniform(key, (count, 4), minval=-1, maxval=1) * jnp.array([0.35, 0.35, 0.4, 0.35])


def train(key, steps):
    """The parameters of the network, by Adam."""
    key_w, key_v, key_starts = random.split(key, 3)
    params = {
        "w": random.normal(key_w, (5, UNITS)) / 2,
        "b": jnp.zeros(UNITS),
        "v": random.normal(key_v, (UNITS,)) / 10,
        "k": jnp.zeros(5),
    }
    init, update, get = optimizers.adam(optimizers.exponential_decay(5e-2, steps, 0.1))

    @jit
    def step(i, state, key):
        value, grads = value_and_grad(loss)(get(state), draw_starts(key, STARTS))
        grads = optimizers.clip_grads(grads, 1.0)
        return update(i, grads, state), value

    state, bar = init(params), progress(steps)
    for i in bar:
        state, value = step(i, state, random.fold_in(key_starts, i))
        if i % 20 == 0:
            bar.set_postfix(loss=f"{value:.3f}", refresh=False)
    return get(state)


def write_page(params, folder):
    """Write the page to a folder, and return the program in C."""

    def step(state, push):
        force = control(params, state)
        return {"state": move(state, force, push), "force": force}

    program = export.to_c(step, name="pendulum")(np.zeros(4, np.float32), np.float32(0))
    program.to_web(folder)
    (folder / "index.html").write_text(PAGE.read_text())
    return program


def main():
    """Train, write the page, check the program in C; 0 when the goal is met."""
    args = arguments(__doc__, steps=400)
    key_train, key_test = random.split(random.key(args.seed))
    params = train(key_train, args.steps)
    folder = args.out / "web_pendulum"
    program = write_page(params, folder)
    print(f"{program.report()}\nmodel.wasm {(folder / 'model.wasm').stat().st_size} bytes")

    call, runs = program.build(), []  # the same source, for this machine
    for state in np.asarray(draw_starts(key_test, 200)):
        states = [state]
        for _ in range(round(TEST_SECONDS / STEP)):
            states.append(call(states[-1], np.float32(0))["state"])
        runs.append(states)
    angles = np.degrees(np.array(runs)[:, :, 2])
    worst = np.abs(angles[:, -1]).max()
    print(f"the worst of 200 runs is {worst:.2f} degrees from upright after {TEST_SECONDS:.0f} s")

    figure, (left, right) = axes(1, 2, size=(11, 4))
    times = STEP * np.arange(angles.shape[1])
    left.plot(times, angles[:30].T, color=BLUE, linewidth=0.7, alpha=0.6)
    left.set(xlabel="time (s)", ylabel="angle from upright (degrees)", title="The pole")
    right.plot(times, np.array(runs)[:30, :, 0].T, color=BLUE, linewidth=0.7, alpha=0.6)
    right.set(xlabel="time (s)", ylabel="place (m)", title="The cart")
    save(figure, args.out / "web_pendulum.png")
    return verdict("web_pendulum", worst < GOAL, f"within {GOAL:.0f} degrees of upright")


if __name__ == "__main__":
    sys.exit(main())
