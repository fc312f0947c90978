"""The names users open weft by: every one resolves, and late ones are listed where they live."""

import importlib
import subprocess
import sys

import pytest

import weft
import weft.lax
import weft.numpy as jnp

LATE = (
    "contraction",
    "grids",
    "index_tricks",
    "padding",
    "sets",
    "conv",
    "window",
    "extend",
    "interpreters",
    "scipy",
)


@pytest.mark.parametrize("home", [home for home, names in jnp.LATER.items() if names])
def test_late_names_of_numpy_are_those_of_their_module(home):
    assert sorted(jnp.LATER[home].split()) == sorted(importlib.import_module(home).__all__)


def test_every_name_of_lax_resolves_and_is_documented():
    assert set(weft.lax.__all__) <= set(dir(weft.lax))
    bare = [n for n in weft.lax.__all__ if not (getattr(weft.lax, n).__doc__ or "").strip()]
    assert not bare


def test_completion_offers_functions_not_files():
    jnp.pad, jnp.eye
    listed = set(dir(jnp))
    assert {"pad", "eye", "einsum", "sum", "float32", "newaxis"} <= listed
    assert not listed & {"padding", "grids", "fused", "ufuncs", "methods"}


def test_late_names_can_be_imported():
    from weft.lax import conv_general_dilated, reduce_window
    from weft.numpy import einsum, unique

    assert all(map(callable, (conv_general_dilated, reduce_window, einsum, unique)))
    assert jnp.einsum is einsum


@pytest.mark.parametrize("module", [weft, weft.lax, jnp], ids=lambda m: m.__name__)
def test_an_unknown_name_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        module.no_such_name


def test_importing_weft_leaves_out_what_few_programs_use():
    code = "import sys, weft; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(out.stdout.split())
    assert "weft.numpy" in loaded
    late = [f"weft.{p}{n}" for n in LATE for p in ("numpy.", "primitives.", "")]
    assert not loaded & {*late, "scipy", "opt_einsum", "logging", "matplotlib"}
