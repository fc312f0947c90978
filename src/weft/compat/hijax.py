"""Names of `jax.experimental.hijax` for values whose type changes: flax refers to them.

The rest is weft.experimental.hijax's.
"""

from __future__ import annotations

from weft.compat.absent import make_absent
from weft.experimental.hijax import HiType as MutableHiType
from weft.util import list_public

__all__ = ["AvalMutableQDD", "AvalQDD", "MutableHiType"]
__dir__ = list_public(__name__)

AvalQDD, AvalMutableQDD = map(make_absent, ["jax.experimental.AvalQDD"] * 2)
