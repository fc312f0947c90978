"""The base of samplers: how they are called, their checks, and numbers between two bounds.

`sampler` makes a function that takes a key into one compiled program for each shape and dtype.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.core.aval import typeof
from weft.errors import DtypeError, InconclusiveDimensionOperation, ShapeError
from weft.numpy.promotion import as_array, check_rank_promotion, shape_of
from weft.options import config
from weft.primitives import families, layout
from weft.primitives.bits import bitcast_convert_type, nextafter, shift_right_logical
from weft.primitives.elementwise import (
    add,
    bitwise_or,
    lt,
    max,
    min,
    mul,
    select,
    stop_gradient_p,
    sub,
)
from weft.primitives.reshard import compute_freely
from weft.random.keys import Words, draw_bits, read_one_key
from weft.run.operation import operation
from weft.util import check_option

KNOWN = (int, float, np.generic, np.ndarray)  # values that are looked at without waiting for them
STATIC = ("shape", "dtype", "mode", "axis", "replace", "independent", "method", "unroll")


def sampler(
    fun: Callable | None = None,
    *,
    static: Sequence[str] = (),
    positive: Sequence[str] = (),
    chances: Sequence[str] = (),
    rising: Sequence[str] = (),
    widened: bool = False,
) -> Any:
    """Decorate a sampler, a function of a key: each call is one program, see `operation`.

    The decorated function takes `out_sharding`, the sharding of samples over explicit axes of a
    mesh. Its shape may be a list. `static` names static arguments, besides the usual ones. The
    other names are for checks of arguments that are numbers or NumPy arrays: `positive` arguments
    must not be negative, `chances` must be in [0, 1], and each of `rising` must be at least the
    argument before it. If the sampler is `widened`, samples of short floats are drawn in float32.
    """
    if fun is None:
        return functools.partial(
            sampler,
            static=static,
            positive=positive,
            chances=chances,
            rising=rising,
            widened=widened,
        )
    name = fun.__name__
    signature = inspect.signature(fun)
    names = list(signature.parameters)
    if widened:
        fun = draw_widely(fun, names)

    @functools.wraps(fun)
    def draw(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        return compute_freely(name, out_sharding, fun, *args, **kwargs)

    fixed = [n for n in names if n in STATIC or n in static]
    call = operation(draw, static=["out_sharding", *fixed])
    at = names.index("shape")
    checked = [(n, names.index(n), n in chances) for n in (*positive, *chances)]
    ordered = [(n, names.index(n)) for n in rising]

    @functools.wraps(fun)
    def sample(*args: Any, out_sharding: Any = None, **kwargs: Any) -> Any:
        if out_sharding is not None:
            kwargs["out_sharding"] = out_sharding
        if type(kwargs.get("shape")) is list:
            kwargs["shape"] = tuple(kwargs["shape"])
        elif len(args) > at and type(args[at]) is list:
            args = (*args[:at], tuple(args[at]), *args[at + 1 :])
        for n, i, chance in checked:
            value = args[i] if len(args) > i else kwargs.get(n, 0)
            if isinstance(value, KNOWN):
                check_range(name, n, value, chance)
        if ordered:
            given = [args[i] if len(args) > i else kwargs.get(n) for n, i in ordered]
            if all(isinstance(x, int | float) for x in given) and given != sorted(given):
                got = ", ".join(f"{n}={x}" for n, x in zip(rising, given, strict=True))
                raise ValueError(f"{name}: it must hold that {' <= '.join(rising)}; got {got}.")
        return call(*args, **kwargs)

    keyword = inspect.Parameter.KEYWORD_ONLY
    more = inspect.Parameter("out_sharding", keyword, default=None, annotation="Any")
    parameters = [*signature.parameters.values(), more]
    sample.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return sample


def draw_widely(fun: Callable, names: Sequence[str]) -> Callable:
    """Return a sampler that draws short floats in float32. Its arguments have `names`.

    A uniform number of bfloat16 is one of 128. The logarithm of such a number ends at 4.9, so that
    exponential numbers would have 0.87 of their variance.
    """
    at = list(names).index("dtype")

    @functools.wraps(fun)
    def draw(*args: Any, **kwargs: Any) -> Any:
        given = args[at] if len(args) > at else kwargs.get("dtype")
        dtype = None if given is None else dtypes.check_user_dtype(given, fun.__name__)
        if dtype is None or not dtypes.is_short_float(dtype):
            return fun(*args, **kwargs)
        named = {} if len(args) <= at else dict(zip(names[at:], args[at:], strict=False))
        out = fun(*args[:at], **{**kwargs, **named, "dtype": np.dtype(np.float32)})
        return layout.convert(out, dtype)

    return draw


def widen_floats(x: Any) -> Any:
    """Convert short floats to float32."""
    return layout.convert(x, np.dtype(np.float32)) if dtypes.is_short_float(x.dtype) else x


def check_range(op: str, name: str, value: Any, chance: bool) -> None:
    """Raise where a number, or one of a NumPy array, is negative, or is not a probability."""
    if type(value) in (int, float) and 0 <= value <= (1 if chance else math.inf):
        return  # NumPy takes 10 us for the rest
    values = np.asarray(value)
    if values.dtype.kind not in "biuf":
        return
    bad = ~(values >= 0) | (values > 1) if chance else ~(values >= 0)
    if bad.any():
        got = f"{values[bad][0]} in {typeof(value)}" if values.ndim else value
        must = "must be in [0, 1], a probability" if chance else "must not be negative"
        raise ValueError(f"{op}: {name} {must}; got {got}.")


def check_method(op: str, method: Any) -> None:
    """Raise unless a sampler has a method."""
    check_option(op, "method", method, "exact", "approximate")


def require_count(op: str, name: str, n: Any) -> int:
    """A size that a user gives."""
    if not isinstance(n, int | np.integer) or n < 0:
        raise ShapeError(f"{op}: {name} must be an integer that is not negative; got {n!r}.")
    return int(n)


def choose_float_dtype(op: str, dtype: Any, also_complex: bool = False) -> np.dtype:
    """The dtype of samples: a float dtype, by default float32 (float64 under enable_x64)."""
    found = dtypes.default_float() if dtype is None else dtypes.check_user_dtype(dtype, op)
    if dtypes.is_float(found) or (also_complex and dtypes.is_complex(found)):
        return found
    kinds = "floats or complex numbers" if also_complex else "floats"
    raise DtypeError(f"{op}: dtype must be one of {kinds}; got {found}.")


def choose_int_dtype(op: str, dtype: Any) -> np.dtype:
    """The dtype of samples: an integer dtype, by default int32 (int64 under enable_x64)."""
    found = dtypes.default_int() if dtype is None else dtypes.check_user_dtype(dtype, op)
    if not dtypes.is_integer(found):
        raise DtypeError(f"{op}: dtype must be one of integers; got {found}.")
    return found


def convert_params(op: str, dtype: np.dtype, *xs: Any, shape: Sequence[int] = ()) -> list:
    """Parameters of a distribution as arrays of its dtype, scalars or of the rank of `shape`."""
    out = []
    for x in xs:
        if dtypes.is_complex(typeof(x, op).dtype):
            raise DtypeError(f"{op}: parameters must be real; got {typeof(x)}.")
        x = layout.convert(as_array(x, op), dtype)
        out.append(layout.broadcast_to_rank(x, len(shape)) if 0 < x.ndim < len(shape) else x)
    return out


def choose_shape(op: str, shape: Any, *xs: Any, more: str = "the parameters") -> tuple[int, ...]:
    """The shape of the samples: `shape`, to which the parameters must broadcast, or their own."""
    avals = [typeof(x, op) for x in xs]
    if config.numpy_rank_promotion != "allow":
        check_rank_promotion(op, avals)
    shapes = [a.shape for a in avals]
    try:
        if shape is None:
            return np.broadcast_shapes(*shapes)
        given = shape_of(op, shape)
        if np.broadcast_shapes(given, *shapes) == given:
            return given
    except InconclusiveDimensionOperation:  # of symbolic sizes
        return families.broadcast_shapes(*([] if shape is None else [shape_of(op, shape)]), *shapes)
    except ValueError:
        pass
    listed = ", ".join(map(str, shapes))
    raise ShapeError(f"{op}: {more} must broadcast to shape; got shapes {listed}, shape {shape}.")


def read_arguments(op: str, key: Any, dtype: Any, shape: Any, *params: Any) -> tuple:
    """A key, the dtype and shape of floats to draw, and the parameters of their distribution."""
    key, dtype = read_one_key(op, key), choose_float_dtype(op, dtype)
    shape = choose_shape(op, shape, *params)
    return key, dtype, shape, *convert_params(op, dtype, *params, shape=shape)


def broadcast_bounds(op: str, shape: tuple, dtype: np.dtype, *xs: Any) -> list:
    """Numbers of the dtype, or arrays that `shape` is the broadcast of, in that shape."""
    out = []
    for x in xs:
        if isinstance(x, int | float):
            out.append(layout.literal(float(x), dtype))
            continue
        (x,) = convert_params(op, dtype, x)
        out.append(x if x.ndim == 0 else jnp.broadcast_to(x, shape))
    return out


def draw_uniform(
    op: str,
    key: Words,
    shape: tuple[int, ...],
    dtype: np.dtype,
    low: Any = 0.0,
    high: Any = 1.0,
    then: Callable = lambda x: x,
) -> Any:
    """Draw floats in [low, high), and apply `then` to them.

    Random bits become the fraction of a float in [1, 2). If both bounds are Python floats, samples
    are computed along one axis, which the compiler vectorizes.
    """
    fixed = type(low) is float and type(high) is float
    info = dtypes.finfo(dtype)
    held = np.dtype(f"uint{info.bits}")
    width = 8 if info.nmant < 8 else info.bits
    bits = layout.convert(draw_bits(key, (math.prod(shape),) if fixed else shape, width), held)
    one = np.ones((), dtype).view(held)[()]
    fraction = shift_right_logical(bits, layout.literal(width - info.nmant, held))
    x = sub(bitcast_convert_type(bitwise_or(fraction, layout.literal(int(one), held)), dtype), 1.0)
    if fixed:
        if (low, high) != (0.0, 1.0):
            span = layout.literal(float(dtypes.cast_on_host(high - low, dtype)), dtype)
            x = max(layout.literal(low, dtype), add(mul(x, span), layout.literal(low, dtype)))
        last = (1 - 2.0**-info.nmant) * (high - low) + low
        if low < high <= float(dtypes.cast_on_host(last, dtype)):
            x = min(x, layout.literal(float(step_towards(high, low, dtype)), dtype))
        return layout.reshape(then(x), shape)
    return then(spread_uniform(op, x, low, high))


def spread_uniform(op: str, x: Any, low: Any, high: Any) -> Any:
    """Return floats in [low, high) from floats in [0, 1)."""
    shape = x.shape
    if not shape:  # one draw, which bounds of any shape may scale
        shape = choose_shape(op, None, low, high)
        x = layout.broadcast_in_dim(x, shape, ())
    choose_shape(op, shape, low, high, more="minval and maxval")
    low, high = broadcast_bounds(op, shape, x.dtype, low, high)
    start, end = (stop_gradient_p.apply(v)[0] for v in (low, high))
    last = select(lt(start, end), nextafter(end, start), start)  # a sum may be rounded to `high`
    return max(low, min(add(mul(x, sub(high, low)), low), last))


def step_towards(x: float, y: float, dtype: np.dtype) -> Any:
    """Return the float of `dtype` next to x on the way to y."""
    cast = dtypes.cast_on_host
    return np.nextafter(cast(x, dtype), cast(y, dtype), dtype=dtype)
