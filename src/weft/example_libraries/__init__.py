"""Small libraries written with weft's public functions, under the names of `jax.example_libraries`.

Each is imported when it is first used.
"""

from weft.util import import_lazily

__getattr__, __dir__ = import_lazily(
    __name__, {"weft.example_libraries.optimizers": "", "weft.example_libraries.stax": ""}
)
