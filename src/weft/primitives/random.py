"""Random bits from counters and keys: Threefry, and XLA's own generators.

Keys are raw words here: uint32[..., 2] of Threefry. Key arrays, the generators that are made of
these, and distributions are weft.random's.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.facts import Cost, Elements
from weft.core.primitive import Primitive
from weft.errors import DtypeError, ShapeError
from weft.primitives.elementwise import (
    Costly,
    Elementwise,
    add,
    match_numbers,
    mul,
    neg,
    square,
    unary_op,
)
from weft.primitives.expr import Expr, concatenate_exprs, count_along, scalar
from weft.primitives.families import Identity, check_shape, index_tuple
from weft.primitives.layout import LeadingBatch, literal
from weft.primitives.reshard import lay_out
from weft.primitives.transcendental import exp
from weft.util import SymbolicSize, has_symbolic_size
from weft.xla.typing import Array, ArrayLike, DTypeLike

U32 = np.dtype(np.uint32)

# The rotations of words in each of four rounds, alternating (Salmon et al., SC 2011, table 2).
TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def threefry(key: Sequence[Expr], counter: Sequence[Expr]) -> tuple[Expr, Expr]:
    """Twenty rounds of Threefry-2x32, on words of one shape."""
    parts = (*key, key[0] ^ key[1] ^ PARITY)
    x, y = counter[0] + parts[0], counter[1] + parts[1]
    for i in range(5):
        for turn in TURNS[i % 2]:
            x = x + y
            turned = y.apply("shift_left", turn) | y.apply("shift_right_logical", 32 - turn)
            y = x ^ turned
        x, y = x + parts[(i + 1) % 3], y + parts[(i + 2) % 3] + (i + 1)
    return x, y


def round_up_size(size: int) -> int:
    """A size not below that the compiler makes vectors for; for an odd one it does not."""
    return size if isinstance(size, SymbolicSize) or size < 256 else -(-size // 64) * 64


def call_apart(
    hlo: Any, name: str, args: Sequence[Any], outs: Sequence[Any], write: Callable
) -> list:
    """Return the results of a function that a CPU's compiler must not inline.

    The function is written once for each module. If it were fused with its consumers, the words
    would be computed several times, and one at a time.
    """
    if hlo.platform != "cpu":
        return write(*args)
    key = (name, *(x.aval for x in args), *outs)
    function = hlo.memo.get(key)
    if function is None:
        function = hlo.memo[key] = hlo.function(name, [x.aval for x in args], write)
    return hlo.call(function, args, outs, {"mhlo.frontend_attributes": '{inlineable = "false"}'})


def make_words(hlo: Any, keys: Any, size: int, name: str, counts: Callable) -> list[Expr]:
    """Return Threefry of each key (..., 2) at two counts (n,) each: two words (..., size) each.

    `counts` computes the counts from 0, 1, ..., n - 1. n is `size`, rounded up to whole vectors.
    """
    lead, count = keys.aval.shape[:-1], round_up_size(size)
    out = ShapedArray((*lead, count), U32)

    def write(keys: Any) -> list:
        words = [split_word(hlo, keys, i).broadcast(out.shape) for i in range(2)]
        places = counts(count_along(hlo, ShapedArray((count,), U32), 0))
        return [
            x.value for x in threefry(words, [c.broadcast(out.shape, [len(lead)]) for c in places])
        ]

    made = call_apart(hlo, name, [keys], [out, out], write)
    return [Expr(hlo, x).slice_axis(0, size) for x in made]


def split_word(hlo: Any, keys: Any, i: int) -> Expr:
    """Word i of each key."""
    return Expr(hlo, keys).slice_axis(i, i + 1).reshape(keys.aval.shape[:-1])


def make_words_by_place(hlo: Any, keys: Any, size: int) -> list[Expr]:
    """Two words for each key and place, made of (0, place)."""
    return make_words(hlo, keys, size, "threefry2x32", lambda places: (places.like(0), places))


def make_words_by_halves(hlo: Any, keys: Any, size: int) -> list[Expr]:
    """Two lots of words for each key: counts 0 .. size - 1 are cut in two and paired.

    If there is an odd one, the last pair lacks a count, which is 0.
    """
    half = (size + 1) // 2

    def pair(places: Expr) -> tuple[Expr, Expr]:
        other = places + half
        if size % 2 != 0:
            other = other.compare("EQ", size).select(other.like(0), other)
        return places, other

    return make_words(hlo, keys, half, f"threefry2x32_{size}", pair)


def make_line(hlo: Any, keys: Any, size: int) -> Expr:
    """`size` words for each key, in the order of their counts, which are paired by halves."""
    join = lambda keys: concatenate_exprs(make_words_by_halves(hlo, keys, size), -1)
    write = lambda keys: [join(keys).slice_axis(0, size).value]
    out = ShapedArray((*keys.aval.shape[:-1], size), U32)
    return Expr(hlo, *call_apart(hlo, f"random_line_{size}", [keys], [out], write))


def join_words(high: Expr, low: Expr) -> Expr:
    """Return 64-bit words, given their upper and lower 32 bits."""
    high, low = (x.convert(np.dtype(np.uint64)) for x in (high, low))
    return high.apply("shift_left", 32) | low


class FromKeys(LeadingBatch):
    """A family: values computed from keys (..., n); axes before the last are axes of keys."""

    elements = Elements.CHOSEN
    cost = Cost.TRANSCENDENTAL

    core_rank = 0


def check_keys(op: str, keys: ShapedArray, sizes: tuple[int, ...]) -> None:
    """Raise unless these are words of keys."""
    if keys.dtype != U32 or keys.shape[-1:] not in [(n,) for n in sizes]:
        listed = " or ".join(f"u32[..., {n}]" for n in sizes)
        raise DtypeError(f"{op}: keys must be {listed}; got {keys}.")


def check_count(op: str, shape: tuple[int, ...], limit: int = 2**32) -> None:
    """Raise where counts of 32 bits do not reach."""
    if not has_symbolic_size(shape) and math.prod(shape) >= limit:
        raise ShapeError(
            f"{op}: a key makes fewer than {limit} elements at once; got shape {shape}. "
            "Hint: split the key."
        )


class RandomBits(FromKeys):
    """Unsigned integers of `bit_width` bits for each key of Threefry, of the given shape.

    If `partitionable`, each element is computed from its own index only, (0, i). Otherwise the
    indices 0, 1, ... of 32-bit words are split into two halves and paired. Shapes: (..., 2) to
    (..., *shape).
    """

    name = "random_bits"
    elements = Elements.RANDOM

    def abstract_eval(self, keys, *, bit_width, shape, partitionable):
        check_keys(self.name, keys, (2,))
        check_count(self.name, shape, 2**31 if bit_width == 64 else 2**32)
        return [ShapedArray((*keys.shape[:-1], *shape), np.dtype(f"uint{bit_width}"))]

    def lower(self, hlo, keys, *, bit_width, shape, partitionable):
        params = dict(bit_width=bit_width, shape=shape, partitionable=partitionable)
        (out,) = self.abstract_eval(keys.aval, **params)
        if not out.size:
            return [hlo.constant(0, out)]
        bits = self.line(hlo, keys, math.prod(shape), bit_width, partitionable)
        return [bits.reshape(out.shape).value]

    def line(self, hlo, keys, size, bit_width, partitionable):
        """The integers (..., size) of keys (..., 2)."""
        dtype = np.dtype(f"uint{bit_width}")
        if partitionable:
            high, low = make_words_by_place(hlo, keys, size)
            return join_words(high, low) if bit_width == 64 else (high ^ low).convert(dtype)
        if bit_width == 64:
            return join_words(*make_words_by_halves(hlo, keys, 2 * size))
        pieces = 32 // bit_width
        bits = make_line(hlo, keys, -(-size // pieces))
        if pieces > 1:
            *lead, count = bits.shape
            bits = bits.bitcast(dtype, (*lead, count, pieces)).reshape((*lead, count * pieces))
        return bits.slice_axis(0, size)


class RandomSplit(FromKeys):
    """New keys for each key of Threefry. Shapes: (..., 2) to (..., *shape, 2)."""

    name = "random_split"
    elements = Elements.RANDOM

    def abstract_eval(self, keys, *, shape, partitionable):
        check_keys(self.name, keys, (2,))
        check_count(self.name, shape, 2**31)
        return [ShapedArray((*keys.shape[:-1], *shape, 2), U32)]

    def lower(self, hlo, keys, *, shape, partitionable):
        (out,) = self.abstract_eval(keys.aval, shape=shape, partitionable=partitionable)
        if not out.size:
            return [hlo.constant(0, out)]
        size = math.prod(shape)
        lead = keys.aval.shape[:-1]
        flat = ShapedArray((*lead, 2 * size), U32)

        def write(keys: Any) -> list:
            if not partitionable:
                return [make_line(hlo, keys, 2 * size).value]
            words = make_words_by_place(hlo, keys, size)
            columns = [x.reshape((*lead, size, 1)) for x in words]
            return [concatenate_exprs(columns, -1).reshape(flat.shape).value]

        name = "random_split_by_place" if partitionable else "random_split"
        (made,) = call_apart(hlo, name, [keys], [flat], write)
        return [Expr(hlo, made).reshape(out.shape).value]


class RandomFoldIn(FromKeys):
    """A key made of each key of Threefry and a word. Shapes: (..., 2), (...) to (..., 2)."""

    name = "random_fold_in"

    def abstract_eval(self, keys, data):
        check_keys(self.name, keys, (2,))
        if data.dtype != U32 or data.shape != keys.shape[:-1]:
            raise ShapeError(f"{self.name}: must have a u32 for each key; got {keys}, {data}.")
        return [keys.strong()]

    def lower(self, hlo, keys, data):
        if not keys.aval.size:
            return [keys]
        count = Expr(hlo, data).reshape((*data.aval.shape, 1))
        key = [Expr(hlo, keys).slice_axis(i, i + 1) for i in range(2)]
        return [concatenate_exprs(threefry(key, (count.like(0), count)), -1).value]


class RandomClone(Identity):
    """The same words, which count as keys of their own where keys used twice are looked for."""

    name = "random_clone"


class Threefry2x32(Costly):
    """The two words that Threefry-2x32 makes of a key (k1, k2) and a counter (x1, x2).

    Shapes: equal, scalars excepted. Dtypes: uint32. Source: Salmon et al., SC 2011; 20 rounds.
    """

    elements = Elements.CHOSEN
    element = None  # it has two results
    multiple_results = True

    def abstract_eval(self, *avals):
        (out,) = super().abstract_eval(*avals)
        if out.dtype != U32:
            raise DtypeError(
                f"{self.name}: operands must be uint32; got {', '.join(map(str, avals))}."
            )
        return [out, out]

    def lower(self, hlo, *values):
        out, _ = self.abstract_eval(*(v.aval for v in values))
        k1, k2, x1, x2 = (Expr(hlo, hlo.spread(v, out)) for v in values)
        return [x.value for x in threefry((k1, k2), (x1, x2))]

    def batch(self, axis, args, dims):
        outs, (d,) = super().batch(axis, args, dims)
        return outs, [d, d]


random_bits_p, random_split_p, random_fold_in_p = RandomBits(), RandomSplit(), RandomFoldIn()
random_clone_p = RandomClone()
threefry2x32_p = Threefry2x32("threefry2x32", "", [None] * 4, takes="integer")

# What samples are defined by is XLA's own: weft's erf_inv, log1p and tan are exacter.
fast_erf_inv_p = Elementwise(
    "erf_inv",
    "chlo.erf_inv",
    [lambda t, y, x: mul(t, mul(math.sqrt(math.pi) / 2, exp(square(y))))],
    takes="float",
    doc="The x whose error function is given, to some ten units in the last place.",
)
fast_log1p_p = Elementwise(
    "log1p", "log_plus_one", [lambda t, y, x: mul(t, exp(neg(y)))], takes="float", doc="log(1 + x)."
)
fast_tan_p = Elementwise(
    "tan",
    "tan",
    [lambda t, y, x: mul(t, add(1, square(y)))],
    takes="float",
    doc="""Return the tangent.

    The operand is in radians.

    >>> jnp.array([0.0, 1.0])
    [0.    1.557]
    """,
)
fast_erf_inv_p.cost = fast_log1p_p.cost = fast_tan_p.cost = Cost.TRANSCENDENTAL
fast_erf_inv = unary_op(fast_erf_inv_p)
fast_log1p = unary_op(fast_log1p_p)
fast_tan = unary_op(fast_tan_p)


# --- XLA's generators -----------------------------------------------------------------------


class RandomAlgorithm(enum.IntEnum):
    """The generator of the bits of `lax.rng_bit_generator`.

    Attributes:
      RNG_DEFAULT: the choice of the platform.
      RNG_THREE_FRY: ThreeFry, a counter-based generator.
      RNG_PHILOX: Philox, a counter-based generator.

    >>> key = jnp.arange(4, dtype=jnp.uint32)
    >>> _, bits = lax.rng_bit_generator(key, (3,), algorithm=lax.RandomAlgorithm.RNG_PHILOX)
    >>> bits.shape
    (3,)
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


class RngBitGenerator(FromKeys):
    """Bits from XLA's own generator, and the state of each key afterwards.

    Shapes: keys (..., n) of 32-bit words, to (..., n) and (..., *shape), where n = 4. Source:
    StableHLO, rng_bit_generator.
    """

    name = "rng_bit_generator"
    elements = Elements.RANDOM
    multiple_results = True

    def abstract_eval(self, keys, *, shape, dtype, algorithm):
        check_keys(self.name, keys, (4,))
        if dtype not in (np.uint8, np.uint16, np.uint32, np.uint64):
            raise DtypeError(f"{self.name}: dtype must be of unsigned integers; got {dtype}.")
        check_shape(self.name, shape)
        return [keys.strong(), ShapedArray((*keys.shape[:-1], *shape), dtype)]

    def lower(self, hlo, keys, *, shape, dtype, algorithm):
        words = keys.aval.shape[-1]
        count = math.prod(keys.aval.shape[:-1])
        after, bits = self.abstract_eval(keys.aval, shape=shape, dtype=dtype, algorithm=algorithm)
        if not bits.size:
            return [keys, hlo.constant(0, bits)]
        rows = Expr(hlo, keys).reshape((count, words))
        if count > 4 or not count:
            made = self.in_loop(hlo, rows, (shape, dtype, algorithm))
        else:
            each = [self.of_one(take_row(rows, i), shape, dtype, algorithm) for i in range(count)]
            made = [concatenate_exprs(xs, 0) for xs in zip(*each, strict=True)]
        return [x.reshape(a.shape).value for x, a in zip(made, (after, bits), strict=True)]

    def of_one(self, key, shape, dtype, algorithm):
        """The key (1, n) after, and the bits (1, *shape)."""
        hlo, half = key.hlo, key.shape[-1] // 2
        key = key.reshape((half, 2)).bitcast(np.uint64, (half,))
        name = ("DEFAULT", "THREE_FRY", "PHILOX")[algorithm]
        after, bits = hlo.op(
            "stablehlo.rng_bit_generator",
            [key.value],
            [key.aval, ShapedArray(shape, dtype)],
            rng_algorithm=f"#stablehlo<rng_algorithm {name}>",
        )
        after = Expr(hlo, after).bitcast(U32, (half, 2)).reshape((1, 2 * half))
        return after, Expr(hlo, bits).reshape((1, *shape))

    def in_loop(self, hlo, rows, params):
        """The same for many keys, one after another."""
        count, (shape, dtype, _) = rows.shape[0], params
        bits = ShapedArray((count, *shape), dtype)
        zeros = [hlo.constant(0, rows.aval), hlo.constant(0, bits)]

        def body(i: Any, *xs: Any) -> list:
            keys, *outs = (Expr(hlo, x) for x in xs)
            at, zero = Expr(hlo, i), scalar(hlo, 0)
            made = self.of_one(take_row(keys, at), *params)
            after = [
                x.update_at(new, [at, *[zero] * (len(x.shape) - 1)]).value
                for x, new in zip(outs, made, strict=True)
            ]
            return [(at + 1).value, xs[0], *after]

        more = lambda i, *_: [(Expr(hlo, i) < count).value]
        made = hlo.while_loop([scalar(hlo, 0).value, rows.value, *zeros], more, body)[2:]
        return [Expr(hlo, x) for x in made]


def take_row(x: Expr, i: Any) -> Expr:
    """Row i, a number or an Expr, of a matrix, as a matrix of one row."""
    i = i if isinstance(i, Expr) else scalar(x.hlo, i)
    return x.slice_at([i, scalar(x.hlo, 0)], (1, x.shape[1]))


class RngUniform(Primitive):
    """Numbers from [a, b) by XLA's stateful generator: no two runs are the same.

    Shapes: a and b scalars, to `shape`. Dtypes: floats. Source: StableHLO, rng.
    """

    name = "rng_uniform"
    elements = Elements.CHOSEN
    cost = Cost.TRANSCENDENTAL

    def abstract_eval(self, a, b, *, shape):
        if a.dtype != b.dtype or a.shape or b.shape or not dtypes.is_float(a.dtype):
            raise DtypeError(f"{self.name}: a and b must be float scalars; got {a}, {b}.")
        check_shape(self.name, shape)
        return [ShapedArray(shape, a.dtype)]

    def lower(self, hlo, a, b, *, shape):
        size = hlo.constant(
            np.array(shape, np.int64), ShapedArray((len(shape),), np.dtype(np.int64))
        )
        return hlo.op(
            "stablehlo.rng",
            [a, b, size],
            [ShapedArray(shape, a.aval.dtype)],
            rng_distribution="#stablehlo<rng_distribution UNIFORM>",
        )


rng_bit_generator_p, rng_uniform_p = RngBitGenerator(), RngUniform()


def rng_bit_generator(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: Any = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """Generate random bits with XLA's generator, and return the next state of the generator.

    The bits depend on the platform and on the version of XLA. `random.bits` makes the same bits
    everywhere.

    Args:
      key: the state: an array of four uint32. Axes in front are a batch.
      shape: the shape of the bits, a sequence of ints.
      dtype: an unsigned integer dtype. The default is uint32.
      algorithm: a `RandomAlgorithm`. The default is the choice of the platform.
      out_sharding: the sharding of the bits over explicit axes of a mesh. None leaves them unsplit.

    Returns:
      A pair: the next state, of the shape and dtype of `key`, and the bits, of the given shape and
      dtype.

    >>> state = jnp.arange(4, dtype=jnp.uint32)
    >>> state, bits = lax.rng_bit_generator(state, (2, 3))
    >>> bits.shape, bits.dtype
    ((2, 3), dtype('uint32'))
    """
    if algorithm not in tuple(RandomAlgorithm):
        raise ValueError(
            f"rng_bit_generator: algorithm must be one of {', '.join(map(str, RandomAlgorithm))}; "
            f"got {algorithm!r}."
        )
    key, bits = rng_bit_generator_p.apply(
        key,
        shape=index_tuple(shape, "rng_bit_generator", "shape"),
        dtype=dtypes.canonicalize(dtype, "rng_bit_generator"),
        algorithm=RandomAlgorithm(algorithm),
    )
    return key, lay_out("rng_bit_generator", bits, out_sharding)


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Sample from the interval [a, b) with XLA's stateful generator.

    Each call gives other numbers, and they cannot be reproduced. Use `random.uniform` unless that
    is wanted.

    Args:
      a: a scalar, the lower end of the interval.
      b: a scalar of the same dtype, the upper end.
      shape: the shape of the result, a sequence of ints.

    Returns:
      An array of that shape and of the dtype of `a`.

    >>> x = lax.rng_uniform(0.0, 1.0, (3,))
    >>> x.shape, bool((0 <= x).all() and (x < 1).all())
    ((3,), True)
    """
    a, b = match_numbers(a, b)
    if isinstance(a, float | int):
        a, b = literal(float(a), np.dtype(np.float32)), literal(float(b), np.dtype(np.float32))
    return rng_uniform_p.apply(a, b, shape=index_tuple(shape, "rng_uniform", "shape"))[0]
