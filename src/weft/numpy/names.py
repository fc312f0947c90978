"""The list of the files that define the public names of `weft.numpy`.

A module's names are separated by spaces; an empty text stands for the module itself. scalars.py
lists its own names, the dtypes and constants.
"""

HOMES = {
    "weft.numpy.array_api": "__array_api_version__ __array_namespace_info__",
    "weft.numpy.calculus": "diff ediff1d gradient interp trapezoid unwrap",
    "weft.numpy.choice": (
        "allclose array_equal array_equiv clip isclose iscomplex iscomplexobj isfinite isinf "
        "isnan isneginf isposinf isreal isrealobj isscalar logical_and logical_not logical_or "
        "logical_xor nan_to_num ndim piecewise select shape signbit size where"
    ),
    "weft.numpy.contraction": "einsum einsum_path",
    "weft.numpy.convolution": "bartlett blackman convolve correlate hamming hanning i0 kaiser",
    "weft.numpy.creation": (
        "arange array asarray copy empty empty_like from_dlpack full full_like geomspace "
        "linspace logspace ones ones_like zeros zeros_like"
    ),
    "weft.numpy.editing": "delete insert repeat resize trim_zeros",
    "weft.numpy.elementwise": (
        "abs absolute angle around bitwise_count bitwise_left_shift bitwise_right_shift ceil conj "
        "conjugate copysign deg2rad degrees divmod fabs float_power floor floor_divide fmax fmin "
        "fmod frexp gcd heaviside hypot imag lcm ldexp left_shift log10 logaddexp logaddexp2 mod "
        "modf nextafter positive pow power rad2deg radians real reciprocal remainder right_shift "
        "rint round sinc spacing trunc"
    ),
    "weft.numpy.fft": "",
    "weft.numpy.files": "frombuffer fromfile fromiter fromstring load save savez",
    "weft.numpy.functional": "apply_along_axis apply_over_axes vectorize",
    "weft.numpy.grids": (
        "c_ diag diag_indices diag_indices_from diagflat eye fill_diagonal fromfunction identity "
        "index_exp indices ix_ mask_indices meshgrid mgrid ogrid r_ ravel_multi_index s_ tri tril "
        "tril_indices tril_indices_from triu triu_indices triu_indices_from unravel_index vander"
    ),
    "weft.numpy.histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "weft.numpy.indexing": "choose take take_along_axis",
    "weft.numpy.linalg": "",
    "weft.numpy.manipulation": (
        "append array_split atleast_1d atleast_2d atleast_3d block broadcast_arrays broadcast_to "
        "column_stack concat concatenate diagonal dsplit dstack expand_dims flip fliplr flipud "
        "hsplit hstack matrix_transpose moveaxis permute_dims ravel reshape roll rollaxis rot90 "
        "split squeeze stack swapaxes tile transpose unstack vsplit vstack"
    ),
    "weft.numpy.padding": "pad",
    "weft.numpy.polynomials": (
        "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots"
    ),
    "weft.numpy.products": (
        "cross dot inner kron matmul matvec outer tensordot trace vdot vecdot vecmat"
    ),
    "weft.numpy.promotion": "broadcast_shapes",
    "weft.numpy.reductions": (
        "all amax amin any argmax argmin average count_nonzero cumprod cumsum cumulative_prod "
        "cumulative_sum max mean min minmax nanargmax nanargmin nancumprod nancumsum nanmax "
        "nanmean nanmin nanprod nanstd nansum nanvar prod ptp std sum var"
    ),
    "weft.numpy.searching": "argwhere compress extract flatnonzero nonzero",
    "weft.numpy.sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts "
        "unique_inverse unique_values"
    ),
    "weft.numpy.sorting": (
        "argpartition argsort digitize lexsort partition searchsorted sort sort_complex top_k"
    ),
    "weft.numpy.statistics": (
        "corrcoef cov median nanmedian nanpercentile nanquantile percentile quantile"
    ),
    "weft.numpy.ufunc_objects": "frompyfunc ufunc",
    "weft.numpy.ufuncs": (
        "acos acosh add arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan "
        "atan2 atanh bitwise_and bitwise_invert bitwise_not bitwise_or bitwise_xor cbrt cos cosh "
        "divide equal exp exp2 expm1 greater greater_equal invert less less_equal log log1p log2 "
        "maximum minimum multiply negative not_equal sign sin sinh sqrt square subtract tan tanh "
        "true_divide"
    ),
    "weft.numpy.updates": "place put put_along_axis",
    "weft.numpy.views": "astype packbits unpackbits",
}
