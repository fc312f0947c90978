"""A plugin of pytest, `pytest -p weft.compat.pytest`: tests that say `import jax` run on weft."""

from weft.compat import install

install()
