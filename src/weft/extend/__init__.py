"""For those who extend weft: the names of `jax.extend`, as views of weft's own objects."""

from weft.extend import core, random, sharding

__all__ = ["core", "random", "sharding"]
