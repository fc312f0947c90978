"""The public names of weft, weft.lax and weft.numpy: each resolves; few modules load early."""

import subprocess
import sys

import pytest

import weft
import weft.lax
import weft.numpy as jnp

LATE = (
    "contraction",
    "numpy.editing",
    "numpy.elementwise",
    "grids",
    "numpy.indexing",
    "numpy.manipulation",
    "padding",
    "numpy.reductions",
    "numpy.refs",
    "sets",
    "conv",
    "window",
    "api.while_loop",
    "extend",
    "interpreters",
    "scipy",
)
LISTED = [weft, weft.lax, weft.lax.linalg, jnp, jnp.linalg, jnp.fft]


@pytest.mark.parametrize("module", LISTED, ids=lambda m: m.__name__)
def test_every_public_name_resolves_once_and_dir_shows_no_other(module):
    assert dir(module) == sorted(set(module.__all__)) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_every_name_of_lax_is_documented():
    assert not [n for n in weft.lax.__all__ if not (getattr(weft.lax, n).__doc__ or "").strip()]


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
    late += ["weft.display.page", "weft.display.printing", "weft.display.show", "fractions"]
    assert not loaded & {*late, "scipy", "opt_einsum", "logging", "matplotlib"}


def test_the_first_use_of_a_module_imports_only_what_it_needs():
    # Python asks a package for the name of a module before it imports the module. The package must
    # not look for a name to suggest: that would import every namespace.
    code = (
        "import sys, weft, weft.numpy as jnp; jnp.ones((2, 3)).max(1).tolist();"
        "from weft.numpy import sets; from weft.scipy import ndimage; print(*sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(out.stdout.split())
    assert {"weft.numpy.reductions", "weft.numpy.indexing", "weft.scipy.ndimage"} <= loaded
    late = {f"weft.{n}" for n in ("random", "nn", "scipy.special", "util.elsewhere", "scipy.stats")}
    assert sorted(loaded & {*late, "weft.numpy.absent", "difflib"}) == []


def test_a_hint_is_looked_for_when_the_error_is_read():
    """Libraries ask `hasattr(jax, ...)`, and `from package import submodule` asks for a name."""
    code = """if True:
        import pickle, sys, weft, weft.numpy as jnp
        from weft.numpy import reductions
        assert not hasattr(jnp, "softmax") and not hasattr(weft, "no_such_name")
        assert not {"weft.nn", "weft.random", "weft.util.elsewhere", "difflib"} & {*sys.modules}
        try:
            jnp.softmax
        except AttributeError as error:
            found = error
        text = "module 'weft.numpy' has no attribute 'softmax'. Hint: weft.nn.softmax."
        assert str(found) == str(pickle.loads(pickle.dumps(found))) == text, found
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dir_of_objects_shows_what_is_for_users():
    shown = {}

    def f(x):
        shown["tracer"] = dir(x)
        return x

    weft.make_jaxpr(f)(jnp.ones(3))
    mesh = weft.make_mesh((1,), ("x",))
    shown["mesh"], shown["sharding"] = dir(mesh), dir(weft.NamedSharding(mesh, weft.P()))
    shown["ref"], shown["key"] = dir(weft.new_ref(jnp.ones(3))), dir(weft.random.key(0))
    hidden = (
        "arguments check_live concrete is_live origin owner variable delete sdy of_engine whole "
        "hold owned words"
    )
    for name, names in shown.items():
        assert len(names) == len(set(names)), name
        assert not set(names) & set(hidden.split()) or name == "key", name
    assert "words" not in shown["key"] and {"sum", "at", "shape", "dtype"} <= set(shown["tracer"])


def test_dir_of_config_shows_options_and_how_to_set_them():
    from weft.options import OPTIONS

    names = [n for n in dir(weft.config) if n[0] != "_"]
    assert names == sorted(set(names)) and "read_environment" not in names
    assert {o.name for o in OPTIONS} | {"update", "scope", "values"} <= set(names)
    assert all(hasattr(weft.config, name) for name in names)
