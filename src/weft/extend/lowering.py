"""What rules of lowering get: names of `jax.extend.lowering`; see weft.interpreters.mlir."""

from weft.interpreters.mlir import LoweringRuleContext
from weft.util import list_public

__all__ = ["LoweringRuleContext"]
__dir__ = list_public(__name__)
