"""Functions of `lax` as users call them: eager calls without what it takes to read parameters.

One of a single operation is planned: a call like an earlier one is a call of the kernel that this
was. Dynamic slices, of several operations, are one program.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from weft.core.aval import typeof
from weft.core.source import trim_traceback
from weft.core.trace import current, use
from weft.dtypes import NUMBERS
from weft.numpy.fused import kernel_for
from weft.options import config, trace_context
from weft.primitives.layout import literal
from weft.xla.eager import EVAL, EvalTrace, kernel_of


class RecordTrace(EvalTrace):
    """Computes, and keeps what it applied: the primitive, operands, parameters and results."""

    applied: tuple = ()

    def process(self, prim: Any, args: Any, params: dict) -> list:
        outs = EVAL.process(prim, args, params)
        self.applied = (*self.applied, (prim, args, params, outs))
        return outs


def plan_calls(fun: Callable, count: int = 1) -> Callable:
    """A decorator: an eager call like an earlier one is a call of its one operation's kernel.

    The first `count` arguments are arrays, and the others parameters, of which equal ones are one.
    """
    plans: dict[tuple, Callable] = {}

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current.trace is not EVAL:
            return fun(*args, **kwargs)
        try:
            if count == 1 and not kwargs:
                key: tuple = (args[0].aval, args[1:], trace_context())
            else:
                types = [x.aval for x in args[:count]]
                key = (*types, args[count:], trace_context(), *kwargs.items())
            plan = plans.get(key)
        except (AttributeError, IndexError, TypeError):  # no arrays; a list, which has no hash
            if list in map(type, args):
                with contextlib.suppress(Exception):  # the error is to be that of a list
                    return call(*[tuple(x) if type(x) is list else x for x in args], **kwargs)
            return fun(*args, **kwargs)
        try:
            if plan is not None:
                return (plan(args[0]) if count == 1 else plan(*args[:count]))[0]
            out, plans[key] = record(fun, count, args, kwargs)
            return out
        except Exception as error:
            trim_traceback(error)
            raise

    return call


def record(fun: Callable, count: int, args: tuple, kwargs: dict) -> tuple[Any, Callable]:
    """The result of a call, and what to call from then on: a kernel, if it was one call of that."""
    trace, arrays, others = RecordTrace(), args[:count], args[count:]
    with use(trace):
        out = fun(*args, **kwargs)
    written = lambda *xs: [fun(*xs, *others, **kwargs)]  # and not the arrays, to let go of them
    if count and out is arrays[0]:
        return out, lambda x, *xs: written(x, *xs) if x.is_deleted() else [x]
    if len(trace.applied) == 1 and config.check_bounds != "all":
        prim, operands, params, outs = trace.applied[0]
        same = len(operands) == len(arrays) and all(x is y for x, y in zip(operands, arrays))
        if same and prim.impl is None and out is outs[0]:
            return out, kernel_of(prim, params)
    return out, written


def run_as_one(fun: Callable) -> Callable:
    """A decorator of dynamic slices: an eager call is one program, which takes the places."""
    static = ("slice_sizes", "slice_size", "axis", "keepdims", "allow_negative_indices")
    kernel, updates = kernel_for(fun, fun.__name__, static), "update" in fun.__name__

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current.trace is not EVAL or config.check_bounds == "all":
            return fun(*args, **kwargs)
        given = args
        try:
            if updates and type(args[1]) in NUMBERS:
                given = args[0], literal(args[1], typeof(args[0]).dtype), *args[2:]
            elif type(args[-1]) is list:  # of sizes, which needs a hash
                given = *args[:-1], tuple(args[-1])
            return kernel(*given, **kwargs)
        except Exception:  # again, for the error of the call as it is
            return fun(*args, **kwargs)

    return call


# Functions of one operation, by how many arrays they take first.
PLANNED = (
    "broadcasted_iota iota",
    "argmax argmin bitcast_convert_type broadcast broadcast_in_dim broadcast_to_rank collapse "
    "convert_element_type cumlogsumexp cummax cummin cumprod cumsum expand_dims index_in_dim "
    "integer_pow reduce_and reduce_max reduce_min reduce_or reduce_precision reduce_prod "
    "reduce_sum reduce_xor rev round slice slice_in_dim sort squeeze tile transpose",
    "batch_matmul conv conv_general_dilated conv_transpose conv_with_general_padding dot "
    "dot_general gather pad",
    "scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub",
)
WRAPPERS: dict[str, Callable] = {
    name: functools.partial(plan_calls, count=count)
    for count, names in enumerate(PLANNED)
    for name in names.split()
} | {
    f"dynamic_{kind}{what}": run_as_one
    for kind in ("", "update_")
    for what in ("index_in_dim", "slice", "slice_in_dim")
}
