"""First-order optimizers, under the name that they had first.

They are written in weft.example_libraries.optimizers.
"""

from weft.example_libraries import optimizers as _home
from weft.example_libraries.optimizers import *  # noqa: F403
from weft.util import list_public

__all__ = _home.__all__
__dir__ = list_public(__name__)
