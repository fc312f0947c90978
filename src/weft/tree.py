"""Pytrees under their short names: `tree.map`, `tree.leaves` and so on.

The functions are those of `weft.tree_util`; only `static` has its home here.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from weft.tree_util import tree_all as all
from weft.tree_util import tree_broadcast as broadcast
from weft.tree_util import tree_flatten as flatten
from weft.tree_util import tree_flatten_with_path as flatten_with_path
from weft.tree_util import tree_leaves as leaves
from weft.tree_util import tree_leaves_with_path as leaves_with_path
from weft.tree_util import tree_map as map
from weft.tree_util import tree_map_with_path as map_with_path
from weft.tree_util import tree_reduce as reduce
from weft.tree_util import tree_reduce_associative as reduce_associative
from weft.tree_util import tree_structure as structure
from weft.tree_util import tree_transpose as transpose
from weft.tree_util import tree_unflatten as unflatten
from weft.util import list_public

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "static", "structure", "transpose",
    "unflatten",
]  # fmt: skip
__dir__ = list_public(__name__)


def static(**kwargs: Any) -> Any:
    """Mark a dataclass field as metadata for `register_dataclass`; takes what `field` takes.

    >>> import dataclasses
    >>> from weft import tree, tree_util
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Scaled:
    ...     value: float
    ...     unit: str = tree.static(default="m")
    >>> tree.flatten(Scaled(2.0))
    ([2.0], PyTreeDef(CustomNode(Scaled[('m',)], [*])))
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)
