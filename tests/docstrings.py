"""Run the examples of a module's docstrings, with the names that they take for granted."""

import doctest
import types
from collections.abc import Callable

import numpy as np

import weft
import weft.experimental

NAMES = dict(
    weft=weft,
    jnp=weft.numpy,
    lax=weft.lax,
    nn=weft.nn,
    random=weft.random,
    sparse=weft.experimental.sparse,
    np=np,
)


def check_examples(module: types.ModuleType) -> int:
    """Fail unless all examples of a module are right; how many there are."""
    flags = doctest.NORMALIZE_WHITESPACE
    done = doctest.testmod(module, extraglobs=NAMES, optionflags=flags)
    assert not done.failed
    return done.attempted


def check_function(name: str, fun: Callable) -> int:
    """Fail unless the examples of a function are right; return their number."""
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    test = doctest.DocTestParser().get_doctest(fun.__doc__, dict(NAMES), name, None, None)
    done = runner.run(test)
    assert not done.failed
    return done.attempted
