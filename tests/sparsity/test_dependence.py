"""Patterns of programs against dense Jacobians: no entry is missed, and few are added."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.primitives.cases import all_cases
from tests.random_programs import draw_program
from tests.settings import ALL
from weft import config, lax
from weft.core.aval import typeof
from weft.sparsity.derivatives import find_pattern
from weft.transforms.jvp import jvp


def compare(fun, x):
    """The pattern of a function of one vector, and where its Jacobian is not zero."""
    pattern = weft.sparse_jacobian(fun).pattern(x).todense()
    dense = np.asarray(weft.jacrev(fun)(x)).reshape(pattern.shape)
    return pattern, dense != 0


def carry_index(x):
    step = lambda c, i: (c, x[i] ** 2)
    return lax.scan(step, 0.0, jnp.array([5, 2, 1]))[1]


def count_turns(x):
    return lax.fori_loop(0, 2, lambda i, v: v.at[1:].add(v[:-1] ** 2), x)


def fill_by_index(x):
    return lax.fori_loop(0, 6, lambda i, v: v.at[i].set(x[i] ** 2), jnp.zeros(6))


def run_reversed(x):
    return lax.scan(lambda c, v: (c * v, c + v), 1.0, x, reverse=True)[1]


@weft.custom_jvp
def pass_through(x):
    return jnp.round(x)


pass_through.defjvps(lambda t, y, x: t)


@weft.custom_vjp
def turned(x, y):
    return x[::-1] * y, y**2


turned.defvjp(
    lambda x, y: (turned(x, y), (x, y)),
    lambda kept, g: ((g[0] * kept[1])[::-1], g[0] * kept[0][::-1] + 2 * g[1] * kept[1]),
)


def largest(x, **window):
    return lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,), "VALID", **window)


# Functions of six numbers whose pattern is exactly where the Jacobian is not zero.
EXACT = {
    "elementwise": lambda x: jnp.sin(x) * 2,
    "differences": lambda x: x[1:] - x[:-1],
    "running sum": jnp.cumsum,
    "running sum, reversed": lambda x: lax.cumsum(x, reverse=True),
    "concatenation": lambda x: jnp.concatenate([x[:2], x[3:] ** 2]),
    "a window set": lambda x: x.at[1:4].set(x[0]),
    "scatter-add": lambda x: jnp.zeros(4).at[jnp.array([0, 1, 1, 2, 3, 3])].add(x),
    "scatter, twice at one place": lambda x: x.at[jnp.array([1, 1, 2])].set(x[3:]),
    "gather": lambda x: x[jnp.array([3, 1, 1, -1])],
    "mask": lambda x: jnp.where(jnp.arange(6) < 3, x, 0.0),
    "product with a known matrix": lambda x: jnp.diag(jnp.arange(6.0)) @ x,
    "convolution": lambda x: jnp.convolve(x, jnp.array([1.0, 0.0, 1.0]), "same"),
    "window sums": lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (2,), "VALID"),
    "scan": lambda x: lax.scan(lambda c, v: (c * v, c + v), 1.0, x)[1],
    "scan, reversed": run_reversed,
    "scan by index": carry_index,
    "loop of two turns": count_turns,
    "loop that fills": fill_by_index,
    "outer product": lambda x: jnp.outer(x, x),
    "zero derivative": lambda x: jnp.floor(x) + x[::-1],
    "roll": lambda x: jnp.roll(x, 2) * x,
    "segments": lambda x: weft.ops.segment_sum(x, jnp.array([0, 0, 1, 1, 2, 2]), 3),
    "map": lambda x: lax.map(lambda v: v**2, x),
    "vmap of a pair": lambda x: weft.vmap(jnp.prod)(x.reshape(3, 2)),
    "batched factorizations": lambda x: jnp.linalg.inv(x[:, None, None]),
    "checkpoint": weft.checkpoint(lambda x: jnp.cos(x[::-1])),
    "jit": weft.jit(lambda x: jnp.cos(x[::2])),
    "custom rule": pass_through,
    "reverse rule": lambda x: jnp.concatenate(turned(x[:3], x[3:])),
    "reverse rule, mapped": lambda x: weft.vmap(lambda v: turned(v, v)[0])(x.reshape(3, 2)),
    "reverse rule in a scan": lambda x: lax.scan(
        lambda c, v: (c, turned(v, v + 1)[0]), 0.0, x.reshape(2, 3)
    )[1],
    "fft of rows": lambda x: jnp.fft.fft(x.reshape(3, 2)).real,
    "gradient": weft.grad(lambda x: jnp.sum(x[1:] * x[:-1] ** 2)),
}
# Functions of six numbers whose pattern depends on values: it holds all that there may be.
WIDER = {
    "sort": jnp.sort,
    "maximum": jnp.max,
    "branches": lambda x: lax.cond(x[0] > 0, lambda v: v[:3], lambda v: v[3:], x),
    "unknown turns": lambda x: lax.while_loop(
        lambda v: v.sum() < 9, lambda v: v.at[1:].add(v[:-1]), x
    ),
    "unknown index": lambda x: x[jnp.argmax(x)],
    "kink": weft.nn.relu,
    "largest of windows": largest,
    "largest of windows, dilated": lambda x: largest(x, window_dilation=(2,)),
    "gradient of the largest": weft.grad(lambda x: jnp.sum(largest(x) ** 3)),
}
X = np.random.default_rng(0).normal(size=6).astype(np.float32)


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("name", EXACT)
def test_exact_patterns(name):
    pattern, dense = compare(EXACT[name], X)
    np.testing.assert_array_equal(pattern, dense)


def as_stack(x):
    """Three matrices of one element, each with its column."""
    return x[:3, None, None] + 3, x[3:, None, None]


# Functions of six numbers on stacks of matrices: several operands, or several results.
STACKS = {
    "solve": lambda x: jnp.linalg.solve(*as_stack(x)),
    "triangular solve": lambda x: weft.scipy.linalg.solve_triangular(*as_stack(x), lower=True),
    "lu": lambda x: lax.linalg.lu(as_stack(x)[0])[0],
    "slogdet": lambda x: jnp.linalg.slogdet(as_stack(x)[0])[1],
    "eigh": lambda x: jnp.linalg.eigvalsh(as_stack(x)[0]),
    "svd": lambda x: jnp.linalg.svd(as_stack(x)[0], compute_uv=False),
    "qr": lambda x: jnp.linalg.qr(as_stack(x)[0])[1],
    "product": lambda x: jnp.matmul(*as_stack(x)),
}


@pytest.mark.parametrize("name", STACKS)
def test_patterns_of_stacks_of_matrices(name):
    pattern, dense = compare(STACKS[name], X)
    np.testing.assert_array_equal(pattern, dense)


@pytest.mark.parametrize("name", WIDER)
def test_patterns_of_what_depends_on_values(name):
    pattern, dense = compare(WIDER[name], X)
    assert not np.any(dense & ~pattern)


@pytest.mark.parametrize(
    ("name", "count"), [("largest of windows", 10), ("gradient of the largest", 16)]
)
def test_windows_hold_only_neighbors(name, count):
    assert weft.sparse_jacobian(WIDER[name]).pattern(X).nnz == count


def test_the_callback_of_a_user_is_full():
    scale = weft.custom_jvp(lambda x: weft.pure_callback(lambda x: 2 * x, typeof(x), x))
    scale.defjvps(lambda t, y, x: weft.pure_callback(lambda t: 2 * np.asarray(t), typeof(t), t))
    assert weft.sparse_jacobian(scale).pattern(X).todense().all()


@pytest.mark.sample(one_in=96)
@pytest.mark.parametrize("case", all_cases(), ids=lambda c: c.id)
def test_no_primitive_depends_on_more(case):
    """Elements whose pattern has none of the columns that move have a tangent of zero."""
    if "f32" not in case.dtypes.split() or {"jvp", "jit"} & set(case.skip.split()):
        return
    xs = case.arrays(np.float32)
    moved = [m and x.dtype == np.float32 for x, m in zip(xs, case.moved(xs), strict=True)]
    if not any(moved):
        return
    merge = lambda given: [given.pop(0) if m else x for x, m in zip(xs, moved, strict=True)]
    keep = lambda outs: [y for y in outs if typeof(y).dtype == np.float32]
    flat = lambda *given: keep(case.apply(*merge(list(given))))
    flat.op, flat.fun = "test", case.apply
    primals = [x for x, m in zip(xs, moved, strict=True) if m]
    if not flat(*primals):
        return
    pattern, _ = find_pattern(flat, [typeof(x) for x in primals])
    rng = case.rng("columns")
    chosen = rng.random(pattern.shape[1]) < 0.3
    tangents, start = [], 0
    for x in primals:
        part = chosen[start : start + x.size].reshape(x.shape)
        tangents.append(np.where(part, rng.uniform(1, 2, x.shape), 0).astype(np.float32))
        start += x.size
    outs, dots = jvp(flat, primals, tangents)
    reached = pattern @ chosen
    found = [np.asarray(t) != 0 if hasattr(t, "shape") else np.zeros(y.shape, bool)
             for y, t in zip(outs, dots, strict=True)]  # fmt: skip
    found = np.concatenate([x.reshape(-1) for x in found])
    assert not np.any(found & ~reached)


@pytest.mark.parametrize("seed", range(2000 if ALL else 4))
def test_random_programs(seed):
    program, args = draw_program(seed)
    with config.scope(enable_x64=True):
        run = lambda *xs: [jnp.asarray(y) for y in program(jnp, *xs)]
        args = [*map(jnp.asarray, args)]
        pattern = weft.sparse_jacobian(run, (0, 1)).pattern(*args).todense()
        blocks = weft.jit(weft.jacfwd(run, (0, 1)))(*args)
        rows = [[np.reshape(b, (-1, x.size)) for b, x in zip(r, args, strict=True)] for r in blocks]
        assert not np.any((np.block(rows) != 0) & ~pattern)
