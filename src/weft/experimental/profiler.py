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

    XLA can use the costs to schedule the instructions of the next compilation. Pass the bytes as
    the option `fdo_profile` of `weft.extend.backend.get_compile_options`.

    Args:
      tensorboard_dir: the directory, a str or a path. `weft.profiler.trace` writes profiles into
        it.

    Returns:
      The bytes of a ProfiledInstructionsProto.

    Raises:
      FileNotFoundError: the directory holds no profile.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with weft.profiler.trace(place):
    ...         _ = jnp.ones(2).block_until_ready()
    ...     costs = get_profiled_instructions_proto(place)
    >>> type(costs)
    <class 'bytes'>
    """
    place = os.fspath(tensorboard_dir)
    if not any(Path(place).glob("plugins/profile/*/*.xplane.pb")):
        raise FileNotFoundError(
            "get_profiled_instructions_proto: the directory must hold a profile; got "
            f"{place!r}. Hint: with weft.profiler.trace({place!r}): f(x)."
        )
    return _profiler.get_profiled_instructions_proto(place)
