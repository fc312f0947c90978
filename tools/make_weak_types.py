"""Write tests/golden/weak_types.json: the types of results of jax.numpy for mixed operands.

Run it in an environment that has jax: `python tools/make_weak_types.py`. A row has a function and
its operands: `pi` is a Python int (`pb`, `pf`: bool, float), `Sf4` an array of float32, `Wf4` a
weakly typed one. `~` marks a weak result, `-` a refused call.
"""

import json
import pathlib

import jax
import numpy as np

NUMBERS = {"pb": True, "pi": 2, "pf": 0.5}
UNARY = "pb pi pf Wi4 Wf4 Sb Si1 Sf2"
BINARY = """
pi-pi pi-Si1 pi-Si4 pi-Sf4 pf-Sf2 pf-Si4 Sb-pi pi-Wi4 Sb-Wi4 Si1-Wf4 Wi4-Wi4 Wf4-Wi4 Sb-Sf2
"""
LEFT_OUT = """
arange array_repr array_str asarray copy dtype empty empty_like eye frombuffer fromfile fromfunction
fromiter frompyfunc fromstring full get_printoptions identity iterable load ndarray ones
printoptions save savez set_printoptions tri ufunc vectorize zeros
"""


def operand(kind: str) -> object:
    """A number, or the type of an array."""
    if kind in NUMBERS:
        return NUMBERS[kind]
    dtype = np.dtype(kind[1:].replace("b", "?"))
    return jax.ShapeDtypeStruct((3,), dtype, weak_type=kind[0] == "W")


def describe(function: object, kinds: list[str]) -> str:
    """The types of a call's results."""
    operands = [operand(kind) for kind in kinds]
    arrays = [i for i, x in enumerate(operands) if isinstance(x, jax.ShapeDtypeStruct)]

    def call(*given: object) -> object:
        every = list(operands)
        for i, x in zip(arrays, given, strict=True):
            every[i] = x
        return function(*every)

    try:
        leaves = jax.tree.leaves(jax.eval_shape(call, *[operands[i] for i in arrays]))
    except Exception:
        return "-"
    return " ".join(f"{x.dtype.name}{'~' * x.weak_type}" for x in leaves if hasattr(x, "dtype"))


def list_rows() -> dict[str, str]:
    """All rows."""
    rows = {}
    for name in dir(jax.numpy):
        function = getattr(jax.numpy, name)
        own = getattr(function, "__module__", None) or "jax"
        if name[0] == "_" or name in LEFT_OUT.split() or not callable(function) or own[:3] != "jax":
            continue
        if isinstance(function, type):
            continue
        calls = [[kind] for kind in UNARY.split()] + [pair.split("-") for pair in BINARY.split()]
        for kinds in calls:
            found = describe(function, kinds)
            if found and found != "-":
                rows[f"{name} {' '.join(kinds)}"] = found
    return rows


if __name__ == "__main__":
    path = pathlib.Path(__file__).parents[1] / "tests" / "golden" / "weak_types.json"
    path.write_text(json.dumps(list_rows(), indent=0) + "\n")
