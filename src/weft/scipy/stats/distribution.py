"""The base of distributions: arguments, location, scale, support, densities from their logs.

A distribution is a row of continuous.py, discrete.py or vectors.py: its functions for location 0
and scale 1. `define_distribution` makes of them the module that users import.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import weft.numpy as jnp
from weft import dtypes
from weft.core.aval import typeof
from weft.errors import DtypeError
from weft.numpy import promotion
from weft.numpy.reductions import widen_dtype
from weft.primitives.element_docs import block
from weft.primitives.elementwise import convert
from weft.primitives.layout import full
from weft.run.operation import operation
from weft.scipy.stats.examples import EXAMPLES, LEVELS, POINTS, RESULTS, SHAPES
from weft.util import list_public

KINDS = {
    "pdf": "the density",
    "logpdf": "the logarithm of the density",
    "pmf": "the probabilities of counts",
    "logpmf": "the logarithm of the probabilities of counts",
    "cdf": "the distribution function",
    "logcdf": "the logarithm of the distribution function",
    "sf": "the survival function",
    "logsf": "the logarithm of the survival function",
    "ppf": "the quantiles",
    "isf": "the upper quantiles",
    "entropy": "the entropy",
}
REMARKS = {
    "cdf": "The distribution function is the probability of a value that is at most {x}.",
    "logcdf": "The result keeps its accuracy where the probability underflows or is near 1.",
    "sf": "The survival function is the probability of a value greater than {x}. It keeps its "
    "accuracy\nwhere that probability is small.",
    "logsf": "The survival function is the probability of a value greater than {x}.",
    "ppf": "The quantile is the inverse of the distribution function: the value that is exceeded "
    "with\nprobability 1 - {x}.",
    "isf": "The upper quantile is the inverse of the survival function: the value that is exceeded "
    "with\nprobability {x}.",
    "entropy": "The entropy is in nats, the unit of natural logarithms.",
}
DEFAULTS = {"loc": 0, "scale": 1}
STANDARD = {"loc": "location 0", "scale": "scale 1"}
PLACES = {
    "loc": "the location, a number or an array, by which the distribution is moved. 0 by default.",
    "scale": "the scale, a positive number or array, by which the distribution is stretched.\n"
    "        1 by default.",
}


def define_distribution(
    name: str,
    doc: str,
    *,
    proper: Callable = lambda *shapes: True,
    takes: Sequence[str] = ("loc", "scale"),
    fixed: Sequence[str] = (),
    **functions: Callable,
) -> ModuleType:
    """Make the module `weft.scipy.stats.NAME` from these functions, and derive further ones.

    Args:
      name: the distribution's name.
      doc: "the NAME distribution.", and a sentence with its density.
      proper: a function that is True for valid shape parameters; for others, results are NaN.
      takes: the parameters that functions get after the shape parameters, "loc" and "scale".
      fixed: the functions that get none of these.
      functions: by name, each of a point (or a level) and the shape parameters. If only the log of
        a function is given, the function is exp of that log.
    """
    logs = {f"log{kind}": kind for kind in ("pdf", "pmf", "cdf", "sf")}
    made = {}
    for kind, fun in functions.items():
        more = () if kind in fixed else tuple(takes)
        general = add_parameters(kind, check_shapes(kind, fun, proper), more)
        made[kind] = fun, general, more
        other = logs.get(kind)
        if other and other not in functions:
            made[other] = fun, exponentiate(general), more
    public = {
        kind: as_public(f"{name}.{kind}", doc, fun, general, more)
        for kind, (fun, general, more) in made.items()
    }
    return define_module(name, doc, **public)


def define_module(name: str, doc: str, **functions: Callable) -> ModuleType:
    """The functions as the module `weft.scipy.stats.NAME`, which is then found when imported."""
    module = ModuleType(f"{__package__}.{name}", inspect.cleandoc(f"{doc[0].upper()}{doc[1:]}"))
    for kind, fun in functions.items():
        fun.__name__, fun.__qualname__ = kind, f"{name}.{kind}"
        setattr(module, kind, fun)
    module.__all__ = sorted(functions)  # type: ignore[attr-defined]
    module.__dir__ = list_public(module.__name__)  # type: ignore[method-assign]
    sys.modules[module.__name__] = module
    return module


def check_shapes(kind: str, fun: Callable, proper: Callable) -> Callable:
    """Return the function, with NaN where the shape parameters are invalid."""

    def checked(*args: Any) -> Any:
        out, good = fun(*args), proper(*(args if kind == "entropy" else args[1:]))
        return out if good is True else jnp.where(good, out, jnp.nan)

    return checked


def add_parameters(kind: str, fun: Callable, more: tuple[str, ...]) -> Callable:
    """The function with parameters `more`, location and scale, made of the one for 0 and 1."""

    def general(*args: Any) -> Any:
        x, *shapes = args[: len(args) - len(more)]
        loc, scale = (*args[len(args) - len(more) :], *(0, 1)[len(more) :])
        if kind == "entropy":  # of counts: without a scale
            return fun(x, *shapes)
        if kind in ("ppf", "isf"):
            out = fun(x, *shapes)
            out = out if is_number(scale, 1) else out * scale
            out = out if is_number(loc, 0) else out + loc
        else:
            x = x if is_number(loc, 0) else x - loc
            x = x if is_number(scale, 1) else x / scale
            out = fun(x, *shapes)
            if kind in ("pdf", "logpdf") and not is_number(scale, 1):
                out = out - jnp.log(scale) if kind == "logpdf" else out / scale
        return out if is_number(scale, 1) else jnp.where(scale > 0, out, jnp.nan)

    return general


def exponentiate(log: Callable) -> Callable:
    """exp of what `log` gives."""
    return lambda *args: jnp.exp(log(*args))


def prepare_operands(
    op: str, args: Sequence[Any], shaped: bool = True
) -> tuple[list, promotion.PromotionPlan]:
    """Return operands for the computation, and the plan with the type of the result.

    The operands have the float dtype that they promote to, or float32 if that has fewer bits. With
    `shaped`, they also have the same shape. Python numbers stay.
    """
    args = [promotion.as_operand(op, x) for x in args]
    plan = promotion.plan_promotion(
        op, tuple([promotion.kind_of(op, x) for x in args]), inexact=True, shaped=shaped
    )
    if dtypes.is_complex(plan.dtype):
        listed = ", ".join(str(typeof(x)) for x in args)
        raise DtypeError(f"{op}: operands must be real; got {listed}.")
    wide = widen_dtype(plan.dtype)
    xs = promotion.promote_operands(op, *args, inexact=True, shaped=shaped)
    return [x if type(x) in promotion.NUMBERS else convert(x, wide) for x in xs], plan


def is_number(x: Any, value: int) -> bool:
    """Return True if x is a Python number of this value, so that an operation can be left out."""
    return type(x) in promotion.NUMBERS and x == value


def as_public(op: str, doc: str, fun: Callable, general: Callable, more: Sequence[str]) -> Callable:
    """`general` as users call it: arguments by name, promoted and broadcast; documented.

    It takes the arguments of `fun` and then `more`. Floats of 16 bits and fewer are computed
    with in float32.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    extra = [inspect.Parameter(n, kind, default=DEFAULTS[n]) for n in more]
    signature = inspect.signature(fun)
    listed = [p.replace(annotation="ArrayLike") for p in (*signature.parameters.values(), *extra)]
    signature = signature.replace(parameters=listed, return_annotation="Array")
    count = len(signature.parameters)

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != count:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{op}: {error}.") from None
            bound.apply_defaults()
            args = bound.args
        xs, plan = prepare_operands(op, args)
        for i, x in enumerate(xs):
            if type(x) not in promotion.NUMBERS:
                xs[i] = promotion.as_array(x, op)
            elif i < count - len(more):  # a shape parameter; loc and scale stay numbers
                xs[i] = full((), x, widen_dtype(plan.dtype))
        out = convert(general(*xs), plan.dtype, plan.weak)
        shape = jnp.broadcast_shapes(*[typeof(x).shape for x in xs])
        return out if out.shape == shape else jnp.broadcast_to(out, shape)

    call.__module__ = fun.__module__
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__doc__ = describe(op, doc, list(signature.parameters), more)
    return operation(call, name=op.replace(".", "_"))


def describe(op: str, doc: str, names: Sequence[str], more: Sequence[str]) -> str:
    """Compose the documentation of a function from its row and the tables of examples.py."""
    row, _, kind = op.partition(".")
    title, _, formula = inspect.cleandoc(doc).partition("\n\n")
    if more:
        formula += f" This holds for {' and '.join(STANDARD[n] for n in more)}."
    first = names[0]
    given, results = POINTS[row], RESULTS.get(op)
    if kind in ("ppf", "isf"):
        meaning, given = "the probabilities, from 0 to 1", LEVELS
    elif kind == "entropy":
        meaning = SHAPES[row][first]
    else:
        meaning = "the counts" if kind in ("pmf", "logpmf") else "the points"
    array = "an array of real numbers, or a number."
    args = [f"{first}: {meaning}, {array}"]
    shapes = [n for n in names[1:] if n not in more]
    args += [f"{n}: {SHAPES[row][n]}, {array}" for n in shapes]
    args += [f"{n}: {PLACES[n].format(x=first)}" for n in more]
    returns = ["An array of the broadcast shape of the arguments, of the float dtype to which they"]
    returns += ["promote. It is NaN where a parameter is out of its range."]
    errors = ["DtypeError: an argument is complex, or not an array or a number."]
    errors += ["ShapeError: the shapes do not broadcast together."] * (len(names) > 1)
    remark = REMARKS.get(kind, "").format(x=first)
    parts = [f"Compute {KINDS[kind]} of {title}", formula, remark, block("Args:", args)]
    parts += [block("Returns:", returns), block("Raises:", errors)]
    if results:
        call = ", ".join([given, *(EXAMPLES[row][n] for n in shapes)])
        call = EXAMPLES[row][first] if kind == "entropy" else call
        shown = f">>> print(np.asarray({row}.{kind}({call})).round(4))"
        parts.append(f">>> from weft.scipy.stats import {row}\n{shown}\n{results}")
    return "\n\n".join(filter(None, parts)).replace("\n      ", "\n  ") + "\n"


def evaluate_inside(inside: Any, fun: Callable, x: Any, instead: float, outside: Any) -> Any:
    """fun(x) where `inside`, and `outside` elsewhere, with derivatives of zero; NaN of NaN.

    `instead` is an x that `fun` has a finite derivative at.
    """
    out = jnp.where(inside, fun(jnp.where(inside, x, instead)), outside)
    return jnp.where(jnp.isnan(x), x, out)


def evaluate_quantile(fun: Callable, q: Any) -> Any:
    """fun(q) for q in [0, 1], else NaN; the derivative there is zero."""
    return evaluate_inside((q >= 0) & (q <= 1), fun, q, 0.5, jnp.nan)


def is_whole(k: Any) -> Any:
    """Return True if k is a finite integer; NaN counts as one, so that it stays."""
    return ((jnp.floor(k) == k) & (jnp.abs(k) < jnp.inf)) | jnp.isnan(k)
