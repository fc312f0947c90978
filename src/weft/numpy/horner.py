"""`lax.polynomial`: Horner's rule on numbers and arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from weft.api.scan import scan
from weft.numpy.manipulation import broadcast_to
from weft.numpy.promotion import as_array, as_array_beside, drop_weak_type
from weft.primitives.families import as_sequence, broadcast_shapes
from weft.primitives.layout import convert
from weft.primitives.slicing import stack
from weft.xla.typing import Array, ArrayLike


def polynomial(x: ArrayLike, coeffs: Sequence[ArrayLike], *, unroll: int | None = None) -> Array:
    """Evaluate a polynomial by Horner's rule: `coeffs[0] + coeffs[1] * x + coeffs[2] * x**2 + ...`.

    Args:
      x: a number or an array.
      coeffs: the coefficients, lowest power first: numbers, or arrays that broadcast against x; or
        one array with the coefficients along its first axis. They are converted to the dtype of x.
      unroll: the number of steps in the body of a compiled loop over the coefficients. None, the
        default, writes out all steps without a loop.

    Returns:
      An array of the dtype of x; zeros if there are no coefficients.

    >>> lax.polynomial(jnp.array([0.0, 2.0]), [1.0, 2.0, 3.0])
    Array([ 1., 17.], dtype=float32)
    """
    x = drop_weak_type(as_array(x, "polynomial"))
    given = as_sequence("polynomial", "coeffs", coeffs)
    terms = [convert(as_array_beside("polynomial", c, x), x.dtype) for c in given]
    if not terms:
        return x * 0
    shape = broadcast_shapes(x.shape, *(c.shape for c in terms))
    first = broadcast_to(terms[-1], shape)
    if unroll is None:
        return functools.reduce(lambda y, c: y * x + c, reversed(terms[:-1]), first)
    rest = [broadcast_to(c, shape) for c in reversed(terms[:-1])]
    step = lambda y, c: (y * x + c, None)
    return scan(step, first, stack(rest), unroll=unroll)[0] if rest else first
