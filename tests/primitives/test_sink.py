"""dce_sink: its operand stays in programs, and nothing else changes."""

import numpy as np
import pytest

import weft
from weft import lax, make_jaxpr


def f(x, **kwargs):
    lax.dce_sink({"a": x * 2, "b": x}, **kwargs)
    return x + 1


def names(fun, *args):
    return [e.primitive.name for e in make_jaxpr(fun)(*args).eqns]


@pytest.mark.parametrize("kwargs", [{}, {"prevent_mlir_dce": True}])
def test_results_are_the_same(kwargs):
    g = lambda x: f(x, **kwargs)
    x = np.arange(3, dtype=np.float32)
    assert lax.dce_sink(x, **kwargs) is None
    for h in (g, weft.jit(g), weft.vmap(g), weft.jit(weft.vmap(g)), weft.checkpoint(g)):
        np.testing.assert_array_equal(h(x), x + 1)
        np.testing.assert_array_equal(weft.grad(lambda x, h=h: h(x).sum())(x), np.ones(3))
    np.testing.assert_array_equal(weft.jvp(g, (x,), (x,))[1], x)
    steps = lambda c, _: (g(c), None)
    np.testing.assert_array_equal(lax.scan(steps, x, None, length=2)[0], x + 2)


def test_it_stays():
    assert names(f, 1.0) == ["mul", "dce_sink", "dce_sink", "add"]
    assert "dce_sink" in names(weft.grad(f), 1.0)
    assert weft.jit(f).lower(1.0).as_text().count("stablehlo.multiply") == 1
    kept = weft.jit(lambda x: f(x, prevent_mlir_dce=True)).lower(1.0)
    assert '"dce_sink"' in kept.as_text() and "multiply" in kept.compile().as_text()
