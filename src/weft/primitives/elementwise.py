"""Elementwise operations: one family, and its members as a table of derivatives.

Operands have one shape, but a scalar goes with any; dtypes are equal. Promotion and broadcasting are
numpy/'s. Special functions are in special.py, bit operations in bits.py.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Linear, Primitive, Zero
from weft.errors import DtypeError, ShapeError
from weft.primitives.layout import (
    _NUMBERS,
    LinearPrimitive,
    batched_at_front,
    broadcast_in_dim,
    literal,
    reduce_sum,
    zeros,
)

KINDS: dict[str, Callable[[np.dtype], bool]] = {
    "any": lambda d: True,
    "number": lambda d: not dtypes.is_bool(d),
    "real": lambda d: not dtypes.is_complex(d),
    "real number": lambda d: not dtypes.is_complex(d) and not dtypes.is_bool(d),
    "inexact": dtypes.is_inexact,
    "float": dtypes.is_float,
    "complex": dtypes.is_complex,
    "integer": dtypes.is_integer,
    "bool or integer": lambda d: dtypes.is_bool(d) or dtypes.is_integer(d),
}


def same_dtype(dtype: np.dtype) -> np.dtype:
    """The result has the operands' dtype."""
    return dtype


def to_bool(dtype: np.dtype) -> np.dtype:
    """The result is a truth value."""
    return np.dtype(bool)


class Elementwise(Primitive):
    """A family: out[i] = f(x[i], y[i], ...); a scalar operand goes with every i.

    `op` is the StableHLO operation, or a function (hlo, aval, *values) -> Value that writes it.
    derivs[k](t, out, *args) is the tangent of `out` when only argument k moves by t; None where the
    derivative is zero. For a primitive linear in argument k, adjoints[k](ct, *args) is its transpose
    in that argument. `takes` names the dtypes it is for, `result` the dtype that comes out.
    """

    def __init__(
        self,
        name: str,
        op: str | Callable,
        derivs: Sequence[Callable | None] = (None,),
        adjoints: Sequence[Callable | None] = (),
        takes: str = "number",
        result: Callable[[np.dtype], np.dtype] = same_dtype,
        doc: str = "",
        **attrs: str,
    ):
        self.name = name
        self.op = op if callable(op) or "." in op else "stablehlo." + op
        self.derivs = derivs
        self.adjoints = adjoints
        self.takes = takes
        self.accepts = KINDS[takes]
        self.result = result
        self.attrs = attrs
        if doc:
            self.__doc__ = doc

    def abstract_eval(self, *avals, **params):
        first = avals[0]
        shape = first.shape
        weak = first.weak_type
        for a in avals:
            if a.dtype != first.dtype:
                raise DtypeError(
                    f"{self.name}: operands must have equal dtypes; "
                    f"got {', '.join(map(str, avals))}."
                )
            if a.shape != shape:
                if a.shape and shape:
                    raise ShapeError(
                        f"{self.name}: operands must have equal shapes; "
                        f"got {', '.join(map(str, avals))}."
                    )
                shape = shape or a.shape
            weak = weak and a.weak_type
        if not self.accepts(first.dtype):
            raise DtypeError(
                f"{self.name}: operands must be of {self.takes} dtype; "
                f"got {', '.join(map(str, avals))}."
            )
        return [ShapedArray(shape, self.result(first.dtype), weak)]

    def lower(self, hlo, *values, **params):
        (aval,) = self.type_of(tuple(v.aval for v in values), params)
        values = [hlo.spread(v, aval) if v.aval.shape != aval.shape else v for v in values]
        if type(self.op) is str:
            return hlo.op(self.op, values, [aval], **self.attrs)
        return [self.op(hlo, aval, *values, **params)]

    def jvp(self, primals, tangents, **params):
        (out,) = self.bind(*primals, **params)
        total = None
        for deriv, t in zip(self.derivs, tangents, strict=True):
            if deriv is None or type(t) is Zero:
                continue
            dot = deriv(t, out, *primals, **params)
            total = dot if total is None else add(total, dot)
        aval = typeof(out)
        if total is None:
            return [out], [Zero(aval.to_tangent())]
        if typeof(total).shape != aval.shape:
            total = broadcast_in_dim(total, aval.shape, ())
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
            g = adjoint(ct, *args, **params)
            shape = typeof(g).shape
            if shape != x.aval.shape:
                g = reduce_sum(g, tuple(range(len(shape))))
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
            return self.bind(*args, **params), [first]
        shapes = [
            element_shape(typeof(x).shape, d)
            for x, d in zip(args, dims, strict=True)
        ]
        shape = builtins.max(shapes, key=len)
        args = [
            x if r == 0 else self.batched_operand(x, d, axis.size, shape)
            for x, d, r in zip(args, dims, ranks, strict=True)
        ]
        return self.bind(*args, **params), [0]

    def batched_operand(self, x: Any, dim: int | None, size: int, shape: tuple) -> Any:
        """An operand with a mapped axis in front, a mapped scalar repeated to the others' shape."""
        x = batched_at_front(x, dim, size)
        if typeof(x).ndim == 1 and shape:
            return broadcast_in_dim(x, (size, *shape), (0,))
        return x


def element_shape(shape: tuple[int, ...], dim: int | None) -> tuple[int, ...]:
    """A shape without its mapped axis."""
    return shape if dim is None else shape[:dim] + shape[dim + 1 :]


def match(x: Any, y: Any) -> tuple[Any, Any]:
    """Where one of two operands is a Python number, give it the other's dtype."""
    if type(y) in _NUMBERS:
        if type(x) not in _NUMBERS:
            y = literal(y, typeof(x).dtype)
    elif type(x) in _NUMBERS:
        x = literal(x, typeof(y).dtype)
    return x, y


def unary_op(prim: Primitive) -> Callable[[Any], Any]:
    """The function of a one-operand primitive, `prim.bind(x)[0]`."""

    def fun(x: Any) -> Any:
        return prim.bind(x)[0]

    return named(fun, prim)


def binary_op(prim: Primitive) -> Callable[[Any, Any], Any]:
    """The function of a two-operand primitive; a Python number takes the other operand's dtype."""

    def fun(x: Any, y: Any) -> Any:
        if type(x) in _NUMBERS or type(y) in _NUMBERS:
            x, y = match(x, y)
        return prim.bind(x, y)[0]

    return named(fun, prim)


def named(fun: Callable, prim: Primitive) -> Callable:
    """`fun` with the name and documentation of a primitive."""
    fun.__name__ = fun.__qualname__ = prim.name
    fun.__doc__ = prim.__doc__
    return fun


# --- arithmetic -----------------------------------------------------------------------------

add_p = Elementwise(
    "add",
    "add",
    [lambda t, z, x, y: t, lambda t, z, x, y: t],
    [lambda ct, x, y: ct, lambda ct, x, y: ct],
    doc="x + y.",
)
sub_p = Elementwise(
    "sub",
    "subtract",
    [lambda t, z, x, y: t, lambda t, z, x, y: neg(t)],
    [lambda ct, x, y: ct, lambda ct, x, y: neg(ct)],
    doc="x - y.",
)
mul_p = Elementwise(
    "mul",
    lambda hlo, aval, x, y: hlo.op(
        "stablehlo.and" if dtypes.is_bool(aval.dtype) else "stablehlo.multiply", [x, y], [aval]
    )[0],
    [lambda t, z, x, y: mul(t, y), lambda t, z, x, y: mul(x, t)],
    [lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)],
    takes="any",
    doc="x * y.",
)
div_p = Elementwise(
    "div",
    "divide",
    # -t*z/y, not -t*x/y**2: one fewer overflow, and z is at hand
    [lambda t, z, x, y: div(t, y), lambda t, z, x, y: neg(div(mul(t, z), y))],
    [lambda ct, x, y: div(ct, y), None],
    doc="x / y; of integers, rounded towards zero. Integer division by zero is -1.",
)
rem_p = Elementwise(
    "rem",
    "remainder",
    [
        lambda t, z, x, y: t,
        # rem(x, y) = x - y * trunc(x / y)
        lambda t, z, x, y: neg(mul(t, truncate(div(x, y)))),
    ],
    takes="real number",
    doc="The remainder of x / y, with the sign of x.",
)
neg_p = Elementwise(
    "neg", "negate", [lambda t, y, x: neg(t)], [lambda ct, x: neg(ct)], doc="-x."
)
max_p = Elementwise(
    "max",
    "maximum",
    [
        lambda t, z, x, y: mul(t, larger_share(x, y)),
        lambda t, z, x, y: mul(t, larger_share(y, x)),
    ],
    takes="any",
    doc="The larger of x and y; NaN where either is. Where they tie each has half the derivative.",
)
min_p = Elementwise(
    "min",
    "minimum",
    [
        lambda t, z, x, y: mul(t, larger_share(y, x)),
        lambda t, z, x, y: mul(t, larger_share(x, y)),
    ],
    takes="any",
    doc="The smaller of x and y; NaN where either is. Where they tie each has half the derivative.",
)


def larger_share(x: Any, y: Any) -> Any:
    """1 where x > y, 1/2 where they tie, else 0, in the dtype of the operands."""
    dtype = typeof(x).dtype
    tie = select(eq(x, y), literal(0.5, dtype), literal(0, dtype))
    return select(gt(x, y), literal(1, dtype), tie)


def truncate(x: Any) -> Any:
    """x rounded towards zero."""
    return mul(sign(x), floor(abs(x)))


class IntegerPow(Elementwise):
    """x ** y for an integer y known now. x ** 0 is 1, also where x is 0 or NaN."""

    def abstract_eval(self, x, *, y):
        if y < 0 and dtypes.is_integer(x.dtype):
            raise DtypeError(
                f"integer_pow: a negative power needs a float or complex base; got {x}, power {y}."
            )
        return super().abstract_eval(x)


def lower_integer_pow(hlo: Any, aval: ShapedArray, x: Any, *, y: int) -> Any:
    """By repeated squaring: 2 log2(y) multiplications."""
    if y == 0:
        return hlo.constant(1, aval)
    n, square_, out = -y if y < 0 else y, x, None
    while n:
        if n & 1:
            out = square_ if out is None else hlo.like("multiply", out, square_)[0]
        n >>= 1
        if n:
            (square_,) = hlo.like("multiply", square_, square_)
    return hlo.like("divide", hlo.constant(1, aval), out)[0] if y < 0 else out


integer_pow_p = IntegerPow(
    "integer_pow",
    lower_integer_pow,
    [lambda t, z, x, *, y: mul(t, mul(literal(y, typeof(x).dtype), integer_pow(x, y - 1)))],
)


def integer_pow(x: Any, y: int) -> Any:
    """x ** y for a Python integer y."""
    if y == 1:
        return x
    return integer_pow_p.bind(x, y=int(y))[0]


pow_p = Elementwise(
    "pow",
    "power",
    [
        # y * x ** (y-1), which is 0 for y = 0 even where x is 0
        lambda t, z, x, y: mul(
            t,
            mul(y, pow(x, select(eq(y, 0), literal(1, typeof(y).dtype), sub(y, 1)))),
        ),
        # log(x) * z, which is 0 for x = 0 < y, where log(0) * 0 would be NaN
        lambda t, z, x, y: mul(
            t, mul(log(select(eq(x, 0), literal(1, typeof(x).dtype), x)), z)
        ),
    ],
    doc="x ** y. NaN for a negative real x and a y that is no integer.",
)
square_p = Elementwise(
    "square",
    lambda hlo, aval, x: hlo.like("multiply", x, x)[0],
    [lambda t, y, x: mul(t, mul(2, x))],
    doc="x * x.",
)
sign_p = Elementwise(
    "sign",
    lambda hlo, aval, x: lower_sign(hlo, aval, x),
    doc="-1, 0 or 1 as x is negative, zero or positive; x/|x| for complex x; NaN for NaN.",
)


def lower_sign(hlo: Any, aval: ShapedArray, x: Any) -> Any:
    """StableHLO's sign is for signed types; an unsigned number's is 0 or 1."""
    if dtypes.is_integer(aval.dtype) and not dtypes.is_signed(aval.dtype):
        zero = hlo.constant(0, aval)
        pred = lower_compare("NE")(hlo, ShapedArray(aval.shape, np.bool_), x, zero)
        return hlo.convert(pred, aval.dtype)
    return hlo.like("sign", x)[0]


floor_p = Elementwise("floor", "floor", takes="float", doc="The largest integer <= x.")
ceil_p = Elementwise("ceil", "ceil", takes="float", doc="The smallest integer >= x.")
is_finite_p = Elementwise(
    "is_finite", "is_finite", takes="float", result=to_bool, doc="x is neither inf nor NaN."
)
round_p = Elementwise(
    "round",
    lambda hlo, aval, x, *, rounding_method: hlo.like(
        ("round_nearest_afz", "round_nearest_even")[rounding_method], x
    )[0],
    takes="float",
    doc="The nearest integer; a tie goes away from zero (method 0) or to the even one (1).",
)

# --- exponentials and roots -----------------------------------------------------------------

exp_p = Elementwise("exp", "exponential", [lambda t, y, x: mul(t, y)], takes="inexact", doc="e ** x.")
exp2_p = Elementwise(
    "exp2",
    lambda hlo, aval, x: hlo.like("exponential", hlo.like("multiply", x, hlo.constant(np.log(2), aval))[0])[0],
    [lambda t, y, x: mul(t, mul(float(np.log(2)), y))],
    takes="inexact",
    doc="2 ** x.",
)
expm1_p = Elementwise(
    "expm1",
    "exponential_minus_one",
    [lambda t, y, x: mul(t, add(y, 1))],
    takes="inexact",
    doc="exp(x) - 1, exact to rounding near 0.",
)
log_p = Elementwise(
    "log", "log", [lambda t, y, x: div(t, x)], takes="inexact", doc="The natural logarithm."
)
log2_p = Elementwise(
    "log2",
    lambda hlo, aval, x: hlo.like("divide", hlo.like("log", x)[0], hlo.constant(np.log(2), aval))[0],
    [lambda t, y, x: div(t, mul(float(np.log(2)), x))],
    takes="inexact",
    doc="The logarithm to base 2.",
)
log1p_p = Elementwise(
    "log1p",
    "log_plus_one",
    [lambda t, y, x: div(t, add(x, 1))],
    takes="inexact",
    doc="log(1 + x), exact to rounding near 0.",
)
sqrt_p = Elementwise(
    "sqrt", "sqrt", [lambda t, y, x: div(mul(t, 0.5), y)], takes="inexact", doc="The square root."
)
rsqrt_p = Elementwise(
    "rsqrt",
    "rsqrt",
    [lambda t, y, x: mul(t, mul(-0.5, div(y, x)))],
    takes="inexact",
    doc="1 / sqrt(x).",
)
cbrt_p = Elementwise(
    "cbrt",
    "cbrt",
    [lambda t, y, x: mul(t, mul(1 / 3, div(y, x)))],
    takes="float",
    doc="The real cube root.",
)
logistic_p = Elementwise(
    "logistic",
    "logistic",
    [lambda t, y, x: mul(t, mul(y, sub(1, y)))],
    takes="inexact",
    doc="1 / (1 + exp(-x)).",
)

# --- trigonometric and hyperbolic -----------------------------------------------------------

sin_p = Elementwise("sin", "sine", [lambda t, y, x: mul(t, cos(x))], takes="inexact", doc="The sine.")
cos_p = Elementwise(
    "cos", "cosine", [lambda t, y, x: neg(mul(t, sin(x)))], takes="inexact", doc="The cosine."
)
tan_p = Elementwise(
    "tan",
    "tan",
    [lambda t, y, x: mul(t, add(1, square(y)))],
    takes="inexact",
    doc="The tangent.",
)
tanh_p = Elementwise(
    "tanh",
    "tanh",
    # (1+y)(1-y), not 1-y**2: no cancellation where y is near 1
    [lambda t, y, x: mul(t, mul(add(1, y), sub(1, y)))],
    takes="inexact",
    doc="The hyperbolic tangent.",
)
asin_p = Elementwise(
    "asin",
    "chlo.asin",
    [lambda t, y, x: mul(t, rsqrt(mul(sub(1, x), add(1, x))))],
    takes="inexact",
    doc="The inverse sine.",
)
acos_p = Elementwise(
    "acos",
    "chlo.acos",
    [lambda t, y, x: neg(mul(t, rsqrt(mul(sub(1, x), add(1, x)))))],
    takes="inexact",
    doc="The inverse cosine.",
)
atan_p = Elementwise(
    "atan",
    "chlo.atan",
    [lambda t, y, x: div(t, add(1, square(x)))],
    takes="inexact",
    doc="The inverse tangent.",
)
sinh_p = Elementwise(
    "sinh", "chlo.sinh", [lambda t, y, x: mul(t, cosh(x))], takes="inexact", doc="Hyperbolic sine."
)
cosh_p = Elementwise(
    "cosh", "chlo.cosh", [lambda t, y, x: mul(t, sinh(x))], takes="inexact", doc="Hyperbolic cosine."
)
asinh_p = Elementwise(
    "asinh",
    "chlo.asinh",
    [lambda t, y, x: mul(t, rsqrt(add(square(x), 1)))],
    takes="inexact",
    doc="The inverse hyperbolic sine.",
)
acosh_p = Elementwise(
    "acosh",
    "chlo.acosh",
    [lambda t, y, x: mul(t, rsqrt(mul(sub(x, 1), add(x, 1))))],
    takes="inexact",
    doc="The inverse hyperbolic cosine; NaN below 1.",
)
atanh_p = Elementwise(
    "atanh",
    "chlo.atanh",
    [lambda t, y, x: div(t, mul(sub(1, x), add(1, x)))],
    takes="inexact",
    doc="The inverse hyperbolic tangent.",
)
atan2_p = Elementwise(
    "atan2",
    "atan2",
    [
        lambda t, z, x, y: mul(t, div(y, add(square(x), square(y)))),
        lambda t, z, x, y: neg(mul(t, div(x, add(square(x), square(y))))),
    ],
    takes="inexact",
    doc="The angle of the point (y, x): atan(x / y) in the right quadrant.",
)

# --- complex numbers ------------------------------------------------------------------------

abs_p = Elementwise(
    "abs",
    lambda hlo, aval, x: x
    if dtypes.is_integer(aval.dtype) and not dtypes.is_signed(aval.dtype)
    else hlo.op("stablehlo.abs", [x], [aval])[0],
    [lambda t, y, x: abs_tangent(t, y, x)],
    result=lambda d: dtypes.real_dtype(d) if dtypes.is_complex(d) else d,
    doc="|x|, real for complex x. The derivative at 0 is 0.",
)


def abs_tangent(t: Any, y: Any, x: Any) -> Any:
    """The component of t along x."""
    if not dtypes.is_complex(typeof(x).dtype):
        return mul(t, sign(x))
    one = literal(1, typeof(y).dtype)
    safe = select(eq(y, 0), one, y)
    return div(add(mul(real(t), real(x)), mul(imag(t), imag(x))), safe)


real_p = Elementwise(
    "real",
    "real",
    [lambda t, y, x: real(t)],
    [lambda ct, x: complex(ct, literal(0, typeof(ct).dtype))],
    takes="complex",
    result=dtypes.real_dtype,
    doc="The real part.",
)
imag_p = Elementwise(
    "imag",
    "imag",
    [lambda t, y, x: imag(t)],
    # <ct, imag t> = real part of (-i ct) t: the pairing has no conjugate
    [lambda ct, x: complex(literal(0, typeof(ct).dtype), neg(ct))],
    takes="complex",
    result=dtypes.real_dtype,
    doc="The imaginary part.",
)
complex_p = Elementwise(
    "complex",
    "complex",
    [
        lambda t, z, x, y: complex(t, zeros(typeof(t))),
        lambda t, z, x, y: complex(zeros(typeof(t)), t),
    ],
    [lambda ct, x, y: real(ct), lambda ct, x, y: imag(neg(ct))],
    takes="float",
    result=dtypes.complex_dtype,
    doc="x + i y.",
)


class Conj(LinearPrimitive):
    """The complex conjugate. `input_dtype` says what the operand was, for the transpose."""

    name = "conj"

    def abstract_eval(self, x, *, input_dtype):
        if not dtypes.is_inexact(x.dtype):
            raise DtypeError(f"conj: operands must be of inexact dtype; got {x}.")
        return [ShapedArray(x.shape, dtypes.complex_dtype(dtypes.real_dtype(x.dtype)))]

    def lower(self, hlo, x, *, input_dtype):
        part = ShapedArray(x.aval.shape, dtypes.real_dtype(x.aval.dtype))
        out = ShapedArray(x.aval.shape, dtypes.complex_dtype(part.dtype))
        if not dtypes.is_complex(x.aval.dtype):
            return hlo.op("stablehlo.complex", [x, hlo.constant(0, part)], [out])
        (re,) = hlo.op("stablehlo.real", [x], [part])
        (im,) = hlo.op("stablehlo.imag", [x], [part])
        return hlo.op("stablehlo.complex", [re, hlo.like("negate", im)[0]], [out])

    def transpose(self, cts, x, *, input_dtype):
        ct = conj(cts[0])
        return [ct if dtypes.is_complex(x.aval.dtype) else real(ct)]

    def batch(self, axis, args, dims, *, input_dtype):
        return self.bind(*args, input_dtype=input_dtype), list(dims)


conj_p = Conj()


def conj(x: Any) -> Any:
    """The complex conjugate; a real x becomes complex."""
    return conj_p.bind(x, input_dtype=typeof(x).dtype)[0]


# --- comparison and choice ------------------------------------------------------------------


def lower_compare(direction: str) -> Callable:
    """What writes a comparison: floats are compared as IEEE 754 says, so NaN differs from all."""

    def write(hlo: Any, aval: ShapedArray, x: Any, y: Any) -> Any:
        dtype = x.aval.dtype
        if dtypes.is_inexact(dtype):
            kind = "FLOAT"
        else:
            kind = "SIGNED" if dtypes.is_signed(dtype) else "UNSIGNED"
        return hlo.op(
            "stablehlo.compare",
            [x, y],
            [aval],
            comparison_direction=f"#stablehlo<comparison_direction {direction}>",
            compare_type=f"#stablehlo<comparison_type {kind}>",
        )[0]

    return write


def comparison(name: str, takes: str, doc: str) -> Elementwise:
    """A comparison, whose derivative is zero."""
    return Elementwise(name, lower_compare(name.upper()), [None, None], (), takes, to_bool, doc)


eq_p = comparison("eq", "any", "x == y.")
ne_p = comparison("ne", "any", "x != y.")
lt_p = comparison("lt", "real", "x < y.")
le_p = comparison("le", "real", "x <= y.")
gt_p = comparison("gt", "real", "x > y.")
ge_p = comparison("ge", "real", "x >= y.")


class SelectN(Primitive):
    """out[i] = cases[which[i]][i]; `which` is bool for two cases, int32 for any number.

    Shapes: cases are equal in shape; `which` too, or a scalar, as may be a case.
    """

    name = "select_n"

    def abstract_eval(self, which, *cases):
        if not cases:
            raise ShapeError("select_n: needs at least one case; got none.")
        if dtypes.is_bool(which.dtype):
            if len(cases) > 2:
                raise DtypeError(
                    f"select_n: a bool `which` chooses between two cases; got {len(cases)}."
                )
        elif which.dtype != np.int32:
            raise DtypeError(f"select_n: `which` must be bool or int32; got {which}.")
        shape = next((c.shape for c in cases if c.shape), which.shape)
        if any(a.shape not in ((), shape) for a in (which, *cases)):
            raise ShapeError(
                "select_n: `which` and the cases must have equal shapes; "
                f"got {', '.join(map(str, (which, *cases)))}."
            )
        if any(c.dtype != cases[0].dtype for c in cases):
            raise DtypeError(
                "select_n: cases must have equal dtypes; "
                f"got {', '.join(map(str, cases))}."
            )
        weak = all(c.weak_type for c in cases)
        return [ShapedArray(shape, cases[0].dtype, weak)]

    def lower(self, hlo, which, *cases):
        (aval,) = self.type_of(tuple(v.aval for v in (which, *cases)), {})
        cases = [hlo.spread(c, aval) for c in cases]
        if len(cases) == 1:
            return [cases[0]]
        if dtypes.is_bool(which.aval.dtype):  # StableHLO takes a scalar predicate as it is
            return hlo.op("stablehlo.select", [which, cases[1], cases[0]], [aval])
        which = hlo.spread(which, aval)
        out = cases[-1]
        for i in reversed(range(len(cases) - 1)):
            k = hlo.constant(i, which.aval)
            pred_aval = ShapedArray(aval.shape, np.bool_)
            pred = lower_compare("LE")(hlo, pred_aval, which, k)
            (out,) = hlo.op("stablehlo.select", [pred, cases[i], out], [aval])
        return [out]

    def jvp(self, primals, tangents):
        which, *cases = primals
        (out,) = self.bind(which, *cases)
        ts = tangents[1:]
        if all(isinstance(t, Zero) for t in ts):
            return [out], [Zero(typeof(out).to_tangent())]
        zero = literal(0, typeof(out).dtype)
        ts = [zero if isinstance(t, Zero) else t for t in ts]
        (dot,) = self.bind(which, *ts)
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
            (g,) = self.bind(which, *[ct if j == i else zero for j in range(len(cases))])
            if typeof(g).shape != c.aval.shape:
                g = reduce_sum(g, tuple(range(typeof(g).ndim)))
            outs.append(g)
        return outs

    def batch(self, axis, args, dims):
        return Elementwise.batch(self, axis, args, dims)  # type: ignore[arg-type]

    batched_operand = Elementwise.batched_operand


select_n_p = SelectN()


def select_n(which: Any, *cases: Any) -> Any:
    """Choose elementwise: cases[which]; False is the first case, True the second."""
    return select_n_p.bind(which, *cases)[0]


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Elementwise `on_true if pred else on_false`. Both are computed; only one's gradient flows."""
    on_true, on_false = match(on_true, on_false)
    return select_n_p.bind(pred, on_false, on_true)[0]


clamp_p = Elementwise(
    "clamp",
    "clamp",
    [
        lambda t, z, lo, x, hi: select(gt(lo, x), t, zeros(typeof(t))),
        lambda t, z, lo, x, hi: select(bitwise_and(gt(x, lo), lt(x, hi)), t, zeros(typeof(t))),
        lambda t, z, lo, x, hi: select(lt(hi, x), t, zeros(typeof(t))),
    ],
    takes="real",
    doc="x held between lo and hi: min(max(lo, x), hi). The derivative in x is 0 at the bounds.",
)


def clamp(lo: Any, x: Any, hi: Any) -> Any:
    """x held between lo and hi."""
    lo, hi = match(x, lo)[1], match(x, hi)[1]
    return clamp_p.bind(lo, x, hi)[0]


and_p = Elementwise("and", "and", [None, None], takes="bool or integer", doc="x & y, bit by bit.")
or_p = Elementwise("or", "or", [None, None], takes="bool or integer", doc="x | y, bit by bit.")
xor_p = Elementwise("xor", "xor", [None, None], takes="bool or integer", doc="x ^ y, bit by bit.")
not_p = Elementwise("not", "not", takes="bool or integer", doc="~x, bit by bit.")

# --- conversion -----------------------------------------------------------------------------


class ConvertElementType(LinearPrimitive):
    """x in another dtype; complex to real drops the imaginary part, to bool is x != 0.

    `weak_type` says whether the result is weak.
    """

    name = "convert_element_type"

    def abstract_eval(self, x, *, new_dtype, weak_type, sharding=None):
        return [ShapedArray(x.shape, new_dtype, weak_type)]

    def lower(self, hlo, x, *, new_dtype, weak_type, sharding=None):
        old = x.aval.dtype
        if old == new_dtype:
            return [x]
        if dtypes.is_bool(new_dtype):
            zero = hlo.constant(0, x.aval.strong())
            return [lower_compare("NE")(hlo, ShapedArray(x.aval.shape, np.bool_), x, zero)]
        if dtypes.is_complex(old) and not dtypes.is_complex(new_dtype):
            part = ShapedArray(x.aval.shape, dtypes.real_dtype(old))
            (x,) = hlo.op("stablehlo.real", [x], [part])
        return [hlo.convert(x, new_dtype)]

    def jvp(self, primals, tangents, *, new_dtype, weak_type, sharding=None):
        outs = self.bind(*primals, new_dtype=new_dtype, weak_type=weak_type)
        (t,) = tangents
        target = typeof(outs[0]).to_tangent()
        if isinstance(t, Zero) or target.dtype == dtypes.float0:
            return outs, [Zero(target)]
        return outs, self.bind(t, new_dtype=new_dtype, weak_type=weak_type)

    def transpose(self, cts, x, *, new_dtype, weak_type, sharding=None):
        return self.bind(cts[0], new_dtype=x.aval.dtype, weak_type=x.aval.weak_type)

    def batch(self, axis, args, dims, **params):
        return self.bind(*args, **params), list(dims)

    def pretty_params(self, params):
        return {k: v for k, v in params.items() if k != "sharding"}


convert_element_type_p = ConvertElementType()


def convert(x: Any, dtype: np.dtype, weak_type: bool = False) -> Any:
    """x in `dtype`, itself where it has that type already."""
    aval = typeof(x)
    if aval.dtype == dtype and aval.weak_type == weak_type and type(x) not in _NUMBERS:
        return x
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type)[0]


class Copy(LinearPrimitive):
    """The same values in a buffer of their own."""

    name = "copy"

    def abstract_eval(self, x):
        return [x]

    def lower(self, hlo, x):
        return [x]

    def transpose(self, cts, x):
        return [cts[0]]

    def batch(self, axis, args, dims):
        return self.bind(*args), list(dims)


copy_p = Copy()
copy = unary_op(copy_p)

add, sub, mul, div, rem = map(binary_op, (add_p, sub_p, mul_p, div_p, rem_p))
max, min, pow, atan2 = map(binary_op, (max_p, min_p, pow_p, atan2_p))
eq, ne, lt, le, gt, ge = map(binary_op, (eq_p, ne_p, lt_p, le_p, gt_p, ge_p))
bitwise_and, bitwise_or, bitwise_xor = map(binary_op, (and_p, or_p, xor_p))
neg, sign, floor, ceil, abs = map(unary_op, (neg_p, sign_p, floor_p, ceil_p, abs_p))
exp, exp2, expm1, log, log2 = map(unary_op, (exp_p, exp2_p, expm1_p, log_p, log2_p))
log1p, sqrt, rsqrt, cbrt = map(unary_op, (log1p_p, sqrt_p, rsqrt_p, cbrt_p))
logistic, square, is_finite = map(unary_op, (logistic_p, square_p, is_finite_p))
sin, cos, tan, tanh = map(unary_op, (sin_p, cos_p, tan_p, tanh_p))
asin, acos, atan = map(unary_op, (asin_p, acos_p, atan_p))
sinh, cosh = map(unary_op, (sinh_p, cosh_p))
asinh, acosh, atanh = map(unary_op, (asinh_p, acosh_p, atanh_p))
real, imag, bitwise_not = map(unary_op, (real_p, imag_p, not_p))
complex = binary_op(complex_p)
