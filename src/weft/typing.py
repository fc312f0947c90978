"""Types for annotations: `def f(x: weft.typing.ArrayLike) -> weft.Array`."""

from weft.util import list_public
from weft.xla.typing import ArrayLike, DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]
__dir__ = list_public(__name__)
