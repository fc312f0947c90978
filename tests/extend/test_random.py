"""weft.extend.random: Threefry of counts against JAX's values, and a generator of one's own."""

import pickle

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import random
from weft.errors import DtypeError, ShapeError
from weft.extend import random as extend


def test_threefry_of_counts():  # values of JAX 0.10
    odd = extend.threefry_2x32((1, 2), jnp.arange(5, dtype=np.uint32))
    assert odd.tolist() == [2052595727, 3504730591, 2527474599, 1880214352, 1914734168]
    pair = jnp.array([1, 2], np.uint32)
    even = extend.threefry_2x32(pair, jnp.arange(6, dtype=np.uint32).reshape(2, 3))
    assert even.tolist() == [
        [2052595727, 3504730591, 1038787879],
        [1880214352, 1914734168, 1027009547],
    ]
    with pytest.raises(DtypeError, match=r"threefry_2x32: count must be uint32; got i32\[3\]"):
        extend.threefry_2x32(pair, jnp.arange(3))


def test_the_generators_there_are():
    for impl in ("threefry", "rbg", "unsafe_rbg"):
        made = extend.random_seed(3, getattr(extend, f"{impl}_prng_impl"))
        assert (made == random.key(3, impl="threefry2x32" if impl == "threefry" else impl)).all()
        assert (extend.seed_with_impl(made.dtype, 3) == made).all()


HIDDEN = np.uint32(0x9E3779B9)


def masked(key):
    return random.wrap_key_data(key ^ HIDDEN)


def words(key):
    return random.key_data(key) ^ HIDDEN


MASKED = extend.define_prng_impl(
    key_shape=(2,),
    seed=lambda seed: words(random.key(seed)),
    split=lambda key, shape: words(random.split(masked(key), shape)),
    random_bits=lambda key, width, shape: random.bits(masked(key), shape, f"uint{width}"),
    fold_in=lambda key, data: words(random.fold_in(masked(key), data)),
    name="masked",
    tag="hid",
)


def test_a_generator_of_ones_own_gives_what_its_parts_give():
    mine, plain = random.key(5, impl=MASKED), random.key(5)
    assert str(mine.dtype) == "key<hid>" and random.key_impl(mine) is MASKED
    draws = (
        lambda k: random.normal(k, (3,)),
        lambda k: random.gamma(k, 2.0, (2,)),
        lambda k: random.bits(random.fold_in(k, 7), (2,), np.uint8),
        lambda k: random.permutation(random.split(k, 3)[1], 5),
        weft.jit(lambda k: random.uniform(k, (2,))),
        lambda k: weft.vmap(random.bits)(random.split(k, 4)),
    )
    for draw in draws:
        np.testing.assert_array_equal(draw(mine), draw(plain))
    seeds = weft.vmap(lambda s: random.key(s, impl=MASKED))(jnp.arange(3))
    assert seeds.shape == (3,) and seeds.dtype is MASKED
    with pytest.raises(ShapeError, match="define_prng_impl: key_shape must be"):
        extend.define_prng_impl(key_shape=(), **MASKED.rules._asdict())
    assert pickle.loads(pickle.dumps(extend.rbg_prng_impl)) is extend.rbg_prng_impl


def test_examples():
    check_examples(extend)
