"""The operators and methods that all sparse arrays have, made of the functions of BCOO arrays.

Arrays of other classes become BCOOs, and what comes of them is of their class where it can be.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from weft import dtypes
from weft import numpy as jnp
from weft.experimental.sparse import products
from weft.experimental.sparse.base import JAXSparse
from weft.experimental.sparse.entries import bcoo_todense
from weft.experimental.sparse.shaping import bcoo_broadcast_in_dim, bcoo_reduce_sum
from weft.experimental.sparse.transform import convert_results, merge_duplicates, sparsify
from weft.numpy.promotion import axes_of, is_arraylike


def define_operator(fun: Callable, swapped: bool = False) -> Any:
    """A method that applies a function of BCOOs and of dense arrays."""

    @functools.wraps(fun, assigned=("__doc__",))
    def method(self: Any, *others: Any) -> Any:
        if not all(isinstance(x, JAXSparse) or is_arraylike(x) for x in others):
            return NotImplemented
        values = [self, *others]
        given = [x.to_bcoo() if hasattr(x, "to_bcoo") else x for x in values]
        out = fun(*given[::-1]) if swapped else fun(*given)
        return convert_results(values, [out])[0]

    return method


def negate(x: Any) -> Any:
    """-x."""
    return x.make(-x.data)


def subtract(x: Any, y: Any) -> Any:
    """x - y."""
    return products.add(x, negate(y) if isinstance(y, JAXSparse) else jnp.negative(y))


def take_absolute(x: Any) -> Any:
    """|x|."""
    x = merge_duplicates(x)
    return x.make(jnp.abs(x.data))


def multiply_arrays(x: Any, y: Any) -> Any:
    """Return x @ y; one of the operands may be dense."""
    ndims = [a.ndim if isinstance(a, JAXSparse) else np.ndim(a) for a in (x, y)]
    if max(ndims) > 2 or min(ndims) < 1:
        return sparsify(jnp.matmul)(x, y)
    numbers = (([ndims[0] - 1], [0]), ([], []))
    for one in (x, y):
        if hasattr(one, "contract"):
            found = one.contract((x, y), {"dimension_numbers": numbers})
            if found is not None:
                return found
    x, y = (a.to_bcoo() if hasattr(a, "to_bcoo") else a for a in (x, y))
    return products.bcoo_dot_general(x, y, dimension_numbers=numbers)


def define_product(swapped: bool = False) -> Any:
    """The methods of `@`."""

    def method(self: Any, other: Any) -> Any:
        if not (isinstance(other, JAXSparse) or is_arraylike(other)):
            return NotImplemented
        pair = (other, self) if swapped else (self, other)
        out = multiply_arrays(*pair)
        return convert_results(pair, [out])[0]

    return method


def refuse_operator(name: str) -> Any:
    """A method that says why there is none."""

    def method(self: Any, *others: Any) -> Any:
        raise NotImplementedError(
            f"{name}: must keep zeros zero where arrays are sparse; got {self!r}. "
            "Hint: sparse.todense(x)."
        )

    return method


class SparseOperators(JAXSparse):
    """Operators and methods of sparse arrays."""

    __slots__ = ()
    __hash__: Any = None

    __add__ = define_operator(products.add)
    __radd__ = define_operator(products.add, swapped=True)
    __sub__ = define_operator(subtract)
    __rsub__ = define_operator(subtract, swapped=True)
    __mul__ = define_operator(products.multiply)
    __rmul__ = define_operator(products.multiply, swapped=True)
    __truediv__ = define_operator(products.divide)
    __rtruediv__ = refuse_operator("div")
    __pow__ = define_operator(sparsify(jnp.power))
    __rpow__ = refuse_operator("pow")
    __matmul__ = define_product()
    __rmatmul__ = define_product(swapped=True)
    __neg__ = define_operator(negate)
    __pos__ = define_operator(lambda x: x)
    __abs__ = define_operator(take_absolute)
    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = (
        refuse_operator(op) for op in ("eq", "ne", "lt", "le", "gt", "ge")
    )

    def __getitem__(self, item: Any) -> Any:
        return sparsify(lambda x: x[item])(self)

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def astype(self, dtype: Any) -> Any:
        """The array with its elements in another dtype."""
        return sparsify(lambda x: x.astype(dtype))(self)

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        """The sum over axes, sparse; over all of them a dense scalar."""
        mat = self.to_bcoo() if hasattr(self, "to_bcoo") else self
        axes = axes_of("sum", axis, mat.ndim) if axis is not None else tuple(range(mat.ndim))
        wanted = jnp.sum(jnp.zeros(0, mat.dtype), dtype=dtype).dtype
        exact = dtypes.is_inexact(wanted) or dtypes.is_integer(mat.dtype)
        mat = products.convert_elements(mat if exact else merge_duplicates(mat), wanted)
        out = bcoo_reduce_sum(mat, axes=axes)
        if keepdims:
            kept = [a for a in range(mat.ndim) if a not in axes]
            shape = [1 if a in axes else n for a, n in enumerate(mat.shape)]
            out = bcoo_broadcast_in_dim(out, shape=shape, broadcast_dimensions=kept)
        return bcoo_todense(out) if not out.shape or axis is None else out
