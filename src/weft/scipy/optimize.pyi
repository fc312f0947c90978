"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Callable as _Callable
from collections.abc import Mapping as _Mapping
from typing import Any as _Any
from typing import NamedTuple as _NamedTuple
from weft.xla.typing import ArrayLike as _ArrayLike

class OptimizeResults(_NamedTuple):
    x: _Any
    success: _Any
    status: _Any
    fun: _Any
    jac: _Any
    hess_inv: _Any
    nfev: _Any
    njev: _Any
    nit: _Any

def minimize(
    fun: _Callable[..., _Any],
    x0: _ArrayLike,
    args: tuple[_Any, ...] = ...,
    *,
    method: str,
    tol: float | None = ...,
    options: _Mapping[str, _Any] | None = ...,
) -> OptimizeResults: ...
