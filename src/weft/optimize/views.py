"""Strided views: results whose elements are elements of one array, at places in equal steps.

Where the elements are follows from the `element` rules of the operations that move them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from weft.core.element import Apply, Integer, Operator, Place, Read, describe_elements
from weft.core.facts import Cost
from weft.core.jaxpr import Atom, Eqn, Literal
from weft.primitives.layout import Reshape


class View(NamedTuple):
    """The elements of `source` in row-major order that an array consists of.

    Attributes:
      source: the array.
      start: the place of the first element.
      sizes: the number of elements along each axis.
      steps: the distance of neighbours along each axis.
    """

    source: Atom
    start: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def is_contiguous(self) -> bool:
        """Return True if the elements follow each other."""
        wanted = zip(self.sizes, self.steps, row_major_steps(self.sizes), strict=True)
        return 0 in self.sizes or all(step == next for n, step, next in wanted if n > 1)


def row_major_steps(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the steps along the axes of an array whose elements follow each other."""
    return tuple([math.prod(sizes[k + 1 :]) for k in range(len(sizes))])


def view_whole(atom: Atom) -> View:
    """Return the view of all elements of an array in their own order."""
    sizes = atom.aval.shape
    return View(atom, 0, sizes, row_major_steps(sizes))


def find_views(eqn: Eqn, views: Mapping[Any, View]) -> list[View] | None:
    """Return the views that the results of an equation are; None if they are none.

    Args:
      eqn: an equation.
      views: the views that variables are. Other variables are computed, and have no view here.
    """
    if eqn.primitive.cost is not Cost.FREE or len(eqn.invars) != 1:
        return None
    (atom,) = eqn.invars
    x = view_whole(atom) if type(atom) is Literal else views.get(atom)
    if x is None:
        return None
    if isinstance(eqn.primitive, Reshape):
        if not x.is_contiguous:
            return None
        sizes = eqn.outvars[0].aval.shape
        return [View(x.source, x.start, sizes, row_major_steps(sizes))]
    described = describe_elements(eqn.primitive, [atom.aval], eqn.params)
    rows = zip(described, eqn.outvars, strict=False)
    found = [compose(x, places, element, v.aval.shape) for (places, element), v in rows]
    made = [view for view in found if view is not None]
    return made if len(made) == len(eqn.outvars) else None


def compose(x: View, places: Sequence[Place], element: Any, sizes: tuple[int, ...]) -> View | None:
    """Return the view of an array whose element at `places` is an element of a view."""
    while type(element) is Apply and element.primitive.cost is Cost.FREE:
        (element,) = element.args
    if type(element) is not Read:
        return None
    start, steps = x.start, dict.fromkeys(places, 0)
    for step, index in zip(x.steps, element.index, strict=True):
        form = read_affine(index)
        if form is None:
            return None
        for place, factor in form.items():
            if place is None:
                start += step * factor
            else:
                steps[place] += step * factor
    return View(x.source, start, sizes, tuple(steps.values()))


def read_affine(index: Any) -> dict[Place | None, int] | None:
    """Return the factor of each place, and the constant under None; None if it is not affine."""
    if type(index) is int:
        return {None: index}
    if type(index) is Place:
        return {index: 1}
    if type(index) is not Integer:
        return None
    left, right = read_affine(index.left), read_affine(index.right)
    if left is None or right is None:
        return None
    if index.operator is Operator.MULTIPLY:
        form, number = (left, right) if set(right) <= {None} else (right, left)
        if not set(number) <= {None}:
            return None
        return {place: factor * number[None] for place, factor in form.items()}
    if index.operator not in (Operator.ADD, Operator.SUBTRACT):
        return None
    sign = -1 if index.operator is Operator.SUBTRACT else 1
    return {
        place: left.get(place, 0) + sign * right.get(place, 0)
        for place in dict.fromkeys((*left, *right))
    }


def merge_axes(view: View) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return sizes and steps of as few axes as give the same elements in the same order.

    There is at least one axis.
    """
    axes = [(1, 0)]
    for n, step in zip(view.sizes, view.steps, strict=True):
        if n > 1:
            before, wide = axes[-1]
            if before == 1 or wide == n * step:
                axes.pop()
                axes.append((before * n, step))
            else:
                axes.append((n, step))
    sizes, steps = zip(*axes, strict=True)
    return sizes, steps
