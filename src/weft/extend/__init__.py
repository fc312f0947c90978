"""For those who extend weft: the names of `jax.extend`, as views of weft's own objects."""

from weft.util import import_lazily

MODULES = "backend core linear_util lowering mlir random sharding source_info_util xla"
HOMES = {f"{__name__}.{name}": "" for name in MODULES.split()}
__getattr__, __dir__ = import_lazily(__name__, HOMES)
