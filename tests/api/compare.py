"""Helpers of tests of transformations: sums, comparisons of pytrees, and counts of traces."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import weft
from weft import jit, lax


def total(x: Any) -> Any:
    """The sum of all elements."""
    return lax.reduce_sum(x, tuple(range(x.ndim)))


def same(got: Any, want: Any, rtol: float = 1e-5) -> None:
    """Structures are equal, leaves close."""
    got_leaves, got_tree = weft.tree.flatten(got)
    want_leaves, want_tree = weft.tree.flatten(want)
    assert got_tree == want_tree
    for g, w in zip(got_leaves, want_leaves, strict=True):
        np.testing.assert_allclose(g, w, rtol=rtol)


def counted(fun: Callable, **options: Any) -> tuple[Callable, list]:
    """A jitted function, and the list that grows each time it is traced."""
    traces = []

    @functools.wraps(fun)
    def noted(*args: Any, **kwargs: Any) -> Any:
        traces.append(1)
        return fun(*args, **kwargs)

    return jit(noted, **options), traces
