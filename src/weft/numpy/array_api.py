"""The description of a namespace that the Python array API standard requires.

Standard: https://data-apis.org/array-api/latest/API_specification/inspection.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import dtypes
from weft.api.devices import local_devices

__array_api_version__ = "2024.12"

KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
UNIONS = {
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
}


class __array_namespace_info__:
    """The capabilities of this namespace, its devices and dtypes, for the array API standard.

    >>> jnp.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    """

    def capabilities(self) -> dict[str, Any]:
        """Shapes that depend on data need known values, so programs cannot count on them."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """Return the device of new arrays: None, which means `weft.default_device`."""
        return None

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of arrays made without one."""
        self.check_device("default_dtypes", device)
        integer = dtypes.default_int()
        return {
            "real floating": dtypes.default_float(),
            "complex floating": dtypes.complex_dtype(dtypes.default_float()),
            "integral": integer,
            "indexing": integer,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """The dtypes there are, by name; 64-bit ones where enable_x64 is on."""
        self.check_device("dtypes", device)
        kinds = tuple(KINDS) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        out: dict[str, np.dtype] = {}
        for one in kinds:
            if one not in KINDS and one not in UNIONS:
                known = ", ".join([*KINDS, *UNIONS])
                raise ValueError(f"dtypes: kind must be one of {known}; got {one!r}.")
            for part in UNIONS.get(one, (one,)):
                found = [np.dtype(name) for name in KINDS[part]]
                out |= {d.name: d for d in found if dtypes.canonicalize(d) == d}
        return out

    def devices(self) -> list:
        """The devices arrays can be on; None is the default one."""
        return [None, *local_devices()]

    def check_device(self, op: str, device: Any) -> None:
        """Raise unless a device is one of this process."""
        if device not in self.devices():
            raise ValueError(f"{op}: device must be one of {self.devices()}; got {device!r}.")
