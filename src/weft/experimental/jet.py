"""`jet`: the power series of a function along a path, by Taylor-mode differentiation.

How series go through primitives is transforms/jet.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.functions import FlatFun, check_callable
from weft.api.grad import jvp
from weft.core.aval import is_valid_value, typeof
from weft.core.primitive import Primitive, Zero
from weft.core.source import boundary
from weft.core.trace import use
from weft.errors import PytreeError, ShapeError
from weft.numpy.promotion import as_array, as_inexact
from weft.primitives.elementwise import div, mul
from weft.primitives.layout import broadcast_in_dim, convert, copy, instantiate, zeros
from weft.pytrees import flatten, structure, tree_map, unflatten
from weft.run.rules import forget_rules
from weft.scipy.special import factorial
from weft.transforms.jet import JetTrace, JetTracer, fill_terms
from weft.transforms.jet import jet as flat_jet
from weft.util import list_public, unzip2

__all__ = [
    "JetTrace", "JetTracer", "ZeroSeries", "ZeroTerm", "def_comp", "def_deriv", "deflinear",
    "defzero", "deriv_prop", "fact", "jet", "jet_rules", "linear_prop", "zero_prop", "zero_series",
    "zero_term",
]  # fmt: skip
__dir__ = list_public(__name__)


def fact(n: Any) -> Any:
    """Compute the factorial of a number, or of each element of an array.

    `jet` uses the factorials to convert between derivatives and coefficients of a series. The
    function is `weft.scipy.special.factorial`: a number that is not whole gives the gamma function
    at `n + 1`, and -1 gives 0.

    Args:
      n: a number or an array of any shape and real dtype.

    Returns:
      A float array of the shape of `n`. Integers give the default float dtype.

    >>> fact(4)
    Array(24., dtype=float32, weak_type=True)
    >>> fact(jnp.arange(5))
    Array([ 1.,  1.,  2.,  6., 24.], dtype=float32)
    """
    return factorial(n)


@boundary
def jet(
    fun: Callable, primals: Sequence, series: Sequence, factorial_scaled: bool = True, **_: Any
) -> tuple[Any, Any]:
    """Compute a function's value and higher derivatives along a path: `(value, terms)`.

    The path of argument i is `primals[i] + series[i][0] s + series[i][1] s**2 / 2! + ...`. The
    terms are the derivatives of fun in s at 0, up to the order of the path. Order K costs about
    K**2 / 2 times the function, while K nested `jvp` cost 2**K times. `jet` composes with jit, vmap
    and derivatives, and differentiates loops and branches.

    It supports every function that `jvp` differentiates, since the series follow from the rules of
    `jvp`. Sums, products, quotients, operations that are linear in one operand, loops and branches
    have rules of their own. A function with only a `custom_vjp` is traced; a `custom_jvp` is used.
    Source: Griewank and Walther, Evaluating Derivatives, ch. 13; Bettencourt, Johnson and Duvenaud,
    Taylor-Mode Automatic Differentiation for Higher-Order Derivatives, 2019.

    Args:
      fun: a function from pytrees of arrays to a pytree of arrays.
      primals: the arguments, a tuple or list. Integers count as floats.
      series: for each argument the terms of its path, a tuple or list, all of one length. For a
        pytree it is either a list of pytrees like it, or a pytree of lists.
      factorial_scaled: if True, the default, the terms are derivatives. If False they are the
        coefficients of s**k, derivatives over k!, in `series` and in the result.

    Returns:
      The value, and the same structure with a list of terms for each array.

    >>> y, terms = jet(jnp.exp, (0.0,), ([1.0, 0.0, 0.0],))  # exp(s)
    >>> print(y, *terms)
    1.0 1.0 1.0 1.0
    >>> y, terms = jet(lambda x: x**3, (2.0,), ([1.0, 0.0, 0.0],), factorial_scaled=False)
    >>> print(y, *terms)  # (2 + s)**3
    8.0 12.0 6.0 1.0
    """
    check_callable("jet", fun)
    for name, x in (("primals", primals), ("series", series)):
        if not isinstance(x, tuple | list):
            raise TypeError(
                f"jet: {name} must be a tuple or a list with an entry for each argument; "
                f"got {x!r}. Hint: jet(f, (x,), ([v, 0.0],))"
            )
    if len(primals) != len(series):
        raise PytreeError(
            f"jet: series must have an entry for each of {len(primals)} primals; got {len(series)}."
        )
    leaves, tree = flatten((tuple(primals), {}))
    for x in leaves:
        if not is_valid_value(x):
            raise TypeError(f"jet: primals must be pytrees of arrays or numbers; got {x!r}.")
    values = [as_inexact("jet", x) for x in leaves]
    most = max([len(s) for s in series if isinstance(s, tuple | list)], default=0)
    series = [[zero_term] * most if isinstance(s, ZeroSeries) else s for s in series]
    terms = [t for x, s in zip(primals, series, strict=True) for t in split_terms(x, s)]
    orders = sorted({len(t) for t in terms})
    if len(orders) > 1:
        raise ShapeError(
            f"jet: all arguments must have equally many terms; got {orders}. "
            "Hint: 0.0 for a term that is zero."
        )
    order = orders[0] if orders else 0
    scales = [math.factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
    path = [
        [scale_term(div, check_term(t, x), n) for t, n in zip(ts, scales, strict=True)]
        for x, ts in zip(values, terms, strict=True)
    ]
    flat = FlatFun(fun, tree, "jet")
    outs, found = flat_jet(flat, values, path, order)
    lists = [
        [find_zeros(y) if t is None else scale_term(mul, t, n) for t, n in zip(ts, scales)]
        for y, ts in zip(outs, found, strict=True)
    ]
    return unflatten(flat.out_tree, outs), unflatten(flat.out_tree, lists)


class ZeroTerm:
    """The class of `zero_term`: a term that is zero, of any shape.

    In the series of an argument, `zero_term` stands for an array of zeros that has the shape and
    dtype of the argument. The number 0.0 does the same.

    >>> y, terms = jet(jnp.sin, (jnp.zeros(2),), ([jnp.ones(2), zero_term],))
    >>> print(*terms)
    [1. 1.] [0. 0.]
    """


class ZeroSeries:
    """The class of `zero_series`: a series that has only zero terms.

    In the list of series, `zero_series` stands for the series of an argument that does not move.
    Its length is the length of the other series.

    >>> y, terms = jet(jnp.multiply, (2.0, 3.0), ([1.0, 0.0], zero_series))
    >>> print(y, *terms)
    6.0 3.0 0.0
    """


zero_term, zero_series = ZeroTerm(), ZeroSeries()


# --- rules of user-defined primitives, which otherwise follow from their derivatives -------------


class JetRules:
    """Rules of primitives for power series, in a dict as in JAX.

    `rule(primals, series, **params)` returns the value and its terms. The terms are coefficients of
    s**k, in the result and in `series`, which has a list of terms for each operand. If the
    primitive has several results, the rule returns lists of values and of terms.
    """

    def __setitem__(self, prim: Primitive, rule: Callable) -> None:
        def run_series(trace: JetTrace, args: Sequence, params: dict) -> list:
            primals, terms = unzip2(map(trace.split_terms, args))
            filled = [fill_terms([x], [ts], [True]) for x, ts in zip(primals, terms, strict=True)]
            with use(trace.parent):  # type: ignore[arg-type]
                outs, found = rule(tuple(primals), filled, **params)
            if not prim.multiple_results:
                outs, found = [outs], [found]
            return list(map(trace.join_terms, outs, found))

        vars(prim).update(run_series=run_series, jet_rule=rule)

    def __getitem__(self, prim: Primitive) -> Callable:
        if prim not in self:
            raise KeyError(prim)

        def rule(primals: Sequence, series: Sequence, **params: Any) -> tuple:
            fun = lambda *xs: prim.bind(*xs, **params)
            return jet(fun, tuple(primals), tuple(map(list, series)), factorial_scaled=False)

        return vars(prim).get("jet_rule", rule)

    def __contains__(self, prim: Primitive) -> bool:
        return bool({"jet_rule", "jvp"} & {*vars(prim)}) or type(prim).jvp is not Primitive.jvp


jet_rules = JetRules()


def set_jvp(prim: Primitive, rule: Callable) -> None:
    """Give a primitive its derivative: `rule(primals, tangents, **params)`, as JAX's rules are."""

    def method(primals: Sequence, tangents: Sequence, **params: Any) -> tuple[list, list]:
        out, dot = rule(primals, tangents, **params)
        return (list(out), list(dot)) if prim.multiple_results else ([out], [dot])

    prim.jvp = method  # type: ignore[method-assign]
    for name in ("run_series", "jet_rule"):
        vars(prim).pop(name, None)
    forget_rules()


def def_comp(prim: Primitive, comp: Callable, **kwargs: Any) -> None:
    """Define the derivative of a primitive by a function that computes the same result.

    `jvp`, `grad` and `jet` of the primitive then differentiate `comp`. An earlier derivative of the
    primitive is replaced. The primitive itself still computes the result where no derivative is
    asked for.

    Args:
      prim: a primitive, such as `weft.extend.core.Primitive("name")`.
      comp: a function of the operands of the primitive. It must use operations that have
        derivatives, and must return the result of the primitive.
      kwargs: keyword arguments for `comp`. The parameters of the primitive are passed as well, and
        take precedence.

    Returns:
      None. The primitive is changed in place.

    >>> from weft.extend.core import Primitive
    >>> square_p = Primitive("square")
    >>> _ = square_p.def_abstract_eval(lambda x: x)
    >>> _ = square_p.def_impl(lambda x: x * x)
    >>> def_comp(square_p, lambda x: x * x)
    >>> y, terms = jet(square_p.bind, (3.0,), ([1.0, 0.0],))
    >>> print(y, *terms)
    9.0 6.0 2.0
    """

    def rule(primals: Sequence, tangents: Sequence, **params: Any) -> tuple[Any, Any]:
        fun = lambda *xs: comp(*xs, **{**kwargs, **params})
        return jvp(fun, tuple(primals), tuple(map(instantiate, tangents)))

    set_jvp(prim, rule)


def def_deriv(prim: Primitive, deriv: Callable) -> None:
    """Define the derivative of a primitive that acts on each element of one operand.

    `jvp`, `grad` and `jet` of the primitive then use `deriv`. An earlier derivative of the
    primitive is replaced.

    Args:
      prim: a primitive of one operand, such as `weft.extend.core.Primitive("name")`. Each element
        of the result must depend on the same element of the operand only.
      deriv: a function of the operand that returns the derivative at each element. The parameters
        of the primitive are passed by keyword.

    Returns:
      None. The primitive is changed in place.

    >>> from weft.extend.core import Primitive
    >>> square_p = Primitive("square")
    >>> _ = square_p.def_abstract_eval(lambda x: x)
    >>> _ = square_p.def_impl(lambda x: x * x)
    >>> def_deriv(square_p, lambda x: 2 * x)
    >>> print(weft.grad(square_p.bind)(3.0))
    6.0
    >>> y, terms = jet(square_p.bind, (3.0,), ([1.0, 0.0],))
    >>> print(y, *terms)
    9.0 6.0 2.0
    """

    def rule(primals: Sequence, tangents: Sequence, **params: Any) -> tuple[Any, Any]:
        slope = deriv(*primals, **params)
        return prim.bind(*primals, **params), mul(instantiate(tangents[0]), slope)

    set_jvp(prim, rule)


def deflinear(prim: Primitive) -> None:
    """Define the derivative of a primitive that is linear in all operands together.

    The tangent of the result is then the primitive applied to the tangents of the operands. An
    earlier derivative of the primitive is replaced.

    Args:
      prim: a primitive, such as `weft.extend.core.Primitive("name")`.

    Returns:
      None. The primitive is changed in place.

    >>> from weft.extend.core import Primitive
    >>> double_p = Primitive("double")
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> _ = double_p.def_impl(lambda x: 2 * x)
    >>> deflinear(double_p)
    >>> y, terms = jet(double_p.bind, (3.0,), ([1.0, 5.0],))
    >>> print(y, *terms)
    6.0 2.0 10.0
    """
    whole = lambda xs, **params: prim.bind(*map(instantiate, xs), **params)
    set_jvp(prim, lambda primals, ts, **params: (whole(primals, **params), whole(ts, **params)))


def defzero(prim: Primitive) -> None:
    """Define the derivative of a primitive to be zero, as the derivative of `floor` is.

    An earlier derivative of the primitive is replaced.

    Args:
      prim: a primitive, such as `weft.extend.core.Primitive("name")`.

    Returns:
      None. The primitive is changed in place.

    >>> from weft.extend.core import Primitive
    >>> step_p = Primitive("step")
    >>> _ = step_p.def_abstract_eval(lambda x: x)
    >>> _ = step_p.def_impl(jnp.floor)
    >>> defzero(step_p)
    >>> y, terms = jet(step_p.bind, (3.5,), ([1.0, 0.0],))
    >>> print(y, *terms)
    3.0 0.0 0.0
    """

    def rule(primals: Sequence, tangents: Sequence, **params: Any) -> tuple[Any, Any]:
        out = prim.bind(*primals, **params)
        return out, tree_map(lambda y: Zero(typeof(y).to_tangent()), out)

    set_jvp(prim, rule)


def linear_prop(prim: Primitive, primals_in: Sequence, series_in: Sequence, **params: Any) -> tuple:
    """Compute the result of a primitive and the terms of its series.

    It is `jet` of the primitive only. JAX has this function for linear primitives; here it works
    for every primitive that has a derivative. `zero_prop` is the same function.

    Args:
      prim: the primitive.
      primals_in: the operands, a sequence of arrays or numbers.
      series_in: for each operand the list of the terms of its path, which are derivatives, as for
        `jet`. All lists must have the same length.
      params: the parameters of the primitive.

    Returns:
      The result, and the list of its terms. The list has the length of the lists of `series_in`.
      Each term has the shape and dtype of the result.

    >>> y, terms = linear_prop(lax.neg_p, (1.0,), [[2.0, 3.0]])
    >>> print(y, *terms)
    -1.0 -2.0 -3.0
    """
    return jet(lambda *xs: prim.bind(*xs, **params), tuple(primals_in), tuple(series_in))


zero_prop = linear_prop


def deriv_prop(
    prim: Primitive, deriv: Callable, primals_in: Sequence, series_in: Sequence
) -> tuple:
    """Compute the result of a primitive and the terms of its series, as `linear_prop` does.

    The function accepts the arguments of JAX's `deriv_prop`. The terms follow from the derivative
    that the primitive already has.

    Args:
      prim: the primitive. It has no parameters.
      deriv: the derivative of the primitive. It is ignored.
      primals_in: the operands, a sequence of arrays or numbers.
      series_in: for each operand the list of the terms of its path, which are derivatives, as for
        `jet`. All lists must have the same length.

    Returns:
      The result, and the list of its terms. The list has the length of the lists of `series_in`.
      Each term has the shape and dtype of the result.

    >>> y, terms = deriv_prop(lax.exp_p, jnp.exp, (0.0,), [[1.0, 0.0]])
    >>> print(y, *terms)
    1.0 1.0 1.0
    """
    return linear_prop(prim, primals_in, series_in)


def split_terms(primal: Any, series: Any) -> list[list]:
    """The terms of each leaf of an argument."""
    tree = structure(primal)
    if isinstance(series, tuple | list) and all(structure(t) == tree for t in series):
        return [list(ts) for ts in zip(*[flatten(t)[0] for t in series])] or [[]] * tree.num_leaves
    try:
        lists = tree.flatten_up_to(series)
    except (TypeError, ValueError):
        lists = [None]
    if not all(isinstance(ts, tuple | list) for ts in lists):
        raise PytreeError(
            "jet: a series must be a list of terms like the argument, or like the argument with "
            f"lists of terms; got {structure(series)} where the argument is {tree}."
        )
    return [list(ts) for ts in lists]


def check_term(t: Any, x: Any) -> Any:
    """A term in the type of its primal; a number goes with any shape."""
    if isinstance(t, ZeroTerm):
        t = 0.0
    if not is_valid_value(t):
        raise TypeError(f"jet: terms must be arrays or numbers; got {t!r}.")
    term, aval = as_array(t, "jet"), typeof(x).to_tangent()
    if term.shape not in ((), aval.shape) or (
        dtypes.is_complex(term.dtype) and not dtypes.is_complex(aval.dtype)
    ):
        raise ShapeError(
            f"jet: a term must have the type of its primal; got {term.aval} for {typeof(x)}."
        )
    term = convert(term, aval.dtype)
    return term if term.shape == aval.shape else broadcast_in_dim(term, aval.shape, ())


def find_zeros(y: Any) -> Any:
    """Return the zero term of a result, an array also where a number would do."""
    zero = zeros(typeof(y).to_tangent())
    return copy(zero) if isinstance(zero, float | complex | np.inexact) else zero


def scale_term(op: Callable, x: Any, n: int) -> Any:
    """A term divided by its factorial, or multiplied by it."""
    return x if n == 1 else op(x, n)
