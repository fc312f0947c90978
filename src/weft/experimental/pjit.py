"""`pjit`, the older name of `jit` over meshes."""

from weft.api.jit import jit as pjit
from weft.api.shard_map import with_sharding_constraint
from weft.util import list_public

__all__ = ["pjit", "with_sharding_constraint"]
__dir__ = list_public(__name__)
