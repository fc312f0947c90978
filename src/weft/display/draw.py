"""`draw`: a program as an SVG drawing, with the programs that it holds as boxes in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, variables_in
from weft.core.pretty import Scope, Typed, are_programs, param_text
from weft.core.primitive import Program
from weft.display.layers import Node, arrange_nodes
from weft.display.show import drop_defaults, escape_html, line_of, require_program
from weft.passes.dce import dce_jaxpr

_CHAR, _LINE, _PAD = 6.7, 15.0, 8.0  # of the font, in pixels; around text and around programs
_STYLE = """
text{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#212529}
.name{font-weight:600}.type{fill:#868e96}.label{fill:#495057;font-style:italic}
rect{stroke:#adb5bd;fill:#fff;rx:5}.equation{fill:#f3f0ff;stroke:#9775fa}
.parameter{fill:#e6fcf5;stroke:#20c997}.const{fill:#fff9db;stroke:#fab005}
.result{fill:#e7f5ff;stroke:#339af0}.program{fill:#f8f9fa;stroke:#ced4da}
path{fill:none;stroke:#868e96;stroke-width:1.1}.node:hover rect{stroke-width:2.2}
"""


class Picture(str):
    """The text of an SVG image, which a notebook shows as the image."""

    def _repr_svg_(self) -> str:
        return str(self)


class Box(Node):
    """A node with lines of text, and below them the drawings of the programs in it."""

    def __init__(self, kind: str, lines: Sequence[tuple[str, str]], title: str, inner: Sequence):
        self.kind, self.lines, self.title, self.inner = kind, lines, title, inner
        text = max(len(t) for _, t in lines) * _CHAR
        across = sum(d.width + _PAD for _, d in inner) + _PAD
        tall = max((d.height + _LINE + 2 * _PAD for _, d in inner), default=0.0)
        super().__init__(max(text + 2 * _PAD, across), len(lines) * _LINE + _PAD + tall)

    def svg(self) -> str:
        left = self.x - self.width / 2
        parts = [
            f'<g class="node"><title>{escape_html(self.title)}</title>'
            f'<rect class="{self.kind}" x="{left:.1f}" y="{self.y:.1f}" '
            f'width="{self.width:.1f}" height="{self.height:.1f}"/>'
        ]
        y = self.y + 3
        for kind, text in self.lines:
            y += _LINE
            parts.append(
                f'<text class="{kind}" x="{self.x:.1f}" y="{y - 3:.1f}" text-anchor="middle">'
                f"{escape_html(text)}</text>"
            )
        parts.append("</g>")
        x = left + _PAD
        for label, drawing in self.inner:
            parts.append(
                f'<text class="label" x="{x:.1f}" y="{y + _LINE:.1f}">{escape_html(label)}</text>'
            )
            parts.append(f'<g transform="translate({x:.1f},{y + _LINE + _PAD:.1f})">')
            parts.append(f"{drawing.svg()}</g>")
            x += drawing.width + _PAD
        return "".join(parts)


class Drawing:
    """One program, laid out: its size, and its contents as SVG."""

    def __init__(self, boxes: Sequence[Box], edges: Sequence[tuple[Box, Box, str]]):
        paths, width, height = arrange_nodes(boxes, [(a, b) for a, b, _ in edges])
        self.boxes, self.edges = boxes, [(p, t) for p, (_, _, t) in zip(paths, edges, strict=True)]
        self.width, self.height = width + 2 * _PAD, height + 2 * _PAD

    def svg(self) -> str:
        size = f'width="{self.width:.1f}" height="{self.height:.1f}"'
        lines = [
            f'<path d="{curve(p)}"><title>{escape_html(t)}</title></path>' for p, t in self.edges
        ]
        boxes = [b.svg() for b in self.boxes]
        body = "".join([*lines, *boxes])
        return f'<rect class="program" {size}/><g transform="translate({_PAD},{_PAD})">{body}</g>'


def curve(points: Sequence[tuple[float, float]]) -> str:
    """A smooth path downward through points."""
    (x, y), parts = points[0], []
    for a, b in points[1:]:
        middle = (y + b) / 2
        parts.append(f"C{x:.1f},{middle:.1f} {a:.1f},{middle:.1f} {a:.1f},{b:.1f}")
        x, y = a, b
    return f"M{points[0][0]:.1f},{points[0][1]:.1f}" + "".join(parts)


class Artist(Typed):
    """Lays out programs, with the names of the typed notation."""

    def __init__(self, most: int):
        super().__init__()
        self.most = most  # of the characters of a line
        self.drawn: dict[Jaxpr, str] = {}  # each program with the value that it is drawn at

    def drawing(self, jaxpr: Jaxpr) -> Drawing:
        names = Scope(self.fresh)
        boxes: list[Box] = []
        edges: list[tuple[Box, Box, str]] = []
        made: dict[Any, Box] = {}
        for kind, group in (("const", jaxpr.constvars), ("parameter", jaxpr.invars)):
            for v in group:
                made[v] = Box(kind, [("name", names[v]), ("type", str(v.aval))], kind, ())
                boxes.append(made[v])
        for eqn in jaxpr.eqns:
            box = self.equation_box(eqn, names)
            boxes.append(box)
            read = dict.fromkeys(variables_in(eqn.invars))
            edges += [(made[a], box, f"{names[a]}: {a.aval}") for a in read]
            made.update((v, box) for v in eqn.outvars)
        for a in jaxpr.outvars:
            box = Box("result", [("name", self.atom(a, names))], str(a.aval), ())
            boxes.append(box)
            if type(a) is not Literal:
                edges.append((made[a], box, f"{names[a]}: {a.aval}"))
        return Drawing(boxes, edges)

    def equation_box(self, eqn: Eqn, names: Scope) -> Box:
        shown = drop_defaults(eqn, self.shown_params(eqn))
        held = [
            (k if not are_programs(value) else f"{k}[{i}]", x.jaxpr)
            for k, value in shown.items()
            for i, x in enumerate(value if are_programs(value) else (value,))
            if isinstance(x, Program)
        ]
        again = [f"{k}: as in {self.drawn[x]}" for k, x in held if x in self.drawn]
        outs = ", ".join(f"{names[v]}: {v.aval}" for v in eqn.outvars)
        inner = []
        for k, x in held:
            if x not in self.drawn:
                self.drawn[x] = outs.split(":")[0] or eqn.primitive.name
                inner.append((k, self.drawing(x)))
        plain = [f"{k}={param_text(x)}" for k, x in shown.items()
                 if not isinstance(x, Program) and not are_programs(x)]  # fmt: skip
        numbers = [self.atom(a, names) for a in eqn.invars if type(a) is Literal]
        head = " ".join([eqn.primitive.name, *numbers])
        lines = [("name", self.cut(head))]
        lines += [("label", self.cut(t)) for t in (" ".join(plain), *again) if t]
        lines += [("type", self.cut(outs))] if outs else []
        place = ": ".join(filter(None, line_of(eqn)))
        args = " ".join(self.atom(a, names) for a in eqn.invars)
        title = f"{outs} = {eqn.primitive.name} {args}\n" + "\n".join([*plain, place])
        return Box("equation", lines, title.strip(), inner)

    def cut(self, text: str) -> str:
        return text if len(text) <= self.most else text[: self.most - 3] + "..."


def draw(
    program: Jaxpr | ClosedJaxpr, path: Any = None, *, short: bool = True, max_chars: int = 36
) -> Picture:
    """Draw a program as an SVG image.

    Each equation is a box, with the programs that it holds in it; values flow downward. Types are
    in the boxes. Parameters in full, and your source lines, appear where the pointer is.

    Args:
      program: a `Jaxpr` or a `ClosedJaxpr`.
      path: the path of a file for the image. None, the default, writes no file.
      short: if True, the default, equations that nothing needs are left out.
      max_chars: the largest number of characters of a line in a box. The default is 36.

    Returns:
      The text of the image, a str. A notebook shows the image.

    >>> svg = weft.jaxpr.draw(weft.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0))
    >>> svg.startswith("<svg"), svg.count('class="equation"')
    (True, 2)
    """
    require_program("draw", program)
    jaxpr = dce_jaxpr(program.jaxpr)[0] if short else program.jaxpr
    drawing = Artist(max_chars).drawing(jaxpr)
    w, h = drawing.width, drawing.height
    svg = Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" '
        f'viewBox="0 0 {w:.0f} {h:.0f}"><style>{_STYLE}</style>{drawing.svg()}</svg>\n'
    )
    if path is not None:
        with open(os.fspath(path), "w", encoding="utf-8") as file:
            file.write(svg)
    return svg
