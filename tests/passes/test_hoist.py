"""Loop-invariant code out of loops."""

import weft
from weft import lax
from weft import numpy as jnp
from weft.core.source import source_line
from weft.passes.check import check_jaxpr
from weft.passes.hoist import hoist_invariants

w = jnp.ones((3, 3))


def hoisted(f, *args):
    """Return the operations before the loop, and the body's, after the pass."""
    jaxpr = weft.make_jaxpr(f)(*args).jaxpr
    after = hoist_invariants(jaxpr)
    check_jaxpr(after)
    (loop,) = [e for e in after.eqns if not e.primitive.memoize_type]
    body = loop.params.get("jaxpr") or loop.params["body_jaxpr"]
    names = lambda eqns: [e.primitive.name for e in eqns if e is not loop]
    return names(after.eqns), names(body.eqns), after


def test_out_of_scan_with_the_line_it_was_written_on():
    def f(w, xs):
        with weft.named_scope("model"):
            step = lambda c, x: (c * jnp.sum(jnp.sin(w)) + x, x)
            return lax.scan(step, jnp.float32(0), xs)

    before, body, after = hoisted(f, w, jnp.arange(4.0))
    assert before == ["sin", "reduce_sum"] and body == ["mul", "add"]
    assert source_line(after.eqns[0].source_info.traceback).startswith("test_hoist.py:")
    assert after.eqns[0].source_info.name_stack == "model"


def test_out_of_while_and_of_nested_loops():
    def f(w, x):
        inner = lambda c: lax.fori_loop(0, 2, lambda _, c: c + jnp.sum(jnp.exp(w)), c)
        return lax.while_loop(lambda c: c < 9, inner, x)

    before, body, _ = hoisted(f, w, 0.0)
    assert before == ["exp", "reduce_sum"] and "exp" not in body


def test_what_is_carried_unchanged_is_the_same_in_each_turn():
    def f(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + c[1] * c[1], c[1]), (x, x))

    before, body, _ = hoisted(f, 2.0)
    assert before == ["mul"] and body == ["add"]


def test_what_stays():
    def f(key, w, xs):
        def step(c, x):
            weft.debug.print("{}", jnp.sum(w))  # an effect; the sum is the same in each turn
            big = jnp.broadcast_to(w, (5, 3, 3))  # larger than its operands
            return c + x, (big * x).sum() + weft.random.uniform(key)

        return lax.scan(step, jnp.float32(0), xs)

    before, body, after = hoisted(f, weft.random.key(0), w, jnp.arange(2.0))
    assert "debug_print" in body and "broadcast_in_dim" in body and "reduce_sum" in before
    assert after.effects  # and keys have their type
    assert any("key" in str(v.aval) for v in after.invars)


def test_a_loop_without_such_code_is_left_as_it_is():
    jaxpr = weft.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x))(1.0).jaxpr
    assert hoist_invariants(jaxpr) is jaxpr
