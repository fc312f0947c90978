"""The error of `debug_key_reuse`, as older programs import it."""

from weft.errors import KeyReuseError

__all__ = ["KeyReuseError"]
