"""Compiled programs that outlive their process: `export`, `Exported`, `serialize`, `deserialize`.

    exported = export.export(weft.jit(f))(x)
    open("f.weft", "wb").write(exported.serialize())
    y = export.deserialize(open("f.weft", "rb").read()).call(x)

docs/export.md is the guide; docs/design/017-export.md says what is in a file, and why.
"""

from weft.export.container import (
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from weft.export.exported import (
    DisabledSafetyCheck,
    Exported,
    default_export_platform,
    deserialize,
    export,
)
from weft.export.trees import register_namedtuple_serialization, register_pytree_node_serialization
from weft.util import list_public

__all__ = [
    "DisabledSafetyCheck", "Exported", "default_export_platform", "deserialize", "export",
    "maximum_supported_calling_convention_version", "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization", "register_pytree_node_serialization",
]  # fmt: skip
__dir__ = list_public(__name__)
