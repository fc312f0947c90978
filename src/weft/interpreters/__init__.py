"""For libraries that define primitives: the names of `jax.interpreters`, views of our own objects.

A rule given here is kept on the primitive, as the method that it stands for.
"""

from weft.util import import_lazily

__all__ = ["ad", "batching", "mlir", "partial_eval", "xla"]
__getattr__, __dir__ = import_lazily(__name__, {f"{__name__}.{name}": "" for name in __all__})
