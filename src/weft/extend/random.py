"""Generators of random numbers: those there are, and those that you define.

A generator is the dtype of its keys, and is given as `impl=` to functions of weft.random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft.core.aval import typeof
from weft.errors import DtypeError, ShapeError
from weft.primitives.random import threefry2x32_p
from weft.random.keys import Generator, KeyDtype, find_dtype, key
from weft.util import list_public
from weft.xla.array import Array

__all__ = [
    "define_prng_impl", "random_seed", "rbg_prng_impl", "seed_with_impl", "threefry2x32_p",
    "threefry_2x32", "threefry_prng_impl", "unsafe_rbg_prng_impl",
]  # fmt: skip
__dir__ = list_public(__name__)

threefry_prng_impl = find_dtype("threefry2x32")
rbg_prng_impl = find_dtype("rbg")
unsafe_rbg_prng_impl = find_dtype("unsafe_rbg")


def define_prng_impl(
    *,
    key_shape: Sequence[int],
    seed: Callable[[Any], Any],
    split: Callable[[Any, tuple[int, ...]], Any],
    random_bits: Callable[[Any, int, tuple[int, ...]], Any],
    fold_in: Callable[[Any, Any], Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> KeyDtype:
    """Define a generator of your own by four functions of the words of one key, uint32[n].

    All functions of weft.random work with it, also under vmap. Its keys differ from keys of other
    generators. Keys that are used twice are detected if the functions are made of weft.random's.

    Args:
      key_shape: (n,), the number of words of a key.
      seed: a function of an integer that returns the words of a key.
      split: a function of a key and a shape that returns the words (*shape, n) of new keys.
      random_bits: a function of a key, a width in bits and a shape that returns unsigned integers.
      fold_in: a function of a key and an integer that returns the words of another key.
      name: the name of the generator.
      tag: the short name with which its keys print: `key<tag>`.

    >>> weak = define_prng_impl(
    ...     key_shape=(1,),
    ...     seed=lambda seed: jnp.array([seed], "uint32"),
    ...     split=lambda key, shape: key + 1 + jnp.arange(2, dtype="uint32").reshape(*shape, 1),
    ...     random_bits=lambda key, width, shape: jnp.full(shape, key[0] * 7919, "uint32"),
    ...     fold_in=lambda key, data: key ^ data,
    ...     tag="weak",
    ... )
    >>> print(random.bits(random.key(3, impl=weak), (2,)))
    [23757 23757]
    """
    if len(key_shape) != 1:
        raise ShapeError(
            f"define_prng_impl: key_shape must be (n,), the number of words; got {key_shape}."
        )
    return KeyDtype(name, tag, int(key_shape[0]), Generator(seed, split, random_bits, fold_in))


def random_seed(seeds: Any, impl: Any) -> Array:
    """The key of an integer, of a generator: `random.key(seeds, impl=impl)`."""
    return key(seeds, impl=impl)


def seed_with_impl(impl: Any, seed: Any) -> Array:
    """Do as `random_seed` does, with its arguments in the other order."""
    return key(seed, impl=impl)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """The words that Threefry-2x32 makes of counts, uint32 of any shape, paired by halves.

    >>> print(threefry_2x32((1, 2), jnp.arange(2, dtype="uint32")))
    [ 629003988 1317161160]
    """
    count = jnp.asarray(count)
    if count.dtype != np.uint32:
        raise DtypeError(f"threefry_2x32: count must be uint32; got {typeof(count)}.")
    flat = jnp.ravel(count)
    half = (flat.size + 1) // 2
    pairs = jnp.zeros(2 * half, np.uint32).at[: flat.size].set(flat)
    words = [jnp.full(half, k, np.uint32) for k in (keypair[0], keypair[1])]
    made = threefry2x32_p.apply(*words, pairs[:half], pairs[half:])
    return jnp.concatenate(made)[: flat.size].reshape(count.shape)
