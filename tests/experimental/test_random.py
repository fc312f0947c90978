"""The generator with state: its numbers are those of the keys that it counts."""

import numpy as np
import pytest

import weft
from weft import random
from weft.experimental.random import stateful_rng


def test_each_draw_is_of_the_next_key():
    rng, key = stateful_rng(3), random.key(3)
    nth = lambda n: random.fold_in(key, n)
    np.testing.assert_array_equal(rng.normal(size=(2,)), random.normal(nth(0), (2,)))
    np.testing.assert_array_equal(
        rng.uniform(1, [2, 3]), random.uniform(nth(1), (2,), minval=1, maxval=np.array([2, 3]))
    )
    np.testing.assert_array_equal(rng.integers(10, size=3), random.randint(nth(2), (3,), 0, 10))
    assert rng.key() == nth(3) and rng.random() == random.uniform(nth(4))
    assert weft.jit(rng.normal)(5.0, 2.0) == 5 + 2 * random.normal(nth(5))
    assert weft.jit(lambda r: r.key())(rng) == nth(6)
    np.testing.assert_array_equal(
        random.key_data(rng.key(2)), random.key_data(random.split(nth(7)))
    )


def test_generators_of_a_generator():
    a, b = stateful_rng(0).spawn(2)
    assert a.key() != b.key() and stateful_rng().key() != stateful_rng().key()
    rows = weft.vmap(lambda r: r.uniform(size=2))(stateful_rng(0).split(3))
    assert rows.shape == (3, 2) and len(np.unique(rows)) == 6


def test_a_function_that_is_transformed_must_pass_a_seed():
    draw = lambda seed: lambda x: stateful_rng(seed).uniform() * x
    for transform in (weft.jit, weft.grad, weft.make_jaxpr):
        with pytest.raises(TypeError, match="a function that is transformed must pass a seed"):
            transform(draw(None))(1.0)
    assert weft.jit(draw(3))(1.0) == draw(3)(1.0) != draw(None)(1.0)
