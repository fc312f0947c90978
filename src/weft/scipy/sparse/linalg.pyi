"""Written by tools/make_stubs.py; do not edit."""

from typing import Any as _Any

def bicgstab(
    A: _Any,
    b: _Any,
    x0: _Any = ...,
    *,
    tol: _Any = ...,
    atol: _Any = ...,
    maxiter: int | None = ...,
    M: _Any = ...,
) -> tuple[_Any, _Any]: ...
def cg(
    A: _Any,
    b: _Any,
    x0: _Any = ...,
    *,
    tol: _Any = ...,
    atol: _Any = ...,
    maxiter: int | None = ...,
    M: _Any = ...,
) -> tuple[_Any, _Any]: ...
def gmres(
    A: _Any,
    b: _Any,
    x0: _Any = ...,
    *,
    tol: _Any = ...,
    atol: _Any = ...,
    restart: int = ...,
    maxiter: int | None = ...,
    M: _Any = ...,
    solve_method: str = ...,
) -> tuple[_Any, _Any]: ...
