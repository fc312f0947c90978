"""Calls of Python from a program: `pure_callback`, `io_callback`, `debug_callback`, `debug_print`.

A callback here is flat: `callback(result_avals, *values)` gives a NumPy array for each result; the
values are arrays or NumPy's. Pytrees and checks are in api/callbacks.py, running is in
xla/callbacks.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.facts import Runs
from weft.core.primitive import Body, Effect, Primitive, Zero
from weft.errors import MissingRule
from weft.options import config
from weft.passes.holes import Hole
from weft.primitives.copies import call_host
from weft.primitives.layout import batched_at_front, expand_dims, move_to_front
from weft.xla.array import put
from weft.xla.callbacks import wrap_error


class DebugEffect(Effect):
    """The effect of showing values, as `debug.print` and `debug.callback` have it by default.

    A program keeps operations with this effect although nothing reads their results. They may
    happen more often or less often than written where a program is transformed, and in any order.

    >>> jaxpr = weft.make_jaxpr(lambda x: weft.debug.print("{}", x))(1.0)
    >>> [type(effect) for effect in jaxpr.effects] == [weft.debug.DebugEffect]
    True
    """

    name = "Debug"


class OrderedDebugEffect(Effect):
    """The effect of showing values in the order written: `debug.print(..., ordered=True)`.

    Operations with this effect happen in the order of the program.

    >>> jaxpr = weft.make_jaxpr(lambda x: weft.debug.print("{}", x, ordered=True))(1.0)
    >>> [type(effect) for effect in jaxpr.effects] == [weft.debug.OrderedDebugEffect]
    True
    """

    name = "OrderedDebug"
    ordered = True


class IOEffect(Effect):
    """Doing something that matters: happens just where the program says."""

    name = "IO"
    repeatable = False


class OrderedIOEffect(IOEffect):
    """Doing something that matters, in the order written."""

    name = "OrderedIO"
    ordered = True


class OpaqueCall(Primitive):
    """A family: a call of a function that weft does not trace; `result_avals` are its types."""

    multiple_results = True

    def describe(self, params: dict) -> str:
        """Name the function that is called, for an error."""
        return "a Python function"

    def abstract_eval(self, *avals, result_avals, **params):
        return list(result_avals)

    def jvp(self, primals, tangents, **params):
        avals = params["result_avals"]
        if any(dtypes.is_inexact(a.dtype) for a in avals):
            raise ValueError(
                f"{self.name}: the derivative of {self.describe(params)} is not known; got "
                "operands that are differentiated. Hint: weft.custom_jvp or weft.custom_vjp around "
                "the call, or lax.stop_gradient(x) for its operands."
            )
        return self.apply(*primals, **params), [Zero(a.to_tangent()) for a in avals]


def stack_type(aval: ShapedArray, size: int) -> ShapedArray:
    """Return the type of a stack of `size` values of a type."""
    sharded = aval.sharded and aval.sharded.with_axis(0)
    return aval.update(shape=(size, *aval.shape), sharded=sharded)


class HostCall(OpaqueCall):
    """A family: the results of the Python function `callback`, of types `result_avals`."""

    memoize_type = False

    def bodies(self, params):
        return [Body(None, runs=Runs.HOST)]

    def impl(self, *args, callback, result_avals, **params):
        try:
            outs = callback(result_avals, *args)
        except Exception as error:
            if config.wrap_callback_errors:
                raise wrap_error(error) from error
            raise
        return [put(y) for y in outs]

    def lower(self, hlo, *args, callback, result_avals, partitioned=False, **params):
        function = functools.partial(callback, result_avals)
        return call_host(hlo, self, function, args, result_avals, partitioned)

    def batch(self, axis, args, dims, *, callback, result_avals, **params):
        """The callback is called for each element, in one call from the program."""
        outs = self.apply(
            *args,
            callback=MappedCallback(callback, axis.size, tuple(dims)),
            result_avals=tuple([stack_type(a, axis.size) for a in result_avals]),
            **params,
        )
        return outs, [0] * len(outs)


class MappedCallback:
    """A flat callback applied to each element along the mapped axes `dims` of its operands."""

    __slots__ = ("callback", "dims", "size")

    def __init__(self, callback: Callable, size: int, dims: Sequence[int | None]):
        self.callback = callback
        self.size = size
        self.dims = dims

    def __call__(self, result_avals: Sequence[ShapedArray], *args: Any) -> list[np.ndarray]:
        avals = [ShapedArray(a.shape[1:], a.dtype) for a in result_avals]
        columns = [
            [x] * self.size if d is None else np.moveaxis(np.asarray(x), d, 0)
            for x, d in zip(args, self.dims, strict=True)
        ]
        outs = [np.empty(a.shape, a.dtype) for a in result_avals]
        for i in range(self.size):
            for out, y in zip(outs, self.callback(avals, *[c[i] for c in columns]), strict=True):
                out[i] = y
        return outs

    @property
    def __name__(self) -> str:
        return f"{self.callback.__name__} for each of {self.size}"


VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)


def map_operands(
    op: str, method: str | None, axis: Any, args: Sequence[Any], dims: Sequence[int | None]
) -> list | None:
    """Return the operands for one call of an opaque function for all elements of a mapped axis.

    The mapped axis comes first. The result is None if `method` calls the function for each element.
    """
    if method is None:
        raise MissingRule(
            f"{op}: under vmap, vmap_method must be one of {', '.join(VMAP_METHODS)}; got None. "
            f"Hint: {op}(..., vmap_method='sequential') calls it for each element."
        )
    if method.startswith("sequential"):
        return None
    fill = {
        "expand_dims": lambda x: expand_dims(x, (0,)),
        "broadcast_all": lambda x: batched_at_front(x, None, axis.size),
        "legacy_vectorized": lambda x: x,
    }[method]
    return [fill(x) if d is None else move_to_front(x, d) for x, d in zip(args, dims, strict=True)]


class PureCallback(HostCall):
    """The results of a function that does nothing else: it may be called more often, or never.

    `vmap_method` says how it is mapped over an axis.
    """

    name = "pure_callback"

    def batch(self, axis, args, dims, **params):
        mapped = map_operands(self.name, params["vmap_method"], axis, args, dims)
        if mapped is None:
            return super().batch(axis, args, dims, **params)
        avals = tuple([stack_type(a, axis.size) for a in params["result_avals"]])
        outs = self.apply(*mapped, **{**params, "result_avals": avals})
        return outs, [0] * len(outs)


class EffectCall(HostCall):
    """A family: a call made for its effect, with an instance for each effect."""

    effect: Effect

    def __init__(self, effect: Effect):
        self.effect = effect


class IOCallback(EffectCall):
    """The results of a function with side effects, which is called exactly once."""

    name = "io_callback"

    def batch(self, axis, args, dims, **params):
        if self.effect.ordered:
            raise ValueError(
                "io_callback: an ordered call must not be mapped, for the elements of vmap have no "
                f"order; got an axis of size {axis.size}. Hint: ordered=False, or lax.map."
            )
        return super().batch(axis, args, dims, **params)

    def pretty_params(self, params):
        return {**params, "ordered": self.effect.ordered}

    def read_params(self, params, avals, out_avals):
        return {k: v for k, v in params.items() if k != "ordered"}


class DebugCallback(EffectCall):
    """Call a function to look at values."""

    name = "debug_callback"

    def pretty_params(self, params):
        shown = {k: v for k, v in params.items() if k != "result_avals"}
        return {**shown, "effect": self.effect}

    def read_params(self, params, avals, out_avals):
        return {"result_avals": (), **{k: v for k, v in params.items() if k != "effect"}}


class DebugPrint(DebugCallback):
    """Print values in a format, which the callback holds as `fmt`."""

    name = "debug_print"

    def pretty_params(self, params):
        callback = params["callback"]
        while isinstance(callback, MappedCallback):
            callback = callback.callback
        return {
            "fmt": callback.fmt,
            "ordered": self.effect.ordered,
            "partitioned": params["partitioned"],
        }

    def read_params(self, params, avals, out_avals):
        callback = params.get("callback") or Hole("function", "callback", fmt=params["fmt"])
        return {"callback": callback, "result_avals": (), "partitioned": params["partitioned"]}


pure_callback_p = PureCallback()
io_callback_p = IOCallback(IOEffect())
ordered_io_callback_p = IOCallback(OrderedIOEffect())
debug_callback_p = DebugCallback(DebugEffect())
ordered_debug_callback_p = DebugCallback(OrderedDebugEffect())
debug_print_p = DebugPrint(debug_callback_p.effect)
ordered_debug_print_p = DebugPrint(ordered_debug_callback_p.effect)
