"""The names of `jax.extend.source_info_util`: where equations come from (core/source.py)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from weft.api.named_scope import named_scope
from weft.compat.traceback_util import register_exclusion
from weft.core.source import SourceInfo, path_text, source_location
from weft.core.trace import current as here
from weft.core.trace import get_traceback
from weft.util import list_public

__all__ = [
    "SourceInfo", "current", "current_name_stack", "extend_name_stack", "new_source_info",
    "register_exclusion", "summarize", "user_context",
]  # fmt: skip
__dir__ = list_public(__name__)

extend_name_stack = named_scope


def current() -> SourceInfo:
    """The place here, and the names of scopes that are open."""
    return SourceInfo(get_traceback(), here.scope)


def new_source_info() -> SourceInfo:
    """A place that is not known."""
    return SourceInfo(None, ())


def current_name_stack() -> str:
    """The names of the scopes that are open, as a path."""
    return path_text(here.scope)


def summarize(source_info: Any, num_frames: int = 1) -> str:
    """`model.py:12:4 (loss)`: the user's line."""
    return source_location(source_info)


@contextlib.contextmanager
def user_context(traceback: Any, *, name_stack: Any = None) -> Iterator[None]:
    """Errors inside show the lines of the user's program already."""
    yield
