"""What weft wants to be worth, case by case, and how a figure is judged against it.

A goal is a limit on the ratio weft / JAX, except for the few cases whose figure is compared as it
is. Compile time and memory must not exceed JAX's: their limit leaves room for the clock's noise.
Operations and models have a second goal, against the best of all peers: what a user would take.
"""

NOISE = 1.05
BEST = 1.1  # of the best peer's time, for the groups op and model
SPARSE = 1.5  # of the time of SciPy, whose one thread is quick at products of sparse matrices

RATIOS = {
    "start/import": 0.3,
    "start/import_first_op": 0.3,
    "start/first_mlp3_grad": 0.15,
    "memory/first_mlp3_grad": NOISE,
    "libraries/optax_tests_cold": 0.5,
    "libraries/optax_tests_warm": 0.5,
    "libraries/flax_digits_cold": 0.5,
    "libraries/flax_digits_warm": 0.5,
    "eager/add": 0.9,
    "eager/sin": 0.9,
    "eager/matmul": 0.9,
    "eager/sum": 0.9,
    "eager/index0": 0.15,
    "eager/slice": 0.15,
    "eager/index_array": 0.15,
    "eager/at_set": 0.15,
    "eager/zeros": 0.15,
    "eager/float": 0.15,
    "eager/reshape": 0.5,
    "eager/ones": 0.5,
    "eager/arange": 0.5,
    "eager/arange_float": 0.5,
    "eager/concatenate": 0.5,
    "eager/stack": 0.5,
    # a call of one compiled program in JAX too: there is the engine's own call to save on, no more
    "eager/where": 0.9,
    "eager/mean": 0.9,
    "eager/clip": NOISE,
    "eager/dot": NOISE,
    "eager/linspace": NOISE,
    "eager/grad_mlp3": 0.1,
    "eager/jvp_mlp3": 0.2,
    "eager/vmap_mlp3": 0.2,
    "trace/chain2000_per_op": 0.1,
    "trace/mlp3_grad": 0.1,
    "trace/transformer12_grad": 0.1,
    "trace/rnn_scan_grad": 0.1,
    "lower/chain2000_per_op": 0.1,
    "lower/mlp3_grad": 0.1,
    "lower/transformer12_grad": 0.1,
    "lower/rnn_scan_grad": 0.1,
    "compile/mlp3_grad": NOISE,
    "compile/transformer12_grad": NOISE,
    "compile/transformer12_scan_grad": NOISE,
    "residual/mlp3_grad": 1.0,
    "residual/transformer12_grad": 1.0,
    "residual/rnn_scan_grad": 1.0,
    "residual/transformer12_scan_grad": 1.0,
    "residual/remat50_grad": 1.0,
    "residual/scan60_grad": 1.0,
    "dispatch/two_args": 1.05,
    "dispatch/pytree100": 1.05,
    "dispatch/numpy_arg": 1.3,
    "model/mlp_mnist_b128": 1.02,
    "model/convnet_b32": 1.02,
    "model/transformer12": 1.02,
    "model/rnn_scan50": 1.02,
    "model/scan60_scalars": 0.2,
    "model/scan60_scalars_1000": 0.2,
    "op/while_10000": 1.02,
    "op/scan_1000_small": 1.02,
    "op/fori_scatter": 1.02,
    "op/sparse_bcsr_vector": 1.0,
    "op/sparse_bcsr_matrix": 1.0,
    "op/sparse_bcoo_vector": 1.0,
    "op/sparse_bcoo_matrix": 1.0,
    "devices/call_pmap": 1.05,
    "devices/call_jit": 1.05,
    "devices/call_shard_map": 1.05,
    "devices/lower_jit": 0.2,
    "devices/lower_shard_map": 0.2,
    "devices/step_jit": 1.02,
    "devices/step_shard_map": 1.02,
    "devices/collectives_jit": 1.0,
    "devices/collectives_shard_map": 1.0,
    "op/random_permutation_1e5": 0.3,
    "op/random_gamma_1e4": 0.3,
    "op/random_bits_1e6": 1.0,
    "op/random_uniform_1e6": 1.0,
    "op/random_normal_1e6": 1.0,
    "op/random_categorical": 1.0,
    "op/random_exponential_1e6": 1.0,
    "op/random_gumbel_1e6": 1.0,
    "op/random_laplace_1e6": 1.0,
    "op/random_logistic_1e6": 1.0,
    "op/random_cauchy_1e6": 1.0,
    "op/random_rademacher_1e6": 1.0,
    "op/random_bernoulli_1e6": 1.0,
    "op/random_truncated_normal_1e6": 1.0,
    "op/random_randint_1e6": 1.0,
    "op/random_choice_1e6": 1.0,
    "op/random_choice_with_p_1e5": 1.0,
    "op/random_beta_1e5": 1.0,
    "op/random_dirichlet_1e4": 1.0,
    "op/random_poisson_1e5": 1.0,
    "op/random_poisson_large_1e5": 1.0,
    "op/random_binomial_1e5": 1.0,
    "op/random_binomial_large_1e5": 1.0,
    "op/random_orthogonal_100": 1.0,
    "op/random_multivariate_normal_1e5": 1.0,
}

VALUES = {"start/import_over_engine": 1.3, "walk/cold_jit_functions": 155}

# Why a goal is out of reach, where that was found.
LIMITS: dict[str, str] = {
    "start/import": "NumPy and jaxlib alone, `start/engine`, take 0.24 of JAX's import",
    "start/import_first_op": "NumPy and jaxlib alone, `start/engine`, take 0.2 of it",
    "eager/sin": "a call of one compiled program in JAX too, which the engine makes",
    "eager/jvp_mlp3": "14 compiled rules; the engine's calls are a third of it, traces the rest",
    "dispatch/numpy_arg": "arguments are copied, as the engine may read them late; JAX does not",
    "model/scan60_scalars": "60 arguments and results take 0.13 of it; the engine starts threads "
    "for a loop that carries more than 64 values, as this does: 120 in place of 50 us for both",
    "op/roll": "a copy by the engine; a kernel would keep other work from fusing with it",
    "op/concat": "a copy by the engine; a kernel would keep other work from fusing with it",
    "op/conv1d": "runs at the speed of the engine's products, 107 GFLOP/s; oneDNN has 150 here",
    "op/det_batch": "LAPACK takes one matrix after the other; 2 or 4 calls are no faster",
    "op/random_permutation_1e5": "two sorts by random words, as documented; torch swaps places",
    "op/random_gamma_1e4": "draws are hashes of counters; NumPy's generator keeps a state",
}

GROUPS = {
    "start": "Starting: fresh processes, median of several; weft's disk cache is warm, as it is "
    "from a user's second run on. `engine` is the import of NumPy and jaxlib alone, and "
    "`import_over_engine` the package's import divided by it.",
    "memory": "Peak resident memory of the process that makes the first call.",
    "walk": "Named functions of the package that a cold `jit(lambda x: sin(x) * x)(x)` runs.",
    "libraries": "Whole programs written for JAX, under the switch and on JAX, process and imports "
    "included: four files of optax's tests, and examples/ecosystem/flax_digits.py. `cold` with no "
    "compiled program on disk, `warm` with those of the cold one, for both.",
    "eager": "Eager: one operation on eight numbers, or a whole transformation, without jit.",
    "trace": "Tracing: `make_jaxpr` of a function never seen before.",
    "lower": "Lowering: `jit(f).lower(...)`, tracing included.",
    "compile": "Compiling: `jit(f).lower(...).compile()` of a program no cache has seen.",
    "residual": "Temporary memory of compiled gradients, by XLA's own analysis: residuals, mostly.",
    "dispatch": "Calls of compiled functions that do next to nothing.",
    "model": "Compiled training steps and other whole programs.",
    "op": "One large operation each, compiled.",
    "devices": "Four CPU devices: calls that do next to nothing, one operation on arrays that lie "
    "on all of them, and a transformer split over a mesh by `jit` or `shard_map`: its lowering, "
    "its step, and the number of collectives in the compiled step.",
}


def is_goal(case):
    """Whether the case has a goal."""
    return case in RATIOS or case in VALUES


def judge(case, value, ratio):
    """(the goal as text, True or False or None for a figure that is not there)."""
    if case in VALUES:
        return f"≤ {VALUES[case]:g}", None if value is None else value <= VALUES[case]
    if case in RATIOS:
        return f"≤ {RATIOS[case]:g}x", None if ratio is None else ratio <= RATIOS[case]
    return "", None


def judge_best(case, ratio):
    """The same against the best peer."""
    if not case.startswith(("op/", "model/")):
        return "", None
    most = SPARSE if case.startswith("op/sparse_") else BEST
    return f"≤ {most:g}x", None if ratio is None else ratio <= most
