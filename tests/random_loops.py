"""Random loops that write into arrays of their carry, once for NumPy and for weft.

The generator of tests/cpu/test_random_loops.py. A step of a loop is a list of statements, each of
which replaces one array.
"""

import functools
import random

import numpy as np

import weft.numpy as jnp
from weft import lax

SHAPES = ((64,), (2, 2), (6, 7), (17, 33), (33, 18), (24, 3, 20))
WRITES = {
    "set": lambda xp, x, y: y,
    "add": lambda xp, x, y: x + y,
    "multiply": lambda xp, x, y: x * y,
    "max": lambda xp, x, y: xp.maximum(x, y),
}
COMBINATIONS = (
    lambda xp, x, y: x * xp.cos(y),
    lambda xp, x, y: xp.tanh(x + y),
    lambda xp, x, y: x - 0.5 * y,
    lambda xp, x, y: xp.where(x > y, x, 0.5 * y),
)


def write(xp, x, places, y, how):
    """`x` with elements replaced. Factors are at most one, so that no value overflows."""
    y = xp.cos(y) if how == "multiply" else y
    if xp is jnp:
        return getattr(x.at[places], how)(y)
    x = x.copy()
    x[places] = WRITES[how](xp, x[places], y)
    return x


def draw_range(rng, size, length=None):
    """A slice of an axis: most of it, a single index, or any of a length."""
    if length is not None:
        start = rng.randrange(size - length + 1)
        return slice(start, start + length)
    start = rng.randrange(min(3, size))
    if rng.random() < 0.15:
        return slice(start, start + 1)
    return slice(start, size - rng.randrange(min(3, size - start)))


def draw_window(rng, shape, target, draw_name):
    """A window of known places, computed from windows of that shape, some of them backwards.

    Edges of the array are written before and after, as boundary conditions are.
    """
    how, combine = rng.choice([*WRITES]), rng.choice(COMBINATIONS)
    places = tuple(draw_range(rng, size) for size in shape)
    sources = []
    edges = [draw_edge(rng, shape, target) for _ in range(rng.randrange(3))]
    first_edges = rng.randrange(len(edges) + 1)
    for _ in range(rng.randrange(1, 4)):
        lengths = [s.stop - s.start for s in places]
        window = tuple(map(functools.partial(draw_range, rng), shape, lengths))
        sources.append((draw_name(), window, rng.choice([1, 1, 1, -1])))

    def run(xp, i, arrays):
        for edge in edges[:first_edges]:
            edge(xp, i, arrays)
        first, *others = [arrays[name][window][::turn] for name, window, turn in sources]
        value = functools.reduce(functools.partial(combine, xp), others, first)
        arrays[target] = write(xp, arrays[target], places, 0.5 * value + 0.125, how)
        for edge in edges[first_edges:]:
            edge(xp, i, arrays)

    return run


def draw_edge(rng, shape, target):
    """The first or last places along an axis, computed from those at any index, or a number."""
    before = (slice(None),) * rng.randrange(len(shape))
    size = shape[len(before)]
    places, source = (*before, rng.choice([0, size - 1])), (*before, rng.randrange(size))
    scale = rng.choice([0.0, 0.5, -1.0])

    def run(xp, i, arrays):
        x = arrays[target]
        arrays[target] = write(xp, x, places, scale * x[source] + 0.25, "set")

    return run


def draw_whole(rng, shape, target, draw_name):
    """A whole array, computed from others: as they are, turned around, or rolled."""
    one, two, axis = draw_name(), draw_name(), rng.randrange(len(shape))
    kind, by = rng.choice(["flip", "roll", "reverse"]), rng.choice([1, -1, 2])

    def run(xp, i, arrays):
        x = arrays[one]
        move = {"flip": lambda: xp.flip(x, axis), "roll": lambda: xp.roll(x, by, axis)}
        moved = move.get(kind, lambda: x[::-1])()
        arrays[target] = 0.5 * moved + 0.25 * arrays[two] + 0.25 * arrays[target]

    return run


def draw_elementwise(rng, shape, target, draw_name):
    """A whole array, each element computed from those at its place."""
    one, two = draw_name(), draw_name()
    combine, scale = rng.choice(COMBINATIONS[-2:]), rng.choice([0.5, -0.25])

    def run(xp, i, arrays):
        value = combine(xp, arrays[one], arrays[two] + scale)
        arrays[target] = 0.5 * value + scale * arrays[target]

    return run


def draw_line(rng, shape, target, draw_name):
    """A row or column at an index that the step gives; an elimination by both before or after."""
    source, how = draw_name(), rng.choice([*WRITES])
    axis, first = rng.choice([0, -1]), rng.randrange(64)
    eliminates, writes = rng.choice(
        [(None, True), ("before", True), ("before", False), ("after", True)]
    )

    def eliminate(xp, i, x):
        column = x[..., (i + first) % shape[-1], None]
        return 0.75 * x - 0.125 * xp.cos(column) * x[i % shape[0]]

    def run(xp, i, arrays):
        line = lambda k: (k % shape[axis],) if axis == 0 else (..., k % shape[axis])
        x, y = arrays[target], arrays[source]
        if eliminates == "before":
            x = eliminate(xp, i, x)
        if writes:
            value = 0.5 * (y[line(i + first + 1)] - x[line(i + first)])
            x = write(xp, x, line(i + first), value, how)
        if eliminates == "after":
            x = eliminate(xp, i, x)
        arrays[target] = x

    return run


def draw_element(rng, shape, target, draw_name):
    """One element at an index that the step gives."""
    source, how = draw_name(), rng.choice([*WRITES])

    def run(xp, i, arrays):
        places = tuple((i * 3 + 1) % size for size in shape)
        before = tuple(place - 1 for place in places)
        value = 0.5 * arrays[source][places] - 0.25 * arrays[target][before]
        arrays[target] = write(xp, arrays[target], places, value, how)

    return run


def draw_moving(rng, shape, target, draw_name):
    """Several rows, read and written where the step says."""
    source, count = draw_name(), rng.randrange(1, shape[0] + 1)

    def run(xp, i, arrays):
        start = i % (shape[0] - count + 1)
        end = shape[0] - count - start
        if xp is jnp:
            rows = lax.dynamic_slice_in_dim(arrays[source], start, count)
            x = lax.dynamic_update_slice_in_dim(arrays[target], 0.5 * rows + 0.125, end, 0)
        else:
            rows = arrays[source][start : start + count]
            x = write(xp, arrays[target], slice(end, end + count), 0.5 * rows + 0.125, "set")
        arrays[target] = x

    return run


def draw_loop(seed, kinds=("fori", "fori", "scan", "scan", "while", "unroll")):
    """A program `run(xp, *arrays)` with one loop, and its arrays."""
    rng, values = random.Random(seed), np.random.RandomState(seed)
    shape, names = rng.choice(SHAPES), "abc"[: rng.randrange(1, 4)]
    draw_name = functools.partial(rng.choice, names)
    draws = (draw_window, draw_whole, draw_line, draw_element, draw_moving)
    draws = rng.choice([draws, (draw_window,), (draw_window,), (draw_elementwise,), (draw_line,)])
    targets = rng.choice([rng.sample(names, len(names)), rng.choices(names, k=4)])
    steps = [rng.choice(draws)(rng, shape, target, draw_name) for target in targets]
    count, kind = rng.choice([1, 2, 3, 8, 9, 13]), rng.choice(kinds)
    swaps, adds_const, stacks = (rng.random() < 0.3 for _ in range(3))

    def step(xp, i, carry, const):
        arrays = dict(zip(names, carry, strict=True))
        for statement in steps:
            statement(xp, i, arrays)
        if adds_const:
            arrays["a"] = arrays["a"] + 0.125 * const
        carry = [*arrays.values()]
        return carry[::-1] if swaps else carry, carry[-1].sum(-1)

    def run(xp, *arrays):
        carry, const = [*arrays], arrays[0]
        if xp is not jnp:
            rows = []
            for i in range(count):
                carry, row = step(xp, i, carry, const)
                rows.append(row)
            return [*carry, np.stack(rows)] if stacks else carry
        if stacks or kind in ("scan", "unroll"):
            advance = lambda carry, i: step(jnp, i, carry, const)
            unroll = 2 if kind == "unroll" else 1
            carry, rows = lax.scan(advance, carry, jnp.arange(count), unroll=unroll)
            return [*carry, rows] if stacks else carry
        if kind == "fori":
            return lax.fori_loop(0, count, lambda i, carry: step(jnp, i, carry, const)[0], carry)
        advance = lambda state: (state[0] + 1, step(jnp, *state, const)[0])
        return lax.while_loop(lambda state: state[0] < count, advance, (0, carry))[1]

    return run, [values.uniform(-1, 1, shape) for _ in names]
