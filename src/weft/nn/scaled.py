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
    """The rounding format of an operand of `scaled_dot_general`.

    Blocks of `block_size` consecutive small floats share a scale. `get_scaled_dot_general_config`
    makes the usual formats.

    Attributes:
      mode: the name of the format, "mxfp8" or "nvfp4".
      block_size: the number of elements that share a scale.
      data_type: the dtype of the elements.
      scale_type: the dtype of the scales.
      global_scale: a factor of all scales, an array of one element, or None.
      infer_only: not used.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: Any = None) -> BlockScaleConfig:
    """Return the description of a block-scaled format, for `scaled_dot_general`.

    Args:
      mode: "mxfp8": blocks of 32 floats of dtype float8_e4m3fn, whose scales are powers of 2
        (float8_e8m0fnu). "nvfp4": blocks of 16 floats of dtype float4_e2m1fn, with scales of dtype
        float8_e4m3fn.
      global_scale: an array (1,): the factor of all scales of an "nvfp4" operand. By default 1.
        "mxfp8" does not use it.

    Returns:
      A `BlockScaleConfig`.

    Raises:
      ValueError: `mode` is another name.

    >>> config = nn.get_scaled_dot_general_config("mxfp8")
    >>> config.block_size, config.data_type.__name__, config.scale_type.__name__
    (32, 'float8_e4m3fn', 'float8_e8m0fnu')
    >>> nn.get_scaled_dot_general_config("nvfp4").block_size
    16
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
    """Multiply matrices whose rows are stored as small floats in blocks that share a scale.

    Each operand is scaled first: element k of a row is multiplied by the scale of block k // block.
    Then the rows of `lhs` are multiplied by the rows of `rhs`, in float32. It is the product for
    operands in formats such as MXFP8, which are already quantized.

    Args:
      lhs: an array (B, M, K), usually of an 8-bit or 4-bit float dtype.
      rhs: an array (B, N, K). The contracted axis is the last one of both operands.
      lhs_scales: the scales of `lhs`, (B, M, K / block). The block size follows from the shapes.
      rhs_scales: the scales of `rhs`, (B, N, K / block), with the same block size.
      preferred_element_type: the dtype of the result, by default float32. Static under `jit`.

    Returns:
      An array (B, M, N) of the dtype `preferred_element_type`.

    Raises:
      ShapeError: the shapes do not fit, or the number of scales does not divide K.

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
    """Return x rounded to a format in blocks along `axis`; gradients pass through unchanged."""
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
    """Compute `lax.dot_general` of operands that are first rounded to block-scaled formats.

    It shows the effect of low-precision formats on a model: the operands are rounded to small
    floats with scales, and multiplied as the floats that these stand for. Derivatives are those of
    the product of the rounded operands; rounding itself passes gradients through unchanged.

    Args:
      lhs: an array of a float dtype. With `configs`, the size of its contracted axis must be a
        multiple of the block size.
      rhs: an array of a float dtype, likewise.
      dimension_numbers: the contracted and the batch axes, ((lhs_contract, rhs_contract),
        (lhs_batch, rhs_batch)), as for `lax.dot_general`. With `configs`, exactly one axis must be
        contracted.
      preferred_element_type: the dtype of the result, by default float32.
      configs: a sequence of `BlockScaleConfig`s: for `lhs`, for `rhs`, and optionally for
        gradients. The third is accepted and not used: gradients are not rounded. By default None:
        nothing is rounded.
      implementation: None, the default, or "cudnn"; the result is the same.

    Returns:
      An array of the dtype `preferred_element_type`, with the shape of `lax.dot_general`: batch
      axes, then the other axes of `lhs`, then those of `rhs`.

    Raises:
      ShapeError: with `configs`, more than one axis is contracted, or its size is not a multiple of
        the block size.
      TypeError: an element of `configs` is not a `BlockScaleConfig`.
      ValueError: `implementation` is another name, or `configs` has fewer than two elements.

    >>> x = jnp.linspace(-1.0, 1.0, 32).reshape(1, 32)
    >>> dims = (((1,), (1,)), ((), ()))
    >>> config = nn.get_scaled_dot_general_config("mxfp8")
    >>> print(np.asarray(nn.scaled_dot_general(x, x, dims)).round(2))
    [[11.35]]
    >>> print(np.asarray(nn.scaled_dot_general(x, x, dims, configs=[config] * 3)).round(2))
    [[11.42]]
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
        if len(configs) < 2:
            raise ValueError(
                "scaled_dot_general: configs must have one for each operand; "
                f"got {len(configs)}. Hint: configs=[config] * 2."
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
