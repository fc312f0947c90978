"""Loops that are followed in both types, and record some of their iterations.

The record of an iteration takes about a hundred small operations. They are computed in the
iteration, or else the iteration stores its carry, and all records are computed after the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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

# Elements of all values of an iteration, between which records are computed after the loop: of a
# recurrent network of 16 x 64, a record takes 100 us in the loop and 20 us after it. XLA compiles
# loops over few elements as one function, where small operations have no overhead. With many
# elements, the overhead matters less than 32 copies of each value.
MIN_AGAIN_ELEMENTS, MAX_AGAIN_ELEMENTS = 1 << 9, 1 << 14


class Choice(NamedTuple):
    """The choice of the iterations of a loop that are recorded: the first ones, and some others.

    At most `slots` iterations are stored.
    """

    first: int
    slots: int

    def find_slot(self, k: Any) -> Any:
        """Return the slot of the k-th recorded iteration. The last of a while loop are kept."""
        return jnp.where(
            k < self.first, k, self.first + (k - self.first) % (self.slots - self.first)
        )

    def find_in_scan(self, i: Any, length: int) -> Any:
        """Return the next iteration to record from `i` on, in a loop of known length."""
        # Two slots are left: for the last iteration, and for the first NaN or infinity.
        stride = np.int32(max(1, -(-(length - self.first) // (self.slots - self.first - 2))))
        strided = self.first + (i - self.first + stride - 1) // stride * stride
        return jnp.where(i < self.first, i, jnp.minimum(strided, np.int32(length - 1)))

    def find_in_while(self, i: Any) -> Any:
        """Return the next iteration to record from `i` on, in a loop of unknown length.

        Four iterations of each octave are recorded: those whose bits after the first three are 0.
        """
        octave = 31 - lax.clz(i)
        below = lax.shift_left(np.int32(1), jnp.maximum(octave - 2, 0)) - 1
        return jnp.where(i < self.first, i, (i + below) & ~below)


WHOLE = Choice(8, 32)
AROUND = Choice(8, 20)  # of a loop that holds others: each record has records of these
WITHIN = Choice(4, 7)  # of a loop in another one
# The record of a few numbers takes as long as 300 iterations without one. With a record for each
# 128 iterations, the whole takes at most five times the program.
MIN_SLOTS, ITERATIONS_PER_SLOT = 16, 128
FEW_ELEMENTS = 1 << 9  # of all values of an iteration


class Staged(NamedTuple):
    """A staged function with the constants that it closes over."""

    jaxpr: Jaxpr
    consts: Sequence[Any]

    def __call__(self, *args: Any) -> list:
        return self.jaxpr(*self.consts, *args)


class Loop(NamedTuple):
    """A loop whose step is staged, in both types.

    The step is a function of the carry and of a row of the xs. It returns a flag that is True if it
    made a NaN or an infinity, the carry and the ys.

    Attributes:
      step: the step.
      carry: the initial carry, flat.
      rows: the xs, flat.
      turns: the iterations of a scan; empty for a while loop.
      goes_on: a function of the index of an iteration and the carry. It returns True if the
        iteration runs.
      select: a function of the carries after and before an iteration. It returns the next carry.
      following: a function of an index. It returns the next iteration to record, from that one on.
    """

    step: Staged
    carry: Sequence[Any]
    rows: Sequence[Any]
    turns: range
    goes_on: Callable[[Any, Sequence], Any]
    select: Callable[[Sequence, Sequence], Sequence]
    following: Callable[[Any], Any]

    def place(self, i: Any) -> Any:
        """Return the index of an iteration in the xs and the ys."""
        return len(self.turns) - 1 - i if self.turns.step < 0 else i

    def read_row(self, i: Any) -> list:
        """Return the row of the xs of an iteration."""
        return [take_row(x, self.place(i)) for x in self.rows]

    def write_row(self, stacked: Sequence, i: Any, ys: Sequence) -> list:
        """Return the stacked ys with those of an iteration."""
        return [put_row(xs, y, self.place(i)) for xs, y in zip(stacked, ys, strict=True)]

    def start_ys(self) -> list:
        """Return the stacked ys before the first iteration."""
        avals = self.step.jaxpr.out_avals[1 + len(self.carry) :]
        return [jnp.zeros((len(self.turns), *a.shape), a.dtype) for a in avals]

    def split(self, outs: Sequence) -> tuple:
        """Split the results of a step: the flag, the carry and the ys."""
        n = 1 + len(self.carry)
        return outs[0], outs[1:n], outs[n:]

    def run(self, start: Any, stop: Any, watch: Any, carry: Sequence, stacked: Sequence) -> tuple:
        """Run iterations without records.

        Args:
          start: the first iteration.
          stop: the iteration before which the loop ends; None for all.
          watch: True if the loop ends after an iteration that makes a NaN or an infinity.
          carry: the carry.
          stacked: the stacked ys.

        Returns:
          The number of the iteration that comes next, a flag that is True if the last one made a
          NaN or an infinity, the carry and the stacked ys.
        """

        def step(state: tuple) -> tuple:
            i, _, carry, stacked = state
            bad, after, ys = self.split(self.step(*carry, *self.read_row(i)))
            ended = bad & watch if stop is not None else np.bool_(False)
            return i + 1, ended, self.select(after, carry), self.write_row(stacked, i, ys)

        def more(state: tuple) -> Any:
            i, bad, carry, _ = state
            goes = self.goes_on(i, carry)
            return goes if stop is None else goes & (i < stop) & ~bad

        return lax.while_loop(more, step, (start, np.bool_(False), list(carry), list(stacked)))


class Recording(NamedTuple):
    """The records of a loop.

    A recorded iteration is followed by iterations without a record, up to the next one that is
    recorded. If one of these makes the first NaN or infinity, they run once more up to that one,
    which is recorded then. So iterations without a record neither store nor choose anything.

    Attributes:
      loop: the loop.
      step: its step with records. Before the results of the other step, it returns `reads` values
        that the tape is computed from.
      reads: the number of these values.
      writer: computes the tape of an iteration, from these values. If `again` is True, it computes
        the tape from the operands of the step.
      again: True if the tapes are computed after the loop, from the carry of recorded iterations.
      choice: the iterations that are recorded.
    """

    loop: Loop
    step: Staged
    reads: int
    writer: Staged
    again: bool
    choice: Choice

    def start(self) -> tuple:
        """Return the record before the first iteration.

        It has the number of recorded iterations, their indices, and what is stored of each: its
        tape, or its carry.
        """
        stored = map(typeof, self.loop.carry) if self.again else self.writer.jaxpr.out_avals
        empty = [jnp.zeros((self.choice.slots, *a.shape), a.dtype) for a in stored]
        return np.int32(0), jnp.full(self.choice.slots, -1.0, F64), empty

    def note(self, record: tuple, i: Any, carry: Sequence) -> tuple:
        """Run an iteration and record it; return the record, and the results of the step."""
        k, turns, kept = record
        row, goes_on = self.loop.read_row(i), self.loop.goes_on(i, carry)

        def run() -> list:
            outs = self.step(*carry, *row)
            news = [] if self.again else self.writer(*outs[: self.reads])
            return [*news, *outs[self.reads :]]

        # The branch is always taken. XLA compiles loops of few equations as one function, and those
        # of a branch do not count (cpu/flags.py). Otherwise a filter takes 8 times the program.
        avals = [] if self.again else self.writer.jaxpr.out_avals
        avals = [*avals, *self.step.jaxpr.out_avals[self.reads :]]
        skip = lambda: [jnp.zeros(a.shape, a.dtype) for a in avals]
        news = lax.cond(goes_on, run, skip)
        count = len(kept)
        if self.again:
            news = [*carry, *news]
        slot = self.choice.find_slot(k)
        kept = [put_row(xs, x, slot) for xs, x in zip(kept, news[:count], strict=True)]
        record = k + 1, put_row(turns, i.astype(F64), slot), kept
        return record, self.loop.split(news[count:])

    def run(self) -> tuple[list, list, tuple]:
        """Run the loop.

        Returns:
          The carry, the stacked ys, and a pair: the number of iterations, and the record.
        """
        loop = self.loop

        def run_segment(state: tuple) -> tuple:
            i, seen, record, carry, stacked = state
            record, (bad, after, ys) = self.note(record, i, carry)
            after, stacked = loop.select(after, carry), loop.write_row(stacked, i, ys)
            first, seen = i + 1, seen | bad

            def attempt(state: tuple) -> tuple:
                stop, _, _, _, stacked = state
                end, fresh, last, stacked = loop.run(first, stop, ~seen, after, stacked)
                return jnp.where(fresh, end - 1, stop), fresh, end, last, stacked

            state = loop.following(first), np.bool_(True), first, after, stacked
            _, _, end, last, stacked = lax.while_loop(lambda s: s[1], attempt, state)
            return end, seen, record, last, stacked

        zero, no = np.int32(0), np.bool_(False)
        state = zero, no, self.start(), list(loop.carry), loop.start_ys()
        more = lambda state: loop.goes_on(state[0], state[3])
        count, _, record, carry, stacked = lax.while_loop(more, run_segment, state)
        return list(carry), list(stacked), (count, record)

    def pack(self, found: tuple) -> Any:
        """Return the record of a loop as a vector, the part of the tape."""
        count, (_, turns, kept) = found
        if self.again and self.writer.jaxpr.out_avals[0].size:
            places = self.loop.place(jnp.maximum(turns, 0).astype(np.int32))
            taken = [jnp.take(x, places, axis=0) for x in self.loop.rows]
            write = lambda carry, row: self.writer(*carry, *row)[0]
            tapes = vmap(write)(kept, taken)
        else:
            tapes = kept[0] if not self.again else jnp.zeros((self.choice.slots, 0), F64)
        return jnp.concatenate([to_numbers(count), turns, tapes.ravel()])


def take_row(x: Any, i: Any) -> Any:
    """Return a row of an array."""
    return lax.dynamic_index_in_dim(x, i, 0, keepdims=False)


def put_row(x: Any, row: Any, i: Any) -> Any:
    """Return an array with another row."""
    return lax.dynamic_update_index_in_dim(x, row, i, 0)


def plan_scan(step: Staged, carry: Sequence, rows: Sequence, turns: range, choice: Choice) -> Loop:
    """Return a loop of known length."""
    length = len(turns)
    goes_on = lambda i, _: i < np.int32(length)
    following = lambda i: choice.find_in_scan(i, length)
    return Loop(step, carry, rows, turns, goes_on, lambda after, _: after, following)


def plan_while(
    step: Staged,
    carry: Sequence,
    test: Staged,
    avals: Sequence,
    still: Sequence[bool],
    choice: Choice,
) -> Loop:
    """Return a while loop. Its condition `test` reads the narrow values, of the types `avals`.

    `still` marks the values that no iteration changes.
    """

    def go(carry: Sequence) -> Any:
        return test(*[v.narrow for v in collect_values(avals, carry)])[0]

    def select(after: Sequence, carry: Sequence) -> Sequence:
        going = go(carry)
        if not going.ndim:
            return after
        choose = lambda x, y: jnp.where(
            going.reshape(going.shape + (1,) * (x.ndim - going.ndim)), x, y
        )
        marks = [s for a, s in zip(avals, still, strict=True) for _ in range(count_arrays(a))]
        return [x if s else choose(x, y) for x, y, s in zip(after, carry, marks, strict=True)]

    return Loop(
        step, carry, (), range(0), lambda _, c: jnp.any(go(c)), select, choice.find_in_while
    )


def plan_recording(loop: Loop, step: Staged, writers: Sequence[Jaxpr], choice: Choice) -> Recording:
    """Return the records of a loop. `step` is its step with records.

    Without a writer, the first result of the step is the tape of the iteration.
    """
    if writers:
        writer = Staged(writers[0], ())
        return Recording(loop, step, len(writers[0].invars), writer, False, choice)
    tape, *outs = step.jaxpr.outvars
    rest, writer = [
        Staged(drop_dead_code(step.jaxpr.replace(outvars=vs)), step.consts) for vs in (outs, [tape])
    ]
    return Recording(loop, rest, 0, writer, True, choice)


def choose_iterations(body: Body, depth: int) -> Choice:
    """Return the choice of recorded iterations of a loop in `depth` others."""
    if depth:
        return WITHIN
    elements = count_elements(body)
    if elements is None:
        return AROUND
    if elements >= FEW_ELEMENTS or body.turns is None:
        return WHOLE
    slots = max(MIN_SLOTS, min(WHOLE.slots, len(body.turns) // ITERATIONS_PER_SLOT))
    return WHOLE._replace(slots=slots)


def runs_again(body: Body) -> bool:
    """Return True if the records of a loop are computed after it, all at once."""
    elements = count_elements(body)
    return elements is not None and MIN_AGAIN_ELEMENTS <= elements <= MAX_AGAIN_ELEMENTS


def count_elements(body: Body) -> int | None:
    """Return the number of elements of all values of an iteration.

    Return None if `vmap` cannot run it at once: it has loops, branches, effects or unknown sizes.
    """
    jaxpr = body.jaxpr
    carry = jaxpr.invars[body.carry.start : body.carry.stop]
    avals = [v.aval for v in carry]
    for eqn in walk_eqns(jaxpr):
        prim = eqn.primitive
        bodies = bodies_of(eqn)
        if prim.effect is not None or (not bodies and type(prim).batch is Primitive.batch):
            return None
        if any(b.jaxpr is None or b.runs not in (Runs.ONCE, Runs.AGAIN) for b in bodies):
            return None
        avals += [v.aval for v in eqn.outvars] if not bodies else []
    if any(type(a) is not ShapedArray or type(a.size) is not int for a in avals):
        return None
    return sum(a.size for a in avals)


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
