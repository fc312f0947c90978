"""`pjit`, the older name of `jit` over meshes."""

from weft.jitting import jit as pjit
from weft.sharded import with_sharding_constraint

__all__ = ["pjit", "with_sharding_constraint"]
