"""The one rule that decides when something is used often enough for a compiled program of its own.

Everything that runs eagerly is counted by whoever keeps it; the threshold is only here.
"""

from __future__ import annotations

# A program takes 15 to 30 ms to compile and saves 5 to 50 us a use: about a thousand uses pay for
# it. What has been used 16 times is nearly always in a loop that will use it as often.
HOT_USES = 16


def is_hot(uses: int) -> bool:
    """Return True if something that has been used so many times is to have its own program."""
    return uses >= HOT_USES
