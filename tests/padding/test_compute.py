"""Results from `element` rules with sizes at run time, against the operations at true sizes."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from tests.padding.rows import fill_up
from weft import lax
from weft.core.element import Operand, Place
from weft.export.specs import symbolic_args_specs
from weft.padding.compute import compute_elements
from weft.padding.sizes import Sizes

X, AT = np.zeros((5, 3), np.float32), np.zeros((5, 1), np.int32)
NUMBERS = lax.GatherDimensionNumbers((1,), (0,), (0,))

FUNCTIONS = {
    "as it is": lambda x, i: lax.neg(x),
    "shorter": lambda x, i: lax.slice(x, (0, 0), (1, 3)),
    "along an axis": lambda x, i: lax.rev(x, (0,)),
    "of two": lambda x, i: lax.concatenate([x, x], 0),
    "by indices": lambda x, i: lax.gather(x, i, NUMBERS, (1, 3), mode="fill", fill_value=7),
    "to rows": lambda x, i: lax.reshape(x, (3, x.shape[0]), (1, 0)),
    "summed": lambda x, i: lax.reduce_max(x, (0,)),
    "product": lambda x, i: lax.dot_general(x, x, (((0,), (0,)), ((), ()))),
    "running": lambda x, i: lax.cumsum(x, 0, reverse=True),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elements_are_those_of_the_operation(name):
    fun = FUNCTIONS[name]
    jaxpr = weft.make_jaxpr(fun)(*symbolic_args_specs((X, AT), ("n, _", "n, _"))).jaxpr
    eqn = jaxpr.eqns[0]
    places = tuple([Place(f"i{k}") for k in range(eqn.outvars[0].aval.ndim)])
    operands = [Operand(k, a.aval) for k, a in enumerate(eqn.invars)]
    rules = [(places, eqn.primitive.element(places, *operands, **eqn.params)[0])]
    rng, n = np.random.default_rng(0), 5
    x = rng.normal(size=(n, 3)).astype(np.float32)
    i = rng.integers(-2, 8, (n, 1)).astype(np.int32)
    given = dict(zip(jaxpr.invars, (fill_up(x, (8, 3)), fill_up(i, (8, 1))), strict=True))
    sizes = Sizes({"n": 8}, {"n": np.int32(n)})
    (got,) = compute_elements(eqn, sizes, [given[a] for a in eqn.invars], rules)
    (want,) = eqn.primitive.apply(
        *[{0: x, 1: i}[jaxpr.invars.index(a)] for a in eqn.invars],
        **{k: Sizes({"n": n}, {}).substitute(v) for k, v in eqn.params.items()},
    )
    want = np.asarray(want)
    np.testing.assert_allclose(np.asarray(got)[tuple(map(slice, want.shape))], want, 1e-5, 1e-6)
