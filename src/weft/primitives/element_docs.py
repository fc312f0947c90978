"""Documentation of the elementwise functions of `lax`, composed from rows of a table.

A row of `ROWS` has the first line, remarks, the operands of an example and its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Row(NamedTuple):
    """The parts of the documentation of one function that are its own."""

    first: str
    remarks: str
    example: str  # the operands
    result: str  # of the example, printed


DTYPES = {
    "number": "integers, floats or complex numbers",
    "real number": "integers or floats",
    "real": "bools, integers or floats",
    "inexact": "floats or complex numbers",
    "float": "floats",
    "complex": "complex numbers",
    "float32 or float64": "float32 or float64",
    "bool or integer": "bools or integers",
    "integer": "integers",
    "any": "any dtype",
}
RESULTS = {
    "bool": "An array of bools of the shape of the operands.",
    "real": "An array of the shape of the operand. It is real if the operand is complex.",
    "complex": "A complex array of the shape of the operands.",
    "same": "An array of the shape and dtype of the operands.",
}
PAIR = "A Python number takes the dtype of the other operand."
ANGLE = "The operand is in radians."
BRANCH = "The result is NaN outside of the domain of the real function."

ROWS = {
    "add": Row("Add elementwise: x + y.", PAIR, "jnp.array([1, 2]), 3", "[4 5]"),
    "sub": Row("Subtract elementwise: x - y.", PAIR, "jnp.array([1, 2]), 3", "[-2 -1]"),
    "div": Row(
        "Divide elementwise: x / y.",
        "Quotients of integers are rounded towards zero, unlike with `//` in Python and NumPy. An "
        "integer\n    divided by zero gives -1.",
        "jnp.array([7, -7]), 2",
        "[ 3 -3]",
    ),
    "rem": Row(
        "Return the remainder of x / y, with the sign of x.",
        "It is `np.fmod`; the remainder of Python and `jnp.remainder` have the sign of y.",
        "jnp.array([7, -7]), 3",
        "[ 1 -1]",
    ),
    "max": Row(
        "Return the larger of two elements.",
        "The result is NaN if an operand is. If the elements are equal, each has half of the "
        "derivative.",
        "jnp.array([1, 5]), 3",
        "[3 5]",
    ),
    "min": Row(
        "Return the smaller of two elements.",
        "The result is NaN if an operand is. If the elements are equal, each has half of the "
        "derivative.",
        "jnp.array([1, 5]), 3",
        "[1 3]",
    ),
    "eq": Row("Compare elementwise: x == y.", PAIR, "jnp.array([1, 5]), 5", "[False  True]"),
    "ne": Row("Compare elementwise: x != y.", PAIR, "jnp.array([1, 5]), 5", "[ True False]"),
    "lt": Row("Compare elementwise: x < y.", PAIR, "jnp.array([1, 5]), 5", "[ True False]"),
    "le": Row("Compare elementwise: x <= y.", PAIR, "jnp.array([1, 5]), 5", "[ True  True]"),
    "gt": Row("Compare elementwise: x > y.", PAIR, "jnp.array([1, 5]), 1", "[False  True]"),
    "ge": Row("Compare elementwise: x >= y.", PAIR, "jnp.array([1, 5]), 1", "[ True  True]"),
    "bitwise_and": Row('Return the bitwise "and": x & y.', PAIR, "jnp.array([6, 4]), 3", "[2 0]"),
    "bitwise_or": Row('Return the bitwise "or": x | y.', PAIR, "jnp.array([6, 4]), 3", "[7 7]"),
    "bitwise_xor": Row(
        'Return the bitwise "exclusive or": x ^ y.', PAIR, "jnp.array([6, 4]), 3", "[5 7]"
    ),
    "bitwise_not": Row(
        "Invert each bit: ~x.", "Of bools it is the negation.", "jnp.array([0, 5])", "[-1 -6]"
    ),
    "neg": Row("Negate elementwise: -x.", "", "jnp.array([0, 5])", "[ 0 -5]"),
    "sign": Row(
        "Return the sign of each element: -1, 0 or 1.",
        "The sign of a complex x is x / |x|, and 0 for 0. The sign of NaN is NaN.\n    "
        "The derivative is zero.",
        "jnp.array([-2.0, 0.0, 3.0])",
        "[-1.  0.  1.]",
    ),
    "floor": Row(
        "Round each element down to an integer, in the dtype of the operand.",
        "The derivative is zero.",
        "jnp.array([-1.5, 1.5])",
        "[-2.  1.]",
    ),
    "ceil": Row(
        "Round each element up to an integer, in the dtype of the operand.",
        "The derivative is zero.",
        "jnp.array([-1.5, 1.5])",
        "[-1.  2.]",
    ),
    "abs": Row(
        "Return the absolute value of each element.",
        "The derivative at a real 0 is 1, at a complex 0 it is 0.",
        "jnp.array([-1.5, 1.5])",
        "[1.5 1.5]",
    ),
    "square": Row("Square each element: x * x.", "", "jnp.array([-1.5, 2.0])", "[2.25 4.  ]"),
    "one_minus_square": Row(
        "Return 1 - x * x for each element, without cancellation.",
        "It is computed as (1 - x) * (1 + x).",
        "jnp.array([0.5, 2.0])",
        "[ 0.75 -3.  ]",
    ),
    "is_finite": Row(
        "Return True for each element that is not infinite or NaN.",
        "",
        "jnp.array([1, jnp.inf, jnp.nan])",
        "[ True False False]",
    ),
    "real": Row("Return the real part of each element.", "", "jnp.array([1 + 2j])", "[1.]"),
    "imag": Row("Return the imaginary part of each element.", "", "jnp.array([1 + 2j])", "[2.]"),
    "complex": Row(
        "Make complex numbers from real and imaginary parts: x + i y.",
        "",
        "jnp.array([1.0]), jnp.array([2.0])",
        "[1.+2.j]",
    ),
    "exp": Row("Return the exponential e ** x.", "", "jnp.array([0.0, 1.0])", "[1.    2.718]"),
    "exp2": Row(
        "Return the power 2 ** x.",
        "It is exact if x is a whole number.",
        "jnp.array([0.0, 3.0])",
        "[1. 8.]",
    ),
    "expm1": Row(
        "Return exp(x) - 1, which is accurate near 0 too.",
        "",
        "jnp.array([0.0, 1.0])",
        "[0.    1.718]",
    ),
    "log": Row(
        "Return the natural logarithm.",
        "It is -inf at 0, and NaN for negative floats.",
        "jnp.array([1.0, 10.0])",
        "[0.    2.303]",
    ),
    "log2": Row("Return the logarithm to base 2.", "", "jnp.array([1.0, 8.0])", "[0. 3.]"),
    "log1p": Row(
        "Return log(1 + x), which is accurate near 0 too.",
        "",
        "jnp.array([0.0, 1.0])",
        "[0.    0.693]",
    ),
    "logistic": Row(
        "Return the logistic function 1 / (1 + exp(-x)), also called sigmoid.",
        "",
        "jnp.array([0.0, 1.0])",
        "[0.5   0.731]",
    ),
    "sqrt": Row(
        "Return the square root.",
        "It is NaN for negative floats. The derivative at 0 is infinite.",
        "jnp.array([4.0, 9.0])",
        "[2. 3.]",
    ),
    "rsqrt": Row(
        "Return the reciprocal of the square root: 1 / sqrt(x).",
        "",
        "jnp.array([1.0, 4.0])",
        "[1.  0.5]",
    ),
    "cbrt": Row("Return the real cube root.", "", "jnp.array([8.0, -8.0])", "[ 2. -2.]"),
    "sin": Row("Return the sine.", ANGLE, "jnp.array([0.0, 1.0])", "[0.    0.841]"),
    "cos": Row("Return the cosine.", ANGLE, "jnp.array([0.0, 1.0])", "[1.   0.54]"),
    "tan": Row("Return the tangent.", ANGLE, "jnp.array([0.0, 1.0])", "[0.    1.557]"),
    "tanh": Row("Return the hyperbolic tangent.", "", "jnp.array([0.0, 1.0])", "[0.    0.762]"),
    "asin": Row("Return the inverse sine.", BRANCH, "jnp.array([0.0, 1.0])", "[0.    1.571]"),
    "acos": Row("Return the inverse cosine.", BRANCH, "jnp.array([0.0, 1.0])", "[1.571 0.   ]"),
    "atan": Row("Return the inverse tangent.", "", "jnp.array([0.0, 1.0])", "[0.    0.785]"),
    "sinh": Row("Return the hyperbolic sine.", "", "jnp.array([0.0, 1.0])", "[0.    1.175]"),
    "cosh": Row("Return the hyperbolic cosine.", "", "jnp.array([0.0, 1.0])", "[1.    1.543]"),
    "asinh": Row(
        "Return the inverse hyperbolic sine.", "", "jnp.array([0.0, 1.0])", "[0.    0.881]"
    ),
    "acosh": Row(
        "Return the inverse hyperbolic cosine.", BRANCH, "jnp.array([1.0, 2.0])", "[0.    1.317]"
    ),
    "atanh": Row(
        "Return the inverse hyperbolic tangent.", BRANCH, "jnp.array([0.0, 0.5])", "[0.    0.549]"
    ),
    "atan2": Row(
        "Return the angle of the point (y, x), in radians from -pi to pi.",
        "It is the inverse tangent of x / y in the right quadrant: the first operand is the "
        "ordinate.",
        "jnp.array([1.0, -1.0]), 1.0",
        "[ 0.785 -0.785]",
    ),
    "shift_left": Row(
        "Shift bits to the left: x << y.",
        "The result is 0 if y is not less than the number of bits.",
        "jnp.array([1, 2]), 3",
        "[ 8 16]",
    ),
    "shift_right_arithmetic": Row(
        "Shift bits to the right: x >> y, with copies of the sign bit.",
        "It divides by 2 ** y and rounds down.",
        "jnp.array([-8, 8]), 1",
        "[-4  4]",
    ),
    "shift_right_logical": Row(
        "Shift bits to the right, with zeros.",
        "The bits of a negative number count as those of an unsigned one.",
        "jnp.array([-8, 8]), 1",
        "[2147483644          4]",
    ),
    "population_count": Row("Count the bits that are 1.", "", "jnp.array([7, 8])", "[3 1]"),
    "clz": Row("Count the leading bits that are 0.", "", "jnp.array([1, 8])", "[31 28]"),
    "mulhi": Row(
        "Return the upper half of the bits of the product x * y.",
        "",
        "jnp.array([2**30]), 8",
        "[2]",
    ),
    "nextafter": Row(
        "Return the next float after x1 in the direction of x2.",
        "It is x2 if they are equal. The derivative is not defined.",
        "jnp.float32(1.0), 2.0",
        "1.0000001",
    ),
    "erf": Row("Return the error function.", "", "jnp.array([0.5, 2.0])", "[0.52  0.995]"),
    "erfc": Row(
        "Return 1 - erf(x), which is accurate for large x too.",
        "",
        "jnp.array([0.5, 2.0])",
        "[0.48  0.005]",
    ),
    "erf_inv": Row(
        "Return the inverse of the error function.", "", "jnp.array([0.0, 0.5])", "[0.    0.477]"
    ),
    "lgamma": Row(
        "Return the logarithm of the absolute value of the gamma function.",
        "",
        "jnp.array([0.5, 3.0])",
        "[0.572 0.693]",
    ),
    "digamma": Row(
        "Return the digamma function, the derivative of `lgamma`.",
        "",
        "jnp.array([0.5, 2.0])",
        "[-1.964  0.423]",
    ),
    "bessel_i0e": Row(
        "Return the modified Bessel function of order 0, times exp(-|x|).",
        "",
        "jnp.array([0.5, 2.0])",
        "[0.645 0.309]",
    ),
    "bessel_i1e": Row(
        "Return the modified Bessel function of order 1, times exp(-|x|).",
        "",
        "jnp.array([0.5, 2.0])",
        "[0.156 0.215]",
    ),
    "polygamma": Row(
        "Return the polygamma function of order m: the derivative number m of `digamma`.",
        "",
        "1.0, jnp.array([1.0, 2.0])",
        "[1.645 0.645]",
    ),
    "zeta": Row(
        "Return the Hurwitz zeta function: the sum of 1 / (k + q) ** x over k = 0, 1, ...",
        "",
        "2.0, jnp.array([1.0, 2.0])",
        "[1.645 0.645]",
    ),
    "igamma": Row(
        "Return the regularized lower incomplete gamma function P(a, x).",
        "",
        "2.0, jnp.array([1.0, 2.0])",
        "[0.264 0.594]",
    ),
    "igammac": Row(
        "Return the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).",
        "",
        "2.0, jnp.array([1.0, 2.0])",
        "[0.736 0.406]",
    ),
    "igamma_grad_a": Row(
        "Return the derivative of `igamma` with respect to a.",
        "",
        "2.0, jnp.array([1.0, 2.0])",
        "[-0.276 -0.294]",
    ),
    "random_gamma_grad": Row(
        "Return the derivative of samples of the gamma distribution by its parameter.",
        "The parameter is x, and y are the samples.",
        "2.0, jnp.array([1.0, 2.0])",
        "[0.751 1.086]",
    ),
}
REAL = ("abs", "real", "imag")


def describe(name: str, prim: Any, operands: Sequence[str], accuracy: bool = False) -> str:
    """Return the documentation of a function; without a row, the text of its primitive."""
    row = ROWS.get(name)
    if row is None:
        return prim.__doc__
    takes, binary = DTYPES[prim.takes], len(operands) == 2
    of = "any dtype" if prim.takes == "any" else takes
    args = [f"{operands[0]}: an array of {of}, or a number."]
    errors = [] if prim.takes == "any" else [f"DtypeError: an operand is not of {takes}."]
    if binary:
        more = "an array of the same dtype, of the same shape or with axes of size 1,"
        args.append(f"{operands[1]}: {more}")
        args.append("  or a scalar.")
        errors.append("ShapeError: the shapes differ in an axis that is not of size 1.")
    if accuracy:
        args.append("accuracy: a `Tolerance` or an `AccuracyMode`. None is the default of XLA.")
        errors.append("ValueError: `accuracy` is not of these types.")
    kind = "real" if name in REAL else "complex" if name == "complex" else "same"
    if has_truth(prim):
        kind = "bool"
    call = f"lax.{name}({row.example})"
    decimals = row.result.rstrip("]").rpartition(".")[2]
    rounded = prim.takes == "inexact" or len(decimals) == 3
    shown = f"np.asarray({call}).round(3)" if rounded else call
    parts = [row.first, row.remarks, block("Args:", args), block("Returns:", [RESULTS[kind]])]
    parts.append(block("Raises:", errors) if errors else "")
    parts.append(f">>> print({shown})\n    {row.result}")
    return "\n\n    ".join(filter(None, parts)) + "\n    "


def has_truth(prim: Any) -> bool:
    """Return True if the results of a primitive are bools."""
    return hasattr(prim, "direction") or prim.name == "is_finite"


def block(title: str, lines: list[str]) -> str:
    """Return a section of documentation."""
    return "\n      ".join([title, *lines])
