"""References: arrays that a program may change in place. See docs/references.md."""

from weft.core.ref import AbstractRef, Ref
from weft.numpy.refs import addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap
from weft.passes.discharge import discharge_state, state_effects
from weft.util import list_public

__all__ = [
    "AbstractRef", "Ref", "addupdate", "discharge_state", "empty_ref", "free_ref", "freeze", "get",
    "new_ref", "set", "state_effects", "swap",
]  # fmt: skip
__dir__ = list_public(__name__)
