"""The cache of compiled programs, under the name of `jax.experimental.compilation_cache`."""

from weft.util import import_lazily

__getattr__, __dir__ = import_lazily(__name__, {f"{__name__}.compilation_cache": ""})
