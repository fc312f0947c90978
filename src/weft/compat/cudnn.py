"""The checks of `jax._src.cudnn.fused_attention_stablehlo` that libraries make before they use it.

Attention is computed by operations that XLA fuses, and never by cuDNN, so the check for cuDNN fails
and libraries take their other path.
"""

from __future__ import annotations

import enum
from typing import Any, NoReturn

from weft.api.devices import devices


class AttentionLayout(enum.Enum):
    """The order of the axes of queries: B batch, T time, N heads, H features of a head."""

    BTNH = 0
    BNTH = 1


def _normalize_layout(layout: str) -> AttentionLayout:
    """Return the layout that four letters name; S stands for T, as elsewhere in the field."""
    name = layout.upper().replace("S", "T")
    if name not in AttentionLayout.__members__:
        raise ValueError(f"_normalize_layout: layout must be 'BTNH' or 'BNTH'; got {layout!r}.")
    return AttentionLayout[name]


def check_cudnn_version() -> NoReturn:
    """Raise: cuDNN is not used."""
    raise RuntimeError(
        "check_cudnn_version: must find cuDNN; got none, as weft does not use it. Hint: "
        "jax.nn.dot_product_attention."
    )


def check_compute_capability(capability: str) -> bool:
    """Return True if the first device is a GPU of at least this compute capability."""
    found = str(getattr(devices()[0], "compute_capability", ""))
    if not found.replace(".", "").isdigit():
        return False
    parts = lambda text: [int(part) for part in text.split(".")]
    return parts(found) >= parts(capability)


def check_layout(
    query: Any, key: Any, value: Any, bias: Any, q_seqlen: Any, kv_seqlen: Any, q_offsets: Any,
    kv_offsets: Any, page_table_k: Any, page_table_v: Any, layout: Any,
) -> None:  # fmt: skip
    """Raise ValueError if shapes of queries, keys and values do not fit; the rest is not used."""
    shapes = {"query": query.shape, "key": key.shape, "value": value.shape}
    for name, shape in shapes.items():
        if len(shape) != 4:
            raise ValueError(f"check_layout: {name} must have 4 axes; got the shape {shape}.")
    time, heads = (1, 2) if layout is AttentionLayout.BTNH else (2, 1)
    q, k, v = shapes.values()
    for what, sizes in (
        ("the same batch size", {q[0], k[0], v[0]}),
        ("the same number of features", {q[3], k[3]}),
        ("the same length of keys and values", {k[time], v[time]}),
        ("the same number of heads of keys and values", {k[heads], v[heads]}),
    ):
        if len(sizes) > 1:
            raise ValueError(f"check_layout: must be given {what}; got shapes {q}, {k}, {v}.")


def check_is_flash_attention(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise: cuDNN is not used."""
    check_cudnn_version()
