"""Sparse arrays from nothing: `empty`, `eye`, `random_bcoo`."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes, random
from weft import numpy as jnp
from weft.errors import ShapeError
from weft.experimental.sparse.base import JAXSparse, map_batches
from weft.experimental.sparse.bcoo import BCOO
from weft.experimental.sparse.bcsr import BCSR
from weft.experimental.sparse.coo import COO, CSC, CSR
from weft.primitives.families import index_tuple
from weft.util import check_option

# What makes an array of a format of a BCOO.
FORMATS: dict[str, Callable] = {"bcoo": lambda x: x, "bcsr": BCSR.from_bcoo}
FORMATS |= {"coo": COO.from_bcoo, "csr": CSR.from_bcoo, "csc": CSC.from_bcoo}


def empty(
    shape: Sequence[int],
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """Return a sparse array of zeros.

    Args:
      shape: the shape of the array.
      dtype: the dtype of the elements. None is the default float dtype.
      index_dtype: the dtype of the indices. The default is int32.
      sparse_format: "bcoo", the default, "bcsr", "coo", "csr" or "csc".
      **kwds: `nse`, the number of entries that it has room for; `n_batch` and `n_dense`.

    Returns:
      A sparse array of that format.

    >>> sparse.empty((3, 4))
    BCOO(float32[3, 4], nse=0)
    """
    check_option("sparse.empty", "sparse_format", sparse_format, *FORMATS)
    return FORMATS[sparse_format](BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds))


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """Return a sparse matrix with ones on a diagonal.

    Args:
      N: the number of rows.
      M: the number of columns. None, the default, is N.
      k: the diagonal: 0, the default, is the main one, and positive numbers are above it.
      dtype: the dtype of the elements. None is the default float dtype.
      index_dtype: the dtype of the indices. The default is int32.
      sparse_format: "bcoo", the default, "bcsr", "coo", "csr" or "csc".
      **kwds: `nse`, the number of entries that it has room for; `n_batch` and `n_dense`.

    Returns:
      A sparse matrix of shape (N, M).

    >>> print(sparse.eye(3, k=1).todense())
    [[0. 1. 0.]
     [0. 0. 1.]
     [0. 0. 0.]]
    """
    check_option("sparse.eye", "sparse_format", sparse_format, *FORMATS)
    N, k = operator.index(N), operator.index(k)
    M = N if M is None else operator.index(M)
    return FORMATS[sparse_format](BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, **kwds))


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = None,
    indices_dtype: Any = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """Return a BCOO of random values at random positions.

    Args:
      key: a random key.
      shape: the shape of the array.
      dtype: the dtype of the elements. None is the default float dtype.
      indices_dtype: the dtype of the indices. None is int32.
      nse: the number of entries in each batch; below 1, the fraction of the elements. The default
        is 0.2.
      n_batch: the number of leading axes that are batch axes. The default is 0.
      n_dense: the number of trailing axes that are stored in full. The default is 0.
      unique_indices: if True, the default, no position is taken twice. With more than 2**24
        elements to choose from, positions are drawn independently, and the array makes no promise.
      sorted_indices: if True, the default, the entries are in the order of their indices.
      generator: a function of a key, a shape, a dtype and `kwds` that draws the values.
      **kwds: options of the generator.

    Returns:
      A BCOO of that shape.

    >>> sparse.random_bcoo(random.key(0), (30, 40), nse=0.1)
    BCOO(float32[30, 40], nse=120)
    """
    shape = index_tuple(shape, "random_bcoo", "shape")
    n_sparse = len(shape) - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ShapeError(
            "random_bcoo: n_batch and n_dense must be at least 0, and no more than the axes "
            f"together; got {n_batch} and {n_dense} for {shape}."
        )
    batch, inner = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
    size = math.prod(inner)
    if not 0 <= nse <= size:
        raise ValueError(f"random_bcoo: nse must be from 0 to {size}; got {nse}.")
    count = math.ceil(nse * size) if 0 < nse < 1 else int(nse)
    dtype = dtypes.canonicalize(np.dtype(float if dtype is None else dtype))
    index = dtypes.canonicalize(np.dtype(np.int32 if indices_dtype is None else indices_dtype))
    unique = unique_indices and size <= 2**24
    place_key, data_key = random.split(key)

    draw = functools.partial(draw_places, count=count, sizes=inner, unique=unique)
    keys = random.split(place_key, batch) if batch else place_key
    places = map_batches(draw, n_batch, keys).astype(index)
    data = generator(data_key, (*batch, count, *shape[n_batch + n_sparse :]), dtype=dtype, **kwds)
    out = BCOO((data, places), shape=shape, unique_indices=unique)
    return out.sort_indices() if sorted_indices else out


def draw_places(key: Any, count: int, sizes: tuple[int, ...], unique: bool) -> Any:
    """Random indices [count, n_sparse] into axes of these sizes."""
    if not sizes:
        return jnp.zeros((count, 0), np.int32)
    if unique:
        flat = random.choice(key, math.prod(sizes), (count,), replace=False)
        return jnp.stack(jnp.unravel_index(flat, sizes), axis=1)
    keys = random.split(key, len(sizes))
    drawn = [random.randint(k, (count,), 0, n) for k, n in zip(keys, sizes, strict=True)]
    return jnp.stack(drawn, axis=1)
