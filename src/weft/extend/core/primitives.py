"""Every primitive of the language, under its name in `jax.extend.core.primitives`."""

from weft import lax
from weft.control.custom import custom_jvp_p as custom_jvp_call_p
from weft.control.custom import custom_linear_p as custom_lin_p
from weft.control.custom import custom_vjp_p as custom_vjp_call_p
from weft.control.jit import jit_p
from weft.control.remat import name_p, remat_p
from weft.util import list_public

# As many as weft.lax has, so that a new one is here without a line.
_OF_LAX = {
    name: getattr(module, name)
    for module in (lax, lax.linalg)
    for name in module.__all__
    if name.endswith("_p")
}
globals().update(_OF_LAX)

__all__ = [
    *_OF_LAX, "custom_jvp_call_p", "custom_lin_p", "custom_vjp_call_p", "jit_p", "name_p",
    "remat_p",
]  # fmt: skip
__dir__ = list_public(__name__)
