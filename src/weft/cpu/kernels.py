"""Find, load and call weft's own C++ kernels for CPUs.

hatch_build.py builds them in native/ if a compiler is installed; WEFT_KERNELS names another folder.
Without them, or if `config.native` is False, their operations are lowered in other ways.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxlib import _jax

from weft.core.aval import ShapedArray
from weft.dtypes import PACKED, whole_byte_dtype
from weft.errors import JaxRuntimeError
from weft.mesh.blocks import FOLDER, find_library
from weft.options import config
from weft.util import Logger
from weft.xla.foreign import new_capsule, write_attribute, write_dictionary, write_kernel_call
from weft.xla.hlo import Builder, Value

logger = Logger("weft.native")
KERNELS = (
    "attention cholesky cholesky_pullback compare concatenate conv coo_dot coo_sample csr_dot "
    "cumulative depthwise dot dot_symmetric extremum fft find_places lu masked_attention matvec "
    "matvec_pair members or_nan pad partition permutation program qr resample roll scatter "
    "select_scatter sort sum top_k triangle trsm view"
)
FLOATS = frozenset(map(np.dtype, (np.float32, np.float64)))
HANDLERS = tuple("weft_" + name for name in ("keep", *KERNELS.split()))


@functools.cache
def load_kernels() -> str:
    """Make the kernels known to XLA; "" if they are, else the reason why they are not."""
    found = find_library(FOLDER)
    if found is None:
        return "not built: there was no C++ compiler, or the wheel of weft has no kernels"
    try:
        library = ctypes.CDLL(str(found))
        for name in HANDLERS:
            capsule = new_capsule(getattr(library, name))
            _jax.register_custom_call_target(name, capsule, "Host", 1)
    except (AttributeError, OSError, JaxRuntimeError) as error:
        level = logger.info if "has no AVX2" in str(error) else logger.warning  # nothing to mend
        level(
            "native: %s must be the kernels of this version of weft; got %s. Hint: pip install "
            "--force-reinstall --no-deps weft; config.update('native', False) silences this.",
            *(found, error),
        )
        return f"not usable: {error}"
    return ""


def are_kernels_wanted() -> bool:
    """Return True if programs for CPUs should call kernels, and can."""
    try:
        return config.native and not load_kernels()
    except OSError:  # such as: no free file descriptors. A later program may find some
        return False


def are_floats(*avals: ShapedArray) -> bool:
    """Return True if the kernels of products take these: float32 or float64, of known sizes."""
    dtype = avals[0].dtype
    if dtype not in FLOATS:
        return False
    return all([a.dtype == dtype and type(a.size) is int and a.size != 0 for a in avals])


def as_whole_bytes(aval: ShapedArray) -> ShapedArray:
    """Return the type with the unpacked dtype that kernels take for elements that XLA packs."""
    return aval.update(dtype=whole_byte_dtype(aval.dtype))


def call_native(
    hlo: Builder,
    name: str,
    operands: Sequence[Value],
    out_avals: Sequence[ShapedArray],
    attributes: Mapping[str, Any],
    aliases: Mapping[int, int] = MappingProxyType({}),
) -> list[Value]:
    """Write the call of a kernel of HANDLERS; arrays are row-major, with elements of whole bytes.

    `aliases` maps results to the operands that give them their buffers. Kernels do not know packed
    dtypes: operands of such dtypes are unpacked, and results are packed again.
    """
    xs = [hlo.convert(v, whole_byte_dtype(v.aval.dtype)) for v in operands]
    avals = [a if a.dtype not in PACKED else as_whole_bytes(a) for a in out_avals]
    by_rows = lambda avals: [[*reversed(range(a.ndim))] for a in avals]
    layouts = by_rows([v.aval for v in xs]), by_rows(avals)
    config_text = write_dictionary({k: write_attribute(k, v) for k, v in attributes.items()})
    ys = write_kernel_call(hlo, name, xs, avals, layouts, aliases, config_text)
    return [hlo.convert(y, a.dtype) for y, a in zip(ys, out_avals, strict=True)]
