"""Pytrees on jaxlib's C++ registry: flatten, unflatten, map, key paths, and what a node is.

A pytree is a nest of containers; other values are leaves. Every other file sees trees only
through this one. How two trees differ, and prefixes of trees, are here too, since errors need them.
Elsewhere: what users do with whole trees (`tree_util`, `tree`), and trees as vectors
(`flatten_util`).
"""

from __future__ import annotations

import collections
import copyreg
import dataclasses
import functools
import operator
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Sized
from typing import Any, NamedTuple, TypeVar

# The aliases say that these names are exported from here.
from jaxlib._jax.pytree import DictKey as DictKey
from jaxlib._jax.pytree import FlattenedIndexKey as FlattenedIndexKey
from jaxlib._jax.pytree import GetAttrKey as GetAttrKey
from jaxlib._jax.pytree import PyTreeDef as PyTreeDef
from jaxlib._jax.pytree import PyTreeRegistry
from jaxlib._jax.pytree import SequenceKey as SequenceKey

from weft.errors import PytreeError
from weft.util import check_function, list_items, unzip2

KeyEntry = Hashable
KeyPath = tuple[Any, ...]  # of KeyEntry
Cls = TypeVar("Cls", bound=type)

# Only weft's: other code in the process may register conflicting nodes in a shared registry.
default_registry = PyTreeRegistry()

# The registry of the C++ call path. It has the same nodes, and one more for each class of values
# that stand for other arrays (`register_call_node`).
call_registry = PyTreeRegistry()


def _default_registry() -> Any:
    return default_registry


copyreg.pickle(PyTreeRegistry, lambda _: (_default_registry, ()))  # so treedefs pickle


# --- Leaves and structure --------------------------------------------------------------------


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Take a pytree apart into the list of its leaves and a treedef.

    Code that works on flat lists of arrays uses this function to accept any nest of containers. The
    inverse is `unflatten`.

    Lists, tuples, namedtuples, dicts, OrderedDicts, defaultdicts and registered classes are nodes.
    `None` is a node without leaves. Every other value is a leaf. The leaves are listed depth first,
    and the entries of a dict in the order of its sorted keys.

    Args:
      tree: any pytree.
      is_leaf: a function that is called with each subtree. Where it returns True, the subtree
        counts as a leaf. By default only values that are not nodes are leaves.

    Returns:
      A pair: the list of the leaves, and the `PyTreeDef` that describes the containers.

    Raises:
      PytreeError: the keys of a dict cannot be sorted, or a container holds itself.

    >>> from weft.tree_util import tree_flatten
    >>> tree_flatten([1.0, (2.0, {"b": 3.0, "a": None})])
    ([1.0, 2.0, 3.0], PyTreeDef([*, (*, {'a': None, 'b': *})]))
    >>> tree_flatten([1.0, None], is_leaf=lambda x: x is None)
    ([1.0, None], PyTreeDef([*, *]))
    """
    try:
        return default_registry.flatten(tree, is_leaf)
    except (ValueError, SystemError, TypeError) as error:
        raise (_flatten_error(tree, error, is_leaf) or error) from error.__cause__


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """List the leaves of a pytree, in the order of `flatten`.

    Args:
      tree: any pytree.
      is_leaf: a function that is called with each subtree. Where it returns True, the subtree
        counts as a leaf. By default only values that are not nodes are leaves.

    Returns:
      The list of the leaves.

    >>> from weft.tree_util import tree_leaves
    >>> tree_leaves({"b": [1, 2], "a": None, "c": 3})
    [1, 2, 3]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """Return the structure of a pytree, without its leaves.

    Treedefs can be compared, hashed and pickled. Two pytrees with equal structures can be combined
    leaf by leaf.

    Args:
      tree: any pytree.
      is_leaf: a function that is called with each subtree. Where it returns True, the subtree
        counts as a leaf. By default only values that are not nodes are leaves.

    Returns:
      The `PyTreeDef` of the tree, which prints each leaf as `*`.

    >>> from weft.tree_util import tree_structure
    >>> tree_structure((1, [2, 3]))
    PyTreeDef((*, [*, *]))
    >>> tree_structure({"a": 1, "b": 2}) == tree_structure({"b": 5, "a": 6})
    True
    """
    return flatten(tree, is_leaf)[1]


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Build a pytree from its structure and its leaves. It is the inverse of `flatten`.

    Args:
      treedef: the `PyTreeDef` of the result, from `tree.flatten` or `tree.structure`.
      leaves: an iterable of the leaves, in the order of `flatten`. They may be of any type.

    Returns:
      The pytree.

    Raises:
      TypeError: the first argument is not a `PyTreeDef`.
      PytreeError: the number of leaves is not the number that the structure has.

    >>> from weft.tree_util import tree_structure, tree_unflatten
    >>> tree_unflatten(tree_structure({"a": 0, "b": (0, 0)}), [1, 2, 3])
    {'a': 1, 'b': (2, 3)}
    """
    try:
        return treedef.unflatten(leaves)
    except AttributeError:
        if isinstance(treedef, PyTreeDef):  # raised by the user's own unflattening function
            raise
        raise TypeError(
            f"tree.unflatten: the first argument must be a PyTreeDef; got "
            f"{_with_article(type(treedef))}. Hint: tree.unflatten(treedef, leaves)"
        ) from None
    except ValueError as error:
        problem = str(error).partition(" for PyTreeDef")[0].lower()
        if problem not in ("too many leaves", "too few leaves"):
            raise
        given = len(leaves) if isinstance(leaves, Sized) else problem
        raise PytreeError(
            f"tree.unflatten: leaves must number {treedef.num_leaves}, for {treedef}; got {given}."
        ) from None


def tree_map(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Apply a function to every leaf, and return a pytree of the results.

    It is the usual way to compute with parameters and gradients that are nested in containers. With
    more than one tree, `f` takes one value from each. The first tree must be a prefix of the
    others: where it has a leaf, another tree may have a whole subtree, and `f` receives that
    subtree.

    Args:
      f: a function with one argument for each tree.
      tree: the pytree whose leaves are the first argument of `f`.
      *rest: more pytrees, each with the structure of `tree` or with subtrees at its leaves.
      is_leaf: a function that is called with each subtree of `tree`. Where it returns True, the
        subtree counts as a leaf. By default only values that are not nodes are leaves.

    Returns:
      A pytree with the structure of `tree`. Its leaves are the results of `f`.

    Raises:
      PytreeError: a tree of `rest` differs from `tree`. The message names the first place.

    >>> from weft.tree_util import tree_map
    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    >>> tree_map(lambda x: 0 if x is None else x, [None, 2], is_leaf=lambda x: x is None)
    [0, 2]
    """
    check_function("tree.map", "f", f)
    xs, treedef = flatten(tree, is_leaf)
    # A list, not a generator or `map`, so that StopIteration from f reaches the caller.
    if not rest:
        return treedef.unflatten([f(x) for x in xs])
    columns = flatten_rest("tree.map", treedef, rest)
    return treedef.unflatten([f(*args) for args in zip(xs, *columns)])


def flatten_up_to(
    op: str, treedef: PyTreeDef, tree: Any, prefix_name: str, full_name: str
) -> list[Any]:
    """Cut `tree` where `treedef` has its leaves; the names are the caller's, for the error."""
    try:
        return treedef.flatten_up_to(tree)
    except ValueError as error:
        clearer = _flatten_error(tree, error) or prefix_error(
            op, treedef, tree, prefix_name, full_name, re.match("Dict key mismatch", str(error))
        )
        if clearer is None:
            raise
        raise clearer from None


def flatten_rest(op: str, treedef: PyTreeDef, rest: Sequence[Any]) -> list[list[Any]]:
    """Cut each of the trees that a map takes after the first."""
    return [flatten_up_to(op, treedef, x, "tree", f"rest[{i}]") for i, x in enumerate(rest)]


def _flatten_error(tree: Any, error: Exception, is_leaf: Any = None) -> Exception | None:
    """A better error than the one flattening `tree` raised in C++, where we have one."""
    if not (is_leaf is None or callable(is_leaf)):
        return TypeError(f"pytree: is_leaf must be a function; got {is_leaf!r}.")
    if isinstance(error.__cause__, RecursionError):
        return PytreeError(
            "pytree: a tree must be finite, and nest less deep than the recursion limit; "
            f"got {_with_article(type(tree))} that holds itself or nests deeper."
        )
    if str(error).startswith(("Comparator raised", "'<' not supported")):
        found = next(_unsortable(tree, ()), None)
        if found is not None:
            path, keys = found
            return PytreeError(
                f"pytree: the keys of a dict must sort; got {_list_items(keys)} "
                f"at {_describe_place(tree, path)}. "
                "Hint: collections.OrderedDict(d) keeps the order it has."
            )
    return None


def _describe_place(tree: Any, path: KeyPath) -> str:
    """Return where a path leads, as `['w'][0]`. Calls flatten a pair of their args and kwargs."""
    match tree:
        case (tuple(), dict()) if len(path) > 1:
            return f"{keystr(path[2:]) or 'the root'} of an argument"
    return keystr(path) or "the root"


def _unsortable(tree: Any, path: KeyPath) -> Iterator[tuple[KeyPath, list[Any]]]:
    """The dicts in `tree` whose keys do not sort."""
    try:
        node = _open_tree(tree)
    except (ValueError, TypeError):
        if isinstance(tree, dict):
            yield path, list(tree)
        return
    if node is not None:
        for key, child in zip(node.keys, node.children):
            yield from _unsortable(child, (*path, key))


# --- Key paths -------------------------------------------------------------------------------


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Take a pytree apart as `tree_flatten` does, with the key path of each leaf.

    A key path is the tuple of keys that leads from the root to the leaf. `keystr` prints it, so
    that an error or a table can name a leaf.

    Args:
      tree: any pytree.
      is_leaf: a function that is called with each subtree. Where it returns True, the subtree
        counts as a leaf. By default only values that are not nodes are leaves.
      is_leaf_takes_path: if True, `is_leaf` is called with the key path and the subtree. The
        default is False.

    Returns:
      A pair: the list of (path, leaf) pairs, and the `PyTreeDef`. The entries of a path are of the
      types `DictKey`, `SequenceKey`, `GetAttrKey` and `FlattenedIndexKey`, or keys of a registered
      class.

    >>> from weft.tree_util import tree_flatten_with_path
    >>> tree_flatten_with_path({"a": [5]})
    ([((DictKey(key='a'), SequenceKey(idx=0)), 5)], PyTreeDef({'a': [*]}))
    """
    stop = is_leaf
    if is_leaf is not None and not is_leaf_takes_path:
        stop = lambda _, subtree: is_leaf(subtree)
    try:
        return default_registry.flatten_with_path(tree, stop)
    except (ValueError, SystemError, TypeError) as error:
        raise (_flatten_error(tree, error, is_leaf) or error) from error.__cause__


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Print a key path as Python code that would index the tree, or as names.

    Args:
      keys: a key path, a sequence of keys as `tree_flatten_with_path` returns them.
      simple: if True, only the names and indices are printed. The default is False.
      separator: a string that is put between the entries. The default is the empty string.

    Returns:
      The text. It is empty for the path of a root.

    >>> from weft.tree_util import DictKey, SequenceKey, keystr
    >>> keystr((DictKey("a"), SequenceKey(0)))
    "['a'][0]"
    >>> keystr((DictKey("a"), SequenceKey(0)), simple=True, separator="/")
    'a/0'
    """
    texts = map(_simple_key if simple else str, list_items("keystr", "keys", keys))
    if not isinstance(separator, str):
        raise TypeError(f"keystr: separator must be a string; got {separator!r}.")
    return separator.join(texts)


def _simple_key(key: KeyEntry) -> str:
    match key:
        case SequenceKey(name) | DictKey(name) | GetAttrKey(name) | FlattenedIndexKey(name):
            return str(name)
    return str(key)


# --- What is a node --------------------------------------------------------------------------


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Register a class as a node of pytrees.

    After that, `jit`, `grad`, `vmap` and the functions of `weft.tree` see the children of its
    instances. `register_dataclass` is simpler for a dataclass.

    Args:
      nodetype: the class. It can be registered once. Subclasses have to be registered themselves.
      flatten_func: a function of an instance that returns a pair: an iterable of the children, and
        auxiliary data. The auxiliary data becomes part of the treedef, so it must be hashable and
        comparable: `jit` compiles again where it differs. Arrays belong to the children.
      unflatten_func: a function of the auxiliary data and the children that returns an instance.
        Transformations call it with children of any type, such as tracers or `None`, so it should
        not check or convert them.
      flatten_with_keys_func: a function like `flatten_func` whose children are (key, child) pairs.
        The keys appear in key paths. By default the children have the keys 0, 1, 2 and so on.

    Returns:
      None.

    Raises:
      PytreeError: the class is registered already.

    >>> from weft.tree_util import register_pytree_node, tree_map
    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda _, xy: Pair(*xy))
    >>> tree_map(lambda x: x + 1, Pair(1, 2)).y
    3
    """
    _register(
        "register_pytree_node",
        nodetype,
        "register_node",
        flatten_func,
        unflatten_func,
        flatten_with_keys_func,
    )


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Register a class as a node of pytrees whose children have keys of their own in key paths.

    Args:
      nodetype: the class. It can be registered once.
      flatten_with_keys: a function of an instance that returns a pair: an iterable of (key, child)
        pairs, and auxiliary data, which must be hashable and comparable. A key is for example
        `GetAttrKey("x")` or `DictKey("x")`.
      unflatten_func: a function of the auxiliary data and the children that returns an instance.
      flatten_func: a function like `flatten_with_keys` that returns the children without keys. It
        is used where no paths are needed, for speed. By default the keys are removed.

    Returns:
      None.

    >>> from weft import tree_util
    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> def flatten_with_keys(p):
    ...     return ((tree_util.GetAttrKey("x"), p.x), (tree_util.GetAttrKey("y"), p.y)), None
    >>> tree_util.register_pytree_with_keys(Pair, flatten_with_keys, lambda _, xy: Pair(*xy))
    >>> [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(Pair(1, [2]))]
    ['.x', '.y[0]']
    """

    def without_keys(x: Any) -> tuple[list[Any], Any]:
        pairs, aux = flatten_with_keys(x)
        return [child for _, child in pairs], aux

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Cls) -> Cls:
    """Register a class with methods `tree_flatten` and `tree_unflatten` as a node. A decorator.

    Args:
      cls: the class. Its method `tree_flatten(self)` returns (children, auxiliary data). Its class
        method `tree_unflatten(cls, aux, children)` returns an instance. `register_pytree_node` says
        which values these may be.

    Returns:
      The class.

    Raises:
      TypeError: the class lacks one of the methods.

    >>> from weft.tree_util import register_pytree_node_class, tree_leaves
    >>> @register_pytree_node_class
    ... class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    ...     def tree_flatten(self):
    ...         return (self.x, self.y), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> tree_leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """
    names = ("tree_flatten", "tree_unflatten")
    _, unflatten_func = _get_methods("register_pytree_node_class", cls, names)
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), unflatten_func)
    return cls


def register_pytree_with_keys_class(cls: Cls) -> Cls:
    """Register a class with `tree_flatten_with_keys` and `tree_unflatten` as a node. A decorator.

    Args:
      cls: the class. Its method `tree_flatten_with_keys(self)` returns ((key, child) pairs,
        auxiliary data). Its class method `tree_unflatten(cls, aux, children)` returns an instance.
        If it also has `tree_flatten`, that method is used where no keys are needed.

    Returns:
      The class.

    Raises:
      TypeError: the class lacks one of the methods.

    >>> from weft import tree_util
    >>> @tree_util.register_pytree_with_keys_class
    ... class Box:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def tree_flatten_with_keys(self):
    ...         return ((tree_util.GetAttrKey("value"), self.value),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> tree_util.tree_leaves_with_path(Box(1))
    [((GetAttrKey(name='value'),), 1)]
    """
    names = ("tree_flatten_with_keys", "tree_unflatten")
    _, unflatten_func = _get_methods("register_pytree_with_keys_class", cls, names)
    plain = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    keyed = operator.methodcaller("tree_flatten_with_keys")
    register_pytree_with_keys(cls, keyed, unflatten_func, plain)
    return cls


_data_fields: dict[type, tuple[str, ...]] = {}  # of dataclasses: a treedef does not tell them


def register_dataclass(
    nodetype: Cls,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Cls:
    """Register a dataclass as a node of pytrees. Use it as a decorator, or as a function.

    The data fields become the children of the node, and are arrays or pytrees of arrays. The
    metadata fields become part of the treedef, so their values must be hashable and comparable:
    `jit` compiles again where one of them differs.

    Without lists of fields, the fields marked with `tree.static()` are metadata and the others are
    data. Unflattening calls the class with the fields by name. With both lists, any class that can
    be called this way may be registered.

    Args:
      nodetype: the class.
      data_fields: the names of the data fields. None takes them from the dataclass.
      meta_fields: the names of the metadata fields. It must be given together with `data_fields`.
      drop_fields: the names of fields that are in neither list. Unflattening leaves them to their
        defaults. The default is none.

    Returns:
      The class.

    Raises:
      TypeError: only one of the lists was given, or the class is not a dataclass and no lists were.
      PytreeError: a field is in both lists, the lists lack a field of `__init__`, or the class is
        registered already.

    >>> import dataclasses
    >>> from weft import tree, tree_util
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weights: list
    ...     name: str = tree.static(default="dense")
    >>> tree.map(lambda w: w * 2, Layer([1, 2]))
    Layer(weights=[2, 4], name='dense')
    """
    op = "register_dataclass"
    fields = dataclasses.fields(nodetype) if dataclasses.is_dataclass(nodetype) else None
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(
            f"{op}: data_fields and meta_fields must be given together; "
            f"got data_fields={data_fields!r}, meta_fields={meta_fields!r}."
        )
    if data_fields is None or meta_fields is None:
        if fields is None:
            raise TypeError(
                f"{op}: data_fields and meta_fields must be given for a class that is no "
                f"dataclass; got {nodetype!r}."
            )
        kept = [f for f in fields if f.name not in drop_fields]
        data_fields = [f.name for f in kept if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in kept if f.metadata.get("static", False)]
    if both := set(data_fields) & set(meta_fields):
        raise PytreeError(
            f"{op}: no field may be both data and metadata; got "
            f"{_list_items(sorted(both))} in both."
        )
    if fields is not None:
        _require_init_fields(op, fields, {*data_fields, *meta_fields}, set(drop_fields))
    _register(op, nodetype, "register_dataclass_node", tuple(data_fields), tuple(meta_fields))
    _data_fields[nodetype] = tuple(data_fields)
    return nodetype


def register_static(cls: Cls) -> Cls:
    """Register a class as a node without children. A decorator.

    Its instances are part of the treedef, so they may be arguments of compiled functions although
    they are not arrays. They must be hashable and comparable: `jit` compiles once for each value.

    Args:
      cls: the class. It can be registered once.

    Returns:
      The class.

    >>> from weft.tree_util import register_static, tree_leaves
    >>> @register_static
    ... class Mode(str):
    ...     pass
    >>> tree_leaves([Mode("train"), 1.0])
    [1.0]
    """
    nothing = lambda x: ((), x)
    _register("register_static", cls, "register_node", nothing, lambda x, _: x, nothing)
    return cls


def is_tree_node(typ: type) -> bool:
    """Return True if values of a type are nodes of pytrees, and False if they are leaves.

    Args:
      typ: a class.

    Returns:
      A bool.

    >>> from weft.tree_util import is_tree_node
    >>> is_tree_node(dict), is_tree_node(set)
    (True, False)
    """
    return typ is not None and default_registry.is_node(typ)


def register_call_node(nodetype: type, to_arrays: Callable, from_arrays: Callable) -> None:
    """Let the C++ call path take values of a class, which are leaves elsewhere, as other arrays."""
    call_registry.register_node(nodetype, to_arrays, from_arrays)


def call_tree(treedef: PyTreeDef, leaves: Sequence[Any]) -> PyTreeDef:
    """The structure with these leaves as the C++ call path sees it."""
    return call_registry.flatten(treedef.unflatten(leaves))[1]


def _register(op: str, nodetype: type, how: str, *given: Any) -> None:
    """Register a node by the method `how` of both registries."""
    if not isinstance(nodetype, type):
        raise TypeError(f"{op}: a node must be a class; got {nodetype!r}.")
    try:
        for registry in (default_registry, call_registry):
            getattr(registry, how)(nodetype, *given)
    except ValueError as error:
        if not str(error).startswith("Duplicate"):
            raise
        raise PytreeError(f"{op}: a class registers once; got {nodetype!r} again.") from None


def _get_methods(op: str, cls: type, names: Sequence[str]) -> list[Any]:
    if missing := [name for name in names if not hasattr(cls, name)]:
        raise TypeError(
            f"{op}: the class must define {' and '.join(names)}; "
            f"got {cls!r} without {' and '.join(missing)}."
        )
    return [getattr(cls, name) for name in names]


def _require_init_fields(
    op: str, fields: Sequence[dataclasses.Field], given: set[str], dropped: set[str]
) -> None:
    """Raise unless the class's `__init__` takes the fields, because unflattening calls."""
    wanted = {f.name for f in fields if f.init}
    rule = f"{op}: data_fields and meta_fields must be the dataclass's fields with init=True"
    if missing := sorted(wanted - given - dropped):
        raise PytreeError(
            f"{rule}; got none of {_list_items(missing)}. "
            f"Hint: drop_fields={missing} leaves them out."
        )
    if unexpected := sorted(given - wanted):
        hint = ""
        if left_out := [name for name in unexpected if any(f.name == name for f in fields)]:
            hint = f" Hint: drop_fields={left_out} leaves them out."
        raise PytreeError(f"{rule}; got also {_list_items(unexpected)}.{hint}")


def _register_builtins() -> None:
    """Register OrderedDict and defaultdict; jaxlib knows list, tuple, dict, namedtuple and None."""
    ordered, default = collections.OrderedDict, collections.defaultdict
    _register(
        "register_pytree_node",
        ordered,
        "register_node",
        lambda d: (tuple(d.values()), tuple(d)),
        lambda keys, values: ordered(zip(keys, values)),
        lambda d: ([*zip(map(DictKey, d), d.values())], tuple(d)),
    )
    _register(
        "register_pytree_node",
        default,
        "register_node",
        lambda d: ([*map(d.get, keys := sorted(d))], (d.default_factory, tuple(keys))),
        lambda aux, values: default(aux[0], zip(aux[1], values)),
        lambda d: ([(DictKey(k), d[k]) for k in sorted(d)], (d.default_factory, tuple(sorted(d)))),
    )


_register_builtins()


class _Opaque:
    """A callable that `functools.partial` cannot see into, and so cannot merge with itself."""

    __slots__ = ("func",)

    def __init__(self, func: Callable[..., Any]):
        self.func = func

    @property
    def __wrapped__(self) -> Callable[..., Any]:  # what inspect.signature follows
        return self.func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opaque) and self.func == other.func

    def __hash__(self) -> int:
        return hash(self.func)

    def __repr__(self) -> str:
        return repr(self.func)


class Partial(functools.partial):
    """A `functools.partial` that is a pytree: its arguments are leaves, and its function is static.

    It lets a function with arrays in it be passed through `jit` or returned from it. Two of them
    have the same structure if their functions are equal. If `func` is itself a partial, it counts
    as a function, and its arguments are not leaves.

    Args:
      func: the function.
      *args: pytrees, its first positional arguments.
      **kwargs: pytrees, its keyword arguments.

    >>> from weft.tree_util import Partial, tree_leaves, tree_map
    >>> add_two = Partial(pow, 2)
    >>> tree_map(lambda x: x + 1, add_two)(3)
    27
    >>> print(weft.jit(lambda f, x: f(x))(Partial(jnp.multiply, 2.0), 3.0))
    6.0
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Partial:
        if isinstance(func, functools.partial):
            func = _Opaque(func)
        return super().__new__(cls, func, *args, **kwargs)

    def __repr__(self) -> str:  # Python's own differs between its versions
        given = [repr(self.func), *map(repr, self.args)]
        given += [f"{name}={value!r}" for name, value in self.keywords.items()]
        return f"Partial({', '.join(given)})"


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, given: Partial(func, *given[0], **given[1]),
)


# --- How trees differ ------------------------------------------------------------------------


_DICTS = (dict, collections.OrderedDict, collections.defaultdict)
_LISTED = 8  # the most keys that a message lists


class _Node(NamedTuple):
    """One level of a tree, or of a treedef."""

    kind: type
    aux: Any
    keys: Sequence[Any]
    children: Sequence[Any]


class Mismatch(NamedTuple):
    """A place where two trees differ, and what each of them has there, in words."""

    path: KeyPath
    expected: str
    given: str

    def between(self, expected_name: str, given_name: str) -> str:
        """Return text about two trees with these names, to follow `got`."""
        place = f"{expected_name}{keystr(self.path)}"
        return f"{self.expected} at {place} where {given_name} has {self.given}"


def find_mismatches(treedef1: PyTreeDef, treedef2: PyTreeDef) -> Iterator[Mismatch]:
    """Every place where two treedefs differ; nothing if they are equal."""
    return _mismatches(treedef1, treedef2, open_treedef, open_treedef, (), False)


def prefix_error(
    op: str,
    prefix: PyTreeDef,
    full_tree: Any,
    prefix_name: str,
    full_name: str,
    kind: re.Match | None = None,
) -> PytreeError | None:
    """The error for a treedef that is not a prefix of a tree or a treedef: where it is not first.

    `kind` is jaxlib's name for the fault, such as "Dict key mismatch", which programs look for.
    """
    open_full = open_treedef if type(full_tree) is PyTreeDef else _open_tree
    first = next(_mismatches(prefix, full_tree, open_treedef, open_full, (), True), None)
    if first is None:
        return None
    hint = ""
    if first.expected == "None":
        hint = " Hint: is_leaf=lambda x: x is None makes None a leaf."
    return PytreeError(
        f"{op}: {prefix_name} must be a tree prefix of {full_name}; "
        f"got {first.between(prefix_name, full_name)}{f' ({kind[0]})' if kind else ''}.{hint}"
    )


def is_none(x: Any) -> bool:
    """Return True if a subtree is None, for `is_leaf` where None means something."""
    return x is None


def broadcast_prefix(
    prefix_tree: Any,
    full_tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
    *,
    op: str = "broadcast_prefix",
    names: tuple[str, str] = ("prefix_tree", "full_tree"),
) -> list[Any]:
    """Return the leaf of `prefix_tree` above each leaf of `full_tree`, in the order of the latter.

    `is_leaf` applies only to the prefix. `op` and the names are the caller's, for the error.
    """
    prefix_leaves, prefix = flatten(prefix_tree, is_leaf)
    subtrees = flatten_up_to(op, prefix, full_tree, *names)
    out = []
    for leaf, subtree in zip(prefix_leaves, subtrees):
        out += [leaf] * len(leaves(subtree))
    return out


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """Return the children of a node, and the data that is needed to rebuild the node.

    Args:
      tree: a node of pytrees.

    Returns:
      A pair: an iterable of the children, and the auxiliary data, such as the keys of a dict.

    Raises:
      PytreeError: the value is a leaf.

    >>> from weft.tree_util import flatten_one_level
    >>> flatten_one_level({"b": [1, 2], "a": 3})
    ((3, [1, 2]), ('a', 'b'))
    """
    return _one_level("flatten_one_level", default_registry.flatten_one_level(tree), tree)


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[KeyEntry, Any]], Any]:
    """Return the (key, child) pairs of a node, and the data that is needed to rebuild the node.

    Args:
      tree: a node of pytrees.

    Returns:
      A pair: an iterable of the (key, child) pairs, and the auxiliary data.

    Raises:
      PytreeError: the value is a leaf.

    >>> from weft.tree_util import flatten_one_level_with_keys
    >>> flatten_one_level_with_keys([5])
    (((SequenceKey(idx=0), 5),), None)
    """
    return _one_level("flatten_one_level_with_keys", _open_with_keys(tree), tree)


def _open_with_keys(tree: Any) -> tuple[Iterable[tuple[KeyEntry, Any]], Any] | None:
    opened = default_registry.flatten_one_level_with_keys(tree)
    if opened is not None and opened[1] is type(tree) and hasattr(tree, "_fields"):
        # jaxlib 0.10 gives every child of a namedtuple the key of the first.
        return list(zip(map(GetAttrKey, tree._fields), tree)), opened[1]
    return opened


def _one_level(op: str, opened: tuple[Any, Any] | None, tree: Any) -> tuple[Any, Any]:
    if opened is None:
        raise PytreeError(
            f"{op}: the tree must be a node; got a leaf of type {_class_name(type(tree))}."
        )
    return opened


def _mismatches(
    first: Any,
    second: Any,
    open_first: Callable[[Any], _Node | None],
    open_second: Callable[[Any], _Node | None],
    path: KeyPath,
    prefix: bool,
) -> Iterator[Mismatch]:
    x, y = open_first(first), open_second(second)
    if x is None and (y is None or prefix):
        return
    if (
        x is None
        or y is None
        or x.kind is not y.kind
        or x.aux != y.aux
        or len(x.children) != len(y.children)
    ):
        yield Mismatch(path, *_contrast_nodes(x, y, _describe(x, first), _describe(y, second)))
        return
    for key, a, b in zip(y.keys, x.children, y.children):
        yield from _mismatches(a, b, open_first, open_second, (*path, key), prefix)


def _open_tree(tree: Any) -> _Node | None:
    opened = _open_with_keys(tree)
    if opened is None:
        return None
    pairs, aux = opened
    keys, children = unzip2(pairs)
    # Of a namedtuple the registry says its class, where a treedef says None.
    return _Node(type(tree), None if aux is type(tree) else aux, keys, children)


def open_treedef(treedef: PyTreeDef) -> _Node | None:
    data = treedef.node_data()
    if data is None:
        return None
    kind, aux = data
    children = treedef.children()
    keys: Iterable[KeyEntry]
    if kind is dict:
        aux = tuple(aux)
        keys = map(DictKey, aux)
    elif kind is collections.OrderedDict:
        keys = map(DictKey, aux)
    elif kind is collections.defaultdict:
        keys = map(DictKey, aux[1])
    elif kind in (list, tuple):
        keys = map(SequenceKey, range(len(children)))
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
        keys = map(GetAttrKey, kind._fields)
    elif kind in _data_fields:
        keys = map(GetAttrKey, _data_fields[kind])
    else:
        keys = map(FlattenedIndexKey, range(len(children)))
    return _Node(kind, aux, list(keys), children)


def _describe(node: _Node | None, value: Any) -> str:
    """One level of a tree in words."""
    if node is None:
        return (
            "a leaf"
            if isinstance(value, PyTreeDef)
            else f"a leaf of type {_class_name(type(value))}"
        )
    kind, aux = node.kind, node.aux
    if kind is type(None):
        return "None"
    if kind in (list, tuple):
        return f"{_with_article(kind)} of length {len(node.children)}"
    if kind in _DICTS:
        keys = [key.key for key in node.keys]
        held = f"keys {_list_items(keys)}" if keys else "no keys"
        factory = f" and default {aux[0]!r}" if kind is collections.defaultdict else ""
        return f"{_with_article(kind)} with {held}{factory}"
    return (
        _with_article(kind)
        if aux is None
        else f"{_with_article(kind)} with metadata {_shorten_text(aux)}"
    )


def _contrast_nodes(x: _Node | None, y: _Node | None, expected: str, given: str) -> tuple[str, str]:
    """Two descriptions, made different where they are too long or equal."""
    if x is None or y is None:
        return expected, given
    if x.kind is y.kind and x.kind in _DICTS and max(len(x.keys), len(y.keys)) > _LISTED:
        expected, given = _describe_extra_keys(x, y), _describe_extra_keys(y, x)
    if expected != given:
        return expected, given
    if x.kind is not y.kind:
        return expected, f"{given} of another class of that name"
    if len(x.children) != len(y.children):
        one, other = len(x.children), len(y.children)
        return f"{expected} (children: {one})", f"{given} (children: {other})"
    return expected, f"{given} that compares unequal"


def _describe_extra_keys(node: _Node, other: _Node) -> str:
    shared = set(other.keys)
    alone = [key.key for key in node.keys if key not in shared]
    more = f" (only here: {_list_items(alone)})" if alone else ""
    return f"{_with_article(node.kind)} of {len(node.keys)} keys{more}"


def _class_name(kind: type) -> str:
    return kind.__qualname__.rpartition("<locals>.")[2]


def _with_article(kind: type) -> str:
    name = _class_name(kind)
    return f"an {name}" if name[0] in "aeioAEIO" else f"a {name}"


def _list_items(items: Sequence[Any]) -> str:
    more = [f"and {len(items) - _LISTED} more"] if len(items) > _LISTED else []
    return ", ".join([*map(_shorten_text, items[:_LISTED]), *more])


def _shorten_text(x: Any, limit: int = 80) -> str:
    text = repr(x)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
