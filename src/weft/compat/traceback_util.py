"""The names of `jax._src.traceback_util`, and of `source_info_util`: the frames that users see."""

from __future__ import annotations

from types import FrameType
from typing import Any, NamedTuple

from jaxlib import _jax

from weft.core.source import boundary as api_boundary
from weft.core.source import is_own_file, user_code
from weft.errors import HIDDEN_FILES, UnfilteredStackTrace
from weft.extend.source_info_util import register_exclusion
from weft.util import list_public

__all__ = ["UnfilteredStackTrace", "api_boundary", "include_frame", "register_exclusion"]
__dir__ = list_public(__name__)


class _Exclusions:
    """The hidden files as a list, as flax adds its own and takes them away."""

    append, remove = HIDDEN_FILES.add, HIDDEN_FILES.discard

    def __contains__(self, path: str) -> bool:
        return path in HIDDEN_FILES

    def __len__(self) -> int:
        return len(HIDDEN_FILES)


_exclude_paths = _Exclusions()


def include_frame(frame: FrameType) -> bool:
    """Return True if a frame is of the user's program."""
    return not is_own_file(frame.f_code.co_filename)


class Frame(NamedTuple):
    """A place in a program."""

    file_name: str
    function_name: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int


def user_frame(source: Any) -> Frame | None:
    """Return the innermost place in the user's program, of the source of an equation."""
    found = user_code(source)
    if found is None:
        return None
    code, offset = found
    name = code.co_qualname
    return Frame(code.co_filename, name, *_jax.Traceback.code_addr2location(code, offset))
