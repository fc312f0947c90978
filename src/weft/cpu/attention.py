"""Attention by kernels, native/attention.cc, which do not store the weights.

The primitives of `dot_product_attention` are defined in nn/, a layer above this folder. They are
recognized by their form. Attention that a user writes by operations, and its gradient, are
recognized by the terms of the operands of products (terms.py).
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Var, memo_jaxpr, origin_of, variables_in
from weft.core.primitive import Body
from weft.cpu.calls import call_kernel, kernel_equation
from weft.cpu.elements import chooses_by_element
from weft.cpu.opcodes import is_instruction
from weft.cpu.rewriting import (
    Reading,
    Rewriter,
    rename_operands,
    replace_bodies,
    stage_replacement,
    write_equation,
)
from weft.cpu.scope import Scope, Target, find_repeated
from weft.cpu.survey import survey_program
from weft.cpu.symmetry import drop_transpose, read_sides
from weft.cpu.terms import (
    F32,
    Kind,
    Reader,
    Terms,
    are_close,
    find_source,
    invert_terms,
    multiply_terms,
    of_symbol,
    pull_terms,
    softmax_terms,
)
from weft.passes.dce import drop_dead_code, with_equations
from weft.passes.inline import inline_calls, rename_atoms
from weft.primitives import elementwise as ops
from weft.primitives.layout import BroadcastInDim, broadcast_in_dim, reshape, transpose
from weft.primitives.transcendental import exp_p
from weft.util import select_masked

# Features of a head, and queries, that are worth the kernel.
MAX_FEATURES, MIN_QUERIES = 128, 8
# XLA computes means of more keys as quickly, unless a mask leaves out blocks of them, as a causal
# mask does. The masks that a program computes from no argument are of this kind. A gradient takes
# 0.4 to 1.1 of XLA's time for 512 keys and more, but up to 1.2 with a bias.
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


class Role(enum.Enum):
    """The products with weights, or with cotangents of scores, that attention consists of."""

    __hash__ = object.__hash__  # by identity; that of `Enum` is in Python
    MEANS = "means of values: the result"
    QUERIES = "the cotangent of queries"
    KEYS = "the cotangent of keys"
    VALUES = "the cotangent of values"


GRADIENT = Role.QUERIES, Role.KEYS, Role.VALUES  # in the order of the kernel's results


class Factor(NamedTuple):
    """An operand of a product, and its axes in an order: axes of the stack, rows, features.

    Queries may have several axes of rows, such as the axis of a group that shares keys.
    """

    atom: Atom
    axes: tuple[int, ...]

    def sizes(self) -> tuple[int, ...]:
        """Return the sizes of the axes, in their order."""
        return tuple([self.atom.aval.shape[a] for a in self.axes])


class Use(NamedTuple):
    """A product that the kernel computes.

    Attributes:
      role: the part that the product has.
      place: the number of its equation.
      stack: the number of axes of the stack.
      scores: the scores, whose softmax is the weights.
      product: the product that is the cotangent of the weights; None where it is not read.
      times: what the cotangents of scores are multiplied by.
      factor: the operand besides the weights or the cotangents of scores.
      order: for each axis of the product, its place in the order stack, rows, features.
    """

    role: Role
    place: int
    stack: int
    scores: Atom
    product: Atom | None
    times: Terms
    factor: Factor
    order: tuple[int, ...]


class Scores(NamedTuple):
    """Scores of queries and keys: a product, which may be scaled, shifted and masked.

    Attributes:
      product: the equation of the product.
      scales: the numbers that multiply the product (False) or divide it (True).
      bias: what is added to the product after it is scaled (False), or subtracted (True).
      mask: a mask of all pairs; None if there is none.
      fill: the number in place of scores that are masked.
      keeps: the value of the mask at the scores that count.
    """

    product: Eqn
    scales: list[tuple[Atom, bool]]
    bias: tuple[Atom, bool] | None = None
    mask: Atom | None = None
    fill: Atom | None = None
    keeps: bool = True


class Written(NamedTuple):
    """Attention that is written by operations.

    Attributes:
      scores: the scores.
      factors: queries, keys and values, and the cotangent of the means if it is read.
      uses: the products that the kernel computes.
    """

    scores: Scores
    factors: list[Factor]
    uses: dict[Role, Use]

    @property
    def place(self) -> int:
        """The number of the first equation that reads the weights or their derivative."""
        return min([use.place for use in self.uses.values()])

    @property
    def gradient_place(self) -> int:
        """The number of the first equation of the gradient; -1 if there is none."""
        places = [use.place for role, use in self.uses.items() if role in GRADIENT]
        return min(places, default=-1)

    def list_atoms(self, maker: Callable) -> list[Atom]:
        """Return the atoms that the means are computed from."""
        scores = self.scores
        atoms = [f.atom for f in self.factors[:3]] + [scale for scale, _ in scores.scales]
        pairs = [scores.bias and scores.bias[0], scores.mask]
        atoms += [find_compact(a, maker)[0] for a in pairs if a is not None]
        return atoms if scores.fill is None else [*atoms, scores.fill]


@memo_jaxpr
def fuse_attention(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program that calls the kernel for attention that is written by operations.

    A profile shows operations one by one, so nothing is fused if operations are named.
    """
    if not target.native or target.located or not survey_program(jaxpr).may_attend:
        return jaxpr
    flat = inline_calls(jaxpr, True)
    if flat is not jaxpr:  # a jitted function and its gradient are two functions
        made = fuse_equations(flat, target, gradients=True)
        if made is not flat:
            jaxpr = made

    def rewrite(body: Body) -> Jaxpr:
        split = target._replace(each_device=True) if body.on_each_device else target
        return fuse_attention(body.jaxpr, split)

    eqns = [e if e.primitive.memoize_type else replace_bodies(e, rewrite) for e in jaxpr.eqns]
    return fuse_equations(with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns), target)


def fuse_equations(jaxpr: Jaxpr, target: Target, gradients: bool = False) -> Jaxpr:
    """Return a program whose own equations call the kernel for attention.

    The program itself is returned if there is no attention, or, with `gradients`, no gradient.
    """
    places = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.outvars}
    maker = lambda a: jaxpr.eqns[places[a]] if type(a) is Var and a in places else None
    found = find_attention(jaxpr, maker, places) if target.kernels else []
    while found and (not gradients or any(w.gradient_place >= 0 for w in found)):
        made = write_attention(jaxpr, found, maker, target)
        live = {v for eqn in drop_dead_code(made).eqns for v in eqn.outvars}
        # other equations read scores or weights where their product is still needed
        apart = [w for w in found if live.isdisjoint(w.scores.product.outvars)]
        if len(apart) == len(found):
            return made
        found = apart
    return jaxpr


def find_attention(jaxpr: Jaxpr, maker: Callable, places: Mapping[Any, int]) -> list[Written]:
    """Return the attention that the equations of a program compute.

    Args:
      jaxpr: a program.
      maker: gives the equation that computes a value; None if there is none.
      places: the numbers of these equations.
    """
    powers = {p for p in {e.primitive for e in jaxpr.eqns} if is_instruction(p, exp_p)}
    readers = {
        aval.shape: Reader(maker, math.prod(aval.shape[:-1]), aval.shape[-1])
        for eqn in (jaxpr.eqns if powers else ())
        if eqn.primitive in powers
        and (aval := eqn.outvars[0].aval).ndim >= 2
        and type(aval.size) is int
    }
    sizes = {frozenset(shape) for shape in readers}  # the same after a transpose
    groups: dict[Atom, list[Use]] = {}
    for place, eqn in enumerate(jaxpr.eqns if readers else ()):
        of_form = eqn.primitive.form is Form.PRODUCT
        if of_form and not sizes.isdisjoint([frozenset(a.aval.shape) for a in eqn.invars]):
            use = find_use(eqn, place, maker, readers)
            if use is not None:
                groups.setdefault(use.scores, []).append(use)
    made = [find_group(scores, uses, maker, places) for scores, uses in groups.items()]
    return [w for w in made if w is not None and is_worth(w, maker)]


def find_use(
    eqn: Eqn, place: int, maker: Callable, readers: Mapping[tuple[int, ...], Reader]
) -> Use | None:
    """Return the part that a product has in attention; None if it has none.

    There are readers for the shapes that exponentials have.
    """
    sides = [drop_transpose(side, maker) for side in read_sides(eqn)]
    for side, other in zip(sides, reversed(sides), strict=True):
        stack, shape = len(side.batch), side.atom.aval.shape
        keys, plain = len(shape) - 1, sorted(side.batch) == [*range(stack)]
        if not plain or shape not in readers or len(other.free) != 1:
            continue
        found = read_softmax(readers[shape].read(side.atom))
        over_keys = side.summed == (keys,)
        if found is None or found[0].aval.shape != shape or not (over_keys or side.free == (keys,)):
            continue
        pairs = zip((*side.batch, *side.summed), (*other.batch, *other.summed), strict=True)
        factor = Factor(other.atom, (*[a for _, a in sorted(pairs)], *other.free))
        rows = side.free if over_keys else (stack,)
        last = stack + len(rows)
        order = (*side.batch, *rows, last) if side is sides[0] else (*side.batch, last, *rows)
        role = (Role.VALUES, Role.MEANS) if found[1] is None else (Role.KEYS, Role.QUERIES)
        return Use(role[over_keys], place, stack, *found, factor, order)
    return None


def read_softmax(terms: Terms | None) -> tuple[Atom, Atom | None, Terms] | None:
    """Return the scores that terms are computed from; None if the terms are of neither kind.

    Terms of weights have no product. For terms of the cotangent of a product of queries and keys,
    the product that is the cotangent of the weights is returned as well, and the factor that the
    mask and the scales of the scores are.
    """
    kinds: dict[Kind, list[Any]] = {}
    for symbol in {symbol for factors in terms or () for symbol, _ in factors}:
        kinds.setdefault(symbol.kind, []).append(symbol)
    powers, products = kinds.get(Kind.EXP, []), kinds.get(Kind.PRODUCT, [])
    if not terms or len(powers) != 1 or len(products) > 1:
        return None
    scores = powers[0].key
    if not products:
        return (scores, None, {}) if are_close(terms, softmax_terms(scores)) else None
    for factors, c in terms.items():
        if products[0] in dict(factors):
            rest = [p for p in factors if p[0].kind in (Kind.NUMBER, Kind.MASK)]
            times = {frozenset(rest): c}
            pulled = multiply_terms(times, pull_terms(scores, products[0].key))
            return (scores, products[0].key, times) if are_close(terms, pulled) else None
    return None


def find_group(
    atom: Atom, uses: Sequence[Use], maker: Callable, places: Mapping[Any, int]
) -> Written | None:
    """Return attention that consists of some products; None if they do not belong together."""
    scores = find_scores(atom, maker)
    roles = {use.role: use for use in uses}
    moved = {use.product for use in uses if use.product is not None}
    if scores is None or len(roles) != len(uses) or len(moved) > 1:
        return None
    times = find_times(scores, maker)
    if any(use.product is not None and not are_close(use.times, times) for use in uses):
        return None
    # queries, keys, values and cotangents of means; each must be the same in all products
    parts: list[set[Factor]] = [set(), set(), set(), set()]
    products = [(scores.product, (0, 1)), *[(maker(p), (3, 2)) for p in moved]]
    for eqn, numbers in products:
        for side, i in zip(read_sides(eqn), numbers, strict=True):
            plain = len(side.summed) == 1 and (len(side.free) == 1 or i in (0, 3))
            alike = {len(side.batch), *[use.stack for use in uses]} == {len(side.batch)}
            if not plain or not alike or eqn.outvars[0].aval.shape != atom.aval.shape:
                return None
            side = drop_transpose(side, maker)
            parts[i].add(Factor(side.atom, (*side.batch, *side.free, *side.summed)))
    for role, i in ((Role.KEYS, 0), (Role.QUERIES, 1), (Role.MEANS, 2), (Role.VALUES, 3)):
        if role in roles:
            parts[i].add(roles[role].factor)
    parts[2] = parts[2] or parts[1]  # means that nobody reads
    if any(len(part) > 1 for part in parts):
        return None
    made = Written(scores, [f for part in parts for f in part], roles)
    known = lambda atoms, place: all(places.get(a, -1) < place for a in variables_in(atoms))
    if not known(made.list_atoms(maker), made.place):
        return None
    return made if known([f.atom for f in made.factors[3:]], made.gradient_place) else None


def find_times(scores: Scores, maker: Callable) -> Terms:
    """Return the factor of cotangents of scores that their mask and their scales are."""
    times: Terms = {frozenset(): 1.0}
    for scale, divides in scores.scales:
        number = Reader(maker, 0, 0).read(scale) or {}
        times = multiply_terms(times, (invert_terms(number) or {}) if divides else number)
    if scores.mask is None:
        return times
    mask = find_source(scores.mask, maker), scores.keeps
    return multiply_terms(times, of_symbol(Kind.MASK, mask))


def find_scores(atom: Atom, maker: Callable) -> Scores | None:
    """Return the scores that are a product, after a mask, a bias and scales."""
    mask, fill, keeps = None, None, True
    eqn = maker(atom)
    if eqn is not None and chooses_by_element(eqn.primitive) and len(eqn.invars) == 3:
        mask, no, yes = eqn.invars
        fill = find_scalar(no, maker)
        keeps = fill is not None
        fill = fill if keeps else find_scalar(yes, maker)
        is_mask = mask.aval.dtype == bool and mask.aval.shape == atom.aval.shape
        if not is_mask or fill is None:
            return None
        atom = yes if keeps else no
    found = find_product(atom, maker)
    if found is not None:
        return Scores(*found, None, mask, fill, keeps)
    eqn = maker(atom)
    if eqn is None or not is_instruction(eqn.primitive, ops.add_p, ops.sub_p):
        return None
    first, second = eqn.invars
    subtracts = is_instruction(eqn.primitive, ops.sub_p)
    for x, bias in [(first, second), (second, first)][: 1 if subtracts else 2]:
        found = find_product(x, maker)
        if found is not None and x.aval.shape == atom.aval.shape:
            return Scores(*found, (bias, subtracts), mask, fill, keeps)
    return None


def find_product(atom: Atom, maker: Callable) -> tuple[Eqn, list[tuple[Atom, bool]]] | None:
    """Return the equation of a product that is scaled, and the scales."""
    scales: list[tuple[Atom, bool]] = []
    while eqn := maker(atom):
        divides = eqn.primitive.form is Form.QUOTIENT
        if not divides and not is_instruction(eqn.primitive, ops.mul_p):
            break
        first, second = [find_scalar(a, maker) for a in eqn.invars]
        turned = first is not None and not divides
        number, atom = (first, eqn.invars[1]) if turned else (second, eqn.invars[0])
        if number is None:
            return None
        scales.append((number, divides))
    return (eqn, scales) if eqn is not None and eqn.primitive.form is Form.PRODUCT else None


def find_scalar(atom: Atom, maker: Callable) -> Atom | None:
    """Return the number that a value is or repeats; None if it has several numbers."""
    repeated = find_repeated(atom, maker)
    return None if repeated.aval.shape else repeated


def find_compact(atom: Atom, maker: Callable) -> tuple[Atom, Sequence[int]]:
    """Return an array before it is repeated, and where its axes are in the repeated array."""
    dims: Sequence[int] = range(atom.aval.ndim)
    while (eqn := maker(atom)) and isinstance(eqn.primitive, BroadcastInDim):
        dims = [dims[d] for d in eqn.params["broadcast_dimensions"]]
        (atom,) = eqn.invars
    return atom, dims


def is_constant(atom: Atom, maker: Callable) -> bool:
    """Return True if a value depends on no argument of the program."""
    left, seen = variables_in([atom]), set[Atom]()
    while left:
        atom = left.pop()
        eqn = maker(atom)
        if eqn is None:
            return False
        if atom not in seen:
            seen.add(atom)
            left += variables_in(eqn.invars)
    return True


def is_worth(written: Written, maker: Callable) -> bool:
    """Return True if the kernel takes the operands and is quicker than XLA."""
    avals = [f.atom.aval for f in written.factors]
    if any(a.dtype != F32 or type(a.size) is not int or not a.size for a in avals):
        return False
    if any(a.sharded is not None for a in avals):
        return False
    *_, keys, features = written.factors[1].sizes()
    queries = math.prod(find_layout(written.factors).rows)
    fits = features <= MAX_FEATURES and queries >= MIN_QUERIES
    fits = fits and all(f.sizes()[-1] == features for f in written.factors)
    mask, bias = written.scores.mask, written.scores.bias
    skips = mask is not None and is_constant(mask, maker)
    gradient = written.gradient_place >= 0 and bias is None
    return fits and (skips or gradient or keys <= MAX_SEEN_KEYS)


# --- the call of the kernel -----------------------------------------------------------------


class Layout(NamedTuple):
    """The layout of the kernel's arrays: (stack, rows, heads, features).

    If the last axis of the stack is behind the rows in all operands, it is the axis of the heads.
    Otherwise there is one head.

    Attributes:
      stack: the sizes of the stack's axes.
      split: the number of the stack's axes that are in front of the rows.
      rows: the sizes of the axes that are the rows of queries.
      keys: the number of keys.
    """

    stack: tuple[int, ...]
    split: int
    rows: tuple[int, ...]
    keys: int

    def order(self, rows: int) -> list[int]:
        """Return the places of an array's axes among those of the stack, some of rows, features."""
        n = len(self.stack)
        return [*range(self.split), *range(n, n + rows), *range(self.split, n), n + rows]

    def pack(self, x: Any, factor: Factor) -> Any:
        """Return an operand as the kernel takes it."""
        n, sizes = len(self.stack), factor.sizes()
        parts = sizes[: self.split], sizes[n:-1], sizes[self.split : n], sizes[-1:]
        x = turn(x, [factor.axes[a] for a in self.order(len(sizes) - n - 1)])
        return reshape(x, [*map(math.prod, parts)])

    def unpack(self, x: Any, use: Use) -> Any:
        """Return the product that is a result of the kernel."""
        rows = self.rows if use.role in (Role.MEANS, Role.QUERIES) else (self.keys,)
        order, sizes = self.order(len(rows)), (*self.stack, *rows, typeof(x).shape[-1])
        return turn(reshape(x, [sizes[a] for a in order]), [order.index(a) for a in use.order])

    def spread(self, x: Any, dims: Sequence[int]) -> Any:
        """Return values for pairs as the kernel takes them; `dims` are their axes of the scores."""
        n, sizes = len(self.stack), [*self.stack, *self.rows, self.keys]
        known = dict(zip(dims, typeof(x).shape, strict=True))
        groups = range(self.split), range(self.split, n), range(n, len(sizes) - 1)
        for group in groups:
            if all(known.get(a, 1) == 1 for a in group):
                sizes = [1 if a in group else size for a, size in enumerate(sizes)]
        parts = [[sizes[a] for a in group] for group in groups]
        return reshape(broadcast_in_dim(x, sizes, dims), [*map(math.prod, parts), self.keys])


def turn(x: Any, order: Sequence[int]) -> Any:
    """Return an array with its axes in an order."""
    shape = typeof(x).shape
    if moves_nothing(shape, order):
        return reshape(x, [shape[a] for a in order])
    return transpose(x, tuple(order))


def moves_nothing(shape: Sequence[int], order: Sequence[int]) -> bool:
    """Return True if an array with its axes in an order has the same elements one after another."""
    moved = [a for a in order if shape[a] != 1]
    return moved == sorted(moved)


def find_layout(factors: Sequence[Factor]) -> Layout:
    """Return the layout of the kernel's arrays for some factors."""
    *stack, keys, _ = factors[1].sizes()
    n, rows = len(stack), factors[0].sizes()[len(stack) : -1]
    heads = Layout(tuple(stack), max(n - 1, 0), rows, keys)
    apart = all(
        moves_nothing(f.atom.aval.shape, [f.axes[a] for a in heads.order(len(f.axes) - n - 1)])
        for f in factors[:3]
    )
    return heads if apart else heads._replace(split=n)


class Writer:
    """A writer of the equations that compute attention and its gradient.

    Attributes:
      made: the kernel's results for the products of `written`.
      staged: the programs that writers share, by what tells them apart: layers are alike.
    """

    def __init__(
        self,
        written: Written,
        maker: Callable,
        scope: Scope,
        new: dict[Var, Atom],
        staged: dict[Hashable, Jaxpr],
    ):
        self.written, self.maker, self.scope, self.new = written, maker, scope, new
        self.staged = staged
        self.layout = find_layout(written.factors)
        self.operands: list[Atom] = []
        self.results: list[Var] = []
        self.made: dict[Role, Atom] = {}

    def write(self, place: int, eqn: Eqn) -> None:
        """Write what belongs in front of an equation."""
        written = self.written
        if place == written.place:
            atoms = written.list_atoms(self.maker)
            self.operands = self.inline(eqn, self.prepare, atoms, *self.describe())
            q = self.operands[0].aval.shape
            self.results = self.call(eqn, [q, (2, *q[:3]) if written.gradient_place >= 0 else (0,)])
            self.made[Role.MEANS] = self.results[0]
        if place == written.gradient_place:
            factor = written.factors[3]
            pack = lambda x: [self.layout.pack(x, factor)]
            cotangent = self.inline(eqn, pack, [factor.atom], factor.axes)
            self.operands = [*self.operands, *self.results, *cotangent]
            avals = zip(GRADIENT, self.operands, strict=False)
            shapes = [a.aval.shape if role in written.uses else (0,) for role, a in avals]
            self.made.update(zip(GRADIENT, self.call(eqn, shapes), strict=True))

    def write_result(self, eqn: Eqn, use: Use) -> None:
        """Write the result of a product that the kernel has computed."""
        atoms = [self.made[use.role]]
        unpack = lambda x: [self.layout.unpack(x, use)]
        body = self.stage(unpack, atoms, use.role, use.order)
        write_equation(eqn, Reading(body, atoms), self.scope, self.new)

    def stage(self, fun: Callable, atoms: Sequence[Atom], *key: Hashable) -> Jaxpr:
        """Return a function of atoms as a program; functions differ by layout, types and `key`."""
        found = (*key, self.layout, *[a.aval for a in atoms])
        if found not in self.staged:
            self.staged[found] = stage_replacement(fun, atoms, "attention")
        return self.staged[found]

    def describe(self) -> list[Hashable]:
        """Return what `prepare` depends on, besides the layout and the types of its operands."""
        scores, dims = self.written.scores, lambda a: tuple(find_compact(a, self.maker)[1])
        bias = None if scores.bias is None else (dims(scores.bias[0]), scores.bias[1])
        mask = None if scores.mask is None else (dims(scores.mask), scores.keeps)
        axes = [f.axes for f in self.written.factors[:3]]
        return [*axes, bias, mask, *[divides for _, divides in scores.scales]]

    def inline(self, eqn: Eqn, fun: Callable, atoms: Sequence[Atom], *key: Hashable) -> list[Atom]:
        """Write a function of atoms; return its results."""
        atoms = rename_atoms(atoms, self.new)
        body = self.stage(fun, atoms, *key)
        outs = [Var(a.aval) for a in body.outvars]
        eqn = eqn.replace(outvars=outs)
        write_equation(eqn, Reading(body, atoms), self.scope, self.new)
        return [*rename_atoms(outs, self.new)]

    def prepare(self, *xs: Any) -> list[Any]:
        """Return the operands of the kernel, from the atoms that attention reads."""
        scores, factors = self.written.scores, self.written.factors
        left = iter(xs)
        operands = [self.layout.pack(next(left), f) for f in factors[:3]]
        scale: Any = np.float32(1)
        for _, divides in scores.scales:
            scale = (ops.div if divides else ops.mul)(scale, next(left))

        def spread(x: Any, atom: Atom) -> Any:
            return self.layout.spread(x, find_compact(atom, self.maker)[1])

        bias: Any = broadcast_in_dim(np.float32(0), (0, 0, 0, 0), ())
        mask: Any = self.layout.spread(np.True_, ())
        fill: Any = np.float32(0)
        if scores.bias is not None:
            atom, subtracts = scores.bias
            bias = next(left)
            bias = spread(ops.neg(bias) if subtracts else bias, atom)
        if scores.mask is not None:
            mask, fill = left
            mask = spread(mask if scores.keeps else ops.bitwise_not(mask), scores.mask)
        return [*operands, scale, bias, mask, fill]

    def call(self, eqn: Eqn, shapes: Sequence[tuple[int, ...]]) -> list[Var]:
        """Write a call of the kernel; return its results, of some shapes."""
        outs = [Var(ShapedArray(shape, F32)) for shape in shapes]
        call = kernel_equation("weft_masked_attention", self.operands, outs, {})
        call.source, call.origin = eqn.source, origin_of(eqn)
        self.scope.eqns.append(call)
        return outs


def write_attention(
    jaxpr: Jaxpr, found: Sequence[Written], maker: Callable, target: Target
) -> Jaxpr:
    """Return a program that calls the kernel for some attention that is written by operations."""
    scope = Scope(target, (), jaxpr, False, False, Rewriter(keep_equation, target))
    new: dict[Var, Atom] = {}
    staged: dict[Hashable, Jaxpr] = {}
    writers = [Writer(w, maker, scope, new, staged) for w in found]
    starts: dict[int, list[Writer]] = {}
    uses: dict[int, tuple[Writer, Use]] = {}
    for writer in writers:
        for place in {writer.written.place, writer.written.gradient_place}:
            starts.setdefault(place, []).append(writer)
        uses.update({use.place: (writer, use) for use in writer.written.uses.values()})
    for place, eqn in enumerate(jaxpr.eqns):
        for writer in starts.get(place, ()):
            writer.write(place, eqn)
        if place in uses:
            writer, use = uses[place]
            writer.write_result(eqn, use)
        else:
            scope.eqns.append(rename_operands(eqn, new))
    outvars = rename_atoms(jaxpr.outvars, new)
    return jaxpr.replace(outvars=outvars, eqns=scope.eqns)


def keep_equation(eqn: Eqn, scope: Scope) -> None:
    """Replace no equation."""
