"""Programs as keys: equal where they compute the same by the same equations, else not."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.passes.structure import structure_of

X = np.ones((2, 3), np.float32)


def key(fun, *args):
    return structure_of(weft.make_jaxpr(fun)(*args).jaxpr)


def test_programs_written_twice_are_one():
    def write():
        def f(x):
            return lax.scan(lambda c, t: (jnp.sin(c) + t * 2.0, c), x, X.T * 3)

        return f

    one, other = key(write(), X[:, 0]), key(write(), X[:, 0])
    assert one == other and hash(one) == hash(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x + 0.0, lambda x: x + -0.0),
        (lambda x: x.sum(0), lambda x: x.sum(1)),
        (lambda x: x - x * 2, lambda x: x * 2 - x),
        (lambda x: (x, x + 1), lambda x: (x + 1, x)),
        (lambda x: lax.scan(lambda c, t: (c + t, c), x[0], x),
         lambda x: lax.scan(lambda c, t: (c - t, c), x[0], x)),
        (lambda x: lax.pad(x, np.float32(0.0), [(1, 0, 0), (0, 0, 0)]),
         lambda x: lax.pad(x, np.float32(-0.0), [(1, 0, 0), (0, 0, 0)])),
    ],
)  # fmt: skip
def test_others_differ(one, other):
    f, g = (lambda x, fun=fun: fun(x) for fun in (one, other))
    assert key(one, X) != key(other, X)
    assert key(f, X)[1:] != key(g, X)[1:]
    assert key(one, X) != key(one, X[:1])
