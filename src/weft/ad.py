"""The argument and the result of `with_refs` of a pullback: see `weft.vjp`."""

from weft.api.grad import DidntWant, DontWant, GradValue
from weft.util import list_public

__all__ = ["DidntWant", "DontWant", "GradValue"]
__dir__ = list_public(__name__)
