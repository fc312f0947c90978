"""`diff`: the differences between two programs, aligned by what equations compute."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from weft.core.pretty import Scope, Typed, are_programs, param_text
from weft.core.primitive import Program
from weft.display.page import STYLE
from weft.display.show import drop_defaults, escape_html, require_program
from weft.passes.equal import jaxpr_equal

_COLORS = {"-": "\x1b[31m", "+": "\x1b[32m", "@": "\x1b[2m"}


class Row(NamedTuple):
    """One line: `mark` is "-" for the first program, "+" for the second, " " for both, "@" a note.

    `other` is the line that it stands against, where one of it was changed.
    """

    mark: str
    text: str
    depth: int
    other: str = ""


class Diff:
    """The differences between two programs. It prints as lines; a notebook shows HTML.

    Attributes:
      rows: the lines.
      equal: True if the programs are equal.
      context: the number of lines that are shown around each change.

    >>> program = weft.make_jaxpr(jnp.sin)(1.0)
    >>> weft.jaxpr.diff(program, program).equal
    True
    """

    def __init__(self, rows: list[Row], equal: bool, context: int):
        self.rows = rows
        self.equal = equal
        self.context = context

    def text(self, color: bool = False) -> str:
        """The lines, `-` and `+` in front; in colours, what changed in a line is underlined."""
        lines = []
        for row in self.shown():
            line = f"{row.mark if row.mark != '@' else ' '} {'    ' * row.depth}"
            if not color or row.mark == " ":
                lines.append((line + row.text).rstrip())
                continue
            begin, end = _COLORS[row.mark], "\x1b[0m"
            pieces = [f"\x1b[4m{t}\x1b[24m" if new else t for t, new in changed_pieces(row)]
            lines.append(f"{begin}{line}{''.join(pieces)}{end}")
        return "\n".join(lines)

    def shown(self) -> Iterator[Row]:
        """The rows near a change, and how many are left out between them."""
        near = set()
        for i, row in enumerate(self.rows):
            if row.mark != " ":
                near.update(range(i - self.context, i + self.context + 1))
                for k in range(i - 1, -1, -1):  # what the program is in
                    if self.rows[k].depth < row.depth:
                        near.add(k)
                        row = self.rows[k]
        i = 0
        while i < len(self.rows):
            if i in near:
                yield self.rows[i]
                i += 1
                continue
            start = i
            while i < len(self.rows) and i not in near:
                i += 1
            lines = f"({i - start} equal line{'s' if i - start > 1 else ''})"
            yield Row("@", lines, min(r.depth for r in self.rows[start:i]))

    def __str__(self) -> str:
        return "equal programs" if self.equal else self.text()

    def __repr__(self) -> str:
        return self.text(color=True) if not self.equal and sys.stdout.isatty() else str(self)

    def _repr_html_(self) -> str:
        if self.equal:
            return '<div class="weft">equal programs</div>'
        kinds = {"-": "d", "+": "a", "@": "gap", " ": ""}
        lines = []
        for row in self.shown():
            body = "".join(
                f"<mark>{escape_html(t)}</mark>" if new else escape_html(t)
                for t, new in changed_pieces(row)
            )
            mark = row.mark if row.mark != "@" else " "
            lines.append(f'<pre class="{kinds[row.mark]}">{mark} {"    " * row.depth}{body}</pre>')
        return f'<div class="weft"><style>{STYLE}</style>{"".join(lines)}</div>'


def changed_pieces(row: Row) -> list[tuple[str, bool]]:
    """A line in pieces, each with whether the line that it stands against lacks it."""
    if not row.other:
        return [(row.text, False)]
    ours, theirs = (re.findall(r"[\w.]+|\W", t) for t in (row.text, row.other))
    pieces = []
    for kind, i, j, *_ in difflib.SequenceMatcher(None, ours, theirs, False).get_opcodes():
        if i < j:
            pieces.append(("".join(ours[i:j]), kind != "equal"))
    return pieces


def diff(a: Jaxpr | ClosedJaxpr, b: Jaxpr | ClosedJaxpr, *, context: int = 3) -> Diff:
    """Return the differences between two programs.

    Equations are aligned by primitive, parameters and types. Variables of the second program have
    the names of the corresponding variables of the first. Programs that equations hold are compared
    in turn.

    Args:
      a: the first program, a `Jaxpr` or a `ClosedJaxpr`.
      b: the second program.
      context: the number of lines that are shown around each change. The default is 3.

    Returns:
      A `Diff`. It prints as lines, in colours on a terminal; a notebook shows HTML. Its attribute
      `equal` is True if there are no differences.

    >>> before = weft.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)
    >>> weft.jaxpr.diff(before, weft.make_jaxpr(lambda x: jnp.cos(x) * 2.0)(1.0))
      lambda ; a:f32[]
    - b:f32[] = sin a
    + b:f32[] = cos a
      c:f32[] = mul b 2.0
      in c
    """
    require_program("diff", a, b)
    comparison = Comparison()
    comparison.programs(a.jaxpr, b.jaxpr, 0)
    equal = jaxpr_equal(a, b)
    if not equal and all(row.mark == " " for row in comparison.rows):
        what = "consts" if len(a.consts) and a.jaxpr is not b.jaxpr else "consts or weak types"
        comparison.rows.append(Row("-", f"the same text: {what} or functions are different", 0))
    return Diff(comparison.rows, equal, context)


class Comparison(Typed):
    """Compares two programs, equation by equation, with one set of names for both."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self.compared: set[tuple[Jaxpr, Jaxpr]] = set()

    def programs(self, a: Jaxpr, b: Jaxpr, depth: int) -> None:
        """The rows of two programs."""
        ours, theirs = Scope(self.fresh), Scope(self.fresh)
        for name in ("constvars", "invars"):
            pairs = zip(getattr(a, name), getattr(b, name), strict=False)
            for x, y in pairs:
                theirs[y] = ours[x]
        self.lines(self.head(a, ours), self.head(b, theirs), depth)
        for eqn in a.eqns:
            for v in eqn.outvars:
                ours[v]  # so that names are in the order of the program
        for x, y in self.align(a.eqns, b.eqns):
            if x is None or y is None:
                eqn, names, mark = (y, theirs, "+") if x is None else (x, ours, "-")
                self.rows.append(Row(mark, self.line(eqn, names), depth))
            else:
                self.pair(x, y, ours, theirs, depth)
        self.lines(self.tail(a, ours), self.tail(b, theirs), depth)

    def pair(self, x: Eqn, y: Eqn, ours: Scope, theirs: Scope, depth: int) -> None:
        """Two equations that stand for each other, and the programs in them."""
        for v, w in zip(x.outvars, y.outvars, strict=False):
            theirs[w] = ours[v]
        self.lines(self.line(x, ours), self.line(y, theirs), depth)
        for (key, p), (_, q) in zip(held_in(x), held_in(y), strict=False):
            pair = p.jaxpr, q.jaxpr
            if pair in self.compared:
                self.rows.append(Row("@", f"{key}= different as above", depth + 1))
            elif not jaxpr_equal(p, q):
                self.compared.add(pair)
                self.rows.append(Row(" ", f"{key}=", depth + 1))
                self.programs(*pair, depth + 2)

    def lines(self, ours: str, theirs: str, depth: int) -> None:
        if ours == theirs:
            self.rows.append(Row(" ", ours, depth))
        else:
            self.rows += [Row("-", ours, depth, theirs), Row("+", theirs, depth, ours)]

    def head(self, jaxpr: Jaxpr, names: Scope) -> str:
        consts, params = (
            " ".join(self.binder(v, names[v]) for v in group)
            for group in (jaxpr.constvars, jaxpr.invars)
        )
        return f"lambda {consts}; {params}".replace("  ", " ").rstrip()

    def tail(self, jaxpr: Jaxpr, names: Scope) -> str:
        return f"in {' '.join(self.atom(x, names) for x in jaxpr.outvars)}"

    def line(self, eqn: Eqn, names: Scope) -> str:
        """An equation on one line, with the programs in it left out."""
        outs = " ".join(self.binder(v, names[v]) for v in eqn.outvars)
        shown = drop_defaults(eqn, self.shown_params(eqn))
        params = " ".join(f"{k}={self.short(x)}" for k, x in shown.items())
        args = " ".join(self.atom(x, names) for x in eqn.invars)
        body = f"{eqn.primitive.name}{f'[{params}]' if params else ''} {args}"
        return f"{outs} = {body}" if outs else body

    def short(self, x: Any) -> str:
        if isinstance(x, Program):
            return f"{{{len(x.eqns)} equations}}"
        return f"({' '.join(map(self.short, x))})" if are_programs(x) else param_text(x)

    def align(self, a: Sequence[Eqn], b: Sequence[Eqn]) -> Iterator[tuple[Any, Any]]:
        """The equations of both programs in order, in pairs where they stand for each other."""
        keys = [[self.key(e) for e in eqns] for eqns in (a, b)]
        for kind, i, j, k, m in difflib.SequenceMatcher(None, *keys, False).get_opcodes():
            if kind == "equal":
                yield from zip(a[i:j], b[k:m], strict=True)
                continue
            names = [[e.primitive.name for e in eqns] for eqns in (a[i:j], b[k:m])]
            for same, n, o, p, q in difflib.SequenceMatcher(None, *names, False).get_opcodes():
                ours, theirs = a[i + n : i + o], b[k + p : k + q]
                kinds = [[[v.aval for v in e.outvars] for e in eqns] for eqns in (ours, theirs)]
                if same == "equal" or kinds[0] == kinds[1]:  # others in their place
                    yield from zip(ours, theirs, strict=True)
                else:
                    yield from ((x, None) for x in ours)
                    yield from ((None, y) for y in theirs)

    def key(self, eqn: Eqn) -> tuple:
        """Return the equal parts of two equations that correspond."""
        params = tuple((k, self.outline(x)) for k, x in self.shown_params(eqn).items())
        return eqn.primitive.name, params, tuple(str(v.aval) for v in eqn.outvars)

    def outline(self, x: Any) -> str:
        if isinstance(x, Program):
            return "program"
        return f"{len(x)} programs" if are_programs(x) else param_text(x)


def held_in(eqn: Eqn) -> list[tuple[str, Any]]:
    """The programs in an equation, each with the name of its parameter."""
    pairs = [(k, x) for k, v in eqn.params.items() for x in (v if are_programs(v) else (v,))]
    return [(k, x) for k, x in pairs if isinstance(x, Program)]
