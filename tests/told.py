"""Calls that are refused, and what users are told of each in full, from files mistakes.txt.

After a line on what the file is and an empty one, a call and the class and text of its error.
`find_wrong_options` checks the hints of errors.
"""

import collections
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest


def read_calls(test: str) -> list[tuple[str, str]]:
    """Return the calls of the file beside a test, with their messages."""
    lines = Path(test).with_name("mistakes.txt").read_text().splitlines()[2:]
    return [*zip(lines[::2], lines[1::2], strict=True)]


def check_told(call: str, told: str, names: dict) -> None:
    """The call raises the error that is told."""
    with pytest.raises(Exception) as info:
        eval(call, names)
    assert f"    {info.type.__name__}: {info.value}".replace("\n", "\\n") == told


# Options of what the user calls around the function that raises, or of a function of the user's.
OF_OTHERS = {"axis_name", "in_axes", "rng"}


@functools.cache
def read_parameters() -> dict[str, set[str]]:
    """Return the parameters of public functions by the last part of their names."""
    found = collections.defaultdict(set)
    text = Path(__file__).with_name("golden").joinpath("signatures.txt").read_text()
    for line in text.splitlines():
        name, _, parameters = line.partition("(")
        found[name.rpartition(".")[2]] |= set(re.findall(r"\*{0,2}\w+", parameters))
    return dict(found)


def find_options(hint: str) -> Iterator[tuple[str | None, str]]:
    """Yield the name of a call and of a keyword, for each keyword; None outside of a call."""
    calls: list[str] = []
    for token in re.finditer(r"([\w.]*)\(|([\])}])|([\[{])|(\w+)=(?!=)", hint):
        call, closes, opens, keyword = token.groups()
        if keyword:
            yield calls[-1] if calls else None, keyword
        elif closes:
            calls = calls[:-1]
        else:
            method = opens or call.startswith(".")  # such as x.at[i].get(mode="fill")
            calls.append("" if method else call.rpartition(".")[2])


def find_wrong_options(message: str) -> Iterator[str]:
    """Yield each option that the hint of an error names and that the function does not have."""
    head, _, hint = message.partition("Hint: ")
    named = re.match(r"(?:\w*Error: )?(\w+): ", head.lstrip()) if hint else None
    for call, keyword in find_options(hint) if named else ():
        function = named[1] if call is None else call
        takes = read_parameters().get(function)
        if takes and keyword not in takes | OF_OTHERS and not any("**" in p for p in takes):
            yield f"{function} has no option {keyword}: {message[:300]}"
