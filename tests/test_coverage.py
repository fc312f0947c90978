"""The public names of JAX that are here, and why others are not: docs/coverage.md.

`python tests/test_coverage.py` writes the page. A name that the page says is there must be there,
and a name that is missing must have a reason. golden/names.json holds JAX's names by module.
"""

import fnmatch
import functools
import importlib
import json
import pathlib
import re

import pytest

import weft

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent / "docs" / "coverage.md"
NAMES = {k: v.split() for k, v in json.loads((HERE / "golden" / "names.json").read_text()).items()}

DEVICES = "of many devices: new or experimental in JAX, or a detail of how it is built"
RANDOM = "of random numbers: new or experimental in JAX, or a detail of how it is built"
SCOPE = "out of scope"
FLAG = "a flag of JAX's internals; weft has its own few options"
UNDECIDED = "new or experimental in JAX, and not decided on"
INNER = "a detail of how JAX is built, which has no counterpart here"

NEWER = "of a version of JAX after 0.10.2, whose interface weft has"
PALLAS = "Pallas is out of scope: operations of lax, which XLA fuses, or jax.ffi for kernels"
WORDS = "keys are arrays of a dtype whose operations are on words: random_wrap, random_unwrap"
TOKENS = "tokens are values of type i32[] here: lax.create_token, lax.after_all"

# (module, name) patterns and the reason why what they match may be missing; the first one counts.
REASONS = [
    *((module, name, NEWER) for module, names in {
        "jax": "CompilerEffortLevel Inline custom_remat",
        "jax.ad_checkpoint": "checkpoint_name_fwd",
        "jax.custom_vjp": "*",
        "jax.experimental.hijax": (
            "GradAccum HiPrim MappingSpec NullAccum RefAccum ValAccum bdims_at_front jvp_from_lin "
            "linearize_from_jvp unmap_avals vjp_from_* vmap_rule"
        ),
        "jax.experimental.layout": "explicit_layout",
        "jax.experimental.xla_metadata": "fuse_limit must_fuse_call xla_metadata_call2",
        "jax.extend.core*": (
            "create_call_primitive eval_jaxpr_transpose register_call_primitive_rules polynomial_p"
        ),
        "jax.ffi": "abstract_token",
        "jax.interpreters.batching": "batch_jaxpr_axes batch_subtrace zero_if_mapped",
        "jax.interpreters.partial_eval": "lower_jaxpr lower_jaxpr2 new_eqn_recipe",
        "jax.lax": "polynomial polynomial_p psum_scatter_start",
        "jax.random": "Key",
        "jax.sharding": "UnreducedKind no_collectives",
        "jax.stages.Traced": "closure_convert physicalize with_consts_as_arg",
    }.items() for name in names.split()),
    ("jax.extend.pallas", "*", PALLAS),
    ("jax.extend.core", "*Token", TOKENS),
    *(("*", name, WORDS) for name in ("random_seed_p", "random_gamma_p")),
    ("*", "ragged_all_to_all_p", "lax.ragged_all_to_all is made of other operations"),
    ("jax.lax", "stage_p", "lax.stage is no operation of programs"),
    ("jax.experimental.transfer", "*", "the engine's server needs Python code of JAX's own"),
    ("jax.*jax2tf*", "*", SCOPE),
    ("jax.experimental.hijax", "*", INNER),
    ("jax.random", "*", RANDOM),
    ("jax.nn*", "*", RANDOM),
    ("jax.example_libraries.*", "*", RANDOM),
    ("jax.experimental.jet", "*", INNER),
    ("jax.extend.random", "*", RANDOM),
    ("*", "*random_*", RANDOM),
    ("*", "*rng_*", RANDOM),
    ("*", "*threefry*", RANDOM),
    ("*", "*RandomAlgorithm*", RANDOM),
    ("*", "*prng*", RANDOM),
    ("*", "*key_reuse*", RANDOM),
    ("jax", "random*", RANDOM),
    ("jax", "nn*", RANDOM),
    ("jax.sharding", "*", DEVICES),
    ("jax.distributed", "*", DEVICES),
    ("jax.experimental.layout", "*", DEVICES),
    ("jax.experimental.mesh_utils", "*", DEVICES),
    ("jax.experimental.multihost_utils", "*", DEVICES),
    ("jax.experimental.shard_map", "*", DEVICES),
    ("jax.extend.sharding", "*", DEVICES),
    *(("*", name, DEVICES) for name in (
        "*shard*", "*Shard*", "*mesh*", "Mesh*", "*pmap*", "P", "*psum*", "*pmean*", "*pmax*",
        "*pmin*", "*permute*", "*all_gather*", "*all_to_all*", "*axis_index*", "axis_size",
        "*pcast*", "*pbroadcast*", "pswapaxes", "pshuffle", "precv", "psend", "*after_all*",
        "*token*", "*Token*", "SPMDAxisContext", "AxisContext", "device_put_*", "process_*",
        "make_array_from*", "*is_fully_*", "addressable_*", "global_*", "host_*", "*_formats",
    )),
    ("jax.interpreters.*", "*", INNER),
    ("jax.extend.*", "*", INNER),
    ("jax.api_util", "*", INNER),
    ("jax.core", "*", INNER),
    ("jax.test_util", "*", INNER),
    ("jax.Array (dunder)", "*", INNER),
    ("*", "*transfer_guard*", FLAG),
    *(("*", name, FLAG) for name in (
        "CompilerEffortLevel", "Inline", "allow_f16_reductions", "array_garbage_collection_guard",
        "jax2tf_*", "make_user_context", "no_execution", "no_tracing", "softmax_custom_jvp",
        "thread_guard",
    )),
    *(("*", name, INNER) for name in ("checkpoint_name_fwd", "approx_top_k_p", "lojax", "dtype")),
    *((module, "*", UNDECIDED) for module in (
        "jax", "jax.experimental*", "jax.custom_vjp", "jax.lax", "jax.stages.Traced",
    )),
]  # fmt: skip


def home(module: str) -> object:
    """The object whose attributes stand for a module's names."""
    traced = weft.jit(abs).trace(1.0)
    special = {
        "jax.stages.Traced": lambda: traced,
        "jax.stages.Lowered": lambda: traced.lower(),
        "jax.stages.Compiled": lambda: traced.lower().compile(),
        "jax.Array": lambda: weft.numpy.ones(1),
        "jax.Array (dunder)": lambda: weft.numpy.ones(1),
        "jax.Array.at[idx]": lambda: weft.numpy.ones(1).at[0],
        "jax.jit(f)": lambda: weft.jit(abs),
        "jax.tree_util (PyTreeDef methods)": lambda: weft.tree_util.tree_structure(0),
        "jax.config (flags)": lambda: weft.config,
        "jax.export.Exported": lambda: weft.export.export(weft.jit(abs))(1.0),
    }
    if module in special:
        return special[module]()
    place = module.replace("jax", "weft", 1)
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError:
        return functools.reduce(getattr, place.split(".")[1:], weft)


def has(owner: object, name: str) -> bool:
    """Whether a name, with dots or not, is there; being refused for this value counts."""
    try:
        functools.reduce(getattr, name.split("."), owner)
    except (AttributeError, ImportError):
        return False
    except Exception:
        return True
    return True


def missing(module: str) -> list[str]:
    """The names of a module that are not there."""
    try:
        owner = home(module)
    except (AttributeError, ImportError):
        return NAMES[module]
    return [name for name in NAMES[module] if not has(owner, name)]


def reason(module: str, name: str) -> str | None:
    """Why a name may be missing."""
    for modules, names, why in REASONS:
        if fnmatch.fnmatchcase(module, modules) and fnmatch.fnmatchcase(name, names):
            return why
    return None


def page() -> str:
    """docs/coverage.md, as things are."""
    gaps = {module: missing(module) for module in NAMES}
    total = sum(map(len, NAMES.values()))
    there = total - sum(map(len, gaps.values()))
    lines = [
        "# Names",
        "",
        f"Of the {total} public names of JAX, module by module, {there} are here. `python "
        "tests/test_coverage.py` writes this page; a test",
        "holds it to what it says. What is missing stands below, with the reason.",
        "",
        "| JAX | names | here |",
        "|---|---:|---:|",
        *[f"| `{m}` | {len(ns)} | {len(ns) - len(gaps[m])} |" for m, ns in NAMES.items()],
        "",
        "## Missing",
        "",
    ]
    for module, names in gaps.items():
        for why in dict.fromkeys(reason(module, n) for n in names):
            listed = " ".join(f"`{n}`" for n in names if reason(module, n) == why)
            lines.append(f"- `{module}` ({why}): {listed}")
    return "\n".join(lines) + "\n"


def said_missing() -> dict[str, set[str]]:
    """The names that the page says are missing."""
    found: dict[str, set[str]] = {}
    for module, names in re.findall(r"^- `([^`]+)` \(.*?\): (.*)$", PAGE.read_text(), re.M):
        found.setdefault(module, set()).update(re.findall(r"`([^`]+)`", names))
    return found


@pytest.mark.parametrize("module", NAMES)
def test_names(module):
    gaps = missing(module)
    lost = [name for name in gaps if name not in said_missing().get(module, ())]
    assert not lost, f"docs/coverage.md says that {module} has {lost}"
    unexplained = [name for name in gaps if reason(module, name) is None]
    assert not unexplained, f"{module} has no {unexplained}, and REASONS does not say why"


if __name__ == "__main__":
    PAGE.write_text(page())
