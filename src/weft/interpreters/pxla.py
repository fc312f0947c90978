"""Options of programs over devices: the name of `jax.interpreters.pxla`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.util import list_public
from weft.xla.compile import compile_options
from weft.xla.placement import placement_of

__all__ = ["create_compile_options"]
__dir__ = list_public(__name__)


def create_compile_options(
    computation: Any,
    tuple_args: bool,
    allow_prop_to_inputs: Sequence[bool],
    allow_prop_to_outputs: Sequence[bool],
    backend: Any,
    np_dev: Any,
    compiler_options: Mapping[str, Any] | None,
) -> Any:
    """Return the options with which XLA compiles a program for some devices.

    Args:
      computation: accepted for compatibility with JAX and ignored.
      tuple_args: accepted for compatibility with JAX and ignored.
      allow_prop_to_inputs: a sequence of bools, one for each parameter. True lets XLA choose the
        sharding of the parameter.
      allow_prop_to_outputs: a sequence of bools, one for each result. True lets XLA choose the
        sharding of the result.
      backend: accepted for compatibility with JAX and ignored.
      np_dev: the devices, as an array or a sequence.
      compiler_options: a mapping from names of XLA flags to values, or None.

    Returns:
      The `CompileOptions` of jaxlib.

    >>> from weft.interpreters import pxla
    >>> options = pxla.create_compile_options(None, False, [], [], None, weft.devices(), None)
    >>> options.num_partitions
    1
    """
    devices = tuple(np.asarray(np_dev, object).ravel())
    placement = placement_of(())._replace(devices=devices)
    flags = tuple((compiler_options or {}).items())
    return compile_options(placement, flags, allow_prop_to_inputs, allow_prop_to_outputs)
