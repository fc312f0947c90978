"""Running operations one by one: the bottom trace, and the compiled kernel of each primitive.

A kernel is a C++ callable per primitive and parameters; it finds the executable for the types of
its arguments itself, and comes back here when there is none yet.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.core.aval import typeof
from weft.core.jaxpr import Eqn, Jaxpr, Var
from weft.core.primitive import Primitive
from weft.core.source import trimmed
from weft.core.trace import Trace, Tracer, install_bottom, leak_message
from weft.errors import UnexpectedTracerError
from weft.pytrees import flatten
from weft.xla.array import ArrayImpl
from weft.xla.client import default_device
from weft.xla.compile import Executable, compile_text
from weft.xla.fastpath import compiled_call
from weft.xla.lower import lower_module
from weft.xla.nans import check_operation, watch

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
            error.__traceback__ = trimmed(error.__traceback__)
            raise


def kernel_of(prim: Primitive, params: dict) -> Callable[..., list]:
    """The kernel of `prim` with these parameters, made where there is none yet."""
    key = (prim, *params.items()) if params else prim
    if key not in _KERNELS:
        _KERNELS[key] = new_kernel(prim, params)
    return _KERNELS[key]


def new_kernel(prim: Primitive, params: dict) -> Callable[..., list]:
    """The C++ callable that applies `prim` with these parameters to concrete values."""

    watching: dict[tuple, Executable] = {}  # while results are looked at, which C++ cannot do

    def miss(*args: Any) -> tuple:
        avals = tuple(check_concrete(x, prim.name) for x in args)
        device, committed = device_of(args)
        watched = watch()
        run = watching.get((avals, device, committed)) if watched else None
        if run is None:
            out_avals = prim.type_of(avals, params)
            jaxpr = eqn_jaxpr(prim, params, avals, out_avals)
            loaded = compile_text(lower_module(jaxpr, prim.name).text, device)
            run = Executable(loaded, out_avals, device, committed)
        outs = run(*args)
        if watched:
            watching[avals, device, committed] = run
            check_operation(watched, prim.name, args, outs)
            return outs, None, False
        return outs, run.fastpath(list_tree(len(outs)), len(args)), False

    return compiled_call(prim.name, miss)


def forget_kernels() -> None:
    """Empty the memory of compiled operations."""
    _KERNELS.clear()


@functools.cache
def list_tree(count: int) -> Any:
    """The structure of a list of `count` leaves."""
    return flatten([0] * count)[1]


def check_concrete(x: Any, op: str = "array") -> Any:
    """The type of a value to compute with; a tracer here has outlived its function."""
    if isinstance(x, Tracer):
        raise UnexpectedTracerError(leak_message(x))
    return typeof(x, op)


def eqn_jaxpr(prim: Primitive, params: dict, in_avals: Any, out_avals: Any) -> Jaxpr:
    """The program that is one equation."""
    invars = [Var(a) for a in in_avals]
    outvars = [Var(a) for a in out_avals]
    return Jaxpr((), invars, outvars, [Eqn(prim, invars, params, outvars)])


def device_of(args: Any) -> tuple[Any, bool]:
    """Where to compute on these values, and whether one of them is bound to that place."""
    bound = [x for x in args if type(x) is ArrayImpl and x._committed]
    if not bound:
        return default_device(), False
    device = bound[0]._sharding.device
    for x in bound:
        if x._sharding.device is not device:
            raise ValueError(
                f"array: operands must be on one device; got {bound[0].aval} on {device!r}, "
                f"{x.aval} on {x._sharding.device!r}. Hint: weft.device_put(x, {device!r})."
            )
    return device, True


EVAL = EvalTrace(None)
install_bottom(EVAL)
