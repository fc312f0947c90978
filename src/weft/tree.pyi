"""Written by tools/make_stubs.py; do not edit."""

_A = TypeVar("_A")
_C = TypeVar("_C")
_P = ParamSpec("_P")
_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)
_S = TypeVar("_S")
_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")
_U = TypeVar("_U")
_X = TypeVar("_X")
_Y = TypeVar("_Y")
from collections.abc import Callable as _Callable
from collections.abc import Callable, Sequence
from collections.abc import Iterable as _Iterable
from jaxlib._jax.pytree import PyTreeDef as _PyTreeDef
from typing import Any as _Any
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    TypeVarTuple,
    overload,
)
from weft.api.jit import Inline
from weft.api.shape_struct import ShapeDtypeStruct as _ShapeDtypeStruct
from weft.api.stages import Lowered, Traced
from weft.core.jaxpr import ClosedJaxpr
from weft.mesh.mesh import Mesh
from weft.numpy.linalg import SVDResult as _SVDResult
from weft.pytrees import KeyPath as _KeyPath
from weft.xla.array import Array as _Array
from weft.xla.typing import ArrayLike as _ArrayLike
import builtins as _builtins

class TreeSummary:
    rows: tuple[tuple[str, str, int, int], ...]
    leaves: int

    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def cells(self) -> list[tuple[str, str, str, str]]: ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str: ...

def all(tree: _Any, *, is_leaf: _Callable[[_Any], bool] | None = ...) -> bool: ...
def broadcast(
    prefix_tree: _Any, full_tree: _Any, is_leaf: _Callable[[_Any], bool] | None = ...
) -> _Any: ...
def flatten(
    tree: _Any, is_leaf: _Callable[[_Any], bool] | None = ...
) -> tuple[list[_Any], _PyTreeDef]: ...
def flatten_with_path(
    tree: _Any, is_leaf: _Callable[..., bool] | None = ..., is_leaf_takes_path: bool = ...
) -> tuple[list[tuple[_KeyPath, _Any]], _PyTreeDef]: ...
def leaves(tree: _Any, is_leaf: _Callable[[_Any], bool] | None = ...) -> list[_Any]: ...
def leaves_with_path(
    tree: _Any, is_leaf: _Callable[..., bool] | None = ..., is_leaf_takes_path: bool = ...
) -> list[tuple[_KeyPath, _Any]]: ...
@overload
def map(
    f: Callable[[_Array], _Array], tree: _T, /, *, is_leaf: Callable[[Any], bool] | None = ...
) -> _T: ...
@overload
def map(
    f: Callable[[_Array, _Array], _Array],
    tree: _T,
    rest: Any,
    /,
    *,
    is_leaf: Callable[[Any], bool] | None = ...,
) -> _T: ...
@overload
def map(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = ...
) -> Any: ...
def map_with_path(
    f: _Callable[..., _Any],
    tree: _Any,
    *rest: _Any,
    is_leaf: _Callable[..., bool] | None = ...,
    is_leaf_takes_path: bool = ...,
) -> _Any: ...
def reduce(
    function: _Callable[[_Any, _Any], _Any],
    tree: _Any,
    initializer: _Any = ...,
    is_leaf: _Callable[[_Any], bool] | None = ...,
) -> _Any: ...
def reduce_associative(
    operation: _Callable[[_Any, _Any], _Any],
    tree: _Any,
    *,
    identity: _Any = ...,
    is_leaf: _Callable[[_Any], bool] | None = ...,
) -> _Any: ...
def static(**kwargs: _Any) -> _Any: ...
def structure(tree: _Any, is_leaf: _Callable[[_Any], bool] | None = ...) -> _PyTreeDef: ...
def summary(tree: _Any, depth: int | None = ..., is_leaf: _Any = ...) -> TreeSummary: ...
def transpose(
    outer_treedef: _PyTreeDef, inner_treedef: _PyTreeDef | None, pytree_to_transpose: _Any
) -> _Any: ...
def unflatten(treedef: _PyTreeDef, leaves: _Iterable[_Any]) -> _Any: ...
