"""Random index expressions, and their meaning: NumPy's own indexing, on a padded array.

An index out of bounds has no meaning in NumPy. The references here append an element to each axis,
and an index out of bounds refers to it.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

import weft.numpy as jnp

SHAPES = [(5,), (3, 4), (2, 3, 4), (2, 1, 3, 2), (0, 3), ()]
ARRAY_SHAPES = [(), (1,), (2,), (3,), (2, 1), (1, 3), (2, 3), (0,)]
DTYPES = [np.dtype(name) for name in ["int32", "int64", "int16", "int8", "uint8", "uint32"]]


class Entry(NamedTuple):
    """An entry of an index, and the first axis that it is for.

    `form` says how weft gets it: "static" as a Python value, "constant" as an Array, "array" as an
    argument, "list" as a list of scalars that are arguments.
    """

    value: Any
    form: str
    axis: int


class Expression(NamedTuple):
    """An index of arrays of `shape`."""

    shape: tuple[int, ...]
    entries: tuple[Entry, ...]

    @property
    def arrays(self) -> list[np.ndarray]:
        """The arguments of a function that uses the index."""
        return [e.value for e in self.entries if e.form in ("array", "list")]

    def fill(self, arrays: Iterable[Any]) -> Any:
        """The index as weft is given it, with these arguments."""
        rest = iter(arrays)
        index = tuple([fill_entry(e, rest) for e in self.entries])
        return index[0] if len(index) == 1 and type(index[0]) is not list else index

    def clamp(self) -> tuple:
        """The index as NumPy takes it, with integers moved inside the axes."""
        move = lambda v, n: np.clip(np.int64(v), -n, n - 1) if is_integer(v) else v
        return tuple([move(e.value, self.size_at(e)) for e in self.entries])

    def pad(self) -> tuple:
        """The index of an array with one more element along each axis: the last, if outside."""
        parts = [part for e in self.entries for part in self.pad_entry(e)]
        if any(e.value is Ellipsis for e in self.entries):
            return tuple(parts)
        return *parts, *[slice(0, n) for n in self.shape[count_axes(self.entries) :]]

    def pad_entry(self, e: Entry) -> list:
        """The entries of `pad` for an entry."""
        v, n = e.value, self.size_at(e)
        if v is Ellipsis:
            count = len(self.shape) - count_axes(self.entries)
            return [slice(0, n) for n in self.shape[e.axis :][:count]] or [v]
        if is_integer(v):
            v = np.int64(v)
            return [np.where((v < -n) | (v >= n), n, np.where(v < 0, v + n, v)).astype(int)]
        if isinstance(v, slice):
            start, stop, step = v.indices(n)
            if not range(start, stop, step):
                return [slice(0, 0)]
            return [slice(start, None if stop < 0 else stop, step)]
        return [np.pad(v, [(0, 1)] * v.ndim)] if isinstance(v, np.ndarray) else [v]

    def size_at(self, e: Entry) -> int:
        """The size of the axis that an entry is for."""
        return (*self.shape, 0)[e.axis]

    def __str__(self) -> str:
        return f"x{self.shape}[{', '.join(f'{e.form} {e.value!r}' for e in self.entries)}]"


def is_integer(v: Any) -> bool:
    """Return True if an entry is a number or an array of integers."""
    return type(v) is int or (isinstance(v, np.ndarray | np.generic) and v.dtype.kind in "iu")


def count_axes(entries: Iterable[Entry]) -> int:
    """The number of axes that entries stand for, except for `...`."""
    ranks = [e.value.ndim if is_mask(e.value) else 1 for e in entries if takes_axes(e.value)]
    return sum(ranks)


def is_mask(v: Any) -> bool:
    """Return True if an entry is an array of bools."""
    return isinstance(v, np.ndarray) and v.dtype == bool


def takes_axes(v: Any) -> bool:
    """Return True if an entry is for axes of the array."""
    return v is not None and v is not Ellipsis and type(v) is not bool


def fill_entry(e: Entry, arrays: Iterator[Any]) -> Any:
    """An entry as weft is given it."""
    if e.form in ("array", "list"):
        x = next(arrays)
        return spell(x) if e.form == "list" else x
    return jnp.array(e.value) if e.form == "constant" else e.value


def spell(x: Any) -> Any:
    """An array, or a tracer, as nested lists of scalars."""
    return [spell(x[i]) for i in range(x.shape[0])] if x.ndim else x


# --- random ones ------------------------------------------------------------------------------


def random_expression(rng: np.random.Generator, reach: int = 0, masks: bool = True) -> Expression:
    """An index that NumPy takes, with integers in arrays up to `reach` out of bounds."""
    while True:
        shape = SHAPES[rng.integers(len(SHAPES))]
        found = Expression(shape, tuple(random_entries(rng, shape, reach, masks)))
        try:
            np.zeros(shape)[found.clamp()]
        except IndexError:  # its arrays do not broadcast together, or an axis is empty
            continue
        return found


def random_entries(
    rng: np.random.Generator, shape: tuple[int, ...], reach: int, masks: bool
) -> Iterator[Entry]:
    """Entries for some leading axes, and behind an Ellipsis for trailing ones."""
    total = int(rng.integers(len(shape) + 1))
    dots = int(rng.integers(total + 1)) if rng.random() < 0.5 else -1
    axis = used = 0
    while True:
        if rng.random() < 0.15:
            yield Entry(None, "static", axis)
        if rng.random() < 0.03:
            yield Entry(bool(rng.integers(2)), "static", axis)
        if used == dots:
            yield Entry(..., "static", axis)
            axis += len(shape) - total
        if used >= total:
            return
        left = (dots if used < dots else total) - used
        e = random_entry(rng, shape, axis, reach, left if masks else 0)
        yield e
        taken = count_axes([e])
        axis, used = axis + taken, used + taken


def random_entry(
    rng: np.random.Generator, shape: tuple[int, ...], axis: int, reach: int, left: int
) -> Entry:
    """An entry for an axis, or a mask for at most `left` axes."""
    n = shape[axis]
    kind = rng.choice(["slice", "number", "array", "mask"], p=[0.35, 0.2, 0.35, 0.1])
    if kind == "mask" and left:
        rank = int(rng.integers(1, min(left, 2) + 1))
        mask = rng.random(shape[axis : axis + rank]) < 0.5
        return Entry(mask, ["static", "constant"][rng.integers(2)], axis)
    if kind == "array":
        dtype = DTYPES[rng.integers(len(DTYPES))]
        low = 0 if dtype.kind == "u" else -n - reach
        size = ARRAY_SHAPES[rng.integers(len(ARRAY_SHAPES))]
        value = np.asarray(rng.integers(low, max(n + reach, low + 1), size)).astype(dtype)
        forms = ["constant", "array"] if not value.ndim else ["static", "constant", "array", "list"]
        return Entry(value, forms[rng.integers(len(forms) if value.size else 2)], axis)
    if kind == "number" and n:
        i = int(rng.integers(-n, n))
        return Entry([int, np.int64, np.int8, np.array][rng.integers(4)](i), "static", axis)
    bounds = [None if rng.random() < 0.4 else int(rng.integers(-n - 2, n + 3)) for _ in range(2)]
    return Entry(slice(*bounds, [None, 1, 2, -1, -2, 3][rng.integers(6)]), "static", axis)


# --- their meaning ------------------------------------------------------------------------------


def pad_array(x: np.ndarray, value: Any) -> np.ndarray:
    """An array with one more element along each axis, of this value."""
    return np.pad(x, [(0, 1)] * x.ndim, constant_values=value) if x.ndim else x.copy()


def read_filled(x: np.ndarray, e: Expression, fill_value: Any) -> np.ndarray:
    """x[index], where places out of bounds have the fill value."""
    return pad_array(x, fill_value)[e.pad()]


UFUNCS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "min": np.minimum, "max": np.maximum, "power": np.power,
}  # fmt: skip


def write_dropped(x: np.ndarray, e: Expression, op: str, values: Any) -> np.ndarray:
    """The array after x.at[index].op(values), where writes out of bounds are dropped."""
    return write_at(pad_array(x, 1), e.pad(), op, values)[tuple([slice(n) for n in x.shape])]


def write_clamped(x: np.ndarray, e: Expression, op: str, values: Any) -> np.ndarray:
    """The array after x.at[index].op(values), where places out of bounds are moved inside."""
    return write_at(x, e.clamp(), op, values)


def write_at(x: np.ndarray, index: tuple, op: str, values: Any) -> np.ndarray:
    """The array after x[index] = values, or with a ufunc at each place that is named."""
    y = x.reshape(-1).copy()
    places = np.arange(x.size).reshape(x.shape)[index]
    values = np.broadcast_to(values, places.shape).astype(x.dtype)
    if op == "set":
        y[places] = values
    else:  # of vectors: ufunc.at of more axes refuses some indices that NumPy takes
        UFUNCS[op].at(y, np.ravel(places), np.ravel(values))
    return y.reshape(x.shape)


def repeats(e: Expression) -> bool:
    """Return True if an index, moved inside, names a place twice."""
    count = np.zeros(e.shape, int)
    np.add.at(count, e.clamp(), 1)
    return count.max(initial=0) > 1
