"""Names of `jax.experimental.hijax` for values whose type changes: flax refers to them.

The rest is weft.experimental.hijax's.
"""

from __future__ import annotations

from typing import Any

from weft.compat.absent import explain_absence, make_absent
from weft.experimental.hijax import HiType
from weft.util import list_public

__all__ = ["AvalMutableQDD", "AvalQDD", "MutableHiType"]
__dir__ = list_public(__name__)


class MutableHiType(HiType):
    """The type of values whose type changes, which are taken nowhere; flax derives one."""

    def lower_val(self, hi_val: Any) -> list:
        """Raise, for the arrays of such a value may become others."""
        raise NotImplementedError(explain_absence("jax.experimental.hijax.MutableHiType"))


AvalQDD, AvalMutableQDD = map(make_absent, ["jax.experimental.AvalQDD"] * 2)
