"""Pytrees known only by their structure: no object of a user's class is made to look into one.

A class may do anything with its leaves when it is made, such as ask for their shape, so that a tree
of placeholders cannot always be built.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jaxlib._jax import pytree

from weft import dtypes
from weft.pytrees import (
    KeyPath,
    PyTreeDef,
    default_registry,
    flatten,
    flatten_with_path,
    open_treedef,
    prefix_error,
    register_pytree_node,
    structure,
    tree_map,
    unflatten,
)


def tuple_structure(*trees: PyTreeDef) -> PyTreeDef:
    """Return the structure of a tuple of trees of these structures."""
    return pytree.treedef_tuple(default_registry, [*trees])


def show_structure(tree: PyTreeDef, avals: Sequence[Any]) -> str:
    """Return a structure as text, with the types of its leaves: `(f32[3], {'a': i32[]})`."""
    text = str(tree).removeprefix("PyTreeDef(").removesuffix(")")
    pieces = text.split("*")
    if len(pieces) != len(avals) + 1:  # a key or the data of a class has a star
        return str(tree)
    return pieces[0] + "".join([f"{a}{piece}" for a, piece in zip(avals, pieces[1:], strict=True)])


def call_structure(args_tree: PyTreeDef) -> PyTreeDef:
    """Return the structure of (args, kwargs) for positional arguments of a given structure."""
    return tuple_structure(args_tree, structure({}))


def cut_structure(prefix: PyTreeDef, tree: PyTreeDef) -> list[PyTreeDef] | None:
    """Return the structures below the leaves of `prefix`; None if it is not a prefix of `tree`."""
    data = prefix.node_data()
    if data is None:
        return [tree] * prefix.num_leaves
    if data != tree.node_data():
        return None
    children, below = prefix.children(), tree.children()
    if len(children) != len(below):
        return None
    found: list[PyTreeDef] = []
    for child, subtree in zip(children, below, strict=True):
        parts = cut_structure(child, subtree)
        if parts is None:
            return None
        found += parts
    return found


def broadcast_to_structure(
    prefix: Any,
    tree: PyTreeDef,
    is_leaf: Callable[[Any], bool] | None = None,
    *,
    op: str,
    names: tuple[str, str],
) -> list[Any]:
    """Return for each leaf of a structure the leaf of `prefix`, its pytree prefix, above it."""
    leaves, treedef = flatten(prefix, is_leaf)
    below = cut_structure(treedef, tree)
    if below is None:
        raise prefix_error(op, treedef, tree, *names)  # type: ignore[misc]
    return [leaf for leaf, part in zip(leaves, below, strict=True) for _ in range(part.num_leaves)]


def leaf_paths(tree: PyTreeDef) -> Sequence[KeyPath]:
    """Return the path of each leaf.

    The classes in the tree know the names of their children only where one can be made.
    """
    with contextlib.suppress(Exception):
        made = flatten_with_path(unflatten(tree, range(tree.num_leaves)))[0]
        return [path for path, x in made if not is_float0(x)]
    return [*_walk_paths(tree, ())]


def _walk_paths(tree: PyTreeDef, path: KeyPath) -> Iterator[KeyPath]:
    node = open_treedef(tree)
    if node is None:
        yield from [path] * tree.num_leaves
    else:
        for key, child in zip(node.keys, node.children, strict=True):
            yield from _walk_paths(child, (*path, key))


# --- arrays of float0 -----------------------------------------------------------------------------


class Nothing:
    """A node without leaves in the place of an array of float0, which holds nothing.

    Where a tree of this structure is built, such an array is made.
    """

    def __init__(self, shape: tuple[int, ...]):
        self.shape = shape


register_pytree_node(
    Nothing, lambda x: ((), x.shape), lambda shape, _: np.zeros(shape, dtypes.float0)
)


def is_float0(x: Any) -> bool:
    """Return True for an array of float0."""
    return getattr(x, "dtype", None) == dtypes.float0


def has_float0(leaves: Sequence[Any]) -> bool:
    """Return True if there is an array of float0 among the leaves."""
    return np.ndarray in map(type, leaves) and any(map(is_float0, leaves))


def hide_float0(tree: Any, first: int = 0) -> Any:
    """Return a tree that hides float0 arrays from programs; their shapes lose `first` axes."""
    return tree_map(lambda x: Nothing(x.shape[first:]) if is_float0(x) else x, tree)


def hide_leaves(tree: PyTreeDef, hidden: dict[int, Any], start: int = 0) -> PyTreeDef:
    """Return a structure that hides the float0 arrays among its leaves, given by number."""
    data = tree.node_data()
    if data is None and tree.num_leaves:
        return structure(Nothing(hidden[start].shape)) if start in hidden else tree
    children = []
    for child in tree.children():
        children.append(hide_leaves(child, hidden, start))
        start += child.num_leaves
    return PyTreeDef.from_node_data_and_children(default_registry, data, children)


def stack_float0(tree: PyTreeDef, length: int) -> PyTreeDef:
    """Return the structure of stacked rows; hidden arrays have one more axis."""
    data = tree.node_data()
    if data is None:
        return tree
    if data[0] is Nothing:
        return structure(Nothing((length, *data[1])))
    children = [stack_float0(child, length) for child in tree.children()]
    return PyTreeDef.from_node_data_and_children(default_registry, data, children)
