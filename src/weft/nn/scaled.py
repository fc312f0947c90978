"""Products of matrices whose blocks have scales: MXFP8 and NVFP4.

They are computed as products of the floats that scales and small floats stand for; no engine of
small floats is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import weft.numpy as jnp
from weft import dtypes
from weft.api.custom_rules import custom_jvp
from weft.errors import ShapeError
from weft.numpy.promotion import as_array, axis_of
from weft.primitives.dot import dot_general, read_dimensions
from weft.primitives.families import as_sequence
from weft.run.operation import operation
from weft.util import check_option
from weft.xla.typing import Array, ArrayLike, DTypeLike


class BlockScaleConfig(NamedTuple):
    """How an operand is rounded: blocks of `block_size` small floats share a scale."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """The format of "mxfp8" or "nvfp4", for `scaled_dot_general`.

    `global_scale` (1,), by default 1, is what all scales of an "nvfp4" operand are multiplied by.

    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    check_option("get_scaled_dot_general_config", "mode", mode, "mxfp8", "nvfp4")
    if global_scale is not None:
        global_scale = as_array(global_scale, "get_scaled_dot_general_config")
    if mode == "mxfp8":
        e4m3, e8m0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
        return BlockScaleConfig(mode, 32, e4m3, e8m0, None, False)
    scale = jnp.ones(1, jnp.float32) if global_scale is None else global_scale
    e2m1, e4m3 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn
    return BlockScaleConfig(mode, 16, e2m1, e4m3, scale, False)


def apply_scales(x: Any, scales: Any) -> Any:
    """Elements (..., K) times the scales of their blocks (..., K / block), in float32."""
    blocks = (*scales.shape, x.shape[-1] // scales.shape[-1])
    out = x.astype(jnp.float32).reshape(blocks) * scales.astype(jnp.float32)[..., None]
    return out.reshape(x.shape)


@operation(static=("preferred_element_type",))
def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Products of scaled rows: lhs (B, M, K) and rhs (B, N, K) give (B, M, N).

    `lhs_scales` (B, M, K / block) and `rhs_scales` (B, N, K / block) have one scale for each block
    of elements; the result is of the dtype `preferred_element_type`.

    >>> x, s = jnp.ones((1, 2, 64), jnp.float8_e4m3fn), jnp.full((1, 2, 2), 2.0)
    >>> print(nn.scaled_matmul(x, x, s, s)[0])
    [[256. 256.]
     [256. 256.]]
    """
    arrays = [as_array(x, "scaled_matmul") for x in (lhs, rhs, lhs_scales, rhs_scales)]
    shapes = [x.shape for x in arrays]
    fits = all(len(s) == 3 for s in shapes) and len({s[0] for s in shapes}) == 1
    if fits:
        (_, m, k), (_, n, k2), (_, m2, c), (_, n2, c2) = shapes
        fits = (m, n, k, c) == (m2, n2, k2, c2) and c > 0 and k % c == 0
    if not fits:
        raise ShapeError(
            "scaled_matmul: operands must be (B, M, K), (B, N, K), their scales (B, M, K / block), "
            f"(B, N, K / block); got {', '.join(str(x.aval) for x in arrays)}."
        )
    dtype = dtypes.check_user_dtype(preferred_element_type, "scaled_matmul")
    x, y = apply_scales(arrays[0], arrays[2]), apply_scales(arrays[1], arrays[3])
    return dot_general(x, y, (((2,), (2,)), ((0,), (0,)))).astype(dtype)


def round_blocks(x: Any, axis: int, config: BlockScaleConfig) -> Any:
    """x as the format holds it, in blocks along `axis`; its derivative is that of x."""
    size = x.shape[axis]
    if size % config.block_size:
        raise ShapeError(
            f"scaled_dot_general: contracted sizes must be multiples of {config.block_size} for "
            f"{config.mode}; got {x.aval}."
        )

    @custom_jvp
    def round_values(x: Any) -> Any:
        blocks = jnp.moveaxis(x, axis, -1).astype(jnp.float32)
        shape = blocks.shape
        blocks = blocks.reshape(*shape[:-1], -1, config.block_size)
        limit = float(dtypes.finfo(config.data_type).max)
        common = 1.0 if config.global_scale is None else config.global_scale.reshape(())
        scale = jnp.max(jnp.abs(blocks), -1, keepdims=True) / limit / common
        if config.scale_type == ml_dtypes.float8_e8m0fnu:  # powers of 2: up, so that all fit
            scale = jnp.exp2(jnp.ceil(jnp.log2(jnp.where(scale > 0, scale, 1))))
        else:
            scale = scale.astype(config.scale_type).astype(jnp.float32)
        scale = jnp.where(scale > 0, scale, 1) * common
        small = jnp.clip(blocks / scale, -limit, limit).astype(config.data_type)
        out = (small.astype(jnp.float32) * scale).reshape(shape)
        return jnp.moveaxis(out, -1, axis).astype(x.dtype)

    round_values.defjvp(lambda primals, tangents: (round_values(*primals), tangents[0]))
    return round_values(x)


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """`lax.dot_general` of operands that are rounded first, as `configs` say for lhs and rhs.

    Without `configs` nothing is rounded. Derivatives are those of the product of the rounded
    operands; a third config, of gradients, is taken and not used: they stay as they are.
    `dimension_numbers` and `preferred_element_type`, the dtype of the result, are those of
    `lax.dot_general`; `implementation` changes nothing.

    >>> x = jnp.ones((1, 32))
    >>> config = nn.get_scaled_dot_general_config("mxfp8")
    >>> print(nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=[config] * 3))
    [[32.]]
    """
    check_option("scaled_dot_general", "implementation", implementation, None, "cudnn")
    x, y = as_array(lhs, "scaled_dot_general"), as_array(rhs, "scaled_dot_general")
    dtype = dtypes.check_user_dtype(preferred_element_type, "scaled_dot_general")
    dimension_numbers = read_dimensions("scaled_dot_general", dimension_numbers)
    if configs is not None:
        configs = as_sequence("scaled_dot_general", "configs", configs)
        if not all(isinstance(c, BlockScaleConfig) for c in configs):
            raise TypeError(
                f"scaled_dot_general: configs must be BlockScaleConfigs; got {configs!r}."
            )
        contracted = dimension_numbers[0]
        if len(contracted[0]) != 1 or len(contracted[1]) != 1:
            raise ShapeError(
                f"scaled_dot_general: with configs, one axis must be contracted; got {contracted}."
            )
        (i,), (j,) = contracted
        x = round_blocks(x, axis_of("scaled_dot_general", i, x.ndim), configs[0])
        y = round_blocks(y, axis_of("scaled_dot_general", j, y.ndim), configs[1])
    return dot_general(x, y, dimension_numbers, preferred_element_type=dtype)
