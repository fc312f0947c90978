"""Functions with a derivative rule of their own: `custom_jvp`, `custom_vjp` and others."""

from weft.api.custom_gradient import closure_convert, custom_gradient, linear_call
from weft.api.custom_rules import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_jvp,
    custom_vjp,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from weft.control.custom import custom_jvp_p as custom_jvp_call_p
from weft.control.custom import custom_vjp_p as custom_vjp_call_p
from weft.control.custom import remat_opt_p

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
    "custom_jvp_call_p", "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values",
    "linear_call", "remat_opt_p", "zero_from_primal",
]  # fmt: skip
