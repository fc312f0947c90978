"""`ShapeDtypeStruct`: the shape and dtype of an array that need not exist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.ref import AbstractRef
from weft.primitives.families import as_sequence
from weft.util import Record, as_size


class ShapeDtypeStruct(Record):
    """The shape and dtype of an array, taken for it by `eval_shape`, `make_jaxpr` and `lower`.

    `sharding` is kept for `lower`; `weak_type` says that the dtype is a Python number's. With
    `is_ref=True` it stands for a reference to such an array.

    >>> ShapeDtypeStruct((3, 4), np.float32)
    ShapeDtypeStruct(shape=(3, 4), dtype=float32)
    """

    __slots__ = ("dtype", "is_ref", "shape", "sharding", "weak_type")

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        is_ref: bool = False,
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be given; got None.")
        self.shape = as_sequence("ShapeDtypeStruct", "shape", shape)
        self.dtype = dtypes.find_dtype(dtype, "ShapeDtypeStruct")
        self.sharding = sharding
        self.weak_type = weak_type
        self.is_ref = is_ref

    @classmethod
    def of(cls, aval: Any) -> ShapeDtypeStruct:
        """The struct of a type."""
        lies = aval.sharded and aval.sharded.named
        is_ref = isinstance(aval, AbstractRef)
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=lies, is_ref=is_ref)

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The struct of an array, which keeps where it lies."""
        return cls.of(typeof(x)).update(sharding=getattr(x, "sharding", None))

    @property
    def aval(self) -> ShapedArray | AbstractRef:
        """The type, as traced functions see it."""
        dtype = dtypes.canonicalize(self.dtype)
        shape = tuple(map(as_size, self.shape))  # 1.0 is equal to a size that is known already
        aval = ShapedArray(shape, dtype, self.weak_type, sharding=self.sharding)
        return AbstractRef(aval) if self.is_ref else aval

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same but for the given fields."""
        fields = {k: getattr(self, k) for k in self.__slots__}
        return ShapeDtypeStruct(**{**fields, **changes})

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len(): needs at least one axis; got a scalar ShapeDtypeStruct.")
        return self.shape[0]

    def __repr__(self) -> str:
        extra = f", sharding={self.sharding}" if self.sharding is not None else ""
        extra += ", weak_type=True" if self.weak_type else ""
        extra += ", is_ref=True" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{extra})"
