"""Elementwise operations: one family, and its members as a table of derivatives.

Operands have one shape, but a scalar goes with any; dtypes are equal. Promotion and broadcasting
are numpy/'s. Here are arithmetic, complex numbers, comparison and choice; exponentials, roots and
trigonometry are in transcendental.py, special functions in special/, bits in bits.py.
"""

from __future__ import annotations

import builtins
import enum
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.element import Apply, Select
from weft.core.facts import Cost, Elements, Linearity
from weft.core.form import Form
from weft.core.primitive import Linear, Primitive, Zero, not_linear
from weft.core.source import trim_traceback
from weft.core.trace import current
from weft.errors import DtypeError, MissingRule, ShapeError
from weft.primitives import circular, expr, families, layout
from weft.primitives.element_docs import describe
from weft.primitives.expr import Expr, lower_clamp, lower_extremum, lower_sign, write_division
from weft.primitives.families import KINDS, LinearByElement, show_types, zero_tangents
from weft.primitives.kernels import Called, ElementFormula, Kernel
from weft.primitives.layout import batched_at_front, broadcast_in_dim, convert, literal
from weft.util import name_parameters
from weft.xla.typing import Array, ArrayLike, DTypeLike

NUMBERS = frozenset(dtypes.NUMBERS)
to_bool = lambda dtype: np.dtype(bool)  # a truth value, of any operands


class Elementwise(Primitive):
    """A family: out[i] = f(x[i], y[i], ...); a scalar operand is used for every i.

    `op` is the StableHLO operation, or a function (hlo, aval, *values) -> Value that writes it.
    `operation` is the name of the StableHLO operation, if there is a single one for real numbers;
    else "". derivs[k](t, out, *args) is the tangent of `out` if only argument k moves, by t; None
    where the derivative is zero. For a primitive linear in argument k, adjoints[k](ct, *args) is
    its transpose in that argument. `takes` names its dtypes, `result` the dtype of `out`. series(k,
    xs, ys) is term k of the result's power series, if a member defines it: xs[i][j] is term j of
    operand i, None for zero, and the terms of ys[0] below k are known. `kernel` says which of
    weft's kernels computes it, and when; None if it has no kernel. `formulas` has by dtype the
    formulas that may replace a compiler's own function.
    """

    cost = Cost.CHEAP
    series: Callable | None = None
    linear = Linearity.NONE
    kernel: Kernel | None = None
    formulas: Mapping[np.dtype, ElementFormula] = MappingProxyType({})

    def __init__(
        self,
        name: str,
        op: str | Callable,
        derivs: Sequence[Callable | None] = (None,),
        adjoints: Sequence[Callable | None] = (),
        takes: str = "number",
        result: Callable[[np.dtype], np.dtype] = lambda dtype: dtype,
        doc: str = "",
    ):
        self.name = name
        self.op = op if callable(op) or "." in op else "stablehlo." + op
        self.operation = "" if callable(op) else self.op
        self.derivs = derivs
        self.adjoints = adjoints
        self.takes = takes
        self.accepts = KINDS[takes]
        self.result = result
        if doc:
            self.__doc__ = doc

    def abstract_eval(self, *avals, **params):
        first = avals[0]
        shape = first.shape
        weak = first.weak_type
        for a in avals:
            if a.dtype != first.dtype:
                raise DtypeError(
                    f"{self.name}: operands must have equal dtypes; got {show_types(avals)}."
                )
            if a.shape != shape:
                if a.shape and shape:
                    raise ShapeError(
                        f"{self.name}: operands must have equal shapes; got {show_types(avals)}."
                    )
                shape = shape or a.shape
            weak = weak and a.weak_type
        if not self.accepts(first.dtype):
            raise DtypeError(
                f"{self.name}: operands must be of {self.takes} dtype; got {show_types(avals)}."
            )
        return [ShapedArray(shape, self.result(first.dtype), weak)]

    def label_axes(self, avals, outs, **params):
        return families.along_each_other(avals, outs, self.linear)

    def lower(self, hlo, *values, **params):
        (aval,) = self.type_of(tuple([v.aval for v in values]), params)
        values = [hlo.spread(v, aval) if v.aval.shape != aval.shape else v for v in values]
        if type(self.op) is str:
            return hlo.elementwise(self.op, values, aval)
        return [self.op(hlo, aval, *values, **params)]

    def element(self, i, *operands, **params):
        return [Apply(self, tuple([x.at(i) for x in operands]), params)]

    def jvp(self, primals, tangents, **params):
        (out,) = self.apply(*primals, **params)
        total = None
        for deriv, t in zip(self.derivs, tangents, strict=True):
            if deriv is None or type(t) is Zero:
                continue
            dot = deriv(t, out, *primals, **params)
            total = dot if total is None else add(total, dot)
        if total is None:
            return [out], zero_tangents([out])
        shape = typeof(out).shape
        if typeof(total).shape != shape:
            total = broadcast_in_dim(total, shape, ())
        return [out], [total]

    def transpose(self, cts, *args, **params):
        (ct,) = cts
        if not self.adjoints:
            raise self.missing("transpose")
        outs = []
        for adjoint, x in zip(self.adjoints, args, strict=True):
            if type(x) is not Linear:
                outs.append(None)
                continue
            if adjoint is None:
                raise not_linear(self.name, args)
            g = adjoint(ct, *args, **params)
            shape = typeof(g).shape
            if shape != x.aval.shape:
                g = layout.reduce_sum(g, tuple(range(len(shape))))
            outs.append(g)
        return outs

    def batch(self, axis, args, dims, **params):
        first = next(d for d in dims if d is not None)
        ranks = [typeof(x).ndim for x in args]
        rank = builtins.max(ranks)
        if all(
            d == first and r == rank if d is not None else r == 0
            for d, r in zip(dims, ranks, strict=True)
        ):
            return self.apply(*args, **params), [first]
        shapes = [element_shape(typeof(x).shape, d) for x, d in zip(args, dims, strict=True)]
        shape = builtins.max(shapes, key=len)
        args = [
            x if r == 0 else self.batched_operand(x, d, axis.size, shape)
            for x, d, r in zip(args, dims, ranks, strict=True)
        ]
        return self.apply(*args, **params), [0]

    def batched_operand(self, x: Any, dim: int | None, size: int, shape: tuple) -> Any:
        """An operand with a mapped axis in front, a mapped scalar repeated to the others' shape."""
        x = batched_at_front(x, dim, size)
        if typeof(x).ndim == 1 and shape:
            return broadcast_in_dim(x, (size, *shape), (0,))
        return x


# --- power series: see transforms/jet.py ------------------------------------------------------


def sum_term(k: int, xs: Sequence, ys: Sequence, turn: Callable = lambda y: y) -> list:
    """Term k of x + y, or of x + turn(y)."""
    x, y = xs[0][k], xs[1][k]
    y = None if y is None else turn(y)
    return [spread_term(x if y is None else y if x is None else add(x, y), ys)]


def product_term(k: int, xs: Sequence, ys: Sequence) -> list:
    """Term k of x * y, by Cauchy's sum."""
    return [spread_term(convolve_terms(mul, k, *xs), ys)]


def quotient_term(k: int, xs: Sequence, ys: Sequence) -> list:
    """Term k of z = x / y, of z y = x: what of x_k the terms of z below k leave, over y_0."""
    (x, y), (z,) = xs, ys
    below = convolve_terms(mul, k, z, y, k - 1)
    left = x[k] if below is None else neg(below) if x[k] is None else sub(x[k], below)
    return [None if left is None else spread_term(div(left, y[0]), ys)]


def convolve_terms(product: Callable, k: int, x: Any, y: Any, most: int | None = None) -> Any:
    """The sum of product(x_j, y_(k-j)) up to j = k or `most`; None where all are zero."""
    total = None
    for j in reversed(range((k if most is None else most) + 1)):  # what needs most comes first
        a = x[j]
        b = None if a is None else y[k - j]
        if b is not None:
            part = product(a, b)
            total = part if total is None else add(total, part)
    return total


def spread_term(x: Any, ys: Sequence) -> Any:
    """A term in the shape of the result, where that is another operand's."""
    shape = typeof(ys[0][0]).shape
    return x if x is None or typeof(x).shape == shape else broadcast_in_dim(x, shape, ())


def no_derivative(op: str, operand: str) -> Callable:
    """Stands in `derivs` for a derivative that nobody has written."""

    def deriv(*_: Any, **__: Any) -> Any:
        raise MissingRule(
            f"{op}: must not be differentiated in {operand}; got a tangent for it. "
            f"Hint: lax.stop_gradient({operand})."
        )

    return deriv


def hold(op: str, x: Any) -> Any:
    """The operand that a product holds while it is linear in the other."""
    if type(x) is Linear:
        raise not_linear(op, (x, x))
    return x


def element_shape(shape: tuple[int, ...], dim: int | None) -> tuple[int, ...]:
    """A shape without its mapped axis."""
    return shape if dim is None else shape[:dim] + shape[dim + 1 :]


def match_numbers(x: Any, y: Any) -> tuple[Any, Any]:
    """Give a Python number the dtype of the other operand; of two numbers, the higher kind."""
    if type(y) in NUMBERS:
        if type(x) not in NUMBERS:
            y = literal(y, typeof(x).dtype)
        elif type(x) is not type(y):
            kind = builtins.max(type(x), type(y), key=dtypes.NUMBERS.index)
            x, y = kind(x), kind(y)
    elif type(x) in NUMBERS:
        x = literal(x, typeof(y).dtype)
    return x, y


def unary_op(prim: Primitive, name: str = "") -> Callable[[Any], Any]:
    """The function of a one-operand primitive."""

    def fun(x: ArrayLike) -> Array:
        try:
            return current.trace.process(prim, (x,), {})[0]
        except Exception as error:
            trim_traceback(error)
            raise

    return name_function(fun, prim, name)


def binary_op(prim: Primitive, name: str = "", operands: str = "x y") -> Callable[[Any, Any], Any]:
    """Make the function of a two-operand primitive, whose parameters are named `operands`.

    A Python number takes the other operand's dtype.
    """

    def fun(x: ArrayLike, y: ArrayLike) -> Array:
        if type(x) in NUMBERS or type(y) in NUMBERS:
            x, y = match_numbers(x, y)
        try:
            return current.trace.process(prim, (x, y), {})[0]
        except ShapeError:
            return bind_spread(prim, x, y)
        except Exception as error:
            trim_traceback(error)
            raise

    return name_function(name_parameters(fun, operands.split()), prim, name)


def bind_spread(prim: Primitive, x: Any, y: Any) -> Any:
    """Broadcast two operands against each other if their shapes differ only in axes of size 1.

    Otherwise raise the error that is being handled again. Functions take such operands; primitives
    do not.
    """
    a, b = typeof(x).shape, typeof(y).shape
    if a == b or len(a) != len(b) or not all(m == n or 1 in (m, n) for m, n in zip(a, b)):
        raise
    shape = tuple([n if m == 1 else m for m, n in zip(a, b)])
    x, y = (
        z if typeof(z).shape == shape else broadcast_in_dim(z, shape, range(len(shape)))
        for z in (x, y)
    )
    return prim.apply(x, y)[0]


def name_function(fun: Callable, prim: Primitive, name: str = "") -> Callable:
    """`fun` with the name and documentation of a primitive."""
    fun.__name__ = fun.__qualname__ = name or prim.name
    operands = fun.__code__.co_varnames[: fun.__code__.co_argcount]
    fun.__doc__ = describe(fun.__name__, prim, operands, hasattr(fun, "plain"))
    fun.primitive = prim  # type: ignore[attr-defined]
    fun.__module__ = sys._getframe(2).f_globals["__name__"]  # where it is a global, for pickle
    return fun


# --- arithmetic -----------------------------------------------------------------------------

add_p = Elementwise(
    "add",
    "add",
    [lambda t, z, x, y: t, lambda t, z, x, y: t],
    [lambda ct, x, y: ct, lambda ct, x, y: ct],
    doc="""Add elementwise: x + y.

    A Python number takes the dtype of the other operand.

    >>> jnp.array([1, 2]), 3
    [4 5]
    """,
)
sub_p = Elementwise(
    "sub",
    "subtract",
    [lambda t, z, x, y: t, lambda t, z, x, y: neg(t)],
    [lambda ct, x, y: ct, lambda ct, x, y: neg(ct)],
    doc="""Subtract elementwise: x - y.

    A Python number takes the dtype of the other operand.

    >>> jnp.array([1, 2]), 3
    [-2 -1]
    """,
)
mul_p = Elementwise(
    "mul",
    "multiply",
    [lambda t, z, x, y: mul(t, y), lambda t, z, x, y: mul(x, t)],
    [lambda ct, x, y: mul(ct, hold("mul", y)), lambda ct, x, y: mul(hold("mul", x), ct)],
    doc="x * y.",
)


class Costly(Elementwise):
    """Members that take far longer than a product does."""

    cost = Cost.TRANSCENDENTAL
    form = Form.FUNCTION


class Quotient(Elementwise):
    """x / y; of integers, rounded towards zero. Integer division by zero is -1."""

    form = Form.QUOTIENT

    def jvp(self, primals, tangents, **params):
        if Zero in map(type, tangents):
            return super().jvp(primals, tangents, **params)
        (z,) = self.apply(*primals, **params)  # both move: one division for both, and its transpose
        return [z], [div(sub(tangents[0], mul(tangents[1], z)), primals[1])]

    def checked(self, trace, args, params):
        trace.check_divisor(args[1])
        return trace.apply(self, args, params)


div_p = Quotient(
    "div",
    write_division("divide"),
    # -t*z/y, not -t*x/y**2: one fewer overflow, and z is at hand
    [lambda t, z, x, y: div(t, y), lambda t, z, x, y: div(mul(neg(t), z), y)],
    [lambda ct, x, y: div(ct, hold("div", y)), None],
    doc="""Divide elementwise: x / y.

    Quotients of integers are rounded towards zero, unlike with `//` in Python and NumPy. An integer
    divided by zero gives -1.

    >>> jnp.array([7, -7]), 2
    [ 3 -3]
    """,
)
rem_p = Elementwise(
    "rem",
    write_division("remainder"),
    [
        lambda t, z, x, y: t,
        # rem(x, y) = x - y * trunc(x / y)
        lambda t, z, x, y: neg(mul(t, truncate(div(x, y)))),
    ],
    takes="real number",
    doc="""Return the remainder of x / y, with the sign of x.

    It is `np.fmod`; the remainder of Python and `jnp.remainder` have the sign of y.

    >>> jnp.array([7, -7]), 3
    [ 1 -1]
    """,
)
rem_p.cost = Cost.TRANSCENDENTAL  # a loop of the machine's, or some 60 operations
rem_p.form = Form.REMAINDER
rem_p.kernel, rem_p.formulas = Kernel(62, Called.ANYWHERE), circular.REMAINDER
neg_p = Elementwise(
    "neg",
    "negate",
    [lambda t, y, x: neg(t)],
    [lambda ct, x: neg(ct)],
    doc="""Negate elementwise: -x.

    >>> jnp.array([0, 5])
    [ 0 -5]
    """,
)

max_p = Elementwise(
    "max",
    lower_extremum("maximum", "GT"),
    [
        lambda t, z, x, y: mul(t, chosen_share(gt, x, y, z)),
        lambda t, z, x, y: mul(t, chosen_share(gt, y, x, z)),
    ],
    takes="any",
    doc="""Return the larger of two elements.

    The result is NaN if an operand is. If the elements are equal, each has half of the derivative.

    >>> jnp.array([1, 5]), 3
    [3 5]
    """,
)
min_p = Elementwise(
    "min",
    lower_extremum("minimum", "LT"),
    [
        lambda t, z, x, y: mul(t, chosen_share(lt, x, y, z)),
        lambda t, z, x, y: mul(t, chosen_share(lt, y, x, z)),
    ],
    takes="any",
    doc="""Return the smaller of two elements.

    The result is NaN if an operand is. If the elements are equal, each has half of the derivative.

    >>> jnp.array([1, 5]), 3
    [1 3]
    """,
)


def chosen_share(better: Callable, x: Any, y: Any, z: Any) -> Any:
    """1 where x, and not y, is z, the better of the two; 1/2 where both are, 0 elsewhere.

    Real numbers are not compared with z: XLA may compute x twice with different roundings, so that
    neither would be equal to z.
    """
    best = eq(x, z) if dtypes.is_complex(z.dtype) else better(x, y)
    return select(eq(x, y), literal(0.5, z.dtype), convert(best, z.dtype))


def truncate(x: Any) -> Any:
    """x rounded towards zero."""
    return mul(sign(x), floor(abs(x)))


square_p = Elementwise(
    "square",
    expr.lower_square,
    [lambda t, y, x: mul(t, mul(2, x))],
    doc="""Square each element: x * x.

    >>> jnp.array([-1.5, 2.0])
    [2.25 4.  ]
    """,
)
one_minus_square_p = Elementwise(
    "one_minus_square",
    # (1-x)(1+x), not 1-x*x: no cancellation where x is near 1
    lambda hlo, aval, x: hlo.like(
        "multiply",
        *hlo.like("subtract", hlo.constant(1, aval), x),
        *hlo.like("add", hlo.constant(1, aval), x),
    )[0],
    [lambda t, y, x: mul(t, mul(-2, x))],
    takes="inexact",
    doc="""Return 1 - x * x for each element, without cancellation.

    It is computed as (1 - x) * (1 + x).

    >>> jnp.array([0.5, 2.0])
    [ 0.75 -3.  ]
    """,
)
sign_p = Elementwise(
    "sign",
    lower_sign,
    doc="""Return the sign of each element: -1, 0 or 1.

    The sign of a complex x is x / |x|, and 0 for 0. The sign of NaN is NaN.
    The derivative is zero.

    >>> jnp.array([-2.0, 0.0, 3.0])
    [-1.  0.  1.]
    """,
)
floor_p = Elementwise(
    "floor",
    "floor",
    takes="float",
    doc="""Round each element down to an integer, in the dtype of the operand.

    The derivative is zero.

    >>> jnp.array([-1.5, 1.5])
    [-2.  1.]
    """,
)
ceil_p = Elementwise(
    "ceil",
    "ceil",
    takes="float",
    doc="""Round each element up to an integer, in the dtype of the operand.

    The derivative is zero.

    >>> jnp.array([-1.5, 1.5])
    [-1.  2.]
    """,
)
is_finite_p = Elementwise(
    "is_finite",
    "is_finite",
    takes="float",
    result=to_bool,
    doc="""Return True for each element that is not infinite or NaN.

    >>> jnp.array([1, jnp.inf, jnp.nan])
    [ True False False]
    """,
)


class RoundingMethod(enum.IntEnum):
    """The direction of `lax.round` for a number halfway between two integers.

    Attributes:
      AWAY_FROM_ZERO: away from zero, so that 2.5 becomes 3. It is the default of `lax.round`.
      TO_NEAREST_EVEN: to the even integer, so that 2.5 becomes 2, as NumPy and Python do.

    >>> print(lax.round(2.5), lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN))
    3.0 2.0
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


_ROUND = {
    RoundingMethod.AWAY_FROM_ZERO: "round_nearest_afz",
    RoundingMethod.TO_NEAREST_EVEN: "round_nearest_even",
}
round_p = Elementwise(
    "round",
    lambda hlo, aval, x, *, rounding_method: hlo.like(_ROUND[rounding_method], x)[0],
    takes="float",
    doc="The nearest integer; `rounding_method` says where a tie goes.",
)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Round each element to the nearest integer, in the dtype of the operand.

    Args:
      x: an array of floats.
      rounding_method: says where a number halfway between two integers goes:
        `RoundingMethod.AWAY_FROM_ZERO`, the default, or `RoundingMethod.TO_NEAREST_EVEN`, which is
        the rule of `np.round`.

    Returns:
      An array of the shape and dtype of x. Its derivative is zero.

    Raises:
      DtypeError: the operand is not of floats.
      TypeError: `rounding_method` is not a RoundingMethod.

    >>> x = jnp.array([0.5, 1.5, -0.5])
    >>> print(lax.round(x), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN))
    [ 1.  2. -1.] [ 0.  2. -0.]
    """
    what = "a RoundingMethod"
    method = families.check_parameter(
        "round", "rounding_method", rounding_method, what, RoundingMethod
    )
    return round_p.apply(x, rounding_method=method)[0]


# --- complex numbers ------------------------------------------------------------------------

abs_p = Elementwise(
    "abs",
    lambda hlo, aval, x: (
        x if dtypes.is_unsigned(aval.dtype) else hlo.op("stablehlo.abs", [x], [aval])[0]
    ),
    [lambda t, y, x: abs_tangent(t, y, x)],
    result=dtypes.real_dtype,
    doc="""Return the absolute value of each element.

    The derivative at a real 0 is 1, at a complex 0 it is 0.

    >>> jnp.array([-1.5, 1.5])
    [1.5 1.5]
    """,
)


def abs_tangent(t: Any, y: Any, x: Any) -> Any:
    """The component of t along x."""
    if not dtypes.is_complex(typeof(x).dtype):
        return select(ge(x, 0), t, neg(t))
    one = literal(1, typeof(y).dtype)
    away = select(eq(y, 0), one, y)
    return add(mul(real(t), div(real(x), away)), mul(imag(t), div(imag(x), away)))


real_p = Elementwise(
    "real",
    "real",
    [lambda t, y, x: real(t)],
    [lambda ct, x: complex(ct, literal(0, typeof(ct).dtype))],
    takes="complex",
    result=dtypes.real_dtype,
    doc="""Return the real part of each element.

    >>> jnp.array([1 + 2j])
    [1.]
    """,
)
imag_p = Elementwise(
    "imag",
    "imag",
    [lambda t, y, x: imag(t)],
    # <ct, imag t> = real part of (-i ct) t: the pairing has no conjugate
    [lambda ct, x: complex(literal(0, typeof(ct).dtype), neg(ct))],
    takes="complex",
    result=dtypes.real_dtype,
    doc="""Return the imaginary part of each element.

    >>> jnp.array([1 + 2j])
    [2.]
    """,
)
complex_p = Elementwise(
    "complex",
    "complex",
    [
        lambda t, z, x, y: complex(t, literal(0, typeof(t).dtype)),
        lambda t, z, x, y: complex(literal(0, typeof(t).dtype), t),
    ],
    [lambda ct, x, y: real(ct), lambda ct, x, y: imag(neg(ct))],
    takes="float32 or float64",
    result=dtypes.complex_dtype,
    doc="""Make complex numbers from real and imaginary parts: x + i y.

    >>> jnp.array([1.0]), jnp.array([2.0])
    [1.+2.j]
    """,
)


class Conj(LinearByElement):
    """The complex conjugate. `input_dtype` says what the operand was, for the transpose."""

    name = "conj"
    elements = Elements.CHOSEN
    cost = Cost.CHEAP
    element = families.apply_to_element

    def abstract_eval(self, x, *, input_dtype):
        if dtypes.real_dtype(x.dtype) not in (np.float32, np.float64):
            raise DtypeError(f"conj: the operand must be complex, or float32 or float64; got {x}.")
        return [ShapedArray(x.shape, dtypes.complex_dtype(x.dtype), x.weak_type)]

    def lower(self, hlo, x, *, input_dtype):
        x = Expr(hlo, x)
        if dtypes.is_complex(x.dtype):
            return [x.conjugate().value]
        return [x.make("complex", *self.abstract_eval(x.aval, input_dtype=None), x.like(0)).value]

    def transpose(self, cts, x, *, input_dtype):
        ct = conj(cts[0])
        return [ct if dtypes.is_complex(x.aval.dtype) else real(ct)]


conj_p = Conj()


def conj(x: ArrayLike) -> Array:
    """Return the complex conjugate of each element. A real operand becomes complex.

    Args:
      x: an array of complex numbers, or of float32 or float64.

    Returns:
      A complex array of the shape of x.

    Raises:
      DtypeError: the operand is of integers or of 16-bit floats.

    >>> print(lax.conj(jnp.array([1 + 2j])))
    [1.-2.j]
    """
    return conj_p.apply(x, input_dtype=typeof(x, "conj").dtype)[0]


# --- comparison and choice ------------------------------------------------------------------


class Comparison(Elementwise):
    """A family: comparisons, whose derivative is zero.

    `direction` is the name in StableHLO, such as "LE". Floats are in the order of numbers, or, if
    it `is_total`, in the order that sorting needs.
    """

    def __init__(self, name: str, takes: str, doc: str, is_total: bool = False):
        self.direction, self.is_total = name[:2].upper(), is_total
        write = lambda hlo, aval, x, y: hlo.compare(
            self.direction, x, y, "TOTALORDER" if is_total else "FLOAT"
        )
        super().__init__(name, write, [None, None], takes=takes, result=to_bool, doc=doc)


eq_p = Comparison(
    "eq",
    "any",
    """Compare elementwise: x == y.

    A Python number takes the dtype of the other operand.

    >>> jnp.array([1, 5]), 5
    [False  True]
    """,
)
ne_p = Comparison(
    "ne",
    "any",
    """Compare elementwise: x != y.

    A Python number takes the dtype of the other operand.

    >>> jnp.array([1, 5]), 5
    [ True False]
    """,
)
eq_p.elements, ne_p.elements = Elements.EQUAL, Elements.UNEQUAL
lt_p = Comparison(
    "lt",
    "real",
    """Compare elementwise: x < y.

    A Python number takes the dtype of the other operand.

    >>> jnp.array([1, 5]), 5
    [ True False]
    """,
)
le_p = Comparison(
    "le",
    "real",
    """Compare elementwise: x <= y.

    A Python number takes the dtype of the other operand.

    >>> jnp.array([1, 5]), 5
    [ True  True]
    """,
)
gt_p = Comparison(
    "gt",
    "real",
    """Compare elementwise: x > y.

    A Python number takes the dtype of the other operand.

    >>> jnp.array([1, 5]), 1
    [False  True]
    """,
)
ge_p = Comparison(
    "ge",
    "real",
    """Compare elementwise: x >= y.

    A Python number takes the dtype of the other operand.

    >>> jnp.array([1, 5]), 1
    [ True  True]
    """,
)
# The order that sorting needs: total, with -0 before 0 and NaN of either sign at the ends.
eq_to_p = Comparison("eq_to", "real", "x == y in the total order of floats.", is_total=True)
lt_to_p = Comparison("lt_to", "real", "x < y in the total order of floats.", is_total=True)
le_to_p = Comparison("le_to", "real", "x <= y in the total order of floats.", is_total=True)


class SelectN(Primitive):
    """out[i] = cases[which[i]][i]; `which` is bool for two cases, an integer for any number.

    An integer below 0 selects the first case, and one that is too large the last.

    Shapes: the cases have one shape; `which` has it too, or is a scalar, and so may be a case.
    """

    name = "select_n"
    elements = Elements.PLACED
    cost = Cost.CHEAP

    def abstract_eval(self, which, *cases):
        if not cases:
            raise ShapeError("select_n: needs at least one case; got none.")
        if dtypes.is_bool(which.dtype):
            if len(cases) > 2:
                raise DtypeError(
                    f"select_n: a bool `which` chooses between two cases; got {len(cases)}."
                )
        elif not dtypes.is_integer(which.dtype):
            raise DtypeError(f"select_n: `which` must be bool or of integers; got {which}.")
        shape = next((c.shape for c in cases if c.shape), which.shape)
        if any(a.shape not in ((), shape) for a in (which, *cases)):
            raise ShapeError(
                "select_n: `which` and the cases must have equal shapes; "
                f"got {show_types((which, *cases))}."
            )
        if any(c.dtype != cases[0].dtype for c in cases):
            raise DtypeError(f"select_n: cases must have equal dtypes; got {show_types(cases)}.")
        weak = all(c.weak_type for c in cases)
        return [ShapedArray(shape, cases[0].dtype, weak)]

    def label_axes(self, avals, outs, **params):
        linear = Linearity.JOINT if dtypes.is_bool(avals[0].dtype) else Linearity.NONE
        return families.along_each_other(avals, outs, linear)

    def lower(self, hlo, which, *cases):
        (aval,) = self.type_of(tuple(v.aval for v in (which, *cases)), {})
        cases = [hlo.spread(c, aval) for c in cases]
        if len(cases) == 1:
            return [cases[0]]
        if dtypes.is_bool(which.aval.dtype):  # StableHLO takes a scalar predicate unchanged
            return hlo.op("stablehlo.select", [which, cases[1], cases[0]], [aval])
        which = hlo.spread(which, aval)
        out = cases[-1]
        for i in reversed(range(len(cases) - 1)):
            k = hlo.constant(i, which.aval)
            pred = hlo.compare("LE", which, k)
            (out,) = hlo.op("stablehlo.select", [pred, cases[i], out], [aval])
        return [out]

    def element(self, i, which, *cases):
        *rest, out = [c.at(i) for c in cases]
        if dtypes.is_bool(which.dtype):
            return [Select(which.at(i), out, x) for x in rest] or [out]
        for k, x in reversed([*enumerate(rest)]):
            out = Select(which.at(i) <= k, x, out)
        return [out]

    def jvp(self, primals, tangents):
        which, *cases = primals
        (out,) = self.apply(which, *cases)
        ts = tangents[1:]
        if all(isinstance(t, Zero) for t in ts):
            return [out], zero_tangents([out])
        zero = literal(0, typeof(out).dtype)
        ts = [zero if isinstance(t, Zero) else t for t in ts]
        (dot,) = self.apply(which, *ts)
        if typeof(dot).shape != typeof(out).shape:
            dot = broadcast_in_dim(dot, typeof(out).shape, ())
        return [out], [dot]

    def transpose(self, cts, which, *cases):
        (ct,) = cts
        zero = literal(0, typeof(ct).dtype)
        outs: list = [None]
        for i, c in enumerate(cases):
            if type(c) is not Linear:
                outs.append(None)
                continue
            (g,) = self.apply(which, *[ct if j == i else zero for j in range(len(cases))])
            if typeof(g).shape != c.aval.shape:
                g = layout.reduce_sum(g, tuple(range(typeof(g).ndim)))
            outs.append(g)
        return outs

    def batch(self, axis, args, dims):
        return Elementwise.batch(self, axis, args, dims)  # type: ignore[arg-type]

    batched_operand = Elementwise.batched_operand


select_n_p = SelectN()


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Choose elements from several arrays by an array of positions.

    All arrays are computed; the derivative of an element goes to the array that it comes from.

    Args:
      which: the positions: an array of bools for two cases, where False is the first case, or of
        integers for any number. A position that is out of range chooses the first or the last case.
        It has the shape of the cases or is a scalar.
      *cases: arrays of one shape and dtype.

    Returns:
      An array of the shape and dtype of the cases.

    Raises:
      DtypeError: the cases differ in dtype; `which` is not of bools or integers; more than
        two cases are chosen by bools.
      ShapeError: the shapes differ.

    >>> x = jnp.arange(3)
    >>> print(lax.select_n(jnp.array([0, 1, 2]), x, -x, 10 * x))
    [ 0 -1 20]
    """
    return select_n_p.apply(which, *cases)[0]


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Choose each element from one of two arrays.

    It is `jnp.where` without broadcasting. Both arrays are computed. The derivative of an element
    goes to the array that it comes from; if the other one has an infinite derivative, the result
    may still be NaN, so make its operand safe first.

    Args:
      pred: an array of bools of the shape of the others, or a scalar. Integers count as true from
        1 on.
      on_true: the elements where `pred` is true, an array or a Python number.
      on_false: the elements elsewhere, an array of the same shape and dtype, or a Python number.

    Returns:
      An array of the shape and dtype of the two.

    Raises:
      DtypeError: `pred` is of floats.
      ShapeError: the shapes differ.

    >>> x = jnp.array([1.0, -2.0])
    >>> print(lax.select(x > 0, x, 0 * x))
    [ 1. -0.]
    """
    on_true, on_false = match_numbers(on_true, on_false)
    return select_n_p.apply(pred, on_false, on_true)[0]


stop_gradient_p = Elementwise(
    "stop_gradient", lambda hlo, aval, x: x, takes="any", doc="x, whose derivative is zero."
)
stop_gradient_p.elements = Elements.MOVED
stop_gradient_p.cost = Cost.FREE

clamp_p = Elementwise(
    "clamp",
    lower_clamp,
    [
        lambda t, z, lo, x, hi: select(bitwise_and(gt(lo, x), lt(lo, hi)), t, 0),
        lambda t, z, lo, x, hi: select(bitwise_and(gt(x, lo), lt(x, hi)), t, 0),
        lambda t, z, lo, x, hi: select(lt(hi, x), t, 0),
    ],
    takes="real",
    doc="x held between lo and hi: min(max(lo, x), hi). The derivative in x is 0 at the bounds.",
)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Limit each element to a range: `min(max(min, x), max)`.

    The derivative with respect to x is 1 inside of the range, and 0 outside and at its bounds.

    Args:
      min: the lower bound, a scalar or an array of the shape of x. A Python number takes the dtype
        of x.
      x: an array of integers or floats.
      max: the upper bound, likewise. If it is below `min`, the result is `max`.

    Returns:
      An array of the shape and dtype of x.

    Raises:
      DtypeError: an operand is complex.

    >>> print(lax.clamp(0, jnp.array([-1, 1, 3]), 2))
    [0 1 2]
    """
    min, max = match_numbers(min, x)[0], match_numbers(max, x)[0]
    return clamp_p.apply(min, x, max)[0]


and_p = Elementwise(
    "and",
    "and",
    [None, None],
    takes="bool or integer",
    doc="""Return the bitwise "and": x & y.

    A Python number takes the dtype of the other operand.

    >>> jnp.array([6, 4]), 3
    [2 0]
    """,
)
or_p = Elementwise(
    "or",
    "or",
    [None, None],
    takes="bool or integer",
    doc="""Return the bitwise "or": x | y.

    A Python number takes the dtype of the other operand.

    >>> jnp.array([6, 4]), 3
    [7 7]
    """,
)
xor_p = Elementwise(
    "xor",
    "xor",
    [None, None],
    takes="bool or integer",
    doc="""Return the bitwise "exclusive or": x ^ y.

    A Python number takes the dtype of the other operand.

    >>> jnp.array([6, 4]), 3
    [5 7]
    """,
)
not_p = Elementwise(
    "not",
    "not",
    takes="bool or integer",
    doc="""Invert each bit: ~x.

    Of bools it is the negation.

    >>> jnp.array([0, 5])
    [-1 -6]
    """,
)

add_p.linear = sub_p.linear = neg_p.linear = Linearity.JOINT
mul_p.linear, div_p.linear = Linearity.EACH, Linearity.FIRST
add_p.series, mul_p.series, div_p.series = sum_term, product_term, quotient_term
sub_p.series = lambda k, xs, ys: sum_term(k, xs, ys, neg)
neg_p.series = lambda k, xs, ys: [None if xs[0][k] is None else neg(xs[0][k])]

abs_p.operation, sign_p.operation = "stablehlo.abs", "stablehlo.sign"
max_p.operation, min_p.operation = "stablehlo.maximum", "stablehlo.minimum"
div_p.operation, clamp_p.operation = "stablehlo.divide", "stablehlo.clamp"
square_p.form, one_minus_square_p.form = Form.POWER, Form.COMPLEMENT

for _prim in (
    *(neg_p, abs_p, sign_p, floor_p, ceil_p, round_p, max_p, min_p, clamp_p),
    *(real_p, imag_p, complex_p),
):
    _prim.elements = Elements.CHOSEN

# The kernel of programs has an instruction for each of these.
for _code, _prim in {
    0: abs_p, 1: sign_p, 2: neg_p, 3: not_p, 4: floor_p, 5: ceil_p, 6: round_p, 7: is_finite_p,
    8: square_p, 45: add_p, 46: sub_p, 47: mul_p, 48: div_p, 49: max_p, 50: min_p, 53: eq_p,
    54: ne_p, 55: gt_p, 56: ge_p, 57: lt_p, 58: le_p, 59: and_p, 60: or_p, 61: xor_p, 79: clamp_p,
}.items():  # fmt: skip
    _prim.kernel = Kernel(_code, Called.STEP, Called.STEP)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Multiply elementwise: x * y.

    Args:
      x: an array of numbers. A Python number takes the dtype of the other operand.
      y: an array of the same dtype, of the same shape or with axes of size 1, or a scalar.
      out_dtype: a dtype that the operands are converted to first. By default they are not
        converted.

    Returns:
      An array of the dtype of the operands, or of `out_dtype`.

    >>> print(lax.mul(jnp.array([1.0, 2.0]), 3))
    [3. 6.]
    """
    if type(x) in NUMBERS or type(y) in NUMBERS:
        x, y = match_numbers(x, y)
    if out_dtype is not None:
        dtype = dtypes.canonicalize(out_dtype, "mul")
        x, y = convert(x, dtype), convert(y, dtype)
    try:
        return current.trace.process(mul_p, (x, y), {})[0]
    except ShapeError:
        return bind_spread(mul_p, x, y)


add = binary_op(add_p)
sub = binary_op(sub_p)
div = binary_op(div_p)
rem = binary_op(rem_p)
max = binary_op(max_p)
min = binary_op(min_p)
eq = binary_op(eq_p)
ne = binary_op(ne_p)
lt = binary_op(lt_p)
le = binary_op(le_p)
gt = binary_op(gt_p)
ge = binary_op(ge_p)
bitwise_and = binary_op(and_p, "bitwise_and")
bitwise_or = binary_op(or_p, "bitwise_or")
bitwise_xor = binary_op(xor_p, "bitwise_xor")
bitwise_not = unary_op(not_p, "bitwise_not")
neg = unary_op(neg_p)
sign = unary_op(sign_p)
floor = unary_op(floor_p)
ceil = unary_op(ceil_p)
abs = unary_op(abs_p)
square = unary_op(square_p)
one_minus_square = unary_op(one_minus_square_p)
is_finite = unary_op(is_finite_p)
real = unary_op(real_p)
imag = unary_op(imag_p)
complex = binary_op(complex_p)
