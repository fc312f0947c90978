"""The one rule that says when something is hot: used often enough to get a program of its own."""

from __future__ import annotations

from typing import Any

from weft.util import keep_cache

# Uses of a call before it gets a program of its own, or a number an array. A program takes 12 ms to
# compile, or 0.5 ms to load from the disk cache, and saves 3 to 25 us a call.
HOT = 16
# The groups, and the keys of a group, that are counted. Beyond, counting starts anew: a loop over
# more keys uses each of them a few times, and shares a program with more operands.
COUNTED = 256

_USES: dict[Any, dict[Any, int]] = keep_cache("uses", {})


def is_hot(group: Any, key: Any) -> bool:
    """Count a use of `key` in `group`. Return True if it is the `HOT`-th use or a later one."""
    if len(_USES) >= COUNTED and group not in _USES:
        _USES.clear()
    uses = _USES.setdefault(group, {})
    if len(uses) >= COUNTED and key not in uses:
        uses.clear()
    count = uses[key] = uses.get(key, 0) + 1
    return count >= HOT


def is_hot_after(uses: int) -> bool:
    """Return True if something was used often enough to get a program of its own."""
    return uses >= HOT
