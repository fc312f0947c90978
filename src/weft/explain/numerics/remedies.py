"""Find formulas in a program that have a more precise rewrite.

A row of `REMEDIES` has the usual form of a formula and its rewrite, both as functions. The formula
is staged, and the user's program is searched for it. If it is found, the rewrite is computed from
the same operands, in the narrow and in the wide type. It is proposed if its error is smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import weft.numpy as jnp
from weft import dtypes, nn, scipy
from weft.core.aval import ShapedArray
from weft.core.facts import Elements
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var
from weft.core.primitive import Primitive
from weft.core.stage import stage
from weft.errors import ShapeError
from weft.primitives.elementwise import add_p, mul_p
from weft.util import memoize

LENGTH = 5  # of the vectors that formulas with sums are staged for
EITHER_ORDER = frozenset((add_p, mul_p))
THROUGH = (Elements.MOVED,)  # operations that are skipped when a formula is matched


class Remedy(NamedTuple):
    """A rewrite: its code, the formulas that it replaces, and the function that computes it.

    If `sums` is True, the operands are vectors that the formula sums over, and the rewrite takes
    an argument `axis`.
    """

    code: str
    formulas: Sequence[Callable]
    rewrite: Callable
    sums: bool = False


def square(x: Any) -> Any:
    """Return x squared."""
    return x * x


def scaled_norm(x: Any, axis: Any) -> Any:
    """Return a norm. The operand is scaled first, so that its squares stay in range."""
    top = jnp.max(jnp.abs(x), axis, keepdims=True)
    top = jnp.where(top == 0, 1, top)
    return jnp.squeeze(top, axis) * jnp.sqrt(jnp.sum(square(x / top), axis))


def solve_quadratic(a: Any, b: Any, c: Any) -> Any:
    """Return the root of a x**2 + b x + c that is nearer to zero if b > 0."""
    return 2 * c / (-b - jnp.sqrt(b * b - 4 * a * c))


mean = lambda x: jnp.sum(x) / LENGTH
grow = lambda x, y: jnp.exp(y * jnp.log1p(x))
double_arctanh = lambda x: 2 * jnp.arctanh(x)
tanh_rest = lambda x: 2 / (jnp.exp(2 * x) + 1)

REMEDIES = (
    Remedy("jnp.log1p(x)", (lambda x: jnp.log(1 + x),), jnp.log1p),
    Remedy("jnp.expm1(x)", (lambda x: jnp.exp(x) - 1,), jnp.expm1),
    Remedy(
        "weft.scipy.special.logsumexp(x)",
        (lambda x: jnp.log(jnp.sum(jnp.exp(x))),),
        lambda x, axis: scipy.special.logsumexp(x, axis),
        True,
    ),
    Remedy(
        "weft.nn.log_softmax(x)",
        (lambda x: jnp.log(jnp.exp(x) / jnp.sum(jnp.exp(x))),),
        lambda x, axis: nn.log_softmax(x, axis),
        True,
    ),
    Remedy(
        "weft.nn.softmax(x)",
        (lambda x: jnp.exp(x) / jnp.sum(jnp.exp(x)),),
        lambda x, axis: nn.softmax(x, axis),
        True,
    ),
    Remedy(
        "jnp.hypot(x, y)",
        (lambda x, y: jnp.sqrt(x * x + y * y), lambda x, y: jnp.sqrt(x**2 + y**2)),
        jnp.hypot,
    ),
    Remedy(
        "m = jnp.max(jnp.abs(x)); m * jnp.sqrt(jnp.sum((x / m) ** 2))",
        (lambda x: jnp.sqrt(jnp.sum(x * x)), lambda x: jnp.sqrt(jnp.sum(x**2))),
        scaled_norm,
        True,
    ),
    Remedy(
        "jnp.var(x), or jnp.mean((x - jnp.mean(x)) ** 2)",
        (
            lambda x: mean(x * x) - mean(x) * mean(x),
            lambda x: mean(x**2) - mean(x) ** 2,
            lambda x: mean(x * x) - mean(x) ** 2,
        ),
        lambda x, axis: jnp.var(x, axis),
        True,
    ),
    Remedy(
        "jnp.mean((x - jnp.mean(x)) * (y - jnp.mean(y)))",
        (lambda x, y: mean(x * y) - mean(x) * mean(y),),
        lambda x, y, axis: jnp.mean(
            (x - jnp.mean(x, axis, keepdims=True)) * (y - jnp.mean(y, axis, keepdims=True)), axis
        ),
        True,
    ),
    Remedy(
        "jnp.sum((x - y) ** 2)",
        (
            lambda x, y: jnp.sum(x * x) + jnp.sum(y * y) - 2 * jnp.sum(x * y),
            lambda x, y: jnp.sum(x**2) + jnp.sum(y**2) - 2 * jnp.sum(x * y),
        ),
        lambda x, y, axis: jnp.sum(square(x - y), axis),
        True,
    ),
    Remedy(
        "2 * jnp.sin(x / 2) ** 2", (lambda x: 1 - jnp.cos(x),), lambda x: 2 * square(jnp.sin(x / 2))
    ),
    Remedy(
        "(x - y) * (x + y)",
        (lambda x, y: x * x - y * y, lambda x, y: x**2 - y**2),
        lambda x, y: (x - y) * (x + y),
    ),
    Remedy(
        "(x - y) / (jnp.sqrt(x) + jnp.sqrt(y))",
        (lambda x, y: jnp.sqrt(x) - jnp.sqrt(y),),
        lambda x, y: (x - y) / (jnp.sqrt(x) + jnp.sqrt(y)),
    ),
    Remedy(
        "1 / (jnp.sqrt(x + 1) + jnp.sqrt(x))",
        (lambda x: jnp.sqrt(x + 1) - jnp.sqrt(x),),
        lambda x: 1 / (jnp.sqrt(x + 1) + jnp.sqrt(x)),
    ),
    Remedy("jnp.exp(y * jnp.log1p(x))", (lambda x, y: (1 + x) ** y,), grow),
    Remedy("jnp.sinh(x)", (lambda x: (jnp.exp(x) - jnp.exp(-x)) / 2,), jnp.sinh),
    Remedy("2 * jnp.sinh(x)", (lambda x: jnp.exp(x) - jnp.exp(-x),), lambda x: 2 * jnp.sinh(x)),
    Remedy("2 * jnp.arctanh(x)", (lambda x: jnp.log((1 + x) / (1 - x)),), double_arctanh),
    Remedy(
        "1 / (x + jnp.sqrt(x * x - 1))",
        (lambda x: x - jnp.sqrt(x * x - 1), lambda x: x - jnp.sqrt(x**2 - 1)),
        lambda x: 1 / (x + jnp.sqrt(x * x - 1)),
    ),
    Remedy(
        "1 / (x + jnp.sqrt(x * x + 1))",
        (lambda x: jnp.sqrt(x * x + 1) - x, lambda x: jnp.sqrt(x**2 + 1) - x),
        lambda x: 1 / (x + jnp.sqrt(x * x + 1)),
    ),
    Remedy("weft.nn.softplus(x)", (lambda x: jnp.log(1 + jnp.exp(x)),), lambda x: nn.softplus(x)),
    Remedy(
        "weft.nn.log_sigmoid(x)",
        (lambda x: jnp.log(1 / (1 + jnp.exp(-x))), lambda x: jnp.log(nn.sigmoid(x))),
        lambda x: nn.log_sigmoid(x),
    ),
    Remedy(
        "weft.nn.sigmoid(-x)",
        (lambda x: 1 - 1 / (1 + jnp.exp(-x)), lambda x: 1 - nn.sigmoid(x)),
        lambda x: nn.sigmoid(-x),
    ),
    Remedy("2 / (jnp.exp(2 * x) + 1)", (lambda x: 1 - jnp.tanh(x),), tanh_rest),
    Remedy("weft.scipy.special.erfc(x)", (lambda x: 1 - scipy.special.erf(x),), scipy.special.erfc),
    Remedy(
        "jnp.sum(jnp.log(x))",
        (lambda x: jnp.log(jnp.prod(x)),),
        lambda x, axis: jnp.sum(jnp.log(x), axis),
        True,
    ),
    Remedy(
        "2 * c / (-b - jnp.sqrt(b * b - 4 * a * c))",
        (
            lambda a, b, c: (-b + jnp.sqrt(b * b - 4 * a * c)) / (2 * a),
            lambda a, b, c: (-b + jnp.sqrt(b**2 - 4 * a * c)) / (2 * a),
        ),
        solve_quadratic,
    ),
)


class Match(NamedTuple):
    """A formula found in a program: its rewrite, its operands, and the equations it is made of."""

    remedy: Remedy
    leaves: Sequence[Any]
    axes: tuple[int, ...]
    eqns: Sequence[Eqn]

    @property
    def code(self) -> str:
        return self.remedy.code

    def rewrite(self, xs: Sequence[Any]) -> Any:
        """Return the result of the rewrite for the given operands."""
        return self.remedy.rewrite(*xs, **({"axis": self.axes} if self.remedy.sums else {}))


@memoize
def stage_formulas() -> list[tuple[Remedy, Jaxpr]]:
    """Return the formulas as programs, each with its row."""
    found = []
    for remedy in REMEDIES:
        aval = ShapedArray((LENGTH,) if remedy.sums else (), np.dtype(np.float32))
        for formula in remedy.formulas:
            count = formula.__code__.co_argcount
            call = lambda *xs, formula=formula: [formula(*xs)]
            jaxpr, _ = stage(call, [aval] * count)
            found.append((remedy, jaxpr))
    return found


def find_remedies(jaxpr: Jaxpr) -> dict[int, list[Match]]:
    """Return the rewrites for a program, by the id of the last equation of the formula."""
    makers = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    by_primitive: dict[Primitive, list[Eqn]] = {}
    for eqn in jaxpr.eqns:
        by_primitive.setdefault(eqn.primitive, []).append(eqn)
    found: dict[int, list[Match]] = {}
    for remedy, formula in stage_formulas():
        own = {v: eqn for eqn in formula.eqns for v in eqn.outvars}
        root = skip_moves(formula.outvars[0], own)
        last = own[root]
        for eqn in by_primitive.get(last.primitive, ()):
            search = Search(own, makers)
            if not search.unify(root, eqn.outvars[0]):
                continue
            leaves = [search.bound.get(v) for v in formula.invars]
            if None not in leaves and is_sensible(eqn, leaves, remedy, search.axes):
                match = Match(remedy, leaves, search.axes, list(search.eqns))
                found.setdefault(id(eqn), []).append(match)
    return found


def is_sensible(eqn: Eqn, leaves: Sequence[Any], remedy: Remedy, axes: tuple[int, ...]) -> bool:
    """Return True if the rewrite of a formula has the type of the equation's result."""
    avals = [a.aval for a in leaves]
    if not all(type(a) is ShapedArray and dtypes.is_float(a.dtype) for a in avals):
        return False
    if len({a.dtype for a in avals}) > 1 or (remedy.sums and not axes):
        return False
    call = lambda *xs: [Match(remedy, leaves, axes, ()).rewrite(xs)]
    try:
        jaxpr, _ = stage(call, avals)
    except (TypeError, ValueError, ShapeError):
        return False
    return jaxpr.out_avals[0].shape == eqn.outvars[0].aval.shape


def skip_moves(atom: Any, makers: dict[Var, Eqn]) -> Any:
    """Return the value in front of a chain of broadcasts, reshapes and the like."""
    while type(atom) is not Literal and atom in makers:
        eqn = makers[atom]
        if eqn.primitive.elements not in THROUGH or len(eqn.invars) != 1:
            break
        atom = eqn.invars[0]
    return atom


class Search:
    """The search for a formula in a program, with the values that its parameters stand for."""

    def __init__(self, own: dict[Var, Eqn], makers: dict[Var, Eqn]):
        self.own, self.makers = own, makers
        self.bound: dict[Var, Any] = {}
        self.eqns: list[Eqn] = []
        self.axes: tuple[int, ...] = ()

    def unify(self, mine: Any, theirs: Any) -> bool:
        """Return True if a value of the formula can stand for a value of the program."""
        mine = skip_moves(mine, self.own)
        if type(mine) is not Literal and mine not in self.own:  # a parameter
            return self.bind(mine, theirs)
        theirs = skip_moves(theirs, self.makers)
        if type(mine) is Literal:
            if type(theirs) is not Literal:
                return False
            is_size = mine.val == LENGTH  # means divide by the number of elements, whatever it is
            return is_size or bool(mine.val == theirs.val)
        if type(theirs) is Literal or theirs not in self.makers:
            return False
        a, b = self.own[mine], self.makers[theirs]
        if a.primitive is not b.primitive or len(a.invars) != len(b.invars):
            return False
        if a.params.get("y") != b.params.get("y"):
            return False
        saved = dict(self.bound), list(self.eqns), self.axes
        self.eqns.append(b)
        self.axes = tuple(b.params.get("axes", self.axes))
        orders = [b.invars]
        if a.primitive in EITHER_ORDER:
            orders.append(b.invars[::-1])
        for order in orders:
            if all(map(self.unify, a.invars, order)):
                return True
            self.bound, self.eqns, self.axes = dict(saved[0]), [*saved[1], b], self.axes
        self.bound, self.eqns, self.axes = saved
        return False

    def bind(self, parameter: Var, theirs: Any) -> bool:
        """Return True if a parameter of the formula can stand for a value of the program."""
        if type(theirs) is Literal:
            return False
        if parameter not in self.bound:
            self.bound[parameter] = theirs
        mine = self.bound[parameter]
        return skip_moves(mine, self.makers) is skip_moves(theirs, self.makers)
