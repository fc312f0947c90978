"""The elements of a vector that are in another one."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from weft import lax
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost
from weft.core.form import Form
from weft.core.primitive import Axes, Primitive
from weft.errors import ShapeError
from weft.numpy.indexing import Access, getitem_with
from weft.numpy.sorting import search_by_halving
from weft.primitives import elementwise as ops
from weft.primitives import families
from weft.primitives.constant import stage_whole
from weft.primitives.layout import batched_at_front, literal
from weft.run.operation import operation
from weft.transforms.batch import batch
from weft.util import is_below
from weft.xla.lower import lower_jaxpr

BOOL = np.dtype(np.bool_)
INSIDE = Access(lax.GatherScatterMode.CLIP, checked=False)
# Members that each element is compared with, in vectors. A table takes longer for fewer.
MAX_COMPARED = 32


class FindMembers(Primitive):
    """The elements of a vector x that are equal to one of the members, as a mask.

    NaN is equal to none.

    Shapes: x [n]; members [m], m > 0; the result is as x. Dtypes: x and members alike, the result
    is bool. Source: weft.
    """

    name = "find_members"
    form = Form.MEMBERS
    cost = Cost.TRANSCENDENTAL

    def abstract_eval(self, x, members):
        if x.ndim != 1 or members.ndim != 1 or x.dtype != members.dtype:
            raise ShapeError(
                f"{self.name}: operands must be vectors of one dtype; got {x} and {members}."
            )
        return [x.update(dtype=BOOL, weak_type=False)]

    def label_axes(self, avals, outs, **params):
        return Axes([[0], [None]], [[0]])

    def lower(self, hlo, x, members):
        return lower_jaxpr(
            hlo, stage_whole(self.find_plainly, [x.aval, members.aval]), [x, members]
        )

    def jvp(self, primals, tangents):
        outs = self.apply(*primals)
        return outs, families.zero_tangents(outs)

    def compares(self, members: ShapedArray) -> bool:
        """Return True if each element is compared with each member."""
        return is_below(members.size, MAX_COMPARED + 1)

    def find_plainly(self, x: Any, members: Any) -> list:
        """Return the result by operations that are quick on every platform."""
        compares = self.compares(typeof(members))
        return [compare_members(x, members) if compares else search_members(x, members)]

    def batch(self, axis, args, dims):
        if dims[1] is not None:
            return batch(self.find_plainly, args, dims, axis)
        x = batched_at_front(args[0], dims[0], axis.size)
        (found,) = self.apply(lax.reshape(x, (x.size,)), args[1])
        return [lax.reshape(found, x.shape)], [0]


find_members_p = FindMembers()


@operation
def find_members(x: Any, members: Any) -> Any:
    """Return which elements of one vector are in another."""
    if not members.size:
        return lax.full(x.shape, False, BOOL)
    return find_members_p.apply(x, members)[0]


def compare_members(x: Any, members: Any) -> Any:
    """Compare each element with each of a few members, in one loop."""
    parts = [lax.slice_in_dim(members, i, i + 1) for i in range(members.size)]
    equal = [ops.eq(x, lax.broadcast_in_dim(part, x.shape, (0,))) for part in parts]
    return functools.reduce(ops.bitwise_or, equal)


def search_members(x: Any, members: Any) -> Any:
    """Sort the members, and search them for each element."""
    members = lax.sort(members, 0)
    i = search_by_halving(members, x, "left")
    last = literal(typeof(members).size - 1, i.dtype)
    i = ops.select(ops.lt(i, last), i, lax.broadcast_in_dim(last, i.shape, ()))
    return ops.eq(getitem_with(members, i, INSIDE), x)
