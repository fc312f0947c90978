"""Run a program together with its wide copy, and read the records of the run.

The program that does both is staged once and cached with the user's program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.api.jit import jit
from weft.core.facts import Cost, Runs
from weft.core.jaxpr import Eqn, Jaxpr, Literal, bodies_of
from weft.core.trace import typed_values
from weft.cpu.flags import HAS_OLDER_LOOPS, OLDER_LOOPS
from weft.explain.numerics.loops import walk_eqns
from weft.explain.numerics.recording import Recorder, Tape, record_result
from weft.explain.numerics.samples import Record, order_sites, read_tape
from weft.explain.numerics.values import Value, is_followed, is_wide
from weft.explain.origins import Place, find_place
from weft.explain.subject import Subject, name_operations
from weft.mesh.client import default_device
from weft.options import config

# XLA compiles a loop over small arrays as one function. With the records, that function has
# thousands of instructions, and LLVM's passes over it take most of the time of a first call. Level
# 1 saves up to a third of this time. Level 0 saves more, but makes runs 2 to 5 times as long.
QUICK = {"xla_backend_optimization_level": 1}


class Given(NamedTuple):
    """An operand of the program: its name, its type and value, and the line that reads it first."""

    name: str
    aval: Any
    value: Any
    place: Place


class Followed(NamedTuple):
    """The records of a run: one for each equation, and one for each result.

    `given` are the operands of the program.
    """

    records: Sequence[Record]
    results: Sequence[Record]
    given: Sequence[Given] = ()


class Follower(NamedTuple):
    """The staged program that follows a user's program, and the layout of its tapes."""

    jitted: Any
    recorder: Recorder
    tapes: Sequence[Tape]  # of equations, of results


def follow_program(subject: Subject, match: Any = None) -> Followed:
    """Run a program together with its wide copy, and return the records."""
    program, consts, leaves = find_program(subject)
    follower = program.jaxpr.memo.get("numerics")
    with config.scope(enable_x64=True, hints=False):
        if follower is None:
            follower = program.jaxpr.memo["numerics"] = make_follower(program.jaxpr, match)
        given = [*consts, *leaves]
        for i, (x, v) in enumerate(zip(given, program.jaxpr.invars, strict=True)):
            if isinstance(x, np.ndarray):  # as the call converts it, without 64 bits
                given[i] = x.astype(v.aval.dtype)
        values = typed_values(given, program.jaxpr.invars)
        vectors = [np.asarray(v) for v in follower.jitted(np.uint8(0), *values)]
    records, results = map(read_records, follower.tapes, vectors)
    return Followed(records, results, list_given(program, consts, leaves))


def list_given(program: Any, consts: Sequence, leaves: Sequence) -> list[Given]:
    """Return the operands that a program reads: values that it closes over, and arguments."""
    names = ["a value that the function closes over"] * len(consts) + program.argument_names()
    readers: dict[Any, list] = {}
    for eqn in program.jaxpr.eqns:
        for atom in eqn.invars:
            if type(atom) is not Literal:
                readers.setdefault(atom, [eqn])
    for atom in program.jaxpr.outvars:
        if type(atom) is not Literal:
            readers.setdefault(atom, [])
    found = []
    for name, x, var in zip(names, [*consts, *leaves], program.jaxpr.invars, strict=False):
        if var in readers:
            found.append(Given(name, var.aval, x, find_place(readers[var])))
    return found


def find_program(subject: Subject) -> tuple[Any, Sequence, Sequence]:
    """Return the user's program, the values that it closes over, and its flat arguments."""
    with name_operations(), config.scope(hints=False):
        program, leaves = subject.function.find_program(subject.args, subject.kwargs)
    consts = program.consts
    if program.stateful:
        program, consts = program.discharged()
        leaves = [getattr(x, "value", x) for x in leaves]
    return program, consts, leaves


def choose_options(jaxpr: Jaxpr, platform: str) -> dict[str, Any] | None:
    """Return the compiler options for the program that follows another one; None for XLA's own."""
    if platform != "cpu":
        return None
    eqns = [*walk_eqns(jaxpr)]
    loops = any(b.runs is Runs.LOOP for eqn in eqns for b in bodies_of(eqn))
    factors = any(
        eqn.primitive.cost is Cost.LIBRARY and any(map(is_wide, dtypes_of(eqn))) for eqn in eqns
    )
    # The newer way to write loops makes functions of the parts of a loop, and calls one for each of
    # its uses. In the residuals of a factorization the calls multiply: the pairs of a Cholesky
    # factor of 3 x 3 took 80 s to run. The older way writes the parts again for each use, which
    # took minutes and 7 GB for four products of small matrices in pairs.
    older = dict([OLDER_LOOPS] if factors and HAS_OLDER_LOOPS else [])
    return {**(QUICK if loops else {}), **older} or None


def dtypes_of(eqn: Eqn) -> list[Any]:
    """Return the dtypes of the results of an equation that are followed."""
    return [v.aval.dtype for v in eqn.outvars if is_followed(v.aval)]


def make_follower(jaxpr: Jaxpr, match: Any = None) -> Follower:
    """Return a program that runs a jaxpr in both types and records it."""
    recorder = Recorder(match)
    tapes = Tape(), Tape()

    def fun(zero: Any, *xs: Any) -> list:
        recorder.zero = zero
        for tape in tapes:
            tape.clear()
        recorder.sites.clear()
        outs = recorder.run_program(jaxpr, list(map(Value, xs)), tapes[0])
        for i, out in enumerate(outs):
            record_result(i, out, tapes[1])
        return [tape.write() for tape in tapes]

    options = choose_options(jaxpr, default_device().platform)
    return Follower(jit(fun, compiler_options=options), recorder, tapes)


def read_records(tape: Tape, vector: np.ndarray) -> list[Record]:
    """Return the record of each equation on a tape."""
    places = order_sites(tape.layout)
    found = read_tape(tape.layout, vector)
    return [Record(item, block, places[id(item)]) for item, block in found]
