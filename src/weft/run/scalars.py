"""Arrays of Python numbers that are hot operands of eager operations."""

from __future__ import annotations

from typing import Any

from weft.mesh.client import all_devices, clients
from weft.options import HELD, x64_cell
from weft.run.hot import is_hot
from weft.util import keep_cache
from weft.xla.array import put

KEPT_NUMBERS = 4096  # arrays of a type of numbers
ZEROS: dict[Any, int | float] = {"0": 0, "0.0": 0.0, "-0.0": -0.0}


class NumberArrays(dict):
    """The arrays of hot Python numbers of one type, where there is one device.

    PJRT would transfer a number at every call, so its array is cached. The key of a number x is
    `x or str(x)`, because 0.0 and -0.0 are equal but need two entries. A number that is not hot is
    returned unchanged.
    """

    def __init__(self, group: tuple):
        super().__init__()
        self.group = group

    cache_clear = dict.clear  # for those who have the clients made again

    def __missing__(self, key: Any) -> Any:
        x = ZEROS.get(key, key)
        if is_hot(self.group, key) and abs(x) < 1 << 31 and is_one_device():
            if len(self) >= KEPT_NUMBERS:
                self.clear()
            self[key] = x = put(x)
        return x


def is_one_device() -> bool:
    """Return True if there is one device, so that an array is where an operation runs."""
    return len((*clients(), *all_devices())) == 2


# By type: without 64-bit types, and with them.
NUMBERS = {
    kind: tuple([NumberArrays((kind, wide)) for wide in (False, True)]) for kind in (float, int)
}
HELD.extend((*NUMBERS[float], *NUMBERS[int]))
for _kind, _arrays in NUMBERS.items():
    keep_cache(f"arrays of {_kind.__name__}", _arrays[False])
    keep_cache(f"arrays of {_kind.__name__}, 64 bits", _arrays[True])


def keep_number(x: Any) -> Any:
    """Return the array of a hot Python number, and any other operand unchanged."""
    arrays = NUMBERS.get(type(x))
    return x if arrays is None else arrays[x64_cell.value][x or str(x)]
