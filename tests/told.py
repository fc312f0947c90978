"""Calls that are refused, and what users are told of each in full, from files mistakes.txt.

After a line on what the file is and an empty one, a call and the class and text of its error.
"""

from pathlib import Path

import pytest


def read_calls(test: str) -> list[tuple[str, str]]:
    """The calls of the file beside a test's, with what is told of each."""
    lines = Path(test).with_name("mistakes.txt").read_text().splitlines()[2:]
    return [*zip(lines[::2], lines[1::2], strict=True)]


def check_told(call: str, told: str, names: dict) -> None:
    """The call raises the error that is told."""
    with pytest.raises(Exception) as info:
        eval(call, names)
    assert f"    {info.type.__name__}: {info.value}".replace("\n", "\\n") == told
