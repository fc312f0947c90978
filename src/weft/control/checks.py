"""`check`: what a user says must hold, as a primitive without results; and errors' messages.

Turning checks into values is transforms/check.py; the functions that users call are in
experimental/checkify.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.core.aval import typeof
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Axis, Effect, Primitive
from weft.core.source import source_line
from weft.core.trace import current
from weft.primitives.dynamic_slicing import dynamic_slice_p
from weft.primitives.elementwise import ne
from weft.primitives.layout import batched_at_front, reshape
from weft.primitives.reduction import argmax
from weft.transforms import check
from weft.transforms.batch import batch, bring_to_front


class CheckEffect(Effect):
    """Telling that something failed: not for what is not chosen."""

    name = "Check"
    repeatable = False


CHECK = CheckEffect()


class Check(Primitive):
    """Fail with `failures[code - 1]` where `bad` holds; `values` are what its message shows.

    It must run where values are known, or be turned into a value by checkify, which looks for
    `kind`; with `debug` it is passed over elsewhere.
    """

    name = "check"
    memoize_type = False
    effect = CHECK

    def abstract_eval(self, bad, code, *values, **params):
        return []

    def impl(self, bad, code, *values, failures, debug, kind):
        if not debug and bool(bad):
            raise check.JaxRuntimeError(check.failure_message(failures[int(code) - 1], values))
        return []

    def lower(self, hlo, bad, code, *values, failures, debug, kind):
        if debug:
            return []
        raise ValueError(
            "checkify.check: a check in a compiled function must be made a value; got the check "
            f"{failures[0].text!r} at {source_line(failures[0].source) or 'an unknown line'}. "
            "Hint: err, out = checkify.checkify(f)(x); err.throw()"
        )

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), []

    def batch(self, axis, args, dims, **params):
        args = [batched_at_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
        return self.bind(*take_first_failing(args), **params), []

    def checked(self, trace, args, params):
        bad, code, *values = args
        if params["kind"] in trace.errors:
            trace.fail(bad, params["failures"], code, values)
        return []

    def pretty_params(self, params):
        return {"debug": params["debug"]}


check_p = Check()


def take_first_failing(args: Sequence[Any]) -> list:
    """Of (bad, code, *values) mapped along the front axis, those of the first that is bad."""
    place = argmax(args[0], 0, check.INT)
    out = []
    for x in args:
        shape = typeof(x).shape
        starts = [place, *[np.int32(0)] * (len(shape) - 1)]
        (row,) = dynamic_slice_p.bind(x, *starts, slice_sizes=(1, *shape[1:]))
        out.append(reshape(row, shape[1:]))
    return out


def holds_checks(jaxprs: Sequence[Jaxpr]) -> bool:
    """Whether any of several programs has a check in it."""
    return any(CHECK in jaxpr.effects for jaxpr in jaxprs)


def batch_with_checks(
    prim: Primitive, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], params: dict
) -> tuple[list, list[int | None]]:
    """The batch rule of a primitive whose programs, mapped, run for elements that chose others.

    Their checks must not: they become values, chosen as the others are, and then a check again.
    """
    found: list[check.CheckTrace] = []

    def values(*xs: Any) -> list:
        trace, outs = check.run_checked(lambda: prim.bind(*xs, **params), (), frozenset(["user"]))
        found.append(trace)
        return [trace.code, *trace.slots, *outs]

    outs, out_dims = batch(values, args, dims, axis)
    n = 1 + len(found[0].slots)
    state = [bring_to_front(x, d, axis.size) for x, d in zip(outs[:n], out_dims[:n], strict=True)]
    bind_failures(tuple(found[0].failures), state)
    return outs[n:], out_dims[n:]


def bind_failures(failures: tuple[check.Failure, ...], state: Sequence[Any]) -> None:
    """Check that a code is 0, where `state` is the code and the slots, perhaps of many elements."""
    if failures:
        while typeof(state[0]).ndim:
            state = take_first_failing([ne(state[0], 0), *state])[1:]
        check_p.bind(ne(state[0], 0), *state, failures=failures, debug=False, kind="user")


def check_index(shape: Sequence[int], axis: int, index: int) -> None:
    """Let checkify know of an index that is out of bounds and known now."""
    text = check.outside_text(shape, axis, index)
    failure = check.Failure("index", text, current.source or current.capture())
    check_p.bind(True, np.int32(1), failures=(failure,), debug=True, kind="index")
