"""First and second derivatives at the points of special_points.py.

Nothing is jitted: points are stacked to one size, so that all functions share their few kernels.
"""

import numpy as np
import pytest

from tests.special_points import (
    CHOSEN,
    DOC,
    EXISTING,
    MARK,
    find_placed,
    find_public,
    limits,
    make_table,
)
from weft import enable_x64, grad, jacfwd, jacrev, vmap
from weft import numpy as jnp

SIZE = 6  # points that are differentiated at a time


def differentiate(fun, points, dtype=jnp.float32):
    """The gradients at points, and the Hessians forward over reverse and reverse over forward."""
    padded = [*points, *[points[-1]] * (SIZE - len(points))]
    xs = [jnp.array(column, dtype) for column in zip(*padded, strict=True)]
    args = tuple(range(len(xs)))
    first = vmap(grad(fun, args))(*xs)
    seconds = jacfwd(grad(fun, args), args), jacrev(jacfwd(fun, args), args)
    found = [np.stack(first, -1)]
    for hessian in seconds:
        rows = vmap(hessian)(*xs)
        found.append(np.stack([np.stack(row, -1) for row in rows], -2))
    return [x[: len(points)] for x in found]


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("row", EXISTING, ids=lambda row: row.name)
def test_where_derivatives_exist(row):
    first, forward, reverse = differentiate(row.fun, row.points)
    for i, point in enumerate(row.points):
        want, curved = limits(row, point)
        np.testing.assert_allclose(first[i], want, 1e-4, 1e-5, err_msg=f"first at {point}")
        for got in (forward, reverse):
            np.testing.assert_allclose(got[i], curved, 5e-4, 5e-5, err_msg=f"second at {point}")


@pytest.mark.slow
@pytest.mark.parametrize("row", EXISTING, ids=lambda row: row.name)
@pytest.mark.parametrize(
    "dtype", [jnp.float64, jnp.float16, jnp.bfloat16], ids=lambda d: d.__name__
)
def test_of_other_dtypes(dtype, row):
    if dtype is not jnp.float64 and "linalg" in row.name:
        pytest.skip("factorizations are of 32 bits and more")
    with enable_x64():
        points = [tuple(float(dtype(x)) for x in point) for point in row.points]
        first, forward, reverse = differentiate(row.fun, points, dtype)
    eps = float(jnp.finfo(dtype).eps)
    for i, point in enumerate(points):
        want, curved = limits(row, point)
        near = {"rtol": max(8 * eps, 1e-7), "atol": max(8 * eps, 1e-8)}
        np.testing.assert_allclose(first[i].astype(float), want, **near)
        if dtype is jnp.float64:
            for got in (forward, reverse):
                np.testing.assert_allclose(
                    got[i], curved, 1e-6, 1e-5
                )  # limits are next to the point


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("choice", CHOSEN, ids=lambda c: f"{c.name} {c.point}")
def test_where_they_are_chosen(choice):
    first, forward, reverse = differentiate(choice.fun, [choice.point])
    np.testing.assert_allclose(first[0], choice.first, 1e-5)
    if choice.second is not None:
        np.testing.assert_allclose(forward[0], choice.second, 1e-5)
        np.testing.assert_allclose(reverse[0], choice.second, 1e-5)


def test_choices_are_documented():
    text = DOC.read_text()
    assert text[text.index(MARK) + len(MARK) :] == make_table(), (
        "write it anew: python -m tests.special_points"
    )


def test_every_function_is_placed():
    public, placed = find_public(), find_placed()
    assert not [n for n in placed if n not in public], "no public functions"
    known = {id(public[n]) for n in placed}  # other names of a function need no place
    assert not [n for n, fun in public.items() if id(fun) not in known], (
        "give it a row in tests/special_points.py for its singularity, branch, tie or edge, "
        "or a place in ELSEWHERE"
    )
