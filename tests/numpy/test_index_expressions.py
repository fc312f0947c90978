"""Random index expressions against NumPy: read and written, now, under jit, grad and vmap.

Each case is a few dozen expressions in one program; `--all` runs thousands of them.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.index_expressions import (
    random_expression,
    read_filled,
    repeats,
    write_clamped,
    write_dropped,
)

CASES = 30
OPS = ["set", "add", "subtract", "multiply", "divide", "min", "max", "power"]


@pytest.fixture(autouse=True)
def widths(seed):
    """Every third case has 64-bit types."""
    with weft.config.scope(enable_x64=seed % 3 == 0):
        yield


def make_array(rng, shape):
    return rng.uniform(0.5, 2, shape).astype(np.float32)


def random_values(rng, e):
    """Return a number, or an array of the shape of the elements read, or of its last axis."""
    shape = np.zeros(e.shape)[e.clamp()].shape
    kind = 0 if repeats(e) else rng.integers(3)
    if kind == 0:
        return float(np.float32(rng.uniform(0.5, 2)))
    return make_array(rng, shape if kind == 1 else shape[-1:])


def check(found, wanted, expressions):
    for got, want, e in zip(found, wanted, expressions, strict=True):
        assert got.shape == want.shape, (str(e), got.shape, want.shape)
        np.testing.assert_allclose(got, want, rtol=2e-5, err_msg=str(e))


def run_all(fun, expressions, *operands):
    """Return the results of a function of (array, index, operands) for all expressions."""
    arrays = [e.arrays for e in expressions]
    rng = np.random.default_rng(len(expressions))
    xs = [make_array(rng, e.shape) for e in expressions]

    def program(xs, arrays):
        rows = zip(xs, expressions, arrays, *operands, strict=True)
        return [fun(x, e.fill(a), *rest) for x, e, a, *rest in rows]

    return xs, weft.jit(program)(xs, arrays)


@pytest.mark.sample(one_in=30)
@pytest.mark.parametrize("seed", range(CASES))
def test_reading_under_jit(seed):
    rng = np.random.default_rng(seed)
    expressions = [random_expression(rng, reach=seed % 2 * 3) for _ in range(50)]
    xs, found = run_all(lambda x, i: x[i], expressions)
    check(found, [x[e.clamp()] for x, e in zip(xs, expressions, strict=True)], expressions)


@pytest.mark.sample(one_in=30)
@pytest.mark.parametrize("seed", range(CASES))
def test_reading_with_a_mode_under_jit(seed):
    rng = np.random.default_rng(100 + seed)
    expressions = [random_expression(rng, reach=3) for _ in range(40)]
    modes = ["fill", "clip", "fill"]
    modes = [modes[rng.integers(3)] for _ in expressions]

    def get(x, i, mode):
        return x.at[i].get(mode=mode, **({"fill_value": -7} if mode == "fill" else {}))

    xs, found = run_all(get, expressions, modes)
    rows = zip(xs, expressions, modes, strict=True)
    wanted = [read_filled(x, e, -7) if m == "fill" else x[e.clamp()] for x, e, m in rows]
    check(found, wanted, expressions)


@pytest.mark.sample(one_in=30)
@pytest.mark.parametrize("seed", range(CASES))
def test_writing_under_jit(seed):
    rng = np.random.default_rng(200 + seed)
    expressions = [random_expression(rng, reach=seed % 2 * 2) for _ in range(40)]
    values = [random_values(rng, e) for e in expressions]
    ops = [OPS[rng.integers(len(OPS))] for _ in expressions]
    modes = [[None, "drop", "clip", "fill"][rng.integers(4)] for _ in expressions]

    def put(x, i, op, v, mode):
        return getattr(x.at[i], op)(v, mode=mode)

    xs, found = run_all(put, expressions, ops, values, modes)
    rows = zip(xs, expressions, ops, values, modes, strict=True)
    wanted = [(write_clamped if m == "clip" else write_dropped)(*row) for *row, m in rows]
    check(found, wanted, expressions)


@pytest.mark.sample(one_in=60)
@pytest.mark.parametrize("seed", range(CASES))
def test_reading_and_writing_now(seed):
    rng = np.random.default_rng(300 + seed)
    expressions = [random_expression(rng, reach=seed % 2 * 2) for _ in range(15)]
    for n, e in enumerate(expressions):
        x, arrays = make_array(rng, e.shape), map(jnp.array, e.arrays)
        op, values = OPS[rng.integers(len(OPS))], random_values(rng, e)
        index = e.fill(arrays)
        for _ in range(1 + 2 * (n % 5 == 0)):  # the first call, and hot ones
            check([jnp.array(x)[index]], [x[e.clamp()]], [e])
        after = getattr(jnp.array(x).at[index], op)(values)
        check([after], [write_dropped(x, e, op, values)], [e])


@pytest.mark.sample(one_in=30)
@pytest.mark.parametrize("seed", range(CASES))
def test_gradients(seed):
    """Gradients of sum(w * x[index]) in x, and of sum(w * x.at[index].add(y)), and set, in both."""
    rng = np.random.default_rng(400 + seed)
    expressions = [random_expression(rng) for _ in range(20)]
    shapes = [np.zeros(e.shape)[e.clamp()].shape for e in expressions]
    ys = [make_array(rng, shape) for shape in shapes]
    ws = [make_array(rng, e.shape) for e in expressions]
    once = [not repeats(e) for e in expressions]

    def derive(x, i, y, w, replaces):
        read = weft.grad(lambda x: jnp.sum(y * x[i]))(x)
        put = lambda x, y: jnp.sum(w * (x.at[i].set(y) if replaces else x.at[i].add(y)))
        return read, *weft.grad(put, (0, 1))(x, y)

    xs, found = run_all(derive, expressions, ys, ws, once)
    for x, e, y, w, replaces, (read, of_x, of_y) in zip(
        xs, expressions, ys, ws, once, found, strict=True
    ):
        check([read], [write_clamped(np.zeros_like(x), e, "add", y)], [e])
        of_new = read_filled(w, e, 0)
        check([of_y], [of_new], [e])
        check([of_x], [write_dropped(w, e, "set", 0) if replaces else w], [e])


@pytest.mark.sample(one_in=30)
@pytest.mark.parametrize("seed", range(CASES))
def test_vmap(seed):
    """Over the array, over the arrays in the index, and over both."""
    rng = np.random.default_rng(500 + seed)
    expressions = [random_expression(rng, reach=2, masks=False) for _ in range(20)]
    values = [float(np.float32(rng.uniform(0.5, 2))) for _ in expressions]
    spans = [(0, None), (None, 0), (0, 0)]
    spans = [spans[rng.integers(3)] for _ in expressions]
    ops = [OPS[rng.integers(len(OPS))] for _ in expressions]

    def both(x, e, arrays, v, op, axes):
        if not arrays:
            axes = (0, None)
        change = lambda x, arrays: (x[e.fill(arrays)], getattr(x.at[e.fill(arrays)], op)(v))
        xs = jnp.stack([x, x + 1]) if axes[0] == 0 else x
        arrays = [jnp.stack([a, a]) for a in arrays] if axes[1] == 0 else arrays
        return weft.vmap(change, axes)(xs, arrays)

    arrays = [e.arrays for e in expressions]
    xs = [make_array(rng, e.shape) for e in expressions]
    program = lambda xs, arrays: [
        both(*row) for row in zip(xs, expressions, arrays, values, ops, spans, strict=True)
    ]
    found = weft.jit(program)(xs, arrays)
    for x, e, v, op, axes, outs in zip(xs, expressions, values, ops, spans, found, strict=True):
        for k in range(2):
            y = x + k if axes[0] == 0 or not e.arrays else x
            wanted = [y[e.clamp()], write_dropped(y, e, op, v)]
            check([out[k] for out in outs], wanted, [e, e])
