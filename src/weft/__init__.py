"""weft: composable transformations of Python and NumPy programs, compiled by XLA.

`import weft`, `import weft.numpy as jnp`; `grad`, `jit`, `vmap` and their kin are here. Examples in
docstrings take these two for granted, `from weft import lax, nn, random`, and `import numpy as np`.
"""

import os as _os

import numpy as _numpy  # noqa: F401  # alone it loads 25 ms faster than from within our imports

_os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # what matters is raised, not logged

from weft.util import import_lazily
from weft.util import importing as _importing

with _importing():
    from weft import options as _options  # refuses a bad variable first  # noqa: F401, I001
    from weft.run import eager as _eager  # the bottom trace comes first  # noqa: F401
    from weft import numpy as _jnp  # attaches the operators of arrays  # noqa: F401
    from weft.display import methods as _methods  # attaches how jaxprs are shown  # noqa: F401

# The public modules, and the public names by the module that defines each.
MODULES = """
ad ad_checkpoint api_util cache checkpoint_policies core custom_batching custom_derivatives
debug distributed dlpack errors example_libraries experimental explain export extend ffi
flatten_util image interpreters jaxpr lax memory monitoring nn numpy ops passes profiler
random ref scipy sharding sparsity stages test_util tree tree_util typing
"""
HOMES = {
    **{f"weft.{name}": "" for name in MODULES.split()},
    "weft.api.arrays": (
        "make_array_from_callback make_array_from_process_local_data "
        "make_array_from_single_device_arrays"
    ),
    "weft.api.callbacks": "effects_barrier pure_callback",
    "weft.api.checkpoint": "checkpoint remat",
    "weft.api.contexts": (
        "allow_f16_reductions array_garbage_collection_guard auto_pcast check_tracer_leaks "
        "checking_leaks debug_infs debug_key_reuse debug_nans default_device "
        "default_matmul_precision default_prng_impl disable_jit enable_checks enable_custom_prng "
        "enable_x64 explain_cache_misses jax2tf_associative_scan_reductions legacy_prng_key "
        "log_compiles make_user_context no_execution no_tracing numpy_dtype_promotion "
        "numpy_rank_promotion remove_size_one_mesh_axis_from_type softmax_custom_jvp thread_guard "
        "threefry_partitionable transfer_guard transfer_guard_device_to_device "
        "transfer_guard_device_to_host transfer_guard_host_to_device"
    ),
    "weft.api.custom_gradient": "closure_convert custom_gradient",
    "weft.api.custom_rules": "custom_jvp custom_vjp",
    "weft.api.devices": (
        "block_until_ready copy_to_host_async default_backend device_count device_get "
        "device_put devices host_count host_id host_ids live_arrays local_device_count "
        "local_devices process_count process_index process_indices"
    ),
    "weft.api.environment": "print_environment_info",
    "weft.api.grad": "fwd_and_bwd grad jvp linear_transpose linearize value_and_grad vjp",
    "weft.api.jacobians": "hessian jacfwd jacobian jacrev",
    "weft.api.jit": "Inline clear_caches jit",
    "weft.api.make_jaxpr": "eval_shape make_jaxpr",
    "weft.api.named_scope": "named_call named_scope",
    "weft.api.pmap": "pmap",
    "weft.api.shape_struct": "ShapeDtypeStruct",
    "weft.api.shard_map": "reshard shard_map smap",
    "weft.api.vmap": "vmap",
    "weft.api.mutable": "typeof",
    "weft.core.ref": "Ref",
    "weft.core.trace": "ensure_compile_time_eval",
    "weft.dtypes": "dtypes float0",
    "weft.mesh.client": "Device",
    "weft.mesh.mesh": "get_abstract_mesh get_mesh make_mesh set_mesh use_abstract_mesh",
    "weft.mesh.sharding": "NamedSharding",
    "weft.mesh.spec": "P",
    "weft.numpy.index_plans": "ds",
    "weft.numpy.refs": "empty_ref free_ref freeze new_ref",
    "weft.options": "config",
    "weft.sparsity.derivatives": "sparse_hessian sparse_jacobian",
    "weft.xla.array": "Array",
    "weft.xla.shards": "Shard",
}
__version__ = "0.2.0"
__weft__ = True
__getattr__, __dir__ = import_lazily(__name__, HOMES)
