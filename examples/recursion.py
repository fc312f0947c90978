"""Recursion and data structures: a network that reads formulas, each of which is a tree.

A formula is a Python value: True, False, `("not", a)`, `("and", a, b)` and so on. The network
(Socher et al. 2011) calls itself: it turns each part into a vector, and parts of parts before that.
`grad` follows the calls, whatever they are; nothing is padded or put into a table. Nothing is
compiled but the layers of each operator, since no two formulas need be alike. Formulas of up
to three levels are learned, and deeper ones judged. Exits with status 1 if 99% or less of
the deeper formulas are read right, or if a derivative of one weight differs from a difference
quotient by more than 1%.

usage: python examples/recursion.py [--formulas 4000] [--seed 0] [--out examples/out]
"""

import sys

import numpy as np
from common import BLUE, ORANGE, arguments, axes, progress, save, verdict

import weft.numpy as jnp
from weft import grad, jit, nn, tree, value_and_grad

WIDTH, HIDDEN = 8, 24
OPERATORS = {
    "not": lambda a: not a,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
}
LEARNED_DEPTH, JUDGED_DEPTHS = 3, (4, 5, 6)
GOAL = 0.99


def make_formula(rng, depth):
    """A random formula with the given number of levels below the first."""
    if depth == 0:
        return bool(rng.integers(2))
    operator = rng.choice(list(OPERATORS))
    first = make_formula(rng, depth - 1)
    if operator == "not":
        return ("not", first)
    other = make_formula(rng, int(rng.integers(depth)))
    return (str(operator), first, other) if rng.integers(2) else (str(operator), other, first)


def evaluate(formula):
    """The truth value of a formula, by Python."""
    if isinstance(formula, bool):
        return formula
    operator, *parts = formula
    return OPERATORS[operator](*map(evaluate, parts))


def start(rng):
    """Small random weights: a vector for each constant, a layer for each operator, an answer."""

    def matrix(rows, columns):
        return jnp.asarray(rng.normal(size=(rows, columns)) / np.sqrt(rows), jnp.float32)

    def layer(parts):
        return matrix(parts * WIDTH, HIDDEN), jnp.zeros(HIDDEN), matrix(HIDDEN, WIDTH)

    layers = {name: layer(1 if name == "not" else 2) for name in OPERATORS}
    constants = {
        name: jnp.asarray(rng.normal(size=WIDTH), jnp.float32) for name in ("True", "False")
    }
    return {**layers, **constants, "answer": jnp.asarray(rng.normal(size=WIDTH), jnp.float32)}


@jit
def apply_layer(layer, *parts):
    """What an operator makes of the vectors of its parts."""
    inner, shift, outer = layer
    return jnp.tanh(jnp.tanh(jnp.concatenate(parts) @ inner + shift) @ outer)


def read(params, formula):
    """The vector of a formula: of its operator and of the vectors of its parts."""
    if isinstance(formula, bool):
        return params[str(formula)]
    operator, *parts = formula
    return apply_layer(params[operator], *(read(params, part) for part in parts))


def log_odds(params, formula):
    """The logarithm of the odds that a formula is true."""
    return 4 * params["answer"] @ read(params, formula)


def loss(params, formula, truth):
    """The negative log-likelihood of a formula's truth value."""
    return nn.softplus((-1 if truth else 1) * log_odds(params, formula))


@jit
def adam(state, slope, rate):
    """A step of Adam (Kingma and Ba 2015)."""
    params, first, second, count = state
    count = count + 1
    first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
    second = tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, slope)
    unbiased = rate * jnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    params = tree.map(
        lambda p, m, v: p - unbiased * m / (jnp.sqrt(v) + 1e-6), params, first, second
    )
    return params, first, second, count


def train(rng, formulas, batch=8, rate=0.02):
    """The weights after a pass over random formulas, and the losses."""
    params = start(rng)
    zeros = tree.map(jnp.zeros_like, params)
    state, losses = (params, zeros, zeros, jnp.zeros(())), []
    total = zeros
    for i in progress(formulas, "formula"):
        formula = make_formula(rng, int(rng.integers(1, LEARNED_DEPTH + 1)))
        value, slope = value_and_grad(loss)(state[0], formula, evaluate(formula))
        losses.append(float(value))
        total = tree.map(jnp.add, total, slope)
        if (i + 1) % batch == 0:
            slower = rate * min(1.0, 2 * (1 - i / formulas))
            state = adam(state, tree.map(lambda g: g / batch, total), slower)
            total = zeros
    return state[0], losses


def judge(params, rng, depth, count=200):
    """The share of random formulas of a depth that are read right."""
    formulas = [make_formula(rng, depth) for _ in range(count)]
    return np.mean([(float(log_odds(params, f)) > 0) == evaluate(f) for f in formulas])


def check_gradient(params, formula):
    """How far a derivative is from a difference quotient, relative to its size."""
    slope = grad(log_odds)(params, formula)["answer"][0]

    def moved(by):
        answer = params["answer"].at[0].add(by)
        return float(log_odds({**params, "answer": answer}, formula))

    quotient = (moved(0.1) - moved(-0.1)) / 0.2
    return abs(float(slope) - quotient) / max(abs(quotient), 1e-3)


def plot(losses, accuracies, file):
    """The loss, and the share read right by depth."""
    figure, (left, right) = axes(1, 2)
    smooth = np.convolve(losses, np.ones(50) / 50, "valid")
    left.semilogy(smooth, color=BLUE)
    left.set(xlabel="formula", title="Loss, mean of 50")
    depths = list(accuracies)
    right.bar(depths, [100 * accuracies[d] for d in depths], color=[
        BLUE if d <= LEARNED_DEPTH else ORANGE for d in depths
    ])  # fmt: skip
    right.set(
        xlabel="levels (orange: deeper than learned)", ylabel="read right (%)", ylim=(50, 101)
    )
    save(figure, file)


def main():
    args = arguments(__doc__, formulas=4000)
    rng = np.random.default_rng(args.seed)
    params, losses = train(rng, args.formulas)
    depths = (*range(1, LEARNED_DEPTH + 1), *JUDGED_DEPTHS)
    accuracies = {depth: judge(params, rng, depth) for depth in depths}
    example = make_formula(rng, 4)
    print(f"{example}: {evaluate(example)}, read as {float(log_odds(params, example)) > 0}")
    for depth, share in accuracies.items():
        print(f"{depth} levels: {share:.1%} read right")
    deeper = np.mean([accuracies[depth] for depth in JUDGED_DEPTHS])
    print(f"accuracy {deeper:.1%} on formulas deeper than those learned")
    plot(losses, accuracies, args.out / "recursion.png")
    reached = deeper > GOAL and check_gradient(params, example) < 0.01
    return verdict("recursion", reached, f"accuracy above {GOAL:.0%} on deeper formulas")


if __name__ == "__main__":
    sys.exit(main())
