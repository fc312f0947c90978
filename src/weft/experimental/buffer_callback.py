"""Python functions that fill the buffers of results in place: `jax.experimental.buffer_callback`.

They are called as by `pure_callback` and `io_callback`, with other arguments. On other platforms
than the CPU, buffers are copied to the host and back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxlib import _jax

from weft.api.callbacks import io_callback, pure_callback, result_types
from weft.api.functions import check_callable
from weft.core.aval import typeof
from weft.pytrees import flatten, tree_map, unflatten
from weft.util import fun_name, list_public

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]
__dir__ = list_public(__name__)

ExecutionStage = _jax.ffi.ExecutionStage


class ExecutionContext:
    """The context of a buffer callback, its first argument.

    Attributes:
      stage: the stage of the execution, always `ExecutionStage.EXECUTE`.

    >>> print(ExecutionContext().stage)
    ExecutionStage.EXECUTE
    """

    stage = ExecutionStage.EXECUTE


class Buffer:
    """The memory of an operand or of a result, as a buffer callback receives it.

    `np.asarray(buffer)` is a view of the memory. The buffer has the
    attributes `shape`, `dtype` and `ndim` of the view, and other libraries can read it by DLPack.

    Args:
      array: the NumPy array whose memory it is.
      writeable: True for a result. If False, NumPy raises an error where a function writes into the
        view.

    >>> buffer = Buffer(np.zeros(2), writeable=True)
    >>> np.asarray(buffer)[0] = 5
    >>> np.asarray(buffer)
    array([5., 0.])
    """

    def __init__(self, array: np.ndarray, writeable: bool):
        self._view = array.view()
        self._view.flags.writeable = self.writeable = writeable
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy or dtype not in (None, self.dtype):
            return np.array(self._view, dtype)
        return self._view

    def __dlpack__(self, **options: Any) -> Any:
        return self._view.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._view.__dlpack_device__()


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """Return a function that calls `callback(ctx, out, *args, **kwargs)` in compiled programs.

    Unlike the callback of `pure_callback`, the callback writes into memory that it is given. It is
    for functions of C libraries, and for NumPy functions that are called with `out=`.

    Args:
      callback: a function that writes into `out`, a pytree of Buffers like `result_shape_dtypes`.
        The arguments are Buffers too, and may only be read. It returns nothing.
      result_shape_dtypes: a pytree of types, or arrays, of the results.
      has_side_effect: if True, it is called even if no result is used. The default is False.
      vmap_method: the behaviour under `vmap`, as for `pure_callback`.
      input_output_aliases: a dict from the number of an argument's leaf to the number of a result's
        leaf, which holds the argument's values before `callback` writes.
      command_buffer_compatible: it has no effect.

    Returns:
      A function `call(*args, **kwargs)` of pytrees of arrays. Its result is a pytree of arrays like
      `result_shape_dtypes`.

    Raises:
      TypeError: `callback` is not a function, or it returned a value.

    >>> def add_one(ctx, out, x):
    ...     np.asarray(out)[...] = np.asarray(x) + 1
    >>> weft.jit(buffer_callback(add_one, jnp.zeros(2)))(jnp.arange(2.0))
    Array([1., 2.], dtype=float32)
    """
    check_callable("buffer_callback", callback)
    avals, out_tree = result_types("buffer_callback", result_shape_dtypes)
    aliases = {out: operand for operand, out in (input_output_aliases or {}).items()}

    def call(*args: Any, **kwargs: Any) -> Any:
        given = [typeof(x).ndim for x in flatten((args, kwargs))[0]]

        def run(*args: Any, **kwargs: Any) -> Any:
            leaves = list(map(np.asarray, flatten((args, kwargs))[0]))
            # the mapped axes are in front, where `vmap` passes all elements at once
            fronts = [x.shape[: x.ndim - n] for x, n in zip(leaves, given, strict=True)]
            mapped = np.broadcast_shapes(*fronts)
            outs = [np.zeros((*mapped, *a.shape), a.dtype) for a in avals]
            for out, operand in aliases.items():
                outs[out][...] = leaves[operand]
            args, kwargs = tree_map(lambda x: Buffer(np.asarray(x), False), (args, kwargs))
            filled = unflatten(out_tree, [Buffer(x, True) for x in outs])
            returned = callback(ExecutionContext(), filled, *args, **kwargs)
            if returned is not None:
                raise TypeError(
                    f"buffer_callback: {fun_name(callback)} must write into its results, and "
                    f"return None; got {returned!r}."
                )
            return unflatten(out_tree, outs)

        if has_side_effect:
            return io_callback(run, result_shape_dtypes, *args, **kwargs)
        return pure_callback(run, result_shape_dtypes, *args, vmap_method=vmap_method, **kwargs)

    return call
