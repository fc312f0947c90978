"""Options of `jit` for compilers: flags of XLA, and the choice of another compiler.

This file needs no other, so that a program can be compiled without the rules of calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BACKEND = "backend"  # a compiler option that is not for XLA
FINITE = "finite_math"  # an option of the backend "c"; the pass of the backend stands for both


def split_options(options: tuple) -> tuple[Callable[[Any], Any] | None, tuple]:
    """Return the pass that compiles a program in place of XLA, or None, and the flags of XLA."""
    if not options:
        return None, ()
    flags = tuple([pair for pair in options if pair[0] != BACKEND])
    return dict(options).get(BACKEND), flags
