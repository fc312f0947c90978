"""The operations of this package as primitives under JAX's names, for programs that bind them.

They take and return the arrays of sparse arrays. Binding one calls a function: a jaxpr contains the
operations of the function, with their rules (primitives/sparse.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.core.primitive import Primitive
from weft.experimental.sparse import entries, products, shaping
from weft.experimental.sparse.base import SparseInfo
from weft.experimental.sparse.bcoo import BCOO
from weft.experimental.sparse.bcsr import BCSR, bcsr_extract
from weft.experimental.sparse.coo import COO, CSR


class Named(Primitive):
    """A family: an operation that is made of others, by a function of the arrays of sparse ones."""

    def __init__(self, name: str, function: Callable[..., Any]):
        self.name = name
        self.function = function

    def apply(self, *args: Any, **params: Any) -> list:
        out = self.function(*args, **params)
        return list(out) if isinstance(out, tuple) else [out]

    def bind(self, *args: Any, **params: Any) -> Any:
        """The result, or a tuple of results where there are several."""
        return self.function(*args, **params)


def make_bcoo(data: Any, indices: Any, info: SparseInfo) -> BCOO:
    """A BCOO of its arrays and what JAX calls its `spinfo`."""
    shape, *flags = info
    return BCOO(
        (data, indices),
        shape=shape,
        **dict(zip(("indices_sorted", "unique_indices"), flags, strict=False)),
    )


def make_bcsr(data: Any, indices: Any, indptr: Any, info: SparseInfo) -> BCSR:
    """A BCSR of its arrays and its `spinfo`."""
    return BCSR((data, indices, indptr), shape=info[0])


def multiply_two(ld: Any, li: Any, rd: Any, ri: Any, *, lhs_spinfo: Any, rhs_spinfo: Any, **params):
    """The product of two BCOOs."""
    pair = make_bcoo(ld, li, lhs_spinfo), make_bcoo(rd, ri, rhs_spinfo)
    return products.bcoo_dot_general(*pair, **params)._bufs


BCOO_FUNCTIONS: dict[str, Callable] = {
    "todense": lambda d, i, *, spinfo: make_bcoo(d, i, spinfo).todense(),
    "fromdense": lambda x, **params: BCOO.fromdense(x, **params)._bufs,
    "extract": lambda i, x, *, assume_unique=True: (
        entries.bcoo_extract(
            BCOO((np.zeros(data_shape(i, x), bool), i), shape=x.shape),
            x,
            assume_unique=assume_unique,
        ).data
    ),
    "transpose": lambda d, i, *, permutation, spinfo: (
        shaping.bcoo_transpose(make_bcoo(d, i, spinfo), permutation=permutation)._bufs
    ),
    "sort_indices": lambda d, i, *, spinfo: make_bcoo(d, i, spinfo).sort_indices()._bufs,
    "sum_duplicates": lambda d, i, *, spinfo, nse=None: (
        entries.bcoo_sum_duplicates(make_bcoo(d, i, spinfo), nse)._bufs
    ),
    "dot_general": lambda d, i, x, *, lhs_spinfo, **params: products.bcoo_dot_general(
        make_bcoo(d, i, lhs_spinfo), x, **params
    ),
    "dot_general_sampled": products.bcoo_dot_general_sampled,
    "spdot_general": multiply_two,
}
BCSR_FUNCTIONS: dict[str, Callable] = {
    "todense": lambda d, i, p, *, spinfo: make_bcsr(d, i, p, spinfo).todense(),
    "fromdense": lambda x, **params: BCSR.fromdense(x, **params)._bufs,
    "extract": bcsr_extract,
    "dot_general": lambda d, i, p, x, *, lhs_spinfo, dimension_numbers, **params: (
        products.bcoo_dot_general(
            make_bcsr(d, i, p, lhs_spinfo).to_bcoo(), x, dimension_numbers=dimension_numbers
        )
    ),
}


def data_shape(indices: Any, x: Any) -> tuple[int, ...]:
    """The shape of the data of a BCOO with these indices, of the shape of x."""
    return (*indices.shape[:-1], *x.shape[indices.ndim - 2 + indices.shape[-1] :])


def define_format(cls: Any) -> dict[str, Callable]:
    """The operations of COO and of CSR; `spinfo` or `shape` gives the shape."""

    def make(args: Any, params: dict) -> Any:
        return cls(args, shape=params["spinfo"][0] if "spinfo" in params else params["shape"])

    def multiply(*args: Any, transpose: bool = False, **params: Any) -> Any:
        mat = make(args[:3], params)
        return (mat.T if transpose else mat) @ args[3]

    return {
        "todense": lambda *args, **params: make(args, params).todense(),
        "fromdense": lambda x, **params: cls.fromdense(x, **params)._bufs,
        "matvec": multiply,
        "matmat": multiply,
    }


def name_all(prefix: str, functions: dict[str, Callable]) -> list[Named]:
    """The primitives of these functions."""
    return [Named(f"{prefix}_{name}", fun) for name, fun in functions.items()]


(
    bcoo_todense_p,
    bcoo_fromdense_p,
    bcoo_extract_p,
    bcoo_transpose_p,
    bcoo_sort_indices_p,
    bcoo_sum_duplicates_p,
    bcoo_dot_general_p,
    bcoo_dot_general_sampled_p,
    bcoo_spdot_general_p,
) = name_all("bcoo", BCOO_FUNCTIONS)
bcsr_todense_p, bcsr_fromdense_p, bcsr_extract_p, bcsr_dot_general_p = name_all(
    "bcsr", BCSR_FUNCTIONS
)
coo_todense_p, coo_fromdense_p, coo_matvec_p, coo_matmat_p = name_all("coo", define_format(COO))
csr_todense_p, csr_fromdense_p, csr_matvec_p, csr_matmat_p = name_all("csr", define_format(CSR))
