"""Debugging of running programs: `weft.debug.print`, `callback`, `log`, `breakpoint`.

They are in printing.py and prompt.py; layout.py shows the shardings of arrays;
primitives/effects.py has the effects.
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
