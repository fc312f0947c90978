"""The public `gather` and scatters: the functions of primitives/indexing.py, with a check.

The rules of primitives and numpy/ call the functions there, which never check.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from weft.core.aval import ShapedArray, typeof
from weft.options import config
from weft.primitives import indexing
from weft.primitives import scatter_apply as applying
from weft.primitives.checks import check_inside
from weft.primitives.slicing import slice_in_dim


def check_windows(op: str, given: Mapping[str, Any]) -> None:
    """Raise, now or when the program runs, where a window reaches out of the operand."""
    x, dims = typeof(given["operand"]), given["dimension_numbers"]
    if op == "gather":
        indices, sizes = given["start_indices"], given["slice_sizes"]
    else:
        updates = given.get("updates")
        shape = given.get("update_shape", ()) if updates is None else typeof(updates).shape
        updates = ShapedArray(shape, x.dtype)
        indices, sizes = given["scatter_indices"], indexing.window_sizes(x, updates, dims)
    for k, d in enumerate(dims[2]):
        last = x.shape[d] - sizes[d]
        text = f"{op}: index must be in [0, {last}] on axis {d} of {x}; got {{}}."
        check_inside(text, slice_in_dim(indices, k, k + 1, axis=-1), 0, last + 1)


def check_bounds_of(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fun`, with a check of its indices under the option `check_bounds` "all".

    With a `mode` there is no check, since it says how windows out of bounds are treated.
    """
    signature = inspect.signature(fun)

    @functools.wraps(fun)
    def checked(*args: Any, **kwargs: Any) -> Any:
        out = fun(*args, **kwargs)
        if config.check_bounds == "all" and kwargs.get("mode") is None:
            check_windows(fun.__name__, signature.bind(*args, **kwargs).arguments)
        return out

    checked.__module__ = __name__
    return checked


gather = check_bounds_of(indexing.gather)
scatter = check_bounds_of(indexing.scatter)
scatter_add = check_bounds_of(indexing.scatter_add)
scatter_apply = check_bounds_of(applying.scatter_apply)
scatter_max = check_bounds_of(indexing.scatter_max)
scatter_min = check_bounds_of(indexing.scatter_min)
scatter_mul = check_bounds_of(indexing.scatter_mul)
scatter_sub = check_bounds_of(indexing.scatter_sub)
