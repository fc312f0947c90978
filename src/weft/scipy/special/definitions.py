"""Define special functions: a primitive by its formula, and the function that users call.

Arguments are promoted to floats; unsupported arguments raise.
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
from weft.primitives.element_docs import block
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
    call.__doc__ = describe(name, names, doc, takes_complex)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return operation(call, name=name)


def describe(name: str, names: Sequence[str], doc: str, takes_complex: bool) -> str:
    """Compose the documentation of a function.

    The text of a row is a first line and remarks, then a line `NAME: meaning` for each parameter
    that has one, and an example: the operands after `>>>`, and the rounded result. The rest follows
    from the row.
    """
    text, _, example = inspect.cleandoc(doc).partition("\n>>> ")
    if not example:
        return doc
    lines = text.splitlines()
    meanings = {n: line for n in names for line in lines if line.startswith(f"{n}: ")}
    remarks = "\n".join(line for line in lines if line not in meanings.values()).strip()
    dtypes = "floats or complex numbers" if takes_complex else "floats"
    kind = f"an array of {dtypes}, or a number."
    args = [f"{meanings.get(n, f'{n}:').rstrip('.')}{',' * (n in meanings)} {kind}" for n in names]
    shape = "of the shape of the operand"
    args += ["  Integers and bools become floats first."]
    errors = ["DtypeError: an operand is not an array or a number."]
    if not takes_complex:
        errors = ["DtypeError: an operand is complex, or not an array or a number."]
    if len(names) > 1:
        args[-1] += " The operands broadcast together."
        shape = "of the broadcast shape and the common dtype of the operands"
        errors.append("ShapeError: the shapes do not broadcast together.")
    elif not takes_complex:
        shape = "of floats, of the shape of the operand"
    given, _, result = example.partition("\n")
    parts = [remarks, block("Args:", args), block("Returns:", [f"An array {shape}."])]
    parts.append(block("Raises:", errors))
    call = f">>> print(np.asarray(special.{name}({given})).round(4))"
    parts.append(f">>> from weft.scipy import special\n{call}\n{result.strip()}")
    return "\n\n".join(parts).replace("\n      ", "\n  ") + "\n"


def compute_wide(fun: Callable, z: Any) -> Any:
    """fun(z) of complex numbers, computed in complex128 and rounded once."""
    with enable_x64(True):
        out = fun(convert(z, np.dtype(np.complex128)))
    return convert(out, z.dtype)
