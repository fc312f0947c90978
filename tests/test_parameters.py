"""Parameters of public functions and methods have JAX's names and positions.

tests/golden/parameters.json has JAX's (tools/make_parameters.py). weft accepts each keyword of JAX,
and positional parameters have the same positions; DIFFERENT has the exceptions with reasons.
"""

import importlib
import inspect
import json
from pathlib import Path

import pytest

FILE = Path(__file__).parent / "golden" / "parameters.json"
DIFFERENT = {
    "core.eval_jaxpr": ("no keyword propagate_source_info", "lines of a program always stay"),
    "experimental.jet.unzip2": ("no keyword xys", "a helper that is public by accident"),
    "experimental.ode.optimal_step_size": (
        "no keyword mean_error_ratio, no keyword safety, safety is not by position, "
        "no keyword ifactor, ifactor is not by position, no keyword dfactor, "
        "dfactor is not by position, no keyword order, order is not by position",
        "a helper that is public by accident",
    ),
    "export.export": ("no keyword _override_lowering_rules", "private"),
    "export.Exported.mlir_module": (
        "no keyword serialized, serialized is not by position",
        "the module is kept as bytes only",
    ),
    "ref.swap": ("no keyword _function_name, _function_name is not by position", "private"),
    "stages.Lowered.compile": (
        "no keyword device_assignment",
        "the devices are those of the arguments",
    ),
    "stages.Traced.lower": ("no keyword _private_parameters", "private"),
    "vmap": ("no keyword sum_match, sum_match is not by position", "is about sums over devices"),
}


def resolve(name):
    """Return the parameters of weft's object with a JAX name; None if weft or Python lacks them.

    test_coverage.py tests missing names. The object itself is not a parameter of a method.
    """
    owner, _, key = name.replace("jax", "weft", 1).rpartition(".")
    module, _, cls = owner.rpartition(".")
    try:
        is_class = isinstance(vars(importlib.import_module(module or owner)).get(cls), type)
        home = getattr(importlib.import_module(module), cls) if is_class else None
        found = getattr(home or importlib.import_module(owner), key)
        mine = dict(inspect.signature(found).parameters)
    except (ImportError, AttributeError, TypeError, ValueError):
        return None
    static = classmethod | staticmethod
    if is_class and not isinstance(inspect.getattr_static(home, key, None), static):
        del mine[next(iter(mine))]
    return mine


def compare(text, mine):
    """Return the parameters of JAX that weft lacks; "" if there are none."""
    kinds = {p.kind.name for p in mine.values()}
    named = {k: p for k, p in mine.items() if p.kind.name not in ("POSITIONAL_ONLY",)}
    places = [k for k, p in mine.items() if p.kind.name.startswith("POSITIONAL")]
    wrong, place = [], 0
    for parameter in text.split():
        name = parameter.strip("*/!=")
        if parameter.startswith("*"):
            continue
        if "/" not in parameter and name not in named and "VAR_KEYWORD" not in kinds:
            wrong.append(f"no keyword {name}")
        if "!" in parameter:
            continue
        there = places[place] if place < len(places) else None
        place += 1
        if there is None and "VAR_POSITIONAL" not in kinds:
            wrong.append(f"{name} is not by position")
        elif there is not None and "/" not in parameter and name in places and there != name:
            wrong.append(f"{there} in the place of {name}")
    return ", ".join(dict.fromkeys(wrong))


JAX = json.loads(FILE.read_text())
MODULES = sorted({name.rpartition(".")[0] for name in JAX})


@pytest.mark.parametrize("module", MODULES)
def test_parameters_are_those_of_jax(module):
    wrong = {}
    for name, text in JAX.items():
        mine = resolve(name) if name.rpartition(".")[0] == module else None
        if mine is not None and (found := compare(text, mine)):
            wrong[name.removeprefix("jax.")] = found
    expected = {k: v[0] for k, v in DIFFERENT.items() if f"jax.{k}".rpartition(".")[0] == module}
    assert wrong == expected
