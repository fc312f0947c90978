"""`associative_scan` on pytrees: prefixes, derivatives, errors. Of symbolic sizes: tests/export."""

import numpy as np
import pytest

import weft.numpy as jnp
from weft import grad, jit, make_jaxpr
from weft.api.associative_scan import associative_scan
from weft.api.scan import scan
from weft.errors import PytreeError, ShapeError

XS = np.arange(6.0, dtype=np.float32).reshape(3, 2)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
def test_prefixes(n, reverse):
    xs = np.arange(1.0, n + 1, dtype=np.float32)
    order = slice(None, None, -1) if reverse else slice(None)
    got = associative_scan(jnp.add, xs, reverse=reverse)
    np.testing.assert_allclose(got, np.cumsum(xs[order])[order])
    flags = xs % 3 == 0
    got = associative_scan(jnp.logical_or, flags, reverse=reverse)
    np.testing.assert_array_equal(got, np.logical_or.accumulate(flags[order])[order])


@pytest.mark.parametrize("reverse", [False, True])
def test_products_of_matrices_do_not_commute(reverse):
    ms = np.random.default_rng(0).normal(size=(5, 3, 3)).astype(np.float32)
    order = range(4, -1, -1) if reverse else range(5)
    want, last = {}, np.eye(3, dtype=np.float32)
    for i in order:
        last = want[i] = last @ ms[i]
    got = jit(lambda ms: associative_scan(jnp.matmul, ms, reverse))(ms)
    np.testing.assert_allclose(got, np.stack([want[i] for i in range(5)]), rtol=1e-4, atol=1e-5)


def test_linear_recurrences():
    """Pairs (a, b) stand for x -> a x + b; along the last axis."""
    a, b = np.random.default_rng(1).normal(size=(2, 3, 6)).astype(np.float32)
    combine = lambda p, q: {"a": p["a"] * q["a"], "b": q["a"] * p["b"] + q["b"]}

    def f(a, b):
        return associative_scan(combine, {"a": a, "b": b}, axis=-1)["b"]

    x, want = np.zeros(3, np.float32), []
    for t in range(6):
        x = a[:, t] * x + b[:, t]
        want.append(x)
    np.testing.assert_allclose(f(a, b), np.stack(want, 1), rtol=1e-4, atol=1e-5)
    by_scan = lambda a, b: scan(lambda x, ab: (ab[0] * x + ab[1],) * 2, jnp.zeros(3), (a.T, b.T))[1]
    for ours, theirs in zip(
        jit(grad(lambda a, b: (f(a, b) ** 2).sum(), (0, 1)))(a, b),
        jit(grad(lambda a, b: (by_scan(a, b) ** 2).sum(), (0, 1)))(a, b),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_every_bit_passes():
    xs = np.array([-0.0, 1.0, np.inf, -2.0], np.float32)
    last = associative_scan(lambda a, b: b, xs)
    np.testing.assert_array_equal(np.signbit(last), np.signbit(xs))
    np.testing.assert_array_equal(last, xs)
    assert associative_scan(jnp.add, ()) == ()


def test_depth_is_logarithmic():
    eqns = make_jaxpr(lambda x: associative_scan(jnp.multiply, x))(np.ones(1024)).jaxpr.eqns
    assert sum(e.primitive.name == "mul" for e in eqns) == 19


ERRORS = [
    (
        lambda: associative_scan(3, XS),
        TypeError,
        "associative_scan: needs a function; got 3 of type int.",
    ),
    (
        lambda: associative_scan(jnp.add, (XS, XS[:2])),
        ShapeError,
        r"associative_scan: arrays must be equally long along axis 0; got f32\[3,2\] at elems\[0\] "
        r"and f32\[2,2\] at elems\[1\].",
    ),
    (lambda: associative_scan(jnp.add, XS, axis=2), ShapeError, "associative_scan: .*"),
    (
        lambda: associative_scan(lambda a, b: (a, b), XS),
        PytreeError,
        r"associative_scan: <lambda> must return the structure of elems, .*; got .*",
    ),
    (
        lambda: associative_scan(lambda a, b: a[:, :1], XS),
        ShapeError,
        "associative_scan: <lambda> must return the type that it is given; "
        r"got f32\[1,1\] for f32\[1,2\] at elems.",
    ),
]


@pytest.mark.parametrize("call, error, text", ERRORS, ids=range(len(ERRORS)))
def test_errors(call, error, text):
    with pytest.raises(error, match=f"^{text}$"):
        call()
