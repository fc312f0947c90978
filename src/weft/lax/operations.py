"""Functions of `lax` as operations: an eager call is one program, which knows static arguments.

Rules of primitives call the functions in primitives/, which never look for a program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from weft.run.operation import number_operation, operation

# Functions by how many arrays they take first; their other arguments are static.
BY_ARRAYS = (
    "broadcasted_iota iota",
    "abs acos acosh approx_max_k approx_min_k argmax argmin asin asinh atan atanh bessel_i0e "
    "bessel_i1e bitcast_convert_type bitwise_not broadcast broadcast_in_dim broadcast_to_rank cbrt "
    "ceil clz collapse concatenate conj convert_element_type cos cosh cumlogsumexp cummax cummin "
    "cumprod cumsum digamma erf erf_inv erfc exp exp2 expand_dims expm1 fft floor imag "
    "index_in_dim integer_pow is_finite lgamma log log1p log2 logistic neg one_minus_square "
    "optimization_barrier population_count real reciprocal reduce_and reduce_max reduce_min "
    "reduce_or reduce_precision reduce_prod reduce_sum reduce_xor reshape rev round rsqrt sign sin "
    "sinh slice slice_in_dim sort split sqrt square squeeze stack tan tanh tile top_k transpose "
    "unstack",
    "batch_matmul conv conv_general_dilated conv_transpose conv_with_general_padding dot "
    "dot_general gather index_take pad sort_key_val",
    "clamp scatter scatter_add scatter_max scatter_min scatter_mul scatter_sub select",
)
# Functions of two operands. If one is a Python number, it gets the dtype of the other.
BINARY = (
    "add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt igamma igamma_grad_a "
    "igammac le lt max min mulhi ne nextafter polygamma random_gamma_grad rem shift_left "
    "shift_right_arithmetic shift_right_logical sub zeta"
)
# Functions of a place, which is an operand; the sizes are static.
STATIC = ("slice_sizes", "slice_size", "axis", "keepdims", "allow_negative_indices")

WRAPPERS: dict[str, Callable] = {
    **{
        name: operation(arrays=count)
        for count, names in enumerate(BY_ARRAYS)
        for name in names.split()
    },
    **dict.fromkeys(BINARY.split(), functools.partial(number_operation, matched=True)),
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
