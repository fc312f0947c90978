"""Programs as HTML, for notebooks and pages: nested programs fold, types and lines on hover."""

from __future__ import annotations

from typing import Any

from weft.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, read_vars
from weft.core.pretty import Scope, Typed, are_programs, param_text
from weft.core.primitive import Program
from weft.display.show import drop_defaults, escape_html, line_of

# Colours that hold on a light and on a dark ground; a notebook's theme gives the rest.
STYLE = """
.weft{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:nowrap;
 overflow-x:auto;color:inherit}
.weft .in{padding-left:2em}.weft .e:hover{background:#8882}
.weft .v{color:#0b7285}.weft .p{color:#7048e8;font-weight:600}.weft .k,.weft .s{color:#868e96}
.weft .n{color:#c2255c}.weft .w{color:#2f9e44;font-weight:600}
.weft .s{float:right;padding-left:3em;font-size:11px}
.weft summary{cursor:pointer}.weft summary:hover{background:#8882}
.weft .d{color:#c92a2a}.weft .a{color:#2b8a3e}.weft .c{color:#b35900}
.weft .d mark{background:#fa525240;color:inherit}.weft .a mark{background:#40c05740;color:inherit}
.weft pre{margin:0;font:inherit;padding:0 .5em}.weft pre.d{background:#fa525218}
.weft pre.a{background:#40c05718}.weft .gap{color:#868e96;font-style:italic}
"""
_OPEN = 12  # a program with at most this many equations is shown unfolded


def span(kind: str, text: str, title: str = "") -> str:
    """Return a piece of text of a kind; `title` is shown when the pointer is on it."""
    hover = f' title="{escape_html(title)}"' if title else ""
    return f'<span class="{kind}"{hover}>{escape_html(text)}</span>'


class Page(Typed):
    """Writes one program as HTML, with the names of the typed notation."""

    def __init__(self, short: bool = True):
        super().__init__()
        self.short = short
        self.made: dict[Any, str] = {}  # the origin of each variable

    def html(self, jaxpr: Jaxpr) -> str:
        parts = []
        for held in self.name_shared(jaxpr):
            label = span("w", "let ") + span("p", self.shared[held]) + " = "
            parts.append(self.fold(held, None, False, label))
        return "".join([*parts, self.fold(jaxpr, None, True)])

    def shown_params(self, eqn: Eqn) -> dict[str, Any]:
        params = super().shown_params(eqn)
        return drop_defaults(eqn, params) if self.short else params

    def variable(self, var: Any, names: Scope) -> str:
        return span("v", names[var], f"{names[var]}: {var.aval}{self.made.get(var, '')}")

    def atom_html(self, atom: Atom, names: Scope) -> str:
        if type(atom) is Literal:
            return span("n", self.atom(atom, names), str(atom.aval))
        return self.variable(atom, names)

    def bound(self, var: Var, names: Scope) -> str:
        return self.variable(var, names) + span("k", f":{var.aval}")

    def fold(self, jaxpr: Jaxpr, names: Scope | None, top: bool, label: str = "") -> str:
        """A program that can be folded to one line, which begins with `label`."""
        names = Scope(self.fresh) if names is None else names
        for v in jaxpr.invars:
            self.made.setdefault(v, "\na parameter")
        used = read_vars(jaxpr)
        consts = " ".join(self.bound(v, names) for v in jaxpr.constvars)
        params = " ".join(self.bound(v, names) for v in jaxpr.invars)
        count = len(jaxpr.eqns)
        size = span("k", f" {count} equation{'s' if count != 1 else ''}")
        places = ["", *[line_of(e)[0] for e in jaxpr.eqns]]
        rows = "".join(
            self.row(e, names, used, places[i + 1] != places[i]) for i, e in enumerate(jaxpr.eqns)
        )
        outs = ", ".join(self.atom_html(a, names) for a in jaxpr.outvars)
        shown = " open" if top or count <= _OPEN else ""
        return (
            f"<details{shown}><summary>{label}{span('w', 'lambda')} {consts}; {params}.{size}"
            f'</summary><div class="in">{rows}<div>{span("w", "in")} ({outs})</div></div></details>'
        )

    def row(self, eqn: Eqn, names: Scope, used: set, begins: bool) -> str:
        """An equation, and below it the programs that it holds; `begins` a line of the user's."""
        place, text = line_of(eqn)
        for v in eqn.outvars:
            self.made[v] = f"\nby {eqn.primitive.name} at {place}: {text}" if place else ""
        outs = " ".join(self.bound(v, names) if v in used else span("k", "_") for v in eqn.outvars)
        args = " ".join(self.atom_html(a, names) for a in eqn.invars)
        shown = self.shown_params(eqn)
        plain = {
            k: x for k, x in shown.items() if not isinstance(x, Program) and not are_programs(x)
        }
        params = " ".join(f"{k}={param_text(x)}" for k, x in plain.items())
        title = f"{place}  {text}".strip()
        head = f"{outs} = " if eqn.outvars else ""
        head += span("p", eqn.primitive.name, title) + (span("k", f"[{params}]") if params else "")
        held = "".join(
            f'<div class="in">{self.held_html(k, x, eqn, names, used)}</div>'
            for k, value in shown.items()
            if k not in plain
            for x in (value if are_programs(value) else (value,))
        )
        where = span("s", place, title) if begins else ""
        return f'<div class="e">{where}{head} {args}</div>{held}'

    def held_html(self, key: str, x: Any, eqn: Eqn, names: Scope, used: set) -> str:
        label = span("k", f"{key} = ")
        if not isinstance(x, Program):
            return label + span("k", param_text(x, True))
        name = self.shared.get(x.jaxpr)
        if name:
            return label + span("p", name)
        flows = self.flow_in(eqn, x.jaxpr, names, used)
        return self.fold(x.jaxpr, flows, False, label)


def program_html(program: Jaxpr | ClosedJaxpr) -> str:
    """The program for a notebook: nested programs fold, types and source lines show on hover."""
    return f'<div class="weft"><style>{STYLE}</style>{Page().html(program.jaxpr)}</div>'
