"""`custom_gradient`, `closure_convert`, `linear_call`: what a function closes over, made arguments.

They are built on the `custom_vjp` of api/custom_rules.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import dtypes
from weft.api.closures import find_closed_over, substitute
from weft.api.custom_rules import custom_vjp
from weft.api.functions import FlatFun, check_callable, flatten_call
from weft.control.custom import custom_linear_p
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import eval_jaxpr
from weft.core.source import boundary
from weft.core.stage import close_jaxpr
from weft.core.trace import Tracer
from weft.errors import PytreeError, ShapeError
from weft.primitives.layout import convert, zeros
from weft.pytrees import Partial, PyTreeDef, flatten, unflatten
from weft.util import fun_name, insert_at, merge, partition, wraps
from weft.watch.leaks import stage_function


def custom_gradient(fun: Callable) -> Callable:
    """Make a function with a custom derivative from one that returns its value and its pullback.

    It is a short form of `custom_vjp` for reverse mode. The pullback may use the intermediate
    values of the function, because it is defined within the function.

    Args:
      fun: a function of pytrees of arrays that returns a pair `(value, vjp)`. `vjp(ct)` takes a
        cotangent like the value. It returns a tuple with a cotangent for each argument, or the
        cotangent itself if there is one argument.

    Returns:
      A function that returns the value, differentiable in reverse mode.

    Raises:
      TypeError: on a call, if `fun` does not return a pair of a value and a function.

    >>> from weft import grad
    >>> @custom_gradient
    ... def f(x):
    ...     return x**2, lambda ct: ct * x
    >>> print(f(3.0), grad(f)(3.0))
    9.0 3.0
    """
    check_callable("custom_gradient", fun, wraps=True)

    def value_and_rule(args: tuple) -> tuple[Any, Callable]:
        pair = fun(*args)
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not callable(pair[1]):
            raise TypeError(
                f"custom_gradient: {fun_name(fun)} must return a pair (value, vjp function); "
                f"got {pair!r}."
            )
        return pair[0], pair[1]

    @wraps(fun)
    def value(*args: Any) -> Any:
        return value_and_rule(args)[0]

    def fwd(*args: Any) -> tuple[Any, Partial]:
        out, rule = value_and_rule(args)
        leaves, tree = flatten(((out,), {}))
        avals = [typeof(x).to_tangent() for x in leaves]
        run, consts = stage_pullback(rule, tree, avals)
        return out, Partial(run, *consts)

    def bwd(residuals: Partial, ct: Any) -> tuple:
        grads = residuals(ct)
        return tuple(grads) if isinstance(grads, tuple | list) else (grads,)

    made = custom_vjp(value)
    made.defvjp(fwd, bwd)
    return made


def stage_pullback(
    rule: Callable, in_tree: PyTreeDef, avals: Sequence[ShapedArray]
) -> tuple[Callable, list]:
    """Return a function of the values that `rule` closes over and a cotangent; and these values."""
    hidden = {i: zeros(a) for i, a in enumerate(avals) if a.dtype == dtypes.float0}
    flat = FlatFun(rule, in_tree, "custom_gradient", float0=hidden)
    given = [a for i, a in enumerate(avals) if i not in hidden]
    jaxpr, consts = stage_function(flat, given, fun_name(rule))

    def run(*operands: Any) -> Any:
        *held, ct = operands
        cts = [t for i, t in enumerate(flatten(ct)[0]) if i not in hidden]
        outs = eval_jaxpr(jaxpr, held, *cts)
        return unflatten(flat.out_tree, insert_at(outs, flat.hidden))

    return run, consts


def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list]:
    """Make the values that a function closes over into arguments.

    It is for functions with rules of their own that take functions: a function that is passed may
    close over values that the caller differentiates, and a rule returns derivatives of arguments
    only. Only traced values of floating-point or complex dtype become arguments.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays.
      *example_args: arguments of the types that it will be called with: arrays, numbers or
        ShapeDtypeStructs in pytrees. Their values are not used.

    Returns:
      A pair `(converted, consts)`: a function such that `converted(*args, *consts)` is
      `fun(*args)`, and the list of the values that it closes over.

    Raises:
      PytreeError: `converted` is called with arguments of another structure than the examples.

    >>> from weft import grad
    >>> def loss(y):
    ...     converted, consts = closure_convert(lambda x: x * y, 1.0)
    ...     return converted(2.0, *consts)
    >>> print(grad(loss)(5.0))
    2.0
    """
    flat, _, avals = flatten_call("closure_convert", fun, example_args, structs=True)
    in_tree = flat.in_tree
    jaxpr, consts = stage_function(flat, avals, fun_name(fun))
    moving = [isinstance(x, Tracer) and dtypes.is_inexact(x.dtype) for x in consts]
    fixed, hoisted = partition(moving, consts)

    @wraps(fun)
    def converted(*args_and_consts: Any) -> Any:
        n = len(args_and_consts) - len(hoisted)
        given, tree = flatten((args_and_consts[: max(n, 0)], {}))
        if tree != in_tree:
            raise PytreeError(
                f"closure_convert: the converted {fun_name(fun)} must be given arguments like the "
                f"examples, then {len(hoisted)} consts; got {tree} where the examples are {in_tree}"
                "."
            )
        values = merge(moving, fixed, args_and_consts[n:])
        return unflatten(flat.out_tree, eval_jaxpr(jaxpr, values, *given))

    return converted, hoisted


@boundary
def linear_call(
    fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any
) -> Any:
    """Call a linear function that has a hand-written transpose.

    Forward mode differentiates `fun`, reverse mode uses `fun_transpose`. If the transpose is
    transposed again, it is `fun`.

    Args:
      fun: a function `fun(residual_args, linear_args)`, linear in its second argument.
      fun_transpose: a function `fun_transpose(residual_args, ct)` of a cotangent like the result
        of `fun`. It returns a cotangent like `linear_args`.
      residual_args: a pytree of arrays that have no derivative here.
      linear_args: a pytree of arrays.

    Returns:
      The result of `fun(residual_args, linear_args)`, a pytree of arrays.

    Raises:
      PytreeError: the transpose returns another structure than `linear_args` has.
      ShapeError: the transpose returns an array of another shape.

    >>> from weft import grad
    >>> def scaled(x):
    ...     return linear_call(lambda r, x: r * x, lambda r, ct: 10 * r * ct, 2.0, x)
    >>> print(scaled(3.0), grad(scaled)(3.0))
    6.0 20.0
    """
    check_callable("linear_call", fun_transpose)
    flat, both, avals = flatten_call("linear_call", fun, (residual_args, linear_args))
    res_tree, lin_tree = flat.in_tree.children()[0].children()
    n = res_tree.num_leaves
    jaxpr, consts = stage_function(flat, avals, fun_name(fun))
    jaxpr = close_jaxpr(jaxpr)
    tracers = find_closed_over(fun_transpose)
    own = len(consts)
    first = own + len(tracers)  # of the residuals that the user gave

    def forward(residuals: Sequence, linear: Sequence) -> list:
        return jaxpr(*residuals[:own], *residuals[first:], *linear)

    def back(residuals: Sequence, cts: Sequence) -> list:
        def pull(*values: Any) -> list:
            given = unflatten(res_tree, values[:n])
            grads, tree = flatten(fun_transpose(given, unflatten(flat.out_tree, values[n:])))
            if tree != lin_tree:
                raise PytreeError(
                    f"linear_call: the transpose of {fun_name(fun)} must return what linear_args "
                    f"are like; got {tree} where they are {lin_tree}."
                )
            return [*map(check_linear_ct, grads, avals[n:])]

        closed = residuals[own:first]
        return substitute(pull, tracers, closed, [*residuals[first:], *cts])

    outs = custom_linear_p.apply(
        *consts, *tracers, *both, name=fun_name(fun), bwd=back, jvp=forward,
        num_residuals=first + n, out_avals=tuple(jaxpr.out_avals), symbolic_zeros=False,
    )  # fmt: skip
    return unflatten(flat.out_tree, outs)


def check_linear_ct(ct: Any, aval: ShapedArray) -> Any:
    """A cotangent of a linear argument of this type."""
    got = typeof(ct)
    if got.shape != aval.shape or (got.dtype.kind == "c" and aval.dtype.kind != "c"):
        raise ShapeError(
            f"linear_call: the transpose must return cotangents of the types of linear_args; "
            f"got {got} where there is {aval}."
        )
    return ct if got.dtype == aval.dtype else convert(ct, aval.dtype)
