"""The release of JAX whose interface libraries find: the one place that names it.

It follows the jaxlib in use, since libraries choose their code by the version of JAX that belongs
to it.
"""

from weft.util import JAXLIB

__all__ = ["__version__", "__version_info__"]

__version__ = "0.12.0" if JAXLIB >= (0, 12) else "0.11.0" if JAXLIB >= (0, 11) else "0.10.2"
__version_info__ = tuple(map(int, __version__.split(".")))
