"""Functions that keep traced values, and their containers; test_leaks.py says when it loads.

Their module must be imported after the garbage collector has frozen older objects.
"""

from collections.abc import Callable, Iterator
from typing import Any

KEPT: list = []
BY_NAME: dict[str, Any] = {}
LAST = None


class Model:
    pass


MODEL = Model()


def forget() -> None:
    """Let go of everything."""
    global LAST
    KEPT.clear()
    BY_NAME.clear()
    vars(MODEL).clear()
    LAST = None


def keep(x: Any) -> Any:
    KEPT.append(x * 2)
    return x


def attribute(x: Any) -> Any:
    MODEL.h = x + 1
    return x


class Fields:
    """Has attributes without a dict."""

    __slots__ = ("first", "second")


def field(x: Any) -> Any:
    BY_NAME["fields"] = fields = Fields()
    fields.second = x + 1
    return x


def item(x: Any) -> Any:
    BY_NAME["k"] = (x + 1,)
    return x


def variable(x: Any) -> Any:
    global LAST
    LAST = x
    return x


def closure() -> Callable:
    box = None

    def f(x: Any) -> Any:
        nonlocal box
        box = x + 1
        return x

    return f


def suspended(x: Any) -> Any:
    def values() -> Iterator:
        y = x + 1
        yield y

    KEPT.append(values())
    next(KEPT[0])
    return x
