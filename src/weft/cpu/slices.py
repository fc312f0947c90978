"""Slices of computed arrays, as CPUs compute them quickest."""

from __future__ import annotations

import math
from typing import Any

from weft.core.jaxpr import Atom, Eqn, Literal, Var
from weft.cpu.elements import FAMILIES, computes_by_element
from weft.cpu.rewriting import Reading
from weft.cpu.scope import Scope
from weft.primitives.dynamic_slicing import dynamic_slice_p
from weft.primitives.layout import BroadcastInDim, broadcast_in_dim, literal

MIN_PARTS = 32  # slices that an array is large enough for, so that computing one again is little
MAX_STEPS = 32  # equations that are computed again


def choose_slice(eqn: Eqn, scope: Scope) -> Reading | None:
    """Compute a small slice of a computed array from slices of what the array is computed from.

    XLA:CPU makes one loop of the array, its slice, and what reads both. In the loop it computes the
    slice for every element: `b = f(a)`, `b.at[:, k].set(g(b[:, k]))` takes 5 times as long.
    """
    x, *starts = eqn.invars
    sizes = eqn.params["slice_sizes"]
    if type(x.aval.size) is not int or x.aval.size < MIN_PARTS * math.prod(sizes):
        return None
    steps = find_steps(x, scope)
    if not any(computes_by_element(step) for step in steps.values()):
        return None
    operands = [a for step in steps.values() for a in step.invars if type(a) is Var]
    leaves = [*dict.fromkeys(a for a in operands if a not in steps)]

    def compute_slice(*values: Any) -> list:
        corner = values[len(leaves) :]
        return [compute_part(x, steps, dict(zip(leaves, values, strict=False)), corner, sizes)]

    return Reading(compute_slice, [*leaves, *starts])


def find_steps(x: Atom, scope: Scope) -> dict[Atom, Eqn]:
    """Return the equations, by their results, that give elements of x one by one; {} if many."""
    steps: dict[Atom, Eqn] = {}
    todo = [x]
    while todo and len(steps) <= MAX_STEPS:
        atom = todo.pop()
        if type(atom) is Literal or atom in steps or not atom.aval.shape:
            continue
        maker = scope.maker(atom)
        if maker is None:
            continue
        by_element = isinstance(maker.primitive, FAMILIES) and computes_by_element(maker)
        if by_element or isinstance(maker.primitive, BroadcastInDim):
            steps[atom] = maker
            todo += maker.invars
    return steps if len(steps) <= MAX_STEPS else {}


def compute_part(
    x: Atom, steps: dict[Atom, Eqn], given: dict[Var, Any], corner: Any, sizes: tuple[int, ...]
) -> Any:
    """Return the slice of x of the given sizes at a corner, by `steps` from `given` values."""
    made: dict[tuple, Any] = {}

    def compute(atom: Atom, axes: tuple[int | None, ...]) -> Any:
        """Return the part of an array whose axes are these of x, or None: repeated along x's."""
        if type(atom) is Literal:
            return atom.read()
        key = atom, axes
        if key not in made:
            made[key] = compute_anew(atom, axes)
        return made[key]

    def compute_anew(atom: Any, axes: tuple[int | None, ...]) -> Any:
        pairs = zip(axes, atom.aval.shape, strict=True)
        shape = tuple([n if k is None else sizes[k] for k, n in pairs])
        step = steps.get(atom)
        if step is None:
            if shape == atom.aval.shape:
                return given[atom]
            zero = literal(0, corner[0].dtype)
            starts = [zero if k is None else corner[k] for k in axes]
            return dynamic_slice_p.apply(given[atom], *starts, slice_sizes=shape)[0]
        if isinstance(step.primitive, BroadcastInDim):
            (source,), dims = step.invars, step.params["broadcast_dimensions"]
            repeated = [
                n != atom.aval.shape[d] for n, d in zip(source.aval.shape, dims, strict=True)
            ]
            inner = [None if one else axes[d] for one, d in zip(repeated, dims, strict=True)]
            return broadcast_in_dim(compute(source, tuple(inner)), shape, dims)
        operands = [compute(a, axes if a.aval.shape else ()) for a in step.invars]
        return step.primitive.apply(*operands, **step.params)[0]

    return compute(x, tuple(range(len(sizes))))
