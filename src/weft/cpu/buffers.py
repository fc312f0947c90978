"""Loops that write two steps in a body, so that arrays of the carry are not copied.

XLA:CPU keeps an array of the carry in one buffer. A step that computes elements from others of the
array must not overwrite these before. So XLA computes the result to memory, and copies it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft import dtypes
from weft.control.scan import scan_p, scan_params
from weft.core.facts import Cost
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var
from weft.cpu.elements import computes_by_element, is_fused
from weft.cpu.rewriting import Replacement, read_results, restage
from weft.cpu.scope import Scope
from weft.cpu.updates import clamp_places, find_base, follow_operands, is_update, keep, reads_window
from weft.primitives.dynamic_slicing import dynamic_update_slice
from weft.primitives.slicing import slice
from weft.primitives.tokens import optimization_barrier
from weft.util import JAXLIB

MIN_STEPS = 8  # of a loop; the second buffer is a copy of the array, and the body is compiled twice
MAX_EQUATIONS = 120  # of the body; the time to compile one function grows with its length
MIN_BYTES = 1 << 13  # of an array with a window; on a smaller one the loop takes longer than a copy
MIN_ROW = 32  # elements; loops on shorter rows are slower if they write into an array
MIN_BYTES_OF_ROWS = 1 << 15  # of an array of such rows
MAX_REST = 8  # the windows beside the large one have at most the array's elements by this number
# Operations of a window of MIN_NEW_BYTES. XLA writes into an array on one thread, and computes a
# window to memory on several, which is faster if that takes longer than the copy.
MAX_CHEAP = 48
# Of an array that is computed anew. A loop on smaller arrays is compiled as one function, which is
# not possible with calls: it takes 1.2 to 1.5 times as long on arrays of 16 to 256 KiB.
MIN_NEW_BYTES = 1 << 20
MIN_READ_BYTES = 1 << 19  # of a slice that the elements of such an array are computed from
# Of a vector that is computed anew. XLA 0.12 does not fuse over a barrier, so it needs no call.
MIN_VECTOR_BYTES = 1 << 10 if JAXLIB >= (0, 12) else MIN_NEW_BYTES


class Window(NamedTuple):
    """The large window that a step writes into an array of the carry.

    Attributes:
      eqn: the update that writes it.
      rest: the updates that write the other windows, which are small.
    """

    eqn: Eqn
    rest: list[Eqn]


def choose_buffers(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Write two steps in the body of a loop, the first of which writes into buffers of its own.

    An array with a large window that a step writes is carried in two buffers. The window is written
    into the one that has the other elements already: those that no step writes were copied before
    the loop, and those of small windows are copied in each step. The buffers change places in each
    step, so after two steps each is where it was. Large arrays that are computed anew are kept
    after a step. XLA would else compute them again for each element that the next step reads.
    """
    body, params = eqn.params["jaxpr"], eqn.params
    length, unroll = params["length"], params["unroll"]
    if not scope.target.kernels or type(length) is not int or length < MIN_STEPS or unroll != 1:
        return None
    if not is_plain_body(body):
        return None
    n, m = params["num_consts"], params["num_carry"]
    windows = find_windows(body, n, m)
    kept = find_kept(body, n, m) - {*windows}
    if not windows and not kept:
        return None
    k = len(windows)
    params = scan_params(
        write_body(body, windows, kept, n + m, m), n, m + k, {**params, "unroll": 2}
    )

    def run(*xs: Any) -> list:
        spares = [xs[n + i] for i in windows]
        outs = scan_p.apply(*xs[: n + m], *spares, *xs[n + m :], **params)
        return [*outs[:m], *outs[m + k :]]

    return run


def is_plain_body(body: Jaxpr) -> bool:
    """Return True if the body of a loop is short, without effects and without loops or calls."""
    if len(body.eqns) > MAX_EQUATIONS or body.effects or body.constvars:
        return False
    return all(step.primitive.memoize_type for step in body.eqns)


def find_maker(body: Jaxpr) -> Callable[[Atom], Eqn | None]:
    """Return the function that gives the equation that computes a value of a program."""
    made: dict[Atom, Eqn] = {v: eqn for eqn in body.eqns for v in eqn.outvars}
    return lambda a: None if type(a) is Literal else made.get(a)


def count_bytes(x: Atom) -> int:
    """Return the bytes of an array; 0 if they are not known, packed, or split over devices."""
    bits = dtypes.itemsize_bits(x.aval.dtype)
    known = type(x.aval.size) is int and x.aval.sharded is None and bits >= 8
    return x.aval.size * bits // 8 if known else 0


def find_windows(body: Jaxpr, first: int, count: int) -> dict[int, Window]:
    """Return the large windows of a step, by the index of the array in the carry."""
    maker, outs, found = find_maker(body), body.outvars[:count], {}
    for i, (x, y) in enumerate(zip(body.invars[first:], outs, strict=False)):
        least = MIN_BYTES if x.aval.shape[-1:] >= (MIN_ROW,) else MIN_BYTES_OF_ROWS
        window = find_window(x, y, maker) if count_bytes(x) >= least else None
        if window is not None and window.eqn.invars[0] not in outs:
            found[i] = window
    return found


def find_kept(body: Jaxpr, first: int, count: int) -> set[int]:
    """Return the indices in the carry of large arrays that a step computes from others.

    There are none if no element is computed from those at other places. Small slices, such as a
    column, do not count. They are often in memory, so that the array is written in place.
    """
    maker, moved, kept = find_maker(body), False, set()
    numbers = {v: i for i, v in enumerate(body.invars[first : first + count])}
    for i, y in enumerate(body.outvars[:count]):
        if count_bytes(y) < (MIN_NEW_BYTES if y.aval.ndim > 1 else MIN_VECTOR_BYTES):
            continue
        fused = follow_operands(y, maker, lambda e: is_fused(e) or is_update(e))
        if any(is_update(e) and find_base(e.invars[0], maker) in numbers for e in fused):
            continue  # it is written into an array of the carry
        for e in fused:
            reads = {numbers[a] for a in e.invars if type(a) is Var and a in numbers}
            large = count_bytes(e.outvars[0]) >= min(MIN_READ_BYTES, count_bytes(y) // 2)
            elsewhere = bool(reads) and large and not computes_by_element(e)
            moved = moved or elsewhere
            if elsewhere or not reads <= {i}:
                kept.add(i)
    return kept if moved else set()


def find_window(x: Var, y: Atom, maker: Callable) -> Window | None:
    """Return the large window that is written into an array of the carry, at known places.

    None if there is none, or if it is computed from just the elements that it replaces.
    """
    updates = []
    while y is not x:
        eqn = maker(y)
        if eqn is None or not is_update(eqn) or not all(type(a) is Literal for a in eqn.invars[2:]):
            return None
        updates.append(eqn)
        y = eqn.invars[0]
    if not updates:
        return None
    large = max(updates, key=lambda e: e.invars[1].aval.size)
    rest = [e for e in updates if e is not large]
    base, window, *starts = large.invars
    total = sum(e.invars[1].aval.size for e in rest)
    if not window.aval.size * 2 >= x.aval.size >= total * MAX_REST:
        return None
    fused = follow_operands(window, maker, is_fused)
    reads = [e for e in fused if base in e.invars]
    if all(reads_window(e, window.aval.shape, starts) for e in reads):
        return None
    slow = len(fused) > MAX_CHEAP or any(e.primitive.cost is Cost.TRANSCENDENTAL for e in fused)
    return None if slow and count_bytes(x) >= MIN_NEW_BYTES else Window(large, rest)


def write_body(
    body: Jaxpr, windows: dict[int, Window], kept: set[int], end: int, count: int
) -> Jaxpr:
    """Return the body of a loop that also carries the second buffers, after its own carry.

    Args:
      body: the body of the loop.
      windows: the windows, by the index of the array in the carry.
      kept: the indices of the arrays in the carry that are computed anew.
      end: the number of consts and of arrays in the carry.
      count: the number of arrays in the carry.
    """
    extra = [body.in_avals[end - count + i] for i in windows]
    large = {id(w.eqn): k for k, w in enumerate(windows.values())}
    rests = [w.rest for w in windows.values()]
    small = {id(e) for rest in rests for e in rest}
    spares: list[Any] = []

    def start(*xs: Any) -> dict:
        spares[:] = xs[end : end + len(extra)]
        return dict(zip(body.invars, [*xs[:end], *xs[end + len(extra) :]], strict=True))

    def write(eqn: Eqn, values: list) -> Sequence[Any]:
        k = large.get(id(eqn))
        if k is not None:
            x, *others = values
            values = [copy_windows(x, spares[k], rests[k]), *others]
            spares[k] = x
        outs = eqn.primitive.apply(*values, **eqn.params)
        return optimization_barrier(outs) if k is not None or id(eqn) in small else outs

    def finish(env: dict) -> list:
        outs = read_results(body, env)
        for i in kept:
            large = count_bytes(body.outvars[i]) >= MIN_NEW_BYTES
            outs[i] = keep(outs[i]) if large else optimization_barrier(outs[i])
        return [*outs[:count], *spares, *outs[count:]]

    avals = [*body.in_avals[:end], *extra, *body.in_avals[end:]]
    return restage(body, avals, start, write, finish)


def copy_windows(x: Any, buffer: Any, updates: Sequence[Eqn]) -> Any:
    """Return a buffer with the elements of an array at the windows that updates write."""
    for eqn in updates:
        corner, shape = clamp_places(eqn), eqn.invars[1].aval.shape
        ends = [i + n for i, n in zip(corner, shape, strict=True)]
        buffer = dynamic_update_slice(buffer, slice(x, corner, ends), corner)
    return buffer
