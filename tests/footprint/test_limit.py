"""`jit(f, memory=...)`: programs that need more run within the limit, by XLA's own figure."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax, nn
from weft.footprint.estimate import Measure
from weft.footprint.limit import parse_memory
from weft.passes import run_passes
from weft.passes.inline import inline_calls


def arrays(*shapes):
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=s).astype(np.float32)) for s in shapes]


def count_bytes(compiled):
    found = compiled.memory_analysis()
    sizes = found.argument_size_in_bytes, found.output_size_in_bytes, found.temp_size_in_bytes
    return sum(sizes) - found.alias_size_in_bytes


def kernel_product(x, v):
    return jnp.exp(-((x[:, None] - x) ** 2).sum(-1)) @ v


def attend(q, k, v):
    scores = q @ k.T
    bias = jnp.where(jnp.tril(jnp.ones(scores.shape, bool)), 0, -jnp.inf)  # not a kernel's form
    return nn.softmax(scores + bias) @ v


def deep_loss(ws, x):
    for w in ws:
        x = jnp.tanh(x @ w)
    return (x**2).mean()


def clipped_gradient(w, x, y):
    def loss(w, x, y):
        return (jnp.tanh(x @ w).sum() - y) ** 2

    g = weft.vmap(weft.grad(loss), (None, 0, 0))(w, x, y)
    return (g / jnp.maximum(jnp.sqrt((g**2).sum((1, 2))), 1.0)[:, None, None]).sum(0)


def recurrent_loss(w, b, x):
    def step(h, row):
        h = jnp.tanh(h @ w + row + b)
        return h, h

    return (lax.scan(step, jnp.zeros(x.shape[1:]), x)[1] ** 2).mean()


def chaotic_loss(w, x):
    def step(x, _):
        y = jnp.tanh(w @ x)
        z = jnp.sin(3 * y)
        return x + 0.1 * jnp.cos(z) + y * z, None

    return (lax.scan(step, x, None, length=100)[0] ** 2).sum()


def layers(ws, x):
    def layer(x, w):
        q, k, v = jnp.split(x @ w, 3, -1)
        return x + nn.softmax(q @ k.T) @ v, None

    return lax.scan(layer, x, ws)[0]


def hessian(w, x, y):
    return weft.hessian(lambda w: jnp.log1p(jnp.exp(-y * (x @ w))).mean())(w)


def forces(x, m):
    d = x - x[:, None]
    return (d * (m / ((d**2).sum(-1) + 0.01) ** 1.5)[..., None]).sum(1)


def extrema(x):
    d = jnp.abs(x[:, None] - x)
    return d.max(), d.min(1), (d > 2).any(0), jnp.argmax(d, 1)


# A function, its arguments, and the limit as a part of the memory without one.
PROGRAMS = {
    "kernel": (kernel_product, arrays((256, 3), (256,)), 0.2),
    "distances": (lambda x: jnp.sqrt(((x[:, None] - x) ** 2).sum(-1) + 1e-3).sum(1),
                  arrays((255, 3)), 0.2),
    "attention": (attend, arrays(*[(256, 16)] * 3), 0.3),
    "deep": (weft.grad(deep_loss), (arrays(*[(16, 16)] * 6), *arrays((512, 16))), 0.3),
    "clipped": (clipped_gradient, arrays((16, 32), (128, 16), (128,)), 0.3),
    "recurrent": (weft.grad(recurrent_loss, (0, 1)), arrays((8, 8), (8,), (16, 128, 8)), 0.4),
    "chaotic": (weft.grad(chaotic_loss, (0, 1)), arrays((16, 16), (16,)), 0.8),
    "layers": (layers, arrays((3, 16, 48), (272, 16)), 0.5),
    "histogram": (lambda x: nn.one_hot((abs(x) * 60).astype(int), 256).sum(0), arrays((1001,)),
                  0.1),
    "products": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b).sum(0),
                 arrays((64, 16, 16), (64, 16, 16)), 0.8),
    "forces": (forces, arrays((200, 3), (200,)), 0.2),
    "hessian": (hessian, arrays((8,), (1024, 8), (1024,)), 0.8),
    "extrema": (extrema, arrays((256,)), 0.3),
    "checkpoint": (weft.grad(weft.checkpoint(deep_loss)),
                   (arrays(*[(16, 16)] * 6), *arrays((512, 16))), 0.4),
    "half": (lambda x: jnp.exp(-(x @ x.T).astype(jnp.bfloat16)).sum(0), arrays((256, 8)),
             0.3),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_fit(name):
    fun, args, part = PROGRAMS[name]
    plain = weft.jit(fun).lower(*args).compile()
    without = count_bytes(plain)
    limit = int(part * without)
    traced = []

    def counted(*args):
        traced.append(1)
        return fun(*args)

    limited = weft.jit(counted, memory=limit)
    compiled = limited.lower(*args).compile()
    assert count_bytes(compiled) <= limit
    assert limited.plan(*args).steps
    found, want = limited(*args), plain(*args)
    for got, expected in zip(weft.tree.leaves(found), weft.tree.leaves(want), strict=True):
        assert (got.shape, got.dtype, got.weak_type) == (
            expected.shape, expected.dtype, expected.weak_type
        )  # fmt: skip
        scale = abs(np.asarray(expected, np.float64)).max()
        error = abs(np.asarray(got, np.float64) - np.asarray(expected, np.float64)).max()
        assert error <= (1e-2 if got.dtype == jnp.bfloat16 else 5e-5) * scale
    assert weft.tree.all(weft.tree.map(lambda a, b: (a == b).all(), limited(*args), found))
    assert traced == [1]
    flat = inline_calls(run_passes(weft.jit(fun).trace(*args)._program.jaxpr), True)
    assert 0.5 < Measure().estimate(flat).bytes / without < 2.2


FUNCTIONS = {
    "one": lambda x: jnp.sin(x[:, None] * x).sum(1),
    "two": lambda x: jnp.exp(jnp.cos(x[:, None] - x)).sum(1),
    "gradient": weft.grad(lambda x: (jnp.tanh(x[:, None] * x).sum(1) ** 2).sum()),
    "mapped": weft.vmap(lambda a, b: jnp.sinh(a * b).sum(), (0, None)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_are_not_fused(name):
    """The estimate counts on XLA to fuse them, where a kernel or a loop of their own runs."""
    fun = FUNCTIONS[name]
    args = arrays((500,), (500,))[: 1 + (name == "mapped")]
    plain = weft.jit(fun).lower(*args).compile()
    limited = weft.jit(fun, memory=100_000)
    assert count_bytes(plain) >= 500**2 * 4 and count_bytes(limited.lower(*args).compile()) <= 1e5
    np.testing.assert_allclose(limited(*args), plain(*args), rtol=2e-4, atol=1e-4)


X, V = arrays((256, 3), (256,))
LIMITED = weft.jit(kernel_product, memory="60KB")


@pytest.mark.parametrize(
    "given, bytes",
    [
        ("2GB", 2 * 10**9),
        ("512MiB", 512 * 2**20),
        (" 1.5 kb ", 1500),
        (".5KiB", 512),
        ("7B", 7),
        (9, 9),
    ],
)
def test_sizes(given, bytes):
    assert parse_memory("jit", given) == bytes


@pytest.mark.parametrize("given", ["2", "GB", "-1GB", "1XB", "2 GB more", "", 0, -3, True, 1.5])
def test_sizes_that_are_none(given):
    with pytest.raises(ValueError, match="^jit: memory must be a positive number of bytes, .* got"):
        weft.jit(kernel_product, memory=given)


def test_a_program_that_fits_is_left_as_it_is():
    limited = weft.jit(kernel_product, memory="1GB")
    assert limited.lower(X, V).as_text() == weft.jit(kernel_product).lower(X, V).as_text()
    assert limited.plan(X, V).steps == []
    assert weft.jit(kernel_product).lower(X, V).compile().memory_plan() is None


def test_the_plan_says_what_is_done():
    plan = LIMITED.plan(X, V)
    assert plan.used <= plan.limit == 60_000 and plan.before > plan.limit >= plan.after
    assert "slices along axis 0 of f32[256,256] made by `" in str(plan)
    assert "test_limit.py" in str(plan)


def test_an_error_says_the_least_and_where_it_is():
    with pytest.raises(ValueError) as caught:
        weft.jit(kernel_product, memory="4KB")(X, V)
    text = str(caught.value)
    assert text.startswith("jit: kernel_product must run within memory=4,000 bytes; got ")
    assert "the least that was found; with " in text
    assert "Arguments have 4,096 bytes, results 1,024." in text
    assert "f32[256,3] of 3,072 bytes, argument `x` of kernel_product at " in text
    least = int(text.split("memory=")[-1].rstrip("."))
    assert weft.jit(kernel_product, memory=least)(X, V).shape == (256,)


def test_arguments_that_could_be_donated_are_named():
    with pytest.raises(ValueError, match="Hint: donate_argnums, as 4,096 bytes of results"):
        weft.jit(lambda x: x * 2, memory=5000)(jnp.ones(1024))
    x = jnp.ones(1024)
    plan = weft.jit(lambda x: x * 2, memory=10_000).plan(x)
    assert plan.donatable == 4096
    assert str(plan).endswith("donate_argnums would save up to 4,096 bytes")
    assert weft.jit(lambda x: x * 2, memory=5000, donate_argnums=0).plan(x).donatable == 0
    assert weft.jit(lambda x: x * 2, memory=5000, donate_argnums=0)(x)[0] == 2
    assert x.is_deleted()


def test_programs_with_side_effects_are_not_changed():
    def printing(x, v):
        weft.debug.callback(lambda: None)
        return kernel_product(x, v)

    with pytest.raises(ValueError, match="programs with side effects are not changed"):
        weft.jit(printing, memory="60KB")(X, V)


def test_programs_over_a_mesh_are_refused():
    whole = weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.P())
    with pytest.raises(ValueError, match="^jit: memory must be the limit of a program for one dev"):
        weft.jit(kernel_product, memory="60KB", in_shardings=whole)(X, V)


def test_the_outermost_limit_counts():
    """A function under a transformation is a plain jitted one."""
    want = kernel_product(X, V)
    close = lambda x, y: np.testing.assert_allclose(x, y, 1e-4)
    close(weft.jit(lambda x, v: LIMITED(x, v), memory="1GB")(X, V), want)
    close(weft.vmap(LIMITED, (None, 0))(X, V[None])[0], want)
    slope = weft.grad(lambda x: LIMITED(x, V).sum())
    limited = weft.jit(slope, memory="200KB")
    assert limited.plan(X).used <= 200_000
    np.testing.assert_allclose(limited(X), slope(X), 1e-3, 1e-4)


def test_beside_other_options():
    named = weft.jit(lambda n, x, v: n * kernel_product(x, v), static_argnums=0, memory="60KB")
    want = np.asarray(kernel_product(X, V))
    np.testing.assert_allclose(named(2, X, V), 2 * want, 1e-4)
    sized = weft.jit(kernel_product, sizes="(n, _), (n,)", memory="70KB")
    np.testing.assert_allclose(sized(X, V), want, 1e-4)
    assert sized.lower(X, V).compile().memory_plan().steps
    closed = weft.jit(lambda x: kernel_product(x, V), memory="60KB")
    np.testing.assert_allclose(closed(X), want, 1e-4)
    with weft.disable_jit():
        np.testing.assert_allclose(LIMITED(X, V), want, 1e-4)


def rank_rows(x):
    """Three chains of operations that have nothing in common but the argument."""
    return [jnp.sort(y, 1)[:, 3].sum() for y in (x[:, None] * x, x[:, None] + x, x[:, None] - x)]


def solve_many(scales):
    solve = lambda s: jnp.linalg.solve(3 * jnp.eye(20) + s, jnp.ones(20))
    return weft.vmap(solve)(scales).sum()


# Programs whose largest arrays are made by one kind of operation, or by several chains.
KINDS = {
    "several chains": rank_rows,
    "extrema": lambda x: ((x[:, None] - x).max(), (x[:, None] * x).min(1).sum()),
    "transforms of rows": lambda x: jnp.abs(jnp.fft.rfft(x[:, None] * x)).max(),
    "median": lambda x: jnp.median(x[:, None] * x, axis=1).sum(),
    "partition": lambda x: jnp.partition(x[:, None] * x, 7, axis=1)[:, 3].sum(),
    "systems": solve_many,
    "deviations": lambda x: jnp.var(x[:, None] * x),
    "softmax of all": lambda x: (nn.softmax(x[:, None] * x, axis=(0, 1)) ** 2).sum(),
}


@pytest.mark.sample(one_in=3)
@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_operations(name):
    (x,) = arrays((512,))
    limited = weft.jit(KINDS[name], memory="300KB")
    plan = limited.plan(x)
    assert plan.steps and plan.used <= 300_000
    for a, b in zip(weft.tree.leaves(limited(x)), weft.tree.leaves(KINDS[name](x)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_an_estimate_that_is_far_off_is_not_cut_further():
    """XLA stores the terms of a long sum. The plan slices them, and not the scans of the slices."""
    fun = lambda x: sum(jnp.sin(x[:, None] * k + x).sum(1) for k in range(6))
    plan = weft.jit(fun, memory="500KB").plan(weft.ShapeDtypeStruct((1024,), np.float32))
    assert plan.used <= 500_000
    assert not any("in scan" in step for step in plan.steps)
