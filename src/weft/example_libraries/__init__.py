"""Small libraries written with weft's public functions, under the names of `jax.example_libraries`.

Each is imported when it is first asked for.
"""

from weft.util import importing_later

__getattr__, __dir__ = importing_later(
    __name__, {"weft.example_libraries.optimizers": "", "weft.example_libraries.stax": ""}
)
