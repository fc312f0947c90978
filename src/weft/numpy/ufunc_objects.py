"""The methods of NumPy's universal functions: reduce, accumulate, at, outer, reduceat.

The functions of this package are plain functions, which cost least to call; methods.py attaches
these methods to them. `frompyfunc` makes a universal function of any function of numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.make_jaxpr import eval_shape
from weft.api.scan import scan
from weft.api.while_loop import fori_loop
from weft.errors import ShapeError
from weft.numpy import choice, creation, functional, reductions, ufuncs, views
from weft.numpy.choice import where
from weft.numpy.manipulation import broadcast_to, concatenate, moveaxis
from weft.numpy.promotion import (
    as_array,
    as_array_beside,
    as_arrays_together,
    axes_of,
    axis_of,
    is_nonzero,
    refuse_out,
)
from weft.options import config
from weft.primitives import cumulative as running
from weft.primitives import elementwise as ops
from weft.primitives.checks import check_inside
from weft.primitives.layout import expand_dims, reshape
from weft.primitives.reduction import reduce as reduce_by
from weft.run.operation import operation
from weft.util import fun_name

# Functions, by name, that replace loops over elements.
REDUCE = {
    "add": reductions.sum, "multiply": reductions.prod, "maximum": reductions.max,
    "minimum": reductions.min, "logical_and": reductions.all, "logical_or": reductions.any,
}  # fmt: skip
ACCUMULATE = {
    "add": reductions.cumsum,
    "multiply": reductions.cumprod,
    "maximum": running.cummax,
    "minimum": running.cummin,
    "logaddexp": running.cumlogsumexp,
}
AT = {
    "add": "add", "subtract": "subtract", "multiply": "multiply",
    "maximum": "max", "minimum": "min",
}  # fmt: skip
ASSOCIATIVE = ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor")


class UfuncType(type):
    """The type of `ufunc`; functions with the methods of a ufunc are its instances too."""

    def __instancecheck__(cls, x: Any) -> bool:
        found = type.__instancecheck__(cls, x) or callable(getattr(x, "reduceat", None))
        return found and not isinstance(x, type)


class ufunc(metaclass=UfuncType):
    """A function of numbers that applies to arrays element by element, as NumPy's ufuncs.

    `jnp.frompyfunc` makes one. `jnp.add` and the other elementwise functions are ufuncs as well.

    Args:
      func: a function of `nin` scalars that returns `nout` scalars.
      nin: the number of operands, an int.
      nout: the number of results, an int.
      name: the name. None, the default, is the name of `func`.
      nargs: the number of operands and results. None computes it.
      identity: the number that changes nothing as an operand, which a reduction of no elements
        returns.
      call: a function that is called for the whole arrays. None applies `func` to each element.
      reduce, accumulate, at, reduceat: functions for the methods of these names. None derives them
        from `func`.

    >>> jnp.add.reduce(jnp.arange(6).reshape(2, 3))
    Array([3, 5, 7], dtype=int32)
    """

    def __init__(
        self,
        func: Callable,
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable | None = None,
        reduce: Callable | None = None,
        accumulate: Callable | None = None,
        at: Callable | None = None,
        reduceat: Callable | None = None,
    ):
        if not callable(func):
            raise TypeError(f"ufunc: func must be a function; got {func!r:.60}.")
        self.nin, self.nout, self.nargs = nin, nout, nargs or nin
        self.identity = identity
        self.name = self.__name__ = name or fun_name(func)
        self.__doc__ = getattr(func, "__doc__", None)
        self.call = call or functional.vectorize(func)
        given = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}
        vars(self).update({k: f for k, f in given.items() if f is not None})

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.name!r}>"

    def __call__(self, *args: Any, out: None = None, where: None = None) -> Any:
        """The function of each element of operands that broadcast together."""
        ufuncs.refuse_out_and_where(self.name, out, where)
        if len(args) != self.nin:
            raise TypeError(f"{self.name}: needs {self.nin} operands; got {len(args)}.")
        return self.call(*args)

    @staticmethod
    @functools.cache
    def named(fun: Callable, nin: int, nout: int, identity: Any) -> ufunc:
        """The universal function that one of this package's functions is."""
        return ufunc(fun, nin, nout, name=fun.__name__, identity=identity, call=fun)

    def require(self, method: str, nin: int = 2) -> str:
        """The name of a method that needs a function of two operands with one result."""
        op = f"{self.name}.{method}"
        if self.nin != nin or self.nout != 1:
            raise ValueError(
                f"{op}: needs a function of {nin} operands with one result; "
                f"got {self.nin} and {self.nout}."
            )
        return op

    def reduce(
        self,
        a: Any,
        axis: int | Sequence[int] | None = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        """The function of the result so far and the next element, over an axis or several."""
        op = self.require("reduce")
        refuse_out(op, out)
        x = as_array(a, op)
        axes = axes_of(op, axis, x.ndim)
        if (direct := REDUCE.get(self.name)) is not None:
            if self.name in ("add", "multiply"):
                return direct(x, axes, dtype, None, keepdims, initial, where)
            x = x if dtype is None else views.astype(x, dtype)
            if self.name in ("maximum", "minimum"):
                return direct(x, axes, None, keepdims, initial, where)
            y = direct(x, axes, None, keepdims, where=where)
            return y if initial is None else self.call(initial, y)
        start = self.identity if initial is None else initial
        if start is None and where is not None:
            raise ValueError(f"{op}: with where=, initial must be given; got None.")
        x = self.converted(x, dtype)
        mask = None if where is None else broadcast_to(as_array(where, op), x.shape)
        if self.name in ASSOCIATIVE and initial is None:
            x = x if mask is None else choice.where(mask, x, start)
            y = reduce_by(x, ops.convert(start, x.dtype), self.call, axes)
        else:
            y = self.folded(op, x, axes, initial, mask)
        return reductions.keep_axes(y, x.shape, axes, keepdims)

    def converted(self, x: Any, dtype: Any) -> Any:
        """x in the dtype that the function gives."""
        if dtype is not None:
            return views.astype(x, dtype)
        if self.name.startswith("logical"):
            return is_nonzero(x)
        one = eval_shape(lambda: reshape(x, (x.size,))[0]) if x.size else None
        return x if one is None else ops.convert(x, eval_shape(self.call, one, one).dtype)

    def folded(self, op: str, x: Any, axes: tuple[int, ...], initial: Any, mask: Any) -> Any:
        """A reduction by one element after the other."""
        others = [i for i in range(x.ndim) if i not in axes]
        shape = [x.shape[i] for i in others]

        def in_front(v: Any) -> Any:
            moved = moveaxis(v, others, tuple(range(-len(others), 0)))
            return reshape(moved, (int(np.prod([x.shape[i] for i in axes])), *shape))

        rows = in_front(x)
        mask = None if mask is None else in_front(mask)
        start = initial
        if start is None and (mask is not None or not rows.shape[0]):
            start = self.identity
        if start is None and not rows.shape[0]:
            raise ShapeError(
                f"{op}: needs at least one element, for it has no identity; got {x.aval}."
            )
        if start is None:
            start, rows = rows[0], rows[1:]
        start = broadcast_to(ops.convert(as_array_beside(op, start, x), x.dtype), shape)

        def step(y: Any, row: tuple) -> tuple:
            element, counts = row
            out = ops.convert(self.call(y, element), x.dtype)
            return (out if counts is None else where(counts, out, y)), None

        return scan(step, start, (rows, mask))[0]

    def accumulate(self, a: Any, axis: int | None = 0, dtype: Any = None, out: None = None) -> Any:
        """The results of `reduce` so far, along an axis."""
        op = self.require("accumulate")
        refuse_out(op, out)
        x = as_array(a, op)
        if axis is None:
            x, axis = reshape(x, (x.size,)), 0
        axis = axis_of(op, axis, x.ndim)
        if (direct := ACCUMULATE.get(self.name)) is not None:
            x = x if dtype is None else views.astype(x, dtype)
            if x.dtype == bool and self.name in ("maximum", "minimum"):
                return ops.convert(direct(ops.convert(x, np.dtype(np.int8)), axis), x.dtype)
            return direct(self.converted(x, None) if self.name == "logaddexp" else x, axis)
        x = moveaxis(self.converted(x, dtype), axis, 0)
        if not x.size:
            return moveaxis(x, 0, axis)

        def step(y: Any, element: Any) -> tuple:
            y = ops.convert(self.call(y, element), x.dtype)
            return y, y

        _, rest = scan(step, x[0], x[1:])
        return moveaxis(concatenate([x[:1], rest]), 0, axis)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """`a` after a[i] = f(a[i], b[i]) for each index in turn, equal ones among them."""
        op = f"{self.name}.at"
        if inplace:
            raise NotImplementedError(
                f"{op}: inplace must be False, for arrays do not change; got True. "
                f"Hint: x = jnp.{op}(x, indices, b, inplace=False)."
            )
        x = as_array(a, op)
        if (b is None) != (self.nin == 1) or self.nin > 2:
            raise TypeError(f"{op}: must be given b for two operands, and not for one.")
        if self.name in AT and x.dtype != bool:  # `.at[]` adds numbers only
            return getattr(x.at[indices], AT[self.name])(b)
        places = reshape(creation.arange(x.size), x.shape)[indices]
        values = None
        if b is not None:
            values = broadcast_to(as_array_beside(op, b, x), places.shape).ravel()
        places, flat = places.ravel(), x.ravel()

        def step(i: Any, y: Any) -> Any:
            p = places[i]
            operands = (y[p],) if values is None else (y[p], values[i])
            return y.at[p].set(ops.convert(self.call(*operands), x.dtype))

        return reshape(fori_loop(0, places.size, step, flat), x.shape)

    def outer(self, A: Any, B: Any, /) -> Any:
        """The function of each element of A with each of B."""
        op = self.require("outer")
        return self.outer_of_arrays(*as_arrays_together(op, A, B))

    @functools.cached_property
    def outer_of_arrays(self) -> Callable:
        """`outer` as one compiled program."""

        def outer(x: Any, y: Any) -> Any:
            behind, before = range(x.ndim, x.ndim + y.ndim), range(x.ndim)
            return self.call(expand_dims(x, tuple(behind)), expand_dims(y, tuple(before)))

        return operation(outer)

    def reduceat(
        self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None
    ) -> Any:
        """Reductions of the slices from each index to the next; of one element if that is less.

        What an index out of bounds gives is not defined; negative ones are out of bounds too.
        """
        op = self.require("reduceat")
        refuse_out(op, out)
        x, starts = as_array(a, op), as_array(indices, op)
        axis = axis_of(op, axis, x.ndim)
        n = x.shape[axis]
        if starts.ndim != 1 or not dtypes.is_integer(starts.dtype):
            raise ShapeError(f"{op}: indices must be a vector of integers; got {starts.aval}.")
        if config.check_bounds == "all":
            check_inside(f"{op}: indices must be in [0, {n}); got {{}}.", starts, 0, n)
        rows = moveaxis(x if self.name in REDUCE else self.converted(x, dtype), axis, 0)
        dtype = dtype if self.name in REDUCE else rows.dtype
        ends = ufuncs.maximum(
            concatenate([starts[1:], creation.full(1, n, starts.dtype)]), starts + 1
        )
        place = creation.arange(n)[:, None]
        inside = (place >= starts[None]) & (place < ends[None])
        inside = reshape(inside, (*inside.shape, *[1] * (rows.ndim - 1)))
        spread = broadcast_to(rows[:, None], (n, starts.size, *rows.shape[1:]))
        inside = broadcast_to(inside, spread.shape)
        lowest = None
        if self.name in ("maximum", "minimum"):
            lowest = (reductions.min if self.name == "maximum" else reductions.max)(rows)
        if self.name in REDUCE:
            y = self.reduce(spread, 0, dtype, initial=lowest, where=inside)
        else:
            y = self.folded_from(rows, starts, ends)
        return moveaxis(y, 0, axis)

    def folded_from(self, rows: Any, starts: Any, ends: Any) -> Any:
        """Reductions of the slices of rows between starts and ends, one row after the other."""
        shape = (starts.size, *[1] * (rows.ndim - 1))
        starts, ends = reshape(starts, shape), reshape(ends, shape)

        def step(y: Any, row: tuple) -> tuple:
            i, element = row
            out = ops.convert(self.call(y, broadcast_to(element, y.shape)), y.dtype)
            return where((i > starts) & (i < ends), out, y), None

        first = rows[starts.ravel()]
        return scan(step, first, (creation.arange(rows.shape[0]), rows))[0]


def frompyfunc(func: Callable, /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """Return a universal function made of a function of numbers.

    It broadcasts its operands and applies the function to each element, by `vmap`. It has the
    methods `reduce`, `accumulate`, `outer` and the others of NumPy's ufuncs.

    Args:
      func: a function of `nin` scalars that returns `nout` scalars.
      nin: the number of operands, an int.
      nout: the number of results, an int.
      identity: the number that changes nothing as an operand, which a reduction of no elements
        returns. None, the default, means that it does not exist.

    Returns:
      A `ufunc`.

    >>> add = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    >>> add.reduce(jnp.arange(4))
    Array(6, dtype=int32)
    """
    return ufunc(func, nin, nout, identity=identity)
