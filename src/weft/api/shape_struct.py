"""`ShapeDtypeStruct`: the shape and dtype of an array that need not exist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.ref import AbstractRef
from weft.errors import DtypeError, ShardingTypeError
from weft.mesh.mesh import get_abstract_mesh
from weft.mesh.sharding import NamedSharding, Sharding
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import Sharded, kind_of_mesh, mesh_around, sharding_of
from weft.primitives.families import as_sequence
from weft.primitives.varying import ManualAxisType
from weft.util import Record, as_size
from weft.xla.layouts import Format


class ShapeDtypeStruct(Record):
    """The shape and dtype of an array, in its place in `eval_shape`, `make_jaxpr` and `lower`.

    Args:
      shape: the sizes of the axes.
      dtype: the type of the elements.
      sharding: the placement of the array for `lower`: a sharding, a `PartitionSpec` over the mesh
        in scope, or a `Format`. The default is None.
      weak_type: True if the array has the weak type of a Python number. The default is False.
      manual_axis_type: the kind of the array along the manual axes of a mesh, for structs that are
        made within `shard_map`.
      is_ref: True if it stands for a reference to such an array. The default is False.

    >>> ShapeDtypeStruct((3, 4), np.float32)
    ShapeDtypeStruct(shape=(3, 4), dtype=float32)
    """

    __slots__ = (
        "dtype", "is_ref", "layout", "manual_axis_type", "shape", "sharding", "weak_type",
    )  # fmt: skip

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: ManualAxisType | None = None,
        is_ref: bool = False,
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be given; got None.")
        if not isinstance(manual_axis_type, ManualAxisType | None):
            raise TypeError(
                "ShapeDtypeStruct: manual_axis_type must be a weft.sharding.ManualAxisType; got "
                f"{manual_axis_type!r}."
            )
        self.shape = as_sequence("ShapeDtypeStruct", "shape", shape)
        self.dtype = dtypes.find_dtype(dtype, "ShapeDtypeStruct")
        self.layout = sharding.layout if isinstance(sharding, Format) else None
        self.sharding = read_sharding(sharding)
        self.weak_type = weak_type
        self.manual_axis_type = manual_axis_type
        self.is_ref = is_ref

    @classmethod
    def of(cls, aval: Any) -> ShapeDtypeStruct:
        """Return the struct of a type, of an array or of a reference."""
        lies = aval.sharded and aval.sharded.named
        if lies is None and get_abstract_mesh().explicit_axes:
            lies = sharding_of(aval, get_abstract_mesh())
        kinds = ManualAxisType.of(aval)
        return cls(
            aval.shape,
            aval.dtype,
            weak_type=aval.weak_type,
            sharding=lies,
            manual_axis_type=kinds if any(kinds._fields()) else None,
            is_ref=isinstance(aval, AbstractRef),
        )

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """Return the struct of an array, including its sharding."""
        return cls.of(typeof(x)).update(sharding=getattr(x, "sharding", None))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise: a type has no elements."""
        raise DtypeError(
            f"array: a value is needed; got {self}, a type without one. "
            "Hint: weft.eval_shape(f, x), or jnp.zeros(x.shape, x.dtype)."
        )

    @property
    def aval(self) -> ShapedArray | AbstractRef:
        """The type, as traced functions see it."""
        dtype = dtypes.canonicalize(self.dtype)
        shape = tuple(map(as_size, self.shape))  # 1.0 is equal to a size that is known already
        kinds = self.manual_axis_type
        aval = ShapedArray(
            shape, dtype, self.weak_type, sharding=self.sharding, manual_axis_type=kinds
        )
        if kinds is not None and (kinds.unreduced or kinds.reduced):
            mesh = kind_of_mesh(get_abstract_mesh())
            entries = aval.sharded.entries if aval.sharded is not None else [()] * len(shape)
            aval = aval.update(sharded=Sharded.of(mesh, entries, kinds.unreduced, kinds.reduced))
        return AbstractRef(aval) if self.is_ref else aval

    @property
    def format(self) -> Format:
        """The layout in memory, if a `Format` gave one, and the sharding."""
        return Format(self.layout, self.sharding)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same except for the given fields."""
        fields = {k: getattr(self, k) for k in self.__slots__ if k != "layout"}
        fields["sharding"] = self.sharding if self.layout is None else self.format
        return ShapeDtypeStruct(**{**fields, **changes})

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len(): needs at least one axis; got a scalar ShapeDtypeStruct.")
        return self.shape[0]

    def __repr__(self) -> str:
        extra = f", sharding={self.sharding}" if self.sharding is not None else ""
        extra += ", weak_type=True" if self.weak_type else ""
        extra += f", manual_axis_type={kinds}" if (kinds := self.manual_axis_type) else ""
        extra += ", is_ref=True" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{extra})"


def read_sharding(sharding: Any) -> Any:
    """Return the sharding that an argument says; a spec is over the mesh in scope."""
    if isinstance(sharding, Format):
        sharding = sharding.sharding
    if isinstance(sharding, PartitionSpec):
        mesh = mesh_around()
        if mesh.empty:
            raise ShardingTypeError(
                "ShapeDtypeStruct: sharding must be a sharding where no mesh is in scope; got "
                f"{sharding}. Hint: NamedSharding(mesh, {sharding}), or weft.set_mesh(mesh)."
            )
        return NamedSharding(mesh, sharding)
    if not isinstance(sharding, Sharding | None):
        raise ShardingTypeError(
            "ShapeDtypeStruct: sharding must be a sharding, a spec or a Format; got "
            f"{sharding!r}. Hint: NamedSharding(mesh, P('x'))."
        )
    return sharding
