"""Chebyshev series of the smooth parts of special functions: (low, high, coefficients).

They are in tables.json, written by tools/make_special_tables.py, which says what each is;
formula.series sums them.
"""

import json
from pathlib import Path

Table = tuple[float, float, tuple[float, ...]]

_text = Path(__file__).with_suffix(".json").read_text()
_tables = {
    name: (low, high, tuple(terms)) for name, (low, high, terms) in json.loads(_text).items()
}


def __getattr__(name: str) -> Table:
    try:
        return _tables[name]
    except KeyError:
        raise AttributeError(f"{__name__} has no table {name}") from None
