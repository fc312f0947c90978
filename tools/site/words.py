"""Labels of benchmark cases in words, for readers who do not know the suite.

`label("trace/mlp3_grad")` is "three layers, gradient". A case is named by its program or operation
and by what is done with it; sizes are those of bench/suite.py.
"""

GROUPS = {
    "start": "Starting",
    "memory": "Memory of the first call",
    "walk": "Functions on the way of a first call",
    "libraries": "Libraries written for JAX",
    "eager": "Operations without jit",
    "trace": "Tracing",
    "lower": "Lowering",
    "compile": "Compiling",
    "residual": "Temporary memory of gradients",
    "dispatch": "Calls of compiled functions",
    "model": "Whole programs",
    "op": "Operations on large arrays",
    "devices": "Four devices",
    "served": "Programs that are served",
    "first": "First results",
}

PROGRAMS = {
    "mlp3": "three layers",
    "transformer12": "transformer, twelve layers",
    "transformer12_scan": "transformer, layers in a scan",
    "rnn_scan": "recurrent network in a scan",
    "remat50": "fifty layers, recomputed",
    "scan60": "scan that carries sixty numbers",
    "chain2000": "chain of 2,000 operations",
}
ENDINGS = {"_grad": ", gradient", "_fwd": "", "_per_op": ", each operation"}

CASES = {
    "start/engine": "import NumPy and jaxlib alone",
    "start/import": "import the package",
    "start/import_over_engine": "import, of NumPy's and jaxlib's",
    "start/import_first_op": "import and one operation",
    "start/first_mlp3_grad": "first gradient of three layers",
    "memory/first_mlp3_grad": "first gradient of three layers",
    "walk/cold_jit_functions": "first jit call of sin(x) * x",
    "libraries/optax_tests_cold": "optax's tests, nothing compiled",
    "libraries/optax_tests_warm": "optax's tests, compiled before",
    "libraries/flax_digits_cold": "digits by flax, nothing compiled",
    "libraries/flax_digits_warm": "digits by flax, compiled before",
    "eager/add": "x + y",
    "eager/add_scalar": "x + 1.0",
    "eager/sin": "sin(x)",
    "eager/matmul": "x @ y",
    "eager/sum": "x.sum()",
    "eager/slow_f_5000": "x * x + x * 2, 5000 x 5000",
    "eager/index0": "x[0]",
    "eager/slice": "x[2:5]",
    "eager/index_array": "x[indices]",
    "eager/at_set": "x.at[0].set(1.0)",
    "eager/reshape": "x.reshape(2, 4)",
    "eager/zeros": "zeros(8)",
    "eager/float": "float(x)",
    "eager/transpose": "x.T",
    "eager/asarray": "asarray of a list",
    "eager/where": "where(c, x, y)",
    "eager/concatenate": "concatenate([x, y])",
    "eager/stack": "stack([x, y])",
    "eager/ones": "ones(8)",
    "eager/arange": "arange(8)",
    "eager/arange_float": "arange(8.0)",
    "eager/linspace": "linspace(0, 1, 8)",
    "eager/mean": "mean(x)",
    "eager/clip": "clip(x, 0, 1)",
    "eager/dot": "dot(x, y)",
    "eager/median": "median(x)",
    "eager/split_key": "random.split(key)",
    "eager/normal": "random.normal(key, (8,))",
    "eager/grad_mlp3": "gradient of three layers",
    "eager/vmap_mlp3": "three layers, mapped over a batch",
    "eager/jvp_mlp3": "three layers, forward derivative",
    "trace/hessian_mlp3": "three layers, Hessian",
    "dispatch/two_args": "two arrays",
    "dispatch/pytree100": "a pytree of 100 arrays",
    "dispatch/numpy_arg": "an array of NumPy",
    "dispatch/python_scalar": "a Python number",
    "dispatch/static_argnum": "a static argument",
    "dispatch/tree_map100": "tree.map over 100 arrays",
    "model/mlp_mnist_b128": "step of a digit reader, batch of 128",
    "model/convnet_b32": "step of a convolutional network",
    "model/transformer12": "step of a transformer",
    "model/rnn_scan50": "step of a recurrent network",
    "model/transformer12_scan": "step of a transformer, layers in a scan",
    "model/scan60_scalars": "scan over sixty numbers",
    "model/scan60_scalars_1000": "the same, a thousand steps",
    "model/per_example_grads": "a gradient for each example",
    "model/hessian_64": "Hessian by 64 numbers",
    "op/fuse_5000": "x * x + x * 2, 5000 x 5000",
    "op/matmul_1024": "product of 1024 x 1024 matrices",
    "op/matmul_batch": "products of a batch of matrices",
    "op/matvec_2000": "matrix times vector, 2000",
    "op/einsum_attn": "einsum of attention",
    "op/tanh_1e6": "tanh of a million",
    "op/exp_1e6": "exp of a million",
    "op/log1p_1e6": "log1p of a million",
    "op/erf_1e6": "erf of a million",
    "op/sum_1e6": "sum of a million",
    "op/sum_axis0": "sums of columns",
    "op/sum_axis1": "sums of rows",
    "op/var_axis": "variances of columns",
    "op/argmax_1e6": "argmax of a million",
    "op/softmax_2000": "softmax of 2000 rows",
    "op/logsumexp_2000": "logsumexp of 2000 rows",
    "op/where_clip": "where and clip",
    "op/conv2d_3x3": "convolution of images, 3 x 3",
    "op/conv1d": "convolution of signals",
    "op/maxpool": "largest of windows",
    "op/cumsum_1e6": "cumulative sum of a million",
    "op/cumsum_axis": "cumulative sums of columns",
    "op/cummax_1e6": "running maximum of a million",
    "op/sort_1e6": "sort a million",
    "op/argsort_1e6": "argsort a million",
    "op/top_k_1e6": "largest few of a million",
    "op/searchsorted": "search in sorted numbers",
    "op/unique_size": "unique numbers, at most a given count",
    "op/bincount": "counts of integers",
    "op/histogram": "histogram",
    "op/interp": "linear interpolation",
    "op/median": "median",
    "op/convolve": "convolve",
    "op/gather_1e6": "read a million by index",
    "op/scatter_add_1e6": "add a million by index",
    "op/segment_sum": "sums by segment",
    "op/transpose_2000": "transpose 2000 x 2000",
    "op/concat": "concatenate",
    "op/roll": "roll",
    "op/pad": "pad",
    "op/one_hot": "one-hot rows",
    "op/fft_2e18": "FFT of 262,144",
    "op/fft2_512": "FFT of 512 x 512",
    "op/expm_256": "matrix exponential, 256",
    "op/det_batch": "determinants of a batch",
    "op/solve_batch": "systems of a batch",
    "op/eigh_batch": "eigenvalues of a batch, symmetric",
    "op/solve_3x3": "systems of 3 x 3",
    "op/inv_3x3": "inverses of 3 x 3",
    "op/det_4x4": "determinants of 4 x 4",
    "op/sparse_bcsr_vector": "sparse rows times vector",
    "op/sparse_bcsr_matrix": "sparse rows times matrix",
    "op/sparse_bcoo_vector": "sparse entries times vector",
    "op/sparse_bcoo_matrix": "sparse entries times matrix",
    "op/while_10000": "while loop, 10,000 steps",
    "op/scan_1000_small": "scan over small arrays, 1,000 steps",
    "op/fori_scatter": "loop that writes by index",
    "op/cond": "cond",
    "op/large_results": "three results of 64 MB",
    "op/sparse_jacobian": "sparse Jacobian, 2,500 unknowns",
    "devices/call_pmap": "call of a pmap",
    "devices/psum_waited": "sum over the devices",
    "devices/call_jit": "call of a jit",
    "devices/call_shard_map": "call of a shard_map",
    "devices/eager_add": "x + y, split over devices",
    "devices/eager_sin": "sin(x), split over devices",
    "devices/eager_sum_waited": "x.sum(), split over devices",
    "devices/put": "put an array on them",
    "devices/lower_jit": "lower a transformer, jit",
    "devices/step_jit": "step of a transformer, jit",
    "devices/collectives_jit": "collectives in that step",
    "devices/lower_shard_map": "lower a transformer, shard_map",
    "devices/step_shard_map": "step of a transformer, shard_map",
    "devices/collectives_shard_map": "collectives in that step",
}
FACTORIZATIONS = {
    "cholesky": "Cholesky factor",
    "solve": "linear system",
    "inv": "inverse",
    "eigh": "eigenvalues, symmetric",
    "svd": "singular values",
    "qr": "QR",
    "det": "determinant",
}


def name_random(name: str) -> str | None:
    """Return the label of a case that draws random numbers, such as `random_normal_1e6`."""
    if not name.startswith("random_"):
        return None
    *words, size = name.removeprefix("random_").split("_")
    count = {"1e6": "a million", "1e5": "100,000", "1e4": "10,000"}
    if size in count:
        return f"draw {count[size]}: {' '.join(words)}"
    return f"draw: {' '.join([*words, size])}"


def label(case: str) -> str:
    """Return the words for a case, or the part of its name after the group if it has none."""
    name = case.partition("/")[2]
    if case in CASES:
        return CASES[case]
    for ending, added in ENDINGS.items():
        if name.removesuffix(ending) in PROGRAMS:
            return PROGRAMS[name.removesuffix(ending)] + added
    kind, _, size = name.rpartition("_")
    if kind in FACTORIZATIONS:
        return f"{FACTORIZATIONS[kind]}, {size} x {size}"
    return name_random(name) or name
