"""Tokens: they go through programs and transformations, and come in the order that they say."""

import numpy as np
import pytest

import weft
from weft import lax, make_jaxpr


def follow(x):
    """sin(x), after cos(x)."""
    before, token = lax.optimization_barrier((lax.cos(x), lax.create_token(x)))
    x, _ = lax.optimization_barrier((x, lax.after_all(token, lax.create_token())))
    return lax.sin(x) + 0 * before


def test_tokens_go_through_transformations():
    x = np.linspace(0, 1, 3, dtype=np.float32)
    for f in (follow, weft.jit(follow), weft.vmap(follow), weft.jit(weft.vmap(follow))):
        np.testing.assert_allclose(f(x), np.sin(x), rtol=1e-6)
        np.testing.assert_allclose(weft.jvp(f, (x,), (x,))[1], x * np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(weft.grad(lambda x: follow(x).sum())(x), np.cos(x), rtol=1e-6)
    tokens = np.zeros(3, np.int32)
    assert weft.vmap(lax.after_all, out_axes=None)(tokens) == 0
    names = [e.primitive.name for e in make_jaxpr(follow)(1.0).eqns]
    assert names.count("create_token") == 2 and names.count("after_all") == 1


def test_what_is_no_token():
    assert lax.after_all() == 0
    with pytest.raises(
        TypeError, match="after_all: operands must be tokens; got f32.*Hint: lax.cr"
    ):
        lax.after_all(1.0)
