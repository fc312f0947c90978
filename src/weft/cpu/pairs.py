"""The pass that multiplies a matrix by two vectors, by rows and by columns, while it is read once.

Such products take as long as it takes to read the matrix. `A.T @ (A @ x)` of least squares is one
pair; `A @ x` and `y @ A` of biconjugate gradients is another. The kernel is in native/matvec.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.core.jaxpr import Atom, Eqn, Jaxpr, memo_jaxpr, origin_of, variables_in
from weft.cpu.calls import CpuCall, kernel_equation, read_attributes
from weft.cpu.rewriting import replace_bodies
from weft.cpu.scope import Target

# Elements of a row: the kernel adds eight rows to sums while these rows are in the L2 cache.
MAX_ROW = 1 << 13


class Pair(NamedTuple):
    """Two products of one matrix.

    Attributes:
      rows: the number of the equation that multiplies by rows.
      columns: the number of the equation that multiplies by columns.
      at: the number of the equation in whose place the call of the kernel stands.
    """

    rows: int
    columns: int
    at: int


@memo_jaxpr
def pair_products(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program that reads each matrix once for a product by rows and one by columns."""
    if not target.kernels or target.located:
        return jaxpr
    eqns = [
        e
        if e.primitive.memoize_type
        else replace_bodies(e, lambda b: pair_products(b.jaxpr, target))
        for e in jaxpr.eqns
    ]
    pairs = find_pairs(jaxpr, eqns)
    if not pairs:
        same = all(a is b for a, b in zip(eqns, jaxpr.eqns, strict=True))
        return jaxpr if same else jaxpr.replace(eqns=eqns)
    calls = {pair.at: write_pair(eqns, pair) for pair in pairs}
    dropped = {i for pair in pairs for i in (pair.rows, pair.columns)}
    made = [calls.get(i, e) for i, e in enumerate(eqns) if i in calls or i not in dropped]
    return jaxpr.replace(eqns=made)


def find_pairs(jaxpr: Jaxpr, eqns: Sequence[Eqn]) -> list[Pair]:
    """Return the pairs of products of one matrix; no product is in two pairs."""
    found: dict[tuple, list[int]] = {}
    for i, eqn in enumerate(eqns):
        if isinstance(eqn.primitive, CpuCall) and eqn.params["kernel"] == "weft_matvec":
            given = read_attributes(eqn)
            if not given["extras"].startswith(("left", "right")):
                found.setdefault((eqn.invars[0], given["turned"]), []).append(i)
    pairs: list[Pair] = []
    for (matrix, turned), numbers in found.items():
        others = found.get((matrix, True), ())
        if turned or not others or matrix.aval.shape[1] > MAX_ROW:
            continue
        free = [*others]
        for rows in numbers:
            for columns in free:
                if (at := find_place(eqns, rows, columns)) is not None:
                    pairs.append(Pair(rows, columns, at))
                    free.remove(columns)
                    break
    return pairs


def find_place(eqns: Sequence[Eqn], rows: int, columns: int) -> int | None:
    """Return where one call can stand for two products; None if it can stand nowhere.

    It stands at the first equation if the operands of the second are known there, or its vector is
    the result of the first. Otherwise it stands at the second, if no equation before reads the
    result of the first.
    """
    first, second = sorted((rows, columns))
    out, vector = eqns[first].outvars[0], eqns[second].invars[1]
    needed: set[Any] = {*variables_in(eqns[second].invars[2:])}
    if vector is not out:
        needed.add(vector)
    if out in needed or (vector is out and first != rows):
        return None
    if needed.isdisjoint([v for e in eqns[first:second] for v in e.outvars]):
        return first
    return None if any(reads(e, out) for e in eqns[first + 1 : second]) else second


def reads(eqn: Eqn, variable: Atom) -> bool:
    """Return True if an equation reads a variable."""
    return any(a is variable for a in eqn.invars)


def write_pair(eqns: Sequence[Eqn], pair: Pair) -> Eqn:
    """Return the call of the kernel for two products."""
    rows, columns = eqns[pair.rows], eqns[pair.columns]
    matrix, right, *extras = rows.invars
    left, *turned_extras = columns.invars[1:]
    chained = left is rows.outvars[0]  # the kernel does not read `left` then
    operands = [matrix, right, right if chained else left, *extras, *turned_extras]
    outs = [rows.outvars[0], columns.outvars[0]]
    names = [read_attributes(e)["extras"] for e in (rows, columns)]
    how = {"chained": chained, "extras": names[0], "turned_extras": names[1]}
    call = kernel_equation("weft_matvec_pair", operands, outs, how)
    call.source, call.origin = eqns[pair.at].source, origin_of(eqns[pair.at])
    return call
