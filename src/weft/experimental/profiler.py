"""Profiles for the compiler, under the name of `jax.experimental.profiler`."""

from __future__ import annotations

import os
from pathlib import Path

from jaxlib import _profiler

from weft.util import list_public

__all__ = ["get_profiled_instructions_proto"]
__dir__ = list_public(__name__)


def get_profiled_instructions_proto(tensorboard_dir: str | os.PathLike) -> bytes:
    """Return the costs of instructions in the newest profile of a directory.

    The bytes are a ProfiledInstructionsProto, for the option `fdo_profile` of
    `weft.extend.backend.get_compile_options`. Profiles are written by `weft.profiler.trace`.
    FileNotFoundError where there is none.
    """
    place = os.fspath(tensorboard_dir)
    if not any(Path(place).glob("plugins/profile/*/*.xplane.pb")):
        raise FileNotFoundError(
            "get_profiled_instructions_proto: the directory must hold a profile; got "
            f"{place!r}. Hint: with weft.profiler.trace({place!r}): f(x)."
        )
    return _profiler.get_profiled_instructions_proto(place)
