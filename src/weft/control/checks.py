"""Checks in primitives that hold programs, where these are mapped.

The primitive is primitives/checks.py's; turning checks into values is transforms/check.py; the
functions that users call are in experimental/checkify.py.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from weft.core.aval import typeof
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Axis, Primitive
from weft.primitives.checks import CHECK, Failure, check_p, take_first_failing
from weft.primitives.elementwise import bitwise_or, eq, ne
from weft.transforms.batch import batch, bring_to_front
from weft.transforms.check import CheckTrace, run_checked


def holds_checks(jaxprs: Sequence[Jaxpr]) -> bool:
    """Return True if any of several programs has a check in it."""
    return any(CHECK in jaxpr.effects for jaxpr in jaxprs)


def batch_with_checks(
    prim: Primitive, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], params: dict
) -> tuple[list, list[int | None]]:
    """The batch rule of a primitive whose programs, mapped, run for elements that chose others.

    Their checks must not: they become values, chosen as the others are, and then a check again.
    """
    found: list[CheckTrace] = []

    def values(*xs: Any) -> list:
        trace, outs = run_checked(
            lambda: prim.apply(*xs, **params), (), frozenset(["user", "bounds"])
        )
        found.append(trace)
        return [trace.code, *trace.slots, *outs]

    outs, out_dims = batch(values, args, dims, axis)
    n = 1 + len(found[0].slots)
    state = [bring_to_front(x, d, axis.size) for x, d in zip(outs[:n], out_dims[:n], strict=True)]
    bind_failures(tuple(found[0].failures), state)
    return outs[n:], out_dims[n:]


def bind_failures(failures: tuple[Failure, ...], state: Sequence[Any]) -> None:
    """Check that a code is 0, where `state` is the code and the slots, perhaps of many elements."""
    if failures:
        while typeof(state[0]).ndim:
            state = take_first_failing([ne(state[0], 0), *state])[1:]
    kinds = ["bounds" if f.kind == "bounds" else "user" for f in failures]
    for kind in sorted(set(kinds)):
        bad = ne(state[0], 0)
        if len(set(kinds)) > 1:
            codes = [i for i, k in enumerate(kinds, 1) if k == kind]
            bad = functools.reduce(bitwise_or, [eq(state[0], i) for i in codes])
        check_p.apply(bad, *state, failures=failures, debug=False, kind=kind)
