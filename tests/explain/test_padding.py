"""The share of padding in the report on `jit(f, sizes=...)`."""

import numpy as np

import weft
import weft.numpy as jnp


def test_the_share_of_padding():
    f = lambda x, w: (jnp.sin(x) @ w).sum(0)
    jitted, x, w = weft.jit(f, sizes="(n, _), (...)"), jnp.ones((96, 8)), jnp.ones((8, 8))
    whole = weft.explain.compile(jitted)(x, w).padding
    assert whole.flops < 0.2 and whole.bytes < 0.3 and whole.wasted == 0 == whole.copying
    report = weft.explain(jitted, runs=1)(jnp.ones((65, 8)), w)
    found = report.padding
    assert [tuple(v) for v in found.variables] == [("n", 65, 96)]
    assert found.held == 4 * (96 * 8 + 64 + 8) and found.wasted == 4 * 31 * 8
    assert 0.25 < found.flops < 0.5 and 0.2 < found.bytes < 0.6 and found.copying > 0
    text = str(report)
    assert "Padding\n" in text and "992 B of the 3.36 kB" in text and "% of a call" in text
    np.testing.assert_allclose(jitted(x, w), f(x, w), 1e-4)


def test_calls_that_are_not_padded():
    jitted = weft.jit(lambda x: x.sum(), sizes="n")
    assert weft.explain.compile(jitted)(jnp.ones(0)).padding is None
