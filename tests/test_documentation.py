"""Every public callable is documented in full: its parameters, its result and an example."""

import enum
import inspect
import re
import typing
from collections.abc import Iterator

from tests.test_house import public_modules


def documented_callables() -> Iterator[tuple[str, object]]:
    """Yield each public callable of weft once, by the shortest name that users import."""
    seen: set[int] = set()
    for name, module in sorted(public_modules().items(), key=lambda item: (len(item[0]), item[0])):
        for key in sorted(module.__all__):
            x = getattr(module, key)
            made_here = str(getattr(x, "__module__", "")).startswith("weft")
            is_type = typing.get_origin(x) is not None or isinstance(x, typing.NewType)
            if callable(x) and made_here and not is_type and id(x) not in seen:
                seen.add(id(x))
                yield f"{name}.{key}", x


def find_section(text: str, *titles: str) -> str:
    """Return the indented lines below the titles in a docstring; "" if there are none."""
    found, depth = [], None
    for line in inspect.cleandoc(text).splitlines():
        indent = len(line) - len(line.lstrip())
        if depth is not None and line.strip() and indent <= depth:
            depth = None
        if depth is not None:
            found.append(line)
        elif line.strip() in {f"{title}:" for title in titles}:
            depth = indent
    return "\n".join(found)


def find_described(section: str) -> set[str]:
    """Return the names before the colons of a section: `x:`, `x, y:`, `*xs:`, `x (float):`."""
    rows = re.findall(r"^\s+((?:\*{0,2}\w+(?:, )?)+)(?: \([^)]*\))?:", section, flags=re.MULTILINE)
    return {name.strip("* ") for names in rows for name in names.split(",")}


def parameters(x: object) -> list[str]:
    """Return the names of the parameters of a callable that its documentation must describe."""
    try:
        return [n for n in inspect.signature(x).parameters if n[0] != "_"]
    except ValueError:
        return []


def find_missing_names(x: object, text: str) -> list[str]:
    """Return the parameters that are not described, and the members of an enumeration.

    A class that users do not construct describes its attributes instead.
    """
    args, attributes = find_section(text, "Args"), find_section(text, "Attributes")
    if isinstance(x, type) and issubclass(x, BaseException):
        return []
    if isinstance(x, type) and issubclass(x, enum.Enum):
        return [n for n in x.__members__ if n not in text]
    if isinstance(x, type) and not args and find_described(attributes):
        return []
    described = find_described(f"{args}\n{attributes}")
    return [n for n in parameters(x) if n not in described]


def returns_something(x: object) -> bool:
    try:
        return inspect.signature(x).return_annotation not in (None, "None")
    except ValueError:
        return True


def find_faults(x: object) -> list[str]:
    """Return what the documentation of a callable lacks."""
    text = inspect.getdoc(x) or ""
    faults = [f"{name} is not described" for name in find_missing_names(x, text)]
    if not isinstance(x, type) and returns_something(x):
        result = find_section(text, "Returns", "Yields").strip()
        faults += [] if result else ["no `Returns:`"]
    return faults + ([] if ">>> " in text else ["no example"])


def test_every_public_callable_is_documented_in_full():
    found = {name: find_faults(x) for name, x in documented_callables()}
    wrong = [f"{name}: {', '.join(faults)}" for name, faults in found.items() if faults]
    assert not wrong, "\n".join(wrong)


def test_faults_are_found():
    def good(x: float, *rest: float, scale: float = 1.0) -> float:
        """Add.

        Args:
          x, scale: numbers.
          *rest: more numbers.

        Returns:
          The sum.

        >>> good(1)
        """

    def bad(x: float, y: float) -> float:
        """Add.

        Args:
          x: a number that
            y: is not.

        Returns:
        """

    assert find_faults(good) == []
    assert find_faults(bad) == ["no `Returns:`", "no example"]
    bad.__doc__ = "Args:\n  z: a number."
    assert find_faults(bad)[:2] == ["x is not described", "y is not described"]
