"""Every primitive of the language, under its name in `jax.extend.core.primitives`."""

from collections.abc import Sequence
from typing import Any

from weft import lax
from weft.control.call import Call
from weft.control.custom import custom_jvp_p as custom_jvp_call_p
from weft.control.custom import custom_linear_p as custom_lin_p
from weft.control.custom import custom_vjp_p as custom_vjp_call_p
from weft.control.jit import jit_p
from weft.control.remat import name_p, remat_p
from weft.primitives.elementwise import add_p as add_jaxvals_p
from weft.primitives.random import random_bits_p, random_fold_in_p, random_split_p, threefry2x32_p
from weft.primitives.refs import get_p, swap_p
from weft.util import list_public


class CallPrimitive(Call):
    """A primitive that calls a function: such are `call_p` and `closed_call_p`."""

    call_primitive = True
    program = "call_jaxpr"

    def __init__(self, name: str):
        self.name = name  # type: ignore[misc]

    def bind(self, *args: Any, subfuns: Sequence[Any] = (), **params: Any) -> Any:
        """The results of a function, the first argument or in `subfuns`, or of `call_jaxpr`."""
        if not subfuns and self.program not in params:
            subfuns, args = args[:1], args[1:]
        return subfuns[0](*args) if subfuns else super().bind(*args, **params)


call_p, closed_call_p = CallPrimitive("call"), CallPrimitive("closed_call")

# As many as weft.lax has, so that a new one is here without a line.
_OF_LAX = {
    name: getattr(module, name)
    for module in (lax, lax.linalg)
    for name in module.__all__
    if name.endswith("_p")
}
globals().update(_OF_LAX)

__all__ = [
    *_OF_LAX, "add_jaxvals_p", "call_p", "closed_call_p", "custom_jvp_call_p", "custom_lin_p",
    "custom_vjp_call_p", "get_p", "jit_p", "name_p", "random_bits_p", "random_fold_in_p",
    "random_split_p", "remat_p", "swap_p", "threefry2x32_p",
]  # fmt: skip
__dir__ = list_public(__name__)
