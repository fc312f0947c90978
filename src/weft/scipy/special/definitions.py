"""How special functions are defined: a primitive by its formula, and the function that users call.

Arguments are promoted to floats; what has no meaning is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.contexts import enable_x64
from weft.errors import DtypeError
from weft.numpy.promotion import as_array, as_operand, promote_operands
from weft.primitives.elementwise import Costly, convert
from weft.primitives.special.formula import formula
from weft.run.operation import operation
from weft.xla.typing import Array


def promote_floats(op: str, *xs: Any, strong: bool = False, takes_complex: bool = False) -> list:
    """Arguments as arrays of one inexact dtype and, scalars apart, one shape.

    With `strong` numbers give a result of float32 (float64) that is not weak.
    """
    xs = promote_operands(op, *[as_operand(op, x) for x in xs], inexact=True)
    out = [as_array(x, op) for x in xs]
    if not takes_complex and dtypes.is_complex(out[0].dtype):
        raise DtypeError(f"{op}: operands must be real; got {', '.join(str(x.aval) for x in out)}.")
    return [convert(x, x.dtype) for x in out] if strong else out


def define_primitive(
    name: str, fun: Callable, derivs: list, doc: str, wide: bool = True, takes: str = "float"
) -> Costly:
    """A primitive whose lowering is a formula."""
    return Costly(name, formula(fun, wide), derivs, takes=takes, doc=doc)


def define_pair(
    name: str,
    fun: Callable,
    derivs: list,
    doc: str,
    *,
    wide: bool = True,
    takes: str = "float",
    strong: bool = False,
) -> tuple[Costly, Callable]:
    """A primitive whose lowering is the formula `fun`, and the function that users call.

    The function's parameters are those that the last of `derivs` names behind t and y.
    """
    primitive = define_primitive(name, fun, derivs, doc.partition("\n")[0], wide, takes)
    names = list(inspect.signature(derivs[-1]).parameters)[2:]
    apply = lambda *xs: primitive.apply(*xs)[0]
    takes_complex = takes == "inexact"
    return primitive, publish(name, names, apply, doc, derivs[-1].__module__, strong, takes_complex)


def define_function(
    name: str, apply: Callable, doc: str, *, strong: bool = False, takes_complex: bool = False
) -> Callable:
    """The function that users call: `apply` of promoted operands. Its parameters are apply's."""
    names = list(inspect.signature(apply).parameters)
    return publish(name, names, apply, doc, apply.__module__, strong, takes_complex)


def publish(
    name: str,
    names: Sequence[str],
    apply: Callable,
    doc: str,
    module: str,
    strong: bool,
    takes_complex: bool,
) -> Callable:
    """A function of parameters `names`, compiled when it is called eagerly."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(n, kind, annotation="ArrayLike") for n in names]
    signature = inspect.Signature(parameters, return_annotation="Array")

    def call(*args: Any, **kwargs: Any) -> Array:
        if kwargs or len(args) != len(names):
            try:
                args = signature.bind(*args, **kwargs).args
            except TypeError as error:
                raise TypeError(f"{name}: {error}.") from None
        xs = promote_floats(name, *args, strong=strong, takes_complex=takes_complex)
        return apply(*xs)

    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    call.__doc__ = doc
    call.__signature__ = signature  # type: ignore[attr-defined]
    return operation(call, name=name)


def compute_wide(fun: Callable, z: Any) -> Any:
    """fun(z) of complex numbers, computed in complex128 and rounded once."""
    with enable_x64(True):
        out = fun(convert(z, np.dtype(np.complex128)))
    return convert(out, z.dtype)
