"""Random programs, written once for NumPy and for weft: the generator of test_random_programs.py.

A program is a list of steps. A step applies an operation to values that earlier steps have made.
Values stay near one, so that float64 tells right results from wrong ones.
"""

import random

import numpy as np

import weft
import weft.numpy as jnp
from weft import lax

SIZES = (1, 2, 3, 4)


def is_weft(xp):
    return xp is jnp


def repeat(xp, body, x, count, kind):
    """`body` applied `count` times: by a loop of each kind, or in Python."""
    if not is_weft(xp):
        for _ in range(count):
            x = body(xp, x)
        return x
    if kind == "scan":
        return lax.scan(lambda c, _: (body(xp, c), None), x, None, length=count)[0]
    if kind == "fori":
        return lax.fori_loop(0, count, lambda _, c: body(xp, c), x)
    return weft.jit(lambda x: lax.scan(lambda c, _: (body(xp, c), None), x, None, count)[0])(x)


def branch(xp, x, yes, no):
    """One of two functions, by the sign of the sum."""
    if is_weft(xp):
        return lax.cond(xp.sum(x) > 0, lambda x: yes(xp, x), lambda x: no(xp, x), x)
    return (yes if np.sum(x) > 0 else no)(xp, x)


def wrap(how, xp, fun, x):
    """A function under a transformation that changes no value."""
    if not is_weft(xp):
        return fun(xp, x)
    inner = lambda x: fun(xp, x)
    if how == "jit":
        return weft.jit(inner)(x)
    if how == "checkpoint":
        return weft.checkpoint(inner)(x)
    rule = weft.custom_jvp(inner)
    rule.defjvp(lambda primals, tangents: weft.jvp(inner, primals, tangents))
    return rule(x)


def scan_rows(xp, x):
    """Running products with a carry, along the first axis."""
    if is_weft(xp):
        return lax.scan(lambda c, row: ((y := xp.tanh(c * 0.5 + row)), y), x[0], x)[1]
    rows, c = [], x[0]
    for row in x:
        c = np.tanh(c * 0.5 + row)
        rows.append(c)
    return np.stack(rows)


SMOOTH = (
    lambda xp, x: xp.sin(x),
    lambda xp, x: xp.tanh(2 * x) + 0.1 * x,
    lambda xp, x: xp.exp(-x * x),
    lambda xp, x: xp.sqrt(x * x + 0.5),
    lambda xp, x: xp.log1p(x * x),
    lambda xp, x: 1 / (1 + x**2),
    lambda xp, x: xp.arctan2(x, 1.5 + x * x),
    lambda xp, x: xp.where(x > 0.1, x, 0.3 * x),
    lambda xp, x: xp.maximum(x, -0.2) * xp.abs(x),
    lambda xp, x: xp.clip(x, -0.7, 0.9) + x / 3,
    lambda xp, x: xp.cos(x).astype(xp.float32).astype(xp.float64) * 0 + xp.cos(x),
)


def shift(xp, x):
    """A symmetric matrix whose eigenvalues are apart."""
    return x.T @ x / x.shape[0] + xp.diag(xp.arange(1.0, x.shape[1] + 1))


# Results of factorizations that do not depend on choices of signs and of order.
FACTORS = (
    lambda xp, x: xp.linalg.svd(shift(xp, x), compute_uv=False),
    lambda xp, x: xp.linalg.eigvalsh(shift(xp, x)),
    lambda xp, x: xp.sort(xp.real(xp.linalg.eigvals(shift(xp, x)))),
    lambda xp, x: xp.sort(xp.real(xp.linalg.eigvals(shift(xp, x) + 1j * x.T @ x))),
    lambda xp, x: xp.abs(xp.linalg.eigh(shift(xp, x))[1]),
    lambda xp, x: xp.abs(xp.linalg.qr(shift(xp, x))[1]),
    lambda xp, x: xp.linalg.slogdet(shift(xp, x))[1],
    lambda xp, x: xp.linalg.pinv(shift(xp, x)),
    lambda xp, x: xp.real(xp.linalg.inv(shift(xp, x) + 1j * x.T @ x)),
    lambda xp, x: xp.abs(xp.fft.fft(x + 2, axis=0)) / x.shape[0],
    lambda xp, x: xp.real(xp.fft.irfft(xp.fft.rfft(x) * (1 + 0.5j), n=x.shape[1])),
)


def draw_unary(rng, x, factors=False):
    """Draw an operation on one array; the shape of `x` decides."""
    found = [rng.choice(SMOOTH)]
    if x.ndim:
        axis = rng.randrange(-x.ndim, x.ndim)
        size = x.shape[axis]
        keep = rng.random() < 0.5
        shift, at = rng.randrange(-4, 5), rng.randrange(size)
        index = np.array([rng.randrange(-size, size) for _ in range(3)])
        found += [
            lambda xp, x: xp.sum(x, axis, keepdims=keep) / size,
            lambda xp, x: xp.max(x, axis, keepdims=keep),
            lambda xp, x: xp.mean(x, axis, keepdims=keep) + xp.var(x, axis, keepdims=keep),
            lambda xp, x: xp.prod(x + 0.5, axis, keepdims=keep) / 2**size,
            lambda xp, x: xp.cumsum(x, axis) / size,
            lambda xp, x: xp.cumprod(xp.cos(x), axis),
            lambda xp, x: xp.sort(x, axis),
            lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis), axis),
            lambda xp, x: xp.flip(x, axis),
            lambda xp, x: xp.roll(x, shift, axis),
            lambda xp, x: xp.take(x, index, axis),
            lambda xp, x: xp.take(x, at, axis),
            lambda xp, x: xp.moveaxis(x, axis, 0),
            lambda xp, x: xp.expand_dims(x, axis),
            lambda xp, x: xp.repeat(x, 2, axis),
            lambda xp, x: xp.concatenate([x, x[::-1]], 0),
            lambda xp, x: xp.reshape(x, -1),
            lambda xp, x: xp.transpose(x),
            lambda xp, x: x[..., ::-1][..., : max(1, x.shape[-1] - 1)],
            lambda xp, x: xp.linalg.norm(x + 1.5, axis=axis, keepdims=keep),
            lambda xp, x: xp.median(x, axis, keepdims=keep),
            lambda xp, x: xp.pad(x, [(1, 0)] * x.ndim),
            scan_rows,
        ]
    if x.ndim == 2:
        found += [
            lambda xp, x: x @ x.T / x.shape[1],
            lambda xp, x: xp.linalg.inv(x.T @ x + 2 * xp.eye(x.shape[1])),
            lambda xp, x: xp.linalg.solve(x.T @ x + 2 * xp.eye(x.shape[1]), x.T),
            lambda xp, x: xp.linalg.cholesky(x @ x.T + xp.eye(x.shape[0])),
            lambda xp, x: xp.einsum("ij,ik->jk", x, x) / x.shape[0],
        ]
        found += FACTORS * factors * 3
    if rng.random() < 0.2:
        body, other = rng.choice(SMOOTH), rng.choice(SMOOTH)
        count, kind = rng.randrange(4), rng.choice(["scan", "fori", "jit"])
        how = rng.choice(["jit", "checkpoint", "custom_jvp"])
        found = [
            lambda xp, x: repeat(xp, body, x, count, kind),
            lambda xp, x: branch(xp, x, body, other),
            lambda xp, x: wrap(how, xp, body, x),
        ]
    return rng.choice(found)


def draw_binary(rng, x, y):
    """An operation on two arrays, if there is one for their shapes."""
    found = []
    try:
        np.broadcast_shapes(x.shape, y.shape)
        found += [
            lambda xp, x, y: x + y,
            lambda xp, x, y: x * y,
            lambda xp, x, y: x / (1.5 + y * y),
            lambda xp, x, y: xp.where(x > y, x, y * 0.5),
            lambda xp, x, y: xp.hypot(x + 0.3, y),
            lambda xp, x, y: xp.logaddexp(x, y),
        ]
    except ValueError:
        pass
    if found and x.ndim and y.ndim and x.shape[-1] == y.shape[-1]:
        found.append(lambda xp, x, y: xp.einsum("...i,...i->...", x, y) / x.shape[-1])
    if x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0]:
        found += [lambda xp, x, y: x @ y / x.shape[1]] * 3
    if x.ndim <= 1 and y.ndim <= 1:
        found.append(lambda xp, x, y: xp.outer(x, y))
    return rng.choice(found) if found else None


def draw_program(seed, factors=False):
    """A function `program(xp, x, y)` of two arrays, and the arrays.

    `factors` lets it have factorizations and Fourier transforms.
    """
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    draw = lambda: numbers.uniform(-1, 1, [rng.choice(SIZES) for _ in range(rng.randrange(4))])
    given = [draw(), draw()]
    values, steps = list(given), []
    while len(steps) < rng.randrange(3, 10):
        i, j = rng.randrange(len(values)), rng.randrange(len(values))
        fun = draw_binary(rng, values[i], values[j]) if rng.random() < 0.4 else None
        places = (i, j)
        if fun is None:
            fun, places = draw_unary(rng, values[i], factors), (i,)
        made = np.asarray(fun(np, *[values[k] for k in places]))
        if made.size > 200 or made.ndim > 4 or not np.all(np.abs(made) < 50):
            continue
        values.append(made)
        steps.append((fun, places))

    def program(xp, *args):
        found = list(args)
        for fun, places in steps:
            found.append(fun(xp, *[found[k] for k in places]))
        return found[-1], sum(xp.sum(xp.sin(v)) for v in found[2:])

    return program, given
