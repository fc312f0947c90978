"""NumPy's interface on weft's arrays: `import weft.numpy as jnp`, as in all examples.

The public names and the modules that define them are listed in names.py. Modules that few programs
use are imported when one of their names is first used.
"""

import sys as _sys
from importlib import import_module as _import_module

from weft.numpy import methods as _methods  # noqa: F401
from weft.numpy import scalars as _scalars
from weft.numpy.names import HOMES as _HOMES
from weft.numpy.scalars import *  # noqa: F403
from weft.util import import_lazily as _import_lazily
from weft.xla.array import Array as ndarray

__all__ = ["ndarray", *_scalars.__all__]
for _home, _names in _HOMES.items():
    __all__ += _names.split() or [_home.rpartition(".")[2]]
    if _home in _sys.modules:
        globals().update({_name: getattr(_sys.modules[_home], _name) for _name in _names.split()})


def _suggest(name: str) -> str:
    return _import_module("weft.numpy.absent").suggest_instead(name)


__getattr__, __dir__ = _import_lazily(__name__, _HOMES, _suggest)
