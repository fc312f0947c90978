"""Names of `jax.experimental.array_serialization.serialization`: what orbax and flax refer to.

Saving arrays is orbax's own affair; the manager of JAX is out of scope.
"""

from __future__ import annotations

import os
from typing import Any

from weft.compat.absent import make_absent
from weft.util import list_public

_HERE = "jax.experimental.array_serialization.serialization"
__all__ = [
    "GlobalAsyncCheckpointManager", "GlobalAsyncCheckpointManagerBase", "get_tensorstore_spec"
]  # fmt: skip
__dir__ = list_public(__name__)

GlobalAsyncCheckpointManager = make_absent(f"{_HERE}.GlobalAsyncCheckpointManager")


class GlobalAsyncCheckpointManagerBase:
    """The base class of managers of checkpoints."""


def get_tensorstore_spec(ckpt_path: str, ocdbt: bool = False, **options: Any) -> dict:
    """Return the settings with which tensorstore reads or writes the array at a path."""
    if ocdbt:
        base, path = os.path.split(ckpt_path)
        return {
            "driver": "zarr",
            "kvstore": {"driver": "ocdbt", "base": f"file://{base}", "path": path},
        }
    return {"driver": "zarr", "kvstore": {"driver": "file", "path": os.fspath(ckpt_path)}}
