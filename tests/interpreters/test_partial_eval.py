"""Partial evaluation under the names that libraries use."""

import numpy as np

import weft
import weft.numpy as jnp
from weft import make_jaxpr
from weft.extend import core
from weft.extend.core.primitives import call_p
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


def test_programs_without_what_is_not_used():
    held = np.ones(2, np.float32)
    jaxpr = weft.make_jaxpr(lambda x, y: (x + jnp.asarray(held), y * 2))(1.0, 2.0)
    program, consts, ins = partial_eval.dce_jaxpr_consts(jaxpr.jaxpr, [False, True])
    assert (consts, ins, len(program.eqns)) == ([False], [False, True], 1)
    assert partial_eval.dce_jaxpr_consts(jaxpr.jaxpr, [True, False])[1:] == ([True], [True, False])
    pruned = partial_eval.prune_closed_jaxpr_outputs(jaxpr, [False, True])
    assert [float(y) for y in pruned(1.0, 2.0)] == [4]
    swapped = partial_eval.move_binders_to_back(jaxpr, [True, False])
    assert float(swapped(2.0, 1.0)[1]) == 4
    eqn = weft.make_jaxpr(lambda x, y: call_p.bind(x, y, call_jaxpr=jaxpr))(1.0, 2.0).eqns[0]
    used, new = partial_eval.dce_jaxpr_call_rule([False, True], eqn)
    assert used == [False, True] and len(new.outvars) == len(new.invars) == 1
    assert partial_eval.dce_jaxpr_closed_call_rule([False, False], eqn) == ([False, False], None)


def test_a_program_in_two():
    jaxpr = weft.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(x) * y))(1.0, 2.0)
    known, later, unknown, types = partial_eval.partial_eval_jaxpr_nounits(jaxpr, [False, True])
    assert unknown == [False, True] and list(map(str, types)) == ["f32[]"]
    sine, *between = known(1.0)
    assert np.isclose(sine, np.sin(1)) and np.isclose(later(2.0, *between)[0], 2 * np.cos(1))
    assert partial_eval.partial_eval_jaxpr_nounits(jaxpr, [False, True], True)[2] == [True, True]
