"""Whole programs of numerical work, each in the forms that users of a library would write.

A module is a program. `sizes` says how large it is made, `make(size, rng)` returns its inputs:
Python integers (steps, iterations) are static, all else is an argument of the compiled function;
inputs of 64 bits ask for them to be on. Its forms leave the inputs as they are:

- `program(xp, *inputs)`: the same text for NumPy and jnp; or else
- `numpy_form(*inputs)` and `jax_form(jax, *inputs)`, `jax` being a package with JAX's API;
- `torch_form(torch, *inputs)`, where PyTorch is a natural choice;
- `loops(*inputs)`, which Numba compiles, where loops are natural.

`gradient` names the argument by which the scalar result is differentiated, where users do that.
`differs(got, expected)` is True if a result is wrong, where the size of differences does not tell;
`tolerance` is the relative difference that results may have, where it is not the usual one.
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
