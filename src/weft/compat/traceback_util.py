"""The names of `jax._src.traceback_util`: which frames of a traceback users see."""

from __future__ import annotations

from types import FrameType

from weft.core.source import boundary as api_boundary
from weft.core.source import is_own_file
from weft.util import list_public

__all__ = ["api_boundary", "include_frame", "register_exclusion"]
__dir__ = list_public(__name__)

_exclude_paths: list[str] = []  # libraries add and remove their files


def register_exclusion(path: str) -> None:
    """Name a file whose frames are of no use to users."""
    _exclude_paths.append(path)


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is of the user's program."""
    file = frame.f_code.co_filename
    return not (is_own_file(file) or file in _exclude_paths)
