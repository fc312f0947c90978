"""Small functions with sizes that vary: padded programs, whose results must not change.

A program is a function, the texts of the shapes of its arguments, and initial shapes. Sizes are
named n and m; other sizes are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import weft
import weft.numpy as jnp
from weft import lax, nn, random
from weft.scipy import signal


class Program(NamedTuple):
    fun: Callable
    shapes: tuple[str, ...]
    kinds: str = "f"  # of each argument: f float, i small integers, b bool

    def arrays(self, rng: np.random.Generator, **sizes: int) -> list[np.ndarray]:
        found = []
        for k, text in enumerate(self.shapes):
            shape = eval(f"({text},)", {}, sizes)
            kind = self.kinds[k % len(self.kinds)]
            if kind == "f":
                found.append(rng.normal(size=shape).astype(np.float32))
            elif kind == "b":
                found.append(rng.integers(0, 2, shape).astype(bool))
            else:
                found.append(rng.integers(-4, 9, shape).astype(np.int32))
        return found


def decay(x: Any, **how: Any) -> Any:
    return lax.scan(lambda c, a: (c * 0.5 + a, c), jnp.zeros(x.shape[1:]), x, **how)


def affine(f: Any, g: Any) -> tuple:
    """The affine map that does f and then g; a map is its factor and what it adds."""
    return f[0] * g[0], g[0] * f[1] + g[1]


def positive(x: Any) -> Any:
    return x @ x.T + 3 * jnp.eye(x.shape[0])


MATRIX, VECTOR = ("n, 3",), ("n",)
PROGRAMS = {
    "elementwise": Program(lambda x: jnp.sin(x) * 2 + jnp.exp(-x), MATRIX),
    "sum": Program(lambda x: (x.sum(0), x.sum(), (x > 0).all(), (x > 2).any(0)), MATRIX),
    "product": Program(lambda x: x.prod(0), MATRIX),
    "moments": Program(lambda x: (x.mean(0), x.var(), x.std(1)), MATRIX),
    "extrema": Program(lambda x: (x.max(), x.min(0), jnp.argmax(x, 0), jnp.argmin(x, 1)), MATRIX),
    "nan": Program(lambda x: (jnp.nanmean(jnp.log(x), 0), jnp.nanmax(jnp.log(x))), MATRIX),
    "softmax": Program(lambda x: (nn.softmax(x, 0), nn.logsumexp(x, 0), nn.softmax(x)), MATRIX),
    "products": Program(lambda x: (x.T @ x, x @ x.T, jnp.einsum("ni,nj,nk->ijk", x, x, x)), MATRIX),
    "two sizes": Program(lambda x, y: (x @ y.T).sum(1), ("n, 3", "m, 3")),
    "outer": Program(lambda x, y: jnp.tril(jnp.outer(x, y)), ("n", "m")),
    "concatenate": Program(
        lambda x, y: (jnp.concatenate([x, y, x[:1]]), jnp.concatenate([y, x]).sum()), ("n", "m")
    ),
    "stack": Program(lambda x: jnp.stack([x, 2 * x]).reshape(-1, 3).mean(0), MATRIX),
    "reverse": Program(lambda x: (x[::-1], jnp.flip(x, 0)[:1], x[::2].sum()), MATRIX),
    "last": Program(lambda x: (x[-1], x[1:].sum(0), x[:-1].max(initial=0)), MATRIX),
    "roll": Program(lambda x: jnp.roll(x, 2), VECTOR),
    "flatten": Program(lambda x: (x.reshape(-1) * 2, x.T.reshape(-1)), MATRIX),
    "flatten two": Program(lambda x, y: jnp.outer(x, y).reshape(-1)[::-1], ("n", "m")),
    "repeat": Program(lambda x: (jnp.repeat(x, 2, 0), jnp.tile(x, (2, 1))), MATRIX),
    "pad": Program(lambda x: (jnp.pad(x, ((1, 2), (0, 0))), jnp.pad(x, 1).sum()), MATRIX),
    "sort": Program(lambda x: (jnp.sort(x, 0), jnp.argsort(x, 0), jnp.sort(-x, 0)[0]), MATRIX),
    "median": Program(lambda x: (jnp.median(x, 0), jnp.quantile(x, 0.3)), MATRIX),
    "top k": Program(lambda x: lax.top_k(x, 1), VECTOR),
    "running": Program(
        lambda x: (jnp.cumsum(x, 0), lax.cumsum(x, 0, reverse=True), lax.cummax(x, 0, reverse=True),
                   lax.cumlogsumexp(x, 0, reverse=True), jnp.cumprod(x, 0)),
        MATRIX,
    ),
    "take": Program(
        lambda x, i: (x[i % x.shape[0]], x[i % x.shape[0] - x.shape[0]]), ("n, 3", "m"), "fi"
    ),
    "take fixed": Program(lambda i: jnp.arange(10.0)[i], VECTOR, "i"),
    "take clipped": Program(
        lambda x, i: jnp.asarray(x).at[i].get(mode="clip"), ("n, 3", "m"), "fi"
    ),
    "along": Program(lambda x: jnp.take_along_axis(x, jnp.argsort(x, 0), 0), MATRIX),
    "diagonal": Program(
        lambda x, y: (jnp.diagonal(jnp.outer(x, x)), jnp.trace(jnp.outer(x, y), 1)), ("n", "m")
    ),
    "spectrum": Program(
        lambda x: (jnp.abs(jnp.fft.rfft(x, axis=0)), jnp.fft.ifft(x, axis=0).real), MATRIX
    ),
    "segments": Program(lambda x, i: weft.ops.segment_sum(x, i, 4), ("n, 3", "n"), "fi"),
    "segments of n": Program(
        lambda x, i, y: weft.ops.segment_max(x, i, y.shape[0]), ("m", "m", "n"), "fif"
    ),
    "at add": Program(lambda x, i: jnp.asarray(x).at[i].add(1.0), ("n, 3", "m"), "fi"),
    "at set": Program(lambda x: jnp.asarray(x).at[-1].set(5.0), MATRIX),
    "at max": Program(lambda x, i, y: jnp.asarray(x).at[i].max(y), ("n", "m", "m"), "fif"),
    "where": Program(lambda x, b: jnp.where(b, x, -x).sum(), ("n", "n"), "fb"),
    "nonzero": Program(lambda x: jnp.nonzero(x > 0, size=4, fill_value=-1)[0], VECTOR),
    "sizes": Program(lambda x: x * x.shape[0] + jnp.arange(x.shape[0]) / (x.shape[0] + 1), VECTOR),
    "searchsorted": Program(
        lambda x, y: (jnp.searchsorted(jnp.sort(x), y), x - y.sum()), ("n", "m")
    ),
    "filled": Program(lambda x, i: jnp.asarray(x).at[i].get(mode="fill"), ("n", "m"), "fi"),
    "dynamic slice": Program(
        lambda x, i: (lax.dynamic_slice(x, (i[0],), (1,)),
                      lax.dynamic_update_slice(x, x[:1] * 3, (i[-1],))),
        ("n", "m"), "fi",
    ),
    "interp": Program(lambda x: jnp.interp(x, jnp.arange(4.0), jnp.arange(4.0) ** 2), VECTOR),
    "histogram": Program(lambda x: jnp.histogram(x, bins=4, range=(-2.0, 2.0))[0], VECTOR),
    "convolve": Program(lambda x: jnp.convolve(x, jnp.array([1.0, 2, 3])), VECTOR),
    "conv": Program(
        lambda x: lax.conv_general_dilated(
            jnp.asarray(x)[None, None], jnp.ones((2, 1, 3)), (2,), ((1, 1),)
        ),
        VECTOR,
    ),
    "pool": Program(
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,), (2,), ((1, 1),)), VECTOR
    ),
    "convolve by FFT": Program(
        lambda x, y: (signal.fftconvolve(x, y), signal.fftconvolve(x, y, "same")), ("n", "m")
    ),
    "norm": Program(lambda x: x / jnp.linalg.norm(x, axis=0), MATRIX),
    "cholesky": Program(lambda x: jnp.linalg.cholesky(positive(x)), MATRIX),
    "solve": Program(lambda x: jnp.linalg.solve(positive(x), x), MATRIX),
    "slogdet": Program(lambda x: jnp.linalg.slogdet(positive(x))[1], MATRIX),
    "eigvalsh": Program(lambda x: jnp.linalg.eigvalsh(positive(x)), MATRIX),
    "batch of matrices": Program(
        lambda x: jnp.linalg.inv(jnp.eye(3) * 4 + x[:, :, None] * x[:, None]), MATRIX
    ),
    "attention": Program(
        lambda x: nn.dot_product_attention(
            x[None, :, None], x[None, :, None], x[None, :, None], is_causal=True
        ),
        MATRIX,
    ),
    "scan": Program(decay, MATRIX),
    "scan back": Program(lambda x: decay(x, reverse=True), MATRIX),
    "scan over a fixed axis": Program(lambda x: decay(x.T), MATRIX),
    "associative scan": Program(
        lambda x: (lax.associative_scan(jnp.add, x), lax.associative_scan(affine, (x, x * x))[1],
                   lax.associative_scan(jnp.multiply, x.T, reverse=True, axis=1)),
        MATRIX,
    ),
    "map": Program(lambda x: lax.map(lambda r: r.sum() * r, x), MATRIX),
    "vmap": Program(lambda x: weft.vmap(lambda r: jnp.sort(r) * r.sum())(x), MATRIX),
    "fori": Program(
        lambda x: lax.fori_loop(
            0, x.shape[0], lambda i, c: c + jnp.asarray(x)[i] * i, jnp.zeros(3)
        ),
        MATRIX,
    ),
    "while": Program(
        lambda x: lax.while_loop(lambda c: c.sum() > -10, lambda c: c - 1, jnp.asarray(x)), MATRIX
    ),
    "while of each": Program(
        lambda x: weft.vmap(
            lambda a: lax.while_loop(lambda c: c > 0.1, lambda c: c / 2, a)
        )(x),
        VECTOR,
    ),
    "cond": Program(lambda x: lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: y[::-1], x), MATRIX),
    "checkpoint": Program(lambda x: weft.checkpoint(lambda y: jnp.sin(y).sum())(x), VECTOR),
    "jit": Program(lambda x: weft.jit(lambda y: y - y.mean())(x), VECTOR),
    "custom": Program(lambda x: (nn.relu(x).sum(), nn.silu(x).mean(), jnp.linalg.norm(x)), VECTOR),
    "random": Program(
        lambda x: x + random.normal(random.split(random.key(0))[0], (3,)), MATRIX
    ),
}  # fmt: skip
