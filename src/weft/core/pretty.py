"""Jaxprs as text: the typed notation, which `repr` returns.

Programs are laid out as documents (util/documents.py). The last lines give the classes of jaxpr.py
their `repr`. display/printing.py has `pretty_print`, which has options and another notation.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Eqn,
    Jaxpr,
    Literal,
    UnreadVar,
    Var,
    bodies_of,
    jaxprs_in_params,
    read_vars,
)
from weft.core.primitive import Program
from weft.core.ref import StateEffect
from weft.core.source import source_location
from weft.util import fun_name
from weft.util.documents import Doc, Group, Line, Nest, Note, fill_words, join_docs, render

# --------------------------------------------------------------------------------------------
# Names, literals and parameters.

# Names no variable gets, so that text reads one way only: keywords, and numbers that are words.
_RESERVED = frozenset(("in", "let", "lambda", "inf", "nan"))


def fresh_names(taken: Collection[str] = ()) -> Iterator[str]:
    """a, b, ..., z, ba, bb, ...: numbers to the base 26."""
    for n in itertools.count():
        name = ""
        while n or not name:
            n, digit = divmod(n, 26)
            name = chr(ord("a") + digit) + name
        if name not in _RESERVED and name not in taken:
            yield name


class Scope(dict[Any, str]):
    """The names of the variables of one program; a variable gets its name on first use."""

    __slots__ = ("fresh",)

    def __init__(self, fresh: Iterator[str]):
        self.fresh = fresh

    def __missing__(self, var: Var) -> str:
        suffix = "_" if type(var) is UnreadVar else ""
        name = self[var] = next(self.fresh) + suffix
        return name


_UNMARKED = tuple(map(np.dtype, (np.bool_, np.int32, np.float32, np.complex64)))


def number_text(val: Any, dtype: np.dtype) -> str:
    """The shortest decimal that reads back as `val` in `dtype`, or the exact one if it is short."""
    if not isinstance(val, bool | int | float | complex | np.generic):
        return str(val)
    if dtypes.is_bool(dtype) or dtype == dtypes.float0:  # which has one value
        return str(bool(val))
    if dtypes.is_integer(dtype):
        return str(int(val))  # type: ignore[arg-type]
    with np.errstate(over="ignore"):
        exact = dtype.type(val)
    if dtypes.is_complex(dtype):
        return str(exact)
    x = float(exact)
    if not math.isfinite(x) or float(f"{x:.6g}") == x:
        return repr(x)  # short and exact: 448.0, where 450.0 would read back as the same float8
    texts = (f"{x:.{digits}g}" for digits in range(1, 18))
    return next(repr(float(t)) for t in texts if dtype.type(float(t)) == exact)


def param_text(x: Any, inside: bool = False) -> str:
    """A parameter on one line; `inside` a container, strings are quoted."""
    if isinstance(x, str):
        return repr(x) if inside or "\n" in x else x
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return "float0" if x == dtypes.float0 else np.dtype(x).name
    if isinstance(x, enum.Enum):
        return f"{type(x).__name__}.{x.name}"
    if isinstance(x, tuple | list):
        items = [param_text(i, True) for i in x]
        if hasattr(x, "_fields"):  # a namedtuple
            fields = (f"{k}={v}" for k, v in zip(x._fields, items, strict=True))
            return f"{type(x).__name__}({', '.join(fields)})"
        if isinstance(x, list):
            return f"[{', '.join(items)}]"
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if callable(x) and not isinstance(x, Program):
        return fun_name(x)
    return str(x).replace("\n", " ")


def are_programs(x: Any) -> bool:
    """Return True if a parameter is a sequence of programs."""
    return isinstance(x, tuple | list) and any(isinstance(p, Program) for p in x)


# --------------------------------------------------------------------------------------------
# The notation.


class Options(NamedTuple):
    """Options of the text that is printed beside the equations: see pretty_print."""

    source_info: bool = False
    print_shapes: bool = True
    print_effects: bool = False
    custom_rules: bool = True
    name_stack: bool = False


class Notation:
    """The base of notations: see display/printing.py for another one. An instance prints once."""

    def __init__(self, options: Options = Options()):
        self.options = options
        self.taken: set[str] = set()
        self.fresh = fresh_names(self.taken)

    def program(self, jaxpr: Jaxpr, names: Scope | None = None) -> Doc:
        """A program, with names given to some of its variables already."""
        raise NotImplementedError

    def document(self, jaxpr: Jaxpr) -> Doc:
        """A program that is not a parameter."""
        return self.program(jaxpr)

    def equation(self, eqn: Eqn, names: Scope, used: Collection[Var]) -> Doc:
        raise NotImplementedError

    def access(self, eqn: Eqn, names: Scope, used: Collection[Var], outs: list[str]) -> str:
        """A read or a write of a reference: `a:f32[] <- r[0]`, `r[0] <- a`, `r[0] += a`."""
        texts = [self.atom(a, names) for a in eqn.invars]
        ref: Any = eqn.invars[0].aval
        count = eqn.primitive.values  # type: ignore[attr-defined]
        arrays = eqn.params["index"].text(ref.inner_aval, texts[1 + count :])
        place = f"{texts[0]}[{arrays}]"
        if not count:
            return f"{outs[0]} <- {place}"
        if not outs:
            return f"{place} += {texts[1]}"
        if eqn.outvars[0] in used:
            return f"{outs[0]}, {place} <- {place}, {texts[1]}"
        return f"{place} <- {texts[1]}"

    def shown_params(self, eqn: Eqn) -> dict[str, Any]:
        """The parameters that are printed, in order."""
        params = eqn.params
        if eqn.primitive.pretty_params is not None and self.options.custom_rules:
            params = eqn.primitive.pretty_params(params)
        return {k: params[k] for k in sorted(params, key=lambda k: (k != "name", k))}

    def results(self, jaxpr: Jaxpr, names: Scope) -> list[str]:
        """`a,` and so on; the last one of several without its comma."""
        texts = [f"{self.atom(a, names)}," for a in jaxpr.outvars]
        return texts if len(texts) < 2 else [*texts[:-1], texts[-1][:-1]]

    def ending(self, jaxpr: Jaxpr) -> str:
        """Return the text after the results."""
        if not (self.options.print_effects and jaxpr.effects):
            return ") }"
        return f") : {{ {', '.join(sorted(map(str, jaxpr.effects)))} }} }}"

    def atom(self, atom: Atom, names: Scope) -> str:
        if type(atom) is Literal:
            return number_text(atom.val, atom.aval.dtype)
        return names[atom]

    def primitive(self, eqn: Eqn) -> str:
        return eqn.primitive.name

    def type(self, aval: ShapedArray) -> str:
        return aval.str_short(True)

    def value(self, x: Any, inside: bool = False) -> str:
        """A parameter that is not a program, or a part of it."""
        return param_text(x, inside)

    def note(self, eqn: Eqn) -> Doc:
        """Return the place and the scopes of the equation, as the options say."""
        place = source_location(eqn.source) if self.options.source_info else ""
        names = f"[{eqn.source_info.name_stack}]" if self.options.name_stack else ""
        text = f"{place} {names}".strip()
        return Note(text) if text else ""


class Typed(Notation):
    """`{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }`; one set of names for all programs.

    A program held in several places is written once, in front: `let f = { ... } in { ... }`.
    """

    def __init__(self, options: Options = Options()):
        super().__init__(options)
        self.shared: dict[Jaxpr, str] = {}

    def document(self, jaxpr: Jaxpr) -> Doc:
        doc: list[Doc] = []
        for held in self.name_shared(jaxpr):
            doc += [f"let {self.shared[held]} = ", self.program(held), " in", Line()]
        return [*doc, self.program(jaxpr)]

    def name_shared(self, top: Jaxpr) -> list[Jaxpr]:
        """Name the programs held in several places; they are given inner ones first."""
        found: dict[Jaxpr, str] = {}  # each with the name it would have
        order: list[Jaxpr] = []
        several: set[Jaxpr] = set()
        stack = [(top, iter(self.held(top)))]
        while stack:
            around, rest = stack[-1]
            for jaxpr, name in rest:
                if jaxpr not in found:
                    found[jaxpr] = name
                    stack.append((jaxpr, iter(self.held(jaxpr))))
                    break
                several.add(jaxpr)
            else:
                order.append(around)
                stack.pop()
        order = [jaxpr for jaxpr in order if jaxpr in several]
        for jaxpr in order:
            names = (f"{found[jaxpr]}{n or ''}" for n in itertools.count())
            name = next(n for n in names if n not in self.taken and n not in _RESERVED)
            self.shared[jaxpr] = name
            self.taken.add(name)
        return order

    def held(self, jaxpr: Jaxpr) -> Iterator[tuple[Jaxpr, str]]:
        """The programs that the equations of a program hold, with a name for each."""
        for eqn in jaxpr.eqns:
            if eqn.params:
                params = self.shown_params(eqn)
                for inner in jaxprs_in_params(params):
                    name = str(params.get("name") or inner.name)
                    yield inner, name if name.isidentifier() else "jaxpr"

    def program(self, jaxpr: Jaxpr, names: Scope | None = None) -> Doc:
        names = Scope(self.fresh) if names is None else names
        used = read_vars(jaxpr)
        consts = fill_words([self.binder(v, names[v]) for v in jaxpr.constvars])
        params = [self.binder(v, names[v]) for v in jaxpr.invars] or [""]
        params[-1] += ". let"
        eqns = self.equations(jaxpr, names, used)
        body: Doc = [Nest(4, [Line(), *eqns]), Nest(2, Line())] if eqns else Nest(2, Line("  "))
        results = Nest(4, fill_words(self.results(jaxpr, names)))
        head = ["{ lambda ", Nest(4, [consts, "; ", fill_words(params)])]
        return Group([*head, body, "in (", results, self.ending(jaxpr)])

    def equations(self, jaxpr: Jaxpr, names: Scope, used: Collection[Var]) -> list:
        return join_docs(Line("; "), [self.equation(e, names, used) for e in jaxpr.eqns])

    def equation(self, eqn: Eqn, names: Scope, used: Collection[Var]) -> Doc:
        outs = [self.binder(v, names[v] if v in used else "_") for v in eqn.outvars]
        if "index" in eqn.params and type(eqn.primitive.effect) is StateEffect:
            return [self.note(eqn), self.access(eqn, names, used, outs)]
        left = [Nest(2, fill_words(outs)), " = "] if outs else []
        args = Nest(2, fill_words([self.atom(a, names) for a in eqn.invars]))
        params = self.params(eqn, names, used)
        return [self.note(eqn), *left, self.primitive(eqn), params, " ", args]

    def params(self, eqn: Eqn, names: Scope, used: Collection[Var]) -> Doc:
        """`[axes=(0,)]`, with each on a line of its own where they do not fit on one."""
        shown = self.shown_params(eqn) if eqn.params else {}
        if not shown:
            return ""
        docs: list[Doc] = [[f"{k}=", self.param(x, eqn, names, used)] for k, x in shown.items()]
        return Group(["[", Nest(2, [Line(""), *join_docs(Line(), docs)]), Line(""), "]"])

    def param(self, x: Any, eqn: Eqn, names: Scope, used: Collection[Var]) -> Doc:
        if are_programs(x):
            programs = join_docs(Line(), [self.held_program(p) for p in x])
            return Group(["(", Nest(2, [Line(""), *programs]), Line(""), ")"])
        if isinstance(x, Program):
            return self.held_program(x, self.flow_in(eqn, x.jaxpr, names, used))
        return self.value(x)

    def held_program(self, x: Any, names: Scope | None = None) -> Doc:
        """A parameter that is a program: itself, or its name if it has one."""
        if not isinstance(x, Program):
            return self.value(x, True)
        return self.shared.get(x.jaxpr) or self.program(x.jaxpr, names)

    def flow_in(self, eqn: Eqn, held: Jaxpr, names: Scope, used: Collection[Var]) -> Scope | None:
        """Return a scope that gives a call's program the caller's names for inputs and outputs."""
        if not any(b.jaxpr is held and b.names_flow_in for b in bodies_of(eqn)):
            return None
        inner = Scope(self.fresh)
        passed: set[Any] = set()
        for v, a in zip(held.invars, eqn.invars, strict=False):
            if type(a) is not Literal and a not in passed:
                passed.add(a)
                inner[v] = names[a]
        own: set[Any] = set(held.invars)
        for a, out in zip(held.outvars, eqn.outvars, strict=False):
            if type(a) is not Literal and a not in own and a not in inner and out in used:
                inner[a] = names[out]
        return inner

    def binder(self, var: Var, name: str) -> str:
        return f"{name}:{self.type(var.aval)}" if self.options.print_shapes else name

    def atom(self, atom: Atom, names: Scope) -> str:
        text = super().atom(atom, names)
        marked = type(atom) is Literal and (atom.aval.dtype not in _UNMARKED or atom.aval.shape)
        return (
            f"{text}:{atom.aval.str_short(True)}" if marked and self.options.print_shapes else text
        )


# --------------------------------------------------------------------------------------------
# Programs and equations as text.


def program_text(program: Jaxpr | ClosedJaxpr | Eqn) -> str:
    """Return the text of a program or of an equation, on lines of 80 columns: its `repr`."""
    printer = Typed()
    if isinstance(program, Eqn):
        return render(printer.equation(program, Scope(printer.fresh), used_results(program)), 80)
    return render(printer.document(program.jaxpr), 80)


def used_results(eqn: Eqn) -> list[Var]:
    """Return the results that an equation printed without its program gives names to."""
    return [v for v in eqn.outvars if type(v) is not DropVar]


def equation_text(jaxpr: Jaxpr, index: int) -> str:
    """One equation on one line, with the names it has where the whole of `jaxpr` is printed."""
    printer = Typed()
    names = Scope(printer.fresh)
    printer.program(jaxpr, names)
    eqn = jaxpr.eqns[index]
    lines = render(printer.equation(eqn, names, eqn.outvars), 80).split("\n")
    return lines[0] if len(lines) == 1 else f"{lines[0]} ... {lines[-1].strip()}"


# Printing imports jaxpr.py, so it is attached to the classes here.
for _cls in (Jaxpr, ClosedJaxpr, Eqn):
    _cls.__repr__ = program_text  # type: ignore[assignment]
