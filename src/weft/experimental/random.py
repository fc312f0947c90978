"""A generator with state, as NumPy has: `rng = stateful_rng(0)`, then `rng.normal(size=3)`.

Its key is constant. A reference counts the draws (docs/references.md), also in a jitted function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weft import random
from weft.core.ref import Ref
from weft.core.trace import is_eager
from weft.numpy.creation import asarray, zeros
from weft.numpy.refs import new_ref
from weft.pytrees import register_dataclass
from weft.util import list_public

__all__ = ["StatefulPRNG", "stateful_rng"]
__dir__ = list_public(__name__)


def take_bounds(size: Any, *bounds: Any) -> tuple[tuple[int, ...], list]:
    """Return the shape to draw, by default the shape of the bounds, and the bounds as arrays."""
    arrays = [asarray(b) for b in bounds]
    shape = np.broadcast_shapes(*[b.shape for b in arrays])
    return shape if size is None else as_shape(size), arrays


def as_shape(size: Any) -> tuple[int, ...]:
    """A size as a shape: None is a scalar."""
    return () if size is None else tuple(np.atleast_1d(size).tolist())


@dataclass
class StatefulPRNG:
    """A generator of random numbers with state, the result of `stateful_rng`.

    Each method that draws increments a counter, so that the next call gives other numbers. The
    methods `random`, `uniform`, `normal` and `integers` are like the methods of NumPy's
    `Generator`. `key` gives a key for the functions of `weft.random`. `spawn` and `split` make
    independent generators.

    `split` is for `vmap`: each index of the mapped axis gets a generator.

    >>> rng = stateful_rng(0)
    >>> rng.normal(loc=10.0, size=(2, 3)).shape
    (2, 3)
    >>> random.permutation(rng.key(), 5).shape
    (5,)
    >>> weft.vmap(lambda r: r.uniform())(rng.split(4)).shape
    (4,)
    """

    _base_key: Any
    _counter: Ref

    def key(self, shape: Any = ()) -> Any:
        """A new key, or an array of them."""
        key = random.fold_in(self._base_key, self._counter[...])
        self._counter[...] += 1
        return random.split(key, shape) if as_shape(shape) else key

    def random(self, size: Any = None, dtype: Any = float) -> Any:
        """Floats of [0, 1), of shape `size`."""
        return self.uniform(size=size, dtype=dtype)

    def uniform(self, low: Any = 0, high: Any = 1, size: Any = None, *, dtype: Any = float) -> Any:
        """Draw floats from [low, high) of shape `size`, by default the shape of the bounds."""
        shape, (low, high) = take_bounds(size, low, high)
        return random.uniform(self.key(), shape, dtype, minval=low, maxval=high)

    def normal(self, loc: Any = 0, scale: Any = 1, size: Any = None, *, dtype: Any = float) -> Any:
        """Numbers of the normal distribution around `loc`, of standard deviation `scale`."""
        shape, (loc, scale) = take_bounds(size, loc, scale)
        return loc + random.normal(self.key(), shape, dtype) * scale

    def integers(self, low: Any, high: Any = None, size: Any = None, *, dtype: Any = int) -> Any:
        """Integers of [low, high), or of [0, low) without `high`."""
        shape, (low, high) = take_bounds(size, *((0, low) if high is None else (low, high)))
        return random.randint(self.key(), shape, low, high, dtype)

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Generators whose numbers are independent of this one's and of each other's."""
        return [StatefulPRNG(self.key(), new_ref(0)) for _ in range(n_children)]

    def split(self, num: Any) -> StatefulPRNG:
        """Return an object that holds `num` generators, to be mapped by `vmap`."""
        shape = as_shape(num)
        return StatefulPRNG(self.key(shape), new_ref(zeros(shape, int)))


register_dataclass(StatefulPRNG, data_fields=["_base_key", "_counter"], meta_fields=[])


def stateful_rng(seed: Any = None, *, impl: str | None = None) -> StatefulPRNG:
    """Return a generator of random numbers with state.

    It is for programs that are written as with NumPy's `default_rng`. A reference holds the number
    of draws. The generator may be an argument of functions, and functions may close over it. It
    cannot be a result or a carry of a function under `jit`, as references cannot.

    Args:
      seed: an integer, or an integer scalar array. If it is None, the default, the system provides
        a seed. A function that is transformed must pass one: it is traced once, so that every call
        of the program would have the same seed.
      impl: the name of the generator, `"threefry2x32"`, `"rbg"` or `"unsafe_rbg"`. None, the
        default, is the generator that `random.key` has by default.

    Returns:
      A `StatefulPRNG`.

    Raises:
      ValueError: `impl` is not the name of a generator.
      DtypeError: `seed` is not a number.
      TypeError: there is no seed, in a function that is transformed.

    >>> rng = stateful_rng(42)
    >>> first, second = rng.uniform(), weft.jit(rng.uniform)()
    >>> bool(first == second), int(rng._counter[...])
    (False, 2)
    """
    if seed is None:
        if not is_eager():
            raise TypeError(
                "stateful_rng: a function that is transformed must pass a seed; got None. "
                "Hint: make the generator outside, or pass the seed as an argument."
            )
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))
