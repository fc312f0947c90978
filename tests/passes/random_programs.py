"""Random programs for the tests of passes, made of what passes look for, and values that tell."""

import numpy as np

import weft
from weft import lax
from weft import numpy as jnp
from weft.core.jaxpr import Jaxpr
from weft.core.stage import close_jaxpr

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e38, 2e-38, 3.5]


def write_program(seed: int, size: int = 14, depth: int = 2):
    """A function of two matrices that applies random operations, some of them redundant."""
    rng = np.random.default_rng(seed)

    def call(xs, depth):
        inner = rng.integers(1 << 30)
        return weft.jit(lambda *ys: run(np.random.default_rng(inner), list(ys), 4, depth))(*xs[-2:])

    def loop(xs, depth):
        a, b = xs[-2:]
        inner = rng.integers(1 << 30)

        def body(c, x):
            (y,) = run(np.random.default_rng(inner), [c, a, b], 5, depth)
            return y, run(np.random.default_rng(inner + 1), [a, b], 2, 0)[0]

        return [*lax.scan(body, a, None, length=2)][:1]

    def turn(xs, depth):
        a, b = xs[-2:]
        inner = rng.integers(1 << 30)
        step = lambda c: (c[0] + 1, *run(np.random.default_rng(inner), [c[1], a, b], 4, depth))
        return [lax.while_loop(lambda c: c[0] < 2, step, (0, b))[1]]

    def branch(xs, depth):
        a, b = xs[-2:]
        return [lax.cond(a[0, 0] > 0, lambda: lax.neg(lax.neg(a)) * 1, lambda: b + a)]

    plain = [
        lambda r, a, b: a + b,
        lambda r, a, b: a * b,
        lambda r, a, b: a - b,
        lambda r, a, b: jnp.where(a > b, a, b),
        lambda r, a, b: jnp.maximum(a, a),
        lambda r, a, b: lax.neg(lax.neg(a)),
        lambda r, a, b: lax.mul(a, np.float32(r.choice([0, 1, 2]))),
        lambda r, a, b: lax.add(a, np.float32(r.choice([0.0, -0.0, 1.0]))),
        lambda r, a, b: lax.sub(a, np.float32(r.choice([0.0, -0.0]))),
        lambda r, a, b: lax.div(a, np.float32(1)),
        lambda r, a, b: lax.transpose(lax.transpose(a, (1, 0)), (1, 0)),
        lambda r, a, b: a.T + b,
        lambda r, a, b: a.reshape(9).reshape(3, 3),
        lambda r, a, b: lax.rev(lax.rev(a, (0,)), (0,)),
        lambda r, a, b: lax.select(a > 0, b, b),
        lambda r, a, b: a.astype(jnp.bfloat16).astype(jnp.float32),
        lambda r, a, b: lax.broadcast_in_dim(a[0][None], (2, 1, 3), (1, 2))[0] * b,
        lambda r, a, b: a * (lax.sqrt(np.float32(2)) * lax.neg(np.float32(r.choice([1, 3])))),
        lambda r, a, b: (a > 0).astype(jnp.int32).astype(jnp.float32) + a,
        lambda r, a, b: lax.integer_pow(a, int(r.integers(1, 3))),
    ]

    def run(r, xs, size, depth):
        for _ in range(size):
            if depth and r.random() < 0.2:
                xs += r.choice([call, loop, turn, branch])(xs, depth - 1)
            else:
                a, b = (xs[i] for i in r.integers(0, len(xs), 2))
                xs.append(plain[r.integers(len(plain))](r, a, b))
        return xs[-1:]

    return lambda x, y: run(rng, [x, y], size, depth)


def make_program(seed: int) -> tuple[Jaxpr, list]:
    """A closed jaxpr, and arguments for it."""
    rng = np.random.default_rng(seed)
    args = [jnp.array(rng.choice(SPECIAL, (3, 3)), jnp.float32) for _ in range(2)]
    found = weft.make_jaxpr(write_program(seed))(*args)
    return close_jaxpr(found.jaxpr), [*found.consts, *args]
