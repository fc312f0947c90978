"""Write a report as a single HTML page that loads no other file."""

from __future__ import annotations

import html
import keyword
import linecache
import pathlib
import tokenize
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weft.explain.origins import NOWHERE, Place
from weft.explain.tables import Table
from weft.util import name_cell

AROUND = 4  # lines of source shown before and after one that costs
# The classes of tokens on the page. Python 3.12 splits an f-string into several tokens.
KINDS = {tokenize.STRING: "string", tokenize.NUMBER: "digits", tokenize.COMMENT: "comment"}
KINDS |= {
    getattr(tokenize, name): "string"
    for name in ("FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")
    if hasattr(tokenize, name)
}

STYLE = """
:root { color-scheme: light dark; --bar: #7aa7e0; --hot: #e8956a; --line: #8884; --soft: #8881;
  --keyword: light-dark(#8a2f9e, #d49be4); --string: light-dark(#2f7a34, #8fce93);
  --number: light-dark(#9a5a00, #e6b566); --comment: #808080; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .3rem; }
p.note { margin: .2rem 0 .5rem; opacity: .75; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; }
th { text-align: left; font-weight: 600; white-space: nowrap; }
th, td { padding: .15rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.place { white-space: nowrap; } td.code, pre { font-family: ui-monospace, monospace; }
td.bar { background: linear-gradient(to left, var(--bar) var(--w), transparent var(--w))
  bottom / 100% .25rem no-repeat; padding-bottom: .35rem; }
tr:hover td { background-color: var(--soft); }
.source { font: .85rem/1.45 ui-monospace, monospace; border: 1px solid var(--line);
  overflow-x: auto; padding: .4rem 0; }
.source div { white-space: pre; padding: 0 .8rem; }
.source .cost { display: inline-block; width: 6rem; text-align: right; margin-right: 1rem; }
.source .number { display: inline-block; width: 3rem; text-align: right; margin-right: 1rem;
  opacity: .5; }
.source .gap { opacity: .5; }
.source .keyword { color: var(--keyword); } .source .string { color: var(--string); }
.source .digits { color: var(--number); } .source .comment { color: var(--comment); }
summary { cursor: pointer; font-weight: 600; margin-top: .8rem; }
"""


class Mark(NamedTuple):
    """A note beside a line of source on the page.

    Attributes:
      text: the text beside the line.
      strength: the strength of the background color, from 0 to 1.
      title: a longer text, shown as a tooltip.
      amount: the number that `text` shows, for comparison with other marks of the line.
    """

    text: str
    strength: float
    title: str
    amount: float = 0.0


class Printed:
    """The base class of reports. `print` a report, or `save` it as a page for a browser.

    A notebook shows the page.
    """

    @property
    def title(self) -> str:
        """The heading of the page."""
        raise NotImplementedError

    @property
    def tables(self) -> list[Table]:
        """The tables of the printed report."""
        raise NotImplementedError

    @property
    def marks(self) -> Mapping[Place, Mark]:
        """The notes beside the user's source lines on the page."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n\n".join([self.title, *map(str, self.tables)])

    __repr__ = __str__

    def to_html(self) -> str:
        """Return the page as HTML that loads no other file."""
        return write_page(self.title, self.tables, self.marks)

    def save(self, path: str | pathlib.Path) -> None:
        """Write the page to a file."""
        pathlib.Path(path).write_text(self.to_html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        page = html.escape(self.to_html())  # for an iframe, which keeps the styles apart
        grow = "this.style.height = this.contentDocument.documentElement.scrollHeight + 'px'"
        return (
            f'<iframe srcdoc="{page}" width="100%" height="700" style="border: 0" '
            f'onload="{grow}"></iframe>'
        )


def write_page(title: str, tables: Sequence[Table], marks: Mapping[Place, Mark]) -> str:
    """Return the page: the first table, the user's source with its marks, the other tables."""
    parts = [
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>",
        '<meta name=viewport content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{html.escape(title)}</h1>",
        *map(write_table, tables[:1]),
        write_sources(marks),
        *map(write_table, tables[1:]),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def write_table(table: Table) -> str:
    number = lambda i: ' class="n"' if i < table.numbers else ""
    heads = "".join(f"<th{number(i)}>{html.escape(h)}" for i, h in enumerate(table.headings))
    rows = []
    for r, row in enumerate(table.rows):
        cells = []
        for i, text in enumerate(row):
            kind = number(i)
            if table.headings[i] == "source":
                kind = ' class="code"'
            elif table.headings[i] in ("line", "at", "read for"):
                kind = ' class="place"'
            if i == 0 and table.shares:
                kind = f' class="n bar" style="--w:{100 * table.shares[r]:.1f}%"'
            cells.append(f"<td{kind}>{html.escape(text)}")
        rows.append(f"<tr>{''.join(cells)}")
    note = f'<p class="note">{html.escape(table.note)}</p>' if table.note else ""
    body = f'<div class="wide"><table><tr>{heads}\n{chr(10).join(rows)}</table></div>'
    return f"<section><h2>{html.escape(table.title)}</h2>{note}{body if rows else ''}</section>"


def write_sources(marks: Mapping[Place, Mark]) -> str:
    """Return the HTML of the source files, around the lines that have marks."""
    files: dict[str, dict[int, Mark]] = {}
    for place, mark in marks.items():
        if place is not NOWHERE and linecache.getline(place.file, place.line):
            files.setdefault(place.file, {})[place.line] = mark
    if not files:
        return ""
    return "<h2>Source</h2>" + "\n".join(
        f"<details open><summary>{html.escape(name_file(file))}</summary>"
        f'<div class="source">{write_source(file, own)}</div></details>'
        for file, own in files.items()
    )


def name_file(file: str) -> str:
    """Return the path of a file, relative to the working directory if the file is below it.

    For a cell of a notebook, return the name of the cell.
    """
    if cell := name_cell(file):
        return cell
    path = pathlib.PurePath(file)
    here = pathlib.Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def write_source(file: str, marks: Mapping[int, Mark]) -> str:
    """Return the HTML of one file: the lines that have marks, and the lines around them."""
    shown = sorted({n + d for n in marks for d in range(-AROUND, AROUND + 1) if n + d > 0})
    lines = color_code(linecache.getlines(file))
    rows, before = [], 0
    for n in shown:
        if n > len(lines):
            continue
        if n > before + 1:
            rows.append('<div class="gap">      ...</div>')
        before = n
        mark = marks.get(n)
        cost, style, title = "", "", ""
        if mark is not None:
            cost = mark.text
            title = f' title="{html.escape(mark.title)}"'
            if mark.strength:
                style = (
                    ' style="background: color-mix(in srgb, var(--hot) '
                    f'{60 * mark.strength:.0f}%, transparent)"'
                )
        spans = f'<span class="cost">{cost}</span><span class="number">{n}</span>'
        rows.append(f"<div{style}{title}>{spans}{lines[n - 1]}</div>")
    return "".join(rows)


def color_code(lines: Sequence[str]) -> list[str]:
    """Return lines of Python as HTML, with keywords, strings, numbers and comments in colors.

    What cannot be read as Python, such as a magic of IPython and what follows it, has no colors.
    """
    spans: list[list[tuple[int, int, str]]] = [[] for _ in lines]
    try:
        for token in tokenize.generate_tokens(iter(lines).__next__):
            kind = KINDS.get(token.type)
            if token.type == tokenize.NAME and keyword.iskeyword(token.string):
                kind = "keyword"
            (first, start), (last, end) = token.start, token.end
            for n in range(first, last + 1) if kind else ():
                left, right = start if n == first else 0, end if n == last else len(lines[n - 1])
                spans[n - 1].append((left, right, kind))
    except (tokenize.TokenError, SyntaxError):
        pass
    found = []
    for line, own in zip(lines, spans, strict=True):
        parts, at = [], 0
        line = line.rstrip()
        for left, right, kind in own:
            text = html.escape(line[left:right])
            parts += [html.escape(line[at:left]), f'<span class="{kind}">{text}</span>']
            at = right
        found.append("".join([*parts, html.escape(line[at:])]))
    return found
