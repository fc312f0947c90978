"""Stage a program that runs a jaxpr in its own and in a wider type, and records samples.

`Recorder.run_program` interprets a jaxpr while a new program is staged. It computes each equation
in both types and plans its record. The record of a whole program is a vector of float64, the tape.
The layout of the tape is known once the program is staged. A loop records some of its iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import weft.numpy as jnp
from weft import dtypes, lax
from weft.core.aval import ShapedArray, typeof
from weft.core.facts import Cost, Elements, Linearity, Runs
from weft.core.jaxpr import Eqn, Jaxpr, Literal, bodies_of
from weft.core.primitive import Body, split_inputs
from weft.core.stage import stage_closed
from weft.errors import MissingRule
from weft.explain.numerics.loops import (
    Staged,
    choose_iterations,
    collect_values,
    flatten_values,
    plan_recording,
    plan_scan,
    plan_while,
    runs_again,
    to_numbers,
)
from weft.explain.numerics.values import (
    F64,
    Operation,
    Part,
    Sampling,
    Value,
    find_error,
    is_followed,
    is_wide,
    plan_operation,
    plan_sampling,
    shorten_shape,
    take_steps,
    widen_value,
)
from weft.explain.origins import Place, find_place, is_backward
from weft.primitives.elementwise import Elementwise
from weft.primitives.layout import convert

SAMPLES = (1024, 64, 16)  # elements sampled from a result outside loops, in one loop, in more
FIELDS = ("narrow", "wide", "error", "added", "scale", "inherited")
FACTS = ("nans", "infs", "nans_in", "infs_in", "largest", "wrapped")
NOTHING = np.float64(0)
# Operations whose results are 0 only by underflow, if no operand is 0 or infinite.
VANISHING = frozenset(("mul", "div", "square", "integer_pow", "exp", "exp2", "pow", "reduce_prod"))
TINY = 5e-324  # the smallest float64: for results that underflow, whose size is unknown
COPIES = (Elements.MOVED, Elements.SAME_WORDS)


class Site:
    """An equation of the followed program: its line, its pass, its operation and its loops."""

    def __init__(self, eqn: Eqn, outer: Sequence[Eqn], turns: int, remedies: Sequence = ()):
        self.eqn = eqn
        self.place: Place = find_place([eqn, *outer])
        self.backward = is_backward([eqn, *outer])
        self.operation = eqn.primitive.name
        self.turns = turns  # the number of loops around it
        self.remedies = remedies

    @property
    def aval(self) -> Any:
        """The type of the sampled result."""
        return self.eqn.outvars[first_followed([v.aval for v in self.eqn.outvars])].aval


def first_followed(avals: Sequence[Any]) -> int:
    """Return the index of the result to sample: the first that is followed, or else 0."""
    return next((i for i, a in enumerate(avals) if is_followed(a)), 0)


class Lattice(NamedTuple):
    """The places of samples in an array: every n-th element of a strided slice.

    Attributes:
      shape: the shape of the array.
      steps: the step along each axis.
      stride: the distance of samples in the flattened slice.
    """

    shape: Sequence[int]
    steps: Sequence[int]
    stride: int

    @property
    def count(self) -> int:
        """The number of samples."""
        return -(-math.prod(shorten_shape(self.shape, self.steps)) // self.stride)

    def locate(self, k: int) -> tuple[int, ...]:
        """Return the index of a sample in the array."""
        if not self.shape:
            return ()
        found = np.unravel_index(k * self.stride, shorten_shape(self.shape, self.steps))
        return tuple(int(i) * int(s) for i, s in zip(found, self.steps, strict=True))


def plan_lattice(shape: Sequence[int], steps: Sequence[int], limit: int) -> Lattice:
    """Return at most `limit` places in a strided slice of an array."""
    size = math.prod(shorten_shape(shape, steps))
    return Lattice(shape, steps, max(1, -(-size // limit)))


class Exact(NamedTuple):
    """The values of an operand that is a constant of the program. It has no part of a tape."""

    values: np.ndarray


class Kept(NamedTuple):
    """The part of a tape for a small array that equations read: all its values, for each field."""

    count: int
    fields: Sequence[str]

    @property
    def size(self) -> int:
        return len(self.fields) * self.count


class Operand(NamedTuple):
    """An operand of an equation whose values are all on the tape.

    Attributes:
      item: the part of the tape that has its values.
      alike: True if each element of the result is computed from the same element of the operand.
    """

    item: Any
    alike: bool


class Sampled(NamedTuple):
    """The part of a tape for one equation: `count` numbers for each field, then the facts.

    Results of rewrites, if any, stand between the fields and the facts. Facts and fields that are
    not on the tape are computed when it is read: see `samples.derive_fields`.

    Attributes:
      site: the equation.
      count: the number of samples.
      lattice: their places in the result.
      more: the number of rewrites; each has results in both types.
      fields: the names of the fields that are on the tape.
      operands: if all values of the result and of the operands are on the tape, the operands; else
        None. With them, no facts are on the tape.
      adds: True if the result is the sum or the difference of the first two operands.
    """

    site: Any
    count: int
    lattice: Lattice
    more: int = 0
    fields: Sequence[str] = FIELDS
    operands: Sequence[Operand] | None = None
    adds: bool = False

    @property
    def size(self) -> int:
        facts = len(FACTS) if self.operands is None else 0
        return (len(self.fields) + 2 * self.more) * self.count + facts


class Looped(NamedTuple):
    """The part of a tape for a loop.

    It has the number of iterations, the indices of recorded iterations, and the tape of each.
    """

    slots: int
    inner: Sequence[Any]
    length: int

    @property
    def size(self) -> int:
        return self.slots * (self.length + 1) + 1


class Branched(NamedTuple):
    """The part of a tape for a conditional.

    It has the index of the branch taken, and the tapes of all branches. Tapes of branches that were
    not taken are zero.
    """

    inner: Sequence[Sequence[Any]]

    @property
    def size(self) -> int:
        return 1 + sum(measure_layout(x) for x in self.inner)


def measure_layout(layout: Sequence[Any]) -> int:
    """Return the length of a tape."""
    return sum(item.size for item in layout)


class Tape:
    """The plan of a program's record: its layout, and functions that compute its parts."""

    def __init__(self) -> None:
        self.layout: list[Any] = []
        self.parts: list[Callable[[], Any]] = []
        self.tops: dict[int, tuple[Any, Any]] = {}  # by the id of an array: see `find_top`
        self.specials: dict[int, tuple[Any, Any]] = {}  # the same: see `count_special`
        # The parts that have all values of an array, by its id. The array is kept, and so its id.
        self.kept: dict[int, tuple[Any, Any]] = {}

    def add(self, item: Any, part: Callable[[], Any]) -> None:
        """Append a part to the plan. `part` returns a vector of `item.size` numbers."""
        self.layout.append(item)
        self.parts.append(part)

    def note(self, x: Any, item: Any) -> None:
        """Note that a part has all values of an array."""
        self.kept[id(x)] = x, item

    def keep(self, value: Value, aval: ShapedArray) -> Any:
        """Return the part that has all values of an array, after adding one if there is none."""
        x = value.narrow
        if isinstance(x, int | float | np.generic | np.ndarray):
            return Exact(np.asarray(x, aval.dtype).astype(F64).ravel())
        if id(x) not in self.kept:
            fields = list_fields(value)
            item = Kept(math.prod(aval.shape), fields)
            self.note(x, item)
            self.add(item, lambda: read_value(value, fields))
        return self.kept[id(x)][1]

    def count_special(self, x: Any) -> tuple[Any, Any]:
        """Return the numbers of NaN and of infinities of a small array, counted in one sum."""
        if id(x) not in self.specials:
            code = jnp.where(jnp.isinf(x), 2.0**32, jnp.isnan(x).astype(F64))
            both = jnp.sum(code)
            infs = jnp.floor(both / 2.0**32)
            self.specials[id(x)] = x, (both - infs * 2.0**32, infs)
        return self.specials[id(x)][1]

    def find_top(self, x: Any) -> Any:
        """Return the largest absolute value of an array, or NaN if an element is NaN.

        The result of an equation is an operand of others, so the value is kept.
        """
        if id(x) not in self.tops:
            self.tops[id(x)] = x, measure_top(x)
        return self.tops[id(x)][1]

    def clear(self) -> None:
        """Remove all parts."""
        self.layout.clear()
        self.parts.clear()
        self.kept.clear()

    def write(self) -> Any:
        """Compute all parts, and return the tape as one vector."""
        self.tops.clear()
        self.specials.clear()
        return join_vectors([part() for part in self.parts])


def list_fields(value: Value) -> Sequence[str]:
    """Return the fields that a value has on the tape."""
    if value.beside is None:
        return FIELDS[:1]
    return FIELDS[:3] if is_wide(typeof(value.narrow).dtype) else FIELDS[:2]


def read_value(value: Value, fields: Sequence[str]) -> Any:
    """Return fields of all elements of a value as one vector."""
    readers = {
        "narrow": lambda: value.narrow,
        "wide": lambda: widen_value(value),
        "error": lambda: jnp.abs(find_error(value)),
    }
    return jnp.concatenate([to_numbers(readers[f]()) for f in fields])


def join_vectors(parts: Sequence[Any]) -> Any:
    """Concatenate vectors, in groups of 64: XLA is slow for hundreds of operands."""
    if not parts:
        return jnp.zeros(0, F64)
    while len(parts) > 1:
        groups = [parts[i : i + 64] for i in range(0, len(parts), 64)]
        parts = [jnp.concatenate(g) for g in groups]
    return parts[0]


class Recorder:
    """Interprets a program in both types while a new program is staged, and plans the record.

    `match` returns the rewrites for a program, by the id of an equation: see remedies.py.
    """

    def __init__(self, match: Callable | None = None):
        self.sites: list[Site] = []
        self.match = match
        self.depth = 0
        self.outer: list[Eqn] = []
        self.records = True  # False in iterations of a loop that are not recorded
        self.zero: Any = None  # an integer that XLA does not know to be 0

    # --- equations ---

    def run_program(self, jaxpr: Jaxpr, args: Sequence[Value], tape: Tape) -> list[Value]:
        """Follow a program; return its results."""
        found: dict[Any, Value] = dict(zip(jaxpr.invars, args, strict=True))
        read = lambda a: Value(a.read()) if type(a) is Literal else found[a]
        remedies = self.match(jaxpr) if self.match is not None else {}
        for eqn in jaxpr.eqns:
            ins = [read(a) for a in eqn.invars]
            outs = self.run_equation(eqn, ins, tape, remedies.get(id(eqn), ()), read)
            found.update(zip(eqn.outvars, outs, strict=True))
        return [read(a) for a in jaxpr.outvars]

    def run_equation(
        self, eqn: Eqn, ins: Sequence[Value], tape: Tape, remedies: Sequence, read: Callable
    ) -> list[Value]:
        """Follow an equation; return its results."""
        bodies = bodies_of(eqn)
        if bodies and not any(b.jaxpr is None or b.on_each_device for b in bodies):
            run = {
                Runs.ONCE: self.run_once,
                Runs.AGAIN: self.run_once,
                Runs.BRANCH: self.run_branches,
                Runs.LOOP: self.run_loop,
            }.get(bodies[0].runs)
            if run is not None:
                self.outer.insert(0, eqn)
                try:
                    return run(eqn, bodies, ins, tape)
                finally:
                    self.outer.pop(0)
        return self.run_operation(eqn, ins, tape, remedies, read)

    def run_operation(
        self, eqn: Eqn, ins: Sequence[Value], tape: Tape, remedies: Sequence, read: Callable
    ) -> list[Value]:
        """Compute an equation in both types, and add its record to the tape."""
        bodies = bodies_of(eqn)
        narrow = eqn.primitive.apply(*[v.narrow for v in ins], **eqn.params)
        operation = None if bodies else plan_operation(eqn)
        if not bodies and eqn.primitive.elements not in COPIES:
            narrow = self.hold(narrow)
        outs = list(map(Value, narrow))
        if operation is not None:
            outs = operation.run_beside(ins, narrow)
            sampling = plan_sampling(eqn, SAMPLES[0]) if not self.depth else None
            if sampling is not None and not sampling.whole:
                given = [v.take(s) for v, s in zip(ins, sampling.operands, strict=True)]
                taken = [take_steps(narrow[0], sampling.result)]
                (part,) = operation.on_part(sampling).run_beside(given, taken)
                outs = [outs[0]._replace(part=Part(sampling.result, part))]
        self.record(eqn, operation, ins, outs, tape, remedies, read)
        return outs

    def hold(self, arrays: Sequence[Any]) -> list:
        """Return arrays of which XLA knows nothing but that they are rounded to their dtypes.

        Otherwise XLA contracts a product and a sum into one operation with one rounding, in some of
        the places where it computes them. It does so through an optimization barrier. An operation
        on the bits stands in between.
        """
        found = []
        for x in arrays:
            aval = typeof(x)
            if self.zero is None or type(aval) is not ShapedArray:
                pass
            elif not self.records and not is_wide(aval.dtype):
                pass  # nothing is recorded that has to agree with it, except for pairs
            elif dtypes.is_float(aval.dtype):
                bits = np.dtype(f"uint{8 * aval.dtype.itemsize}")
                whole = lax.bitcast_convert_type(x, bits) ^ self.zero.astype(bits)
                x = lax.bitcast_convert_type(whole, aval.dtype)
            elif dtypes.is_complex(aval.dtype):
                x = lax.complex(*self.hold([jnp.real(x), jnp.imag(x)]))
            found.append(x)
        return found

    def run_once(
        self, eqn: Eqn, bodies: Sequence[Body], ins: Sequence[Value], tape: Tape
    ) -> list[Value]:
        """Follow an equation that runs its body once."""
        body = bodies[0]
        return self.run_program(body.jaxpr, [ins[i] for i in body.operands], tape)

    def record(
        self, eqn: Eqn, operation: Any, ins: Sequence, outs: Sequence, tape: Tape,
        remedies: Sequence, read: Callable,
    ) -> None:  # fmt: skip
        """Add the record of an equation to the tape, if the equation is worth recording."""
        prim = eqn.primitive
        avals = [v.aval for v in eqn.outvars]
        which = first_followed(avals) if avals else 0
        if (
            not self.records
            or not avals
            or type(avals[which]) is not ShapedArray
            or not avals[which].size
        ):
            return
        exact = None
        if not is_followed(avals[which]):
            exact = plan_integers(eqn)
            if exact is None:
                return
        elif prim.elements in COPIES or prim.cost is Cost.FREE:
            return
        limit = SAMPLES[min(self.depth, 2)]
        sampling = plan_sampling(eqn, limit)
        site = Site(eqn, self.outer, self.depth, remedies)
        self.sites.append(site)
        look = Look(eqn, operation, ins, outs, sampling, limit)
        given = [(r, [read(a) for a in r.leaves]) for r in remedies]
        item = Sampled(site, look.lattice.count, look.lattice, len(given), ())
        if exact is None:
            item = look.plan_fields(item, tape, limit)

        def part() -> Any:
            more = [x for r, leaves in given for x in look.try_rewrite(r, leaves)]
            vectors = [*look.read_fields(item.fields), *more]
            if exact is not None:
                vectors.append(jnp.stack(look.read_wraps(exact)))
            elif item.operands is None:
                vectors.append(jnp.stack([*look.read_facts(tape), jnp.zeros((), F64)]))
            return jnp.concatenate(vectors)

        tape.add(item, part)
        if item.operands is not None:
            tape.note(outs[which].narrow, item)

    # --- control flow ---

    def run_branches(
        self, eqn: Eqn, bodies: Sequence[Body], ins: Sequence[Value], tape: Tape
    ) -> list[Value]:
        """Follow the branch that the narrow run takes."""
        tapes = [Tape() for _ in bodies]
        staged = []
        for body, own in zip(bodies, tapes, strict=True):
            args = [ins[i] for i in body.operands]

            def fun(body: Body = body, own: Tape = own, args: Sequence = args) -> list:
                outs = self.run_program(body.jaxpr, args, own)
                return [*flatten_values(outs), own.write()]

            staged.append(stage_closed(fun, []))
        item = Branched([t.layout for t in tapes])
        lengths = [measure_layout(t.layout) for t in tapes]

        def call(b: int) -> Callable:
            def run() -> list:
                jaxpr, consts = staged[b]
                *outs, own = jaxpr(*consts)
                before, after = sum(lengths[:b]), sum(lengths[b + 1 :])
                return [*outs, jnp.pad(own, (before, after))]

            return run

        index = ins[0].narrow
        index = jnp.where((index < 0) | (index >= len(bodies)), len(bodies) - 1, index)
        *outs, whole = lax.switch(index, [call(b) for b in range(len(bodies))])
        tape.add(item, lambda: jnp.concatenate([to_numbers(index), whole]))
        return collect_values([v.aval for v in eqn.outvars], outs)

    def run_loop(
        self, eqn: Eqn, bodies: Sequence[Body], ins: Sequence[Value], tape: Tape
    ) -> list[Value]:
        """Follow a loop, and record some of its iterations."""
        body = bodies[0]
        consts, carry, rows = split_inputs(body, [ins[i] for i in body.operands])
        test = next((b for b in bodies if b.runs is Runs.CONDITION), None)
        if body.turns is None and test is None:  # a scan of a symbolic length
            narrow = eqn.primitive.apply(*[v.narrow for v in ins], **eqn.params)
            return list(map(Value, narrow))
        carry_avals = [typeof(v.narrow) for v in carry]
        row_avals = [v.aval for v in body.jaxpr.invars[body.carry.stop :]]
        is_exact = [False] * len(carry) + [v.beside is None for v in rows]
        own, choice = Tape(), choose_iterations(body, self.depth)
        writers: list[Jaxpr] = []

        def step(*flat: Any) -> list:
            args = collect_values([*carry_avals, *row_avals], flat, is_exact)
            self.depth += 1
            outs = self.run_program(body.jaxpr, [*consts, *args], own)
            bad = jnp.zeros((), bool)
            for v in outs:
                if is_followed(typeof(v.narrow)):
                    bad = bad | ~jnp.all(jnp.isfinite(v.narrow))
            reads: Sequence[Any] = []
            if self.records and runs_again(body):
                reads = [own.write()]
            elif self.records:
                writer, reads = stage_closed(lambda: [own.write()], [])
                writers.append(writer)
            self.depth -= 1
            return [*reads, bad, *flatten_values(outs)]

        flat_carry, flat_rows = flatten_values(carry), flatten_values(rows, is_exact[len(carry) :])
        avals = list(map(typeof, flat_carry))
        avals += [typeof(x).update(shape=typeof(x).shape[1:]) for x in flat_rows]
        records, self.records = self.records, False
        plain = Staged(*stage_closed(step, avals))
        self.records = records
        if test is None:
            turns = body.turns or range(0)
            loop = plan_scan(plain, flat_carry, flat_rows, turns, choice)
        else:
            looks = [ins[i].narrow for i in test.operands[: len(test.operands) - len(carry)]]
            still = [a is b for a, b in zip(
                body.jaxpr.invars[body.carry.start :], body.jaxpr.outvars, strict=True
            )]  # fmt: skip
            goes_on = Staged(test.jaxpr, looks)
            loop = plan_while(plain, flat_carry, goes_on, carry_avals, still, choice)
        if records:
            own.clear()
            recording = plan_recording(loop, Staged(*stage_closed(step, avals)), writers, choice)
            carried, stacked, found = recording.run()
            item = Looped(choice.slots, own.layout, measure_layout(own.layout))
            tape.add(item, lambda: recording.pack(found))
        else:
            start = np.int32(0), None, np.bool_(False), flat_carry, loop.start_ys()
            _, _, carried, stacked = loop.run(*start)
        return collect_values([v.aval for v in eqn.outvars], [*carried, *stacked])


# --- the record of an equation --------------------------------------------------------------------


class Look:
    """Computes the parts of the record of an equation, from its operands and its result."""

    def __init__(
        self, eqn: Eqn, operation: Operation | None, ins: Sequence[Value],
        outs: Sequence[Value], sampling: Sampling, limit: int,
    ):  # fmt: skip
        self.eqn = eqn
        self.which = first_followed([v.aval for v in eqn.outvars])
        self.operation = None if operation is None else operation.on_part(sampling)
        self.ins, self.outs, self.out = ins, outs, outs[self.which]
        self.sampling = sampling
        self.lattice = plan_lattice(typeof(self.out.narrow).shape, sampling.result, limit)

    def sample(self, part: Any) -> Any:
        """Return the samples of an array of the shape of the sampled part."""
        return to_numbers(part)[:: self.lattice.stride]

    def take_operands(self) -> list[Value]:
        """Return the parts of the operands."""
        return [v.take(s) for v, s in zip(self.ins, self.sampling.operands, strict=True)]

    def plan_fields(self, item: Sampled, tape: Tape, limit: int) -> Sampled:
        """Return the part of the tape with the fields that it must have, and with the operands.

        If the result and all operands are small, all their values are on the tape once, and most
        fields and facts are computed on the host. Otherwise the device computes them.
        """
        size = math.prod(typeof(self.out.narrow).shape)
        followed = [
            (v, e.aval) for v, e in zip(self.ins, self.eqn.invars, strict=True)
            if is_followed(typeof(v.narrow))
        ]  # fmt: skip
        avals = [self.eqn.outvars[self.which].aval, *[a for _, a in followed]]
        is_small = all(dtypes.is_float(a.dtype) and a.size <= limit for a in avals)
        if item.count != size or not is_small:
            return item._replace(fields=FIELDS)
        prim, names = self.eqn.primitive, ["narrow"]
        if self.operation is not None:
            names += ["wide", "error"] if self.operation.paired else ["wide"]
            if prim.elements not in (Elements.CHOSEN, Elements.PLACED):
                names.append("added")
            if self.sums_terms:
                names.append("scale")
        shape, by_element = typeof(self.out.narrow).shape, prim.memoize_type
        operands = [
            Operand(tape.keep(v, a), by_element and typeof(v.narrow).shape == shape)
            for v, a in followed
        ]
        return item._replace(fields=tuple(names), operands=operands, adds=self.adds)

    def read_fields(self, names: Sequence[str] = FIELDS) -> list:
        """Return the vectors of the record, for the names of fields."""
        ins, out = self.take_operands(), self.out.take(self.sampling.result)
        narrow = self.sample(out.narrow)

        def read_wide() -> Any:
            wide = self.sample(widen_value(out))
            if self.operation is None or not self.operation.paired:
                return wide
            return jnp.where(self.mark_vanished(ins, narrow), TINY, wide)

        readers = {
            "narrow": lambda: narrow,
            "wide": read_wide,
            "error": lambda: jnp.abs(self.sample(find_error(out))),
            "added": lambda: self.read_added(ins, out),
            "scale": lambda: self.read_scale(ins),
            "inherited": lambda: self.read_inherited(ins, out),
        }
        return [readers[name]() for name in names]

    def mark_vanished(self, ins: Sequence[Value], narrow: Any) -> Any:
        """Return where a result is 0 because it underflows. Pairs have the range of float64."""
        name = self.eqn.primitive.name
        if name not in VANISHING or dtypes.is_complex(typeof(self.out.narrow).dtype):
            return jnp.zeros(self.lattice.count, bool)
        whole = self.out.narrow
        nonzero = jnp.ones((), bool)
        for v in ins:
            x = jnp.asarray(v.narrow)
            own = (x != 0) & jnp.isfinite(x)
            nonzero = nonzero & (
                jnp.all(own, self.eqn.params["axes"]) if "axes" in self.eqn.params else own
            )
        shape = shorten_shape(typeof(whole).shape, self.sampling.result)
        return (narrow == 0) & (self.sample(jnp.broadcast_to(nonzero, shape)) != 0)

    def run_part(self, ins: Sequence[Value], change: Callable) -> Any:
        """Return the sampled part of the result, computed in the wide type.

        `change` is a function that is applied to each narrow operand first.
        """
        operation = self.operation
        if operation.paired:
            operands = [change(v.narrow) for v in ins]
        else:
            operands = [change(widen_value(Value(v.narrow))) for v in ins]
        return operation.run_wide(operands)[self.which]

    def read_added(self, ins: Sequence[Value], out: Value) -> Any:
        """Return the errors that this operation adds, on the operands of the narrow run."""
        nothing = jnp.zeros(self.lattice.count, F64)
        if self.operation is None or self.eqn.primitive.elements in (
            Elements.CHOSEN, Elements.PLACED
        ):  # fmt: skip
            return nothing
        if self.operation.paired:
            rounded = [v.narrow for v in self.outs] if self.sampling.whole else [out.narrow]
            exact = self.operation.run_beside([Value(v.narrow) for v in ins], rounded)
            return self.sample(jnp.abs(find_error(exact[self.which])))
        exact = self.run_part(ins, lambda x: x)
        return self.sample(jnp.abs(convert(out.narrow, typeof(exact).dtype) - exact))

    def read_scale(self, ins: Sequence[Value]) -> Any:
        """Return the sums of the absolute terms of sums; 0 for operations that do not sum.

        The ratio of this sum to the result tells how many digits cancel.
        """
        nothing = jnp.zeros(self.lattice.count, F64)
        if self.adds:
            sizes = [jnp.abs(to_numbers(v.narrow)) for v in ins[:2]]
            stride = self.lattice.stride
            return sum(x[::stride] if len(x) > 1 else x[0] for x in sizes) + nothing
        return self.sample(self.run_part(ins, jnp.abs)) if self.sums_terms else nothing

    @property
    def adds(self) -> bool:
        """True if the result is the sum or the difference of the first two operands."""
        prim = self.eqn.primitive
        if self.operation is None or prim.elements is not Elements.NEW:
            return False
        joint = isinstance(prim, Elementwise) and prim.linear is Linearity.JOINT
        return joint and len(self.ins) >= 2

    @property
    def sums_terms(self) -> bool:
        """True if each element of the result is a sum of many terms."""
        prim = self.eqn.primitive
        if self.operation is None or prim.elements is not Elements.NEW:
            return False
        if isinstance(prim, Elementwise) or prim.cost not in (Cost.REDUCTION, Cost.CONTRACTION):
            return False
        avals, outs = [v.aval for v in self.eqn.invars], [v.aval for v in self.eqn.outvars]
        axes = prim.label_axes(avals, outs, **self.eqn.params)
        return axes.linear is not Linearity.NONE or prim.cost is Cost.CONTRACTION

    def read_inherited(self, ins: Sequence[Value], out: Value) -> Any:
        """Return, for each sample, the largest relative error of the operands."""
        found = jnp.zeros(self.lattice.count, F64)
        shape = typeof(out.narrow).shape
        for v in ins:
            if v.beside is None:
                continue
            error, wide = find_error(v), widen_value(v)
            if typeof(v.narrow).shape == shape and self.eqn.primitive.memoize_type:
                rel = jnp.abs(self.sample(error)) / jnp.abs(self.sample(wide))
            else:
                top = lambda x: jnp.max(jnp.abs(to_numbers(x)), initial=0.0)
                rel = top(error) / top(wide)
            found = jnp.maximum(found, jnp.where(jnp.isnan(rel), 0.0, rel))
        return found

    def read_facts(self, tape: Tape) -> list:
        """Return the facts about all elements of the result."""
        given = [v.narrow for v in self.ins if is_followed(typeof(v.narrow))]
        return measure_facts(self.out.narrow, given, tape)

    def read_wraps(self, exact: Callable) -> list:
        """Return the facts of an operation on integers: how many results have wrapped."""
        narrow = self.sample(take_steps(self.out.narrow, self.sampling.result))
        wide = self.sample(exact([v.narrow for v in self.take_operands()]))
        off = jnp.abs(narrow - wide)
        wrapped = jnp.sum((off >= 1) & ~(off <= 2.0**-40 * jnp.abs(wide))).astype(F64)
        return [*[jnp.zeros((), F64)] * (len(FACTS) - 1), wrapped]

    def try_rewrite(self, match: Any, leaves: Sequence[Value]) -> list:
        """Return samples of a rewrite on the narrow operands, computed in both types."""
        steps, shape = self.sampling.result, self.lattice.shape
        shapes = [typeof(v.narrow).shape for v in leaves]
        by_element = not match.remedy.sums and all(s in ((), shape) for s in shapes)
        if by_element:
            leaves = [v.take(steps) if s else v for v, s in zip(leaves, shapes, strict=True)]
        narrow = [v.narrow for v in leaves]
        wide = [widen_value(Value(x)) for x in narrow]
        results = [match.rewrite(xs) for xs in (narrow, wide)]
        if not by_element:
            results = [take_steps(y, steps) for y in results]
        return list(map(self.sample, results))


def measure_top(x: Any) -> Any:
    """Return the largest absolute value of an array; NaN if an element is NaN."""
    x = jnp.abs(x) if dtypes.is_complex(typeof(x).dtype) else jnp.asarray(x)
    # The bits of |x| are ordered as the numbers are, with NaN above infinity. XLA vectorizes a
    # maximum of integers, but not of floats.
    whole = np.dtype(f"int{8 * x.dtype.itemsize}")
    bits = lax.bitcast_convert_type(x, whole) & np.iinfo(whole).max
    return lax.bitcast_convert_type(jnp.max(bits, initial=0), x.dtype).astype(F64)


def measure_facts(x: Any, given: Sequence[Any], tape: Tape) -> list:
    """Return the facts about all elements of a result, in the order of FACTS without `wrapped`.

    One pass over an array finds its largest absolute value. It is NaN or infinite if any element
    is. NaN and infinities are counted only in that case, since counting takes more passes.
    """
    count = lambda mask: jnp.sum(mask).astype(F64)

    def find_largest() -> Any:
        size = jnp.abs(x)
        return jnp.max(jnp.where(jnp.isfinite(size), size, 0), initial=0.0).astype(F64)

    def count_all() -> list:
        nans = [count(jnp.isnan(v)) for v in (x, *given)]
        infs = [count(jnp.isinf(v)) for v in (x, *given)]
        inside = sum(nans[1:], NOTHING), sum(infs[1:], NOTHING)
        return [nans[0], infs[0], *inside, find_largest()]

    if x.size <= SAMPLES[0]:
        nans, infs = tape.count_special(x)
        inside = [tape.count_special(v) for v in given]
        before = [sum([pair[i] for pair in inside], NOTHING) for i in (0, 1)]
        return [nans, infs, *before, find_largest()]
    tops = list(map(tape.find_top, (x, *given)))
    finite = jnp.all(jnp.isfinite(jnp.stack(tops)))
    zero = jnp.zeros((), F64)
    return lax.cond(finite, lambda: [zero, zero, zero, zero, tops[0]], count_all)


class Output:
    """A result of the program. It has the attributes of a `Site`, for its record."""

    def __init__(self, number: int, aval: Any):
        self.number = number
        self.aval = aval
        self.operation = f"result {number}"
        self.place = Place()
        self.backward = False
        self.turns = 0


def record_result(number: int, out: Value, tape: Tape) -> None:
    """Add the record of a result of the program to the tape."""
    aval = typeof(out.narrow)
    if not is_followed(aval) or not aval.size:
        return
    steps = [1] * len(aval.shape)
    if dtypes.is_float(aval.dtype) and aval.size <= 4 * SAMPLES[0] and out.part is None:
        lattice = plan_lattice(aval.shape, steps, 4 * SAMPLES[0])
        names = list_fields(out)
        item = Sampled(Output(number, aval), lattice.count, lattice, 0, names, ())
        tape.add(item, lambda: read_value(out, names))
        return
    if out.part is not None:
        steps, limit = list(out.part.steps), SAMPLES[0]
    else:
        limit = 4 * SAMPLES[0]
    lattice = plan_lattice(aval.shape, steps, limit)

    def part() -> Any:
        taken = out.take(steps)
        nothing = jnp.zeros(lattice.count, F64)
        arrays = taken.narrow, widen_value(taken), find_error(taken)
        narrow, wide, error = [to_numbers(x)[:: lattice.stride] for x in arrays]
        facts = measure_facts(out.narrow, [], tape)
        none = [nothing] * 3
        last = jnp.stack([*facts, jnp.zeros((), F64)])
        return jnp.concatenate([narrow, wide, jnp.abs(error), *none, last])

    tape.add(Sampled(Output(number, aval), lattice.count, lattice), part)


def plan_integers(eqn: Eqn) -> Callable | None:
    """Return a function that computes an operation on integers in float64.

    Return None for other operations. Unsigned integers of 32 and 64 bits are skipped, because
    hashes and random number generators wrap on purpose.
    """
    prim, outs = eqn.primitive, [v.aval for v in eqn.outvars]
    avals = [v.aval for v in eqn.invars]
    if len(outs) != 1 or not all(type(a) is ShapedArray for a in (*avals, *outs)) or not avals:
        return None
    kinds = [a.dtype for a in (*avals, *outs)]
    if not all(dtypes.is_integer(d) or dtypes.is_float(d) for d in kinds):
        return None
    modular = lambda d: dtypes.is_unsigned(d) and d.itemsize >= 4
    if not dtypes.is_integer(outs[0].dtype) or any(map(modular, kinds)):
        return None
    if prim.elements is Elements.CONVERTED:
        return lambda xs: jnp.trunc(jnp.asarray(xs[0]).astype(F64))
    if prim.elements is not Elements.NEW or prim.cost is Cost.FREE or bodies_of(eqn):
        return None
    wide = [a.update(dtype=F64, weak_type=False) for a in avals]
    params = {
        k: F64 if isinstance(x, np.dtype) and dtypes.is_integer(x) else x
        for k, x in eqn.params.items()
    }
    try:
        (found,) = prim.type_of(tuple(wide), params)
    except (TypeError, ValueError, MissingRule):
        return None
    if found.shape != outs[0].shape or found.dtype != F64:
        return None
    return lambda xs: prim.apply(*[jnp.asarray(x).astype(F64) for x in xs], **params)[0]
