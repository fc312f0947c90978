"""The names that examples in docstrings use unchanged: weft, jnp, lax, nn, random, np."""

import doctest
import inspect
from typing import Any

import pytest

import tests.settings  # noqa: F401, before the first import of weft
from tests.docstrings import NAMES

find_home = doctest.DocTestFinder._from_module  # type: ignore[attr-defined]


def is_of_module(self: doctest.DocTestFinder, module: Any, x: Any) -> bool:
    """Return True if an object was defined in a module. A decorated function counts as its own."""
    return find_home(self, module, inspect.unwrap(x) if inspect.isfunction(x) else x)


doctest.DocTestFinder._from_module = is_of_module  # type: ignore[attr-defined]
collect_ignore = ["weft/compat/pytest.py"]  # to import it is to make `import jax` mean weft


@pytest.fixture(autouse=True, scope="session")
def name_modules(doctest_namespace: dict) -> None:
    """Give them to every example."""
    doctest_namespace.update(NAMES)
