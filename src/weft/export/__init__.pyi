"""Written by tools/make_stubs.py; do not edit."""

from collections.abc import Callable as _Callable
from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from typing import Literal as _Literal
from weft.core.jaxpr import Jaxpr as _Jaxpr
from weft.export.c.program import CProgram as _CProgram
from weft.export.dims import Size as _Size
from weft.export.exported import Exported as _Exported
from weft.export.modules import DisabledSafetyCheck as _DisabledSafetyCheck
from weft.export.onnx.program import OnnxProgram as _OnnxProgram
from weft.export.specs import SymbolicScope as _SymbolicScope
from weft.export.trees import Cls as _Cls

from weft.export.c.program import CProgram as CProgram
from weft.export.modules import DisabledSafetyCheck as DisabledSafetyCheck
from weft.export.exported import Exported as Exported
from weft.export.onnx.program import OnnxProgram as OnnxProgram
from weft.export.specs import SymbolicScope as SymbolicScope

def compile_in_c(jaxpr: _Jaxpr, *, finite_math: bool = ...) -> _Jaxpr: ...
def default_export_platform() -> str: ...
def deserialize(blob: bytes | bytearray) -> _Exported: ...
def export(
    fun_jit: _Callable[..., _Any],
    *,
    platforms: _Sequence[str] | None = ...,
    disabled_checks: _Sequence[_DisabledSafetyCheck] = ...,
) -> _Callable[..., _Exported]: ...
def is_symbolic_dim(p: _Any) -> bool: ...

from weft.export.container import (
    maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
)
from weft.export.container import (
    maximum_supported_serialization_version as maximum_supported_serialization_version,
)
from weft.export.container import (
    minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
)
from weft.export.container import (
    minimum_supported_serialization_version as minimum_supported_serialization_version,
)

def register_namedtuple_serialization(nodetype: _Cls, *, serialized_name: str) -> _Cls: ...
def register_pytree_node_serialization(
    nodetype: _Cls,
    *,
    serialized_name: str,
    serialize_auxdata: _Callable[[_Any], bytes],
    deserialize_auxdata: _Callable[[bytes], _Any],
    from_children: _Callable[[_Any, _Any], _Any] | None = ...,
) -> _Cls: ...
def symbolic_args_specs(
    args: _Any,
    shapes_specs: _Any,
    constraints: _Sequence[str] = ...,
    scope: _SymbolicScope | None = ...,
) -> _Any: ...
def symbolic_dim_bounds(p: _Size) -> tuple[float, float]: ...
def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: _Sequence[str] = ...,
    scope: _SymbolicScope | None = ...,
    like: _Sequence[int | None] | None = ...,
) -> tuple[_Size, ...]: ...
def to_c(
    fun: _Callable[..., _Any],
    *,
    name: str | None = ...,
    weights: _Literal["source", "file"] = ...,
    finite_math: bool = ...,
) -> _Callable[..., _CProgram]: ...
def to_onnx(fun: _Callable[..., _Any]) -> _Callable[..., _OnnxProgram]: ...
