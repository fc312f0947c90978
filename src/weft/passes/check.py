"""The checker of jaxprs: `check_jaxpr` raises where one breaks a rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.core.aval import AbstractValue, ShapedArray, typeof
from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from weft.core.pretty import equation_text
from weft.core.source import source_line
from weft.errors import CheckError


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Check that a jaxpr is well formed.

    It is for passes and interpreters that write programs: check the result before you run it. These
    are the rules:

    - Variables are defined once, and before they are used.
    - Results have the types that the type rules of the primitives return.
    - Literals are scalars of a type that suits them.
    - Parameters are hashable.
    - Programs that equations hold are closed, and keep the rules too.
    - Constants have the types of their constvars.

    Args:
      jaxpr: a `Jaxpr` or a `ClosedJaxpr`.

    Raises:
      CheckError: a rule is broken. If the fault is in an equation, the message has its text and its
        source line.

    >>> from weft.extend import core
    >>> program = weft.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    >>> core.check_jaxpr(program)
    >>> core.check_jaxpr(program.jaxpr.replace(eqns=program.eqns[:1]))
    Traceback (most recent call last):
    ...
    weft.errors.CheckError: jaxpr: a variable must be defined before it is used;
    got an undefined one of type f32[] as result 0.
    """
    if isinstance(jaxpr, ClosedJaxpr):
        for var, value in zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=True):
            if not _same_type(var.aval, typeof(value)):
                raise CheckError(
                    "jaxpr: a const must have the type of its constvar; "
                    f"got a const {typeof(value)} for a constvar {var.aval}."
                )
        jaxpr = jaxpr.jaxpr
    if jaxpr.memo.get("checked"):
        return
    _check_program(jaxpr)
    jaxpr.memo["checked"] = True


def _check_program(jaxpr: Jaxpr) -> None:
    defined: set[Var] = set()
    _check_binders([*jaxpr.constvars, *jaxpr.invars], defined, "in the parameters")
    for index, eqn in enumerate(jaxpr.eqns):
        try:
            _check_equation(eqn, defined)
        except CheckError as error:
            where = equation_place(jaxpr, index)
            raise CheckError(f"{error} In equation {index}, {where}.") from error.__cause__
    for i, atom in enumerate(jaxpr.outvars):
        _check_atom(atom, defined, f"as result {i}")


def equation_place(jaxpr: Jaxpr, index: int) -> str:
    """Return the printed equation and its source line."""
    eqn = jaxpr.eqns[index]
    try:
        text = equation_text(jaxpr, index)
    except Exception:  # so broken that it cannot be printed
        text = eqn.primitive.name
    place = source_line(eqn.source)
    return f"`{text}`{' at ' + place if place else ''}"


def _check_equation(eqn: Eqn, defined: set[Var]) -> None:
    for i, atom in enumerate(eqn.invars):
        _check_atom(atom, defined, f"as operand {i}")
    for key, value in eqn.params.items():
        try:
            hash(value)
        except TypeError:
            raise CheckError(f"jaxpr: parameters must be hashable; got {key}={value!r}.") from None
    for held in eqn.params.values():
        for x in held if isinstance(held, tuple | list) else (held,):
            if isinstance(x, Jaxpr) and x.constvars:
                raise CheckError(
                    "jaxpr: a program held by an equation must be closed; got one with "
                    f"{len(x.constvars)} constvars."
                )
            if isinstance(x, Jaxpr | ClosedJaxpr):
                check_jaxpr(x)
    _check_types(eqn)
    _check_binders(eqn.outvars, defined, "among the results")


def _check_types(eqn: Eqn) -> None:
    """The results must have the types that the type rule gives for the operands."""
    try:
        avals = eqn.primitive.abstract_eval(*[a.aval for a in eqn.invars], **eqn.params)
    except Exception as error:
        raise CheckError(
            f"jaxpr: operands and parameters must pass the type rule of {eqn.primitive}; "
            f"got {type(error).__name__}: {error}"
        ) from error
    given = [v.aval for v in eqn.outvars]
    if len(avals) != len(given) or not all(map(_same_type, avals, given)):
        raise CheckError(
            f"jaxpr: the results of {eqn.primitive} must have the types of its type rule, "
            f"({_type_list(avals)}); got ({_type_list(given)})."
        )


def _type_list(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(map(str, avals))


def _same_type(x: ShapedArray, y: ShapedArray) -> bool:
    """Return True if types agree up to weak types, which matter only to promotion, done earlier."""
    return x is y or (type(x) is type(y) and x.shape == y.shape and x.dtype == y.dtype)


def _check_binders(binders: Sequence[Any], defined: set[Var], where: str) -> None:
    for v in binders:
        if not isinstance(v, Var) or not isinstance(v.aval, AbstractValue):
            raise CheckError(f"jaxpr: only typed variables can be defined; got {v!r} {where}.")
        if v in defined:
            raise CheckError(
                f"jaxpr: a variable must be defined once; got a second definition {where} "
                f"of a variable of type {v.aval}."
            )
        defined.add(v)


def _check_atom(atom: Any, defined: set[Var], where: str) -> None:
    if type(atom) is Literal:
        return _check_literal(atom, where)
    if not isinstance(atom, Var):
        raise CheckError(f"jaxpr: an atom must be a variable or a literal; got {atom!r} {where}.")
    if atom not in defined:
        raise CheckError(
            "jaxpr: a variable must be defined before it is used; "
            f"got an undefined one of type {atom.aval} {where}."
        )
    return None


# What a Python number may stand for, by its type.
_KINDS: dict[type, str] = {bool: "b", int: "iufcV", float: "fcV", complex: "cV"}


def _check_literal(literal: Literal, where: str) -> None:
    """A literal is a scalar; a NumPy one has its own dtype, a Python one any that can hold it."""
    val, aval = literal.val, literal.aval
    if type(val) in _KINDS:
        suits = aval.dtype.kind in _KINDS[type(val)]
    else:
        suits = isinstance(val, np.generic) and val.dtype == aval.dtype
    if aval.shape != () or not suits:
        raise CheckError(
            f"jaxpr: a literal must be a number of its own scalar type; got {val!r}:{aval} {where}."
        )
