"""Windows that taper a signal: bartlett, blackman, hamming, hanning, kaiser; and i0, its Bessel
function.

Spectra that use them are scipy/signal.py's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.core.aval import typeof
from weft.errors import DtypeError, ShapeError
from weft.numpy.creation import asarray
from weft.numpy.elementwise import real_only
from weft.numpy.fused import fused
from weft.numpy.promotion import as_inexact
from weft.primitives.elementwise import div, mul, sign, sub
from weft.primitives.layout import broadcast_in_dim
from weft.primitives.special.functions import bessel_i0e
from weft.primitives.transcendental import exp


def window(write: Callable[[int], np.ndarray], doc: str) -> Callable[[int], Any]:
    """A window of M points that depends on nothing else; the host writes it, in double precision.

    It is empty for M below 1 and [1.] for M = 1.
    """

    def fun(M: int) -> Any:
        return asarray(write(count_of(fun.__name__, M)), float)

    fun.__name__ = fun.__qualname__ = write.__name__
    fun.__doc__ = doc
    return fun


def count_of(op: str, M: Any) -> int:
    """A number of points."""
    if isinstance(M, float) and M.is_integer():
        return int(M)
    try:
        return operator.index(M)
    except TypeError:
        if not isinstance(M, int | float | np.ndarray | np.generic):
            raise
        raise TypeError(f"{op}: M must be an integer; got {M!r}.") from None


bartlett = window(np.bartlett, "A triangle of M points, 0 at both ends.")
blackman = window(np.blackman, "0.42 + 0.5 cos(x) + 0.08 cos(2 x) for x from -pi to pi.")
hamming = window(np.hamming, "0.54 + 0.46 cos(x) for x from -pi to pi.")
hanning = window(np.hanning, "0.5 + 0.5 cos(x) for x from -pi to pi.")


@fused
def i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    x = as_inexact("i0", x)
    real_only("i0", x)
    size = mul(sign(x), x)  # |x| whose derivative is 0 at 0, as that of I0 is
    return mul(exp(size), bessel_i0e(x))


def kaiser(M: int, beta: Any) -> Any:
    """The Kaiser window, I0(beta * sqrt(1 - x**2)) / I0(beta) for x from -1 to 1.

    `beta` is a real scalar, or an array of M of them; derivatives in it are exact.
    """
    M = count_of("kaiser", M)
    beta = as_inexact("kaiser", beta)
    if beta.dtype.kind == "c":
        raise DtypeError(f"kaiser: beta must be real; got {beta.aval}.")
    if beta.shape not in ((), (M,)):
        raise ShapeError(f"kaiser: beta must be a scalar or of shape ({M},); got {beta.aval}.")
    x = np.linspace(-1, 1, M) if M > 1 else np.zeros(max(M, 0))
    root = asarray(np.sqrt(1 - x * x), beta.dtype)
    if not typeof(beta).ndim:
        beta = broadcast_in_dim(beta, root.shape, ())
    here = mul(beta, root)
    # i0e(y) is I0(y) / exp(|y|), so that nothing overflows; |y| by sign, of slope 0 at 0
    excess = mul(sub(here, beta), sign(beta))
    return mul(div(bessel_i0e(here), bessel_i0e(beta)), exp(excess))
