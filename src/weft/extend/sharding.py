"""Shardings as jaxlib has them: `GSPMDSharding`, and the bytes that stand for one."""

from __future__ import annotations

from typing import Any

from jaxlib import _hlo  # type: ignore[attr-defined]

from weft.mesh.sharding import GSPMDSharding, as_hlo_sharding
from weft.util import list_public

__all__ = [
    "GSPMDSharding",
    "get_hlo_sharding_from_serialized_proto",
    "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding",
]
__dir__ = list_public(__name__)


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """jaxlib's OpSharding that was serialized."""
    found = _hlo.OpSharding()
    found.ParseFromString(sharding)
    return found


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """jaxlib's HloSharding that was serialized."""
    return as_hlo_sharding(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """The bytes of jaxlib's HloSharding.

    >>> whole = GSPMDSharding.get_replicated([weft.devices()[0]])._to_xla_hlo_sharding(1)
    >>> get_hlo_sharding_from_serialized_proto(get_serialized_proto_from_hlo_sharding(whole))
    {replicated}
    """
    return sharding.to_proto().SerializeToString()
