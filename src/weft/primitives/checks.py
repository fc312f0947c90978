"""`check`: a primitive without results that holds a condition and the message for its failure.

Users write checks with experimental/checkify.py; `check_inside` makes checks of indices.
transforms/check.py turns checks into values, and adds further checks of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import typeof
from weft.core.facts import Runs
from weft.core.primitive import Body, Effect, Primitive
from weft.core.source import source_line, source_text
from weft.core.trace import Tracer, current
from weft.errors import IndexingError
from weft.primitives.copies import call_host
from weft.primitives.elementwise import bitwise_or, ge, lt
from weft.primitives.indexing import index_take
from weft.primitives.layout import batched_at_front, literal, reshape
from weft.primitives.reduction import argmax
from weft.pytrees import unflatten

INT = np.dtype(np.int32)


class Failure(NamedTuple):
    """One possible failure of a program: the check that finds the failure, and its message.

    `text` is formatted with the values in `slots`. If there is a `tree`, the values are the leaves
    of a pair (args, kwargs) of that structure.
    """

    kind: str
    text: str
    source: Any
    slots: tuple[int, ...] = ()
    tree: Any = None


class JaxRuntimeError(ValueError):
    """An error that a check of `checkify` has found.

    `Error.throw` of `weft.experimental.checkify` raises it. It is a ValueError.

    >>> from weft.experimental import checkify
    >>> error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "x must be positive"))(-1.0)
    >>> try:
    ...     error.throw()
    ... except checkify.JaxRuntimeError as e:
    ...     print(str(e).split(" (")[0])
    x must be positive
    """


def failure_message(failure: Failure, slots: Sequence[Any]) -> str:
    """Return the message of a failure, for concrete values: what, with which values, and where."""
    given = [slots[i] for i in failure.slots]  # arrays, or a callback's NumPy arrays
    values = [x[()] if type(x) is np.ndarray else x for x in given]
    args, kwargs = (values, {}) if failure.tree is None else unflatten(failure.tree, values)
    text = failure.text.format(*args, **kwargs) if values else failure.text
    code = "`check` failed" if failure.kind == "user" else f"`{source_text(failure.source)}`"
    place = source_line(failure.source)
    where = " at ".join(x for x in (code, place) if x not in ("", "``"))
    return f"{text} ({where})" if where else text


class CheckEffect(Effect):
    """The effect of reporting a failure. It does not occur in branches that are not taken."""

    name = "Check"
    repeatable = False


CHECK = CheckEffect()


class Check(Primitive):
    """Fail with `failures[code - 1]` where `bad` holds; `values` are what its message shows.

    It must run where values are known, or be turned into a value by checkify, which looks for
    `kind`; with `debug` it is passed over elsewhere. Of the kind "bounds" it is of an index: any
    program raises where it fails.
    """

    name = "check"
    memoize_type = False
    effect = CHECK
    multiple_results = True

    def bodies(self, params):
        return [Body(None, runs=Runs.HOST)] if params["kind"] == "bounds" else []

    def abstract_eval(self, bad, code, *values, **params):
        return []

    def impl(self, bad, code, *values, failures, debug, kind):
        if not debug and bool(bad):
            error = IndexingError if kind == "bounds" else JaxRuntimeError
            raise error(failure_message(failures[int(code) - 1], values))
        return []

    def lower(self, hlo, bad, code, *values, failures, debug, kind):
        if debug:
            return []
        if kind == "bounds":
            run = functools.partial(self.impl, failures=failures, debug=False, kind=kind)
            return call_host(hlo, self, run, [bad, code, *values])
        raise ValueError(
            "checkify.check: a check in a compiled function must be made a value; got the check "
            f"{failures[0].text!r} at {source_line(failures[0].source) or 'an unknown line'}. "
            "Hint: err, out = checkify.checkify(f)(x); err.throw()"
        )

    def jvp(self, primals, tangents, **params):
        return self.apply(*primals, **params), []

    def batch(self, axis, args, dims, **params):
        args = [batched_at_front(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
        return self.apply(*take_first_failing(args), **params), []

    def checked(self, trace, args, params):
        bad, code, *values = args
        if params["kind"] in trace.errors:
            trace.fail(bad, params["failures"], code, values)
        elif params["kind"] == "bounds":
            return trace.apply(self, args, params)
        return []

    def pretty_params(self, params):
        return {"debug": params["debug"]}

    def read_params(self, params, avals, out_avals):
        return {"failures": (), "kind": "user", **params}


check_p = Check()


def take_first_failing(args: Sequence[Any]) -> list:
    """Return the first bad one of (bad, code, *values) that are mapped along the front axis."""
    place = reshape(argmax(args[0], 0, INT), (1,))
    return [reshape(index_take(x, [place], [0]), typeof(x).shape[1:]) for x in args]


def outside_text(shape: Sequence[int], axis: int, index: Any) -> str:
    """Return the message for an index that reaches out of an axis."""
    return (
        f"out-of-bounds indexing for array of shape {tuple(shape)}: index {index} is out of bounds "
        f"for axis {axis} with size {shape[axis]}."
    )


def check_inside(text: str, indices: Any, low: int, high: int) -> None:
    """Raise, now or when the program runs, with the first of `indices` not in [low, high).

    `text` is formatted with it.
    """
    if not isinstance(indices, Tracer):
        values = np.asarray(indices)
        bad = values[(values < low) | (values >= high)]
        if bad.size:
            raise IndexingError(text.format(bad[0]))
        return
    aval = typeof(indices)
    limits = dtypes.iinfo(aval.dtype)
    tests = []
    if low > limits.min:
        tests.append(lt(indices, literal(low, aval.dtype)))
    if high <= limits.max:
        tests.append(ge(indices, literal(high, aval.dtype)))
    if tests and aval.size:
        bad = reshape(functools.reduce(bitwise_or, tests), (aval.size,))
        bad, value = take_first_failing([bad, reshape(indices, (aval.size,))])
        failure = Failure("bounds", text, current.source or current.capture(), (0,))
        check_p.apply(bad, INT.type(1), value, failures=(failure,), debug=False, kind="bounds")


def check_index(shape: Sequence[int], axis: int, index: int) -> None:
    """Let checkify know of an index that is out of bounds and known now."""
    text = outside_text(shape, axis, index)
    failure = Failure("index", text, current.source or current.capture())
    check_p.apply(True, np.int32(1), failures=(failure,), debug=True, kind="index")
