"""Learn to learn sine waves from ten points, by model-agnostic meta-learning.

A task is a sine wave of random height and phase, and ten points of it. The start of gradient
descent is trained so that a few steps on the ten points fit the whole wave: `grad` runs through
the steps, which are themselves `grad` under `lax.scan`, and `vmap` over many tasks at once.
Beside it stands the same network trained on all tasks without the inner steps, given the best of
several step sizes. Finn, Abbeel & Levine, "Model-agnostic meta-learning for fast adaptation of
deep networks", ICML 2017, section 5.1.

usage: python examples/maml.py [--steps 8000] [--tasks 25] [--seed 0] [--out examples/out]
"""

import sys
import time

import numpy as np
from common import BLUE, FAINT, GREY, ORANGE, RED, arguments, axes, progress, save, verdict

import weft.numpy as jnp
from weft import grad, jit, lax, random, value_and_grad, vmap
from weft.experimental import optimizers
from weft.tree_util import tree_map

LAYERS = (1, 40, 40, 1)
POINTS = 10  # of a task that are known, and as many to judge the fit by while training
INNER_STEPS, INNER_RATE = 5, 0.01
RATE, DECAY = 2e-3, 0.1  # of Adam, and what is left of it at the end
HELD_OUT, TEST_STEPS = 500, 10
BASELINE_RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
GOAL, FACTOR = 0.25, 5.0
CHUNK = 100  # steps between two looks at the loss


def init_params(key):
    """One (weights, bias) pair a layer, so small that descent on large waves stays stable."""
    keys = random.split(key, len(LAYERS) - 1)
    shapes = zip(LAYERS, LAYERS[1:], strict=False)
    return [
        (random.normal(k, (n, m)) / jnp.sqrt(2 * n), jnp.zeros(m))
        for k, (n, m) in zip(keys, shapes, strict=True)
    ]


def network(params, x):
    """The value at one number x."""
    *hidden, (weights, bias) = params
    h = x[None]
    for w, b in hidden:
        h = jnp.maximum(h @ w + b, 0)
    return (h @ weights + bias)[0]


def loss(params, x, y):
    """Mean squared error on the points of one task."""
    return jnp.mean((vmap(network, in_axes=(None, 0))(params, x) - y) ** 2)


def adapt(params, x, y, steps=INNER_STEPS, rate=INNER_RATE):
    """Parameters before and after each of `steps` steps of descent on the points, stacked."""

    def step(params, _):
        moved = tree_map(lambda p, g: p - rate * g, params, grad(loss)(params, x, y))
        return moved, params

    last, before = lax.scan(step, params, length=steps)
    return tree_map(lambda b, p: jnp.concatenate([b, p[None]]), before, last)


def draw_task(key, points):
    """A wave of height 0.1 to 5 and phase 0 to pi, and points of it with x from -5 to 5."""
    key_height, key_phase, key_x = random.split(key, 3)
    height = random.uniform(key_height, minval=0.1, maxval=5.0)
    phase = random.uniform(key_phase, maxval=jnp.pi)
    x = random.uniform(key_x, (points,), minval=-5.0, maxval=5.0)
    return (x, height * jnp.sin(x - phase)), (height, phase)


def meta_loss(params, tasks):
    """Mean over the tasks of the error on new points, after the inner steps on the known ones."""

    def one(x, y):
        adapted = tree_map(lambda p: p[-1], adapt(params, x[:POINTS], y[:POINTS]))
        return loss(adapted, x[POINTS:], y[POINTS:])

    return jnp.mean(vmap(one)(*tasks))


def joint_loss(params, tasks):
    """Mean error over all points of all tasks: training without meta-learning."""
    return jnp.mean(vmap(loss, in_axes=(None, 0, 0))(params, *tasks))


def train(objective, key, steps, tasks, desc):
    """Parameters after `steps` steps of Adam, each on new tasks, and the objective at each."""
    schedule = optimizers.exponential_decay(RATE, steps, DECAY)
    opt_init, opt_update, get_params = optimizers.adam(schedule)

    def step(state, given):
        i, key = given
        batch, _ = vmap(lambda k: draw_task(k, 2 * POINTS))(random.split(key, tasks))
        value, grads = value_and_grad(objective)(get_params(state), batch)
        return opt_update(i, grads, state), value

    run = jit(lambda state, numbers, keys: lax.scan(step, state, (numbers, keys)))
    key_init, key_tasks = random.split(key)
    state = opt_init(init_params(key_init))
    keys = random.split(key_tasks, steps)
    values = []
    with progress(steps, desc=desc) as bar:
        for start in range(0, steps, CHUNK):
            part = slice(start, min(start + CHUNK, steps))
            state, chunk = run(state, np.arange(steps)[part], keys[part])
            values.append(np.asarray(chunk))
            bar.set_postfix(error=f"{values[-1].mean():.3f}", refresh=False)
            bar.update(len(values[-1]))
    return get_params(state), np.concatenate(values)


@jit
def errors(params, key, rate):
    """[task, step] errors on 100 points of held-out tasks, after 0 to TEST_STEPS inner steps."""

    def one(key):
        (x, y), (height, phase) = draw_task(key, POINTS)
        grid = jnp.linspace(-5, 5, 100)
        path = adapt(params, x, y, TEST_STEPS, rate)
        return vmap(loss, in_axes=(0, None, None))(path, grid, height * jnp.sin(grid - phase))

    return vmap(one)(random.split(key, HELD_OUT))


def plot_adaptation(trained, key, path):
    """Three held-out tasks: the wave, its ten points, and the network before and after steps."""
    grid = jnp.linspace(-5, 5, 200)
    curves = jit(vmap(vmap(network, (None, 0)), (0, None)))
    figure, panels = axes(2, 3, size=(11, 5.6))
    for column, task_key in enumerate(random.split(key, 3)):
        (x, y), (height, phase) = draw_task(task_key, POINTS)
        for ax, (name, params, rate, color) in zip(panels[:, column], trained, strict=True):
            lines = np.asarray(curves(adapt(params, x, y, TEST_STEPS, rate), grid))
            ax.plot(grid, height * jnp.sin(grid - phase), color=GREY, linewidth=5, alpha=0.35)
            ax.plot(grid, lines[0], color=color, linestyle=":", label="before")
            ax.plot(grid, lines[1], color=color, linewidth=1, label="1 step")
            ax.plot(grid, lines[-1], color=color, linewidth=2.4, label=f"{TEST_STEPS} steps")
            ax.plot(x, y, "o", color=RED, markersize=4.5, zorder=3)
            ax.set(ylim=(-6, 6), xlabel="x")
            if column == 0:
                ax.set_ylabel("y")
                ax.set_title(name, loc="left", fontsize=11)
                ax.legend(frameon=False, ncols=3, loc="lower left", fontsize=8)
    panels[0, 2].set_title("grey: the wave; red: the points seen", loc="right", fontsize=9)
    save(figure, path)


def plot_errors(results, values, path):
    """Error by inner steps on held-out tasks, median and quartiles; and the training."""
    figure, (left, right) = axes(1, 2)
    steps = np.arange(TEST_STEPS + 1)
    for name, held_out, color in results:
        low, middle, high = np.quantile(held_out, (0.25, 0.5, 0.75), axis=0)
        left.fill_between(steps, low, high, color=color, alpha=0.15, linewidth=0)
        left.plot(steps, middle, color=color, marker="o", markersize=3, label=f"{name}, median")
        left.plot(steps, held_out.mean(0), color=color, linestyle="--", label=f"{name}, mean")
    left.set(yscale="log", xlabel="gradient steps on ten points", ylabel="mean squared error")
    left.set_title(f"{HELD_OUT} held-out tasks", loc="left", fontsize=11)
    left.legend(frameon=False, fontsize=8)
    right.plot(values, color=FAINT, linewidth=0.5)
    width = max(1, len(values) // 50)
    smooth = np.convolve(values, np.ones(width) / width, "valid")
    right.plot(np.arange(len(smooth)) + width / 2, smooth, color=BLUE, linewidth=2)
    right.set(yscale="log", xlabel="step of Adam", ylabel="mean squared error")
    right.set_title(f"Meta-training: after {INNER_STEPS} inner steps", loc="left", fontsize=11)
    save(figure, path)


def main():
    """Meta-train, train the baseline, compare on held-out tasks; 0 when the goal is met."""
    args = arguments(__doc__, steps=8000, tasks=25)
    key_maml, key_joint, key_rate, key_test, key_plot = random.split(random.key(args.seed), 5)
    start = time.perf_counter()
    maml, values = train(meta_loss, key_maml, args.steps, args.tasks, "meta-training")
    joint, _ = train(joint_loss, key_joint, args.steps, args.tasks, "baseline")
    print(f"trained in {time.perf_counter() - start:.1f} s, compiling included")

    # The baseline may choose its step size, on tasks that are not those of the comparison.
    final = [float(errors(joint, key_rate, rate)[:, -1].mean()) for rate in BASELINE_RATES]
    best = BASELINE_RATES[int(np.nanargmin(final))]
    meta_errors = np.asarray(errors(maml, key_test, INNER_RATE))
    joint_errors = np.asarray(errors(joint, key_test, best))
    for name, held_out in (
        ("meta-learned", meta_errors),
        (f"baseline (rate {best})", joint_errors),
    ):
        shown = ", ".join(f"{held_out[:, k].mean():.3f} after {k}" for k in (0, 1, 5, TEST_STEPS))
        print(f"held-out mean squared error, {name}: {shown} steps")
    error, other = meta_errors[:, -1].mean(), joint_errors[:, -1].mean()
    print(f"meta-learning is {other / error:.1f} times better after {TEST_STEPS} steps")

    both = (("Meta-learned start", maml, INNER_RATE, BLUE), ("Trained on all", joint, best, ORANGE))
    plot_adaptation(both, key_plot, args.out / "maml-adaptation.png")
    results = (("meta-learned", meta_errors, BLUE), ("trained on all", joint_errors, ORANGE))
    plot_errors(results, values, args.out / "maml-errors.png")
    bar = f"error below {GOAL} after {TEST_STEPS} steps, and {FACTOR:.0f} times below the baseline"
    return verdict("maml", bool(error < GOAL and other > FACTOR * error), bar)


if __name__ == "__main__":
    sys.exit(main())
