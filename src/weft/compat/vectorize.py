"""The names of `jax._src.numpy.vectorize` that libraries copy `vectorize` with.

They are the steps of weft's own `vectorize`, with the arguments that JAX's have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from weft.numpy import broadcast_shapes
from weft.numpy.functional import check_outputs, find_core_sizes
from weft.numpy.functional import parse_signature as _parse_gufunc_signature  # noqa: F401
from weft.util import list_public

__all__: list[str] = []
__dir__ = list_public(__name__)

CoreDims = tuple[str, ...]


def _apply_excluded(
    func: Callable, excluded: Collection[int | str], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Callable, list, dict[str, Any]]:
    """Return a function of the arguments that are not excluded, and those arguments."""
    fixed = {i: x for i, x in enumerate(args) if i in excluded}
    named = {name: x for name, x in kwargs.items() if name in excluded}

    def call(*rest: Any, **more: Any) -> Any:
        left = iter(rest)
        every = [fixed[i] if i in fixed else next(left) for i in range(len(args))]
        return func(*every, **more, **named)

    dynamic = [x for i, x in enumerate(args) if i not in excluded]
    return call, dynamic, {name: x for name, x in kwargs.items() if name not in excluded}


def _parse_input_dimensions(
    args: Sequence[Any], input_core_dims: Sequence[CoreDims], error_context: str = ""
) -> tuple[tuple[int, ...], dict[str, int]]:
    """Return the shape that the leading axes broadcast to, and the sizes of the named axes."""
    op = f"vectorize{error_context and f' {error_context}'}"
    if len(args) != len(input_core_dims):
        raise TypeError(f"{op}: must have {len(input_core_dims)} arguments; got {len(args)}.")
    sizes = find_core_sizes(op, args, input_core_dims)
    pairs = zip(args, input_core_dims, strict=True)
    return broadcast_shapes(*[x.shape[: x.ndim - len(dims)] for x, dims in pairs]), sizes


def _check_output_dims(
    func: Callable,
    dim_sizes: dict[str, int],
    expected_output_core_dims: Sequence[CoreDims],
    error_context: str = "",
) -> Callable:
    """Return a function whose results are checked to have the axes of a signature."""
    op = f"vectorize{error_context and f' {error_context}'}"

    def call(*args: Any) -> Any:
        return check_outputs(op, func(*args), expected_output_core_dims, dict(dim_sizes))

    return call
