"""Learn handwritten digits without learning much about any one image: private gradient descent.

`vmap(grad(loss))` gives every image's own gradient; each is clipped, and their sum is hidden in
Gaussian noise (DP-SGD, Abadi et al. 2016). What that spends of an (epsilon, delta) privacy budget
is counted with Rényi divergences (Mironov, Talwar & Zhang 2019): an image in or out of the data
changes the probability of any outcome by at most a factor e^epsilon, but for chance delta. The
bar: the accuracy on held-out digits at epsilon 4, with delta 1e-4, is above 90%.

usage: python examples/private.py [--steps 150] [--sample-rate 0.25] [--seed 0]
       [--out examples/out]
"""

import sys

import numpy as np
from common import BLUE, GREEN, GREY, ORANGE, RED, arguments, axes, progress, save, verdict
from digits_data import split_digits
from scipy.special import gammaln, logsumexp

import weft.numpy as jnp
from weft import grad, jit, nn, random, vmap
from weft.experimental import optimizers
from weft.flatten_util import ravel_pytree

LAYERS = (64, 32, 10)
HELD_OUT = 360
MAX_NORM = 1.0  # of one image's gradient
EPSILONS = (1.0, 2.0, 4.0, 8.0)
STATED = 4.0  # the epsilon of the bar
DELTA = 1e-4  # well below one in the number of images
GOAL = 0.9
ORDERS = np.arange(2, 257)
STEP_SIZE, MASS = 0.2, 0.9


# --- what it costs: float64 on the host, since small differences of large numbers matter ----------


def renyi(sample_rate, noise):
    """Rényi divergences, of `ORDERS`, that one step spends (Mironov et al. 2019, section 3.3).

    The step adds Gaussian noise, `noise` times the clipping norm, to a sum over a sample that each
    image joins with probability `sample_rate`. For an integer order a, the a-th moment of the ratio
    of densities is a binomial sum: sum_k C(a, k) (1 - q)^(a - k) q^k exp((k^2 - k) / (2 noise^2)).
    """
    spent = []
    for a in ORDERS:
        k = np.arange(a + 1)
        log_ways = gammaln(a + 1) - gammaln(k + 1) - gammaln(a - k + 1)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 * log(0) is 0 here
            stays_out = np.where(k == a, 0, (a - k) * np.log1p(-sample_rate))
        log_terms = log_ways + stays_out + k * np.log(sample_rate) + (k * k - k) / (2 * noise**2)
        spent.append(max(0.0, logsumexp(log_terms)) / (a - 1))
    return np.array(spent)


def epsilon(spent, delta=DELTA):
    """The least epsilon for Rényi divergences (Canonne, Kamath & Steinke 2020, proposition 12)."""
    a = ORDERS
    return np.min(spent + np.log1p(-1 / a) - (np.log(delta) + np.log(a)) / (a - 1), axis=-1)


def noise_for(target, sample_rate, steps):
    """The least noise whose `steps` steps spend no more than epsilon `target`, by bisection."""
    low, high = 0.1, 1000.0
    while high / low > 1.0001:
        middle = np.sqrt(low * high)
        if epsilon(steps * renyi(sample_rate, middle)) > target:
            low = middle
        else:
            high = middle
    return high


# --- learning -------------------------------------------------------------------------------------


def load_data(key):
    """(images, labels) for training and held out; pixels from -1 to 1."""
    shuffle = lambda n: random.permutation(key, n)
    return split_digits(shuffle, lambda counts: counts / 8 - 1, HELD_OUT)


def init_params(key):
    """One (weights, bias) pair a layer."""
    init = nn.initializers.glorot_normal()
    keys = random.split(key, len(LAYERS) - 1)
    pairs = zip(keys, LAYERS, LAYERS[1:], strict=False)
    return [(init(k, (n, m)), jnp.zeros(m)) for k, n, m in pairs]


def logits(params, image):
    """Scores of the ten digits for one image; tanh keeps gradients small, so little is clipped."""
    *hidden, (weights, bias) = params
    for w, b in hidden:
        image = jnp.tanh(image @ w + b)
    return image @ weights + bias


def loss(params, image, label):
    """Negative log-probability of the right digit."""
    return -nn.log_softmax(logits(params, image))[label]


def clipped(gradient):
    """A gradient as one vector, shortened to `MAX_NORM` if it is longer."""
    vector, _ = ravel_pytree(gradient)
    return vector / jnp.maximum(1, jnp.linalg.norm(vector) / MAX_NORM)


def private_gradient(key, params, images, labels, sample_rate, noise):
    """Noisy mean gradient over a random sample; the one thing that is learned from the data.

    Every image tosses its own coin (Poisson sampling, which `renyi` counts on), and the sum is
    divided by the sample's expected size: its true size must not be told.
    """
    key_sample, key_noise = random.split(key)
    gradients = vmap(lambda x, y: clipped(grad(loss)(params, x, y)))(images, labels)
    chosen = random.bernoulli(key_sample, sample_rate, labels.shape)
    total = chosen.astype(gradients.dtype) @ gradients
    total = total + noise * MAX_NORM * random.normal(key_noise, total.shape)
    _, unravel = ravel_pytree(params)
    return unravel(total / (sample_rate * len(labels)))


init, update, get_params = optimizers.momentum(STEP_SIZE, MASS)


@jit
def step(i, key, state, images, labels, sample_rate, noise):
    """The optimizer's next state."""
    gradient = private_gradient(
        random.fold_in(key, i), get_params(state), images, labels, sample_rate, noise
    )
    return update(i, gradient, state)


@jit
def accuracy(params, images, labels):
    """The fraction read right."""
    guess = jnp.argmax(vmap(logits, (None, 0))(params, images), axis=1)
    return jnp.mean(guess == labels)


def train(key, noise, train_set, held_out, sample_rate, bar):
    """Held-out accuracy after each of `bar`'s steps."""
    key_params, key_steps = random.split(key)
    state = init(init_params(key_params))
    history = []
    for i in bar:
        state = step(i, key_steps, state, *train_set, sample_rate, noise)
        history.append(accuracy(get_params(state), *held_out))
    return np.array(history)


def draw(histories, noises, sample_rate, path):
    """Accuracy by step for every budget, beside how each is spent."""
    figure, (left, right) = axes(1, 2)
    colors = (RED, ORANGE, GREEN, BLUE, GREY)
    for budget, color in zip(histories, colors, strict=True):
        history, private = histories[budget], np.isfinite(budget)
        steps = np.arange(1, len(history) + 1)
        label = f"ε = {budget:g}: {history[-1]:.1%}" if private else f"no noise: {history[-1]:.1%}"
        left.plot(steps, 100 * history, color=color, linewidth=2 if private else 1, label=label)
        if private:
            spent = epsilon(steps[:, None] * renyi(sample_rate, noises[budget]))
            right.plot(steps, spent, color=color, linewidth=2)
            right.annotate(f" noise {noises[budget]:.1f}", (steps[-1], spent[-1]), color=color,
                           fontsize=9, va="center", annotation_clip=False)  # fmt: skip
    left.axhline(100 * GOAL, color=GREY, linewidth=1, linestyle="--")
    left.legend(frameon=False, loc="lower right")
    left.set(xlabel="step", ylabel="held-out accuracy (%)", ylim=(0, 100), title="What is learned")
    right.set(xlabel="step", ylabel=f"ε spent, for δ = {DELTA:g}", title="What it costs")
    right.set(ylim=(0, None), xlim=(0, 1.15 * len(steps)))
    save(figure, path)


def main():
    """Train for every budget, and without noise; 0 when the goal is met at the stated one."""
    args = arguments(__doc__, steps=150, sample_rate=0.25)
    if args.sample_rate > 1:
        sys.exit(f"--sample-rate must be at most 1; got {args.sample_rate}")
    key_data, key_train = random.split(random.key(args.seed))
    train_set, held_out = load_data(key_data)
    print(f"{len(train_set[1])} digits to learn from, {HELD_OUT} held out; delta {DELTA:g}")

    noises = {budget: noise_for(budget, args.sample_rate, args.steps) for budget in EPSILONS}
    noises[np.inf] = 0.0
    histories = {}
    keys = random.split(key_train, len(noises))  # what is shared between runs is not independent
    for key, (budget, noise) in zip(keys, noises.items(), strict=True):
        bar = progress(args.steps, desc=f"epsilon {budget:g}")
        histories[budget] = train(key, noise, train_set, held_out, args.sample_rate, bar)
    for budget, noise in noises.items():
        print(f"epsilon {budget:g}: noise {noise:.2f}, accuracy {histories[budget][-1]:.2%}")

    draw(histories, noises, args.sample_rate, args.out / "private.png")
    reached = histories[STATED][-1] > GOAL
    bar = f"accuracy above {GOAL:.0%} at epsilon {STATED:g}, delta {DELTA:g}"
    return verdict("private", reached, bar)


if __name__ == "__main__":
    sys.exit(main())
