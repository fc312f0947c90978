"""The variables of symbolic shapes from the sizes of arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from weft.core.aval import ShapedArray
from weft.errors import ShapeError
from weft.export.dims import Dim, Size, evaluate_size, find_order
from weft.export.specs import SymbolicScope


class Step(NamedTuple):
    """`name` is (size of axis `axis` of argument `argument` - rest) // count."""

    name: str
    argument: int
    axis: int
    count: int
    rest: Size


def find_scope(avals: Sequence[ShapedArray]) -> SymbolicScope | None:
    """The one scope of the sizes in types; None where they have no symbolic ones."""
    dims = [n for a in avals for n in a.shape if isinstance(n, Dim)]
    for n in dims[1:]:
        dims[0].scope.check_same(n)
    return dims[0].scope if dims else None


def plan_sizes(op: str, avals: Sequence[ShapedArray]) -> list[Step]:
    """The equations that give each variable in the shapes of arguments, one after another."""
    places = [(i, axis, n) for i, a in enumerate(avals) for axis, n in enumerate(a.shape)]
    waiting = [place for place in places if isinstance(place[2], Dim)]
    needed = set().union(*[n.variables() for _, _, n in waiting])
    steps: dict[str, Step] = {}
    while len(steps) < len(needed):
        for i, axis, n in waiting:
            unknown = n.variables() - steps.keys()
            name = next(iter(unknown), "")
            count = n.terms.get(((name, 1),), 0)
            if len(unknown) == 1 and count:
                rest = n - count * Dim.variable(name, n.scope)
                if not (isinstance(rest, Dim) and name in rest.variables()):
                    steps[name] = Step(name, i, axis, count, rest)
                    break
        else:
            left = ", ".join(sorted(needed - steps.keys()))
            shapes = ", ".join(map(str, avals))
            raise ShapeError(
                f"{op}: each variable must follow from a size that is linear in it, where the "
                f"others are known; got {left} in {shapes}. Hint: an argument with an axis of size "
                f"{left.split(',')[0]}."
            )
    return list(steps.values())


def solve_sizes(
    name: str, wanted: Sequence[ShapedArray], given: Sequence[ShapedArray]
) -> Mapping[str, Size]:
    """The variables in the types of a program's arguments, for arguments of the types `given`."""
    scope, sizes = find_scope(wanted), {}
    for step in plan_sizes(name, wanted):
        left = given[step.argument].shape[step.axis] - evaluate_size(step.rest, sizes)
        sizes[step.name] = left // step.count
        if step.count * sizes[step.name] != left:
            text = wanted[step.argument].shape[step.axis]
            raise misfit(name, wanted, given, sizes, f"{text} = {left + step.rest}")
        if not find_order(sizes[step.name], 1, ">="):
            raise misfit(name, wanted, given, sizes, f"{step.name} is not at least 1")
    for want, got in zip(wanted, given, strict=True):
        for n, size in zip(want.shape, got.shape, strict=True):
            if evaluate_size(n, sizes) != size:
                raise misfit(name, wanted, given, sizes, f"{n} is not {size}")
    holds: dict[str, Callable] = {
        ">=": lambda a, b: find_order(a, b, ">="),
        "<=": lambda a, b: find_order(a, b, "<="),
        "==": lambda a, b: a == b,
    }
    for text, a, sign, b in scope.constraints if scope else ():
        known = all(x.variables() <= sizes.keys() for x in (a, b) if isinstance(x, Dim))
        if known and not holds[sign](evaluate_size(a, sizes), evaluate_size(b, sizes)):
            raise misfit(name, wanted, given, sizes, f"{text} does not hold")
    return sizes


def misfit(
    name: str,
    wanted: Sequence[ShapedArray],
    given: Sequence[ShapedArray],
    sizes: Mapping[str, Size],
    problem: str,
) -> ShapeError:
    """The error for sizes that do not fit the shapes a program was exported for."""
    known = ", ".join(f"{n} = {size}" for n, size in sizes.items())
    listed = lambda avals: f"({', '.join(map(str, avals))})"
    return ShapeError(
        f"{name}: an exported program must be called with sizes that fit {listed(wanted)}; got "
        f"{listed(given)}, where {known}: {problem}."
    )
