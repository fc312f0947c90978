"""Materialize values on a CPU, by a call of a kernel that does nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.core.jaxpr import Eqn
from weft.cpu.calls import call_kernel
from weft.cpu.scope import Scope


def choose_keep(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Keep operands in their buffers: XLA computes nothing again that a call gives.

    Arguments of the program are in buffers already.
    """
    places = [i for i, a in enumerate(eqn.invars) if scope.maker(a) is not None]
    if not scope.target.kernels or not places:
        return None
    outs = [eqn.outvars[i].aval.strong() for i in places]

    def keep(*xs: Any) -> list:
        aliases = {k: k for k in range(len(places))}
        kept = call_kernel("weft_keep", [xs[i] for i in places], outs, aliases=aliases)
        found = dict(zip(places, kept, strict=True))
        return [found.get(i, x) for i, x in enumerate(xs)]

    return keep
