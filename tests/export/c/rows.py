"""The rows of the conformance suite as programs in C: the list of them, and comparisons."""

import dataclasses

import numpy as np

from tests.primitives.cases import SHORT, all_cases
from tests.primitives.test_conformance import check_value
from weft import export
from weft.options import config

WARNINGS = ("-O1", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
GROUP = 24  # rows in one source


@dataclasses.dataclass(frozen=True)
class Row:
    """A row at one dtype.

    why: the error of `to_c` if its program has no form in C.
    """

    case: object
    name: str
    why: str = ""

    @property
    def dtype(self):
        return np.dtype(SHORT[self.name])

    @property
    def wide(self):
        return self.dtype.itemsize >= 8 and self.name != "c64"

    @property
    def id(self):
        return f"{self.case.id}-{self.name}"

    def arrays(self):
        return self.case.arrays(self.dtype)


def list_rows(every=False):
    """The rows that have values, each at its first dtype or at all."""
    return [
        Row(case, name)
        for case in all_cases()
        if "value" not in case.skip.split()
        for name in case.dtypes.split()[: None if every else 1]
    ]


def find_reason(row):
    """The row, with the error of `to_c` if there is one."""
    fun = lambda *xs: row.case.apply(*xs)
    with config.scope(enable_x64=row.wide, hints=False):
        try:
            export.to_c(fun)(*row.arrays())
        except NotImplementedError as error:
            return dataclasses.replace(row, why=str(error))
    return row


def run_rows(rows, flags=WARNINGS):
    """Run rows of one width as one program in C, and check the values."""
    with config.scope(enable_x64=rows[0].wide, hints=False):
        every = [row.arrays() for row in rows]
        fun = lambda every: [r.case.apply(*xs) for r, xs in zip(rows, every, strict=True)]
        outs = export.to_c(fun, name="rows")(every).build(flags=flags)(every)
        wrong = []
        for row, xs, found in zip(rows, every, outs, strict=True):
            try:
                check_value(row.case, row.dtype, xs, found)
            except AssertionError as error:
                wrong.append(f"{row.id}: {error}")
    return wrong


def group_rows(rows):
    """Rows in groups of one width."""
    for wide in (False, True):
        some = [r for r in rows if r.wide == wide]
        yield from [some[k : k + GROUP] for k in range(0, len(some), GROUP)]
