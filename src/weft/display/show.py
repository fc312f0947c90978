"""`show`: the text of a program with less in it, for reading."""

from __future__ import annotations

import linecache
import math
from collections.abc import Collection
from typing import Any

import numpy as np

from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from weft.core.pretty import Options, Scope, Typed
from weft.core.primitive import Program
from weft.core.source import user_frames
from weft.passes.dce import dce_jaxpr
from weft.util.documents import Doc, Line, join_docs, render

# Default values of parameters; None and False are defaults too, except for those in _TRUE.
_DEFAULTS: dict[str, Any] = {
    "body_nconsts": 0, "cond_nconsts": 0, "num_consts": 0, "num_carry": 0, "num_residuals": 0,
    "unroll": 1, "batch_group_count": 1, "feature_group_count": 1,
}  # fmt: skip
_TRUE = frozenset(("check_vma", "is_stable", "prevent_cse"))
# What the type of the result says: its shape, or its dtype.
SHAPES = frozenset(("shape", "new_sizes", "slice_sizes"))
_DTYPES = frozenset(("dtype", "index_dtype", "new_dtype", "preferred_element_type"))
_ONES = frozenset((
    "base_dilation", "lhs_dilation", "rhs_dilation", "strides", "window_dilation", "window_strides",
))  # fmt: skip


class Text(str):
    """A text that a prompt and a notebook show unchanged, on its lines."""

    __slots__ = ()
    __repr__ = str.__str__


def escape_html(text: str) -> str:
    """Text such that HTML and SVG show it; Python's html takes long to import."""
    for character, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot")):
        text = text.replace(character, f"&{name};")
    return text


def require_program(op: str, *programs: Any) -> None:
    """Raise TypeError unless each is a jaxpr."""
    for x in programs:
        if not isinstance(x, Program):
            raise TypeError(
                f"{op}: needs a jaxpr; got a {type(x).__name__}. Hint: weft.make_jaxpr(f)(*args)."
            )


def is_default(eqn: Eqn, key: str, value: Any) -> bool:
    """Return True if a parameter is the default, or the type of a result shows it."""
    if key in _TRUE:
        return value is True
    if value is None or value is False or value == ():
        return True
    if key in _DEFAULTS and type(value) is int:
        return value == _DEFAULTS[key]
    if key in _ONES:
        return all(type(x) is int and x == 1 for x in value)
    if key == "linear":
        return not any(value)
    avals = [v.aval for v in eqn.outvars[:1]]
    if key in SHAPES:
        return any(value == a.shape for a in avals)
    return key in _DTYPES and any(a.dtype == np.dtype(value) for a in avals if a.physical is a)


def drop_defaults(eqn: Eqn, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that say something."""
    return {k: v for k, v in params.items() if not is_default(eqn, k, v)}


def line_of(eqn: Eqn) -> tuple[str, str]:
    """The user's line that an equation is from: `model.py:12`, and its text."""
    frames = user_frames(eqn.source_info.traceback)
    if not frames:
        return "", ""
    name, line = frames[0].file_name, frames[0].line_num
    return f"{name.rsplit('/', 1)[-1]}:{line}", linecache.getline(name, line).strip()


class Reading(Typed):
    """The typed notation, without redundant parts (`short`), grouped by user lines (`source`)."""

    def __init__(self, options: Options, short: bool, source: bool):
        super().__init__(options)
        self.short, self.source = short, source

    def shown_params(self, eqn: Eqn) -> dict[str, Any]:
        params = super().shown_params(eqn)
        return drop_defaults(eqn, params) if self.short else params

    def program(self, jaxpr: Jaxpr, names: Scope | None = None) -> Doc:
        return super().program(dce_jaxpr(jaxpr)[0] if self.short else jaxpr, names)

    def equations(self, jaxpr: Jaxpr, names: Scope, used: Collection[Var]) -> list:
        if not self.source:
            return super().equations(jaxpr, names, used)
        docs: list[Doc] = []
        around = None
        for eqn in jaxpr.eqns:
            place, text = line_of(eqn)
            if place != around:
                around = place
                docs.append(f"# {place or 'no line of yours'}{': ' if text else ''}{text}")
            docs.append(self.equation(eqn, names, used))
        separator = Line("; ")
        separator.width = math.inf  # type: ignore[assignment]  # a comment ends its line
        return join_docs(separator, docs)


def show(
    program: Jaxpr | ClosedJaxpr,
    *,
    short: bool = False,
    source: bool = False,
    types: bool = True,
    width: int = 88,
) -> Text:
    """Return a program as text for reading, shorter than `str` prints it.

    The text cannot be read back; `weft.jaxpr.unparse` is for programs that you want to store.

    Args:
      program: a `Jaxpr` or a `ClosedJaxpr`.
      short: if True, equations whose results nothing needs are left out, and parameters that are
        the default, None, or shown by the type of the result. The default is False.
      source: if True, equations are under the lines of yours that made them. The default is False.
      types: if False, variables are only names. The default is True.
      width: the number of characters of a line. The default is 88.

    Returns:
      A text, which a prompt and a notebook show unchanged.

    >>> weft.make_jaxpr(weft.grad(lambda x: jnp.sum(jnp.sin(x))))(jnp.ones(3)).show(short=True)
    { lambda ; a:f32[3]. let
        b:f32[3] = cos a
        c:f32[3] = broadcast_in_dim 1.0
        d:f32[3] = mul c b
      in (d,) }
    """
    require_program("show", program)
    jaxpr = dce_jaxpr(program.jaxpr)[0] if short else program.jaxpr
    return Text(render(Reading(Options(print_shapes=types), short, source).document(jaxpr), width))
