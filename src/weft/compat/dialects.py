"""MLIR's bindings under the names that JAX's private modules have for them."""

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, func, sdy, stablehlo
from jaxlib.mlir.dialects import func as func_dialect
from jaxlib.mlir.dialects import stablehlo as hlo

from weft.util import list_public

__all__ = ["chlo", "func", "func_dialect", "hlo", "ir", "sdy", "stablehlo"]
__dir__ = list_public(__name__)
