"""The language: types, traces, primitives and jaxprs; the names of `jax.core`.

Importing it attaches the printing of jaxprs. More of the same objects is in weft.extend.core.
"""

from typing import Any

from weft.core import pretty as pretty
from weft.core.aval import AbstractValue, ShapedArray
from weft.core.jaxpr import Atom, eval_jaxpr
from weft.core.trace import Trace, Tracer, ensure_compile_time_eval, eval_context
from weft.util import list_public
from weft.util import max_size as max_dim
from weft.util import min_size as min_dim

__all__ = [
    "AbstractValue", "Atom", "ParamDict", "ShapedArray", "Trace", "Tracer", "Value",
    "ensure_compile_time_eval", "eval_context", "eval_jaxpr", "max_dim", "min_dim",
]  # fmt: skip
__dir__ = list_public(__name__)

ParamDict = dict[str, Any]
Value = Any
