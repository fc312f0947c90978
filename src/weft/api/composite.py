"""`composite` and `scaled_dot`: functions under names that a compiler may have better code for.

What a transformation does with such a call is control/composite.py's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.bodies import stage_body
from weft.api.functions import avals_of, check_callable
from weft.control.composite import composite_p
from weft.core.aval import ShapedArray, typeof
from weft.core.source import boundary
from weft.errors import DtypeError, ShapeError
from weft.primitives.dot import DotDimensionNumbers, dot_general, read_dimensions
from weft.primitives.elementwise import mul
from weft.primitives.layout import broadcast_in_dim, convert, full, reshape
from weft.pytrees import flatten, unflatten
from weft.util import wraps
from weft.xla.hlo import attribute_text, quote_text
from weft.xla.typing import Array, ArrayLike, DTypeLike

_NAME = re.compile(r"[a-zA-Z]\w*(\.[\w$]+)+", re.ASCII)


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """Return a function that the compiler may replace by its own code.

    A compiler that knows the operation `name` in this version may use code of its own. Others
    compile the decomposition. Its derivatives and batching rule are the decomposition's.

    Args:
      decomposition: a function of pytrees of arrays, which are passed by position. Its keyword
        arguments are attributes: Python values that the compiler sees as well. They are numbers,
        strings, NumPy arrays, dtypes, and sequences and dicts of these. An attribute of None is
        left out.
      name: the name of the operation, such as "my_library.my_op".
      version: the version of the operation, an int. The default is 0.

    Returns:
      A function with the parameters and the results of `decomposition`.

    >>> tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), name="my.tangent")
    >>> print(tangent(jnp.array([0.0, 1.0])))
    [0.        1.5574077]
    """
    check_callable("composite", decomposition)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"composite: name must be that of an operation in a namespace; got {name!r}. "
            "Hint: name='my_library.my_op'."
        )
    # by attributes, so that each is staged once
    functions: dict[tuple, Callable] = {(): decomposition}

    def applied(*args: Any, **attributes: Any) -> Any:
        texts = {k: attribute_text(v) for k, v in attributes.items() if v is not None}
        for k, text in texts.items():
            if text is None:
                raise TypeError(
                    f"composite: attributes of {name} must be numbers, strings, NumPy arrays, "
                    f"dtypes, or sequences and dicts of these; got {k}={attributes[k]!r}. "
                    "Hint: pass arrays by position."
                )
        key = tuple((k, repr(v), texts.get(k)) for k, v in sorted(attributes.items()))
        fun = functions.get(key)
        if fun is None:
            fun = functions[key] = _bind_attributes(decomposition, attributes)
        leaves, tree = flatten(args)
        avals = avals_of("composite", leaves, flatten((args, {}))[1], decomposition)
        body = stage_body("composite", fun, tree, avals)
        outs = composite_p.apply(
            *body.consts,
            *leaves,
            attributes=tuple((quote_text(k), text) for k, text in texts.items()),
            jaxpr=body.jaxpr,
            name=name,
            version=version,
        )
        return unflatten(body.out_tree, outs)

    return boundary(applied, decomposition)


def _bind_attributes(fun: Callable, attributes: dict) -> Callable:
    """Return a function of the arguments only; unlike a partial, it caches its staged programs."""

    @wraps(fun)
    def given(*args: Any) -> Any:
        return fun(*args, **attributes)

    return given


# --- scaled_dot ---------------------------------------------------------------------------------


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiply arrays as `dot_general` does, after each operand is multiplied by its scales.

    Operands of 8-bit and 4-bit floats are stored with one scale for each block of elements. A
    compiler that knows the operation uses the hardware's own instruction.

    Args:
      lhs: the left operand, an array of floats.
      rhs: the right operand.
      lhs_scale: the scales of `lhs`. Their array has the shape of `lhs`, except along contracting
        axes, which have one number for each block. None, the default, is a scale of 1.
      rhs_scale: the scales of `rhs`, in the same form.
      dimension_numbers: the axes, as in `dot_general`. None, the default, is for matrices (m, k)
        and (k, n), or for stacks of them.
      preferred_element_type: the dtype of the products and of the result. None is bfloat16.

    Returns:
      An array with the axes of `dot_general`.

    >>> x, scale = jnp.ones((2, 4), jnp.float8_e4m3fn), jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> print(lax.scaled_dot(x, x.T, lhs_scale=scale))
    [[6 6]
     [14 14]]
    """
    if dimension_numbers is None:
        if typeof(lhs, "scaled_dot").ndim not in (2, 3):
            raise ShapeError(
                "scaled_dot: dimension_numbers must be given for operands that are not matrices or "
                f"stacks of them; got {typeof(lhs)}."
            )
        stacked = typeof(lhs).ndim == 3
        dimension_numbers = (((2,), (1,)), ((0,), (0,))) if stacked else (((1,), (0,)), ((), ()))
    contracting, batch = read_dimensions("scaled_dot", dimension_numbers)
    dtype = np.dtype(dtypes.bfloat16)
    if preferred_element_type is not None:
        dtype = dtypes.check_user_dtype(preferred_element_type, "scaled_dot")
    if not dtypes.is_float(dtype):
        raise DtypeError(f"scaled_dot: preferred_element_type must be of floats; got {dtype.name}.")
    lhs_scale = _check_scale("lhs", lhs, lhs_scale, contracting[0])
    rhs_scale = _check_scale("rhs", rhs, rhs_scale, contracting[1])
    return _scaled_dot(
        lhs,
        rhs,
        lhs_scale,
        rhs_scale,
        dimension_numbers=(contracting, batch),
        preferred_element_type=dtype,
    )


def _check_scale(side: str, x: Any, scale: Any, contracting: Sequence[int]) -> Any:
    """A scale that fits its operand; ones for None."""
    aval = typeof(x, "scaled_dot")
    if scale is None:
        ones = [1 if i in contracting else n for i, n in enumerate(aval.shape)]
        return full(ones, 1, dtypes.bfloat16)
    got = typeof(scale, "scaled_dot")
    fits = got.ndim == aval.ndim and all(
        m > 0 and n % m == 0 if i in contracting else m == n
        for i, (n, m) in enumerate(zip(aval.shape, got.shape, strict=True))
    )
    if not fits:
        raise ShapeError(
            f"scaled_dot: {side}_scale must have the shape of {side}, but for contracting axes, "
            f"where it divides it; got {got} for {aval}, contracting {tuple(contracting)}."
        )
    return scale


@functools.partial(composite, name="xla.scaled_dot")
def _scaled_dot(
    lhs: Any,
    rhs: Any,
    lhs_scale: Any,
    rhs_scale: Any,
    *,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: np.dtype,
) -> Any:
    """The product of the operands times their scales."""
    whole = lambda x, scale: mul(
        convert(x, preferred_element_type),
        convert(_repeat_blocks(scale, typeof(x)), preferred_element_type),
    )
    return dot_general(whole(lhs, lhs_scale), whole(rhs, rhs_scale), dimension_numbers)


def _repeat_blocks(scale: Any, aval: ShapedArray) -> Any:
    """Each number of a scale repeated over its block."""
    blocks: list[int] = []
    kept = []
    for n, m in zip(aval.shape, typeof(scale).shape, strict=True):
        kept.append(len(blocks))
        blocks += [m] if n == m else [m, n // m]
    return reshape(broadcast_in_dim(scale, blocks, kept), aval.shape)
