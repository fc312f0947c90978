"""Texts that are laid out: documents, and `render`, which fits one into a width.

A small algebra after Wadler's "A prettier printer": a document is text, a list of documents, or a
`Line`, `Nest`, `Group` or `Note`. Groups stay on one line where they fit. The time is linear, on an
explicit stack. The `width` of a document is the width of its flat form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


class Line:
    """A new line; `flat` where the group around it fits on one line."""

    __slots__ = ("flat", "width")

    def __init__(self, flat: str = " "):
        self.flat = flat
        self.width = len(flat)


class Nest:
    """Lines in `content` are indented by `by` more, or, where that is None, begin at its column."""

    __slots__ = ("by", "content", "width")

    def __init__(self, by: int | None, content: Doc):
        self.by = by
        self.content = content
        self.width = flat_width(content)


class Group:
    """Flat if it fits on the rest of the line, else with every one of its own lines broken."""

    __slots__ = ("content", "width")

    def __init__(self, content: Doc):
        self.content = content
        self.width = flat_width(content)


class Note:
    """A comment at the end of its line; what holds one is never flat."""

    __slots__ = ("text",)
    width = math.inf

    def __init__(self, text: str):
        self.text = text


Doc = str | list | Line | Nest | Group | Note


def flat_width(doc: Doc) -> float:
    """Return the number of columns that a document takes on one line."""
    if type(doc) is str:
        return len(doc)
    if type(doc) is list:
        return sum(map(flat_width, doc))
    return doc.width  # type: ignore[union-attr]


def render(doc: Doc, width: int) -> str:
    """Lay a document out on lines of `width` columns."""
    lines: list[str] = []
    notes: dict[int, str] = {}  # by line
    line: list[str] = []
    column = 0
    stack: list[tuple[int, bool, Any]] = [(0, False, doc)]
    while stack:
        indent, flat, part = stack.pop()
        kind = type(part)
        if kind is Line and not flat:
            lines.append("".join(line))
            line, column = [" " * indent], indent
        elif kind is str or kind is Line:
            text = part if kind is str else part.flat
            line.append(text)
            column += len(text)
        elif kind is list:
            stack.extend([(indent, flat, d) for d in reversed(part)])
        elif kind is Group:
            stack.append((indent, flat or column + part.width <= width, part.content))
        elif kind is Nest:
            stack.append((column if part.by is None else indent + part.by, flat, part.content))
        else:
            notes[len(lines)] = part.text
    lines.append("".join(line))
    edge = min(width, max(map(len, lines)))
    for i, note in notes.items():
        lines[i] = f"{lines[i]:<{edge}} # {note}"
    return "\n".join(lines)


def fill_words(texts: Sequence[str]) -> Doc:
    """Return a document that fills lines with words."""
    return [*texts[:1], *[Group([Line(), t]) for t in texts[1:]]]


def join_docs(separator: Line, docs: Sequence[Doc]) -> list:
    """Return the documents with a separator between each two."""
    return [x for d in docs for x in (separator, d)][1:]
