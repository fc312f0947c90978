"""For those who extend weft: the names of `jax.extend`, as views of weft's own objects."""

from weft.extend import core, random, sharding
from weft.util import list_public

__all__ = ["core", "random", "sharding"]
__dir__ = list_public(__name__)
