"""weft: composable transformations of Python and NumPy programs, compiled by XLA.

`import weft`, `import weft.numpy as jnp`; `grad`, `jit`, `vmap` and their kin are here.
"""

from weft.xla import eager as _eager  # the bottom trace comes first  # noqa: F401, I001
from weft.api import (
    disable_jit,
    eval_shape,
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    make_jaxpr,
    value_and_grad,
    vjp,
    vmap,
)
from weft.core.aval import typeof
from weft.custom_derivatives import custom_jvp, custom_vjp
from weft.jitting import jit
from weft.options import config
from weft.structs import ShapeDtypeStruct
from weft.xla.array import Array

__all__ = [
    "Array",
    "ShapeDtypeStruct",
    "config",
    "custom_jvp",
    "custom_vjp",
    "disable_jit",
    "eval_shape",
    "grad",
    "hessian",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "make_jaxpr",
    "typeof",
    "value_and_grad",
    "vjp",
    "vmap",
]

__version__ = "0.1.0.dev0"
__weft__ = True
