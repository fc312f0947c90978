"""Gradients of attention that is written by operations, by the kernel: against NumPy in float64.

Tables hold ways to write a softmax, layouts, and ways to complete scores. Ways that are close to
attention, but are not, are left to other operations.
"""

import functools
import itertools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import config, grad, jit, lax, nn, value_and_grad, vjp, vmap
from weft.cpu.kernels import load_kernels

pytestmark = pytest.mark.skipif(bool(load_kernels()), reason="the kernels are not built")

B, H, T, S, D = 2, 3, 37, 43, 8
RNG = np.random.default_rng(0)
CAUSAL = np.arange(T)[:, None] >= np.arange(S)
HOLES = RNG.random((B, 1, T, S)) < 0.7
HOLES[0, 0, 5] = False  # a query that sees no key
BIAS = RNG.standard_normal((1, H, T, S)).astype(np.float32)
LOW = float(np.finfo(np.float32).min)


# --- ways to write a softmax ---


def shifted(s, stop=lambda x: x):
    return jnp.exp(s - stop(s.max(-1, keepdims=True)))


def divided(s):
    e = shifted(s)
    return e / e.sum(-1, keepdims=True)


def stopped(s):
    e = shifted(s, lax.stop_gradient)
    return e / jnp.sum(e, axis=-1)[..., None]


def inverted(s):
    e = shifted(s)
    return e * (1 / e.sum(-1, keepdims=True))


def doubled(s):
    e = 2 * shifted(s, lax.stop_gradient)
    return e / e.sum(-1, keepdims=True)


def by_logarithm(s):
    top = lax.stop_gradient(s.max(-1, keepdims=True))
    return jnp.exp(s - (top + jnp.log(jnp.exp(s - top).sum(-1, keepdims=True))))


SOFTMAX = {
    "nn": nn.softmax,
    "divided": divided,
    "stopped": stopped,
    "inverted": inverted,
    "doubled": doubled,
    "logarithm": by_logarithm,
    "log_softmax": lambda s: jnp.exp(nn.log_softmax(s)),
}


# --- layouts: from (batch, heads, rows, features), and attention of arrays of that layout ---


def by_matmul(weigh, q, k, v):
    return weigh(q @ jnp.swapaxes(k, -1, -2)) @ v


def by_einsum(weigh, q, k, v):
    return jnp.einsum("bhts,bshd->bthd", weigh(jnp.einsum("bthd,bshd->bhts", q, k)), v)


def by_heads(weigh, q, k, v):
    """Axes of heads that are split off: (batch, rows, heads * features)."""
    split = lambda x: x.reshape(*x.shape[:2], H, D).transpose(0, 2, 1, 3)
    y = by_matmul(weigh, *map(split, (q, k, v)))
    return y.transpose(0, 2, 1, 3).reshape(q.shape)


def by_loops(weigh, q, k, v):
    """(rows, heads, features) of each batch, and operations for one batch and head."""
    one = lambda q, k: q @ k.T
    scores = vmap(vmap(one, (1, 1)))(q, k)
    return vmap(vmap(jnp.matmul, (0, 1), 1))(weigh(scores), v)


turned = lambda x: np.swapaxes(x, 1, 2)
LAYOUTS = {
    "matmul": (lambda x: x, by_matmul),
    "einsum": (turned, by_einsum),
    "heads": (lambda x: turned(x).reshape(B, -1, H * D), by_heads),
    "loops": (turned, by_loops),
}


# --- ways to complete scores: a function of products and of further operands; these operands; and
# the same as scale, bias, mask and number ---


def fill(mask, number):
    return lambda s, *xs: jnp.where(xs[0] if xs else mask, s * 0.3, number)


SCORES = {
    "plain": (lambda s: s * 0.3, (), (0.3,)),
    "divided": (lambda s: s / jnp.float32(3), (), (1 / 3,)),
    "negative": (lambda s: -0.3 * s, (), (-0.3,)),
    "twice": (lambda s: 0.5 * (s / 2.0), (), (0.25,)),
    "by an operand": (lambda s, x: s / x, (np.float32(2),), (0.5,)),
    "by nothing": (lambda s, x: s * x, (np.float32(0),), (0,)),
    "causal": (fill(CAUSAL, -jnp.inf), (), (0.3, 0, CAUSAL, -np.inf)),
    "causal, large": (fill(CAUSAL, -1e9), (), (0.3, 0, CAUSAL, -1e9)),
    "causal, least": (fill(CAUSAL, LOW), (), (0.3, 0, CAUSAL, LOW)),
    "holes": (fill(None, -1e9), (HOLES,), (0.3, 0, HOLES, -1e9)),
    "holes, small": (fill(None, 0.5), (HOLES,), (0.3, 0, HOLES, 0.5)),
    "turned holes": (lambda s, m: jnp.where(~m, -1e9, s), (HOLES,), (1, 0, HOLES, -1e9)),
    "bias": (lambda s, b: s * 0.3 + b, (BIAS,), (0.3, BIAS)),
    "bias first": (lambda s, b: b + s, (BIAS[0, 0],), (1, BIAS[0, 0])),
    "bias of keys": (lambda s, b: s - b, (BIAS[0, 0, 0],), (1, -BIAS[0, 0, 0])),
    "added mask": (lambda s: s + np.where(CAUSAL, 0, -1e9), (), (1, np.where(CAUSAL, 0, -1e9))),
    "added infinity": (
        lambda s, b: s + b, (np.where(CAUSAL, 0, -np.inf).astype("f"),),
        (1, np.where(CAUSAL, 0, -np.inf)),
    ),
    "all": (
        lambda s, b, m: jnp.where(m, s * 0.3 + b, -1e9), (BIAS, HOLES), (0.3, BIAS, HOLES, -1e9)
    ),
}  # fmt: skip


def expect(q, k, v, ct, scale, bias=0, mask=np.True_, number=0.0):
    """The means, and cotangents of q, k and v, in float64."""
    q, k, v, ct = (x.astype(np.float64) for x in (q, k, v, ct))
    scores = np.where(mask, q @ np.swapaxes(k, -1, -2) * scale + bias, number)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    weights = powers / powers.sum(-1, keepdims=True)
    moves = ct @ np.swapaxes(v, -1, -2)
    moves = np.where(mask, weights * (moves - (weights * moves).sum(-1, keepdims=True)), 0) * scale
    turned = (np.swapaxes(x, -1, -2) for x in (moves, weights))
    return [weights @ v, moves @ k, next(turned) @ q, next(turned) @ ct]


def draw(rng):
    return [rng.standard_normal((B, H, n, D)).astype(np.float32) for n in (T, S, S, T)]


def calls(f, *args):
    return f.lower(*args).as_text().count('call_target_name = "weft_masked_attention"')


def drawn():
    """Every entry of each table once, and others at random."""
    tables = [*SOFTMAX], [*LAYOUTS], [*SCORES]
    firsts = [table[0] for table in tables]
    once = [
        (*firsts[:i], name, *firsts[i + 1 :]) for i, table in enumerate(tables) for name in table
    ]
    every = [*itertools.product(*tables)]
    chosen = np.random.default_rng(1).choice(len(every), 25, replace=False)
    return [*dict.fromkeys([*once, *(every[i] for i in chosen)])]


def build(softmax, layout, scores):
    """The attention of a row of the tables, its operands besides q, k and v, and its layout."""
    pack, attend = LAYOUTS[layout]
    complete, more, known = SCORES[scores]

    def run(q, k, v, *xs):
        return attend(lambda s: SOFTMAX[softmax](complete(s, *xs)), q, k, v)

    return run, more, known, pack


@pytest.mark.sample(one_in=3)
@pytest.mark.parametrize("names", drawn(), ids="-".join)
def test_means_and_cotangents(names, rng):
    f, more, known, pack = build(*names)
    args = draw(rng)

    def run(q, k, v, ct, *xs):
        y, pull = vjp(lambda *ys: f(*ys, *xs), q, k, v)
        return y, *pull(ct)

    given = [*map(pack, args), *more]
    assert calls(jit(run), *given) == 2
    got, want = jit(run)(*given), expect(*args, *known)
    with config.scope(native=False):
        plain = jit(run)(*given)
    for x, p, y in zip(got, plain, want, strict=True):
        # at the tests' level of optimization, XLA of jaxlib 0.12 makes some elements NaN and inf
        errors = np.abs(np.asarray(p, np.float64) - pack(y))
        least = 4 * errors[np.isfinite(errors)].max()
        np.testing.assert_allclose(x, pack(y), rtol=2e-5, atol=max(least, 2e-6))


@pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)], ids=str)
@pytest.mark.parametrize("wrap", [lambda f: f, weft.checkpoint], ids=["kept", "recomputed"])
def test_only_what_is_wanted(wrap, which, rng):
    q, k, v, ct = draw(rng)
    f, _, known, _ = build("divided", "matmul", "causal")
    g = jit(grad(lambda *xs: (jnp.sin(wrap(f)(*xs)) * ct).sum(), which))
    assert calls(g, q, k, v) >= 2
    y = expect(q, k, v, ct, *known)[0]
    want = expect(q, k, v, ct * np.cos(y), *known)[1:]
    for i, x in zip(which, g(q, k, v), strict=True):
        np.testing.assert_allclose(x, want[i], rtol=1e-4, atol=5e-6)


def by_groups(q, k, v):
    scores = jnp.einsum("btkgd,bskd->bktgs", q, k) * 0.3
    return jnp.einsum("bktgs,bskd->btkgd", nn.softmax(scores), v)


def by_function(q, k, v):
    heads = q.reshape(*q.shape[:2], -1, D)
    mask = np.ones((T, S), bool)  # with it, the function is written by operations
    y = nn.dot_product_attention(heads, k, v, mask=mask[None, None], scale=0.3)
    return y.reshape(q.shape)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("f", [by_groups, by_function], ids=lambda f: f.__name__)
def test_groups_of_queries_that_share_keys(f, groups, rng):
    sizes = (B, T, H, groups, D), (B, S, H, D), (B, S, H, D), (B, T, H, groups, D)
    args = [rng.standard_normal(size).astype(np.float32) for size in sizes]

    def run(q, k, v, ct):
        y, pull = vjp(f, q, k, v)
        return y, *pull(ct)

    assert calls(jit(run), *args) == 2
    of_queries = lambda x: turned(x.reshape(B, T, H * groups, D))
    of_keys = lambda x: turned(np.repeat(x, groups, 2))
    q, k, v, ct = args
    y, dq, dk, dv = expect(of_queries(q), of_keys(k), of_keys(v), of_queries(ct), 0.3)
    add = lambda x: turned(x).reshape(B, S, H, groups, D).sum(3)
    wanted = [*(turned(x).reshape(sizes[0]) for x in (y, dq)), add(dk), add(dv)]
    for x, want in zip(jit(run)(*args), wanted, strict=True):
        np.testing.assert_allclose(x, want, rtol=1e-4, atol=1e-5)


def test_keys_that_are_shared_in_one_product(rng):
    """Values that heads share, but keys that they do not, or the other way around."""
    q, k, v, ct = draw(rng)
    one = lambda q, k, v: jnp.einsum("bhts,bsd->bhtd", nn.softmax(q @ jnp.swapaxes(k, 2, 3)), v)
    two = lambda q, k, v: nn.softmax(jnp.einsum("bhtd,bsd->bhts", q, k)) @ v
    for f, args in ((one, (q, k, v[:, 0])), (two, (q, k[:, 0], v))):
        for which in ((0,), (1,), (2,), (0, 1, 2)):
            g = lambda q, k, v, f=f, which=which: grad(lambda *xs: (f(*xs) * ct).sum(), which)(
                q, k, v
            )
            with config.scope(native=False):
                want = jit(lambda *xs, g=g: g(*xs))(*args)
            for x, y in zip(jit(g)(*args), want, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_gradients_within_other_transformations(rng):
    """A map over heads, a loop over layers, and functions that are jitted one by one."""
    q, k, v, ct = draw(rng)
    f, _, known, _ = build("nn", "matmul", "causal")
    want = expect(q, k, v, ct, *known)
    loss = lambda q, k, v, ct: (f(q, k, v) * ct).sum()
    mapped = jit(vmap(vmap(grad(loss, (0, 1, 2))), 1, 1))
    assert calls(mapped, q, k, v, ct) == 2
    for x, y in zip(mapped(q, k, v, ct), want[1:], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=5e-6)
    inner = jit(lambda *xs: (jit(f)(*xs[:3]) * xs[3]).sum())
    both = jit(value_and_grad(inner, (0, 1, 2)))
    assert calls(both, q, k, v, ct) == 2
    value, grads = both(q, k, v, ct)
    np.testing.assert_allclose(value, (want[0] * ct).sum(), rtol=1e-4, atol=1e-4)
    for x, y in zip(grads, want[1:], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=5e-6)


def test_layers_one_after_another(rng):
    """Each layer has its own calls; the slope along a direction is that of differences."""
    x, move = rng.standard_normal((2, B, T, H * D)).astype(np.float32)
    ws = rng.standard_normal((3, 3, H * D, H * D)).astype(np.float32) / 8

    def loss(x):
        for w in ws:
            x = x + by_heads(lambda s: divided(s * 0.3), *(x @ part for part in w))
        return jnp.sin(x).sum()

    g = jit(grad(loss))
    assert calls(g, x) == 6
    got = (np.asarray(g(x), np.float64) * move).sum()
    with config.scope(enable_x64=True, native=False):
        up, down = (loss(x.astype(np.float64) + s * move) for s in (1e-6, -1e-6))
    np.testing.assert_allclose(got, (up - down) / 2e-6, rtol=1e-4)


# scores of operands that all have axes of 8: a number, a vector, an array of all pairs, a mask
ALIKE = {
    "times": lambda s, n, *_: s * n,
    "divided": lambda s, n, *_: s / n,
    "added": lambda s, n, v, a, m: s + a,
    "subtracted": lambda s, n, v, a, m: s - a,
    "of rows": lambda s, n, v, a, m: s + v[:, None],
    "of keys": lambda s, n, v, a, m: s + v,
    "of heads": lambda s, n, v, a, m: s + v[:, None, None],
    "masked": lambda s, n, v, a, m: jnp.where(m, s, -1e9),
    "others masked": lambda s, n, v, a, m: jnp.where(m, -1e9, s),
    "masked of heads": lambda s, n, v, a, m: jnp.where(m[:, None], s, -1e9),
}


def test_layers_that_have_operands_of_one_type(rng):
    """Layers of one program share programs only where they do the same with their operands."""
    q, k, v, ct, pairs = rng.standard_normal((5, 8, 8, 8, 8)).astype(np.float32)
    more = [np.float32(0.4), pairs[0, 0, 0], pairs, rng.random((8, 8)) < 0.7]
    turned = lambda weigh, q, k, v: by_matmul(weigh, jnp.swapaxes(q, 1, 2), k, v)
    rows = [(f, attend) for f in ALIKE.values() for attend in (by_matmul, turned, by_einsum)]

    def layer(f, attend, xs, more):
        one = lambda *xs: attend(lambda s: divided(f(s, *more)), *xs)
        y, pull = vjp(one, *xs)
        return y, *pull(ct)

    every = jit(lambda xs, more: [layer(*row, xs, more) for row in rows])
    assert calls(every, (q, k, v), more) == 2 * len(rows)
    found = every((q, k, v), more)
    with config.scope(native=False):
        wanted = every((q, k, v), more)
    for got, want in zip(found, wanted, strict=True):
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


def test_gradient_with_numbers_that_are_not_finite(rng):
    """Rows that have NaN without the kernel have it with the kernel."""
    q, k, v, ct = draw(rng)
    for scores, args in itertools.product(
        ("causal", "causal, large", "holes", "added infinity"),
        [(0, np.nan), (1, np.inf), (2, np.nan), (2, np.inf), (3, np.nan)],
    ):
        f, more, _, _ = build("nn", "matmul", scores)
        xs = [x.copy() for x in (q, k, v, ct)]
        xs[args[0]][0, 1, 30, 2] = args[1]

        def run(q, k, v, ct, *xs, f=f):
            y, pull = vjp(lambda *ys: f(*ys, *xs), q, k, v)
            return y, *pull(ct)

        got = jit(run)(*xs, *more)
        with config.scope(native=False):
            want = jit(lambda *xs, run=run: run(*xs))(*xs, *more)
        for x, y in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.isnan(x), np.isnan(y), f"{scores} {args}")


# --- what is close to attention ---


def weigh_wrong(change):
    """Attention whose gradient, or weights, are changed in one place."""

    def run(q, k, v, ct):
        s = q @ jnp.swapaxes(k, -1, -2) * 0.3
        e = shifted(s, lax.stop_gradient)
        p = e / e.sum(-1, keepdims=True)
        dp = ct @ jnp.swapaxes(v, -1, -2)
        ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * 0.3
        return change(q, k, v, ct, s, e, p, dp, ds)

    return run


CLOSE = {
    "no sum of the row": lambda q, k, v, ct, s, e, p, dp, ds: p * dp * 0.3 @ k,
    "another scale": lambda q, k, v, ct, s, e, p, dp, ds: 2 * ds @ k,
    "another sum": lambda q, k, v, ct, s, e, p, dp, ds: (
        p * (dp - (p * dp).sum(-2, keepdims=True)) * 0.3 @ k
    ),
    "a sum of squares": lambda q, k, v, ct, s, e, p, dp, ds: (
        p * (dp - (p * p * dp).sum(-1, keepdims=True)) * 0.3 @ k
    ),
    "weights of another sign": lambda q, k, v, ct, s, e, p, dp, ds: -p @ v,
    "weights squared": lambda q, k, v, ct, s, e, p, dp, ds: p * p @ v,
    "a sum that is not 0": lambda q, k, v, ct, s, e, p, dp, ds: (
        e / (e.sum(-1, keepdims=True) + 1e-3) @ v
    ),
    "weights that are a result": lambda q, k, v, ct, s, e, p, dp, ds: (p, p @ v, ds @ k),
    "cotangents that are a result": lambda q, k, v, ct, s, e, p, dp, ds: (ds, p @ v, ds @ k),
    "other keys": lambda q, k, v, ct, s, e, p, dp, ds: (p @ v, ds @ (k + 1)),
    "other queries": lambda q, k, v, ct, s, e, p, dp, ds: (
        p @ v, jnp.swapaxes(ds, -1, -2) @ (2 * q),
    ),
    "other values": lambda q, k, v, ct, s, e, p, dp, ds: (p @ (v + 1), ds @ k),
    "other cotangents": lambda q, k, v, ct, s, e, p, dp, ds: (
        p @ v, ds @ k, jnp.swapaxes(p, -1, -2) @ (ct + 1),
    ),
    "weights masked afterwards": lambda q, k, v, ct, s, e, p, dp, ds: (
        jnp.where(CAUSAL, p, 0) @ v, ds @ k,
    ),
    "cotangents masked alone": lambda q, k, v, ct, s, e, p, dp, ds: (
        p @ v, jnp.where(CAUSAL, ds, 0) @ k,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLOSE)
def test_left_to_other_operations(name, rng):
    args = draw(rng)
    run = weigh_wrong(CLOSE[name])
    f = jit(run)
    assert calls(f, *args) == 0
    with config.scope(enable_x64=True, native=False):
        want = run(*(x.astype(np.float64) for x in args))
    for x, y in zip(weft.tree.leaves(f(*args)), weft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=5e-5)


def test_written_gradient_is_found(rng):
    """The counterpart of the table above, by formulas and not by `grad`."""
    args = draw(rng)
    turn = lambda x: jnp.swapaxes(x, -1, -2)
    f = jit(
        weigh_wrong(
            lambda q, k, v, ct, s, e, p, dp, ds: (p @ v, ds @ k, turn(ds) @ q, turn(p) @ ct)
        )
    )
    assert calls(f, *args) == 2
    for x, y in zip(f(*args), expect(*args, 0.3), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=5e-6)


def test_operands_that_the_kernel_does_not_take(rng):
    """Values of other sizes where only their cotangent is wanted, float64, a mask of numbers."""
    q, k, v, ct = draw(rng)
    wide, wide_ct = (np.concatenate([x, x], -1) for x in (v, ct))
    attend = lambda q, k, v: nn.softmax(q @ jnp.swapaxes(k, -1, -2)) @ v
    f = jit(grad(lambda q, k, v, ct: (attend(q, k, v) * ct).sum(), 2))
    assert calls(f, q, k, wide, wide_ct) == 0
    assert calls(f, q, k, v, ct) == 2
    holes = np.broadcast_to(CAUSAL, (B, H, T, S)).astype(np.int32)
    choose = lambda q, k, v, m: (
        nn.softmax(lax.select_n(m, jnp.full(m.shape, -1e9), q @ jnp.swapaxes(k, -1, -2))) @ v
    )
    assert calls(jit(choose), q, k, v, holes) == 0
    assert calls(jit(choose), q, k, v, holes.astype(bool)) == 1
    with config.scope(enable_x64=True):
        assert calls(f, *(x.astype(np.float64) for x in (q, k, v, ct))) == 0


@pytest.mark.parametrize("also", ["bias", "scale", "second", "forward"])
def test_derivatives_that_stay(also, rng):
    """Derivatives that read weights: of the bias, of the scale, of second order, forward-mode."""
    q, k, v, ct = draw(rng)
    loss = lambda q, k, v, bias, scale: (
        nn.softmax(q @ jnp.swapaxes(k, -1, -2) * scale + bias) @ v * ct
    ).sum()
    args = q, k, v, BIAS, np.float32(0.3)
    first = grad(loss)
    f = {
        "bias": grad(loss, (0, 3)),
        "scale": grad(loss, (0, 4)),
        "second": grad(lambda *xs: (first(*xs) ** 2).sum()),
        "forward": lambda *xs: weft.jvp(functools.partial(loss, *xs[:0]), xs, xs)[1],
    }[also]
    assert calls(jit(f), *args) == 0
    assert calls(jit(first), *args) == 2
