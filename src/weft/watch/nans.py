"""Looking for NaN and infinity: which operation made the first one, on which line of the user's.

While `debug_nans` or `debug_infs` is on, results are checked after every eager operation and
compiled program. A program whose results are bad is run again, equation by equation.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import typeof
from weft.core.facts import Runs
from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var, bodies_of
from weft.core.primitive import Body, split_inputs
from weft.core.source import describe_maker, inner_source
from weft.core.trace import current
from weft.errors import is_own_file
from weft.options import config


class Watch(NamedTuple):
    """The kinds of values to look for."""

    nans: bool
    infs: bool | str  # "made": only where no operand has one

    def flaw(self, x: Any) -> str:
        """The first bad element of a value, as `nan at [1] of f32[2]`; empty if there is none."""
        aval = typeof(x)
        if not dtypes.is_inexact(aval.dtype):
            return ""
        values = np.asarray(x)
        bad = np.zeros(values.shape, bool)
        if self.nans:
            bad |= np.isnan(values)
        if self.infs:
            bad |= np.isinf(values)
        if not bad.any():
            return ""
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f" at [{', '.join(map(str, index))}] of {aval}" if index else f" of type {aval}"
        return f"{values[index]}{where}"

    def first_flaw(self, xs: Sequence[Any]) -> int | None:
        """Return the index of the first value with a bad element."""
        return next((i for i, x in enumerate(xs) if self.flaw(x)), None)

    def error(self, op: str, got: str) -> FloatingPointError:
        """The error for a result of `op`."""
        options = [n for n, on in zip(("debug_nans", "debug_infs"), self, strict=True) if on]
        what = " or ".join(n for n, on in zip(("NaN", "infinity"), self, strict=True) if on)
        off = ", ".join(f"weft.{n}(False)" for n in options)
        return FloatingPointError(
            f"{op}: results must hold no {what} under {' and '.join(options)}; got {got}. "
            "Hint: keep operands in the domain, as in jnp.log(jnp.where(x > 0, x, 1)); with "
            f"{off}: allows it in a block."
        )


EITHER = Watch(True, True)


def describe_operands(args: Sequence[Any]) -> str:
    """Says which operand has NaN or an infinity already, where one does."""
    which = EITHER.first_flaw(args)
    text = "" if which is None else f" of operand {which}, which has {EITHER.flaw(args[which])}"
    return text + (", in the backward pass" if is_transposing() else "")


def is_transposing() -> bool:
    """Return True if cotangents are being computed."""
    frame: Any = sys._getframe(1)
    while frame is not None and not (
        frame.f_code.co_name == "pull_cotangents" and is_own_file(frame.f_code.co_filename)
    ):
        frame = frame.f_back
    return frame is not None


def check_results(
    found: Watch,
    name: str,
    jaxpr: Jaxpr,
    args: Sequence[Any],
    outs: Sequence[Any],
    names: Callable[[], Sequence[str]],
    inner: bool,
) -> None:
    """Raise if a program that just ran on `args` returned a bad result; name the equation.

    `names()` are the names of its last parameters; the first ones are closed over. If not `inner`,
    the lines of its equations are not the user's.
    """
    which = found.first_flaw(outs)
    if which is None:
        return
    # one operation, called for itself
    alone = len(jaxpr.eqns) == 1 and jaxpr.eqns[0].source is None
    if alone and jaxpr.eqns[0].primitive.memoize_type:  # it holds no programs
        origin: Any = None
    else:
        with config.scope(debug="off"):
            origin = find_origin(found, jaxpr, args)
    source = current.source or current.capture()
    if found.infs == "made":
        given = origin.operands if isinstance(origin, Made) else args
        if not (alone or isinstance(origin, Made)) or EITHER.first_flaw(given) is not None:
            return  # carried along, as -inf is where a mask puts it
    if isinstance(origin, Made):
        op = origin.eqn.primitive.name
        made = describe_maker((inner and origin.eqn.source) or source, op)
        got = f"{origin.flaw}, {made}{describe_operands(origin.operands)}"
        places = origin.inside if alone or not inner else (*origin.inside, name)
        raise found.error(op, f"{got}, in {' in '.join(places)}" if places else got)
    if alone or not inner:
        made = describe_maker(source, name) + describe_operands(args)
        raise found.error(name, f"{found.flaw(outs[which])}, {made}")
    got = f"{found.flaw(outs[which])} as result {which} of {name}"
    if origin is not None:
        given = names()
        i = origin - (len(args) - len(given))
        what = given[i] if 0 <= i < len(given) else "a value that it closes over"
        got += f", from {what}, which has {found.flaw(args[origin])}"
    elif type(jaxpr.outvars[which]) is Literal:
        got += ", where it is written as a constant"
    else:
        got += ", whose operations make none when they run one by one"
    raise found.error(name, got)


class Made(NamedTuple):
    """The equation that made a bad value, its operands, and the programs that it is in."""

    eqn: Eqn
    operands: Sequence[Any]
    flaw: str
    inside: tuple[str, ...]


def find_origin(found: Watch, jaxpr: Jaxpr, args: Sequence[Any]) -> Made | int | None:
    """Find the cause of bad results of a program: an equation, an argument, or nothing here."""
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    maker: dict[Any, Eqn] = {}

    def read(atom: Any) -> Any:
        return atom.read() if type(atom) is Literal else env[atom]

    around = current.source
    try:
        for eqn in jaxpr.eqns:
            current.source = inner_source(eqn.source)
            outs = eqn.primitive.apply(*map(read, eqn.invars), **eqn.params)
            env.update(zip(eqn.outvars, outs, strict=True))
            maker.update(dict.fromkeys(eqn.outvars, eqn))
    finally:
        current.source = around
    var = find_bad_variable(found, jaxpr.outvars, read)
    if var is None:
        return None
    while var in maker:  # back to where it began
        eqn = maker[var]
        before = find_bad_variable(found, eqn.invars, read)
        if before is None:
            operands = [*map(read, eqn.invars)]
            return find_inner_origin(found, eqn, operands) or Made(
                eqn, operands, found.flaw(env[var]), ()
            )
        var = before
    return jaxpr.invars.index(var)


def find_bad_variable(found: Watch, atoms: Sequence[Any], read: Callable) -> Var | None:
    """The first variable among `atoms` whose value is bad."""
    return next((a for a in atoms if type(a) is not Literal and found.flaw(read(a))), None)


def find_inner_origin(found: Watch, eqn: Eqn, operands: list) -> Made | None:
    """Find the cause of a bad value inside an equation that holds programs; None if unknown."""

    def look(jaxpr: Jaxpr, args: Sequence[Any], within: str) -> tuple[list, Made | None]:
        outs = jaxpr(*args)
        origin = None if found.first_flaw(outs) is None else find_origin(found, jaxpr, args)
        if not isinstance(origin, Made):
            return outs, None
        return outs, origin._replace(inside=(*origin.inside, within))

    return follow_bodies(eqn, operands, look)


def follow_bodies(eqn: Eqn, operands: list, look: Callable[..., tuple[list, Any]]) -> Any:
    """Return the first finding of `look(jaxpr, args, place)` in the programs of an equation.

    It gives the results of the program, too; in a loop the place is as "step 3 of scan".
    """
    bodies, outs, found = bodies_of(eqn), None, None
    place = next((b.label for b in bodies if b.label), eqn.primitive.name)
    runs = step_bodies(bodies, operands)
    with contextlib.suppress(StopIteration):
        for step in itertools.count():
            jaxpr, args = runs.send(outs)
            within = f"step {step} of {place}" if bodies[0].runs is Runs.LOOP else place
            outs, found = look(jaxpr, args, within)
            if found is not None:
                break
    return found


def step_bodies(bodies: Sequence[Body], operands: list) -> Generator[Any, Any, None]:
    """Yield the programs that an equation runs and their operands, one after another.

    The caller sends back the results of each. Nothing is yielded if their order is not known.
    """
    if not bodies:
        return
    body, *others = bodies
    if body.runs is Runs.BRANCH:
        body = bodies[int(operands[0])]
    args = [operands[i] for i in body.operands]
    if body.runs in (Runs.ONCE, Runs.AGAIN, Runs.BRANCH):
        yield body.jaxpr, args
    elif body.runs is Runs.LOOP:
        consts, carry, rows = split_inputs(body, args)
        test = next((b for b in others if b.runs is Runs.CONDITION), None)
        turns = iter(itertools.count() if body.turns is None else body.turns)
        looks = [operands[i] for i in test.operands[: -len(carry)]] if test else []
        while test is None or test.jaxpr(*looks, *carry)[0]:
            i = next(turns, None)
            if i is None:
                break
            outs = yield body.jaxpr, [*consts, *carry, *[x[i] for x in rows]]
            carry = outs[: len(carry)]
