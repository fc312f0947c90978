"""Functions of `lax` as users call them: an eager call is one program, which knows parameters.

The engine finds it by what a call is given, so that no parameter is read again. Dynamic slices take
their places as operands.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from math import copysign
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr, Var
from weft.core.source import trim_traceback
from weft.core.trace import current
from weft.dtypes import NUMBERS
from weft.numpy.fused import kernel_for
from weft.options import config, x64_cell
from weft.primitives.layout import literal
from weft.pytrees import flatten, unflatten
from weft.run.eager import EVAL, MOST, as_kept
from weft.run.fastpath import compiled_call
from weft.run.pipeline import JitSpec
from weft.run.programs import run_program
from weft.xla.array import ARRAYS, SMALL

UNHASHABLE = frozenset((list, np.ndarray))
OFTEN = 256  # a program takes 12 ms to compile, 0.5 to load, and saves 3 to 25 us a call


def plan_calls(fun: Callable, count: int = 1) -> Callable:
    """A decorator: an eager call is a call of one program, of which parameters are part.

    The first `count` arguments are arrays, and the others parameters, of which equal ones are one.
    """
    parameters = [*inspect.signature(fun).parameters][count:]
    kernel = kernel_for(fun, fun.__name__, parameters, copied=-1)
    same: set[tuple] = set()  # calls that give their operand back

    def is_same(args: tuple) -> bool:
        try:
            key = args[0].aval, args[1:], x64_cell.value
            return key in same and not args[0].is_deleted()
        except (AttributeError, TypeError):  # no array; a parameter without a hash
            return False

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current.trace is EVAL:
            given: Sequence = args
            if len(args) > count and type(args[-1]) in UNHASHABLE:
                given = [tuple(x) if type(x) in UNHASHABLE else x for x in args[count:]]
                given = *args[:count], *given
            elif same and not kwargs and is_same(args):
                return args[0]
            try:
                out = kernel(*given, **kwargs)
                if args and out is args[0] and not kwargs and len(same) < MOST:
                    same.add((out.aval, given[1:], x64_cell.value))
                return out
            except Exception:  # again, for the error of the call as it is
                pass
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            trim_traceback(error)
            raise

    return call


class Constant:
    """What a call gives: a call that is met often gets a program that copies it."""

    __slots__ = ("program", "signs", "sizes", "uses")

    def __init__(self, *args: Any, **kwargs: Any):
        self.signs = find_signs((*args, *kwargs.values()))
        self.sizes = [*map(type, args[0])] if args and type(args[0]) is tuple else None
        self.program: Callable | None = None
        self.uses = 0


def find_signs(args: Sequence) -> list[float]:
    """The signs of Python's floats if one of them is zero, as -0.0 equals 0.0."""
    floats = [x for x in args if isinstance(x, float)]
    return [copysign(1.0, x) for x in floats] if 0.0 in floats else []


def copy_constants(fun: Callable) -> Callable:
    """A decorator: what an eager call gives that is often met is from then on copied by a program.

    It is for functions of numbers, shapes and dtypes that make small arrays.
    """
    find = functools.lru_cache(MOST, typed=True)(Constant)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current.trace is not EVAL:
            return fun(*args, **kwargs)
        try:
            found = find(*args, **kwargs)
        except TypeError:  # an argument without a hash, as arrays are
            return fun(*args, **kwargs)
        if found.signs and found.signs != find_signs((*args, *kwargs.values())):
            return fun(*args, **kwargs)
        if found.program is not None:
            if found.sizes is None or [*map(type, args[0])] == found.sizes:  # (2.0,) equals (2,)
                return found.program()
            return fun(*args, **kwargs)
        out = fun(*args, **kwargs)
        found.uses += 1
        if found.uses == OFTEN:
            others = *args[found.sizes is not None :], *kwargs.values()
            plain = all(map(is_plain, (*others, *(args[0] if found.sizes else ()))))
            if plain and all(map(is_small, flatten(out)[0])):
                copy = functools.partial(copy_results, fun, args, kwargs)
                found.program = compiled_call(fun.__name__, copy)
        return out

    return call


def is_plain(x: Any) -> bool:
    """Whether x is a Python number, a text, a dtype or a type of arrays."""
    return x is None or isinstance(x, int | float | str | type | np.dtype | ShapedArray)


def is_small(x: Any) -> bool:
    """Whether x is an array that a program may copy, wherever it is run."""
    return type(x) in ARRAYS and x.nbytes <= SMALL and not x.committed


def copy_results(fun: Callable, args: tuple, kwargs: dict) -> tuple:
    """What a call gives, as a program's result, and how C++ may run that."""
    out = fun(*args, **kwargs)
    leaves, tree = flatten(out)
    if not all(map(is_small, leaves)):  # over the mesh in scope
        return out, None, False
    names = [Var(typeof(x)) for x in leaves]
    spec = JitSpec(fun.__name__)
    outs, fast = run_program(Jaxpr((), names, names, []), leaves, (), spec, tree, inner=False)
    return unflatten(tree, outs), fast, False


def run_as_one(fun: Callable) -> Callable:
    """A decorator of dynamic slices: an eager call is one program, which takes the places."""
    static = ("slice_sizes", "slice_size", "axis", "keepdims", "allow_negative_indices")
    kernel, at = kernel_for(fun, fun.__name__, static), 1 + ("update" in fun.__name__)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current.trace is not EVAL or config.check_bounds == "all":
            return fun(*args, **kwargs)
        given = [*args]
        try:
            if at == 2 and type(args[1]) in NUMBERS:
                given[1] = as_kept(literal(args[1], typeof(args[0]).dtype))
            elif type(args[-1]) is list:  # of sizes, which needs a hash
                given[-1] = tuple(args[-1])
            place = args[at] if len(args) > at else None
            if type(place) is int:
                given[at] = as_kept(place)
            elif type(place) is tuple and type(place[-1]) is int:
                given[at] = tuple(map(as_kept, place))
            return kernel(*given, **kwargs)
        except Exception:  # again, for the error of the call as it is
            return fun(*args, **kwargs)

    return call


# Functions of one operation, by how many arrays they take first.
PLANNED = (
    "broadcasted_iota iota",
    "approx_max_k approx_min_k argmax argmin bitcast_convert_type broadcast broadcast_in_dim "
    "broadcast_to_rank collapse concatenate conj convert_element_type cumlogsumexp cummax cummin "
    "cumprod cumsum expand_dims fft index_in_dim integer_pow optimization_barrier reciprocal "
    "reduce_and reduce_max reduce_min reduce_or reduce_precision reduce_prod reduce_sum reduce_xor "
    "reshape rev round slice slice_in_dim sort split squeeze stack tile top_k transpose unstack",
    "batch_matmul conv conv_general_dilated conv_transpose conv_with_general_padding dot "
    "dot_general gather index_take pad sort_key_val",
    "clamp scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub select",
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
WRAPPERS |= dict.fromkeys(("empty", "full", "shape_as_value"), copy_constants)
