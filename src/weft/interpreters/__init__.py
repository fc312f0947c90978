"""For libraries that define primitives: the names of `jax.interpreters`, views of weft's objects.

A rule given here becomes a method of the primitive.
"""

from weft.util import import_lazily

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]
__getattr__, __dir__ = import_lazily(__name__, {f"{__name__}.{name}": "" for name in __all__})
