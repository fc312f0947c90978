"""Operations on pairs of float64, by primitive: the wide run of programs in float64.

An operation that only moves elements is applied to both parts of its operands. `BY_ELEMENT` and
`BY_EQUATION` have the operations that are computed to about 100 bits. Solutions of linear systems
and factors of matrices are refined by a step with the residual in pairs. Any other operation is
computed to first order: at the first part of its operands, with the second part moved by its
derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.core.aval import typeof
from weft.core.facts import Elements
from weft.core.jaxpr import Eqn
from weft.core.primitive import Zero, tangent_zero
from weft.errors import MissingRule
from weft.explain.numerics import pairs
from weft.explain.numerics.pairs import Pair
from weft.primitives.layout import instantiate
from weft.primitives.reduction import reduce
from weft.transforms.jvp import jvp

# Primitives that place elements by their operands of integers, or by a mask.
PLACES = frozenset(("select_n", "pad", "gather", "dynamic_update_slice", "scatter"))

Rule = Callable[..., Pair]

BY_ELEMENT: dict[str, Rule] = {
    "abs": pairs.absolute,
    "acos": pairs.acos,
    "acosh": pairs.acosh,
    "add": pairs.add,
    "asin": pairs.asin,
    "asinh": pairs.asinh,
    "atan": pairs.atan,
    "atan2": pairs.atan2,
    "atanh": pairs.atanh,
    "cbrt": pairs.cbrt,
    "clamp": lambda low, x, high: pairs.minimum(pairs.maximum(x, low), high),
    "complex": pairs.complex_of,
    "conj": lambda x: pairs.complex_of(pairs.real(x), pairs.negate(pairs.imag(x))),
    "cos": pairs.cos,
    "cosh": pairs.cosh,
    "div": pairs.divide,
    "exp": pairs.exp,
    "exp2": pairs.exp2,
    "expm1": pairs.expm1,
    "imag": pairs.imag,
    "log": pairs.log,
    "log1p": pairs.log1p,
    "log2": pairs.log2,
    "logaddexp": pairs.logaddexp,
    "logistic": pairs.logistic,
    "max": pairs.maximum,
    "min": pairs.minimum,
    "mul": pairs.multiply,
    "neg": pairs.negate,
    "one_minus_square": lambda x: pairs.square_pair(pairs.find_other_leg(x)),
    "pow": pairs.raise_to,
    "real": pairs.real,
    "rsqrt": lambda x: pairs.divide(pairs.number(1, x.high), pairs.sqrt(x)),
    "sin": pairs.sin,
    "sinh": pairs.sinh,
    "sqrt": pairs.sqrt,
    "square": pairs.square_pair,
    "sub": pairs.subtract,
    "tan": pairs.tan,
    "tanh": pairs.tanh,
}
# Rules that hold for complex numbers too.
FOR_COMPLEX = frozenset(("add", "sub", "mul", "neg", "square", "real", "imag", "conj", "complex"))


def find_rule(eqn: Eqn, operands: Sequence[Any]) -> Callable | None:
    """Return the function of the operands that computes an equation in pairs; None if none does."""
    name, params = eqn.primitive.name, eqn.params
    has_complex = any(isinstance(x, Pair) and pairs.is_complex(x) for x in operands)
    if name in BY_ELEMENT and (not has_complex or name in FOR_COMPLEX):
        return BY_ELEMENT[name]
    if name == "integer_pow" and not has_complex:
        return lambda x: pairs.power(x, params["y"])
    if eqn.primitive.elements is Elements.CONVERTED:
        return lambda x: convert_pair(x, eqn.outvars[0].aval.dtype)
    if has_complex or not eqn.outvars[0].aval.size:
        return None
    if name in BY_EQUATION:
        rule = BY_EQUATION[name]
        return lambda *xs: rule(eqn, *xs)
    return None


def compute_pairs(
    eqn: Eqn, operands: Sequence[Any], narrow: Sequence[Any], outs: Sequence[Any], is_exact: bool
) -> list[Pair | None]:
    """Return the results of an equation as pairs; None for a result that is not a float.

    Args:
      eqn: the equation.
      operands: pairs, and arrays of other types as they are.
      narrow: the operands of the narrow run.
      outs: the results of the narrow run.
      is_exact: True if the operands are those of the narrow run. Then the results of an operation
        that has no rule are those of the narrow run too.
    """
    high = [x.high if isinstance(x, Pair) else x for x in operands]
    low = [x.low if isinstance(x, Pair) else x for x in operands]
    apply = lambda xs: eqn.primitive.apply(*xs, **eqn.params)
    inexact = [dtypes.is_inexact(v.aval.dtype) for v in eqn.outvars]
    name = eqn.primitive.name
    if eqn.primitive.elements is Elements.MOVED or name in PLACES:
        found = list(map(Pair, apply(high), apply(low)))
    elif (rule := find_rule(eqn, operands)) is not None:
        result = rule(*operands)
        if eqn.primitive.elements is Elements.CONVERTED:
            return [result]
        found = [pairs.guard(apply(high)[0], result), *map(Pair, outs[1:], outs[1:])]
    elif is_exact or not all(
        typeof(x.high).dtype == typeof(y).dtype
        for x, y in zip(operands, narrow, strict=True)
        if isinstance(x, Pair)
    ):
        found = list(map(pairs.pair_of, outs))  # with operands in float32, exact from here on
    elif eqn.primitive.elements in (Elements.CHOSEN, Elements.PLACED):
        # The narrow run decides which elements are chosen.
        off = [
            (x.high - y) + x.low if isinstance(x, Pair) else x
            for x, y in zip(operands, narrow, strict=True)
        ]
        found = push_errors(eqn, narrow, off, outs)
    else:
        found = push_errors(eqn, high, low, apply(high))
    return [p if keep else None for p, keep in zip(found, inexact, strict=True)]


def push_errors(
    eqn: Eqn, primals: Sequence[Any], errors: Sequence[Any], outs: Sequence[Any]
) -> list[Pair]:
    """Return results with the errors of operands propagated to first order."""
    dots = [
        e if dtypes.is_inexact(typeof(x).dtype) else tangent_zero(x)
        for x, e in zip(primals, errors, strict=True)
    ]
    try:
        _, tangents = jvp(lambda *xs: eqn.primitive.apply(*xs, **eqn.params), primals, dots)
    except MissingRule:
        return list(map(pairs.pair_of, outs))
    found = []
    for y, t in zip(outs, tangents, strict=True):
        error = None if type(t) is Zero or dtypes.is_extended(typeof(t).dtype) else instantiate(t)
        if error is None or typeof(error).dtype != typeof(y).dtype:
            found.append(pairs.pair_of(y))
        else:
            found.append(pairs.guard(y, pairs.sum_exactly(y, error)))
    return found


def convert_pair(x: Any, dtype: Any) -> Pair:
    """Return a pair, or an array, for a result of another dtype: real, or complex."""
    if not isinstance(x, Pair):
        x = pairs.pair_of(jnp.asarray(x).astype(np.float64))
    if dtypes.is_complex(dtype) and not pairs.is_complex(x):
        return pairs.complex_of(x, pairs.pair_of(jnp.zeros_like(x.high)))
    return pairs.real(x) if pairs.is_complex(x) and not dtypes.is_complex(dtype) else x


# --- sums and products ----------------------------------------------------------------------------


def add_terms(eqn: Eqn, operands: Sequence[Any], terms: int, axes: Any = None) -> Pair:
    """Return sums of at most `terms` elements of the operands each, along axes or elsewhere."""
    call = lambda *xs: eqn.primitive.apply(*xs, **eqn.params)[0]
    return pairs.sum_linearly(call, operands, terms, axes)


def add_along_axes(eqn: Eqn, x: Pair) -> Pair:
    """Return the sums of the elements along axes."""
    axes = eqn.params["axes"]
    return add_terms(eqn, [x], math.prod(x.high.shape[d] for d in axes), axes)


def add_before(eqn: Eqn, x: Pair) -> Pair:
    """Return the sums of the elements up to each one along an axis."""
    return add_terms(eqn, [x], x.high.shape[eqn.params["axis"]])


def add_windows(eqn: Eqn, x: Pair) -> Pair:
    """Return the sums of the elements in windows."""
    return add_terms(eqn, [x], math.prod(eqn.params["window_dimensions"]))


def add_at_places(eqn: Eqn, *operands: Any) -> Pair:
    """Return a scatter that adds or subtracts."""
    return add_terms(eqn, operands, sum(x.high.size for x in operands if isinstance(x, Pair)))


def multiply_matrices(eqn: Eqn, x: Pair, y: Pair) -> Pair:
    """Return a product of matrices, `dot_general`."""
    call = lambda *xs: eqn.primitive.apply(*xs, **eqn.params)[0]
    (of_x, of_y), _ = eqn.params["dimension_numbers"]
    terms = math.prod(x.high.shape[d] for d in of_x)
    return pairs.contract(call, x, y, terms, (tuple(of_x), tuple(of_y)))


def convolve(eqn: Eqn, x: Pair, y: Pair) -> Pair:
    """Return a convolution."""
    call = lambda *xs: eqn.primitive.apply(*xs, **eqn.params)[0]
    return pairs.contract(call, x, y, max(x.high.size, y.high.size) // 1)


def multiply_transposed(eqn: Eqn, x: Pair, y: Pair) -> Pair:
    """Return alpha x x^T + beta y, `symmetric_product`."""
    alpha, beta = (pairs.pair_of(jnp.asarray(eqn.params[k], np.float64)) for k in ("alpha", "beta"))
    product = multiply_rows(x, turn_matrix(x))
    return pairs.add(pairs.multiply(product, alpha), pairs.multiply(y, beta))


def turn_matrix(x: Pair) -> Pair:
    """Return the transposes of matrices."""
    return Pair(*[jnp.swapaxes(part, -1, -2) for part in x])


def multiply_rows(x: Pair, y: Pair) -> Pair:
    """Return products of matrices along the last two axes."""
    return pairs.contract(jnp.matmul, x, y, x.high.shape[-1], ((-1,), (-2,)))


def find_extremes(pick: Callable, worst: float) -> Callable:
    """Return the rule for the largest, or the smallest, elements along axes."""

    def rule(eqn: Eqn, x: Pair) -> Pair:
        axes = eqn.params["axes"]
        high = pick(x.high, axes, keepdims=True)
        low = pick(jnp.where(x.high == high, x.low, worst), axes)
        return Pair(jnp.squeeze(high, axes), low)

    return rule


def multiply_up(eqn: Eqn, x: Pair) -> Pair:
    """Return the product of the elements along axes."""
    one, zero = np.ones((), np.float64), np.zeros((), np.float64)
    join = lambda a, b: tuple(pairs.multiply(Pair(*a), Pair(*b)))
    return Pair(*reduce(tuple(x), (one, zero), join, tuple(eqn.params["axes"])))


# --- matrices, refined by their residuals ---------------------------------------------------------


def keep_triangle(x: Pair, lower: bool, unit: bool) -> Pair:
    """Return triangular matrices; with ones on the diagonal if `unit`."""
    cut = jnp.tril if lower else jnp.triu
    x = Pair(*[cut(part) for part in x])
    if not unit:
        return x
    eye = jnp.eye(x.high.shape[-2], x.high.shape[-1], dtype=bool)
    return Pair(jnp.where(eye, 1.0, x.high), jnp.where(eye, 0.0, x.low))


def solve_triangle(eqn: Eqn, a: Pair, b: Pair) -> Pair:
    """Return the solution of a triangular system, refined once."""
    params = eqn.params
    solve = lambda b: eqn.primitive.apply(a.high, b, **params)[0]
    matrix = keep_triangle(a, params["lower"], params["unit_diagonal"])
    if params["transpose_a"]:
        matrix = turn_matrix(matrix)
    left = params["left_side"]
    product = lambda x: multiply_rows(matrix, x) if left else multiply_rows(x, matrix)
    return refine(solve, product, b)


def solve_small(eqn: Eqn, a: Pair, b: Pair) -> Pair:
    """Return the solution of a small system, refined once."""
    solve = lambda b: eqn.primitive.apply(a.high, b, **eqn.params)[0]
    return refine(solve, lambda x: multiply_rows(a, x), b)


def refine(solve: Callable, product: Callable, b: Pair) -> Pair:
    """Solve `product(x) = b`, in two steps with the residual in pairs."""
    found = pairs.pair_of(solve(b.high))
    for _ in range(2):
        rest = pairs.subtract(b, product(found))
        found = pairs.add(found, pairs.pair_of(solve(rest.high)))
    return found


def correct(eqn: Eqn, x: Any, rest: Any, out: Any) -> Pair:
    """Return factors of a matrix x, moved by the derivative for the residual of the matrix."""
    (moved, *_) = jvp(lambda x: eqn.primitive.apply(x, **eqn.params), [x], [rest])[1]
    return pairs.sum_exactly(out, instantiate(moved))


def factor_symmetric(eqn: Eqn, x: Pair) -> Pair:
    """Return the Cholesky factor."""
    (out,) = eqn.primitive.apply(x.high)
    factor = pairs.pair_of(out)
    rest = pairs.subtract(x, multiply_rows(factor, turn_matrix(factor))).high
    below = jnp.tril(rest)
    return correct(eqn, x.high, below + jnp.swapaxes(jnp.tril(rest, -1), -1, -2), out)


def factor_rows(eqn: Eqn, x: Pair) -> Pair:
    """Return the factors L and U in one matrix; the order of rows is that for the first part."""
    out, _, order = eqn.primitive.apply(x.high)
    count = min(out.shape[-2:])
    factors = pairs.pair_of(out)
    lower = keep_triangle(Pair(*[p[..., :count] for p in factors]), True, True)
    upper = keep_triangle(Pair(*[p[..., :count, :] for p in factors]), False, False)
    rows = Pair(*[jnp.take_along_axis(p, order[..., None], -2) for p in x])
    rest = pairs.subtract(rows, multiply_rows(lower, upper)).high
    back = jnp.take_along_axis(rest, jnp.argsort(order, -1)[..., None], -2)
    return correct(eqn, x.high, back, out)


# Rules that take the equation first, for its parameters.
BY_EQUATION: dict[str, Callable] = {
    "reduce_sum": add_along_axes,
    "cumsum": add_before,
    "reduce_window_sum": add_windows,
    "scatter-add": add_at_places,
    "scatter-sub": add_at_places,
    "dot_general": multiply_matrices,
    "conv_general_dilated": convolve,
    "symmetric_product": multiply_transposed,
    "reduce_max": find_extremes(jnp.max, -np.inf),
    "reduce_min": find_extremes(jnp.min, np.inf),
    "reduce_prod": multiply_up,
    "triangular_solve": solve_triangle,
    "small_solve": solve_small,
    "cholesky": factor_symmetric,
    "lu": factor_rows,
}
