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
    """Define a generator of random numbers by four functions of the words of one key, uint32[n].

    All functions of weft.random work with it, also under vmap. Its keys differ from keys of other
    generators. Keys that are used twice are detected if the functions are made of weft.random's.

    Args:
      key_shape: (n,), the number of words of a key.
      seed: a function of an integer that returns the words of a key.
      split: a function of a key and a shape that returns the words (*shape, n) of new keys.
      random_bits: a function of a key, a width in bits and a shape that returns unsigned integers.
      fold_in: a function of a key and an integer that returns the words of another key.
      name: the name of the generator. The default is "<unnamed>".
      tag: the short name with which its keys print: `key<tag>`. The default is "?".

    Returns:
      The generator, which is the dtype of its keys. Functions of weft.random accept it as `impl`.

    Raises:
      ShapeError: `key_shape` does not have exactly one element.

    >>> from weft.extend.random import define_prng_impl
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
    """Return the random key of a seed, for a given generator.

    It is the same as `random.key(seeds, impl=impl)`.

    Args:
      seeds: an integer scalar. Use `vmap` for several seeds.
      impl: the generator: a name such as "rbg", or an object such as `rbg_prng_impl`. None takes
        the default generator.

    Returns:
      A key: an array of shape () with the dtype of the generator's keys.

    Raises:
      DtypeError: the seed is not an integer.
      ShapeError: the seed is not a scalar.
      ValueError: no generator has the name.

    >>> from weft.extend.random import random_seed
    >>> random_seed(3, "rbg").dtype
    key<rbg>
    >>> print(random.key_data(random_seed(3, "rbg")))
    [0 3 0 3]
    """
    return key(seeds, impl=impl)


def seed_with_impl(impl: Any, seed: Any) -> Array:
    """Return the random key of a seed, for a given generator.

    It is `random_seed` with its arguments in the other order.

    Args:
      impl: the generator: a name such as "rbg", or an object such as `rbg_prng_impl`. None takes
        the default generator.
      seed: an integer scalar.

    Returns:
      A key: an array of shape () with the dtype of the generator's keys.

    Raises:
      DtypeError: the seed is not an integer.
      ShapeError: the seed is not a scalar.
      ValueError: no generator has the name.

    >>> from weft.extend.random import seed_with_impl, threefry_prng_impl
    >>> print(random.key_data(seed_with_impl(threefry_prng_impl, 3)))
    [0 3]
    """
    return key(seed, impl=impl)


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """Apply the hash function Threefry-2x32 to counts.

    It is the function that the default generator is made of. The counts are flattened and split
    into two halves. The hash is applied to pairs of one count of each half. An odd number of counts
    is padded with a zero.

    Args:
      keypair: the two words of a key, uint32 scalars: a pair, or an array of shape (2,).
      count: the counts, uint32 of any shape.

    Returns:
      The words, uint32 of the shape of `count`.

    Raises:
      DtypeError: `count` is not uint32.

    Reference: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
    2011.

    >>> from weft.extend.random import threefry_2x32
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
