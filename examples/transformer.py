"""Train a transformer to write like Python's manual, one character at a time.

The layers are one function, run by `lax.scan` over parameters stacked along a first axis; `nn` has
the attention and the initializers, `experimental.optimizers` Adam with a schedule, and a jitted
`lax.scan` with `random.categorical` writes. After Vaswani et al. 2017, with norms before each part
and positions by rotation (Su et al. 2021). The text ships with Python (`pydoc_data.topics`, what
`help()` shows). The bar: a whole bit a character below a bigram model, on text held out.

usage: python examples/transformer.py [--steps 800] [--width 64] [--layers 2] [--heads 4]
       [--context 64] [--batch 16] [--rate 0.01] [--seed 0] [--out examples/out]
"""

import sys
import time
from pydoc_data.topics import topics

import numpy as np
from common import BLUE, GREEN, GREY, ORANGE, RED, arguments, axes, progress, save, verdict

import weft.numpy as jnp
from weft import jit, lax, nn, random, value_and_grad
from weft.experimental import optimizers

HELD_OUT = 0.1  # of the text
ORDERS = (1, 2, 3, 4)  # of the n-gram models to compare with
BETTER = 1.0  # bits a character below the bigram model
WARM_UP = 0.05  # of the steps
MAX_NORM = 1.0  # of the gradients together
WRITTEN = 400  # characters
TEMPERATURE = 0.8


def load_text():
    """The manual's paragraphs, each once: (characters by number, the alphabet)."""
    paragraphs = "\n\n".join(topics[name] for name in sorted(topics)).split("\n\n")
    text = "\n\n".join(dict.fromkeys(paragraphs))  # what is held out is nowhere else
    alphabet, numbers = np.unique(list(text), return_inverse=True)
    return numbers.astype(np.int32), alphabet


# --- the baseline ---------------------------------------------------------------------------------


def ngram_bits(train_text, held_out, alphabet_size):
    """Bits a character of `held_out` for each of `ORDERS`, smoothed by Witten & Bell (1991).

    A context seen n times, before k distinct characters, trusts its counts by n / (n + k), and the
    context that is one shorter for the rest.
    """

    def code(text, length):  # the strings of this length as one number each
        starts = len(text) - length + 1
        strings = np.zeros(starts, np.int64)
        for i in range(length):
            strings = strings * alphabet_size + text[i : i + starts]
        return strings

    def looked_up(keys, values, wanted):
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, values[at], 0)

    bits, probability = [], np.full(len(held_out), 1 / alphabet_size)
    for order in ORDERS:
        strings, times = np.unique(code(train_text, order), return_counts=True)
        contexts, first = np.unique(strings // alphabet_size, return_index=True)
        seen, distinct = np.add.reduceat(times, first), np.diff([*first, len(strings)])
        wanted = code(held_out, order)
        context = wanted // alphabet_size
        n, k = looked_up(contexts, seen, context), looked_up(contexts, distinct, context)
        shorter = probability[-len(wanted) :]
        count = looked_up(strings, times, wanted)
        probability = np.where(n > 0, (count + k * shorter) / np.maximum(n + k, 1), shorter)
        bits.append(-np.log2(probability).mean())
    return np.array(bits)


# --- the network ----------------------------------------------------------------------------------


def init_params(key, alphabet_size, width, layers):
    """The characters' features, and every layer's weights stacked along a first axis."""
    keys = iter(random.split(key, 5))
    weights = nn.initializers.lecun_normal(batch_axis=0)
    small = nn.initializers.variance_scaling(1 / (2 * layers), "fan_in", "normal", batch_axis=0)
    return {
        "characters": nn.initializers.normal(width**-0.5)(next(keys), (alphabet_size, width)),
        "layers": {
            "norms": jnp.ones((layers, 2, width)),
            "qkv": weights(next(keys), (layers, width, 3 * width)),
            "out": small(next(keys), (layers, width, width)),
            "up": weights(next(keys), (layers, width, 4 * width)),
            "down": small(next(keys), (layers, 4 * width, width)),
        },
        "norm": jnp.ones(width),
    }


def rms_norm(scale, x):
    """Features of mean square 1, then scaled (Zhang & Sennrich 2019)."""
    return scale * x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)


def rotated(x):
    """Pairs of features turned by angles that grow with position; (batch, position, head, feature).

    So a query and a key meet at an angle that depends on their distance alone (Su et al. 2021).
    """
    pairs = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None, None] * 100.0 ** -(jnp.arange(pairs) / pairs)
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def layer(params, x, heads):
    """Attention to earlier positions, then two dense layers; x is (batch, position, feature)."""
    qkv = rms_norm(params["norms"][0], x) @ params["qkv"]
    q, k, v = jnp.split(qkv.reshape(*x.shape[:2], 3 * heads, -1), 3, axis=2)
    seen = nn.dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
    x = x + seen.reshape(x.shape) @ params["out"]
    return x + nn.gelu(rms_norm(params["norms"][1], x) @ params["up"]) @ params["down"]


def logits(params, text, heads):
    """Scores of each next character, (batch, position, alphabet), for text (batch, position)."""
    x = params["characters"][text]
    x, _ = lax.scan(lambda x, weights: (layer(weights, x, heads), None), x, params["layers"])
    return rms_norm(params["norm"], x) @ params["characters"].T


def bits_per_character(params, windows, heads):
    """The cost of each character of `windows` (batch, position) but the first."""
    log_p = nn.log_softmax(logits(params, windows[:, :-1], heads))
    right = jnp.take_along_axis(log_p, windows[:, 1:, None], axis=-1)
    return -jnp.mean(right) / jnp.log(2)


def warm_cosine(peak, steps):
    """A rate that grows to its peak over the first steps, then falls to 0 as a cosine."""

    def rate(i):
        done = i / steps
        falling = 0.5 * (1 + jnp.cos(jnp.pi * (done - WARM_UP) / (1 - WARM_UP)))
        return peak * jnp.where(done < WARM_UP, (i + 1) / (steps * WARM_UP), falling)

    return rate


def make_step(text, args):
    """Adam's init and get_params, and `step(i, key, state)`, which draws its own windows."""
    init, update, get_params = optimizers.adam(warm_cosine(args.rate, args.steps), b2=0.98)
    text, inside = jnp.asarray(text), jnp.arange(args.context + 1)

    @jit
    def step(i, key, state):
        starts = random.randint(
            random.fold_in(key, i), (args.batch, 1), 0, len(text) - args.context
        )
        params = get_params(state)
        bits, grads = value_and_grad(bits_per_character)(params, text[starts + inside], args.heads)
        return bits, update(i, optimizers.clip_grads(grads, MAX_NORM), state)

    return init, step, get_params


def windows_of(text, context):
    """Text cut into windows that share an end, so that each character is guessed once."""
    count = (len(text) - 1) // context
    return text[np.arange(count)[:, None] * context + np.arange(context + 1)]


def train(key, text, held_out, alphabet_size, args):
    """The parameters, bits of each step, (step, bits of some held-out text), bits of all of it."""
    key_params, key_steps = random.split(key)
    init, step, get_params = make_step(text, args)
    state = init(init_params(key_params, alphabet_size, args.width, args.layers))
    evaluate = jit(bits_per_character, static_argnums=2)
    few = held_out[:: max(1, len(held_out) // args.batch)]  # all of it only at the end
    bits, checks = [], []
    bar = progress(args.steps)
    for i in bar:
        value, state = step(i, key_steps, state)
        bits.append(value)
        if i % max(1, args.steps // 20) == 0 or i + 1 == args.steps:
            checks.append((i + 1, float(evaluate(get_params(state), few, args.heads))))
            bar.set_postfix(bits=f"{float(value):.2f}", held_out=f"{checks[-1][1]:.2f}")
    params = get_params(state)
    parts = np.array_split(held_out, max(1, len(held_out) // args.batch))
    final = [float(evaluate(params, part, args.heads)) for part in parts]
    whole = np.average(final, weights=[len(part) for part in parts])
    return params, np.array(bits), np.array(checks), whole


def write(key, params, prompt, heads, count=WRITTEN):
    """`count` characters that go on from `prompt`, (context,)."""

    def one(window, key):
        scores = logits(params, window[None], heads)[0, -1]
        character = random.categorical(key, scores / TEMPERATURE).astype(window.dtype)
        return jnp.append(window[1:], character), character

    return lax.scan(one, prompt, random.split(key, count))[1]


write = jit(write, static_argnums=(3, 4))


def draw(bits, checks, whole, ngrams, path):
    """Bits a character by step, with the n-gram models as lines."""
    figure, ax = axes(size=(7.5, 4.2))
    steps = np.arange(1, len(bits) + 1)
    ax.plot(steps, bits, color=BLUE, alpha=0.35, linewidth=1, label="each training batch")
    ax.plot(
        *checks.T, color=ORANGE, linewidth=2, marker="o", markersize=4, label="held-out, a part"
    )
    for order, value in zip(ORDERS, ngrams, strict=True):
        ax.axhline(value, color=GREY, linewidth=1, linestyle="--")
        name = {1: "unigram", 2: "bigram", 3: "trigram"}.get(order, f"{order}-gram")
        ax.text(1.01, value, f"{name} {value:.2f}", color=GREY, fontsize=9,
                va="center", transform=ax.get_yaxis_transform())  # fmt: skip
    ax.plot(len(bits), whole, "*", color=RED, markersize=11, label=f"held-out, all: {whole:.2f}")
    goal = ngrams[1] - BETTER
    ax.axhline(goal, color=GREEN, linewidth=1)
    ax.text(0.01, goal, f"goal {goal:.2f}", color=GREEN, fontsize=9, va="top",
            transform=ax.get_yaxis_transform())  # fmt: skip
    ax.set(xlabel="step", ylabel="bits per character", title="A transformer learns Python's manual")
    ax.legend(frameon=False)
    save(figure, path)


def main():
    """Count, train, write, draw; 0 when the bigram model is beaten by the bar."""
    args = arguments(
        __doc__, steps=800, width=64, layers=2, heads=4, context=64, batch=16, rate=0.01
    )
    if args.width % (2 * args.heads):
        sys.exit(f"--width must be a multiple of twice --heads; got {args.width}, {args.heads}")
    text, alphabet = load_text()
    cut = int(len(text) * (1 - HELD_OUT))
    held_out = windows_of(text[cut:], args.context)
    ngrams = ngram_bits(text[:cut], text[cut:], len(alphabet))
    print(f"{cut} characters to train on, {held_out[:, 1:].size} held out, {len(alphabet)} kinds")

    start = time.perf_counter()
    key_train, key_write = random.split(random.key(args.seed))
    params, bits, checks, whole = train(key_train, text[:cut], held_out, len(alphabet), args)
    print(f"trained in {time.perf_counter() - start:.1f} s, compiling included")

    written = write(key_write, params, jnp.asarray(held_out[0, 1:]), args.heads)
    print(f"it writes:\n{'-' * 80}\n{''.join(alphabet[np.asarray(written)])}\n{'-' * 80}")
    draw(bits, checks, whole, ngrams, args.out / "transformer.png")
    print(f"held-out bits per character {whole:.3f}, bigram model {ngrams[1]:.3f}")
    reached = whole < ngrams[1] - BETTER
    return verdict("transformer", reached, f"{BETTER:g} bit a character below the bigram model")


if __name__ == "__main__":
    sys.exit(main())
