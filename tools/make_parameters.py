"""Write tests/golden/parameters.json: the parameters of JAX's public functions and methods.

Run it in an environment that has jax: `python tools/make_parameters.py`. A parameter is its name;
behind it `/` if it is positional only, `!` if it is a keyword only, and `=` if it has a default.
"""

import importlib
import inspect
import json
import pathlib
import types

MODULES = """
jax jax.ad_checkpoint jax.api_util jax.core jax.custom_batching jax.custom_derivatives jax.debug
jax.distributed jax.dlpack jax.dtypes jax.example_libraries.stax jax.experimental.buffer_callback
jax.experimental.checkify jax.experimental.custom_partitioning jax.experimental.jet
jax.experimental.layout jax.experimental.mesh_utils jax.experimental.multihost_utils
jax.experimental.ode jax.experimental.pjit jax.experimental.serialize_executable
jax.experimental.shard_map jax.experimental.sparse jax.experimental.sparse.linalg jax.export
jax.extend.random jax.extend.sharding jax.extend.source_info_util jax.ffi jax.flatten_util
jax.image jax.lax jax.lax.linalg jax.monitoring jax.nn jax.nn.initializers jax.numpy jax.numpy.fft
jax.numpy.linalg jax.ops jax.profiler jax.random jax.ref jax.scipy.cluster.vq jax.scipy.fft
jax.scipy.integrate jax.scipy.linalg jax.scipy.ndimage jax.scipy.optimize jax.scipy.signal
jax.scipy.sparse.linalg jax.scipy.special jax.scipy.stats jax.sharding jax.stages jax.test_util
jax.tree jax.tree_util
"""
DISTRIBUTIONS = """
bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r
laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform
vonmises wrapcauchy
"""
CLASSES = """
jax.Array jax.ShapeDtypeStruct jax.custom_jvp jax.custom_vjp jax.custom_batching.custom_vmap
jax.custom_derivatives.SymbolicZero jax.experimental.checkify.Error jax.experimental.sparse.BCOO
jax.experimental.sparse.BCSR jax.export.Exported jax.scipy.spatial.transform.Rotation
jax.scipy.spatial.transform.Slerp jax.scipy.stats.gaussian_kde jax.sharding.AbstractMesh
jax.sharding.Mesh jax.sharding.NamedSharding jax.sharding.PartitionSpec jax.stages.Compiled
jax.stages.Lowered jax.stages.Traced jax.stages.Wrapped jax.tree_util.Partial
"""
MARKS = {"POSITIONAL_ONLY": "/", "KEYWORD_ONLY": "!"}
STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}


def describe(function: object) -> str | None:
    """The parameters of a function as a text; None where Python does not know them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    texts = []
    for p in parameters:
        kind = p.kind.name
        default = "=" if p.default is not p.empty else ""
        texts.append(STARS.get(kind, "") + p.name + MARKS.get(kind, "") + default)
    return " ".join(texts)


def list_functions() -> dict[str, str]:
    """The parameters of the functions of all modules."""
    found = {}
    modules = [*MODULES.split(), *(f"jax.scipy.stats.{name}" for name in DISTRIBUTIONS.split())]
    for name in modules:
        module = importlib.import_module(name)
        for key in dir(module):
            function = getattr(module, key, None)
            if key.startswith("_") or isinstance(function, type | types.ModuleType):
                continue
            own = (getattr(function, "__module__", None) or "jax").startswith("jax")
            text = describe(function) if callable(function) and own else None
            if text is not None:
                found[f"{name}.{key}"] = text
    for name in CLASSES.split():
        module, _, key = name.rpartition(".")
        found.update(list_methods(name, getattr(importlib.import_module(module), key)))
    return found


def list_methods(name: str, cls: type) -> dict[str, str]:
    """The parameters of a class's public methods, without the one for the object itself."""
    found = {}
    for key in dir(cls):
        method = inspect.getattr_static(cls, key)
        text = describe(getattr(cls, key)) if callable(getattr(cls, key)) else None
        if text is None or key.startswith(("_", "tree_")):
            continue
        bound = isinstance(method, classmethod | staticmethod)
        found[f"{name}.{key}"] = text if bound else text.partition(" ")[2]
    return found


if __name__ == "__main__":
    path = pathlib.Path(__file__).parents[1] / "tests" / "golden" / "parameters.json"
    path.write_text(json.dumps(list_functions(), indent=0) + "\n")
