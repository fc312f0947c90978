"""Functions with a batching rule of their own: `custom_vmap`, `sequential_vmap`."""

from weft.api.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
