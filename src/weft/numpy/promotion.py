"""Convert the arguments of users to operands of primitives: arrays of one dtype and one shape.

What has to be done for given types is worked out once, a `PromotionPlan`, and remembered; then it
costs one lookup. Axes and shapes that functions take are brought to one form here too.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import HOST_TYPES, ShapedArray, typeof
from weft.core.trace import Tracer
from weft.errors import DtypeError, ShapeError, TracerError
from weft.mesh.sharding import NamedSharding
from weft.mesh.spec import PartitionSpec
from weft.mesh.typed import entries_of
from weft.options import config, trace_context
from weft.primitives import families, layout
from weft.primitives.elementwise import NUMBERS, convert, ne
from weft.primitives.families import check_integer
from weft.primitives.layout import broadcast_in_dim
from weft.util import as_size, keep_cache, memoize, warn_user
from weft.xla.array import ARRAYS, put, require_alive
from weft.xla.typing import Shape


class PromotionPlan(NamedTuple):
    """The common type of operands, and for each operand the function that converts it, or None.

    `actions` is None where all operands can stay unchanged.
    """

    dtype: np.dtype
    weak: bool
    shape: tuple[int, ...]
    actions: tuple[Callable[[Any], Any] | None, ...] | None


# What functions of NumPy do with operands of given types: (function or kind of plan, types, what
# else it depends on, the options that programs depend on) -> plan.
PLANS: dict[tuple, Any] = keep_cache("plans of functions", {})


def kind_of(op: str, x: Any) -> Any:
    """Return the key of an operand in a plan: its aval, or the type of a Python number."""
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval
    if type(x) in NUMBERS:
        return type(x)
    return typeof(x, op)


def as_operand(op: str, x: Any) -> Any:
    """Return an operand, or the result of its `__jax_array__`; raise if it is not an array."""
    if type(x) in ARRAYS or isinstance(x, Tracer) or type(x) in HOST_TYPES:
        return x
    to_array = getattr(x, "__jax_array__", None)
    if to_array is not None:
        return to_array()
    kind_of(op, x)
    return x


def plan_promotion(
    op: str, kinds: tuple, inexact: bool = False, shaped: bool = True
) -> PromotionPlan:
    """The plan for operands of these kinds; without `shaped`, their shapes stay unchanged."""
    key = (kinds, inexact, shaped, trace_context())
    plan = PLANS.get(key)
    if plan is None:
        plan = PLANS[key] = make_promotion_plan(op, kinds, inexact, shaped)
    return plan


def make_promotion_plan(op: str, kinds: tuple, inexact: bool, shaped: bool) -> PromotionPlan:
    """Work out a plan; operands of one type stay unchanged."""
    first = kinds[0]
    is_one_type = type(first) is ShapedArray and kinds.count(first) == len(kinds)
    if is_one_type and (not inexact or dtypes.is_inexact(first.dtype)):
        return PromotionPlan(first.dtype, first.weak_type, first.shape if shaped else (), None)
    avals = [typeof(k(0)) if isinstance(k, type) else k for k in kinds]
    types = tuple((a.dtype, a.weak_type) for a in avals)
    # a weak dtype yields to others; alone it stays, with enable_x64 a 32-bit one too
    dtype, weak = types[0] if len(set(types)) == 1 else dtypes.promote(types, op)
    if inexact and not dtypes.is_inexact(dtype):
        weak = weak and not dtypes.is_bool(dtype)  # True is a number that is not weak
        dtype = dtypes.canonicalize(dtypes.inexact_dtype(dtype, op))
    shape = broadcast_avals(op, avals) if shaped else ()
    typed = not weak and all(isinstance(k, type) for k in kinds)  # no array makes it strong
    actions = tuple(
        (functools.partial(wrap_number, dtype=dtype) if typed else choose_number_action(k, dtype))
        if isinstance(k, type)
        else choose_array_action(k, dtype, weak, shape if shaped else k.shape, avals)
        for k in kinds
    )
    return PromotionPlan(dtype, weak, shape, actions if any(actions) else None)


def choose_number_action(kind: type, dtype: np.dtype) -> Callable | None:
    """Return the function that makes a Python number a literal of `dtype`."""
    target = dtypes.scalar_type_of(dtype)
    if dtypes.python_scalar_dtype(target) != dtype:
        return functools.partial(wrap_number, dtype=dtype)
    if target is int:
        return check_int_range
    return None if target is kind else target


def check_int_range(x: int, op: str = "array") -> int:
    """`x`, if the default integer dtype can hold it."""
    dtype = dtypes.default_int()
    if not -(2 ** (8 * dtype.itemsize - 1)) <= x < 2 ** (8 * dtype.itemsize - 1):
        raise OverflowError(f"{op}: an integer must fit {dtype}; got {x}.{dtypes.hint_wide(x)}")
    return int(x)


def wrap_number(x: Any, dtype: np.dtype, op: str = "array") -> Any:
    """A Python number as a NumPy scalar of `dtype`; an integer too large wraps, as in arrays."""
    if type(x) is int:
        x = dtypes.wrap_int(x, dtype, op) if dtypes.is_integer(dtype) else float(x)
        x = np.asarray(x, dtype if dtypes.is_integer(dtype) else None)
    return dtypes.cast_on_host(np.asarray(x), dtype)[()]


def cast_operand(op: str, x: Any, dtype: np.dtype) -> Any:
    """An operand in a dtype, which may be of a lower kind: 1.5 as an integer is 1."""
    if type(x) is complex and not dtypes.is_complex(dtype):
        x = x.real
    if type(x) in NUMBERS and (type(x) is not float or dtypes.is_inexact(dtype)):
        return wrap_number(x, dtype, op)
    return convert(as_array(x, op), dtype)


def choose_array_action(
    aval: ShapedArray, dtype: np.dtype, weak: bool, shape: tuple[int, ...], avals: Sequence
) -> Callable | None:
    """Return the function that converts or broadcasts an array to a type, among `avals`."""
    converts = aval.dtype != dtype or (aval.weak_type and not weak)
    spreads = bool(aval.shape) and aval.shape != shape
    if not converts and not spreads:
        return None
    dims = tuple(range(len(shape) - aval.ndim, len(shape)))
    lies = spread_sharding(aval, avals, shape) if spreads else None

    def act(x: Any) -> Any:
        if converts:
            x = convert(x, dtype, weak)
        return broadcast_in_dim(x, shape, dims, out_sharding=lies) if spreads else x

    return act


def spread_sharding(aval: ShapedArray, avals: Sequence, shape: Sequence[int]) -> Any:
    """Return the sharding of a broadcast operand; None if no operand is split along its new axes.

    Axes that are repeated are sharded like the other operands' axes, so that the cotangent,
    which is summed over them, stays sharded as well.
    """
    own, at = aval.sharded, len(shape) - aval.ndim
    entries, sizes = [*[()] * at, *entries_of(aval)], (*[1] * at, *aval.shape)
    taken, meshes = {n for e in entries for n in e}, {a.sharded.mesh for a in avals if a.sharded}
    count = len(taken)
    for lies in [a.sharded for a in avals if a.sharded is not None]:
        for i, names in enumerate(lies.entries, len(shape) - len(lies.entries)):
            if sizes[i] != shape[i] and not entries[i] and taken.isdisjoint(names):
                entries[i], _ = names, taken.update(names)
    if len(taken) == count or len(meshes) > 1 or (own and (own.unreduced or own.reduced)):
        return None
    return NamedSharding(*meshes, PartitionSpec(*entries))


def broadcast_avals(
    op: str, avals: Sequence[ShapedArray], check_ranks: bool = True
) -> tuple[int, ...]:
    """The shape that NumPy's rules broadcast to; `check_ranks` is False for masks."""
    shape = avals[0].shape
    if all(a.shape == shape for a in avals):
        return shape
    if check_ranks and config.numpy_rank_promotion != "allow":
        check_rank_promotion(op, avals)
    try:
        return broadcast_shapes(*[a.shape for a in avals])
    except ShapeError:
        raise ShapeError(
            f"{op}: shapes must broadcast together; got {', '.join(map(str, avals))}."
        ) from None


cached_broadcast = memoize(families.broadcast_shapes)


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """Compute the shape that arrays of the given shapes broadcast to together.

    Args:
      shapes: tuples of ints, or ints for shapes of one axis.

    Returns:
      A tuple of ints.

    Raises:
      ShapeError: if an axis, counted from the last, has two sizes that differ and are not 1.

    >>> jnp.broadcast_shapes((3, 1), (4,), ())
    (3, 4)
    """
    return cached_broadcast(*[shape_of("broadcast_shapes", s) for s in shapes])


def check_rank_promotion(op: str, avals: Sequence[ShapedArray]) -> None:
    """Warn or raise where operands of different rank, scalars apart, are broadcast."""
    if len({a.ndim for a in avals if a.ndim}) < 2:
        return
    text = (
        f"{op}: operands must have equal ranks under numpy_rank_promotion="
        f"{config.numpy_rank_promotion!r}; got {', '.join(map(str, avals))}. "
        "Hint: add axes with x[None]."
    )
    if config.numpy_rank_promotion == "raise":
        raise ShapeError(text)
    warn_user(text)


def promote_operands(op: str, *xs: Any, inexact: bool = False, shaped: bool = True) -> list:
    """Operands of one dtype and, scalars apart and unless `shaped` is False, one shape."""
    plan = plan_promotion(op, tuple([kind_of(op, x) for x in xs]), inexact, shaped)
    if plan.actions is None:
        return list(xs)
    return [x if act is None else act(x) for x, act in zip(xs, plan.actions, strict=True)]


def broadcast_operands(op: str, *xs: Any, check_ranks: bool = True) -> list:
    """Operands broadcast to one shape, scalars apart."""
    avals = [x.aval if hasattr(x, "aval") else typeof(x) for x in xs]
    shape = broadcast_avals(op, avals, check_ranks)
    acts = [choose_array_action(a, a.dtype, a.weak_type, shape, avals) for a in avals]
    return [x if act is None else act(x) for x, act in zip(xs, acts, strict=True)]


def is_arraylike(x: Any) -> bool:
    """Return True if `x` is an array, a tracer or a number, so that an operator may take it."""
    return (
        isinstance(x, Tracer)
        or type(x) in ARRAYS
        or type(x) in HOST_TYPES
        or isinstance(x, np.ndarray | np.generic | int | float | complex)  # or a subclass: an enum
    )


def as_array(x: Any, op: str = "array") -> Any:
    """A number or a NumPy array as an Array; Arrays and tracers unchanged."""
    if isinstance(x, Tracer):
        return x
    x = as_operand(op, x)
    if type(x) in ARRAYS or isinstance(x, Tracer):
        return require_alive(x)
    out = put(x)
    if not hasattr(out, "aval"):
        raise DtypeError(
            f"{op}: must not be given float0, the dtype of tangents of integers, with which "
            f"nothing computes; got {typeof(x)}. Hint: jnp.zeros(x.shape) in its place."
        )
    return out


def as_array_beside(op: str, x: Any, like: Any) -> Any:
    """Return `as_array(x)`; an int that only the dtype of `like` can hold becomes of that dtype."""
    try:
        return as_array(x, op)
    except OverflowError:
        return put(wrap_number(x, typeof(like).dtype, op))


def as_arrays_together(op: str, *xs: Any) -> list:
    """Return operands as arrays; an int too large for the default dtype is of the others' dtype."""
    try:
        return [as_array(x, op) for x in xs]
    except OverflowError:
        others = [x for x in xs if type(x) is not int]
        if not others:
            raise
        return [as_array_beside(op, x, np.empty((), dtypes.result_type(*others))) for x in xs]


def as_inexact(op: str, x: Any) -> Any:
    """An operand as an array of floats or complex numbers."""
    return promote_operands(op, as_array(x, op), inexact=True)[0]


def drop_weak_type(x: Any) -> Any:
    """Return a value as an array with a strong dtype."""
    return convert(x, typeof(x).dtype)


def strengthen_array(x: Any) -> Any:
    """Do as `drop_weak_type` does, but weak scalars are Python numbers and stay weak."""
    return drop_weak_type(x) if typeof(x).shape else x


def is_nonzero(x: Any, op: str = "bool") -> Any:
    """x != 0, as a truth value."""
    if type(x) is int and x.bit_length() > 31:  # which the default dtype may not hold
        return True
    dtype = typeof(x, op).dtype
    if dtypes.is_bool(dtype):
        return x
    dtypes.inexact_dtype(dtype, op)  # refuses random keys
    return ne(x, layout.literal(0, dtype))


def refuse_out(op: str, out: Any) -> None:
    """Refuse NumPy's `out=`: arrays do not change."""
    if out is not None:
        raise NotImplementedError(
            f"{op}: out must be None, for arrays do not change; got {type(out).__name__}. "
            f"Hint: out = jnp.{op}(...)."
        )


def check_vector(op: str, name: str, x: Any) -> None:
    """Raise unless an argument has one axis."""
    if x.ndim != 1:
        raise ShapeError(f"{op}: {name} must be a vector; got {x.aval}.")


def check_axes_number(op: str, x: Any, least: int) -> None:
    """Raise unless an array has this many axes, or more."""
    if x.ndim < least:
        number = ("no axis", "one axis", "two axes", "three axes")[least]
        raise ShapeError(f"{op}: needs at least {number}; got {x.aval}.")


def axis_of(op: str, axis: Any, ndim: int) -> int:
    """An axis in 0..ndim-1; negative ones count from the end."""
    try:
        number = operator.index(axis)
    except TracerError:
        raise
    except TypeError:
        raise TypeError(f"{op}: axis must be an integer; got {axis!r}.") from None
    if not -ndim <= number < ndim:
        raise ShapeError(f"{op}: axis must name an axis of an array of rank {ndim}; got {number}.")
    return number + ndim if number < 0 else number


COLLECTIONS = (tuple, list, range, Set)


def is_collection(axes: Any) -> bool:
    """Return True if axes are given as a sequence, a set, or an array of them, and not as one."""
    return isinstance(axes, COLLECTIONS) or getattr(axes, "ndim", 0) == 1


def axes_of(op: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes in order: all for None; an integer, or a sequence or set of distinct ones."""
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int or not is_collection(axis):
        return (axis_of(op, axis, ndim),)
    axes = tuple([axis_of(op, a, ndim) for a in axis])
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{op}: axes must be distinct; got {tuple(axis)}.")
    return axes


def shape_of(op: str, shape: Any) -> tuple[int, ...]:
    """A shape given as an integer or a sequence of integers."""
    # as it mostly is; a list is faster than a generator
    if type(shape) is tuple and all([type(n) is int and n >= 0 for n in shape]):
        return shape
    if type(shape) is int and shape >= 0:
        return (shape,)
    try:
        if (
            isinstance(shape, bytes | dict)
            or np.iterable(shape)
            and not hasattr(shape, "__getitem__")
        ):
            raise TypeError  # sets, iterators
        out = tuple([as_size(n) for n in shape]) if np.iterable(shape) else (as_size(shape),)
    except TypeError:
        if (
            isinstance(shape, Tracer)
            or np.iterable(shape)
            and any(isinstance(n, Tracer) for n in shape)
        ):
            for n in (shape,) if isinstance(shape, Tracer) else shape:
                check_integer(op, "shape", n)
        raise TypeError(f"{op}: shape must be integers; got {shape!r}.") from None
    if any(n < 0 for n in out):
        raise ShapeError(f"{op}: sizes must not be negative; got {out}.")
    return out


def call_numpy(op: str, fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """A function of NumPy, whose errors do not say the function's name, called for `op`."""
    try:
        return fun(*args, **kwargs)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, TracerError):
            raise
        raise type(error)(
            f"{op}: arguments must be as NumPy's function takes them; got {error}"
        ) from None
