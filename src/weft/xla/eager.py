"""Running operations one by one: the bottom trace, and the compiled kernel of each primitive.

A kernel is a C++ callable per primitive and parameters; it finds the executable for the types of
its arguments itself, and comes back here when there is none yet.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Primitive
from weft.core.source import trim_traceback
from weft.core.trace import Trace, install_bottom
from weft.options import config
from weft.pytrees import flatten
from weft.watch.key_reuse import followed
from weft.watch.nans import check_operation, watch
from weft.xla.building import executable
from weft.xla.compile import Executable
from weft.xla.fastpath import compiled_call
from weft.xla.lower import lower_module
from weft.xla.placement import placement_of
from weft.xla.run import check_concrete, eqn_jaxpr

# (primitive, *params) -> its kernel.
_KERNELS: dict[Any, Callable[..., list]] = {}


class EvalTrace(Trace):
    """Computes. The parent of every other trace, at the end."""

    __slots__ = ()

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        if prim.impl is not None:
            return prim.impl(*args, **params)
        key = (prim, *params.items()) if params else prim
        kernel = _KERNELS.get(key)
        if kernel is None:
            kernel = kernel_of(prim, params)
        try:
            return kernel(*args)
        except Exception as error:
            error.__traceback__ = trim_traceback(error.__traceback__)
            raise


def kernel_of(prim: Primitive, params: dict) -> Callable[..., list]:
    """The kernel of `prim` with these parameters, made where there is none yet."""
    key = (prim, *params.items()) if params else prim
    if key not in _KERNELS:
        _KERNELS[key] = new_kernel(prim, params)
    return _KERNELS[key]


def new_kernel(prim: Primitive, params: dict) -> Callable[..., list]:
    """The C++ callable that applies `prim` with these parameters to concrete values."""

    # by types and place, what C++ cannot run, for a call waits or results are looked at
    kept: dict[tuple, tuple[Jaxpr, Executable]] = {}

    def miss(*args: Any) -> tuple:
        avals = tuple(check_concrete(x, prim.name) for x in args)
        placement = placement_of(args)
        watched, keys = watch(), config.debug_key_reuse
        jaxpr, run = kept.get((avals, placement), (None, None))
        if jaxpr is None or run is None:
            jaxpr = eqn_jaxpr(prim, params, avals, prim.type_of(avals, params))
            module = lower_module(jaxpr, prim.name, placement, placement.arguments)
            run = executable(module, jaxpr, placement)
        outs = followed(jaxpr, args, lambda: run(*args)) if keys else run(*args)
        fast = None if watched or keys else run.fastpath(list_tree(len(outs)), len(args))
        if fast is None:
            kept[avals, placement] = jaxpr, run
        if watched:
            check_operation(watched, prim.name, args, outs)
        return outs, fast, False

    return compiled_call(prim.name, miss)


def forget_kernels() -> None:
    """Empty the memory of compiled operations."""
    _KERNELS.clear()


@functools.cache
def list_tree(count: int) -> Any:
    """The structure of a list of `count` leaves."""
    return flatten([0] * count)[1]


EVAL = EvalTrace(None)
install_bottom(EVAL)
