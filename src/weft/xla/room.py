"""Room for executables: the memory maps of the process.

An executable has three of them for each of its modules: code, constants and data. Linux allows a
process some 65,000, which 10,000 small executables take up. XLA ends the process if it gets no
more. So the caches that hold executables are emptied before; those that are called again come from
the disk.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import math

MAPS, LIMIT = "/proc/self/maps", "/proc/sys/vm/max_map_count"
MAX_MAPS_OF_ONE = 128  # of an executable, which has up to 32 modules


class Room:
    """The room for executables in this process.

    Attributes:
      made: counts the executables.
      kept: the maps that were left when the caches were emptied last. They are emptied again only
        if many are added: it would not help if most are of programs that the user holds.
      next_look: the number of the executable before which the maps are counted next. To count
        20,000 takes 12 ms, and is left out as long as they cannot have run out.
    """

    def __init__(self) -> None:
        self.made = itertools.count()
        self.kept = 0
        self.next_look: float = 0

    def make(self) -> None:
        """Have room for one more executable, by emptying caches if it is scarce.

        Raises:
          MemoryError: there is none, since the user holds executables.
        """
        number = next(self.made)
        if number < self.next_look:
            return
        allowed = count_allowed()
        used = 0 if allowed == math.inf else count_maps()
        none_left = allowed - used < MAX_MAPS_OF_ONE
        if none_left or used > max(0.75 * allowed, self.kept + allowed / 8):
            importlib.import_module("weft.api.jit").clear_caches()
            gc.collect()
            used = self.kept = count_maps()
        if allowed - used < MAX_MAPS_OF_ONE:
            raise MemoryError(
                f"compile: a process must have at most {allowed} memory maps; got {used}, of which "
                "each compiled program has three or more. Hint: let go of programs that are not "
                "called again, or have the system allow more by sysctl vm.max_map_count."
            )
        self.next_look = number + (allowed - used) / (2 * MAX_MAPS_OF_ONE)


def count_allowed() -> float:
    """Return how many memory maps a process may have; infinity if the system does not say."""
    try:
        with open(LIMIT) as file:
            return int(file.read())
    except OSError:
        return math.inf


def count_maps() -> int:
    """Return how many memory maps this process has."""
    with open(MAPS, "rb") as file:
        return file.read().count(b"\n")


ROOM = Room()
