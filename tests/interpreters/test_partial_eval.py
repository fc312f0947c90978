"""Partial evaluation under the names that libraries use."""

import numpy as np

import weft
import weft.numpy as jnp
from weft import make_jaxpr
from weft.extend import core
from weft.interpreters import partial_eval

X = np.linspace(-1, 1, 3).astype(np.float32)


def test_names_of_partial_eval():
    aval = weft.typeof(X)
    c = jnp.ones(3)
    jaxpr, avals, consts = partial_eval.trace_to_jaxpr_dynamic(lambda x: [x * c], [aval])
    assert avals == [aval] and consts == [c]
    assert len(partial_eval.convert_constvars_jaxpr(jaxpr).invars) == 2
    assert partial_eval.abstract_eval_fun(lambda x, *, n: [x] * n, aval, n=2) == [aval, aval]
    closed = partial_eval.close_jaxpr(make_jaxpr(jnp.sin)(X).jaxpr)
    assert isinstance(closed, core.ClosedJaxpr)


def test_partial_evaluation_does_what_is_known():
    known, unknown = partial_eval.PartialVal.known, partial_eval.PartialVal.unknown
    aval = weft.core.ShapedArray((), np.float32)
    fun = lambda x, y: [x * y, y + 1, jnp.cos(x)]
    jaxpr, outs, consts = partial_eval.trace_to_jaxpr_nounits(
        fun, [unknown(aval), known(jnp.float32(3))]
    )
    assert [v.is_known() for v in outs] == [False, True, False]
    assert outs[1].get_known() == 4 and outs[0].get_aval() == aval == outs[2].aval
    assert consts == [3] and [e.primitive.name for e in jaxpr.eqns] == ["mul", "cos"]
    _, outs, _ = partial_eval.trace_to_jaxpr_nounits(
        fun, [known(1.0), known(2.0)], instantiate=True
    )
    assert not any(v.is_known() for v in outs)
