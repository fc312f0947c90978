"""Keys: made from seeds, split, folded; raw words or key arrays, for each of the generators.

Inside, keys are raw words with the generator they are for (`Words`). Bits and distributions are
next door.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.core.aval import is_valid_value, typeof
from weft.core.trace import Tracer
from weft.errors import DtypeError, ShapeError
from weft.numpy.fused import fused
from weft.numpy.keyed import Keyed, is_keyed, on_words
from weft.numpy.promotion import as_array, shape_of
from weft.options import config
from weft.primitives.bits import shift_right_logical
from weft.primitives.elementwise import bitwise_xor
from weft.primitives.layout import convert, reshape
from weft.primitives.random import (
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_split_p,
    rng_bit_generator,
)
from weft.pytrees import flatten, register_pytree_with_keys_class
from weft.xla.array import Array, put

__all__ = [
    "PRNGKey",
    "clone",
    "fold_in",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "split",
    "wrap_key_data",
]


class Generator(NamedTuple):
    """How a generator that users define works, on the words of one key (n,).

    `seed(integer)`, `split(key, shape)` and `fold_in(key, integer)` give words (..., n);
    `random_bits(key, bit_width, shape)` unsigned integers.
    """

    seed: Callable
    split: Callable
    random_bits: Callable
    fold_in: Callable


class KeyDtype:
    """The dtype of a key array: which generator its keys are for. Prints as `key<fry>`."""

    type: ClassVar = dtypes.prng_key
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
        return impl_dtype, (self.impl,)


IMPLS = {
    d.impl: d
    for d in (
        KeyDtype("threefry2x32", "fry", 2),
        KeyDtype("rbg", "rbg", 4),
        KeyDtype("unsafe_rbg", "urbg", 4),
    )
}


def impl_dtype(impl: Any = None) -> KeyDtype:
    """The dtype of the keys of a generator: that named, or the default."""
    if isinstance(impl, KeyDtype):
        return impl
    name = config.default_prng_impl if impl is None else impl
    if name not in IMPLS:
        raise ValueError(f"random: impl must be one of {', '.join(IMPLS)}; got {impl!r}.")
    return IMPLS[name]


class Words(NamedTuple):
    """One key: its words, uint32[n], and the dtype that says which generator they are for."""

    data: Any
    dtype: KeyDtype


@register_pytree_with_keys_class
class KeyArray(Keyed):
    """An array of random keys, which are no numbers: it is split, folded, indexed and sampled from.

    A pytree of one leaf, the words with a last axis of their own, so that it goes through `vmap`
    and `scan`, mapped over its first axes, and every other transformation.
    """

    __slots__ = ("_data", "dtype")

    def __init__(self, data: Any, dtype: KeyDtype):
        self._data, self.dtype = data, dtype

    def tree_flatten_with_keys(self) -> tuple:
        """The words, for pytrees."""
        return (("words", self._data),), self.dtype

    def tree_flatten(self) -> tuple:
        """The words, for pytrees."""
        return (self._data,), self.dtype

    @classmethod
    def tree_unflatten(cls, dtype: KeyDtype, children: Sequence) -> KeyArray:
        """The keys that these words are, for pytrees."""
        return cls(children[0], dtype)

    @property
    def words(self) -> Any:
        """The words of the keys, along a last axis."""
        return self._data

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes, without that of the words of a key."""
        return self._data.shape[:-1]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of keys."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len(): needs an array of keys; got one key.")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> KeyArray:
        index = index if isinstance(index, tuple) else (index,)
        if not any(i is Ellipsis for i in index):
            index = (*index, Ellipsis)
        return KeyArray(self._data[(*index, slice(None))], self.dtype)

    @property
    def at(self) -> KeyPlaces:
        """Keys in some places: `keys.at[i].set(key)`, `keys.at[i].get()`."""
        return KeyPlaces(self)

    def reshape(self, *shape: Any) -> KeyArray:
        """The same keys in another shape."""
        return jnp.reshape(self, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> KeyArray:
        """The same keys along one axis."""
        return jnp.ravel(self)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> KeyArray:
        """The same keys without axes of size 1."""
        return jnp.squeeze(self, axis)

    def transpose(self, *axes: Any) -> KeyArray:
        """The same keys with the axes in another order, by default reversed."""
        return jnp.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    def swapaxes(self, axis1: int, axis2: int) -> KeyArray:
        """The same keys with two axes in each other's place."""
        return jnp.swapaxes(self, axis1, axis2)

    def copy(self) -> KeyArray:
        """The same keys in a buffer of their own."""
        return jnp.copy(self)

    T = property(transpose, doc="The same keys, axes in reverse order.")
    itemsize = property(lambda self: self.dtype.itemsize, doc="Bytes of a key.")
    nbytes = property(lambda self: self.size * self.itemsize, doc="Bytes of all keys.")
    device = property(lambda self: self._data.device, doc="The device they are on.")
    committed = property(lambda self: self._data.committed, doc="Whether they are bound to it.")

    def devices(self) -> set:
        """The devices they are on."""
        return self._data.devices()

    def is_deleted(self) -> bool:
        """Whether they were deleted, or donated."""
        return self._data.is_deleted()

    def __eq__(self, other: Any) -> Any:
        """Which keys are the same."""
        if type(other) is not KeyArray or other.dtype is not self.dtype:
            return NotImplemented
        return jnp.all(self._data == other._data, -1)

    def __ne__(self, other: Any) -> Any:
        same = self.__eq__(other)
        return same if same is NotImplemented else ~same

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError(
            f"bool(): keys are no numbers; got {self.dtype}{list(self.shape)}. "
            "Hint: random.bernoulli(key)."
        )

    def block_until_ready(self) -> KeyArray:
        """Wait until the words are there."""
        self._data.block_until_ready()
        return self

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            f"random: keys are no numbers; got {self!r} where NumPy wants an array. "
            "Hint: jax.random.key_data(keys)."
        )

    def __repr__(self) -> str:
        if isinstance(self._data, Array) and not isinstance(self._data, Tracer):
            return f"Array({self.shape}, dtype={self.dtype}) overlaying:\n{self._data}"
        return f"KeyArray({self._data}, dtype={self.dtype})"


class KeyPlaces:
    """`keys.at`, to be indexed."""

    __slots__ = ("index", "keys")

    def __init__(self, keys: KeyArray, index: Any = None):
        self.keys, self.index = keys, index

    def __getitem__(self, index: Any) -> KeyPlaces:
        return KeyPlaces(self.keys, index)

    def get(self, **how: Any) -> KeyArray:
        """The keys in these places."""
        get = lambda x: x.at[self.index].get(**how)
        return on_words(get, *flatten(((self.keys,), {}), is_leaf=is_keyed))

    def set(self, keys: KeyArray, **how: Any) -> KeyArray:
        """All keys, with others in these places."""
        put_in = lambda x, y: x.at[self.index].set(y, **how)
        return on_words(put_in, *flatten(((self.keys, keys), {}), is_leaf=is_keyed))


# --- one key, or many, as words --------------------------------------------------------------


def words_of(op: str, keys: Any) -> Words:
    """Keys as words (..., n), raw ones as of the default generator."""
    if type(keys) is KeyArray:
        return Words(keys._data, keys.dtype)
    dtype = impl_dtype()
    if not is_valid_value(keys):
        raise DtypeError(
            f"{op}: key must be a random key; got a {type(keys).__name__}. "
            "Hint: random.key(0), or random.PRNGKey(0)."
        )
    aval = typeof(keys)
    if aval.dtype != np.uint32 or aval.shape[-1:] != (dtype.words,):
        raise DtypeError(
            f"{op}: key must be a random key, {dtype} or its words u32[{dtype.words}]; got {aval}."
            + (hint_of_words(aval) or " Hint: random.key(0), or random.PRNGKey(0).")
        )
    return Words(as_array(keys, op), dtype)


def hint_of_words(aval: Any) -> str:
    """The fix for words of another generator than was expected, if they are of one."""
    fitting = [d.impl for d in IMPLS.values() if aval.shape[-1:] == (d.words,)]
    if aval.dtype != np.uint32 or not fitting:
        return ""
    return f" Hint: random.wrap_key_data(words, impl={fitting[0]!r})."


def one_key(op: str, key: Any) -> Words:
    """The words of a single key."""
    words = words_of(op, key)
    shape = words.data.shape[:-1]
    if shape:
        raise ShapeError(
            f"{op}: takes one key; got keys of shape {shape}. Hint: vmap over the keys."
        )
    return words


def like_keys(keys: Any, data: Any, dtype: KeyDtype) -> Any:
    """New keys as the old ones are, raw or not."""
    return KeyArray(data, dtype) if type(keys) is KeyArray else data


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
        return random_split_p.bind(data, shape=shape, partitionable=partitionable)[0]
    halves = reshape(data, (2, 2))
    (made,) = random_split_p.bind(halves, shape=shape, partitionable=partitionable)
    return reshape(jnp.moveaxis(made, 0, -2), (*shape, 4))


def pair(key: Words, count: int = 2) -> list[Words]:
    """Several new keys from one."""
    made = split_words(key, (count,))
    return [Words(made[i], key.dtype) for i in range(count)]


def fold_words(key: Words, data: Any) -> Any:
    """The words of a key made of a key and a uint32."""
    if key.dtype.rules is not None:
        return key.dtype.rules.fold_in(key.data, data)
    if key.dtype.impl == "threefry2x32":
        return random_fold_in_p.bind(key.data, data)[0]
    if key.dtype.impl == "rbg":
        halves = reshape(key.data, (2, 2))
        (made,) = random_fold_in_p.bind(halves, jnp.broadcast_to(data, (2,)))
        return reshape(made, (4,))
    _, rows = rng_bit_generator(seed_words(data, key.dtype), (10, 4))
    return bitwise_xor(key.data, rows[-1])


def bits_words(key: Words, shape: tuple[int, ...], width: int) -> Any:
    """Unsigned integers of a width, of a shape."""
    if key.dtype.rules is not None:
        return key.dtype.rules.random_bits(key.data, width, shape)
    if key.dtype.impl == "threefry2x32":
        partitionable = bool(config.threefry_partitionable)
        return random_bits_p.bind(
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


def seeded(op: str, seed: Any, dtype: KeyDtype) -> Any:
    """The words of the key of a seed that a user gives."""
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


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """A key from an integer, as raw words: uint32[2], or [4] of the generators other than Threefry.

    Without enable_x64 the lower 32 bits of the seed count.

    >>> from weft import random
    >>> print(random.PRNGKey(42))
    [ 0 42]
    """
    return seeded("PRNGKey", seed, impl_dtype(impl))


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> KeyArray:
    """A key from an integer, as a key array of shape (): no numbers to compute with by mistake.

    >>> from weft import random
    >>> random.key(42).dtype
    key<fry>
    """
    dtype = impl_dtype(impl if dtype is None else dtype)
    return KeyArray(seeded("key", seed, dtype), dtype)


def key_dtype(impl_spec: Any = None) -> KeyDtype:
    """The dtype of the key arrays of a generator, by default of `config.default_prng_impl`."""
    return impl_dtype(impl_spec)


def key_data(keys: Any) -> Any:
    """The raw words of keys, uint32[..., n]."""
    return words_of("key_data", keys).data


def key_impl(keys: Any) -> str | KeyDtype:
    """The generator that keys are for, by its name, which `key` takes; one of your own as it is."""
    dtype = words_of("key_impl", keys).dtype
    return dtype.impl if dtype.rules is None else dtype


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> KeyArray:
    """The key array, of shape (...), of raw words uint32[..., n]."""
    dtype = impl_dtype(impl if dtype is None else dtype)
    aval = typeof(key_bits_array, "wrap_key_data")
    if aval.dtype != np.uint32 or aval.shape[-1:] != (dtype.words,):
        raise DtypeError(
            f"wrap_key_data: words of {dtype} must be u32[..., {dtype.words}]; got {aval}."
            + hint_of_words(aval)
        )
    return KeyArray(as_array(key_bits_array, "wrap_key_data"), dtype)


def clone(key: Any) -> Any:
    """The same keys, which may be used again where `config.debug_key_reuse` looks for that."""
    words = words_of("clone", key)
    data = random_clone_p.bind(words.data)[0] if config.debug_key_reuse else words.data
    return like_keys(key, data, words.dtype)


@fused(static=("shape",), name="split")
def split_keys(key: Any, shape: tuple[int, ...]) -> Any:
    """`split`, its arguments in one form."""
    words = one_key("split", key)
    return like_keys(key, split_words(words, shape), words.dtype)


def split(key: Any, num: Any = 2) -> Any:
    """New keys from one, which must not be used again: `num` of them, or of a shape.

    >>> from weft import random
    >>> print(random.split(random.PRNGKey(0)))
    [[4146024105  967050713]
     [2718843009 1272950319]]
    """
    return split_keys(
        key, shape=(num,) if type(num) is int and num >= 0 else shape_of("split", num)
    )


@fused(name="fold_in")
def fold_in_key(key: Any, data: Any) -> Any:
    """`fold_in`, its arguments in one form."""
    words = one_key("fold_in", key)
    aval = typeof(data, "fold_in")
    if not (dtypes.is_integer(aval.dtype) or dtypes.is_bool(aval.dtype)):
        raise DtypeError(f"fold_in: data must be an integer; got {aval}. Hint: int(data).")
    if aval.shape:
        raise ShapeError(
            f"fold_in: data must be a scalar; got {aval}. "
            "Hint: vmap(random.fold_in, (None, 0))(key, data)."
        )
    number = convert(as_array(data, "fold_in"), np.dtype(np.uint32))
    return like_keys(key, fold_words(words, number), words.dtype)


def fold_in(key: Any, data: Any) -> Any:
    """A key made of a key and an integer of 32 bits: another for each integer.

    >>> from weft import random
    >>> print(random.fold_in(random.PRNGKey(0), 1))
    [ 928981903 3453687069]
    """
    if type(data) is int:
        if not 0 <= data < 2**32:
            raise OverflowError(f"fold_in: data must be in [0, 2**32); got {data}.")
        data = np.uint32(data)
    return fold_in_key(key, data)
