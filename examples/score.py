"""Generate points of a distribution from the gradient of its log-density, learned three ways.

A network learns the score, grad log p(x), of data blurred by each of ten noise levels, and Langevin
dynamics follows it from the widest noise to the narrowest (Song & Ermon, "Generative modeling by
estimating gradients of the data distribution", NeurIPS 2019). The score is learned exactly, with
the trace of its Jacobian from `jacfwd` (Hyvarinen 2005); on random slices, with `jvp` in place of
the Jacobian (Song et al. 2019); and by denoising (Vincent 2011). The data: scikit-learn's roll.

usage: python examples/score.py [--steps 2500] [--samples 4000] [--seed 0] [--out examples/out]
"""

import sys
import time

import numpy as np
from common import BLUE, GREEN, GREY, ORANGE, arguments, axes, progress, save, verdict
from sklearn.datasets import make_swiss_roll

import weft.numpy as jnp
from weft import jacfwd, jit, jvp, lax, nn, random, value_and_grad, vmap
from weft.experimental import optimizers

SIGMAS = np.geomspace(1.0, 0.05, 10).astype(np.float32)  # of the noise; the data has variance 1
WIDTH, BATCH, RATE, DECAY = 128, 256, 3e-3, 0.03
FREQUENCIES = np.array([1, 2, 4], np.float32)
LANGEVIN_STEPS, LANGEVIN_RATE = 50, 0.1  # at each level, and in units of its variance
SLICES = 200
GOAL, FACTOR = 0.12, 2
CHUNK = 100  # steps between two looks at the loss


def exact(score, key, x, sigma):
    """tr(ds/dx) + |s|^2 / 2: needs the whole Jacobian (Hyvarinen 2005, equation 4)."""
    noisy = x + sigma * random.normal(key, x.shape)
    return jnp.trace(jacfwd(score)(noisy)) + jnp.sum(score(noisy) ** 2) / 2


def sliced(score, key, x, sigma):
    """v . (ds/dx) v + |s|^2 / 2 for random signs v: one jvp (Song et al. 2019, equation 8)."""
    key_noise, key_slice = random.split(key)
    noisy = x + sigma * random.normal(key_noise, x.shape)
    v = random.rademacher(key_slice, x.shape, x.dtype)
    s, along = jvp(score, (noisy,), (v,))
    return jnp.dot(v, along) + jnp.sum(s**2) / 2


def denoising(score, key, x, sigma):
    """|s + z / sigma|^2 / 2: the noise is the answer, no derivative of s (Vincent 2011)."""
    z = random.normal(key, x.shape)
    return jnp.sum((score(x + sigma * z) + z / sigma) ** 2) / 2


def init_params(key):
    """One (weights, bias) pair a layer; the input is a point, waves of it, and its noise level."""
    sizes = (3 + 4 * len(FREQUENCIES), WIDTH, WIDTH, WIDTH, 2)
    keys = random.split(key, len(sizes) - 1)
    init = nn.initializers.glorot_normal()
    return [
        (init(k, (n, m)), jnp.zeros(m)) for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def network(params, x, sigma):
    """The score at one point x of the data blurred by sigma, of the size 1 / sigma it has."""
    *hidden, (weights, bias) = params
    waves = jnp.outer(FREQUENCIES, x).ravel()  # so that it can turn within a short distance
    h = jnp.concatenate([x, jnp.sin(waves), jnp.cos(waves), jnp.log(sigma)[None]])
    for w, b in hidden:
        h = nn.swish(h @ w + b)
    return (h @ weights + bias) / sigma


def train(objective, key, points, steps, desc):
    """Parameters after `steps` steps of Adam on `objective`, weighted by sigma^2 at every level."""
    schedule = optimizers.exponential_decay(RATE, steps, DECAY)
    opt_init, opt_update, get_params = optimizers.adam(schedule)

    def loss(params, key):
        key_points, key_levels, key_each = random.split(key, 3)
        batch = random.choice(key_points, points, (BATCH,))
        sigmas = random.choice(key_levels, SIGMAS, (BATCH,))

        def one(key, x, sigma):
            return sigma**2 * objective(lambda x: network(params, x, sigma), key, x, sigma)

        return jnp.mean(vmap(one)(random.split(key_each, BATCH), batch, sigmas))

    def step(state, given):
        i, key = given
        value, grads = value_and_grad(loss)(get_params(state), key)
        return opt_update(i, grads, state), value

    run = jit(lambda state, numbers, keys: lax.scan(step, state, (numbers, keys)))
    key_init, key_steps = random.split(key)
    state = opt_init(init_params(key_init))
    keys = random.split(key_steps, steps)
    with progress(steps, desc=desc) as bar:
        for start in range(0, steps, CHUNK):
            part = slice(start, min(start + CHUNK, steps))
            state, values = run(state, np.arange(steps)[part], keys[part])
            bar.set_postfix(loss=f"{float(values.mean()):.3f}", refresh=False)
            bar.update(len(values))
    return get_params(state)


def langevin(score, key, start):
    """Points after each level of annealed Langevin dynamics, [level, 2], from the point `start`.

    The last step follows the score without noise, to the mean of the points it may come from.
    """

    def level(x, given):
        sigma, key = given
        rate = LANGEVIN_RATE * sigma**2

        def step(x, key):
            z = random.normal(key, x.shape)
            return x + rate * score(x, sigma) + jnp.sqrt(2 * rate) * z, None

        x, _ = lax.scan(step, x, random.split(key, LANGEVIN_STEPS))
        return x, x

    x, path = lax.scan(level, start, (SIGMAS, random.split(key, len(SIGMAS))))
    return path.at[-1].set(x + SIGMAS[-1] ** 2 * score(x, SIGMAS[-1]))


def sample(params, key, count):
    """`count` points at each level, [level, count, 2]: from wide noise to the model."""
    key_start, key_path = random.split(key)
    starts = 2 * random.normal(key_start, (count, 2))

    def one(key, start):
        return langevin(lambda x, sigma: network(params, x, sigma), key, start)

    return vmap(one, out_axes=1)(random.split(key_path, count), starts)


@jit
def distance(key, a, b):
    """Sliced Wasserstein-2 distance of two samples of one size (Bonneel et al. 2015)."""
    angle = random.uniform(key, (SLICES,), maxval=jnp.pi)
    slices = jnp.stack([jnp.cos(angle), jnp.sin(angle)])
    gaps = jnp.sort(a @ slices, axis=0) - jnp.sort(b @ slices, axis=0)
    return jnp.sqrt(jnp.mean(gaps**2))


def load_data(seed, samples):
    """The roll seen from its end, with noise, scaled to mean 0 and variance 1: train, held out."""
    points, _ = make_swiss_roll(5000 + 2 * samples, noise=0.5, random_state=seed)
    plane = points[:, [0, 2]]
    train_set = plane[2 * samples :]
    plane = ((plane - train_set.mean(0)) / train_set.std(0)).astype(np.float32)
    return plane[2 * samples :], plane[:samples], plane[samples : 2 * samples]


def scatter(ax, points, color, title):
    """Points on the square that all pictures share."""
    ax.plot(*points.T, ".", color=color, markersize=1.6, alpha=0.6)
    ax.set(xlim=(-2.6, 2.6), ylim=(-2.6, 2.6), aspect="equal", xlabel="$x_1$")
    ax.set_title(title, loc="left", fontsize=10)


def plot_field(params, held_out, levels, path):
    """The score field over the data, and the samples that follow it, at four noise levels."""
    figure, panels = axes(2, 4, size=(12, 6.4))
    grid = np.stack(np.meshgrid(*[np.linspace(-2.5, 2.5, 22)] * 2), -1).reshape(-1, 2)
    field = jit(vmap(network, in_axes=(None, 0, None)))
    for i, (above, below) in zip((0, 3, 6, 9), panels.T, strict=True):
        s = np.asarray(field(params, grid.astype(np.float32), SIGMAS[i]))
        length = np.linalg.norm(s, axis=1, keepdims=True)
        arrows = s / length * np.tanh(length * SIGMAS[i])
        scatter(above, held_out, GREY, rf"score, $\sigma$ = {SIGMAS[i]:.2f}")
        above.quiver(*grid.T, *arrows.T, color=BLUE, scale=26, width=0.005)
        scatter(below, levels[i], BLUE, rf"samples, $\sigma$ = {SIGMAS[i]:.2f}")
    for ax in panels[:, 0]:
        ax.set_ylabel("$x_2$")
    save(figure, path)


def plot_samples(columns, path):
    """Held-out data beside what each model draws."""
    figure, panels = axes(1, len(columns), size=(2.9 * len(columns), 3.3))
    for ax, (title, points, color) in zip(panels, columns, strict=True):
        scatter(ax, points, color, title)
    panels[0].set_ylabel("$x_2$")
    save(figure, path)


def main():
    """Learn the score three ways, sample, compare; 0 when denoising meets the goal."""
    args = arguments(__doc__, steps=2500, samples=4000)
    key_gauss, key_slices, *keys = random.split(random.key(args.seed), 8)
    train_set, held_out, fresh = load_data(args.seed, args.samples)
    draw = jit(sample, static_argnums=2)
    objectives = (exact, sliced, denoising)
    drawn = {}
    start = time.perf_counter()
    for objective, key_train, key_draw in zip(objectives, keys[:3], keys[3:], strict=True):
        params = train(objective, key_train, train_set, args.steps, objective.__name__)
        levels = np.asarray(draw(params, key_draw, args.samples))
        drawn[objective.__name__] = levels[-1]
    print(f"trained and sampled in {time.perf_counter() - start:.1f} s, compiling included")

    covariance = np.cov(train_set.T).astype(np.float32)
    gauss = random.multivariate_normal(key_gauss, np.zeros(2), covariance, (args.samples,))
    rows = {**drawn, "gaussian fit": np.asarray(gauss), "fresh data": fresh}
    figures = {name: float(distance(key_slices, held_out, x)) for name, x in rows.items()}
    for name, figure in figures.items():
        print(f"sliced Wasserstein distance to held-out data, {name}: {figure:.4f}")

    plot_field(params, held_out, levels, args.out / "score-field.png")
    columns = [(f"{name}: {figures[name]:.3f}", rows[name], BLUE) for name in drawn]
    columns.append((f"Gaussian fit: {figures['gaussian fit']:.3f}", rows["gaussian fit"], ORANGE))
    held = [(f"held out (fresh: {figures['fresh data']:.3f})", held_out, GREEN)]
    plot_samples(held + columns, args.out / "score-samples.png")
    best, worst = figures["denoising"], FACTOR * figures["denoising"]
    bar = f"denoising: distance below {GOAL}, and less than half that of the Gaussian fit"
    return verdict("score", best < GOAL and worst < figures["gaussian fit"], bar)


if __name__ == "__main__":
    sys.exit(main())
