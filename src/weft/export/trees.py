"""Structures of pytrees as plain data: Python's containers, and registered classes.

A structure is written as the names that its classes were registered under. Reading a structure
looks up only these names. It imports nothing, except for the modules that `RESULTS` names.
"""

from __future__ import annotations

import base64
import collections
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from weft.errors import PytreeError
from weft.pytrees import PyTreeDef, default_registry, structure, unflatten

Cls = TypeVar("Cls", bound=type)


class _Serialization(NamedTuple):
    """The functions that write and read the nodes of a class."""

    nodetype: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    build: Callable[[Any, Any], Any] | None


_BY_TYPE: dict[type, _Serialization] = {}
_BY_NAME: dict[str, _Serialization] = {}


def register_pytree_node_serialization(
    nodetype: Cls,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> Cls:
    """Allow nodes of a class in the arguments and results of programs that are serialized.

    Args:
      nodetype: a class that is registered as a node of pytrees.
      serialized_name: its name in files, a string. The process that reads one registers a class
        under this name too.
      serialize_auxdata: a function from the auxiliary data of a node to bytes.
      deserialize_auxdata: its inverse.
      from_children: a function of the auxiliary data and the children that makes a node, whose
        structure is used. None, the default, is the function with which the class was registered.

    Returns:
      The class.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> _ = weft.tree_util.register_pytree_node(
    ...     Pair, lambda p: ((p.x, p.y), None), lambda _, children: Pair(*children))
    >>> _ = weft.export.register_pytree_node_serialization(
    ...     Pair, serialized_name="docs.Pair", serialize_auxdata=lambda aux: b"",
    ...     deserialize_auxdata=lambda data: None)
    """
    op = "register_pytree_node_serialization"
    if not isinstance(serialized_name, str):
        raise TypeError(f"{op}: serialized_name must be a string; got {serialized_name!r}.")
    taken = _BY_NAME.get(serialized_name) or _BY_TYPE.get(nodetype)
    if taken is not None:
        raise ValueError(
            f"{op}: a class and a name must be registered once; got {nodetype!r} as "
            f"{serialized_name!r}, after {taken.nodetype!r} as {taken.name!r}."
        )
    found = _Serialization(
        nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children
    )
    _BY_TYPE[nodetype] = _BY_NAME[serialized_name] = found
    return nodetype


def register_namedtuple_serialization(nodetype: Cls, *, serialized_name: str) -> Cls:
    """Allow a namedtuple in the arguments and results of programs that are serialized.

    The process that reads such a program registers one with the same fields under the same name.

    Args:
      nodetype: the class of the namedtuple.
      serialized_name: its name in files, a string.

    Returns:
      The class.

    >>> import collections
    >>> Point = collections.namedtuple("Point", "x y")
    >>> _ = weft.export.register_namedtuple_serialization(Point, serialized_name="docs.Point")
    """
    op = "register_namedtuple_serialization"
    if not (issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(f"{op}: nodetype must be a namedtuple; got {nodetype!r}.")
    fields = ",".join(nodetype._fields)

    def read(data: bytes) -> None:
        if data.decode() != fields:
            raise ValueError(
                f"deserialize: the namedtuple {serialized_name!r} must have the fields that it was "
                f"written with, {data.decode()}; got {fields}."
            )

    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda aux: fields.encode(),
        deserialize_auxdata=read,
        from_children=lambda aux, children: nodetype(*children),
    )


# Namedtuples that functions of weft return, and their modules. In files they are "weft.NAME". A
# module is imported once such a name is read.
RESULTS = {
    "EigResult": "weft.numpy.linalg",
    "EighResult": "weft.numpy.linalg",
    "QRResult": "weft.numpy.linalg",
    "SVDResult": "weft.numpy.linalg",
    "SlogdetResult": "weft.numpy.linalg",
    "UniqueAll": "weft.numpy.sets",
    "UniqueCounts": "weft.numpy.sets",
    "UniqueInverse": "weft.numpy.sets",
    "ModeResult": "weft.scipy.stats.summaries",
    "OptimizeResults": "weft.scipy.optimize",
}


def register_result(name: str) -> None:
    """Register a namedtuple of `RESULTS`, unless the user did so under a name of their own."""
    nodetype = getattr(importlib.import_module(RESULTS[name]), name)
    if nodetype not in _BY_TYPE and f"weft.{name}" not in _BY_NAME:
        register_namedtuple_serialization(nodetype, serialized_name=f"weft.{name}")


def write_tree(tree: PyTreeDef) -> Any:
    """A structure as plain data: a list whose first entry is the kind of node; a leaf is "*"."""
    data = tree.node_data()
    if data is None:
        return "*"
    kind, aux = data
    if kind is type(None):
        return None
    children = [write_tree(child) for child in tree.children()]
    if kind in (tuple, list):
        return [kind.__name__, *children]
    if kind is dict:
        return ["dict", [*map(write_key, aux)], *children]
    if kind is collections.OrderedDict:
        return ["OrderedDict", [*map(write_key, aux)], *children]
    if RESULTS.get(kind.__name__) == kind.__module__:
        register_result(kind.__name__)
    known = _BY_TYPE.get(kind)
    if known is None:
        of_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
        verb = "register_namedtuple" if of_tuple else "register_pytree_node"
        raise PytreeError(
            f"serialize: the classes of pytrees must have a name in files; got {kind.__name__}. "
            f"Hint: export.{verb}_serialization({kind.__name__}, "
            f"serialized_name={kind.__name__!r}{'' if of_tuple else ', ...'})."
        )
    written = known.write(aux)
    if not isinstance(written, bytes | bytearray):
        raise TypeError(
            f"serialize: serialize_auxdata of {known.name!r} must give bytes; got {written!r}."
        )
    return ["node", known.name, base64.b64encode(written).decode(), *children]


def write_key(key: Any) -> Any:
    """A key of a dict."""
    if isinstance(key, str | int | bool | None):
        return key
    raise PytreeError(f"serialize: the keys of dicts must be strings or integers; got {key!r}.")


def read_tree(data: Any) -> PyTreeDef:
    """The structure that `write_tree` wrote."""
    if data == "*":
        return structure(0)
    if data is None:
        return structure(None)
    kind, *rest = data
    if kind in ("tuple", "list"):
        children = [*map(read_tree, rest)]
        return structure(hold_places(tuple if kind == "tuple" else list, children))
    if kind in ("dict", "OrderedDict"):
        keys, *rest = rest
        make = dict if kind == "dict" else collections.OrderedDict
        places = hold_places(list, [*map(read_tree, rest)])
        return structure(make(zip(keys, places, strict=True)))
    name, aux, *rest = rest
    if isinstance(name, str) and name.startswith("weft.") and name[5:] in RESULTS:
        register_result(name[5:])
    known = _BY_NAME.get(name)
    if known is None:
        raise PytreeError(
            f"deserialize: a class must be registered for each name in the file; got {name!r}. "
            f"Hint: export.register_pytree_node_serialization(cls, serialized_name={name!r}, ...), "
            "or register_namedtuple_serialization."
        )
    read = known.read(base64.b64decode(aux))
    children = [*map(read_tree, rest)]
    if known.build is not None:
        return structure(known.build(read, hold_places(tuple, children)))
    return PyTreeDef.from_node_data_and_children(default_registry, (known.nodetype, read), children)


def hold_places(make: Callable, children: list[PyTreeDef]) -> Any:
    """A container of trees of these structures."""
    return make([unflatten(child, [0] * child.num_leaves) for child in children])
