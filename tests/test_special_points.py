"""First and second derivatives at the points of special_points.py; of one operand, to order 6.

With `--all` the first two are not jitted: points are stacked to one size, so that all functions
share their few kernels. The functions of a sample share few, and one program for each is faster.
"""

import mpmath as mp
import numpy as np
import pytest

from tests.settings import ALL
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
from weft import enable_x64, grad, jacfwd, jacrev, jit, jvp, vmap
from weft import numpy as jnp

SIZE = 6  # points that are differentiated at a time


def differentiate(fun, points, dtype=jnp.float32):
    """The gradients at points, and the Hessians forward over reverse and reverse over forward."""
    padded = [*points, *[points[-1]] * (SIZE - len(points))]
    xs = [jnp.array(column, dtype) for column in zip(*padded, strict=True)]
    args = tuple(range(len(xs)))
    orders = grad(fun, args), jacfwd(grad(fun, args), args), jacrev(jacfwd(fun, args), args)
    derive = lambda *xs: [vmap(order)(*xs) for order in orders]
    first, *seconds = (derive if ALL else jit(derive))(*xs)
    found = [np.stack(first, -1)]
    for rows in seconds:
        found.append(np.stack([np.stack(row, -1) for row in rows], -2))
    return [x[: len(points)] for x in found]


@pytest.mark.sample(one_in=32)
@pytest.mark.parametrize("row", EXISTING, ids=lambda row: row.name)
def test_where_derivatives_exist(row):
    first, forward, reverse = differentiate(row.fun, row.points)
    for i, point in enumerate(row.points):
        want, curved = limits(row, point)
        np.testing.assert_allclose(first[i], want, 1e-4, 1e-5, err_msg=f"first at {point}")
        for got in (forward, reverse):
            np.testing.assert_allclose(got[i], curved, 5e-4, 5e-5, err_msg=f"second at {point}")


ORDER = 6
OF_ONE = [row for row in EXISTING if len(row.points[0]) == 1]


def expand(row, point):
    """The derivatives of orders 0 to 6 of `row.exact` next to a point."""
    with mp.workdps(200):
        at = mp.mpf(point) + row.side * mp.mpf(10) ** -30
        terms = mp.taylor(row.exact, at, ORDER, h=mp.mpf(10) ** -18)
        return [float(mp.re(x * mp.factorial(k))) for k, x in enumerate(terms)]


def mark_slow(row):
    """Mark a row as slow, as most are: XLA takes seconds for an order of 6."""
    marks = () if row.name == "scipy.special.boxcox 2" else pytest.mark.slow
    return pytest.param(row, id=row.name, marks=marks)


@pytest.mark.parametrize("row", [mark_slow(row) for row in OF_ONE])
def test_derivatives_to_order_six(row):
    """A series that is cut off, or a constant in place of a limit, lacks the higher ones."""
    funs = [row.fun]
    for _ in range(ORDER):
        funs.append(lambda x, f=funs[-1]: jvp(f, (x,), (jnp.ones_like(x),))[1])
    with enable_x64():
        xs = jnp.array(row.points, float)[:, 0]
        found = jit(lambda x: [f(x) for f in funs])(xs)
    for i, (point,) in enumerate(row.points):
        want, got = np.array(expand(row, point)), np.array([float(y[i]) for y in found])
        # An error may have the size of the error of the neighbouring derivatives.
        near = 1e-7 * np.array(
            [np.abs(want[max(k - 1, 0) : k + 2]).max() for k in range(ORDER + 1)]
        )
        assert (np.abs(got - want) <= near + 1e-12).all(), f"at {point}: {got}, right {want}"


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


@pytest.mark.sample(one_in=32)
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
