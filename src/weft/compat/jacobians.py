"""The names of `jax._src.api` that libraries copy `jacfwd` and `jacrev` with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.api.grad import jvp, vjp
from weft.api.jacobians import basis, check_dtype
from weft.core.aval import typeof
from weft.dtypes import is_complex
from weft.numpy import reshape, split
from weft.tree_util import tree_flatten, tree_unflatten
from weft.util import list_public

__all__: list[str] = []
__dir__ = list_public(__name__)

_vjp = vjp


def _jvp(fun: Callable, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    return jvp(fun, tuple(primals), tuple(tangents), has_aux=has_aux)


def _std_basis(pytree: Any) -> Any:
    """Return the standard basis of the space of a tree, stacked along a new first axis."""
    leaves, treedef = tree_flatten(pytree)
    return tree_unflatten(treedef, basis([typeof(x) for x in leaves])[0])


def _unravel(tree: Any, arr: Any, axis: int, leaf_shape: tuple[int, ...]) -> Any:
    """Return a tree of parts of an array; one axis of each becomes axes of the leaf's shape."""
    leaves, treedef = tree_flatten(tree)
    ends = np.cumsum([np.size(x) for x in leaves])[:-1].tolist()
    parts = split(arr, ends, axis)
    shapes = [(*leaf_shape, *np.shape(x)) if axis else (*np.shape(x), *leaf_shape) for x in leaves]
    return tree_unflatten(treedef, [reshape(y, s) for y, s in zip(parts, shapes, strict=True)])


def _jacfwd_unravel(input_pytree: Any, output_pytree_leaf: Any, arr: Any) -> Any:
    return _unravel(input_pytree, arr, -1, np.shape(output_pytree_leaf))


def _jacrev_unravel(output_pytree: Any, input_pytree_leaf: Any, arr: Any) -> Any:
    return _unravel(output_pytree, arr, 0, np.shape(input_pytree_leaf))


def _check_input_dtype_jacfwd(holomorphic: bool, x: Any) -> None:
    check_dtype("jacfwd", "inputs", typeof(x), holomorphic)


def _check_output_dtype_jacfwd(holomorphic: bool, x: Any) -> None:
    if holomorphic:
        check_dtype("jacfwd", "results", typeof(x), holomorphic)


def _check_input_dtype_jacrev(holomorphic: bool, allow_int: bool, x: Any) -> None:
    aval = typeof(x)
    if holomorphic or not (allow_int or is_complex(aval.dtype)):  # complex ones as by `grad`
        check_dtype("jacrev", "inputs", aval, holomorphic)


def _check_output_dtype_jacrev(holomorphic: bool, x: Any) -> None:
    check_dtype("jacrev", "results", typeof(x), holomorphic)
