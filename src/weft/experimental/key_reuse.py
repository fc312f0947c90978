"""The error of `debug_key_reuse`, as older programs import it."""

from weft.errors import KeyReuseError
from weft.util import list_public

__all__ = ["KeyReuseError"]
__dir__ = list_public(__name__)
