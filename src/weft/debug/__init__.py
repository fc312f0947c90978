"""Looking into programs while they run: `weft.debug.print`, `callback`, `log`, `breakpoint`.

What these call is printing.py and prompt.py, and layout.py for where arrays lie; the effects are
primitives/effects.py's.
"""

from weft.debug.layout import inspect_array_sharding, visualize_array_sharding, visualize_sharding
from weft.debug.printing import callback, log, print
from weft.debug.prompt import breakpoint
from weft.primitives.effects import DebugEffect, OrderedDebugEffect
from weft.util import list_public

__all__ = [
    "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log",
    "print", "visualize_array_sharding", "visualize_sharding",
]  # fmt: skip
__dir__ = list_public(__name__)
