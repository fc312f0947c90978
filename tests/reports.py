"""Small programs, as people report them to JAX, and a description of their results.

tests/golden/reports.txt has a program on each line: a name and an expression in the names that
`make_names` returns. tools/make_reports.py runs them on JAX, and test_reports.py here. This module
imports neither.
"""

import collections
import dataclasses
import functools
import operator
import pathlib
import types
import typing
from typing import Any

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "golden"
PROGRAMS, ANSWERS = FOLDER / "reports.txt", FOLDER / "reports.json"


def read_programs() -> dict[str, str]:
    """Return the expression of each program by its name."""
    return dict(line.split(": ", 1) for line in PROGRAMS.read_text().splitlines() if line)


def make_names(jax: types.ModuleType) -> dict[str, Any]:
    """Return the names that the programs use, those of `jax` first."""
    jnp, random = jax.numpy, jax.random

    def g(f: Any, *xs: Any, n: int = 0) -> Any:
        """The gradient of the sum of a function's results."""
        return jax.grad(lambda *a: jnp.sum(f(*a)), argnums=n)(*map(jnp.asarray, xs))

    def ee(f: Any, *args: Any) -> Any:
        """A function that was exported, written and read."""
        written = jax.export.export(jax.jit(f))(*args).serialize(vjp_order=2)
        return jax.export.deserialize(written)

    def sym(shape: str, **options: Any) -> Any:
        return jax.ShapeDtypeStruct(jax.export.symbolic_shape(shape, **options), jnp.float32)

    class Nd:
        def __init__(self, a: Any):
            self.a = a

    @dataclasses.dataclass
    class Pt:
        x: typing.Any
        y: typing.Any

    jax.tree_util.register_dataclass(Pt, ["x"], ["y"])
    jax.tree_util.register_pytree_node(Nd, lambda n: ((n.a,), None), lambda _, c: Nd(*c))
    return {
        "jax": jax, "jnp": jnp, "lax": jax.lax, "random": random, "jsp": jax.scipy,
        "tu": jax.tree_util, "export": jax.export, "ref": jax.new_ref,
        "grad": jax.grad, "jit": jax.jit, "vmap": jax.vmap, "hessian": jax.hessian,
        "jacfwd": jax.jacfwd, "jacrev": jax.jacrev, "ShapeDtypeStruct": jax.ShapeDtypeStruct,
        "custom_jvp": jax.custom_jvp, "custom_vjp": jax.custom_vjp,
        "np": np, "nan": np.nan, "inf": np.inf, "collections": collections, "operator": operator,
        "dataclasses": dataclasses, "functools": functools, "partial": functools.partial,
        "Nd": Nd, "Pt": Pt, "g": g, "ee": ee, "sym": sym,
        "K": random.key(0), "k0": random.PRNGKey(0),
        "x5": jnp.arange(5.0), "seg": jnp.array([0, 0, 5, -1, 2]),
        "x": np.array([3.0, 1.0, np.nan, 2.0, -np.inf, -0.0, 0.0], np.float32),
    }  # fmt: skip


def run_program(jax: types.ModuleType, names: dict[str, Any], text: str) -> Any:
    """Return the description of a program's result, or `{"error": class}`."""
    try:
        return describe(jax, eval(text, dict(names)))
    except Exception as error:
        return {"error": [c.__name__ for c in type(error).__mro__]}


def describe(jax: types.ModuleType, out: Any) -> list:
    """Return a result as plain data: its structure, then the type and the numbers of each leaf."""
    leaves, tree = jax.tree_util.tree_flatten(out)
    return [str(tree), *[describe_leaf(jax, x) for x in leaves]]


def describe_leaf(jax: types.ModuleType, x: Any) -> list:
    """Return the type of a leaf and its numbers; complex ones as two, keys as words."""
    if not hasattr(x, "dtype"):
        return [type(x).__name__, x if isinstance(x, str | bool | int | float) else repr(x)]
    kind = f"{x.dtype}{'~' if getattr(x, 'weak_type', False) else ''}{[*x.shape]}"
    if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    x = np.asarray(x)
    if x.dtype.itemsize == 0:  # float0
        return [kind]
    if x.dtype.kind == "c":
        x = np.stack([x.real, x.imag], -1)
    if x.dtype.kind not in "biu":
        return [kind, *[float(f"{v:.7g}") for v in x.astype(float).ravel()]]
    return [kind, *x.ravel().tolist()]
