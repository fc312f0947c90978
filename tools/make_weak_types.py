"""Write tests/golden/weak_types.json: the types of results of JAX for mixed operands.

Run it in an environment that has jax: `python tools/make_weak_types.py`. The file has an entry for
each function of the modules in HOMES, with 32-bit and with 64-bit types, and in it a row for each
call: `pi` is a Python int (`pb`, `pf`: bool, float), `Sf4` an array of float32, `Wf4` a weakly
typed one. `~` marks a weak result, `-` a refused call.
"""

import importlib
import json
import pathlib

import jax
import numpy as np

HOMES = ("numpy", "lax", "nn", "scipy.special")
NUMBERS = {"pb": True, "pi": 2, "pf": 0.5}
CALLS = {
    "32": """
        pb pi pf Wi4 Wf4 Sb Si1 Sf2
        pi-pi pi-Si1 pi-Si4 pi-Sf4 pf-Sf2 pf-Si4 Sb-pi pi-Wi4 Sb-Wi4 Si1-Wf4 Wi4-Wi4 Wf4-Wi4 Sb-Sf2
        Sb-pi-pf Sb-Sf4-Sf4 Sf4-pi-Wf4 Si4-pi-Sf4 pi-Wf4-Wf4 pi-pi-Sf4 Si4-Si4-Si4 Wf4-Sb-Wf4
    """,
    "64": """
        pb pi pf Wi4 Wi8 Wf4 Wf8 Sb Si4 Sf4
        pi-pi pi-Si4 pi-Si8 pi-Sf4 pf-Sf4 pf-Si8 Sb-pi pi-Wi8 Si4-Wf8 Wi8-Wi8 Wf8-Wi8 Sb-Sf4 Sf4-Wf8
        Sb-pi-pf Sb-Sf4-Sf4 Sf4-pi-Wf8 Si4-pi-Sf4 pi-Wf8-Wf8 pi-pi-Sf4 Si4-Si4-Si4 Wf8-Sb-Wf8
    """,
}
LEFT_OUT = """
after_all all_gather all_to_all apply_along_axis apply_over_axes arange array_repr array_str
asarray associative_scan axis_index axis_size composite cond copy create_token
custom_linear_solve custom_root dtype empty empty_like eye fori_loop frombuffer from_dlpack
fromfile fromfunction fromiter frompyfunc fromstring full get_printoptions identity infeed
iterable load map ndarray ones optimization_barrier outfeed pbroadcast pcast piecewise
platform_dependent pmax pmean pmin ppermute precv printoptions psend pshuffle psum psum_scatter
pswapaxes pvary ragged_all_to_all reduce reduce_window rng_bit_generator rng_uniform save savez
scan set_printoptions shape_as_value stop_gradient switch tri ufunc vectorize while_loop zeros
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


def describe_calls(function: object, calls: list[str]) -> dict[str, str]:
    """The rows of a function, for each number of operands that it takes."""
    rows: dict[str, str] = {}
    for count in (1, 2, 3):
        kinds = [call.split("-") for call in calls if call.count("-") == count - 1]
        found = {"-".join(k): describe(function, k) for k in kinds}
        if any(text not in ("", "-") for text in found.values()):
            rows |= {call: text for call, text in found.items() if text}
    return rows


def list_functions() -> dict[str, object]:
    """The functions of the modules, by their names."""
    found = {}
    for home in HOMES:
        module = importlib.import_module(f"jax.{home}")
        for name in dir(module):
            function = getattr(module, name)
            own = getattr(function, "__module__", None) or "jax"
            plain = not isinstance(function, type) or hasattr(function, "dtype")
            plain = plain and callable(function) and own[:3] == "jax"
            if plain and name[0] != "_" and name[-2:] != "_p" and name not in LEFT_OUT.split():
                found[f"{home}.{name}"] = function
    return found


if __name__ == "__main__":
    entries = {}
    for width, calls in CALLS.items():
        jax.config.update("jax_enable_x64", width == "64")
        for name, function in list_functions().items():
            if rows := describe_calls(function, calls.split()):
                entries[f"{width} {name}"] = rows
    lines = [f"{json.dumps(key)}: {json.dumps(rows)}" for key, rows in entries.items()]
    path = pathlib.Path(__file__).parents[1] / "tests" / "golden" / "weak_types.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
