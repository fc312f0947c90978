"""Lowering rules: the names of `jax.extend.lowering`; see weft.interpreters.mlir."""

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext

from weft.interpreters.mlir import LoweringRuleContext
from weft.util import list_public
from weft.xla.callbacks import load_dialects

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]
__dir__ = list_public(__name__)

upstream_dialects = ir.DialectRegistry()
_jax_mlir_ext.register_dialects(upstream_dialects)


class JaxIrContext(ir.Context):
    """The context that parses modules; it knows the dialects of programs."""

    def __init__(self) -> None:
        super().__init__()
        load_dialects(self)
