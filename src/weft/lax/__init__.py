"""The operations of the language, under the names of `jax.lax`: `from weft import lax`.

Each is defined, with its rules, in the module named here, which is imported when the name is
first used.
"""

from typing import Any

from weft.lax.operations import make_operation
from weft.util import import_lazily

HOMES = {
    "weft.api.custom_rules": ("stop_gradient"),
    "weft.api.composite": ("composite scaled_dot"),
    "weft.api.collectives": (
        "all_gather all_to_all axis_index axis_size pbroadcast pcast pmax pmean pmin ppermute "
        "precv psend pshuffle psum psum_scatter pswapaxes pvary"
    ),
    "weft.api.shard_map": ("with_sharding_constraint"),
    "weft.parallel.constraint": ("device_put_p sharding_constraint_p"),
    "weft.api.cond": ("cond platform_dependent switch"),
    "weft.control.cond": ("cond_p"),
    "weft.api.custom_root": ("custom_linear_solve custom_root"),
    "weft.control.linear": ("linear_solve_p"),
    "weft.primitives.layout": (
        "broadcast broadcast_in_dim broadcast_in_dim_p broadcast_like "
        "broadcast_to_rank broadcasted_iota collapse convert_element_type "
        "convert_element_type_p copy_p empty expand_dims iota iota_p "
        "reduce_sum reduce_sum_p reshape reshape_p rev rev_p squeeze squeeze_p transpose "
        "transpose_p"
    ),
    "weft.primitives.families": "broadcast_shapes",
    "weft.primitives.elementwise": (
        "RoundingMethod abs abs_p add add_p and_p bitwise_and bitwise_not bitwise_or "
        "bitwise_xor ceil ceil_p clamp clamp_p complex complex_p conj conj_p div div_p eq eq_p "
        "eq_to_p floor floor_p ge ge_p gt gt_p imag imag_p is_finite is_finite_p le le_p "
        "le_to_p lt lt_p lt_to_p max max_p min min_p mul mul_p ne ne_p neg neg_p not_p "
        "one_minus_square one_minus_square_p or_p real real_p rem rem_p round round_p select "
        "select_n select_n_p sign sign_p square square_p stop_gradient_p sub sub_p xor_p"
    ),
    "weft.primitives.transcendental": (
        "AccuracyMode Tolerance acos acos_p acosh acosh_p asin asin_p asinh asinh_p atan atan2 "
        "atan2_p atan_p atanh atanh_p cbrt cbrt_p cos cos_p cosh cosh_p exp exp2 exp2_p exp_p "
        "expm1 expm1_p integer_pow integer_pow_p log log1p log1p_p log2 log2_p log_p logistic "
        "logistic_p pow pow_p reciprocal rsqrt rsqrt_p sin sin_p sinh sinh_p sqrt sqrt_p tan "
        "tan_p tanh tanh_p"
    ),
    "weft.primitives.slicing": (
        "concatenate concatenate_p index_in_dim pad pad_p slice slice_in_dim slice_p split "
        "split_p stack stack_p tile tile_p unstack unstack_p"
    ),
    "weft.primitives.dynamic_slicing": (
        "dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_slice_p "
        "dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim "
        "dynamic_update_slice_p"
    ),
    "weft.primitives.indexing": (
        "GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers gather_p index_take "
        "scatter_add_p scatter_max_p scatter_min_p scatter_mul_p scatter_p scatter_sub_p"
    ),
    "weft.primitives.reduction": (
        "argmax argmax_p argmin argmin_p reduce reduce_and reduce_and_p reduce_max "
        "reduce_max_p reduce_min reduce_min_p reduce_or reduce_or_p reduce_p reduce_prod "
        "reduce_prod_p reduce_xor reduce_xor_p"
    ),
    "weft.primitives.window": (
        "padtype_to_pads reduce_window reduce_window_max_p reduce_window_min_p "
        "reduce_window_p reduce_window_shape_tuple reduce_window_sum_p "
        "select_and_gather_add_p select_and_scatter_add_p select_and_scatter_p"
    ),
    "weft.primitives.dot": (
        "DotAlgorithm DotAlgorithmPreset DotDimensionNumbers Precision PrecisionLike "
        "RaggedDotDimensionNumbers batch_matmul dot dot_general dot_general_p ragged_dot "
        "ragged_dot_general"
    ),
    "weft.primitives.conv": (
        "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv conv_dimension_numbers "
        "conv_general_dilated conv_general_dilated_local conv_general_dilated_p "
        "conv_general_dilated_patches conv_general_permutations conv_general_shape_tuple "
        "conv_shape_tuple conv_transpose conv_transpose_shape_tuple conv_with_general_padding"
    ),
    "weft.primitives.cumulative": (
        "cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod cumprod_p cumsum "
        "cumsum_p"
    ),
    "weft.primitives.sort": (
        "approx_max_k approx_min_k approx_top_k_p sort sort_key_val sort_p top_k top_k_p"
    ),
    "weft.primitives.fft": ("FftType fft fft_p"),
    "weft.primitives.bits": (
        "bitcast_convert_type bitcast_convert_type_p clz clz_p mulhi mulhi_p nextafter "
        "nextafter_p population_count population_count_p reduce_precision reduce_precision_p "
        "shift_left shift_left_p "
        "shift_right_arithmetic shift_right_arithmetic_p shift_right_logical "
        "shift_right_logical_p"
    ),
    "weft.primitives.special.functions": (
        "bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p betainc digamma digamma_p erf "
        "erf_inv erf_inv_p erf_p erfc erfc_p igamma igamma_grad_a igamma_grad_a_p igamma_p "
        "igammac igammac_p lgamma lgamma_p polygamma polygamma_p random_gamma_grad "
        "regularized_incomplete_beta_p zeta zeta_p"
    ),
    "weft.primitives.random": (
        "RandomAlgorithm rng_bit_generator rng_bit_generator_p rng_uniform rng_uniform_p"
    ),
    "weft.primitives.collective": (
        "all_gather_p all_to_all_p axis_index_p pmax_p pmin_p ppermute_p psum_p"
    ),
    "weft.primitives.sink": ("dce_sink"),
    "weft.primitives.tokens": (
        "after_all after_all_p create_token create_token_p optimization_barrier "
        "optimization_barrier_p"
    ),
    "weft.numpy.horner": ("polynomial"),
    "weft.numpy.ragged": ("ragged_all_to_all"),
    "weft.control.loop": ("while_p"),
    "weft.api.while_loop": ("fori_loop while_loop"),
    "weft.control.scan": ("scan_p"),
    "weft.api.associative_scan": ("associative_scan"),
    "weft.api.scan": ("map scan"),
    "weft.lax.values": ("dtype full full_like shape_as_value stage"),
    "weft.lax.windows": (
        "gather scatter scatter_add scatter_apply scatter_max scatter_min scatter_mul scatter_sub"
    ),
    "weft.lax.linalg": "",
}
__all__ = [*(name for names in HOMES.values() for name in names.split()), "linalg"]
_find, __dir__ = import_lazily(__name__, HOMES)


def __getattr__(name: str) -> Any:
    found = _find(name)
    public = make_operation(name, found)
    if public is not found:
        globals()[name] = public
        public.__module__ = __name__  # where it is a global, for pickle
    return public
