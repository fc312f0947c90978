"""Errors name the function that was called, or one that users know, and no function within it.

Each public function is called with an operand that it cannot take, as its first one.
"""

import importlib
import inspect
import warnings

import pytest

import weft
import weft.numpy as jnp

MODULES = """
numpy numpy.linalg numpy.fft lax lax.linalg nn scipy.fft scipy.linalg scipy.signal scipy.special
scipy.stats image
""".split()  # noqa: SIM905
WRONG = {
    "text": "abc",
    "object": type("Unknown", (), {})(),
    "key": weft.random.key(0),
    "keys": weft.random.split(weft.random.key(0), 3),
    "scalar": jnp.float32(1),
    "empty": jnp.zeros(0),
    "complex": jnp.ones((2, 3), jnp.complex64),
}
GOOD = jnp.eye(3)
# What the message is about where it is not a function: a conversion of a value to Python's.
OF_PYTHON = {
    "float()",
    "int()",
    "bool()",
    "index()",
    "complex()",
    "iter()",
    "x[...]",
    "ufunc",
    "numpy",
    "len()",
}
# Operations that are named as in a program, which the message shows the operand of.
OF_PROGRAMS = {
    "convert_element_type",
    "not",
    "and",
    "or",
    "xor",
    "neg",
    "sub",
    "select_n",
    "array",
    "regularized_incomplete_beta",
}


def list_functions(home):
    module = importlib.import_module(f"weft.{home}")
    for name in sorted(module.__all__):
        fun = getattr(module, name)
        theirs = (getattr(fun, "__module__", None) or "").startswith("numpy")
        if callable(fun) and not isinstance(fun, type) and not theirs:
            yield name, fun


PUBLIC = {home: dict(list_functions(home)) for home in MODULES}
# A function may be called by its name in another module, as `conj` of lax by `conjugate` of numpy.
KNOWN = {name for names in PUBLIC.values() for name in names} | OF_PYTHON | OF_PROGRAMS
# They serve public functions and have other names than these; nobody calls them by accident.
INNER = {"unstack", "gather", "moveaxis"}


def read_name(fun, args):
    """The word that the message of a call begins with; the empty string if it is not ours."""
    try:
        weft.eval_shape(lambda: fun(*args))
    except Exception as error:
        ours = type(error).__module__.startswith(("weft", "builtins"))
        word, colon, _ = str(error).partition(": ")
        known = ours and colon and " " not in word and word != "make_jaxpr"  # a call of this file
        return word if known else ""
    return ""


@pytest.mark.parametrize("home", MODULES)
def test_errors_name_public_functions(home, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # some of the functions write files
    monkeypatch.setattr("weft.errors.find_expression", lambda: None)
    wrong = []
    for name, fun in PUBLIC[home].items():
        try:
            parameters = inspect.signature(fun).parameters.values()
        except (TypeError, ValueError):
            continue
        if any(p.default is p.empty and p.kind is p.KEYWORD_ONLY for p in parameters):
            continue
        count = max(1, sum(p.default is p.empty and p.kind < p.VAR_POSITIONAL for p in parameters))
        for kind, x in WRONG.items():
            with warnings.catch_warnings(), weft.config.scope(hints=False):
                warnings.simplefilter("ignore")
                found = read_name(fun, (x, *[GOOD] * (count - 1)))
            if found and found != name and (found in INNER or found not in KNOWN):
                wrong.append(f"{home}.{name}({kind}): {found}")
    assert not wrong, "\n".join(wrong)
