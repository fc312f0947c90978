"""Attention by a kernel, native/attention.cc, which does not store the weights.

The primitives are defined in nn/, a layer above this folder. They are recognized by their form.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.jaxpr import Eqn
from weft.cpu.calls import call_kernel
from weft.cpu.scope import Scope
from weft.util import select_masked


def choose_attention(eqn: Eqn, scope: Scope) -> Callable[..., Sequence[Any]] | None:
    """Compute the means, or cotangents of those operands that are `moved`, by the kernel."""
    prim: Any = eqn.primitive
    params = eqn.params
    if not prim.has_kernel or not scope.target.kernels:
        return functools.partial(prim.plain, **params)
    moved = params.get("moved", (True, True))
    given = iter(eqn.outvars)
    empty = ShapedArray((0,), eqn.outvars[0].aval.dtype)
    outs = [next(given).aval.strong() if m else empty for m in moved]
    left, right = prim.find_span(params["causal"], params["window"])
    how = {"scale": np.float32(params["scale"]), "left": left, "right": right}
    return lambda *xs: select_masked(call_kernel("weft_attention", xs, outs, how), moved)
