"""The names that examples in docstrings use unchanged: weft, jnp, lax, nn, random, np."""

import pytest

import tests.settings  # noqa: F401, before the first import of weft
from tests.docstrings import NAMES

collect_ignore = ["weft/compat/pytest.py"]  # to import it is to make `import jax` mean weft


@pytest.fixture(autouse=True, scope="session")
def name_modules(doctest_namespace: dict) -> None:
    """Give them to every example."""
    doctest_namespace.update(NAMES)
