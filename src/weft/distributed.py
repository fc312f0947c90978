"""Programs of several processes, under the names of `jax.distributed`; see docs/distributed.md."""

from weft.parallel.distributed import initialize, is_initialized, shutdown
from weft.util import list_public

__all__ = ["initialize", "is_initialized", "shutdown"]
__dir__ = list_public(__name__)
