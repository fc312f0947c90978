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
    """Return a sharding of XLA from its bytes, as an OpSharding.

    Args:
      sharding: the bytes of an OpSharding message of XLA.

    Returns:
      An OpSharding of jaxlib.

    >>> from weft.extend import sharding
    >>> replicated = sharding.GSPMDSharding.get_replicated(weft.devices()[:1])
    >>> hlo_sharding = replicated._to_xla_hlo_sharding(1)
    >>> blob = sharding.get_serialized_proto_from_hlo_sharding(hlo_sharding)
    >>> sharding.get_op_sharding_from_serialized_proto(blob).type
    OpSharding_Type.REPLICATED
    """
    found = _hlo.OpSharding()
    found.ParseFromString(sharding)
    return found


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """Return a sharding of XLA from its bytes, as an HloSharding.

    It is the inverse of `get_serialized_proto_from_hlo_sharding`.

    Args:
      sharding: the bytes of an OpSharding message of XLA.

    Returns:
      An HloSharding of jaxlib.

    >>> from weft.extend import sharding
    >>> replicated = sharding.GSPMDSharding.get_replicated(weft.devices()[:1])
    >>> hlo_sharding = replicated._to_xla_hlo_sharding(1)
    >>> blob = sharding.get_serialized_proto_from_hlo_sharding(hlo_sharding)
    >>> sharding.get_hlo_sharding_from_serialized_proto(blob)
    {replicated}
    """
    return as_hlo_sharding(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """Return the bytes of a sharding of XLA.

    It is for storing a sharding, or for sending it to another process.

    Args:
      sharding: an HloSharding of jaxlib.

    Returns:
      The bytes of an OpSharding message. A replicated sharding may have no bytes.

    >>> from weft.extend import sharding
    >>> replicated = sharding.GSPMDSharding.get_replicated(weft.devices()[:1])
    >>> hlo_sharding = replicated._to_xla_hlo_sharding(1)
    >>> sharding.get_serialized_proto_from_hlo_sharding(hlo_sharding)
    b''
    """
    return sharding.to_proto().SerializeToString()
