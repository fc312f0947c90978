"""The examples of docs/distributed.md, which are for eight devices."""

import doctest
from pathlib import Path

import weft

PAGE = Path(__file__).resolve().parents[3] / "docs" / "distributed.md"


def test_the_page_prints_what_it_says():
    flags = doctest.NORMALIZE_WHITESPACE
    with weft.set_mesh(weft.make_mesh((1,), ("other",))):  # it sets another, and leaves it
        assert not doctest.testfile(str(PAGE), module_relative=False, optionflags=flags).failed
