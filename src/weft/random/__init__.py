"""Random numbers from keys: `from weft import random`, then `random.normal(random.key(0), (3,))`.

A key is used once: `split` it for more. The same key gives the same numbers on every device.
"""

from weft.random import choices, continuous, counts, gammas, keys
from weft.random.choices import *  # noqa: F403
from weft.random.continuous import *  # noqa: F403
from weft.random.counts import *  # noqa: F403
from weft.random.gammas import *  # noqa: F403
from weft.random.keys import *  # noqa: F403
from weft.util import list_public

_PARTS = (choices, continuous, counts, gammas, keys)
__all__ = [name for part in _PARTS for name in part.__all__]
__dir__ = list_public(__name__)
