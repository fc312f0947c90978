"""References on the C++ call path: their arrays are passed, and results are written to them.

The references of a call are stored between its first step, which flattens the arguments, and its
last step, which builds the result.
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
MOST = 65536  # the largest number stored, of calls that C++ did not make


def open_ref(ref: Ref) -> tuple[tuple, bool | None]:
    """Return the operand of the C++ call path for a reference: the array.

    A reference that is stored already is left over from another call or passed twice: Python
    decides.
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
    """The result of a program, and the values to write to the references that it was passed.

    `count` is the number of references, `places` the numbers of those that are written.
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
