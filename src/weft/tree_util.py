"""Pytrees, for users: every function under its `tree_` name.

Here are those that treat a tree as a whole (all, reduce, transpose, broadcast, and maps with key
paths); flattening, registration and key paths are in `pytrees`. `weft.tree` has the short names.
`is_leaf(x)`, where it is taken, says that a node counts as a leaf; with `is_leaf_takes_path` it is
called with the key path and x.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from jaxlib._jax import pytree

from weft import pytrees
from weft.errors import PytreeError
from weft.pytrees import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    Partial,
    PyTreeDef,
    SequenceKey,
    broadcast_prefix,
    default_registry,
    flatten_one_level,
    flatten_one_level_with_keys,
    flatten_rest,
    flatten_up_to,
    is_tree_node,
    keystr,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    tree_map,
)
from weft.util import alias, check_function, list_items, list_public

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef",
    "SequenceKey", "all_leaves", "default_registry", "flatten_one_level",
    "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_structure",
    "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip
__dir__ = list_public(__name__)

tree_flatten = alias(pytrees.flatten, "tree_flatten")
tree_flatten_with_path = alias(pytrees.flatten_with_path, "tree_flatten_with_path")
tree_leaves = alias(pytrees.leaves, "tree_leaves")
tree_structure = alias(pytrees.structure, "tree_structure")
tree_unflatten = alias(pytrees.unflatten, "tree_unflatten")


class _Unset:
    """The default of an argument that may be None."""

    def __repr__(self) -> str:
        return "<unset>"


_UNSET = _Unset()


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """List the leaves of a pytree, each with the path of keys that leads to it.

    Args:
      tree: any pytree.
      is_leaf: a function that is called with each subtree. Where it returns True, the subtree
        counts as a leaf. By default only values that are not nodes are leaves.
      is_leaf_takes_path: if True, `is_leaf` is called with the key path and the subtree. The
        default is False.

    Returns:
      A list of (path, leaf) pairs, in the order of `tree_flatten`. `keystr` prints a path.

    >>> from weft.tree_util import keystr, tree_leaves_with_path
    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [5, 6]})]
    [("['a'][0]", 5), ("['a'][1]", 6)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function to the key path and the value of every leaf.

    It is `tree_map` for functions that depend on the name of a leaf, such as a weight decay that
    leaves out biases.

    Args:
      f: a function of the key path of a leaf, and of one value from each tree.
      tree: the pytree that gives the paths and the first values.
      *rest: more pytrees, each with the structure of `tree` or with subtrees at its leaves.
      is_leaf: a function that is called with each subtree of `tree`. Where it returns True, the
        subtree counts as a leaf. By default only values that are not nodes are leaves.
      is_leaf_takes_path: if True, `is_leaf` is called with the key path and the subtree. The
        default is False.

    Returns:
      A pytree with the structure of `tree`. Its leaves are the results of `f`.

    >>> from weft.tree_util import keystr, tree_map_with_path
    >>> tree_map_with_path(lambda path, x: f"{keystr(path)}: {x}", {"a": [5]})
    {'a': ["['a'][0]: 5"]}
    """
    check_function("tree.map_with_path", "f", f)
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = flatten_rest("tree.map_with_path", treedef, rest)
    return treedef.unflatten([f(*args) for args in zip(*zip(*pairs), *columns)])


def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return True if every leaf is true, as Python's `all` does.

    Args:
      tree: a pytree of values that `bool` takes. Tracers are not among them, so within `jit` use
        `jnp.all` and `tree.reduce`.
      is_leaf: a function that is called with each subtree. Where it returns True, the subtree
        counts as a leaf. By default only values that are not nodes are leaves.

    Returns:
      A bool. It is True for a tree without leaves.

    >>> from weft.tree_util import tree_all
    >>> tree_all({"a": True, "b": [1, None]}), tree_all([True, (False,)])
    (True, False)
    """
    return all(tree_leaves(tree, is_leaf))


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _UNSET,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Fold the leaves from left to right: `function(... function(leaf0, leaf1) ..., leafn)`.

    Args:
      function: a function of the result so far and the next leaf.
      tree: any pytree.
      initializer: the value to start from. By default the first leaf is the start.
      is_leaf: a function that is called with each subtree. Where it returns True, the subtree
        counts as a leaf. By default only values that are not nodes are leaves.

    Returns:
      The last result of `function`; `initializer` if the tree has no leaves.

    Raises:
      TypeError: the tree has no leaves and there is no `initializer`.

    >>> from weft.tree_util import tree_reduce
    >>> tree_reduce(lambda x, y: x - y, [10, (1, {"a": 2})])
    7
    >>> tree_reduce(lambda total, x: total + x.size, [jnp.ones(3), jnp.ones((2, 2))], 0)
    7
    """
    check_function("tree.reduce", "function", function)
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not _UNSET:
        return functools.reduce(function, leaves, initializer)
    _require_leaves("tree.reduce", "initializer", tree, leaves)
    return functools.reduce(function, leaves)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _UNSET,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Combine the leaves by an associative operation, as a balanced tree of calls.

    The depth is logarithmic in the number of leaves, so rounding errors stay small and a compiler
    finds parallel work. The leaves have the order of `tree_flatten`.

    Args:
      operation: an associative function of two values.
      tree: any pytree.
      identity: the result for a tree without leaves. It is not used otherwise. By default such a
        tree is an error.
      is_leaf: a function that is called with each subtree. Where it returns True, the subtree
        counts as a leaf. By default only values that are not nodes are leaves.

    Returns:
      The combined value.

    Raises:
      TypeError: the tree has no leaves and there is no `identity`.

    >>> from weft.tree_util import tree_reduce_associative
    >>> tree_reduce_associative(lambda x, y: f"({x} {y})", ["a", ["b", "c"], "d"])
    '((a b) (c d))'
    """
    check_function("tree.reduce_associative", "operation", operation)
    leaves = tree_leaves(tree, is_leaf)
    if not leaves and identity is not _UNSET:
        return identity
    _require_leaves("tree.reduce_associative", "identity", tree, leaves)

    def combine(xs: list[Any]) -> Any:
        if len(xs) == 1:
            return xs[0]
        half = len(xs) // 2
        return operation(combine(xs[:half]), combine(xs[half:]))

    return combine(leaves)


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Turn a tree of trees inside out.

    A list of dicts becomes a dict of lists, for example.

    Args:
      outer_treedef: the `PyTreeDef` of the outer structure.
      inner_treedef: the `PyTreeDef` of the tree at each leaf of the outer structure. None takes it
        from the first of these trees.
      pytree_to_transpose: the tree of trees. Only the number of its leaves is checked below the
        outer structure, so a list may stand where `inner_treedef` has a tuple.

    Returns:
      A pytree of the inner structure with a tree of the outer structure at each leaf.

    Raises:
      TypeError: a structure is not a `PyTreeDef`.
      PytreeError: the number of leaves is not the product of the two structures' numbers.

    >>> from weft.tree_util import tree_structure, tree_transpose
    >>> tree_transpose(tree_structure([0, 0]), None, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    op = "tree.transpose"
    _require_treedef(op, "outer_treedef", outer_treedef)
    if inner_treedef is None:
        names = ("outer_treedef", "pytree_to_transpose")
        inners = flatten_up_to(op, outer_treedef, pytree_to_transpose, *names)
        if not inners:
            raise PytreeError(
                f"{op}: inner_treedef must be given where outer_treedef has no leaves; got None."
            )
        inner_treedef = tree_structure(inners[0])
    _require_treedef(op, "inner_treedef", inner_treedef)
    leaves, treedef = tree_flatten(pytree_to_transpose)
    outer_size, inner_size = outer_treedef.num_leaves, inner_treedef.num_leaves
    if treedef.num_leaves != outer_size * inner_size:
        raise PytreeError(
            f"{op}: the tree must hold {inner_treedef} at each leaf of {outer_treedef}; "
            f"got {treedef}."
        )
    columns = [leaves[i::inner_size] for i in range(inner_size)]
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


def tree_broadcast(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Repeat each leaf of a prefix over all leaves that a full tree has below it.

    It expands settings that are given once for a whole subtree, as `in_axes` of `vmap` are.

    Args:
      prefix_tree: a pytree with a structure that is a prefix of `full_tree`'s.
      full_tree: the pytree that gives the structure of the result.
      is_leaf: a function that is called with each subtree of `prefix_tree`. Where it returns True,
        the subtree counts as a leaf. By default only values that are not nodes are leaves.

    Returns:
      A pytree with the structure of `full_tree` and the leaves of `prefix_tree`.

    Raises:
      PytreeError: `prefix_tree` is not a prefix of `full_tree`.

    >>> from weft.tree_util import tree_broadcast
    >>> tree_broadcast({"a": 1, "b": 2}, {"a": 0, "b": (0, [0])})
    {'a': 1, 'b': (2, [2])}
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf, op="tree.broadcast")
    return tree_structure(full_tree).unflatten(leaves)


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return True if every element is a leaf of pytrees.

    Args:
      iterable: an iterable of values.
      is_leaf: a function that is called with each value. Where it returns True, the value counts as
        a leaf although it is a node. By default only values that are not nodes are leaves.

    Returns:
      A bool.

    >>> from weft.tree_util import all_leaves
    >>> all_leaves([1, "two"]), all_leaves([1, [2]])
    (True, False)
    """
    items = list_items("all_leaves", "iterable", iterable)
    if is_leaf is None:
        return pytree.all_leaves(default_registry, items)
    check_function("all_leaves", "is_leaf", is_leaf)
    return all(is_leaf(x) or not is_tree_node(type(x)) for x in items)


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple whose elements have the given structures.

    Args:
      treedefs: an iterable of `PyTreeDef`s.

    Returns:
      A `PyTreeDef`.

    Raises:
      TypeError: an element is not a `PyTreeDef`.

    >>> from weft.tree_util import tree_structure, treedef_tuple
    >>> treedef_tuple([tree_structure(0), tree_structure([0])])
    PyTreeDef((*, [*]))
    """
    treedefs = list_items("treedef_tuple", "treedefs", treedefs)
    for i, treedef in enumerate(treedefs):
        _require_treedef("treedef_tuple", f"treedefs[{i}]", treedef)
    return pytree.treedef_tuple(default_registry, treedefs)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """List the structures of the children of a root.

    Args:
      treedef: a `PyTreeDef`.

    Returns:
      A list of `PyTreeDef`s. It is empty for the structure of a leaf.

    Raises:
      TypeError: the argument is not a `PyTreeDef`.

    >>> from weft.tree_util import tree_structure, treedef_children
    >>> treedef_children(tree_structure((0, [0])))
    [PyTreeDef(*), PyTreeDef([*])]
    """
    _require_treedef("treedef_children", "treedef", treedef)
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return True if a structure is one leaf, or one node without children such as None or `()`.

    Args:
      treedef: a `PyTreeDef`.

    Returns:
      A bool.

    Raises:
      TypeError: the argument is not a `PyTreeDef`.

    >>> from weft.tree_util import tree_structure, treedef_is_leaf
    >>> treedef_is_leaf(tree_structure(0)), treedef_is_leaf(tree_structure([0]))
    (True, False)
    """
    _require_treedef("treedef_is_leaf", "treedef", treedef)
    return treedef.num_nodes == 1


def _require_leaves(op: str, argument: str, tree: Any, leaves: list[Any]) -> None:
    if not leaves:
        raise TypeError(
            f"{op}: a tree without leaves needs an {argument}; got {tree_structure(tree)}. "
            f"Hint: {op}(f, tree, {argument}=0)"
        )


def _require_treedef(op: str, argument: str, value: Any) -> None:
    if not isinstance(value, PyTreeDef):
        raise TypeError(
            f"{op}: {argument} must be a PyTreeDef; got {type(value).__qualname__}. "
            "Hint: tree.structure(x) is the PyTreeDef of x"
        )
