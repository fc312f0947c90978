"""Passes of the user's own within XLA: the names of `jax.extend.xla`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from jaxlib import _xla

from weft.mesh.client import devices_of, platforms
from weft.util import list_public

__all__ = [
    "PipelineStage", "clear_hlo_module_transformation", "register_hlo_module_transformation",
]  # fmt: skip
__dir__ = list_public(__name__)


class PipelineStage(enum.Enum):
    """The time when a transformation of HLO modules runs.

    Attributes:
      PRE_SCHEDULER: before XLA puts the instructions of a module in order.
      POST_SCHEDULER: after XLA puts the instructions of a module in order.

    >>> from weft.extend.xla import PipelineStage
    >>> PipelineStage.PRE_SCHEDULER
    <PipelineStage.PRE_SCHEDULER: 0>
    """

    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


def each_platform(
    op: str, stage: Any, platforms_: Any, on_cpu: Callable, on_plugin: Callable
) -> list:
    """The results of a function of jaxlib for each platform: of the process, or of its client."""
    if not isinstance(stage, PipelineStage):
        raise TypeError(f"{op}: stage must be a PipelineStage; got {stage!r}.")
    names = [platforms_] if isinstance(platforms_, str) else platforms_
    names = list(platforms().clients) if names is None else names
    clients = [devices_of(name, f"{op}: a platform")[0].client for name in names]
    return [on_cpu() if c.platform == "cpu" else on_plugin(c) for c in clients]


def register_hlo_module_transformation(
    callback: Callable[[bytes], bytes | None],
    *,
    name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: str | Sequence[str] | None = None,
) -> None:
    """Register a function that XLA calls with each module that it compiles.

    It is for inspecting or changing programs within XLA. Functions of one stage are called in the
    order of registration. Programs that the compilation cache on disk holds are not compiled again,
    and so not passed to the function: see `config.enable_compilation_cache`.

    Args:
      callback: a function of a serialized HloModuleProto. It returns a serialized HloModuleProto to
        compile instead, or None for no change.
      name: the name for `clear_hlo_module_transformation`.
      stage: a `PipelineStage`. The default is `PRE_SCHEDULER`.
      platforms: the name of a platform, such as "cpu", or a sequence of names. None takes all
        platforms in use.

    Raises:
      TypeError: `stage` is not a `PipelineStage`.
      RuntimeError: a platform does not exist in this process.

    >>> from weft.extend import xla
    >>> xla.register_hlo_module_transformation(lambda module: None, name="no_change")
    >>> xla.clear_hlo_module_transformation("no_change")
    True
    """
    op = "register_hlo_module_transformation"
    each_platform(
        op, stage, platforms,
        lambda: _xla.register_xla_transform(name, stage.value, callback),
        lambda client: _xla.register_xla_transform_c_api(client, name, stage.value, callback),
    )  # fmt: skip


def clear_hlo_module_transformation(
    name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: str | Sequence[str] | None = None,
) -> bool:
    """Remove a function that `register_hlo_module_transformation` has registered.

    Args:
      name: the name of the registration.
      stage: the `PipelineStage` of the registration. The default is `PRE_SCHEDULER`.
      platforms: the name of a platform, or a sequence of names. None takes all platforms in use.

    Returns:
      True if a function of this name was registered for the stage on any of the platforms.

    Raises:
      TypeError: `stage` is not a `PipelineStage`.
      RuntimeError: a platform does not exist in this process.

    >>> from weft.extend import xla
    >>> xla.clear_hlo_module_transformation("none")
    False
    """
    found = each_platform(
        "clear_hlo_module_transformation", stage, platforms,
        lambda: _xla.clear_xla_transform(name, stage.value),
        lambda client: _xla.clear_xla_transform_c_api(client, name, stage.value),
    )  # fmt: skip
    return any(found)
