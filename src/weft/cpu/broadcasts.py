"""Sums of arrays that are computed, element by element, from repeated smaller arrays.

Differences of all pairs of points, `x[:, None] - y[None]`, are an example. XLA computes such an
operand within the loop of the sum, or stores it. It writes no vectors along a last axis of a few
elements, such as three coordinates. The axes of the operand may be in any order, because only the
smaller arrays are in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.core.aval import ShapedArray
from weft.core.facts import LIGHT
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Literal
from weft.cpu.elements import computes_by_element
from weft.cpu.rewriting import Reading
from weft.cpu.scope import Scope
from weft.primitives.layout import BroadcastInDim, broadcast_in_dim, reduce_sum, transpose

MAX_STEPS = 24  # operations on each element: XLA may compute them anew for each sum that reads them
MAX_SHORT_AXIS = 8  # elements of a last axis along which XLA writes no vectors
MIN_SIZE = 1 << 12  # elements: transposed operands and results take as long as fewer of these


class Sources(NamedTuple):
    """An array that is computed from smaller arrays.

    Attributes:
      eqns: the cheap operations on each element, and those that repeat smaller arrays, in order.
      atoms: the smaller arrays and the numbers that they read.
    """

    eqns: list[Eqn]
    atoms: list[Atom]

    def count_steps(self) -> int:
        """Return the number of operations on each element."""
        return sum(not is_repeated(e) for e in self.eqns)


def find_sources(atom: Atom, scope: Scope) -> Sources | None:
    """Return how an array is computed from arrays of at most half its size, if it is so."""
    found: dict[int, Eqn] = {}
    atoms: dict[Any, Atom] = {}
    size = atom.aval.size

    def visit(a: Atom) -> bool:
        if type(a) is Literal or not a.aval.shape:
            atoms[id(a)] = a
            return True
        eqn = scope.maker(a)
        if eqn is None or id(eqn) in found:
            return eqn is not None
        if is_repeated(eqn):
            (x,) = eqn.invars
            if 2 * x.aval.size > size:
                return False
            atoms[id(x)] = x
        elif not (is_cheap_step(eqn) and all(map(visit, eqn.invars))):
            return False
        found[id(eqn)] = eqn
        return len(found) <= MAX_STEPS

    return Sources([*found.values()], [*atoms.values()]) if visit(atom) else None


def sum_in_rows(atom: Atom, axes: Sequence[int], scope: Scope) -> Reading | None:
    """Add up along axes before a short last one by rows: the short axis becomes the first one.

    The result has the axes of the operand that are left, in their order.
    """
    x, last = atom.aval, atom.aval.ndim - 1
    if not axes or last in axes or scope.target.devices or type(x.size) is not int:
        return None
    if not 2 <= x.shape[last] <= MAX_SHORT_AXIS or x.size < MIN_SIZE:
        return None
    made = find_sources(atom, scope)
    if made is None or count_sums(x, scope) > 1:
        return None
    order = [last, *[a for a in range(last) if a not in axes], *axes]
    if any(e.outvars[0].aval.dtype != x.dtype for e in made.eqns):
        # XLA's library has no choices, so XLA stores the operand. The sum is then as quick in any
        # order, and a large array would be transposed for nothing.
        large = [e for e in made.eqns if is_repeated(e) and 16 * e.invars[0].aval.size > x.size]
        if not all(keeps_order(e, order) for e in large):
            return None

    def reduce(*values: Any) -> list:
        env: dict[Any, Any] = dict(zip(map(id, made.atoms), values, strict=True))
        for eqn in made.eqns:
            args = [env[id(a)] for a in eqn.invars]
            if is_repeated(eqn):
                out = repeat_in_order(args[0], eqn, order)
            else:
                (out,) = eqn.primitive.apply(*args, **eqn.params)
            env[id(eqn.outvars[0])] = out
        y = reduce_sum(env[id(atom)], range(len(order) - len(axes), len(order)))
        return [transpose(y, (*range(1, y.ndim), 0))]

    return Reading(reduce, made.atoms)


def is_cheap_step(eqn: Eqn) -> bool:
    """Return True if an equation is a few operations on each element."""
    return eqn.primitive.cost in LIGHT and computes_by_element(eqn)


def is_repeated(eqn: Eqn) -> bool:
    """Return True if an equation is_repeated a smaller array or a number."""
    return isinstance(eqn.primitive, BroadcastInDim)


def count_sums(x: ShapedArray, scope: Scope) -> int:
    """Return how many sums of the program have an operand of a size, and leave its last axis.

    XLA stores an operand of two sums once, and then adds it up as quickly in any order.
    """
    sums = [e for e in scope.program.eqns if e.primitive.form is Form.SUM]
    operands = [(e.invars[0].aval, e.params["axes"]) for e in sums]
    return sum(a.size == x.size and a.ndim - 1 not in axes for a, axes in operands)


def find_turn(eqn: Eqn, order: Sequence[int]) -> list[int]:
    """Return the axes of a repeated array in the order that they have in a result by `order`."""
    places = [order.index(a) for a in eqn.params["broadcast_dimensions"]]
    return sorted(range(len(places)), key=places.__getitem__)


def keeps_order(eqn: Eqn, order: Sequence[int]) -> bool:
    """Return True if a repeated array need not be moved for a result with axes in `order`."""
    shape = eqn.invars[0].aval.shape
    turned = [a for a in find_turn(eqn, order) if shape[a] > 1]
    return turned == sorted(turned)


def repeat_in_order(x: Any, eqn: Eqn, order: Sequence[int]) -> Any:
    """Repeat an array as an equation does, with the axes of the result in another order."""
    shape, axes = eqn.outvars[0].aval.shape, eqn.params["broadcast_dimensions"]
    places = sorted(order.index(a) for a in axes)
    return broadcast_in_dim(transpose(x, find_turn(eqn, order)), [shape[a] for a in order], places)
