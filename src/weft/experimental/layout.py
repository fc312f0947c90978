"""How arrays lie in memory, under the names of `jax.experimental.layout`.

A compiled function says it of its arguments and results: `input_formats`, `output_formats`.
"""

from weft.xla.layouts import Format, Layout

__all__ = ["Format", "Layout"]
