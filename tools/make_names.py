"""Write what one release of JAX added, changed and removed: tests/golden/names_0.12.json.

    python tools/make_names.py OLD NEW     interpreters with JAX 0.10.2 and with JAX 0.12.0

Each JAX is run as a black box: the names that its public modules and classes list, and the
parameters that `inspect.signature` gives.
"""

import json
import pathlib
import subprocess
import sys

GOLDEN = pathlib.Path(__file__).parents[1] / "tests" / "golden" / "names_0.12.json"

# Run by each interpreter. Prints, for each public module and class, its names and their parameters.
LIST = """
import importlib, inspect, json, os, pkgutil, types, warnings
warnings.simplefilter("ignore")
os.environ["JAX_PLATFORMS"] = "cpu"
import jax

SKIPPED = (
    "jax._src", "jax.cloud_tpu_init", "jax.collect_profile", "jax.experimental.array_serialization",
    "jax.experimental.colocated_python", "jax.experimental.jax2tf", "jax.experimental.mosaic",
    "jax.experimental.pallas", "jax.experimental.roofline", "jax.experimental.source_mapper",
    "jax.extend.mlir", "jax.experimental.sparse.", "jax.tools",
)
CLASSES = (
    "custom_jvp custom_vjp stages.Traced stages.Lowered stages.Compiled Array sharding.Mesh "
    "sharding.AbstractMesh sharding.PartitionSpec export.Exported extend.core.Jaxpr "
    "core.ShapedArray"
)

def read_parameters(x):
    try:
        parameters = inspect.signature(x).parameters.values()
    except (TypeError, ValueError):
        return ""
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return " ".join(marks.get(p.kind, "") + p.name for p in parameters)

def read_names(owner):
    found = {}
    for name in dir(owner):
        try:
            x = None if name.startswith("_") else getattr(owner, name)
        except Exception:  # of names that are on their way out
            continue
        home = str(getattr(x, "__module__", None) or "jax")
        if x is not None and not isinstance(x, types.ModuleType) and home.startswith("jax"):
            found[name] = read_parameters(x)
    return found

modules = {"jax": jax}
for info in pkgutil.walk_packages(jax.__path__, "jax.", onerror=lambda name: None):
    last = info.name.rpartition(".")[2]
    if info.name.startswith(SKIPPED) or last.startswith("_") or last.endswith("_test"):
        continue
    try:
        modules[info.name] = importlib.import_module(info.name)
    except ImportError:
        pass  # of an optional package
for path in CLASSES.split():
    owner = jax
    for part in path.split("."):
        owner = getattr(owner, part)
    modules["jax." + path] = owner
print(json.dumps({name: read_names(module) for name, module in sorted(modules.items())}))
"""


def list_names(python: str) -> dict[str, dict[str, str]]:
    """Return the names of the JAX of an environment, with parameters, by module and class."""
    run = subprocess.run([python, "-c", LIST], capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def compare_names(old: dict, new: dict) -> dict:
    """Return names added and removed, and parameters: by module, name, [old, new]."""
    found: dict[str, dict] = {"added": {}, "removed": {}, "parameters": {}}
    for module in sorted({*old, *new}):
        before, after = old.get(module, {}), new.get(module, {})
        if added := [n for n in after if n not in before]:
            found["added"][module] = " ".join(added)
        if removed := [n for n in before if n not in after]:
            found["removed"][module] = " ".join(removed)
        changed = {
            name: [before[name], after[name]]
            for name in after
            if before.get(name) and after[name] and before[name] != after[name]
            if "*args **kwargs" not in (before[name], after[name])
        }
        if changed:
            found["parameters"][module] = changed
    return found


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(compare_names(*map(list_names, sys.argv[1:3])), indent=1) + "\n")
