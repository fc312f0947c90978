"""`pretty_print`: jaxprs and equations as text, with options, in either of two notations.

The typed notation is in core/pretty.py; the classic notation is from JAX's first years.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, read_vars
from weft.core.pretty import (
    Notation,
    Options,
    Scope,
    Typed,
    are_programs,
    fresh_names,
    param_text,
    used_results,
)
from weft.core.primitive import Program
from weft.core.ref import StateEffect
from weft.util.documents import Doc, Line, Nest, join_docs, render


class Classic(Notation):
    """`{ lambda  ; a. let b = sin a in (b,) }`, on three lines; names restart in each program."""

    def shown_params(self, eqn: Eqn) -> dict[str, Any]:
        """Return the parameters by name. Named axes are `axis_name`, a single axis its name."""
        params = dict(super().shown_params(eqn))
        axes = params.get("axes")
        if isinstance(axes, tuple) and any(isinstance(a, str) for a in axes):
            params["axis_name"] = params.pop("axes")
            if params.get("axis_index_groups") is None:
                params.pop("axis_index_groups", None)
        named = params.get("axis_name")
        if isinstance(named, tuple) and len(named) == 1:
            (params["axis_name"],) = named
        return {k: params[k] for k in sorted(params)}

    def program(self, jaxpr: Jaxpr, names: Scope | None = None) -> Doc:
        names = Scope(fresh_names()) if names is None else names
        used = read_vars(jaxpr)
        params = " ".join([names[v] for v in jaxpr.invars])
        consts = " ".join([names[v] for v in jaxpr.constvars])
        eqns = join_docs(Line(), [self.equation(e, names, used) for e in jaxpr.eqns])
        let: Doc = ["let ", Nest(None, eqns)] if eqns else "let"
        results = " ".join(self.results(jaxpr, names))
        body = Nest(2, [Line(), let, Line(), "in (", results, self.ending(jaxpr)])
        return Nest(None, [f"{{ lambda {consts} ; {params}.", body])

    def equation(self, eqn: Eqn, names: Scope, used: Collection[Var]) -> Doc:
        outs = [names[v] if v in used else "*" for v in eqn.outvars]
        if "index" in eqn.params and type(eqn.primitive.effect) is StateEffect:
            return [self.note(eqn), self.access(eqn, names, used, outs)]
        left = f"{' '.join(outs)} = " if outs else ""
        args = "".join([f" {self.atom(a, names)}" for a in eqn.invars])
        docs: list[Doc] = [[f"{k}=", self.param(x)] for k, x in self.shown_params(eqn).items()]
        params = ["[ ", Nest(None, join_docs(Line(), docs)), " ]"] if docs else []
        return [self.note(eqn), left, eqn.primitive.name, *params, args]

    def param(self, x: Any) -> Doc:
        if are_programs(x):
            programs = [self.program(p.jaxpr) for p in x]
            return ["( ", Nest(None, join_docs(Line(), programs)), " )"]
        return self.program(x.jaxpr) if isinstance(x, Program) else param_text(x)


_NOTATIONS: dict[str, type[Notation]] = {"typed": Typed, "classic": Classic}
_KEYWORD = re.compile(r"\blambda\b|\blet\b|\bin(?= \()")
_TYPE = re.compile(r"(?<=\w):\w+\[[\d,]*\]")


def pretty_print(
    program: Jaxpr | ClosedJaxpr | Eqn,
    *,
    notation: str = "typed",
    source_info: bool = False,
    print_shapes: bool = True,
    custom_pp_eqn_rules: bool = True,
    name_stack: bool = False,
    print_effects: bool = False,
    width: int = 80,
    use_color: bool = False,
) -> str:
    """Return the text of a jaxpr or of an equation.

    `notation` is "typed", or "classic" for the notation without types of JAX's first years.
    `source_info` adds the file, line, column and function of each equation, `name_stack` its named
    scopes.
    """
    if notation not in _NOTATIONS:
        raise ValueError(
            f"pretty_print: notation must be 'typed' or 'classic'; got {notation!r}. "
            'Hint: jaxpr.pretty_print(notation="classic")'
        )
    options = Options(source_info, print_shapes, print_effects, custom_pp_eqn_rules, name_stack)
    printer = _NOTATIONS[notation](options)
    if isinstance(program, Eqn):
        doc = printer.equation(program, Scope(printer.fresh), used_results(program))
    else:
        doc = printer.document(program.jaxpr)
    text = render(doc, width)
    if use_color:
        text = _KEYWORD.sub("\x1b[34;1m\\g<0>\x1b[39;22m", text)
        text = _TYPE.sub("\x1b[35m\\g<0>\x1b[39m", text)
    return text
