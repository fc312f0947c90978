"""`convolve` and `correlate`, and what scipy.signal makes of them in any number of dimensions.

The convolution itself, and how one of a single channel is computed fast, is primitives/conv.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.errors import DtypeError, ShapeError
from weft.numpy.fused import fused
from weft.numpy.promotion import as_array, operands
from weft.primitives.conv import conv_general_dilated
from weft.primitives.elementwise import conj
from weft.primitives.layout import expand_dims, rev, squeeze

MODES = ("full", "same", "valid")
STATIC = ("mode", "precision", "preferred_element_type")


def check_mode(op: str, mode: Any) -> None:
    """Raise unless `mode` says what part of a convolution is wanted."""
    if mode not in MODES:
        raise ValueError(f"{op}: mode must be 'full', 'same' or 'valid'; got {mode!r}.")


def two_operands(op: str, a: Any, v: Any, ndim: int | None = None) -> list:
    """Operands of one inexact dtype and equal rank, `ndim` if given, neither empty."""
    x, k = as_array(a, op), as_array(v, op)
    if x.ndim != k.ndim or ndim not in (None, x.ndim):
        wanted = "equal rank" if ndim is None else f"rank {ndim}"
        raise ShapeError(f"{op}: operands must be of {wanted}; got {x.aval}, {k.aval}.")
    if not x.size or not k.size:
        raise ShapeError(f"{op}: operands must not be empty; got {x.aval}, {k.aval}.")
    return operands(op, x, k, inexact=True, shaped=False)


def conjugate(x: Any) -> Any:
    """The complex conjugate; real values as they are."""
    return conj(x) if dtypes.is_complex(x.dtype) else x


def slid(
    op: str,
    x: Any,
    kernel: Any,
    padding: Sequence[tuple[int, int]],
    precision: Any = None,
    preferred: Any = None,
) -> Any:
    """out[i] = sum over j of x[i + j] * kernel[j], x padded with zeros."""
    if preferred is not None:
        preferred = dtypes.check_user_dtype(preferred, op)
        if dtypes.promote_types(preferred, x.dtype) != preferred:
            raise DtypeError(
                f"{op}: preferred_element_type must hold values of the operands' dtype; "
                f"got {preferred.name} for {x.dtype.name}."
            )
    if not x.ndim:
        return squeeze(slid(op, *(expand_dims(y, (0,)) for y in (x, kernel)), [(0, 0)]), (0,))
    out = conv_general_dilated(
        expand_dims(x, (0, 1)),
        expand_dims(kernel, (0, 1)),
        (1,) * x.ndim,
        padding,
        precision=precision,
        preferred_element_type=preferred,
    )
    return squeeze(out, (0, 1))


def padding_for(mode: str, n: int) -> tuple[int, int]:
    """Padding of an axis for a kernel of n elements."""
    if mode == "valid":
        return 0, 0
    if mode == "full":
        return n - 1, n - 1
    return n // 2, (n - 1) // 2


@fused(static=STATIC)
def convolve(
    a: Any,
    v: Any,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The sums over j of a[i - j] * v[j], for two vectors; integers are taken as floats.

    `mode`: "full" gives all places where a and v overlap, "valid" those where they do so wholly,
    "same" as many as the longer has, the middle of "full".

    >>> import weft.numpy as jnp
    >>> jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]))
    Array([0. , 1. , 2.5, 4. , 1.5], dtype=float32)
    """
    check_mode("convolve", mode)
    x, k = two_operands("convolve", a, v, 1)
    if k.size > x.size:
        x, k = k, x
    padding = padding_for(mode, k.size)
    return slid("convolve", x, rev(k, (0,)), [padding], precision, preferred_element_type)


@fused(static=STATIC)
def correlate(
    a: Any,
    v: Any,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The sums over j of a[i + j] * conj(v[j]), for two vectors; integers are taken as floats.

    `mode` is as in `convolve`.
    """
    check_mode("correlate", mode)
    x, k = two_operands("correlate", a, v, 1)
    k = conjugate(k)
    swapped = k.size > x.size
    if swapped:
        x, k = k, x
    padding = padding_for(mode, k.size)
    out = slid("correlate", x, k, [padding], precision, preferred_element_type)
    return rev(out, (0,)) if swapped else out
