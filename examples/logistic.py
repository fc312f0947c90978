"""Logistic regression: grad and jit in ten lines, then at work on breast tumours.

The first half is the program of JAX's first README (2018): a loss, `jit(grad(loss))`, a hundred
steps downhill on four points. The second half keeps the same loop and takes what real data asks
for: a loss that cannot overflow, a penalty, an intercept. `vmap` fits 24 strengths of the penalty
at once, which shows what the penalty does to the weights. Data: Wolberg, Street and Mangasarian
(1993), 30 measurements of the cell nuclei of 569 tumours. Exits with status 1 when the accuracy on
held-out tumours is 95% or less; the threshold on the best single measurement reaches 92%.

usage: python examples/logistic.py [--steps 500] [--penalty 1.0] [--seed 0] [--out examples/out]
"""

import sys

import numpy as np
from common import BLUE, FAINT, GREY, ORANGE, arguments, axes, progress, save, verdict
from sklearn.datasets import load_breast_cancer

import weft.numpy as jnp
from weft import grad, jit, lax, nn, random, vmap

HELD_OUT = 169
CURVATURE = 13.3 / 4  # of the mean loss at most: the largest eigenvalue of the correlations / 4
GOAL = 0.95


# --- the README's program -----------------------------------------------------------------------


def sigmoid(x):
    return 0.5 * (jnp.tanh(x / 2.0) + 1)


def logistic_predictions(weights, inputs):
    """The probability of a label being true according to the logistic model."""
    return sigmoid(jnp.dot(inputs, weights))


def loss(weights, inputs, targets):
    """The negative log-likelihood of the training labels."""
    preds = logistic_predictions(weights, inputs)
    label_logprobs = jnp.log(preds) * targets + jnp.log(1 - preds) * (1 - targets)
    return -jnp.sum(label_logprobs)


def tour():
    """A hundred steps of gradient descent on a toy dataset; the weights they end at."""
    inputs = jnp.array(
        [[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]]
    )
    targets = jnp.array([True, True, False, True])

    training_gradient_fun = jit(grad(loss))  # compiled: the gradient of the training loss

    weights = jnp.array([0.0, 0.0, 0.0])
    print(f"Initial loss: {loss(weights, inputs, targets):0.2f}")
    for _ in range(100):
        weights -= 0.1 * training_gradient_fun(weights, inputs, targets)
    print(f"Trained loss: {loss(weights, inputs, targets):0.2f}")
    return weights


# --- the same on real data ----------------------------------------------------------------------


def logits(params, inputs):
    """Log-odds of a tumour being malignant."""
    weights, intercept = params
    return inputs @ weights + intercept


def mean_loss(params, inputs, targets, penalty):
    """Mean negative log-likelihood, and half the penalty times the squared weights, per tumour.

    `log(1 - sigmoid(x))` is -inf in float32 from x = 17 on; `log_sigmoid(-x)` never is.
    """
    signed = jnp.where(targets, 1, -1) * logits(params, inputs)
    return -jnp.mean(nn.log_sigmoid(signed)) + penalty / 2 * jnp.sum(params[0] ** 2) / len(targets)


def descend(params, inputs, targets, penalty):
    """One step of gradient descent; params are a pytree, and so is their gradient."""
    slope = grad(mean_loss)(params, inputs, targets, penalty)
    rate = 1 / (CURVATURE + penalty / len(targets))  # a longer step could overshoot
    return tuple(p - rate * s for p, s in zip(params, slope))


step = jit(descend)


@jit
def path(inputs, targets, penalties):
    """The weights for each of the penalties, all fitted in one compiled program: (n, features)."""
    start = jnp.zeros(inputs.shape[1]), 0.0
    fit = lambda penalty: lax.fori_loop(
        0, 1000, lambda _, params: descend(params, inputs, targets, penalty), start
    )
    return vmap(fit)(penalties)[0]


def roc(scores, targets):
    """The false and true positive rates at every threshold, and the area under their curve."""
    order = jnp.argsort(-scores)
    hits = jnp.cumsum(targets[order]) / jnp.sum(targets)
    alarms = jnp.cumsum(~targets[order]) / jnp.sum(~targets)
    hits, alarms = (jnp.concatenate([jnp.zeros(1), rate]) for rate in (hits, alarms))
    return alarms, hits, jnp.trapezoid(hits, alarms)


def load_data(key):
    """Standardized measurements and whether malignant: training and held-out pairs, names."""
    data = load_breast_cancer()
    order = np.asarray(random.permutation(key, len(data.target)))
    inputs, targets = data.data[order], data.target[order] == 0
    train = inputs[:-HELD_OUT]
    inputs = jnp.asarray((inputs - train.mean(0)) / train.std(0), jnp.float32)
    targets = jnp.asarray(targets)
    halves = [(inputs[rows], targets[rows]) for rows in (slice(-HELD_OUT), slice(-HELD_OUT, None))]
    return *halves, data.feature_names


def plot_predictions(params, inputs, targets, file):
    """The ROC curve beside the predicted probabilities of both kinds of tumour."""
    scores = logits(params, inputs)
    alarms, hits, area = roc(scores, targets)
    figure, (left, right) = axes(1, 2)
    left.plot([0, 100], [0, 100], color=GREY, linewidth=1, linestyle="--")
    left.plot(100 * alarms, 100 * hits, color=BLUE, linewidth=2)
    half = int(jnp.sum(scores > 0))  # as many are called malignant at a probability of 50%
    left.plot(100 * alarms[half], 100 * hits[half], "o", color=ORANGE)
    left.annotate("at 50%", (100 * alarms[half] + 5, 100 * hits[half] - 11), color=ORANGE)
    left.annotate(f"area {area:.4f}", (40, 93), color=BLUE)
    left.annotate("chance", (70, 64), color=GREY)
    left.set(xlabel="benign taken for malignant (%)", ylabel="malignant found (%)", aspect="equal")
    left.set_title("ROC of held-out tumours", loc="left", fontsize=11)

    probability = 100 * np.asarray(sigmoid(scores))
    groups = [probability[~np.asarray(targets)], probability[np.asarray(targets)]]
    right.hist(groups, bins=20, range=(0, 100), color=[BLUE, ORANGE], label=["benign", "malignant"])
    right.set_yscale("log")
    right.set(xlabel="predicted probability of malignancy (%)", ylabel="tumours (log scale)")
    right.set_title("What the model says of each kind", loc="left", fontsize=11)
    right.legend(frameon=False, loc="upper center")
    save(figure, file)


def plot_weights(train, held_out, penalties, weights, names, file):
    """Weights against the penalty, and a model of the two heaviest measurements as a map."""
    figure, (left, right) = axes(1, 2, size=(11, 4.4))
    heaviest = np.argsort(-np.abs(np.asarray(weights[len(penalties) // 2])))
    left.plot(penalties, weights, color=GREY, linewidth=0.7, alpha=0.6)
    for i, color in zip(heaviest[:2], (BLUE, ORANGE)):
        left.plot(penalties, weights[:, i], color=color, linewidth=2, label=names[i])
    left.set(xscale="log", xlabel="penalty", ylabel="weight (per standard deviation)")
    left.set_title("30 weights, 24 fits in one program", loc="left", fontsize=11)
    left.legend(frameon=False, fontsize=9)

    inputs, targets = train
    params = jnp.zeros(2), 0.0
    for _ in range(500):
        params = step(params, inputs[:, heaviest[:2]], targets, 1.0)
    points, kinds = np.asarray(held_out[0][:, heaviest[:2]]), np.asarray(held_out[1])
    x, y = (jnp.linspace(points[:, i].min() - 0.3, points[:, i].max() + 0.3, 100) for i in (0, 1))
    probability = nn.sigmoid(logits(params, jnp.stack(jnp.meshgrid(x, y), -1)))
    shades = right.contourf(x, y, 100 * probability, levels=20, cmap="RdBu_r", alpha=0.55)
    right.contour(x, y, 100 * probability, levels=[50], colors="black", linewidths=1.2)
    for kind, color, label in ((False, BLUE, "benign"), (True, ORANGE, "malignant")):
        style = {"s": 16, "edgecolor": FAINT, "linewidth": 0.5}
        right.scatter(*points[kinds == kind].T, color=color, label=label, **style)
    figure.colorbar(shades, ax=right, label="probability of malignancy (%)")
    right.set(xlabel=f"{names[heaviest[0]]} (std)", ylabel=f"{names[heaviest[1]]} (std)")
    right.set_title("A model of two of them, and held-out tumours", loc="left", fontsize=11)
    right.legend(frameon=False, fontsize=9, loc="upper left")
    save(figure, file)


def main():
    """The tour, then the tumours: train, report, draw; 0 when the goal is met."""
    args = arguments(__doc__, steps=500, penalty=1.0)
    tour()

    train, held_out, names = load_data(random.key(args.seed))
    params = jnp.zeros(train[0].shape[1]), 0.0
    bar = progress(args.steps)
    for i in bar:
        params = step(params, *train, args.penalty)
        if i % 50 == 0:
            bar.set_postfix(loss=f"{mean_loss(params, *train, args.penalty):.4f}", refresh=False)

    scores, malignant = logits(params, held_out[0]), held_out[1]
    accuracy = jnp.mean((scores > 0) == malignant)
    missed = jnp.sum((scores <= 0) & malignant)
    print(f"held-out accuracy {accuracy:.2%}, area under the ROC {roc(scores, malignant)[2]:.4f}")
    print(f"missed {missed} of {malignant.sum()} malignant tumours at a probability of 50%")

    penalties = jnp.logspace(-1, 4, 24)
    plot_predictions(params, *held_out, args.out / "logistic_predictions.png")
    weights = path(*train, penalties)
    plot_weights(train, held_out, penalties, weights, names, args.out / "logistic_weights.png")
    return verdict("logistic", accuracy > GOAL, f"held-out accuracy above {GOAL:.0%}")


if __name__ == "__main__":
    sys.exit(main())
