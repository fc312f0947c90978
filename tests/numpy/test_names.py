"""The list of public names of weft.numpy: where each is defined, and what its docstring names."""

import inspect

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.numpy.names import HOMES


def test_functions_are_listed_under_the_module_that_defines_them():
    functions = [(n, getattr(jnp, n), home) for home, names in HOMES.items() for n in names.split()]
    moved = [
        (name, home)
        for name, f, home in functions
        if hasattr(f, "__code__") and f.__module__ not in (home, "weft.numpy.promotion")
    ]
    assert not moved


def test_completion_offers_functions_not_files():
    jnp.pad, jnp.eye
    listed = set(dir(jnp))
    assert {"pad", "eye", "einsum", "sum", "float32", "newaxis", "linalg", "ndarray"} <= listed
    assert not listed & {"padding", "grids", "fused", "ufuncs", "methods", "names"}


def parameters(fun):
    try:
        return list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):  # NumPy's universal functions say nothing
        return None


@pytest.mark.parametrize("folder", ["", "linalg", "fft"])
def test_docstrings_name_the_parameters_that_numpy_lacks(folder):
    ours, theirs = (getattr(m, folder) if folder else m for m in (jnp, np))
    silent = []
    for name in dir(ours):
        f, like = getattr(ours, name), getattr(theirs, name, None)
        known = parameters(like) if inspect.isfunction(f) and callable(like) else None
        if known is not None and f is not like and f.__module__ != "weft.dtypes":
            extra = set(parameters(f)[1:]) - {*known, "args", "kwargs"}
            silent += [(name, p) for p in extra if p not in f.__doc__]
    assert not silent


@pytest.mark.parametrize(
    "name, hint",
    [
        ("matrix", "two-dimensional arrays and x @ y; jnp.block for blocks"),
        ("in1d", r"jnp.isin\(x.ravel\(\), y\)"),
        ("isnat", "np.isnat: arrays here hold numbers only"),
        ("long", "jnp.int_"),
        ("lexists", ""),
    ],
)
def test_names_of_numpy_that_are_missing_say_what_to_use(name, hint):
    text = f"has no attribute '{name}'" + (rf"\. Hint: use {hint}\.$" if hint else "$")
    with pytest.raises(AttributeError, match=text):
        getattr(jnp, name)


def test_every_hint_is_for_a_name_that_is_missing():
    from weft.numpy.absent import INSTEAD

    names = [n for names in INSTEAD for n in names.split()]
    assert len(names) == len(set(names)) and not set(names) & set(dir(jnp))


def test_functions_have_their_public_names():
    """Also those that are another one under a second name, such as `absolute`."""
    for module in (weft, jnp, jnp.linalg, jnp.fft, weft.lax, weft.tree, weft.tree_util):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isfunction(found):
                assert found.__name__ == found.__qualname__ == name
