"""`checkpoint`, which recomputes intermediate values in the backward pass, and its residuals."""

from weft import checkpoint_policies
from weft.api.checkpoint import (
    checkpoint,
    checkpoint_name,
    print_saved_residuals,
    remat,
    saved_residuals,
)
from weft.checkpoint_policies import Offloadable, Recompute, Saveable
from weft.control.remat import name_p

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name", "checkpoint_policies",
    "name_p", "print_saved_residuals", "remat", "saved_residuals",
]  # fmt: skip
