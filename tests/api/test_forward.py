"""`jvp` where operations are applied one by one: rules are compiled, from their second use on."""

import numpy as np

import weft
import weft.numpy as jnp
from weft.api import tape

X = np.float32([[0.5, -1.0, 2.0]])


def test_rules_are_compiled_once_and_give_the_same():
    weft.clear_caches()
    fun = lambda x: (jnp.sinh(x) * 1.5).sum()
    for _ in range(3):
        out, dot = weft.jvp(fun, (X,), (X,))
        np.testing.assert_allclose(out, (np.sinh(X) * 1.5).sum(), rtol=1e-6)
        np.testing.assert_allclose(dot, (np.cosh(X) * X * 1.5).sum(), rtol=1e-6)
    rules = list(tape._RULES.values())
    assert len(rules) == 3 and all(rule.call for rule in rules)  # sinh, mul, reduce_sum


def test_a_zero_tangent_stays_a_zero():
    def fun(x, n):
        place = jnp.argmax(x)  # has none
        return jnp.where(x > 0, 1.0, 2.0) * n, x[0, place] * n

    for _ in range(2):
        _, (a, b) = weft.jvp(fun, (X, 3), (X, np.zeros((), weft.float0)))
        assert not np.any(a) and float(b) == 6.0
