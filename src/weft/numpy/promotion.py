"""From what users pass to what primitives take: arrays of one dtype and one shape.

What has to be done for two types is worked out once and remembered; equal types cost one lookup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import HOST_TYPES, ShapedArray, typeof
from weft.core.trace import Tracer
from weft.errors import DtypeError, ShapeError
from weft.options import config
from weft.primitives.elementwise import convert
from weft.primitives.layout import broadcast_in_dim, literal
from weft.xla.array import ArrayImpl

NUMBERS = frozenset((bool, int, float, complex))


class Plan(NamedTuple):
    """The type that operands are brought to: dtype, weak or not, and the broadcast shape."""

    dtype: np.dtype
    weak: bool
    shape: tuple[int, ...]


_PLANS: dict[tuple, Plan] = {}


def array_aval(op: str, x: Any) -> ShapedArray:
    """The type of an operand; a list or another object is an error that says what to do."""
    try:
        return typeof(x)
    except DtypeError:
        raise not_array(op, x) from None


def not_array(op: str, x: Any) -> DtypeError:
    """The error for an operand that is no array."""
    kind = type(x).__name__
    hint = f" Hint: jnp.array({x!r})." if isinstance(x, list | tuple) and len(repr(x)) < 60 else ""
    if isinstance(x, list | tuple) and not hint:
        hint = " Hint: jnp.array(...) makes an array of a list."
    return DtypeError(f"{op}: operands must be arrays or numbers; got a {kind}.{hint}")


def as_operand(op: str, x: Any) -> Any:
    """An operand as it is, or what its `__jax_array__` gives."""
    convert_to_array = getattr(x, "__jax_array__", None)
    if convert_to_array is not None and not isinstance(x, Tracer):
        return convert_to_array()
    return x


def make_plan(op: str, avals: Sequence[ShapedArray], inexact: bool) -> Plan:
    """The common type of operands."""
    dtype, weak = dtypes.promote(tuple((a.dtype, a.weak_type) for a in avals), op)
    if inexact and not dtypes.is_inexact(dtype):
        dtype = dtypes.default_float() if weak else dtypes.inexact_dtype(dtype)
        dtype = dtypes.canonicalize(dtype)
    return Plan(dtype, weak, broadcast_shapes(op, avals))


def broadcast_shapes(op: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The shape that NumPy's rules broadcast to."""
    shapes = [a.shape for a in avals]
    rank = max(map(len, shapes))
    if config.numpy_rank_promotion != "allow":
        check_rank_promotion(op, avals)
    out = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in shapes], strict=True):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            raise ShapeError(
                f"{op}: shapes must broadcast together; got {', '.join(map(str, avals))}."
            )
        out.append(wide.pop() if wide else 1)
    return tuple(out)


def check_rank_promotion(op: str, avals: Sequence[ShapedArray]) -> None:
    """Warn or raise where operands of different rank, scalars apart, are broadcast."""
    ranks = {a.ndim for a in avals if a.ndim}
    if len(ranks) < 2:
        return
    text = (
        f"{op}: operands must have equal ranks under numpy_rank_promotion="
        f"{config.numpy_rank_promotion!r}; got {', '.join(map(str, avals))}. "
        "Hint: add axes with x[None]."
    )
    if config.numpy_rank_promotion == "raise":
        raise ShapeError(text)
    import warnings

    warnings.warn(text, stacklevel=4)


def operands(op: str, *xs: Any, inexact: bool = False) -> list:
    """Operands of one dtype and, scalars apart, one shape."""
    avals = tuple(
        x.aval if type(x) is ArrayImpl or isinstance(x, Tracer) else array_aval(op, x) for x in xs
    )
    first = avals[0]
    if not inexact and all(a is first for a in avals) and type(xs[0]) not in NUMBERS:
        return list(xs)
    key = (avals, inexact, config.enable_x64, config.numpy_dtype_promotion)
    plan = _PLANS.get(key)
    if plan is None:
        plan = make_plan(op, avals, inexact)
        if config.numpy_rank_promotion == "allow":
            _PLANS[key] = plan
    return [brought_to(x, a, plan) for x, a in zip(xs, avals, strict=True)]


def brought_to(x: Any, aval: ShapedArray, plan: Plan) -> Any:
    """One operand, converted and broadcast as the plan says."""
    dtype = plan.dtype
    if type(x) in NUMBERS:
        return x if aval.dtype == dtype else literal(x, dtype)
    if aval.dtype != dtype or (aval.weak_type and not plan.weak):
        x = convert(x, dtype, plan.weak)
    shape = aval.shape
    if shape and shape != plan.shape:
        rank = len(plan.shape)
        x = broadcast_in_dim(x, plan.shape, range(rank - len(shape), rank))
    return x


def is_arraylike(x: Any) -> bool:
    """Whether `x` is an array, a tracer or a number, so that an operator may take it."""
    return type(x) in HOST_TYPES or isinstance(x, Tracer | ArrayImpl | np.ndarray | np.generic)


def as_array(x: Any, op: str = "array") -> Any:
    """A number as an array; arrays and tracers as they are."""
    if isinstance(x, Tracer) or type(x) is ArrayImpl:
        return x
    aval = array_aval(op, x)
    return broadcast_in_dim(convert(x, aval.dtype, aval.weak_type), aval.shape, range(aval.ndim))
