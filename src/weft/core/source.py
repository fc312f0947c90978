"""Where an equation was written: the user's frames of a traceback, and short texts of them.

Tracebacks are jaxlib's, kept whole and cheap; text is made of one only when somebody looks.
"""

from __future__ import annotations

from typing import Any

from jaxlib import _jax

_OWN = __file__.rsplit("core", 1)[0]


def user_frames(source: Any) -> list:
    """The frames of a traceback that are not weft's own, innermost first."""
    if source is None:
        return []
    return [f for f in source.frames if not f.file_name.startswith(_OWN)]


def source_line(source: Any) -> str:
    """`model.py:12` for the user's innermost line; empty where there is none."""
    frames = user_frames(source)
    if not frames:
        return ""
    return f"{frames[0].file_name.rsplit('/', 1)[-1]}:{frames[0].line_num}"


def source_location(source: Any) -> str:
    """`model.py:12:4 (loss)`: as `source_line`, with the column and the function."""
    for code, offset in zip(*source.raw_frames(), strict=True) if source is not None else ():
        if not code.co_filename.startswith(_OWN):
            line, column, *_ = _jax.Traceback.code_addr2location(code, offset)
            return f"{code.co_filename.rsplit('/', 1)[-1]}:{line}:{column} ({code.co_name})"
    return ""


def describe(eqn: Any) -> str:
    """`sin at model.py:12`, without the place where it is not known."""
    place = source_line(eqn.source)
    return f"{eqn.primitive.name}{' at ' + place if place else ''}"
