"""Keys: made from seeds, split, folded; of a key dtype or as raw words, for each of the generators.

The functions of this package take both, and work on words and the generator they are for (`Words`).
How keys are held, moved and compiled is not known here (passes/physical.py, xla/array.py). Bits and
distributions are in the other files.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, NewType

import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.core.aval import is_valid_value, typeof
from weft.core.trace import Tracer
from weft.errors import DtypeError, ShapeError
from weft.lax.values import put_on_device
from weft.numpy.promotion import as_array, shape_of
from weft.options import config
from weft.primitives.bits import shift_right_logical
from weft.primitives.elementwise import bitwise_xor
from weft.primitives.layout import convert, random_unwrap_p, random_wrap_p, reshape
from weft.primitives.random import (
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_split_p,
    rng_bit_generator,
)
from weft.run.operation import number_operation, operation
from weft.util import warn_user
from weft.xla.array import Array, put, require_alive
from weft.xla.typing import ArrayLike, DTypeLike

__all__ = [
    "Key", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split",
    "wrap_key_data",
]  # fmt: skip


Key = NewType("Key", Array)  # in annotations: an array of random keys


class Generator(NamedTuple):
    """A generator that users define, on the words of one key (n,).

    `seed(integer)`, `split(key, shape)` and `fold_in(key, integer)` give words (..., n);
    `random_bits(key, bit_width, shape)` unsigned integers.
    """

    seed: Callable
    split: Callable
    random_bits: Callable
    fold_in: Callable


class KeyDtype:
    """The dtype of an array of keys: which generator they are for. Prints as `key<fry>`."""

    type: ClassVar = dtypes.prng_key
    words_dtype: ClassVar = np.dtype(np.uint32)
    itemsize: int

    def __init__(self, impl: str, tag: str, words: int, rules: Generator | None = None):
        self.impl, self.tag, self.words, self.rules = impl, tag, words, rules
        self.itemsize = 4 * words

    @property
    def name(self) -> str:
        """`key<fry>`."""
        return f"key<{self.tag}>"

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        if self.rules is not None:
            return KeyDtype, (self.impl, self.tag, self.words, self.rules)
        return find_dtype, (self.impl,)


IMPLS = {
    d.impl: d
    for d in (
        KeyDtype("threefry2x32", "fry", 2),
        KeyDtype("rbg", "rbg", 4),
        KeyDtype("unsafe_rbg", "urbg", 4),
    )
}


def find_dtype(impl: Any = None) -> KeyDtype:
    """The dtype of the keys of a generator: that named, or the default."""
    if isinstance(impl, KeyDtype):
        return impl
    name = config.default_prng_impl if impl is None else impl
    if not isinstance(name, str) or name not in IMPLS:
        raise ValueError(f"random: impl must be one of {', '.join(IMPLS)}; got {impl!r}.")
    return IMPLS[name]


class Words(NamedTuple):
    """One key: its words, uint32[n], and the dtype that says which generator they are for."""

    data: Any
    dtype: KeyDtype


# --- one key, or many, as words --------------------------------------------------------------


def is_typed(keys: Any) -> bool:
    """Return True if these are keys by their dtype, not raw words."""
    return type(getattr(keys, "dtype", None)) is KeyDtype


def read_words(op: str, keys: Any) -> Words:
    """Keys as words (..., n), raw ones as of the default generator."""
    if is_typed(keys):
        return Words(random_unwrap_p.apply(require_alive(keys))[0], keys.dtype)
    dtype = find_dtype()
    if not is_valid_value(keys):
        raise DtypeError(
            f"{op}: key must be a random key; got a {type(keys).__name__}. "
            "Hint: random.key(0), or random.PRNGKey(0)."
        )
    aval = typeof(keys)
    if aval.dtype != np.uint32 or aval.shape[-1:] != (dtype.words,):
        raise DtypeError(
            f"{op}: key must be a random key, {dtype} or its words u32[{dtype.words}]; got {aval}."
            + (hint_generator(aval) or " Hint: random.key(0), or random.PRNGKey(0).")
        )
    if config.legacy_prng_key != "allow":
        text = (
            f"{op}: key must be of a key dtype under legacy_prng_key="
            f"{config.legacy_prng_key!r}; got its words {aval}. Hint: random.key(seed), or "
            "random.wrap_key_data(words)."
        )
        if config.legacy_prng_key == "error":
            raise ValueError(text)
        warn_user(text)
    return Words(as_array(keys, op), dtype)


def hint_generator(aval: Any) -> str:
    """The fix for words of another generator than was expected, if they are of one."""
    fitting = [d.impl for d in IMPLS.values() if aval.shape[-1:] == (d.words,)]
    if aval.dtype != np.uint32 or not fitting:
        return ""
    return f" Hint: random.wrap_key_data(words, impl={fitting[0]!r})."


def read_one_key(op: str, key: Any) -> Words:
    """The words of a single key."""
    words = read_words(op, key)
    shape = words.data.shape[:-1]
    if shape:
        raise ShapeError(
            f"{op}: takes one key; got keys of shape {shape}. Hint: vmap over the keys."
        )
    return words


def wrap_like(keys: Any, data: Any, dtype: KeyDtype) -> Any:
    """New keys as the old ones are, raw or not."""
    return random_wrap_p.apply(data, dtype=dtype)[0] if is_typed(keys) else data


def split_words(key: Words, shape: tuple[int, ...]) -> Any:
    """New keys, words (*shape, n), from one key."""
    data, impl = key.data, key.dtype.impl
    if key.dtype.rules is not None:
        return key.dtype.rules.split(data, shape)
    partitionable = bool(config.threefry_partitionable)
    if impl == "unsafe_rbg":
        # one of each ten blocks, so that few keys follow one another
        _, rows = rng_bit_generator(data, (10 * math.prod(shape), 4))
        return reshape(rows[::10], (*shape, 4))
    if impl == "threefry2x32":
        return random_split_p.apply(data, shape=shape, partitionable=partitionable)[0]
    halves = reshape(data, (2, 2))
    (made,) = random_split_p.apply(halves, shape=shape, partitionable=partitionable)
    return reshape(jnp.moveaxis(made, 0, -2), (*shape, 4))


def split_pair(key: Words) -> list[Words]:
    """Two new keys from one."""
    made = split_words(key, (2,))
    return [Words(made[i], key.dtype) for i in range(2)]


def fold_words(key: Words, data: Any) -> Any:
    """The words of a key made of a key and a uint32."""
    if key.dtype.rules is not None:
        return key.dtype.rules.fold_in(key.data, data)
    if key.dtype.impl == "threefry2x32":
        return random_fold_in_p.apply(key.data, data)[0]
    if key.dtype.impl == "rbg":
        halves = reshape(key.data, (2, 2))
        (made,) = random_fold_in_p.apply(halves, jnp.broadcast_to(data, (2,)))
        return reshape(made, (4,))
    _, rows = rng_bit_generator(seed_words(data, key.dtype), (10, 4))
    return bitwise_xor(key.data, rows[-1])


def draw_bits(key: Words, shape: tuple[int, ...], width: int) -> Any:
    """Unsigned integers of a width, of a shape."""
    if key.dtype.rules is not None:
        return key.dtype.rules.random_bits(key.data, width, shape)
    if key.dtype.impl == "threefry2x32":
        partitionable = bool(config.threefry_partitionable)
        return random_bits_p.apply(
            key.data, bit_width=width, shape=shape, partitionable=partitionable
        )[0]
    return rng_bit_generator(key.data, shape, np.dtype(f"uint{width}"))[1]


def seed_words(seed: Any, dtype: KeyDtype) -> Any:
    """The words of the key of an integer scalar."""
    if dtype.rules is not None:
        return dtype.rules.seed(seed)
    width = dtypes.itemsize_bits(seed.dtype)
    low = convert(seed, np.dtype(np.uint32))
    high = jnp.zeros((), np.uint32)
    if width == 64:
        high = convert(shift_right_logical(seed, 32), np.dtype(np.uint32))
    return jnp.stack([high, low] * (dtype.words // 2))


def seed_key(op: str, seed: Any, dtype: KeyDtype) -> Any:
    """The words of the key of a seed that a user gives."""
    if config.random_seed_offset:
        seed = seed + config.random_seed_offset
    if dtype.rules is not None:
        return dtype.rules.seed(seed)
    if type(seed) in (int, bool) or isinstance(seed, np.integer | np.bool_):
        number = int(seed)
        if not -(2**63) <= number < 2**64:
            raise OverflowError(f"{op}: seed must be an integer of 64 bits; got {seed}.")
        high = number >> 32 & 0xFFFFFFFF if config.enable_x64 else 0
        words = [high, number & 0xFFFFFFFF] * (dtype.words // 2)
        return put(np.array(words, np.uint32))
    aval = typeof(seed, op)
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_bool(aval.dtype)):
        raise DtypeError(f"{op}: seed must be an integer; got {aval}. Hint: int(seed).")
    if aval.shape:
        raise ShapeError(f"{op}: seed must be a scalar; got {aval}. Hint: vmap({op})(seeds).")
    return seed_words(as_array(seed, op), dtype)


# --- what users call -------------------------------------------------------------------------


@operation(arrays=0)
def PRNGKey(seed: int | ArrayLike, *, impl: str | KeyDtype | None = None) -> Array:
    """Return a random key made from an integer, as an array of raw words.

    It is the older form of a key: an ordinary uint32 array, which can be stored and printed like
    any other. `key` returns keys of a dtype of their own, which cannot be mistaken for numbers.
    Every function of this package takes both.

    Args:
      seed: an integer scalar. Without enable_x64 only its lower 32 bits count.
      impl: the generator by name: "threefry2x32", "rbg" or "unsafe_rbg", or the dtype of its keys.
        By default the one that the option `default_prng_impl` names.

    Returns:
      A uint32 array (2,), or (4,) for "rbg" and "unsafe_rbg". If the option `enable_custom_prng` is
      set, a key as of `key`.

    Raises:
      DtypeError: the seed is not an integer.
      ShapeError: the seed is not a scalar. Use `vmap` for an array of seeds.
      OverflowError: the seed does not fit 64 bits.
      ValueError: `impl` names no generator.

    >>> print(random.PRNGKey(42))
    [ 0 42]
    >>> print(random.PRNGKey(42, impl="rbg"))
    [ 0 42  0 42]
    """
    if config.enable_custom_prng:
        return key(seed, impl=impl)
    return put_on_device(seed_key("PRNGKey", seed, find_dtype(impl)), None)


@operation(arrays=0)
def key(
    seed: int | ArrayLike, *, impl: str | KeyDtype | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Return a random key made from an integer, which every sampler takes.

    A key stands for a stream of random numbers. A sampler that is called twice with a key returns
    the same numbers twice; so use each key once, and make new ones with `split` or `fold_in`. The
    key has a dtype of its own, so that it is not used as a number by mistake.

    A seed gives different numbers in a program that says `import weft` than in a program that says
    `import jax` and runs by `python -m weft`. The option `threefry_partitionable` selects how bits
    are counted: it is False for `import weft`, and True for `import jax`, as in JAX since 0.5. Set
    it, or WEFT_THREEFRY_PARTITIONABLE=1 in the environment, for the numbers of today's JAX.

    Args:
      seed: an integer scalar. Without enable_x64 only its lower 32 bits count. It may be traced.
      impl: the generator by name: "threefry2x32", "rbg" or "unsafe_rbg", or the dtype of its keys.
        By default the one that the option `default_prng_impl` names.
      dtype: the dtype of the key, in place of `impl`.

    Returns:
      A key: an array of shape () and of a key dtype, such as key<fry>.

    Raises:
      DtypeError: the seed is not an integer.
      ShapeError: the seed is not a scalar. Use `vmap` for an array of seeds.
      OverflowError: the seed does not fit 64 bits.
      ValueError: `impl` names no generator.

    >>> random.key(42).dtype
    key<fry>
    >>> random.key(42, impl="rbg").dtype
    key<rbg>
    """
    dtype = find_dtype(impl if dtype is None else dtype)
    words = seed_key("key", seed, dtype)
    return put_on_device(random_wrap_p.apply(words, dtype=dtype)[0], None)


def key_dtype(impl_spec: Any = None) -> KeyDtype:
    """Return the dtype of the keys of a generator.

    Args:
      impl_spec: the generator by name: "threefry2x32", "rbg" or "unsafe_rbg". By default the one
        that the option `default_prng_impl` names.

    Returns:
      A key dtype, such as key<fry>, equal to the dtype of the generator's keys.

    Raises:
      ValueError: `impl_spec` names no generator.

    >>> random.key_dtype("rbg")
    key<rbg>
    >>> random.key(0).dtype == random.key_dtype()
    True
    """
    return find_dtype(impl_spec)


def key_data(keys: ArrayLike) -> Array:
    """Return the raw words of keys, for example to store them in a file.

    `wrap_key_data` is the inverse.

    Args:
      keys: an array of keys of any shape, or their words.

    Returns:
      A uint32 array with the shape of `keys` and one more axis: 2 words for "threefry2x32", 4 for
      the other generators. Words are returned unchanged.

    Raises:
      DtypeError: `keys` are neither keys nor words.

    >>> print(random.key_data(random.key(42)))
    [ 0 42]
    """
    return read_words("key_data", keys).data


def key_impl(keys: ArrayLike) -> str | KeyDtype:
    """Return the generator that keys are for, in the form that `key` and `wrap_key_data` take.

    Args:
      keys: an array of keys of any shape, or words, which are taken for keys of the default
        generator.

    Returns:
      The name of the generator, a str. For a generator that a program defines itself, the dtype of
      its keys.

    Raises:
      DtypeError: `keys` are neither keys nor words.

    >>> random.key_impl(random.key(0, impl="rbg"))
    'rbg'
    """
    dtype = read_words("key_impl", keys).dtype
    return dtype.impl if dtype.rules is None else dtype


def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: str | KeyDtype | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Return the keys that raw words stand for: the inverse of `key_data`.

    Args:
      key_bits_array: a uint32 array (..., n). n is 2 for "threefry2x32" and 4 for "rbg" and
        "unsafe_rbg".
      impl: the generator by name, or the dtype of its keys. By default the one that the option
        `default_prng_impl` names.
      dtype: the dtype of the keys, in place of `impl`.

    Returns:
      An array of keys of shape (...).

    Raises:
      DtypeError: the words are not of dtype uint32, or n is not the number of words of the
        generator.
      ValueError: `impl` names no generator.

    >>> key = random.key(42)
    >>> random.wrap_key_data(random.key_data(key)) == key
    Array(True, dtype=bool)
    """
    dtype = find_dtype(impl if dtype is None else dtype)
    aval = typeof(key_bits_array, "wrap_key_data")
    if aval.dtype != np.uint32 or aval.shape[-1:] != (dtype.words,):
        raise DtypeError(
            f"wrap_key_data: words of {dtype} must be u32[..., {dtype.words}]; got {aval}."
            + hint_generator(aval)
        )
    words = as_array(key_bits_array, "wrap_key_data")
    return random_wrap_p.apply(words, dtype=dtype)[0]


def clone(key: ArrayLike) -> Array:
    """Return copies of keys that may be used again.

    The copies have the same values, so they draw the same random numbers on purpose. `clone`
    matters only under the option `debug_key_reuse`, which otherwise raises an error when a key is
    used twice.

    Args:
      key: an array of keys of any shape, or their words.

    Returns:
      An array with the shape, the dtype and the values of the argument.

    Raises:
      DtypeError: the argument is neither a key nor words of keys.

    >>> key = random.key(42)
    >>> random.clone(key) == key
    Array(True, dtype=bool)
    """
    words = read_words("clone", key)
    if config.debug_key_reuse or isinstance(words.data, Tracer):  # in programs, hints look for it
        return wrap_like(key, random_clone_p.apply(words.data)[0], words.dtype)
    return require_alive(key) if is_typed(key) else words.data


@operation(static=("shape",), name="split")
def split_keys(key: Any, shape: tuple[int, ...]) -> Any:
    """`split`, its arguments in one form."""
    words = read_one_key("split", key)
    return wrap_like(key, split_words(words, shape), words.dtype)


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """Return new keys that are made from a key.

    Use it wherever random numbers are needed more than once: the new keys stand for independent
    streams. The old key must not be used again.

    Args:
      key: one random key.
      num: the number of new keys, or their shape, a tuple of integers. By default 2. It must be
        static: under `jit`, name it in `static_argnames`.

    Returns:
      An array of keys of shape (num,), or of the shape `num`. For a key in the form of raw words, a
      uint32 array with one more axis.

    Raises:
      ShapeError: `key` is an array of several keys (use `vmap`), or a size is negative.
      DtypeError: `key` is not a key.
      TracerIntegerConversionError: `num` is traced.

    >>> key, subkey = random.split(random.key(0))
    >>> random.split(key, (2, 3)).shape
    (2, 3)
    >>> print(random.split(random.PRNGKey(0)))
    [[4146024105  967050713]
     [2718843009 1272950319]]
    """
    return split_keys(
        key, shape=(num,) if type(num) is int and num >= 0 else shape_of("split", num)
    )


@functools.partial(number_operation, name="fold_in", whole=True)
def fold_in_key(key: Any, data: Any) -> Any:
    """`fold_in`, its arguments in one form."""
    words = read_one_key("fold_in", key)
    data = np.uint32(data) if type(data) is int else data
    aval = typeof(data, "fold_in")
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_bool(aval.dtype)):
        raise DtypeError(f"fold_in: data must be an integer; got {aval}. Hint: int(data).")
    if aval.shape:
        raise ShapeError(
            f"fold_in: data must be a scalar; got {aval}. "
            "Hint: vmap(random.fold_in, (None, 0))(key, data)."
        )
    number = convert(as_array(data, "fold_in"), np.dtype(np.uint32))
    return wrap_like(key, fold_words(words, number), words.dtype)


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Return a new key that is made from a key and an integer.

    It is for loops: fold the number of the step, or of the device, into a key instead of carrying a
    key along. Different integers give independent streams.

    Args:
      key: one random key.
      data: an integer scalar in [0, 2**32). It may be traced.

    Returns:
      A key with the shape and dtype of `key`.

    Raises:
      OverflowError: `data` is a Python integer outside of [0, 2**32).
      DtypeError: `data` is not an integer, or `key` is not a key.
      ShapeError: `data` is not a scalar, or `key` is an array of several keys. Use `vmap`.

    >>> key = random.PRNGKey(0)
    >>> print(random.fold_in(key, 1))
    [ 928981903 3453687069]
    >>> keys = weft.vmap(random.fold_in, (None, 0))(key, jnp.arange(3))
    >>> keys.shape
    (3, 2)
    """
    if type(data) is int:
        if not 0 <= data < 2**32:
            raise OverflowError(f"fold_in: data must be in [0, 2**32); got {data}.")
        if data >= 2**31:
            data = np.uint32(data)
    return fold_in_key(key, data)
