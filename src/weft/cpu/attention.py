"""Attention by kernels, native/attention.cc, which do not store the weights.

The primitives of `dot_product_attention` are defined in nn/, a layer above this folder. They are
recognized by their form. Attention that a user writes by operations is recognized by its equations.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, memo_jaxpr, variables_in
from weft.cpu.calls import call_kernel
from weft.cpu.elements import chooses_by_element, fills_with_number
from weft.cpu.opcodes import Instruction, find_instruction
from weft.cpu.rewriting import Reading, rewrite_program
from weft.cpu.scope import Scope, Target
from weft.cpu.survey import survey_program
from weft.optimize.views import View, find_views, merge_axes, view_whole
from weft.primitives import elementwise as ops
from weft.primitives.layout import BroadcastInDim, Transpose, broadcast_in_dim, reshape, transpose
from weft.primitives.transcendental import exp_p
from weft.util import select_masked

F32 = np.dtype(np.float32)
# Features of a head, and queries, that are worth the kernel.
MAX_FEATURES, MIN_QUERIES = 128, 8
# XLA is as quick for more keys, unless a mask leaves out blocks of them, as a causal mask does. The
# masks that a program computes from no argument are of this kind.
MAX_SEEN_KEYS = 256


def choose_attention(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Compute the means, or cotangents of those operands that are `moved`, by the kernel."""
    prim: Any = eqn.primitive
    params = eqn.params
    if not prim.has_kernel or not scope.target.kernels:
        return functools.partial(prim.plain, **params)
    moved = params.get("moved", (True, True))
    given = iter(eqn.outvars)
    empty = ShapedArray((0,), eqn.outvars[0].aval.dtype)
    outs = [next(given).aval.strong() if m else empty for m in moved]
    left, right = prim.find_span(params["causal"], params["window"])
    how = {"scale": np.float32(params["scale"]), "left": left, "right": right}
    return lambda *xs: select_masked(call_kernel("weft_attention", xs, outs, how), moved)


# --- attention that is written by operations ------------------------------------------------


class Factor(NamedTuple):
    """An operand of a product, and its axes in an order: those of the stack, rows, features."""

    atom: Atom
    axes: tuple[int, ...]


class Scores(NamedTuple):
    """Scores of queries and keys: a product, which may be scaled and masked.

    Attributes:
      product: the equation of the product.
      scales: the numbers that multiply the product (False) or divide it (True).
      mask: a mask of all pairs; None if there is none.
      fill: the number in place of scores that are masked.
      keeps: the value of the mask at the scores that count.
    """

    product: Eqn
    scales: list[tuple[Atom, bool]]
    mask: Atom | None = None
    fill: Atom | None = None
    keeps: bool = True


class Walk:
    """A walk from a value back to the values that it is computed from.

    Attributes:
      scope: the program.
      passed: the equations on the way.
    """

    def __init__(self, scope: Scope):
        self.scope = scope
        self.passed: list[Eqn] = []

    def step(self, atom: Atom, *wanted: Instruction | Form | None) -> Eqn | None:
        """Return the equation that computes a value, if it is a wanted instruction or form."""
        eqn = self.scope.maker(atom)
        if eqn is None or {eqn.primitive.form, find_instruction(eqn.primitive)}.isdisjoint(wanted):
            return None
        self.passed.append(eqn)
        return eqn

    def find_number(self, atom: Atom) -> Atom | None:
        """Return the number that a value is or repeats; None if it has several numbers."""
        eqn = self.scope.maker(atom)
        if eqn is not None and fills_with_number(eqn):
            (atom,) = eqn.invars
        return None if atom.aval.shape else atom

    def reduce(self, atom: Atom, form: Form) -> Eqn | None:
        """Return the reduction of rows whose result is repeated along the last axis of a value."""
        shape, path, first = atom.aval.shape, list[Eqn](), atom
        while (
            (eqn := self.scope.maker(first))
            and eqn.primitive.cost is Cost.FREE
            and len(eqn.invars) == 1
        ):
            path.append(eqn)
            (first,) = eqn.invars
        eqn = self.step(first, form)
        if not path or eqn is None or eqn.params["axes"] != (len(shape) - 1,):
            return None
        views: dict[Any, View] = {first: view_whole(first)}
        for made in reversed(path):
            views.update(zip(made.outvars, find_views(made, views) or (), strict=False))
        self.passed += path
        view = views.get(atom)
        wanted = (math.prod(shape[:-1]), shape[-1]), (1, 0)
        return eqn if view is not None and not view.start and merge_axes(view) == wanted else None

    def find_scores(self, weights: Atom) -> Scores | None:
        """Return the scores that weights are the softmax of, along the last axis."""
        ratio = self.step(weights, Form.QUOTIENT)
        total = ratio and self.reduce(ratio.invars[1], Form.SUM)
        if not ratio or not total or total.invars[0] is not ratio.invars[0]:
            return None
        power = self.step(ratio.invars[0], exp_p)
        move = power and self.step(power.invars[0], ops.sub_p)
        top = move and self.reduce(move.invars[1], Form.EXTREMUM)
        if not move or not top or top.invars[0] is not move.invars[0]:
            return None
        extremum: Any = top.primitive
        return self.find_product(move.invars[0]) if extremum.largest else None

    def find_product(self, atom: Atom) -> Scores | None:
        """Return the scores that are a product, after a mask and scales."""
        scales, mask, fill, keeps = list[tuple[Atom, bool]](), None, None, True
        eqn = self.scope.maker(atom)
        if eqn is not None and chooses_by_element(eqn.primitive) and len(eqn.invars) == 3:
            mask, no, yes = eqn.invars
            fill = self.find_number(no)
            keeps = fill is not None
            fill = fill if keeps else self.find_number(yes)
            if mask.aval.shape != atom.aval.shape or mask.aval.dtype != bool or fill is None:
                return None
            self.passed.append(eqn)
            atom = yes if keeps else no
        while eqn := self.step(atom, ops.mul_p, Form.QUOTIENT):
            divides = eqn.primitive.form is Form.QUOTIENT
            first, second = map(self.find_number, eqn.invars)
            turned = first is not None and not divides
            number, atom = (first, eqn.invars[1]) if turned else (second, eqn.invars[0])
            if number is None:
                return None
            scales.append((number, divides))
        product = self.step(atom, Form.PRODUCT)
        return Scores(product, scales, mask, fill, keeps) if product else None

    def find_compact(self, mask: Atom) -> tuple[Atom, Sequence[int]]:
        """Return a mask before it is repeated, and where its axes are in the repeated mask."""
        eqn = self.scope.maker(mask)
        if eqn is not None and isinstance(eqn.primitive, BroadcastInDim):
            return eqn.invars[0], eqn.params["broadcast_dimensions"]
        return mask, range(mask.aval.ndim)

    def is_constant(self, atom: Atom) -> bool:
        """Return True if a value depends on no argument of the program."""
        left, seen = [atom], set[Atom]()
        while left:
            atom = left.pop()
            eqn = self.scope.maker(atom)
            if atom in self.scope.program.invars:
                return False
            if eqn is not None and atom not in seen:
                seen.add(atom)
                left += eqn.invars
        return True

    def find_factor(self, atom: Atom, axes: tuple[int, ...]) -> Factor:
        """Return an operand before transposes, with its axes."""
        while (eqn := self.scope.maker(atom)) and isinstance(eqn.primitive, Transpose):
            axes = tuple([eqn.params["permutation"][a] for a in axes])
            (atom,) = eqn.invars
        return Factor(atom, axes)

    def is_apart(self, last: Eqn) -> bool:
        """Return True if `last` alone reads what the equations on the way compute."""
        inside = {id(last), *map(id, self.passed)}
        made = {v for eqn in self.passed for v in eqn.outvars}
        outside = [e for e in self.scope.program.eqns if id(e) not in inside]
        read = [*self.scope.program.outvars, *[a for e in outside for a in e.invars]]
        return made.isdisjoint(variables_in(read))


@memo_jaxpr
def fuse_attention(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program that calls the kernel for attention that is written by operations.

    A profile shows operations one by one, so nothing is fused if operations are named.
    """
    if not target.kernels or target.located or not survey_program(jaxpr).reduces:
        return jaxpr
    given = (False,) * len(jaxpr.invars)
    return rewrite_program(jaxpr, choose_written_attention, target, given)


def choose_written_attention(eqn: Eqn, scope: Scope) -> Reading | None:
    """Return the call of the kernel for `softmax(mask(q @ k.T * scale)) @ v`.

    The weights must be the left operand of `eqn`, the last product, and no other equation may read
    them. The results are those of the operations, also where values or scores are not finite.
    """
    if eqn.primitive.form is not Form.PRODUCT:
        return None
    weights, values = eqn.invars
    walk = Walk(scope)
    scores = walk.find_scores(weights)
    if scores is None or not walk.is_apart(eqn):
        return None
    stack = weights.aval.ndim - 2
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    if (*lb, *lc) != (*range(stack), stack + 1) or len(lc) != 1:
        return None
    (q, k), last = scores.product.invars, (values, rb, rc, True)
    (qc, kc), (qb, kb) = scores.product.params["dimension_numbers"]
    factors = []
    for atom, batch, summed, turned in ((q, qb, qc, False), (k, kb, kc, False), last):
        free = {*range(atom.aval.ndim)}.difference(batch, summed)
        if len(batch) != stack or len(summed) != 1 or len(free) != 1:
            return None
        axes = (*summed, *free) if turned else (*free, *summed)
        factors.append(walk.find_factor(atom, (*batch, *axes)))
    if not is_worth(factors, walk, scores):
        return None
    dims: Sequence[int] = ()
    given = [*[f.atom for f in factors], *[a for a, _ in scores.scales]]
    if scores.mask is not None and scores.fill is not None:
        compact, dims = walk.find_compact(scores.mask)
        given += [compact, scores.fill]
    return Reading(functools.partial(write_attention, factors, scores, dims), given)


def is_worth(factors: Sequence[Factor], walk: Walk, scores: Scores) -> bool:
    """Return True if the kernel takes the operands and is quicker than XLA."""
    avals = [f.atom.aval for f in factors]
    if any(a.dtype != F32 or type(a.size) is not int or not a.size for a in avals):
        return False
    if any(a.sharded is not None for a in avals):
        return False
    (queries, features), (keys, _), (_, values) = [sizes_of(f)[-2:] for f in factors]
    fits = features == values <= MAX_FEATURES and queries >= MIN_QUERIES
    skips = scores.mask is not None and walk.is_constant(scores.mask)
    return fits and (skips or keys <= MAX_SEEN_KEYS)


def sizes_of(factor: Factor) -> tuple[int, ...]:
    """Return the sizes of the axes of a factor, in their order."""
    return tuple([factor.atom.aval.shape[a] for a in factor.axes])


def write_attention(
    factors: Sequence[Factor], scores: Scores, dims: Sequence[int], *xs: Any
) -> list:
    """Write the call of the kernel.

    It takes arrays (stack, rows, heads, features). If the last axis of the stack is behind the rows
    in all operands, it is the axis of the heads. Otherwise there is one head.

    Args:
      factors: queries, keys and values.
      scores: the scores.
      dims: the axes of the scores that the compact mask has.
      *xs: the arrays of the factors, the scales, and, if there is a mask, the mask and its number.
    """
    *stack, queries, features = sizes_of(factors[0])
    keys, n = sizes_of(factors[1])[-2], len(stack)
    order = (*range(n - 1), n, n - 1, n + 1)
    split = n - 1 if n and all(f.axes == order for f in factors) else n
    heads, batch = math.prod(stack[split:]), math.prod(stack[:split])

    def pack(x: Any, factor: Factor) -> Any:
        x = x if split < n else transpose(x, factor.axes)
        return reshape(x, (batch, sizes_of(factor)[-2], heads, features))

    operands = [pack(x, f) for x, f in zip(xs, factors, strict=False)]
    scale: Any = np.float32(1)
    for x, (_, divides) in zip(xs[3:], scores.scales, strict=False):
        scale = ops.div(scale, x) if divides else ops.mul(scale, x)
    mask, fill = xs[-2:] if scores.mask is not None else (np.True_, np.float32(0))
    sizes = [*stack, queries, keys]
    known = dict(zip(dims, typeof(mask).shape, strict=True))
    for group in (range(split), range(split, n), (n,), ()):
        if all(known.get(a, 1) == 1 for a in group):
            sizes = [1 if a in group else size for a, size in enumerate(sizes)]
    mask = broadcast_in_dim(mask if scores.keeps else ops.bitwise_not(mask), sizes, dims)
    parts = sizes[:split], sizes[split:n], sizes[n : n + 1], sizes[n + 1 :]
    mask = reshape(mask, [*map(math.prod, parts)])
    outs = [ShapedArray((batch, queries, heads, features), F32)]
    (y,) = call_kernel("weft_masked_attention", [*operands, scale, mask, fill], outs, {})
    if split == n:
        return [reshape(y, (*stack, queries, features))]
    return [transpose(reshape(y, (*stack[:-1], queries, heads, features)), order)]
