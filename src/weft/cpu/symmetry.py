"""Products that need no more than half of the operations.

Some are symmetric because both operands are one array: `x.T @ x`, `(w * x) @ x.T`. Others are the
transpose of a product that is known: `a @ b.T + b @ a.T`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from weft.core.facts import Cost, Linearity
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, memo_jaxpr, origin_of
from weft.cpu.kernels import are_floats
from weft.cpu.rewriting import replace_bodies
from weft.cpu.scope import Scope, Target
from weft.passes.dce import with_equations
from weft.primitives.elementwise import Elementwise
from weft.primitives.layout import BroadcastInDim, Transpose, transpose_p

# Operations in a row that are looked through for what both operands are computed from.
MAX_FACTORS, MAX_DEPTH = 3, 6
# Terms of products that take longer than to write half of the results a second time.
MIN_TERMS = 48
# A transpose takes 54 to 78 % of the time of a product of at least this much work.
MIN_TRANSPOSED_WORK = 1 << 19


class Side(NamedTuple):
    """An operand of a product: its axes that are summed, those of the batch, and the others."""

    atom: Atom
    summed: tuple[int, ...]
    batch: tuple[int, ...]
    free: tuple[int, ...]

    def shapes(self) -> list[list]:
        """Return the sizes of the axes of each kind."""
        return [[self.atom.aval.shape[a] for a in axes] for axes in self[1:]]


def read_sides(eqn: Eqn) -> list[Side]:
    """Return the operands of a product, with their axes in the order of the result."""
    sides = []
    for atom, summed, batch in zip(eqn.invars, *eqn.params["dimension_numbers"], strict=True):
        free = [a for a in range(atom.aval.ndim) if a not in summed and a not in batch]
        sides.append(Side(atom, tuple(summed), tuple(batch), tuple(free)))
    return sides


def read_symmetric(eqn: Eqn, scope: Scope) -> list[Side] | None:
    """Return the operands of a symmetric product, without transposes; None for other products.

    Rows and columns of the result stand for the same rows of one array. An operand may be the
    array times numbers that are equal for all of these rows. Rounding makes the result of such a
    product slightly asymmetric; either of two elements is as exact.
    """
    left, right = read_sides(eqn)
    if left.shapes() != right.shapes():
        return None
    sides = [drop_transpose(side, scope.maker) for side in (left, right)]
    others = [*list_sources(sides[1], scope)]
    for a in list_sources(sides[0], scope):
        if any(a[1:] == b[1:] and are_equal(a.atom, b.atom, scope) for b in others):
            return sides
    return None


@memo_jaxpr
def transpose_products(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program that computes `b @ a.T` as the transpose of `a @ b.T`, if it has both."""
    if target.devices:
        return jaxpr
    makers: dict[Any, Eqn] = {}
    known: dict[tuple, list[Eqn]] = {}
    eqns = []
    for eqn in jaxpr.eqns:
        if not eqn.primitive.memoize_type:
            eqn = replace_bodies(eqn, lambda b: transpose_products(b.jaxpr, target))
        elif isinstance(eqn.primitive, Transpose):
            makers[eqn.outvars[0]] = eqn
        elif eqn.primitive.form is Form.PRODUCT and is_much(eqn):
            eqn = share_product(eqn, makers, known)
        eqns.append(eqn)
    return with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns)


def is_much(eqn: Eqn) -> bool:
    """Return True if a product of floats takes longer than to transpose its result."""
    x, y, out = (v.aval for v in (*eqn.invars, eqn.outvars[0]))
    if not are_floats(x, y, out):
        return False
    terms = math.prod(x.shape[a] for a in eqn.params["dimension_numbers"][0][0])
    return terms >= MIN_TERMS and out.size * terms >= MIN_TRANSPOSED_WORK


def share_product(eqn: Eqn, makers: dict[Any, Eqn], known: dict[tuple, list[Eqn]]) -> Eqn:
    """Return the equation that transposes a known product, or the product, which is then known.

    Products are known by their operands before transposes.
    """
    x, y = (find_untransposed(a, makers) for a in eqn.invars)
    product = None
    for other in known.get((y, x), ()):  # nearly always none
        left, right = (drop_transpose(side, makers.get) for side in read_sides(eqn))
        sides = [drop_transpose(side, makers.get) for side in read_sides(other)]
        if left != right and sides == [right, left] and list_options(eqn) == list_options(other):
            product = other.outvars[0]
    if product is None:
        known.setdefault((x, y), []).append(eqn)
        return eqn
    batch, free = len(left.batch), len(left.batch) + len(right.free)
    order = (*range(free, product.aval.ndim), *range(batch, free))
    turned = Eqn(transpose_p, [product], {"permutation": (*range(batch), *order)}, eqn.outvars)
    turned.source, turned.origin = eqn.source, origin_of(eqn)
    return turned


def find_untransposed(atom: Atom, makers: dict[Any, Eqn]) -> Atom:
    """Return an array before transposes; `makers` has these."""
    while type(atom) is Var and (maker := makers.get(atom)):
        (atom,) = maker.invars
    return atom


def list_options(eqn: Eqn) -> list[tuple[str, Any]]:
    """Return the parameters of a product other than the axes."""
    return [(k, v) for k, v in eqn.params.items() if k != "dimension_numbers"]


def drop_transpose(side: Side, maker_of: Callable[[Any], Eqn | None]) -> Side:
    """Return an operand before transposes."""
    while (maker := maker_of(side.atom)) and isinstance(maker.primitive, Transpose):
        order = maker.params["permutation"]
        side = Side(maker.invars[0], *(tuple([order[a] for a in axes]) for axes in side[1:]))
    return side


def list_sources(side: Side, scope: Scope) -> Iterator[Side]:
    """Yield an operand, and the arrays that it is a multiple or a transpose of."""
    yield side
    for _ in range(MAX_FACTORS):
        maker = scope.maker(side.atom)
        if maker is None:
            return
        inner = drop_transpose(side, scope.maker)
        for x, factor in list_factors(maker):
            if x.aval.shape == side.atom.aval.shape and is_alike(factor, side.free, scope):
                inner = side._replace(atom=x)
        if inner is side:
            return
        side = inner
        yield side


def list_factors(eqn: Eqn) -> Sequence[tuple[Atom, Atom]]:
    """Return the pairs of an operand and the factor, or divisor, of the elements of an equation."""
    prim = eqn.primitive
    if not isinstance(prim, Elementwise) or len(eqn.invars) != 2:
        return ()
    x, y = eqn.invars
    pairs = (x, y), (y, x)
    return {Linearity.EACH: pairs, Linearity.FIRST: pairs[:1]}.get(prim.linear, ())


def is_alike(atom: Atom, axes: Sequence[int], scope: Scope) -> bool:
    """Return True if an array has equal elements along some axes."""
    if not atom.aval.shape:
        return True
    maker = scope.maker(atom)
    if maker is None or not isinstance(maker.primitive, BroadcastInDim):
        return False
    shape = maker.invars[0].aval.shape
    places = zip(maker.params["broadcast_dimensions"], shape, strict=True)
    return all(size == 1 or place not in axes for place, size in places)


def are_equal(x: Atom, y: Atom, scope: Scope, depth: int = MAX_DEPTH) -> bool:
    """Return True if two operands are one variable, or computed by equal operations."""
    if isinstance(x, Literal) and isinstance(y, Literal):
        return x.aval == y.aval and str(x.val) == str(y.val)
    if x is y or not depth or x.aval != y.aval:
        return x is y
    a, b = scope.maker(x), scope.maker(y)
    if a is None or b is None or a.primitive is not b.primitive or a.params != b.params:
        return False
    if a.primitive.cost is Cost.UNKNOWN or len(a.outvars) > 1:  # it may have an effect
        return False
    pairs = zip(a.invars, b.invars, strict=True)
    return all(are_equal(p, q, scope, depth - 1) for p, q in pairs)
