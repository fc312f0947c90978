"""`pjit`, the older name of `jit` over meshes."""

from weft.api.jit import jit as pjit
from weft.api.shard_map import with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]
