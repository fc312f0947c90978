"""The base of all files of cases: named cases, made when asked for, on data from one seed."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Case:
    """`make()` builds the inputs and returns the function to time, which does `per` operations.

    Where the case is a quantity and not a time, `make()` gives its value and `timed` is False.
    """

    make: Callable[[], Any]
    per: int = 1
    timed: bool = True


class Suite:
    """The cases of one implementation, and how to wait for a result of it."""

    def __init__(self, sync=lambda out: out):
        self.cases: dict[str, Case] = {}
        self.sync = sync
        self.reseed()

    def reseed(self):
        """Start the data again, so that a case sees the same numbers whatever ran before it."""
        self.rng = np.random.RandomState(0)

    def add(self, name, make, per=1):
        """Register a case under `group/name`."""
        self.cases[name] = Case(make, per)

    def measure(self, name, make):
        """Register a quantity, the result of `make()`, under `group/name`."""
        self.cases[name] = Case(make, timed=False)

    def floats(self, *shape):
        """Standard normal float32 values."""
        return self.rng.randn(*shape).astype(np.float32)

    def ints(self, high, *shape):
        """Int32 values in [0, high)."""
        return self.rng.randint(0, high, shape).astype(np.int32)

    def sparse_rows(self, n, each):
        """A sparse matrix [n, n], `each` entries in a row: data, columns, starts of rows."""
        columns = np.sort(self.rng.randint(0, n, (n, each)), 1).astype(np.int32).reshape(-1)
        return self.floats(n * each), columns, np.arange(n + 1, dtype=np.int32) * each
