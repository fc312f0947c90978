"""Functions of complex numbers by real functions of their parts, exact near zeros as well.

XLA's formulas subtract exponentials that are nearly equal: of sin(1e-9j) nothing would be left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.primitives.expr import Expr

# The largest argument of an exponential whose square is finite, by the dtype of the parts.
MAX_EXPONENT = {np.dtype(np.float32): 40.0, np.dtype(np.float64): 350.0}


def split_hyperbolic(x: Expr) -> tuple[Expr, Expr, Expr]:
    """Return the hyperbolic sine and cosine of x up to MAX_EXPONENT, and exp of the rest of it."""
    size = x.apply("abs")
    held = size.apply("minimum", MAX_EXPONENT[x.dtype])
    growth = held.apply("exponential_minus_one")
    power = growth + 1
    sine = (growth + growth / power) * 0.5
    above = (size > held).select((size - held).apply("exponential"), 1.0 + 0.0 * size)
    sine = x.compare("EQ", 0.0).select(x, (x < 0).select(-sine, sine))  # with the sign of a zero
    return sine, (power + 1 / power) * 0.5, above


def scale(part: Expr, factor: Expr) -> Expr:
    """Return the product of a part and a positive factor, which may be infinite where it is 0."""
    return part.compare("EQ", 0.0).select(part, part * factor)


def join(z: Expr, real: Expr, imag: Expr) -> Expr:
    """Return the complex number of two parts."""
    return real.make("complex", z.aval, imag)


def write_sine(z: Expr) -> Expr:
    """Write sin x cosh y + i cos x sinh y."""
    x, y = z.part("real"), z.part("imag")
    sinh, cosh, above = split_hyperbolic(y)
    real = scale(x.apply("sine") * cosh, above)
    return join(z, real, scale(x.apply("cosine") * sinh, above))


def write_cosine(z: Expr) -> Expr:
    """Write cos x cosh y - i sin x sinh y."""
    x, y = z.part("real"), z.part("imag")
    sinh, cosh, above = split_hyperbolic(y)
    imag = scale(x.apply("sine") * sinh, above)
    return join(z, scale(x.apply("cosine") * cosh, above), -imag)


def write_tangent(z: Expr) -> Expr:
    """Write (sin x cos x + i sinh y cosh y) / (cos x**2 + sinh y**2)."""
    x, y = z.part("real"), z.part("imag")
    sinh, cosh, above = split_hyperbolic(y)
    sine, cosine = x.apply("sine"), x.apply("cosine")
    below = cosine * cosine + sinh * sinh
    real = sine * cosine / below / above / above
    return join(z, real, sinh * cosh / below)


def turn(write: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """Return the formula of the hyperbolic function h(z) = -i f(i z) of a sine or a tangent f."""

    def write_turned(z: Expr) -> Expr:
        out = write(join(z, -z.part("imag"), z.part("real")))
        return join(z, out.part("imag"), -out.part("real"))

    return write_turned


def write_hyperbolic_cosine(z: Expr) -> Expr:
    """Write cos(i z)."""
    return write_cosine(join(z, -z.part("imag"), z.part("real")))


def write_expm1(z: Expr) -> Expr:
    """Write expm1(x) cos y - 2 sin(y / 2)**2 + i exp(x) sin y."""
    x, y = z.part("real"), z.part("imag")
    half = (y * 0.5).apply("sine")
    real = x.apply("exponential_minus_one") * y.apply("cosine") - half * half * 2
    return join(z, real, scale(y.apply("sine"), x.apply("exponential")))


def write_complex_log(z: Expr) -> Expr:
    """Write log |z| + i arg z."""
    return mend_log(z.apply("log"), z.part("real"), z.part("imag"))


def write_complex_log1p(z: Expr) -> Expr:
    """Write log(1 + z)."""
    return mend_log(z.apply("log_plus_one"), z.part("real") + 1, z.part("imag"))


def mend_log(out: Expr, x: Expr, y: Expr) -> Expr:
    """Write the real part of log(x + iy) anew where |x + iy| is near 3/4, in float64.

    XLA takes log1p(x**2 + y**2 - 1) there. Of such numbers it is up to 128 units off.
    """
    if x.dtype != np.float64:
        return out
    u, v = x * x, y * y
    square = u + v
    near = (square > 0.45) & (square < 0.75)
    more, less = (u > v).select(u, v), (u > v).select(v, u)
    rest = (more - square) + less + x.product_error(x, u) + y.product_error(y, v)
    real = (square.apply("log") + rest / square) * 0.5
    return join(out, near.select(real, out.part("real")), out.part("imag"))


# Each is a circular function and the hyperbolic one.
SINES = write_sine, turn(write_sine)
COSINES = write_cosine, write_hyperbolic_cosine
TANGENTS = write_tangent, turn(write_tangent)
