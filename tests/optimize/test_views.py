"""Strided views, which follow from `element` rules: against NumPy's indices."""

import random

import numpy as np

import weft
from weft import lax
from weft.optimize.views import find_views, merge_axes, view_whole
from weft.primitives.slicing import unstack


def element_places(view):
    """The places of all elements of a view, as an array."""
    places = np.full(view.sizes, view.start)
    for axis, (n, step) in enumerate(zip(view.sizes, view.steps, strict=True)):
        shape = [n if k == axis else 1 for k in range(len(view.sizes))]
        places = places + step * np.arange(n).reshape(shape)
    return places


def find_all(fun, shape):
    """The views that the results of a function of one array are; None where one is none."""
    jaxpr = weft.make_jaxpr(fun)(np.zeros(shape, np.int32)).jaxpr
    views = {v: view_whole(v) for v in jaxpr.invars}
    for eqn in jaxpr.eqns:
        found = find_views(eqn, views)
        if found is None:
            return None
        views.update(zip(eqn.outvars, found, strict=True))
    return [views[v] for v in jaxpr.outvars]


def draw_move(rng, x):
    """A random operation that moves the elements of an array."""
    axis = rng.randrange(x.ndim)
    size = x.shape[axis]
    order = rng.sample(range(x.ndim), x.ndim)
    spread = (*x.shape[:axis], 2, *x.shape[axis:])
    kept = [k for k in range(x.ndim + 1) if k != axis]
    start, step = rng.randrange(size), rng.choice([1, 2, 3])
    moves = [
        lambda x: lax.transpose(x, order),
        lambda x: lax.rev(x, (axis,)),
        lambda x: lax.slice_in_dim(x, start, size, step, axis),
        lambda x: lax.broadcast_in_dim(x, spread, kept),
        lambda x: lax.expand_dims(x, (axis,)),
        lambda x: lax.stop_gradient(x),
        lambda x: lax.reshape(x, (x.size,)),
        lambda x: unstack(x, axis)[start] if x.ndim > 1 else x,
        lambda x: lax.split(x, (start, size - start), axis)[1],
        lambda x: lax.squeeze(x, (axis,)) if size == 1 and x.ndim > 1 else x,
    ]
    return rng.choice(moves)


def test_random_moves():
    rng, known = random.Random(0), 0
    runs, xs = [], []
    for _ in range(150):
        shape = tuple(rng.choice([1, 2, 3, 5]) for _ in range(rng.randrange(1, 4)))
        xs.append(np.arange(np.prod(shape), dtype=np.int32).reshape(shape))
        moves, y = [], xs[-1]
        for _ in range(rng.randrange(1, 5)):
            moves.append(draw_move(rng, y))
            y = weft.eval_shape(moves[-1], y)

        def run(x, moves=moves):
            for move in moves:
                x = move(x)
            return x

        runs.append(run)
    ys = weft.jit(lambda xs: [run(x) for run, x in zip(runs, xs, strict=True)])(xs)
    for run, x, y in zip(runs, xs, map(np.asarray, ys), strict=True):
        found = find_all(run, x.shape)
        if found is not None:
            known += 1
            (view,) = found
            np.testing.assert_array_equal(element_places(view), y)
            sizes, steps = merge_axes(view)
            assert 1 not in sizes[1:] and len(sizes) <= max(1, y.ndim)
            merged = view._replace(sizes=sizes, steps=steps)
            np.testing.assert_array_equal(element_places(merged).ravel(), y.ravel())
    assert known > 100


def test_what_is_no_view():
    assert find_all(lambda x: lax.reshape(lax.transpose(x, (1, 0)), (6,)), (2, 3)) is None
    assert find_all(lambda x: x + 1, (2, 3)) is None
    assert find_all(lambda x: lax.pad(x, np.int32(0), [(1, 0, 0)]), (3,)) is None
    assert find_all(lambda x: x[np.array([0, 2])], (3,)) is None


def test_empty_arrays():
    (view,) = find_all(lambda x: lax.reshape(lax.rev(x, (0,)), (3, 0)), (0, 3))
    assert view.is_contiguous and view.sizes == (3, 0)
