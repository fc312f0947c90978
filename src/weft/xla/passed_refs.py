"""References on the C++ call path: it takes their arrays, and what it gives is written to them.

Which ones a call was given is kept between its first step, taking the arguments apart, and its
last, putting the result together.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

from weft.core.ref import Ref
from weft.pytrees import register_call_node


class _Passed(threading.local):
    """The references among the arguments of a call in C++, by identity, for `close_refs`."""

    def __init__(self) -> None:
        self.refs: dict[int, weakref.ref[Ref]] = {}


_passed = _Passed()
MOST = 65536  # that are kept of calls which C++ did not make after all


def open_ref(ref: Ref) -> tuple[tuple, bool | None]:
    """Return the operand of the C++ call path for a reference: the array.

    What it has seen already is of no such call, or passed twice: then Python is to look.
    """
    refs = _passed.refs
    if id(ref) in refs:
        return (ref._value,), None
    if len(refs) > MOST:
        refs.clear()
    refs[id(ref)] = weakref.ref(ref)
    return (ref._value,), ref.owned


def forget_passed() -> None:
    """A call is made in Python."""
    _passed.refs.clear()


class Written:
    """The result of a program, and what is written to some of the references that it was passed.

    `count` is how many were passed, `places` which of them are written.
    """

    def __init__(self, result: Any, values: Sequence[Any], count: int, places: tuple[int, ...]):
        self.children = (result, *values)
        self.call = (count, places)


def close_refs(call: tuple[int, tuple[int, ...]], children: Sequence[Any]) -> Any:
    """Finish the results of a call by C++: write the references, and return the rest."""
    count, places = call
    refs = [_passed.refs.popitem()[1] for _ in range(count)][::-1]
    for place, value in zip(places, children[1:], strict=True):
        ref: Any = refs[place]()
        ref._value, ref.owned = value, True
    return children[0]


register_call_node(Ref, open_ref, lambda owned, values: values[0])
register_call_node(Written, lambda x: (x.children, x.call), close_refs)
