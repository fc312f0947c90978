"""The place where an equation was written: the user's frames, and short texts of them.

Tracebacks are jaxlib's, cheap to take; text is made of one only when it is shown. Where a named
scope is open, a `SourceInfo` holds the traceback and the names. `boundary` takes weft's own
frames out of the traceback of an error on its way to the user.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from jaxlib import _jax

from weft.core.trace import current, get_traceback
from weft.errors import (
    add_key_hint,
    filter_traceback,
    is_own_file,
    is_own_row,
    list_rows,
    shorten_text,
)
from weft.options import config
from weft.util import copy_names, name_line

_KEPT = 2  # of our frames, those nearest to the error
_MAX_SOURCE = 60  # characters of source text in a message


class Transform(str):
    """The name of a transformation among the names of scopes: `jvp` in `jvp(loss)/layer`."""

    __slots__ = ()


JVP, TRANSPOSE, VMAP = map(Transform, ("jvp", "transpose", "vmap"))


class SourceInfo(NamedTuple):
    """A place in the user's program, and the named scopes that were open there.

    Equations have one as `source_info`. `name_stack` is the scopes as a path, and `frames` the
    frames of the traceback.

    Args:
      traceback: a traceback of jaxlib. None if the place is not known.
      scope: the names of the scopes, a tuple of strings, from the outermost to the innermost.

    >>> from weft.extend.source_info_util import SourceInfo
    >>> SourceInfo(None, ("loss", "dense")).name_stack
    'loss/dense'
    >>> def f(x):
    ...     with weft.named_scope("loss"):
    ...         return jnp.sin(x)
    >>> weft.make_jaxpr(f)(1.0).eqns[0].source_info.name_stack
    'loss'
    """

    traceback: Any
    scope: tuple[str, ...]

    @property
    def name_stack(self) -> str:
        """The scopes as a path."""
        return path_text(self.scope)

    @property
    def frames(self) -> list:
        return [] if self.traceback is None else self.traceback.frames

    def raw_frames(self) -> tuple:
        """The code objects of the traceback, and the offsets in them."""
        return ((), ()) if self.traceback is None else self.traceback.raw_frames()


def path_text(scope: Sequence[str]) -> str:
    """Return names as a path; a transformation wraps the name after it: `a/jvp(b)/c`."""
    parts: list[str] = []
    wrap = "{}"
    for name in scope:
        if type(name) is Transform:
            wrap = wrap.format(name + "({})")
        else:
            parts.append(wrap.replace("{}", name))
            wrap = "{}"
    if wrap != "{}":
        parts.append(wrap.replace("{}", ""))
    return "/".join(parts)


def scoped_source() -> SourceInfo:
    """The place here, as `current.capture` takes it while a named scope is open."""
    return SourceInfo(get_traceback(), current.scope)


def inner_source(source: Any) -> Any:
    """The source of an equation that is applied here, inside the scopes that are open."""
    if source is None or (type(source) is not SourceInfo and current.capture is get_traceback):
        return source
    return nested_source(current.scope, source)


def nested_source(scope: tuple[str, ...], source: Any) -> Any:
    """A source inside the given scopes."""
    if type(source) is SourceInfo:
        return SourceInfo(source.traceback, (*scope, *source.scope))
    return SourceInfo(source, scope) if scope else source


class own_lines:
    """`with own_lines():` what a rule of the user's writes has lines of its own.

    They are in the scopes of the equation that the rule is applied to.
    """

    __slots__ = ("around",)

    def __enter__(self) -> None:
        source = current.source
        self.around = source, current.scope, current.capture
        current.source = None
        if type(source) is SourceInfo:
            current.scope = source.scope
            current.capture = scoped_source

    def __exit__(self, *_: Any) -> None:
        current.source, current.scope, current.capture = self.around


def transposed_source(source: Any) -> Any:
    """The source of what transposing an equation writes: inside the open scopes, `transpose`."""
    if type(source) is not SourceInfo:
        return source
    around, scope = current.scope, source.scope
    shared = 0  # the number of scopes that were open then and are open now
    while shared < min(len(around), len(scope)) and around[shared] == scope[shared]:
        shared += 1
    return SourceInfo(source.traceback, (*around, TRANSPOSE, *scope[shared:]))


def user_frames(source: Any) -> list:
    """The frames of a traceback that are not weft's own, innermost first."""
    if source is None:
        return []
    return [f for f in source.frames if not is_own_file(f.file_name)]


def source_line(source: Any) -> str:
    """`model.py:12` for the user's innermost line; empty where there is none."""
    frames = user_frames(source)
    return name_line(frames[0].file_name, frames[0].line_num) if frames else ""


def user_code(source: Any, caller: CodeType | None = None) -> tuple[CodeType, int] | None:
    """The user's innermost code object, within `caller`, and the offset of the instruction in it.

    The offset is that of the instruction, or of one of the caches that Python keeps behind it.
    """
    for code, offset in zip(*source.raw_frames(), strict=True) if source is not None else ():
        if code is caller:
            break
        if not is_own_file(code.co_filename):
            return code, offset
    return None


def user_expression(source: Any, caller: CodeType | None = None) -> tuple | None:
    """The user's innermost code object, within `caller`, and where the expression is in its file.

    That is a line and a column, and the line and the column at which it ends.
    """
    found = user_code(source, caller)
    return None if found is None else (found[0], *_jax.Traceback.code_addr2location(*found))


def source_location(source: Any) -> str:
    """`model.py:12:4 (loss)`: as `source_line`, with the column and the function."""
    found = user_expression(source)
    if found is None:
        return ""
    code, line, column, *_ = found
    return f"{name_line(code.co_filename, line)}:{column} ({code.co_name})"


def source_text(source: Any) -> str:
    """The user's expression, as `x > 0`, on one line; empty where the text cannot be had."""
    found = user_expression(source)
    if found is None:
        return ""
    code, line, start, last, end = found
    if min(line, start, last, end) < 0:  # not known, as with `python -X no_debug_ranges`
        return ""
    rows = [linecache.getline(code.co_filename, n).encode() for n in range(line, last + 1)]
    rows[-1] = rows[-1][:end]
    rows[0] = rows[0][start:]  # columns count bytes
    text = " ".join(b" ".join(rows).decode(errors="replace").split())
    return text if len(text) <= _MAX_SOURCE else text[: _MAX_SOURCE - 3] + "..."


def describe_maker(source: Any, name: str) -> str:
    """Says "made by `x > 0` at model.py:12", with `name` where the text is not known."""
    place, text = source_line(source), source_text(source)
    return f"made by {f'`{text}`' if text else name}{' at ' + place if place else ''}"


def shorten_message(error: BaseException) -> None:
    """Leave out the middle of a message of ours that prints a large tree or a long text."""
    short = tuple(map(shorten_text, error.args))
    if short != error.args:
        rows = list_rows(error.__traceback__)
        if rows and is_own_row(rows[-1]):
            error.args = short


def trim_traceback(error: BaseException) -> None:
    """Leave the user's frames in a traceback and, of ours, only the last few before the error.

    A long message of ours is shortened.
    """
    add_key_hint(error)
    shorten_message(error)
    if config.traceback_filtering != "auto":
        return filter_traceback(error, config.traceback_filtering)
    rows = list_rows(error.__traceback__)
    kept = [*itertools.takewhile(is_own_row, reversed(rows))][:_KEPT]
    following = None
    for row in reversed(rows):
        if row in kept:  # pytest and IPython show none of these
            row.tb_frame.f_locals["__tracebackhide__"] = True
        if row in kept or not is_own_row(row):
            row.tb_next = following
            following = row
    error.__traceback__ = following


def boundary(fun: Callable, like: Callable | None = None) -> Callable:
    """Return `fun` as users call it: its errors show few frames of weft's own.

    It has the name and documentation of `like`, or of `fun`. Raising again adds no frame.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            trim_traceback(error)
            raise

    return copy_names(call, like or fun)
