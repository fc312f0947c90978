"""Whole programs of numerical work, each in the forms that users of a library would write.

A module is a program. `sizes` has its sizes, and `make(size, rng)` returns its inputs: Python
integers (steps, iterations) are static; all other inputs are arguments of the compiled function.
Inputs of 64 bits require 64-bit types. The forms do not change the inputs:

- `program(xp, *inputs)`: the same text for NumPy and jnp; or else
- `numpy_form(*inputs)` and `jax_form(jax, *inputs)`, `jax` being a package with JAX's API;
- `torch_form(torch, *inputs)`, where PyTorch is a natural choice;
- `loops(*inputs)`, which Numba compiles, where loops are natural.

`gradient` names the argument in which users differentiate the scalar result, if they do.
`differs(got, expected)` is True if a result is wrong, if the size of differences does not tell;
`tolerance` is the relative difference that results may have, if it is not the usual one.
"""

import importlib
import pkgutil
from types import ModuleType

FOLDERS = "polybench", "science"


def load_programs() -> dict[str, ModuleType]:
    """All programs by name."""
    found = {}
    for folder in FOLDERS:
        package = importlib.import_module(f"{__name__}.{folder}")
        for module in pkgutil.iter_modules(package.__path__):
            found[module.name] = importlib.import_module(f"{package.__name__}.{module.name}")
    return found
