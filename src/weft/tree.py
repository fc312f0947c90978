"""Pytrees under their short names: `tree.map`, `tree.leaves` and so on.

The functions are the functions of `weft.tree_util`. `static` and `summary` are defined here.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from weft import tree_util
from weft.core.aval import typeof
from weft.display.values import bytes_text, table_html, wrap_html
from weft.dtypes import short_name
from weft.pytrees import flatten, flatten_with_path, leaves, structure, unflatten
from weft.tree_util import keystr
from weft.util import alias, list_public

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "static", "structure", "summary",
    "transpose", "unflatten",
]  # fmt: skip
__dir__ = list_public(__name__)

all = alias(tree_util.tree_all, "all")
broadcast = alias(tree_util.tree_broadcast, "broadcast")
leaves_with_path = alias(tree_util.tree_leaves_with_path, "leaves_with_path")
map = alias(tree_util.tree_map, "map")
map_with_path = alias(tree_util.tree_map_with_path, "map_with_path")
reduce = alias(tree_util.tree_reduce, "reduce")
reduce_associative = alias(tree_util.tree_reduce_associative, "reduce_associative")
transpose = alias(tree_util.tree_transpose, "transpose")


def static(**kwargs: Any) -> Any:
    """Mark a field of a dataclass as metadata for `register_dataclass`.

    The value of such a field is part of the treedef. It is not an array, and `jit` compiles again
    where it differs.

    Args:
      **kwargs: the options of `dataclasses.field`, such as `default`. Entries of `metadata` are
        kept.

    Returns:
      A dataclass field.

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


@dataclasses.dataclass(frozen=True)
class TreeSummary:
    """The leaves of a pytree by path; its text is a table, in notebooks one of HTML.

    Attributes:
      rows: (path, type, elements, bytes) of each leaf, or of all leaves below a path.
      leaves: how many leaves there are.
      size: the number of all elements.
      nbytes: the bytes of all arrays.
    """

    rows: tuple[tuple[str, str, int, int], ...]
    leaves: int

    @property
    def size(self) -> int:
        return sum(row[2] for row in self.rows)

    @property
    def nbytes(self) -> int:
        return sum(row[3] for row in self.rows)

    def cells(self) -> list[tuple[str, str, str, str]]:
        """The rows of the table as texts, its head first and the sums last."""
        shown = [(path, kind, f"{n:,}", bytes_text(b)) for path, kind, n, b in self.rows]
        count = f"{self.leaves:,} lea{'f' if self.leaves == 1 else 'ves'}"
        total = ("total", count, f"{self.size:,}", bytes_text(self.nbytes))
        return [("path", "type", "elements", "bytes"), *shown, total]

    def __repr__(self) -> str:
        table = self.cells()
        wide = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
        return "\n".join(
            f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}  {d:>{wide[3]}}"
            for a, b, c, d in table
        )

    def _repr_html_(self) -> str:
        head, *rows = self.cells()
        return wrap_html(table_html(head, rows))


def summary(tree: Any, depth: int | None = None, is_leaf: Any = None) -> TreeSummary:
    """Return a table of the leaves of a pytree: paths, types, elements and bytes.

    It shows at a glance how large the parameters of a model are, and where.

    Args:
      tree: a pytree of arrays, numbers, or the results of `eval_shape`. Other leaves have no bytes.
      depth: the number of keys that paths keep. Leaves below the same path are added up in one row.
        None, the default, gives each leaf a row.
      is_leaf: a function that is called with each subtree. Where it returns True, the subtree
        counts as a leaf. By default only values that are not nodes are leaves.

    Returns:
      A `TreeSummary`, which prints as a table. Its attributes are `rows`, `leaves`, `size` and
      `nbytes`.

    Raises:
      ValueError: `depth` is less than 1.

    >>> from weft import tree
    >>> layer = {"w": jnp.ones((64, 128)), "b": jnp.zeros(128)}
    >>> tree.summary({"first": layer, "scale": 2.0})
    path     type         elements      bytes
    first/b  f32[128]          128  512 bytes
    first/w  f32[64,128]     8,192    32.8 kB
    scale    float               1    0 bytes
    total    3 leaves        8,321    33.3 kB
    >>> tree.summary({"first": layer, "scale": 2.0}, depth=1).rows[0]
    ('first', '2 leaves', 8320, 33280)
    """
    if depth is not None and depth < 1:
        raise ValueError(f"tree.summary: depth must be at least 1; got {depth}.")
    groups: dict[str, list[tuple[str, int, int]]] = {}
    for path, leaf in leaves_with_path(tree, is_leaf=is_leaf):
        groups.setdefault(keystr(path[:depth], simple=True, separator="/"), []).append(
            describe_leaf(leaf)
        )
    rows = []
    for name, parts in groups.items():
        kind = parts[0][0] if len(parts) == 1 else f"{len(parts)} leaves"
        rows.append((name, kind, *(sum(column) for column in list(zip(*parts))[1:])))
    return TreeSummary(tuple(rows), sum(len(parts) for parts in groups.values()))


def describe_leaf(leaf: Any) -> tuple[str, int, int]:
    """Return the type of a leaf, its elements, and its bytes, which only arrays have."""
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        return type(leaf).__name__, int(isinstance(leaf, int | float | complex)), 0
    if isinstance(leaf, np.ndarray):  # unchanged, whatever the default types are
        shape = ",".join(map(str, leaf.shape))
        return f"{short_name(leaf.dtype)}[{shape}]", leaf.size, leaf.nbytes
    aval = typeof(leaf)
    return str(aval), aval.size, aval.nbytes
