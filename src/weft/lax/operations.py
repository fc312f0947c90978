"""Functions of `lax` as operations: an eager call is one program, which knows static arguments.

Rules of primitives call the functions in primitives/, which never look for a program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from weft.primitives.elementwise import Elementwise
from weft.run.operation import number_operation, operation

# Functions by how many arrays they take first; their other arguments are static.
BY_ARRAYS = (
    "broadcasted_iota iota",
    "approx_max_k approx_min_k argmax argmin bitcast_convert_type broadcast broadcast_in_dim "
    "broadcast_to_rank collapse concatenate conj convert_element_type cumlogsumexp cummax "
    "cummin cumprod cumsum expand_dims fft index_in_dim integer_pow optimization_barrier "
    "reciprocal reduce_and reduce_max reduce_min reduce_or reduce_precision reduce_prod "
    "reduce_sum reduce_xor reshape rev round slice slice_in_dim sort split squeeze stack tile "
    "top_k transpose unstack",
    "batch_matmul conv conv_general_dilated conv_transpose conv_with_general_padding dot "
    "dot_general gather index_take pad sort_key_val",
    "clamp scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub select",
)
# Functions of a place, which is an operand; the sizes are static.
STATIC = ("slice_sizes", "slice_size", "axis", "keepdims", "allow_negative_indices")

WRAPPERS: dict[str, Callable] = {
    **{
        name: operation(arrays=count)
        for count, names in enumerate(BY_ARRAYS)
        for name in names.split()
    },
    "mul": operation(arrays=2, numbers=(0, 1), matched=True),  # which may have `out_dtype`
    **{
        f"dynamic_{name}": operation(static=STATIC, numbers=(1,), whole=False)
        for name in ("index_in_dim", "slice", "slice_in_dim")
    },
    **{
        f"dynamic_update_{name}": operation(
            static=STATIC, numbers=(1, 2), matched=True, whole=False
        )
        for name in ("index_in_dim", "slice", "slice_in_dim")
    },
    **dict.fromkeys(("empty", "full", "shape_as_value"), operation(arrays=0)),
}


def make_operation(name: str, fun: Callable) -> Callable:
    """Return the public function of `lax` for a function of primitives.

    A function of one elementwise primitive is an operation of its operands. If one of two operands
    is a Python number, it gets the dtype of the other operand.
    """
    wrap = WRAPPERS.get(name)
    prim = getattr(fun, "primitive", None)
    if wrap is None and isinstance(prim, Elementwise):
        unary = len(prim.derivs) == 1
        wrap = operation(arrays=1) if unary else functools.partial(number_operation, matched=True)
    return fun if wrap is None else wrap(fun)
