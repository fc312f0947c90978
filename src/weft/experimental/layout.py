"""How arrays lie in memory, under the names of `jax.experimental.layout`.

A compiled function says it of its arguments and results: `input_formats`, `output_formats`.
"""

from weft.util import list_public
from weft.xla.layouts import Format, Layout

__all__ = ["Format", "Layout"]
__dir__ = list_public(__name__)
