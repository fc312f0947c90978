"""Run the examples of a module's docstrings, with the names that they use as they are."""

import doctest
import types

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
