"""The public names of JAX that weft has, and the reasons for missing ones: docs/coverage.md.

`python tests/test_coverage.py` writes the page. A name that the page lists as present must exist,
and a missing name must have a reason. golden/names.json holds JAX's names by module, and
golden/names_0.12.json the changes of JAX 0.12 since 0.10.2 (tools/make_names.py writes it).
"""

import fnmatch
import functools
import importlib
import inspect
import json
import pathlib
import re

import pytest

import weft

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent / "docs" / "coverage.md"
NEW = json.loads((HERE / "golden" / "names_0.12.json").read_text())
NAMES = {k: v.split() for k, v in json.loads((HERE / "golden" / "names.json").read_text()).items()}

DEVICES = "of many devices: new or experimental in JAX, or a detail of how it is built"
RANDOM = "of random numbers: new or experimental in JAX, or a detail of how it is built"
SCOPE = "out of scope"
FLAG = "a flag of JAX's internals; weft has its own few options"
UNDECIDED = "new or experimental in JAX, and not decided on"
INNER = "a detail of how JAX is built, which has no counterpart here"

LOGS = "not here yet, for pullbacks with logs are new: custom_vjp.defremat, defvjp_with_accums"
HIJAX = (
    "helpers for rules of JAX's interpreters; a HiPrim here defines jvp, vjp_fwd or batch itself"
)
STARTED = "collectives in two parts: XLA on CPUs has none; lax.psum_scatter"
THUNKS = "programs of GPU thunks, which JAX itself compiles for GPUs only"
KINDS = (
    "values that have to be reduced over devices are summed here, never their maximum or minimum"
)
CALLS = "CallPrimitive of JAX 0.10.2 is here; weft's own primitives that hold programs are classes"
PARTIAL = "a step of JAX's own lowering and partial evaluation, which has no counterpart here"
PALLAS = "Pallas is out of scope: operations of lax, which XLA fuses, or jax.ffi for kernels"
WORDS = "keys are arrays of a dtype whose operations are on words: random_wrap, random_unwrap"
TOKENS = "tokens are values of type i32[] here: lax.create_token, lax.after_all"

# (module, name) patterns and the reason why matching names may be missing; the first one counts.
REASONS = [
    *((module, name, why) for why, names in {
        "XLA's levels of effort are compiler options: jit(f, compiler_options={...})": (
            "jax:CompilerEffortLevel"
        ),
        "not among the names that JAX 0.12.0.1 lists": "jax:custom_remat",
        "not here yet: checkpoint_name": (
            "jax.ad_checkpoint:checkpoint_name_fwd"
        ),
        LOGS: "jax.custom_vjp:def*_with_logs",
        HIJAX: (
            "jax.experimental.hijax:MappingSpec jax.experimental.hijax:RefAccum "
            "jax.experimental.hijax:bdims_at_front jax.experimental.hijax:jvp_from_lin "
            "jax.experimental.hijax:linearize_from_jvp jax.experimental.hijax:unmap_avals "
            "jax.experimental.hijax:vjp_from_* jax.experimental.hijax:vmap_rule"
        ),
        "XLA chooses layouts; jit(f).lower(x).compile().input_formats says which": (
            "jax.experimental.layout:explicit_layout jax.core.ShapedArray:layout"
        ),
        "XLA schedules; lax.optimization_barrier orders two operations": (
            "jax.experimental.overlap:*"
        ),
        THUNKS: "jax.experimental.thunky:*",
        CALLS: (
            "jax.extend.core*:create_call_primitive jax.extend.core*:eval_jaxpr_transpose "
            "jax.extend.core*:register_call_primitive_rules"
        ),
        "lax.polynomial is made of multiplications and additions": "jax.*:polynomial_p",
        "tokens are values of type i32[] here: lax.create_token, lax.after_all": (
            "jax.ffi:abstract_token"
        ),
        PARTIAL: (
            "jax.interpreters.batching:* jax.interpreters.partial_eval:lower_jaxpr* "
            "jax.interpreters.partial_eval:new_eqn_recipe jax.stages.Traced:physicalize"
        ),
        STARTED: "jax.lax:psum_scatter_start",
        KINDS: (
            "jax.sharding:UnreducedKind jax.sharding.PartitionSpec:unreduced_kind"
        ),
        "not here yet; Lowered.as_text shows which collectives a program has": (
            "jax.sharding:no_collectives"
        ),
        "not here yet: jax.profiler.trace writes profiles, jax.profiler.ProfileData reads them": (
            "jax.profiler:ProfileLine jax.profiler:ProfileSession jax.profiler:export_profile_data"
        ),
        "a jaxpr is mapped by functions of weft.passes": "jax.extend.core.Jaxpr:*",
        "types are changed by operations: weft.reshard": "jax.core.ShapedArray:reshard",
    }.items() for module, name in (pattern.split(":") for pattern in names.split())),
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


# Parameters that JAX 0.12 added and which are not here: (module and name, parameter), the reason.
PARAMETERS = {
    **dict.fromkeys(("jax P", "jax.experimental.multihost_utils P", "jax.sharding *"), KINDS),
    "jax ShapeDtypeStruct": "a parameter that is private to JAX",
    "jax*custom_gradient": LOGS,
    "jax.core ShapedArray": "XLA chooses layouts",
    "jax.experimental.hijax ShapedArray": "XLA chooses layouts",
    "jax.core.ShapedArray raise_val": "the same parameter under another name",
    "jax.custom_vjp defvjp": "the rules are mapped in the generic way here always",
    "jax.distributed initialize": "WEFT_COORDINATOR_SECRET says who may join: docs/security.md",
    "jax.experimental.compute_on *": "planned: jax.device_put to a memory of the host",
    "jax.extend.core *": "two classes, Jaxpr and ClosedJaxpr: docs/coming-from-jax.md",
    "jax.interpreters.*": INNER,
    "jax.lax erfc": "not here yet: erfc has one accuracy",
    "jax.lax reduce_m*": "weft.reshard lays the result out",
    "jax.numpy histogram": "weft.reshard lays the result out",
    "jax.sharding.PartitionSpec update": KINDS,
    "jax.stages Traced": "weft makes Traced values itself",
}


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
        "jax.extend.core.Jaxpr": lambda: traced.jaxpr,
        "jax.sharding.Mesh": lambda: weft.make_mesh((1,), ("x",)),
        "jax.sharding.AbstractMesh": lambda: weft.sharding.AbstractMesh((1,), ("x",)),
        "jax.sharding.PartitionSpec": lambda: weft.P(),
        "jax.core.ShapedArray": lambda: weft.typeof(1.0),
        "jax.custom_vjp": lambda: weft.custom_vjp,
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
    """Return True if a name, dotted or not, exists; being rejected for this value counts."""
    try:
        functools.reduce(getattr, name.split("."), owner)
    except (AttributeError, ImportError):
        return False
    except Exception:
        return True
    return True


def newer_names() -> dict[str, list[str]]:
    """The names that JAX 0.12 added, by module."""
    return {module: names.split() for module, names in NEW["added"].items()}


def lacks(module: str, name: str) -> bool:
    """Return True if a name that JAX 0.12 added, of a module or class, is missing."""
    try:
        return not has(home(module), name)
    except (AttributeError, ImportError):
        return True


def newer_parameters() -> list[tuple[str, str]]:
    """The parameters that JAX 0.12 added and which are not here: (module and name, parameter)."""
    found = []
    for module, functions in NEW["parameters"].items():
        for name, (old, new) in functions.items():
            added = [p for p in new.split() if p not in old.split()]
            if added == ["*values"] or lacks(module, name):  # of enumerations, in Python 3.13
                continue
            own = inspect.signature(getattr(home(module), name)).parameters
            takes_all = any(p.kind is p.VAR_KEYWORD for p in own.values())
            found += [(f"{module} {name}", p) for p in added if p not in own and not takes_all]
    return found


def parameter_reason(name: str) -> str | None:
    """Why parameters of a function may be missing."""
    return next((why for k, why in PARAMETERS.items() if fnmatch.fnmatchcase(name, k)), None)


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
    for module, names in [*gaps.items(), *only_newer().items()]:
        for why in dict.fromkeys(reason(module, n) for n in names):
            listed = " ".join(f"`{n}`" for n in names if reason(module, n) == why)
            lines.append(f"- `{module}` ({why}): {listed}")
    lines += [
        "",
        "## What JAX 0.11 and 0.12 added",
        "",
        "Found by running JAX 0.10.2 and 0.12.0.1: `python tools/make_names.py OLD NEW`. Under "
        "jaxlib 0.12 `jax.__version__` is 0.12.0.",
        "",
        "| of JAX 0.12 | here | not here, for the reason above |",
        "|---|---|---|",
    ]
    for module, names in newer_names().items():
        gone = [n for n in names if lacks(module, n)]
        cells = [[n for n in names if n not in gone], gone]
        shown = [" ".join(f"`{n}`" for n in cell) for cell in cells]
        lines.append(f"| `{module}` | {' | '.join(shown)} |")
    lines += ["", "Parameters of JAX 0.12 that are not here:", ""]
    for name in dict.fromkeys(name for name, _ in newer_parameters()):
        listed = " ".join(f"`{p}`" for n, p in newer_parameters() if n == name)
        lines.append(f"- `{name.replace(' ', '.')}` ({parameter_reason(name)}): {listed}")
    gone = "; ".join(f"`{m}`: {n}" for m, n in NEW["removed"].items())
    lines += ["", f"What JAX 0.12 no longer has stays here where it was here. Gone there: {gone}."]
    return "\n".join(lines) + "\n"


def only_newer() -> dict[str, list[str]]:
    """The names that JAX 0.12 added, are missing, and are not in golden/names.json."""
    found = {
        m: [n for n in names if n not in NAMES.get(m, ()) and lacks(m, n)]
        for m, names in newer_names().items()
    }
    return {m: names for m, names in found.items() if names}


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


def test_what_jax_012_added_is_here_or_has_a_reason():
    for module, names in newer_names().items():
        gone = [name for name in names if lacks(module, name)]
        unexplained = [name for name in gone if reason(module, name) is None]
        assert not unexplained, f"{module} has no {unexplained}, and REASONS does not say why"
        lost = [name for name in gone if name not in said_missing().get(module, ())]
        assert not lost, f"docs/coverage.md says that {module} has {lost}"
    open_ones = [row for row in newer_parameters() if parameter_reason(row[0]) is None]
    assert not open_ones, "PARAMETERS does not say why"


if __name__ == "__main__":
    PAGE.write_text(page())
