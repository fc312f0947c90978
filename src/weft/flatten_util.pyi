"""Written by tools/make_stubs.py; do not edit."""

from typing import Any as _Any
from weft.flatten_util import Unravel as _Unravel

def ravel_pytree(pytree: _Any) -> tuple[_Any, _Unravel]: ...
