"""Programs of several processes, under the names of `jax.distributed`; see docs/distributed.md."""

from weft.parallel.distributed import initialize, is_initialized, shutdown

__all__ = ["initialize", "is_initialized", "shutdown"]
