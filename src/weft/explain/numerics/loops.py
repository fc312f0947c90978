"""Loops that are followed in both types, and record some of their iterations.

The record of an iteration takes about a hundred small operations. They are computed in the
iteration, or else the iteration stores its carry, and all records are computed after the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import weft.numpy as jnp
from weft import dtypes, lax
from weft.api.vmap import vmap
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Runs
from weft.core.jaxpr import Eqn, Jaxpr, bodies_of
from weft.core.primitive import Body, Primitive
from weft.explain.numerics.pairs import Pair
from weft.explain.numerics.values import F64, Value, count_arrays, fill_beside, is_followed, is_wide
from weft.passes.dce import drop_dead_code

SLOTS = (1, 32, 16)  # iterations recorded of a loop, by its nesting depth: 1, or 2 and more
FIRST = 12  # iterations at the start of a loop, which are all recorded
# Elements of all values of an iteration, between which records are computed after the loop: of a
# recurrent network of 16 x 64, a record takes 100 us in the loop and 20 us after it. XLA compiles
# loops over few elements as one function, where small operations have no overhead. With many
# elements, the overhead matters less than 32 copies of each value.
MIN_AGAIN_ELEMENTS, MAX_AGAIN_ELEMENTS = 1 << 9, 1 << 14


class LoopRun(NamedTuple):
    """A loop that records: its staged step, its initial carry and its rows.

    The step takes a flag to record the iteration, a flag that is True once a NaN or an infinity was
    seen, the carry, and a row of xs. It returns the values that the tape is computed from, a flag
    that is True if the iteration is recorded, the updated flag of NaN and infinities, the carry and
    the ys.

    Attributes:
      jaxpr, consts: the staged step.
      writer: computes the tape of an iteration, from `reads` values of the step. If `again` is
        True, it computes the tape from the operands of the step.
      reads: the number of these values.
      again: True if the tapes are computed after the loop, from the carry of recorded iterations.
      carry: the initial carry, flat.
      rows: the xs, flat.
      slots: the maximum number of recorded iterations.
      take: in an outer loop, True if the iteration of the outer loop is recorded; else None.
    """

    jaxpr: Jaxpr
    consts: Sequence[Any]
    writer: Jaxpr
    reads: int
    again: bool
    carry: Sequence[Any]
    rows: Sequence[Any]
    slots: int
    take: Any

    @property
    def start(self) -> tuple:
        """The initial record.

        It has the number of iterations so far, the number of recorded iterations, the flag of NaN
        and infinities, the indices of recorded iterations, and what is stored of each: its tape, or
        its carry.
        """
        zero = jnp.zeros((), np.int32)
        stored = map(typeof, self.carry) if self.again else self.writer.out_avals
        empty = [jnp.zeros((self.slots, *a.shape), a.dtype) for a in stored]
        return zero, zero, jnp.zeros((), bool), jnp.full(self.slots, -1.0, F64), empty

    def advance(self, take: Any, record: tuple, carry: Sequence, rows: Sequence) -> tuple:
        """Run one iteration; return the record, the carry and the ys."""
        i, k, seen, turns, kept = record
        if self.take is not None:
            take = take & self.take
        outs = self.jaxpr(*self.consts, take, seen, *carry, *rows)
        n = self.reads
        reads, (took, seen), outs = outs[:n], outs[n : n + 2], outs[n + 2 :]

        def write(turns: Any, kept: list) -> tuple:
            # In the branch, so that an iteration that is not recorded writes nothing.
            slot = jnp.where(k < FIRST, k, FIRST + (k - FIRST) % (self.slots - FIRST))
            news = carry if self.again else self.writer(*reads)
            kept = [
                lax.dynamic_update_index_in_dim(xs, x, slot, 0)
                for xs, x in zip(kept, news, strict=True)
            ]
            return turns.at[slot].set(i.astype(F64)), kept

        turns, kept = lax.cond(took, write, lambda *old: old, turns, kept)
        record = i + 1, k + took.astype(np.int32), seen, turns, kept
        n = len(self.carry)
        return record, outs[:n], outs[n:]

    def run_turns(self, turns: range) -> tuple[list, tuple]:
        """Run a loop of known length; return its results, and its record."""
        length = len(turns)
        rest = self.slots - FIRST - 1
        stride = max(1, -(-(length - FIRST) // rest))
        each = np.arange(length)
        takes = (each < FIRST) | ((each - FIRST) % stride == 0) | (each == length - 1)

        def step(state: Any, xs: Any) -> tuple:
            record, carry = state
            record, carry, ys = self.advance(xs[0], record, carry, xs[1])
            return (record, carry), ys

        rows = list(self.rows)
        if turns.step < 0:
            rows = [jnp.flip(x, 0) for x in rows]
        state = self.start, list(self.carry)
        found: Any = lax.scan(step, state, (jnp.asarray(takes), rows), length=length)
        (record, carry), ys = found
        if turns.step < 0:
            ys = [jnp.flip(y, 0) for y in ys]
        return [*carry, *ys], (*record, rows)

    def run_while(
        self, test: Jaxpr, looks: Sequence, avals: Sequence, still: Sequence[bool]
    ) -> tuple[list, tuple]:
        """Run a while loop; the condition reads the narrow values."""

        def goes_on(carry: Sequence) -> Any:
            narrow = [v.narrow for v in collect_values(avals, carry)]
            return test(*looks, *narrow)[0]

        def step(state: tuple) -> tuple:
            record, carry = state
            i = record[0]
            # Four iterations of each octave: those whose bits after the first three are 0.
            octave = 31 - lax.clz(i)
            stride = lax.shift_left(np.int32(1), jnp.maximum(octave - 2, 0))
            take = (i < FIRST) | (i & (stride - 1) == 0)
            record, after, _ = self.advance(take, record, carry, ())
            go = goes_on(carry)
            if go.ndim:
                marks = [
                    s for a, s in zip(avals, still, strict=True) for _ in range(count_arrays(a))
                ]
                choose = lambda x, y: jnp.where(
                    go.reshape(go.shape + (1,) * (x.ndim - go.ndim)), x, y
                )
                after = [x if s else choose(x, y)
                         for x, y, s in zip(after, carry, marks, strict=True)]  # fmt: skip
            return record, after

        state = self.start, list(self.carry)
        record, carry = lax.while_loop(lambda s: jnp.any(goes_on(s[1])), step, state)
        return list(carry), (*record, [])

    def pack(self, record: tuple) -> Any:
        """Return the record of a loop as a vector, the part of the tape."""
        i, _, _, turns, kept, rows = record
        if self.again and self.writer.out_avals[0].size:
            places = jnp.maximum(turns, 0).astype(np.int32)
            taken = [jnp.take(x, places, axis=0) for x in rows]
            no = np.bool_(False)
            write = lambda carry, row: self.writer(*self.consts, no, no, *carry, *row)[0]
            tapes = vmap(write)(kept, taken)
        else:
            tapes = kept[0] if not self.again else jnp.zeros((self.slots, 0), F64)
        return jnp.concatenate([to_numbers(i), turns, tapes.ravel()])


def plan_loop(jaxpr: Jaxpr, consts: Sequence, writers: Sequence[Jaxpr], *fields: Any) -> LoopRun:
    """Return the run of a loop. Its step is staged; `fields` are the last fields of `LoopRun`.

    Without a writer, the first result of the step is the tape of the iteration.
    """
    if writers:
        writer = writers[0]
        return LoopRun(jaxpr, consts, writer, len(writer.invars), False, *fields)
    tape, *outs = jaxpr.outvars
    step, writer = [drop_dead_code(jaxpr.replace(outvars=vs)) for vs in (outs, [tape])]
    return LoopRun(step, consts, writer, 0, True, *fields)


def runs_again(body: Body) -> bool:
    """Return True if the records of a loop are computed after it, all at once."""
    jaxpr = body.jaxpr
    carry = jaxpr.invars[body.carry.start : body.carry.stop]
    avals = [v.aval for v in carry]
    for eqn in walk_eqns(jaxpr):
        prim = eqn.primitive
        bodies = bodies_of(eqn)
        if prim.effect is not None or (not bodies and type(prim).batch is Primitive.batch):
            return False
        if any(b.jaxpr is None or b.runs not in (Runs.ONCE, Runs.AGAIN) for b in bodies):
            return False
        avals += [v.aval for v in eqn.outvars] if not bodies else []
    if any(type(a) is not ShapedArray or type(a.size) is not int for a in avals):
        return False
    return MIN_AGAIN_ELEMENTS <= sum(a.size for a in avals) <= MAX_AGAIN_ELEMENTS


def walk_eqns(jaxpr: Jaxpr) -> Iterator[Eqn]:
    """Yield the equations of a program, and of the programs that these hold."""
    for eqn in jaxpr.eqns:
        yield eqn
        for body in bodies_of(eqn):
            if body.jaxpr is not None:
                yield from walk_eqns(body.jaxpr)


def flatten_values(values: Sequence[Value], exact: Sequence[bool] = ()) -> list:
    """Return values as a flat list of arrays.

    A value of a followed type gives the narrow value and its counterpart, which may be a pair.
    Values that are marked in `exact` give the narrow value only.
    """
    flat: list[Any] = []
    for v, is_exact in zip(values, exact or [False] * len(values), strict=True):
        beside = None if is_exact else fill_beside(v).beside
        if isinstance(beside, Pair):
            flat += [v.narrow, *beside]
        else:
            flat += [v.narrow] if beside is None else [v.narrow, beside]
    return flat


def collect_values(
    avals: Sequence[Any], flat: Sequence[Any], exact: Sequence[bool] = ()
) -> list[Value]:
    """Return the values of the given types from the list of `flatten_values`."""
    arrays, values = iter(flat), []
    for a, is_exact in zip(avals, exact or [False] * len(avals), strict=True):
        narrow = next(arrays)
        beside: Any = None
        if is_followed(a) and not is_exact:
            is_pair = is_wide(a.dtype)
            beside = Pair(next(arrays), next(arrays)) if is_pair else next(arrays)
        values.append(Value(narrow, beside))
    return values


def to_numbers(x: Any) -> Any:
    """Return an array as a vector of float64. Complex numbers give their absolute values."""
    x = jnp.asarray(x)
    if dtypes.is_complex(x.dtype):
        x = jnp.abs(x)
    return jnp.ravel(x).astype(F64)
