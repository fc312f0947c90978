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
    """When a pass runs: before or after XLA puts the instructions in order."""

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
    """Have XLA call a function with each module that it compiles, which may return another.

    It takes a serialized HloModuleProto, and returns one, or None for no change. Those of one stage
    are called in the order registered. `platforms`: by default all that are in use. Programs on
    disk were compiled without it: see `config.enable_compilation_cache`.
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
    """Remove a registered transformation by its name; return True if it existed.

    >>> clear_hlo_module_transformation("none")
    False
    """
    found = each_platform(
        "clear_hlo_module_transformation", stage, platforms,
        lambda: _xla.clear_xla_transform(name, stage.value),
        lambda client: _xla.clear_xla_transform_c_api(client, name, stage.value),
    )  # fmt: skip
    return any(found)
