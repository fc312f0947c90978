"""`convolve` and `correlate`, and windows that taper a signal: hanning, kaiser, i0 and others.

scipy.signal uses both. The convolution itself, and how one of a single channel is computed fast, is
in primitives/conv.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft.core.aval import typeof
from weft.errors import DtypeError, InconclusiveDimensionOperation, ShapeError
from weft.numpy.choice import check_real, literal_like
from weft.numpy.creation import asarray
from weft.numpy.elementwise import conj
from weft.numpy.promotion import as_array, as_inexact, promote_operands
from weft.numpy.reductions import compute_widely
from weft.primitives.dot import PrecisionLike
from weft.primitives.families import check_integer
from weft.run.operation import operation
from weft.util import check_option, name_function
from weft.xla.typing import Array, ArrayLike, DTypeLike

MODES = ("full", "same", "valid")
STATIC = ("mode", "precision", "preferred_element_type")


def check_operands(op: str, a: Any, v: Any, ndim: int | None = None) -> list:
    """Operands of one inexact dtype and equal rank, `ndim` if given, neither empty."""
    x, k = as_array(a, op), as_array(v, op)
    if x.ndim != k.ndim or ndim not in (None, x.ndim):
        wanted = "equal rank" if ndim is None else f"rank {ndim}"
        raise ShapeError(f"{op}: operands must be of {wanted}; got {x.aval}, {k.aval}.")
    if not x.size or not k.size:
        raise ShapeError(f"{op}: operands must not be empty; got {x.aval}, {k.aval}.")
    return promote_operands(op, x, k, inexact=True, shaped=False)


def slide_kernel(
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
        return lax.squeeze(
            slide_kernel(op, *(lax.expand_dims(y, (0,)) for y in (x, kernel)), [(0, 0)]), (0,)
        )
    out = lax.conv_general_dilated(
        lax.expand_dims(x, (0, 1)),
        lax.expand_dims(kernel, (0, 1)),
        (1,) * x.ndim,
        padding,
        precision=precision,
        preferred_element_type=preferred,
    )
    return lax.squeeze(out, (0, 1))


def choose_padding(mode: str, n: int) -> tuple[int, int]:
    """Padding of an axis for a kernel of n elements."""
    if mode == "valid":
        return 0, 0
    if mode == "full":
        return n - 1, n - 1
    return n // 2, (n - 1) // 2


@operation(static=STATIC)
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve two vectors: sum over j of a[i - j] * v[j].

    Integers are converted to floats; NumPy keeps them.

    Args:
      a: vector of n elements, n at least 1.
      v: vector of m elements, m at least 1.
      mode: "full" (default) gives all n + m - 1 sums where a and v overlap, "valid" the
        max(n, m) - min(n, m) + 1 in which they overlap wholly, "same" the middle max(n, m) of
        "full". A Python value, static under tracing.
      precision: the precision of products on accelerators, as in `dot`; None (default) for the
        default of the backend. Static under tracing.
      preferred_element_type: the dtype in which products are summed and returned, at least as
        precise as the operands; None (default) for their own. Static under tracing.

    Returns:
      A vector of the common inexact dtype of the operands.

    Raises:
      ShapeError: if an operand is empty, or is not a vector.
      ValueError: if `mode` is another name.
      DtypeError: if `preferred_element_type` cannot hold the dtype of the operands.

    >>> a, v = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5])
    >>> jnp.convolve(a, v)
    Array([0. , 1. , 2.5, 4. , 1.5], dtype=float32)
    >>> jnp.convolve(a, v, mode="same")
    Array([1. , 2.5, 4. ], dtype=float32)
    >>> jnp.convolve(a, v, mode="valid")
    Array([2.5], dtype=float32)
    """
    check_option("convolve", "mode", mode, *MODES)
    x, k = check_operands("convolve", a, v, 1)
    if k.size > x.size:
        x, k = k, x
    padding = choose_padding(mode, k.size)
    return slide_kernel(
        "convolve", x, lax.rev(k, (0,)), [padding], precision, preferred_element_type
    )


@operation(static=STATIC)
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Correlate two vectors: sum over j of a[i + j] * conj(v[j]).

    Integers are converted to floats; NumPy keeps them.

    Args:
      a: vector of n elements, n at least 1.
      v: vector of m elements, m at least 1.
      mode: "valid" (default) gives the max(n, m) - min(n, m) + 1 sums where a and v overlap
        wholly, "full" all n + m - 1 in which they overlap, "same" the middle max(n, m) of "full". A
        Python value, static under tracing.
      precision: the precision of products on accelerators, as in `dot`; None (default) for the
        default of the backend. Static under tracing.
      preferred_element_type: the dtype in which products are summed and returned, at least as
        precise as the operands; None (default) for their own. Static under tracing.

    Returns:
      A vector of the common inexact dtype of the operands.

    Raises:
      ShapeError: if an operand is empty, or is not a vector.
      ValueError: if `mode` is another name.
      DtypeError: if `preferred_element_type` cannot hold the dtype of the operands.

    >>> a, v = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5])
    >>> jnp.correlate(a, v)
    Array([3.5], dtype=float32)
    >>> jnp.correlate(a, v, mode="full")
    Array([0.5, 2. , 3.5, 3. , 0. ], dtype=float32)
    """
    check_option("correlate", "mode", mode, *MODES)
    x, k = check_operands("correlate", a, v, 1)
    k = conj(k)
    swapped = k.size > x.size
    if swapped:
        x, k = k, x
    padding = choose_padding(mode, k.size)
    out = slide_kernel("correlate", x, k, [padding], precision, preferred_element_type)
    return lax.rev(out, (0,)) if swapped else out


# --- windows --------------------------------------------------------------------------------


def make_window(write: Callable[[int], np.ndarray], doc: str) -> Callable[[int], Any]:
    """A window of M points that depends on nothing else; the host writes it, in double precision.

    It is empty for M below 1 and [1.] for M = 1.
    """

    def fun(M: int) -> Array:
        return asarray(write(check_points_number(fun.__name__, M)), float)

    return operation(name_function(fun, write.__name__, doc), arrays=0)


def check_points_number(op: str, M: Any) -> int:
    """Return a number of points, which is computed with, so it cannot be a symbolic size."""
    try:
        return int(check_integer(op, "M", int(M) if isinstance(M, float) and M.is_integer() else M))
    except InconclusiveDimensionOperation:
        raise InconclusiveDimensionOperation(
            f"{op}: M must be a number; got the symbolic size {M}. Hint: the formula of the window "
            "with jnp.arange(M)."
        ) from None


# The text of a window: its first line, an example and the result of that.
WINDOW = """{0}

    A window tapers a signal before a Fourier transform. It is computed in float64 and then rounded.

    Args:
      M: the number of points, a Python int; below 1 the result is empty. Static under tracing.

    Returns:
      A vector of M numbers of the default float dtype; for M = 1 it is [1.].

    Raises:
      TypeError: if `M` is not an integer.

    >>> print({1})
    {2}
    """

bartlett = make_window(
    np.bartlett,
    WINDOW.format(
        "Compute the Bartlett window: a triangle of M points, 0 at both ends.",
        "jnp.bartlett(5)",
        "[0.  0.5 1.  0.5 0. ]",
    ),
)
blackman = make_window(
    np.blackman,
    WINDOW.format(
        "Compute the Blackman window: 0.42 + 0.5 cos(x) + 0.08 cos(2 x) for M points x, -pi to pi.",
        "jnp.blackman(5)[1:4]",
        "[0.34 1.   0.34]",
    ),
)
hamming = make_window(
    np.hamming,
    WINDOW.format(
        "Compute the Hamming window: 0.54 + 0.46 cos(x) for M points x from -pi to pi.",
        "jnp.hamming(5)",
        "[0.08 0.54 1.   0.54 0.08]",
    ),
)
hanning = make_window(
    np.hanning,
    WINDOW.format(
        "Compute the Hann window: 0.5 + 0.5 cos(x) for M points x from -pi to pi.",
        "jnp.hanning(5)",
        "[0.  0.5 1.  0.5 0. ]",
    ),
)


@operation
def i0(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind and order 0, elementwise.

    The derivative at 0 is 0.

    Args:
      x: array of real numbers, of any shape. Integers are converted to floats.

    Returns:
      An array of the shape of `x`, of its float dtype.

    Raises:
      DtypeError: if `x` is complex.

    >>> print(jnp.i0(jnp.array([0.0, 1.0])))
    [1.        1.2660658]
    """
    x = as_inexact("i0", x)
    check_real("i0", x)
    return compute_widely(find_bessel_i0, x)


def find_bessel_i0(x: Any) -> Any:
    """Return I0(x), from exp(-|x|) I0(x)."""
    size = lax.mul(lax.sign(x), x)  # |x| with the derivative 0 at 0, as I0 has
    half = lax.exp(lax.mul(size, literal_like(0.5, x)))  # exp(|x|) overflows before I0
    endless = lax.eq(half, literal_like(math.inf, x))  # i0e is 0 there, too small for its dtype
    return lax.select(endless, half, lax.mul(lax.mul(lax.bessel_i0e(x), half), half))


@operation(arrays=0)
def kaiser(M: int, beta: ArrayLike) -> Array:
    """Compute the Kaiser window: I0(beta * sqrt(1 - x**2)) / I0(beta) for M points x from -1 to 1.

    A window tapers a signal before a Fourier transform. A larger `beta` gives a narrower window.

    Args:
      M: the number of points, a Python int; below 1 the result is empty. Static under tracing.
      beta: real number, or vector of M numbers, one for each point. The window is differentiable in
        it.

    Returns:
      A vector of M floats, of the float dtype of `beta`.

    Raises:
      DtypeError: if `beta` is complex.
      ShapeError: if `beta` has another shape.

    >>> print(jnp.kaiser(3, 0.0))
    [1. 1. 1.]
    >>> jnp.kaiser(5, 2.0).shape
    (5,)
    """
    M = check_points_number("kaiser", M)
    beta = as_inexact("kaiser", beta)
    if beta.dtype.kind == "c":
        raise DtypeError(f"kaiser: beta must be real; got {beta.aval}.")
    if beta.shape not in ((), (M,)):
        raise ShapeError(f"kaiser: beta must be a scalar or of shape ({M},); got {beta.aval}.")
    x = np.linspace(-1, 1, M) if M > 1 else np.zeros(max(M, 0))
    root = asarray(np.sqrt(1 - x * x), beta.dtype)
    if not typeof(beta).ndim:
        beta = lax.broadcast_in_dim(beta, root.shape, ())
    here = lax.mul(beta, root)
    # i0e(y) is I0(y) / exp(|y|), so that nothing overflows; |y| by sign, of slope 0 at 0
    excess = lax.mul(lax.sub(here, beta), lax.sign(beta))
    return lax.mul(lax.div(lax.bessel_i0e(here), lax.bessel_i0e(beta)), lax.exp(excess))
