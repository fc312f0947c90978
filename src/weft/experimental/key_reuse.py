"""The error of `debug_key_reuse`, as older programs import it; the check is xla/key_reuse.py's."""

from weft.errors import KeyReuseError

__all__ = ["KeyReuseError"]
