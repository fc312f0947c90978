"""Neural networks of pairs of functions, under the name that they had first.

They are written in weft.example_libraries.stax.
"""

from weft.example_libraries import stax as _home
from weft.example_libraries.stax import *  # noqa: F403

__all__ = _home.__all__
