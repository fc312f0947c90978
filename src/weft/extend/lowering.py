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
    """An MLIR context with the dialects of programs.

    It is for parsing and building modules with the MLIR bindings of jaxlib. It is a new context
    each time; `weft.extend.mlir.make_ir_context` returns a shared one.

    >>> from weft.extend import lowering, mlir
    >>> text = weft.jit(jnp.sin).lower(1.0).as_text()
    >>> module = mlir.ir.Module.parse(text, lowering.JaxIrContext())
    >>> "stablehlo.sine" in str(module)
    True
    """

    def __init__(self) -> None:
        super().__init__()
        load_dialects(self)
