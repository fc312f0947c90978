"""Jaxpr to jaxpr: `dce_jaxpr`, `cse_jaxpr`, `inline_calls`; `check_jaxpr` and `jaxpr_equal`.

None changes a jaxpr in place; results are remembered on the jaxpr they were made of. Passes that
need a rule of the primitive (a derivative, batching) are in transforms/.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    jaxprs_in_params,
    memo_jaxpr,
)
from weft.core.pretty import equation_text
from weft.core.source import nested_source, source_line
from weft.errors import CheckError

# --------------------------------------------------------------------------------------------
# Clean-up.


def has_effects(eqn: Eqn) -> bool:
    """Whether an equation does more than compute its results, itself or in what it holds."""
    if eqn.primitive.effect is not None:
        return True
    return bool(eqn.params) and any(p.effects for p in jaxprs_in_params(eqn.params))


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool] | None = None, keep_inputs: bool = True
) -> tuple[Jaxpr, tuple[bool, ...]]:
    """`jaxpr` without the equations that its used results do not need, and which inputs they need.

    Results that are not used are dropped, and so are unneeded inputs unless `keep_inputs`;
    constvars stay. Equations with effects stay.
    """
    return _dce(jaxpr, None if used_outputs is None else tuple(used_outputs), keep_inputs)


@memo_jaxpr
def _dce(
    jaxpr: Jaxpr, used_outputs: tuple[bool, ...] | None, keep_inputs: bool
) -> tuple[Jaxpr, tuple[bool, ...]]:
    outvars = jaxpr.outvars
    if used_outputs is not None:
        outvars = [v for v, used in zip(outvars, used_outputs, strict=True) if used]
    live = {v for v in outvars if type(v) is not Literal}
    eqns: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        if live.isdisjoint(eqn.outvars) and not has_effects(eqn):
            continue
        if eqn.primitive.dce is not None:
            eqn = eqn.primitive.dce(eqn, [v in live for v in eqn.outvars])
            if eqn is None:
                continue
        eqns.append(eqn)
        for a in eqn.invars:
            if type(a) is not Literal:
                live.add(a)
    eqns.reverse()
    used_inputs = tuple([v in live for v in jaxpr.invars])
    invars = jaxpr.invars
    if not keep_inputs:
        invars = [v for v in invars if v in live]
    return _replaced(jaxpr, invars, outvars, eqns), used_inputs


@memo_jaxpr
def quiet_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` as it is computed for a second time: without what was done the first time.

    Raises where a result is needed of what may happen only once.
    """
    live = {v for v in jaxpr.outvars if type(v) is not Literal}
    eqns: list[Eqn] = []
    for eqn in reversed(jaxpr.eqns):
        effect = eqn.primitive.effect
        if effect is not None:
            if live.isdisjoint(eqn.outvars):
                continue
            if not effect.repeatable:
                raise NotImplementedError(
                    f"{eqn.primitive}: must happen once, but reverse mode computes its results "
                    f"again; got {equation_text(jaxpr, jaxpr.eqns.index(eqn))}. Hint: call it "
                    "outside of checkpoint and while_loop, and pass its results in."
                )
        if any(p.effects for p in jaxprs_in_params(eqn.params)):
            eqn = eqn.replace(params={k: _quiet(x) for k, x in eqn.params.items()})
        eqns.append(eqn)
        live.update(a for a in eqn.invars if type(a) is not Literal)
    eqns.reverse()
    return dce_jaxpr(_replaced(jaxpr, jaxpr.invars, jaxpr.outvars, eqns))[0]


def _quiet(x: Any) -> Any:
    """A parameter with the programs that it holds made quiet."""
    if isinstance(x, tuple):
        return tuple(map(_quiet, x))
    return quiet_jaxpr(x) if isinstance(x, Jaxpr) else x


def _replaced(jaxpr: Jaxpr, invars: list, outvars: list, eqns: list) -> Jaxpr:
    """`jaxpr` itself if nothing is new, so that what is remembered on it stays of use."""
    same = len(eqns) == len(jaxpr.eqns) and all(map(_is, eqns, jaxpr.eqns))
    if same and len(invars) == len(jaxpr.invars) and len(outvars) == len(jaxpr.outvars):
        return jaxpr
    return jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns)


def _is(x: Any, y: Any) -> bool:
    return x is y


@memo_jaxpr
def dependences(jaxpr: Jaxpr, through: bool = True) -> list[int]:
    """For each result of a closed jaxpr, the inputs it depends on, as the bits of a number.

    The results of a primitive that holds programs count as depending on all its operands, or on
    none of them unless `through`; so what is found holds at most, or at least, what there is. What
    has effects may depend on anything.
    """
    bits: dict[Var, int] = {v: 1 << i for i, v in enumerate(jaxpr.invars)}
    for eqn in jaxpr.eqns:
        found = -1 if through and has_effects(eqn) else 0
        if through or eqn.primitive.memoize_type or not any(jaxprs_in_params(eqn.params)):
            for a in eqn.invars:
                if type(a) is not Literal:
                    found |= bits[a]  # type: ignore[index]
        for v in eqn.outvars:
            bits[v] = found
    return [0 if type(a) is Literal else bits[a] for a in jaxpr.outvars]  # type: ignore[index]


@memo_jaxpr
def cse_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` with equal computations done once; those with effects are left as they are."""
    first: dict[tuple, Sequence[Var]] = {}
    new: dict[Var, Atom] = {}
    eqns: list[Eqn] = []
    for eqn in jaxpr.eqns:
        old = eqn.invars
        invars = [new.get(a, a) if type(a) is not Literal else a for a in old]  # type: ignore
        if not has_effects(eqn):
            atoms = (_exact(a.val, a.aval) if type(a) is Literal else a for a in invars)
            key = (eqn.primitive, *atoms, None, *_exact_params(eqn.params))
            earlier = first.setdefault(key, eqn.outvars)
            if earlier is not eqn.outvars:
                new.update(zip(eqn.outvars, earlier, strict=True))
                continue
        eqns.append(eqn if all(map(_is, invars, old)) else eqn.replace(invars=invars))
    if not new:
        return jaxpr
    outvars = [a if type(a) is Literal else new.get(a, a) for a in jaxpr.outvars]  # type: ignore
    return jaxpr.replace(outvars=outvars, eqns=eqns)


_NUMBERS = (bool, int, float, complex, np.generic)


def _exact(x: Any, kind: Any = None) -> Any:
    """A stand-in for `x` that is equal only for the same value: 0.0, -0.0, 0 and False differ."""
    if isinstance(x, tuple):
        return (type(x), *map(_exact, x))
    if isinstance(x, _NUMBERS):
        return type(x), kind, repr(x)
    return x


def _exact_params(params: dict[str, Any]) -> list:
    return [(k, _exact(v)) for k, v in params.items()]


@memo_jaxpr
def inline_calls(jaxpr: Jaxpr) -> Jaxpr:
    """`jaxpr` with the programs that its primitives give by `inlined` in place of the calls."""
    bodies = [e.primitive.inlined and e.primitive.inlined(e) for e in jaxpr.eqns]
    if not any(body is not None for body in bodies):
        return jaxpr
    new: dict[Var, Atom] = {}
    eqns: list[Eqn] = []
    for eqn, body in zip(jaxpr.eqns, bodies, strict=True):
        eqn = eqn.replace(invars=_renamed(eqn.invars, new)) if new else eqn
        if body is None:
            eqns.append(eqn)
        else:
            outs = _splice(inline_calls(body), eqn, eqns)
            new.update(zip(eqn.outvars, outs, strict=True))
    return jaxpr.replace(outvars=_renamed(jaxpr.outvars, new), eqns=eqns)


def _splice(body: Jaxpr, call: Eqn, eqns: list[Eqn]) -> list[Atom]:
    """Add the equations of `body` to `eqns` in place of `call`, with variables of their own.

    They stand in the scopes of the call. Given are the results.
    """
    new: dict[Var, Atom] = dict(zip(body.invars, call.invars, strict=True))
    scope = call.source_info.scope
    for eqn in body.eqns:
        outvars = [type(v)(v.aval) for v in eqn.outvars]
        source = nested_source(scope, eqn.source)
        eqns.append(eqn.replace(invars=_renamed(eqn.invars, new), outvars=outvars, source=source))
        new.update(zip(eqn.outvars, outvars, strict=True))
    return _renamed(body.outvars, new)


def _renamed(atoms: Sequence[Atom], new: dict[Var, Atom]) -> list[Atom]:
    return [a if type(a) is Literal else new.get(a, a) for a in atoms]  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------
# The checker.


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Raise CheckError, naming the equation and its source line, where a rule is broken.

    Variables are defined once and before they are used; results have the types that the type rules
    give; literals are scalars of a type that suits them; parameters are hashable; programs held by
    equations are closed, and keep the rules too; consts have the types of their constvars.
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
            where = _where(jaxpr, index)
            raise CheckError(f"{error} In equation {index}, {where}.") from error.__cause__
    for i, atom in enumerate(jaxpr.outvars):
        _check_atom(atom, defined, f"as result {i}")


def _where(jaxpr: Jaxpr, index: int) -> str:
    """An equation as it is printed, and its source line."""
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
    """Types agree up to weakness, which matters to promotion alone, and that is done by then."""
    return x is y or (x.shape == y.shape and x.dtype == y.dtype)


def _check_binders(binders: Sequence[Any], defined: set[Var], where: str) -> None:
    for v in binders:
        if not isinstance(v, Var) or not isinstance(v.aval, ShapedArray):
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


# --------------------------------------------------------------------------------------------
# Comparison.


def jaxpr_equal(a: Jaxpr | ClosedJaxpr, b: Jaxpr | ClosedJaxpr) -> bool:
    """Whether two programs are the same up to the names of variables: types, equations in order.

    Consts are compared by value. Labels (`Jaxpr.name`) and source lines do not matter.
    """
    if not _all_equal(_const_equal, a.consts, b.consts):
        return False
    a, b = a.jaxpr, b.jaxpr
    if a is b:
        return True
    ours: dict[Var, Var] = {}  # the variables of `a` -> those of `b`

    def define(x: Var, y: Var) -> bool:
        ours[x] = y
        return x.aval is y.aval

    def equal(x: Any, y: Any) -> bool:
        if type(x) is Literal or type(y) is Literal:
            same_kind = type(x) is type(y) and x.aval is y.aval
            return same_kind and _exact(x.val) == _exact(y.val)
        return ours.get(x) is y

    def same_equation(x: Eqn, y: Eqn) -> bool:
        return (
            x.primitive is y.primitive
            and _all_equal(equal, x.invars, y.invars)
            and x.params.keys() == y.params.keys()
            and all(_param_equal(v, y.params[k]) for k, v in x.params.items())
            and _all_equal(define, x.outvars, y.outvars)
        )

    return (
        _all_equal(define, a.constvars, b.constvars)
        and _all_equal(define, a.invars, b.invars)
        and _all_equal(same_equation, a.eqns, b.eqns)
        and _all_equal(equal, a.outvars, b.outvars)
    )


def _all_equal(equal: Callable[[Any, Any], bool], xs: Sequence, ys: Sequence) -> bool:
    return len(xs) == len(ys) and all(map(equal, xs, ys))


def _param_equal(x: Any, y: Any) -> bool:
    if isinstance(x, Jaxpr | ClosedJaxpr):
        return isinstance(y, Jaxpr | ClosedJaxpr) and jaxpr_equal(x, y)
    if isinstance(x, tuple):
        return type(x) is type(y) and _all_equal(_param_equal, x, y)
    return bool(_exact(x) == _exact(y))


def _const_equal(x: Any, y: Any) -> bool:
    """Equal types and bits, so that NaNs are equal and zeros of different sign are not."""
    if x is y:
        return True
    return typeof(x) is typeof(y) and np.asarray(x).tobytes() == np.asarray(y).tobytes()


__all__ = [
    "check_jaxpr",
    "cse_jaxpr",
    "dce_jaxpr",
    "has_effects",
    "inline_calls",
    "jaxpr_equal",
    "quiet_jaxpr",
]
