"""weft: composable transformations of Python and NumPy programs, compiled by XLA.

`import weft`, `import weft.numpy as jnp`; `grad`, `jit`, `vmap` and their kin are here.
"""

import os as _os

import numpy as _numpy  # noqa: F401  # alone it loads 25 ms faster than from within our imports

_os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # what matters is raised, not logged

from weft.xla import eager as _eager  # the bottom trace comes first  # noqa: F401, I001
from weft.api.make_jaxpr import eval_shape, make_jaxpr
from weft.api.vmap import vmap
from weft.api.contexts import (
    check_tracer_leaks,
    checking_leaks,
    debug_infs,
    debug_key_reuse,
    debug_nans,
    default_device,
    default_matmul_precision,
    default_prng_impl,
    disable_jit,
    enable_checks,
    enable_x64,
    explain_cache_misses,
    log_compiles,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    threefry_partitionable,
)
from weft.core.aval import typeof
from weft.core.trace import ensure_compile_time_eval
from weft.api.custom_gradient import closure_convert, custom_gradient
from weft.api.custom_rules import custom_jvp, custom_vjp
from weft.api.devices import (
    Device,
    block_until_ready,
    copy_to_host_async,
    default_backend,
    device_count,
    device_get,
    device_put,
    devices,
    live_arrays,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from weft.dtypes import float0
from weft.api.grad import grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from weft.api.jacobians import hessian, jacfwd, jacobian, jacrev
from weft.api.jit import clear_caches, jit
from weft.options import config
from weft.mesh.mesh import get_abstract_mesh, get_mesh, make_mesh, set_mesh, use_abstract_mesh
from weft.mesh.spec import PartitionSpec as P
from weft.mesh.sharding import NamedSharding
from weft.api.named_scope import named_call, named_scope
from weft.api.shape_struct import ShapeDtypeStruct
from weft.xla.array import Array
from weft.xla.shards import Shard
from weft import core, dtypes, errors, lax, numpy, stages, tree, tree_util  # isort: skip
from weft.util import import_lazily

__all__ = [
    "Array",
    "Device",
    "NamedSharding",
    "P",
    "ShapeDtypeStruct",
    "Shard",
    "block_until_ready",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "config",
    "copy_to_host_async",
    "core",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "clear_caches",
    "closure_convert",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "distributed",
    "dlpack",
    "dtypes",
    "effects_barrier",
    "enable_checks",
    "enable_x64",
    "errors",
    "ensure_compile_time_eval",
    "eval_shape",
    "example_libraries",
    "explain_cache_misses",
    "flatten_util",
    "float0",
    "experimental",
    "extend",
    "get_abstract_mesh",
    "get_mesh",
    "grad",
    "hessian",
    "image",
    "interpreters",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_jaxpr",
    "make_mesh",
    "memory",
    "monitoring",
    "named_call",
    "named_scope",
    "nn",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "ops",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "pure_callback",
    "random",
    "remat",
    "scipy",
    "set_mesh",
    "sharding",
    "stages",
    "test_util",
    "threefry_partitionable",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "use_abstract_mesh",
    "value_and_grad",
    "vjp",
    "vmap",
]

__version__ = "0.1.0"
__weft__ = True


__getattr__, _ = import_lazily(
    __name__,
    {
        "weft.api.checkpoint": "checkpoint remat",
        "weft.api.callbacks": "effects_barrier pure_callback",
        "weft.checkpoint_policies": "",
        "weft.ad_checkpoint": "",
        "weft.custom_batching": "",
        "weft.custom_derivatives": "",
        "weft.debug": "",
        "weft.distributed": "",
        "weft.dlpack": "",
        "weft.example_libraries": "",
        "weft.experimental": "",
        "weft.extend": "",
        "weft.flatten_util": "",
        "weft.image": "",
        "weft.interpreters": "",
        "weft.memory": "",
        "weft.monitoring": "",
        "weft.nn": "",
        "weft.ops": "",
        "weft.api.pmap": "pmap",
        "weft.profiler": "",
        "weft.random": "",
        "weft.scipy": "",
        "weft.sharding": "",
        "weft.api.arrays": (
            "make_array_from_callback make_array_from_process_local_data "
            "make_array_from_single_device_arrays"
        ),
        "weft.api.shard_map": "reshard shard_map",
        "weft.test_util": "",
        "weft.typing": "",
    },
)


def __dir__() -> list[str]:
    return __all__
