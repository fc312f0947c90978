"""The names of `jax._src.traceback_util`: which frames of a traceback users see."""

from __future__ import annotations

from types import FrameType

from weft.core.source import boundary as api_boundary
from weft.core.source import is_own_file
from weft.extend.source_info_util import register_exclusion
from weft.util import list_public

__all__ = ["api_boundary", "include_frame", "register_exclusion"]
__dir__ = list_public(__name__)


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is of the user's program."""
    return not is_own_file(frame.f_code.co_filename)
