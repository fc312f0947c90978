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
    """XLA's options for a program over the devices `np_dev`, with XLA flags by name.

    The flags for propagation say for each parameter and result whether the compiler chooses its
    sharding. `computation`, `tuple_args` and `backend` are taken so that calls carry over from JAX.

    >>> options = create_compile_options(None, False, [], [], None, weft.devices(), None)
    >>> options.num_partitions
    1
    """
    devices = tuple(np.asarray(np_dev, object).ravel())
    placement = placement_of(())._replace(devices=devices)
    flags = tuple((compiler_options or {}).items())
    return compile_options(placement, flags, allow_prop_to_inputs, allow_prop_to_outputs)
