"""Programs that outlive their process: `export`, `Exported`, `deserialize`; as C: `to_c`;
as ONNX models: `to_onnx`.

    exported = export.export(weft.jit(f))(x)
    open("f.weft", "wb").write(exported.serialize())
    y = export.deserialize(open("f.weft", "rb").read()).call(x)

docs/export.md is the guide; docs/design/017-export.md describes the file format and its reasons.
`to_c(f)(x)` writes a source in C: docs/programs-in-c.md. `to_onnx(f)(x)` writes an ONNX model.
"""

from weft.export.c.calls import compile_in_c
from weft.export.c.program import CProgram, to_c
from weft.export.container import (
    maximum_supported_calling_convention_version,
    maximum_supported_serialization_version,
    minimum_supported_calling_convention_version,
    minimum_supported_serialization_version,
)
from weft.export.exported import Exported, default_export_platform, deserialize, export
from weft.export.modules import DisabledSafetyCheck
from weft.export.onnx.program import OnnxProgram, to_onnx
from weft.export.specs import (
    SymbolicScope,
    is_symbolic_dim,
    symbolic_args_specs,
    symbolic_dim_bounds,
    symbolic_shape,
)
from weft.export.trees import register_namedtuple_serialization, register_pytree_node_serialization
from weft.util import list_public

__all__ = [
    "CProgram", "DisabledSafetyCheck", "Exported", "OnnxProgram", "SymbolicScope", "compile_in_c",
    "default_export_platform", "deserialize", "export", "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "maximum_supported_serialization_version", "minimum_supported_calling_convention_version",
    "minimum_supported_serialization_version", "register_namedtuple_serialization",
    "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_dim_bounds",
    "symbolic_shape", "to_c", "to_onnx",
]  # fmt: skip
__dir__ = list_public(__name__)
