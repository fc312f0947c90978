"""Programs after references became values; nothing is copied."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax, ref
from weft.control.scan import scan_p
from weft.core.ref import AbstractRef, StateEffect
from weft.errors import MissingRule
from weft.passes.check import check_jaxpr
from weft.passes.dce import dce_jaxpr
from weft.passes.discharge import discharge_jaxpr, has_state


def staged(f, *args):
    return weft.make_jaxpr(f)(*args).jaxpr


def bodies(r, s, rows, x):
    """All kinds of primitives that hold programs, with references read and written in each."""
    lax.fori_loop(0, 3, lambda i, _: r.__setitem__(i, r[i] + s[0]), None)
    lax.while_loop(lambda i: r[0] < 3, lambda i: (ref.addupdate(r, 0, x[0]), i + 1)[1], 0)
    lax.cond(x[0] > 0, lambda: r.__setitem__(0, s[1]), lambda: None)
    lax.scan(lambda c, row: (c + row[0], ref.swap(row, 1, c)), x[1], rows)
    weft.jit(weft.checkpoint(lambda: ref.addupdate(r, 2, s[2])))()
    own = weft.new_ref(x)
    own[0] += r[0]
    return weft.freeze(own)


def arguments():
    return jnp.zeros(3), jnp.arange(1.0, 4.0), jnp.ones((2, 2)), jnp.array([1.0, 2.0])


def test_what_is_left_is_pure():
    args = arguments()
    jaxpr = staged(bodies, *map(weft.new_ref, args[:3]), args[3])
    before = str(jaxpr)
    check_jaxpr(jaxpr)
    plain, written = ref.discharge_state(jaxpr)
    check_jaxpr(plain)
    assert written == (0, 2) and has_state(jaxpr) and not has_state(plain)
    assert not any(type(e) is StateEffect for e in plain.effects)
    assert plain.in_avals == [a.aval for a in args] and "Ref{" not in str(plain)
    assert str(jaxpr) == before and ref.discharge_state(jaxpr)[0] is plain
    # the last results are what the references hold
    out, r, rows = plain(*args)
    refs = [weft.new_ref(x) for x in args[:3]]
    np.testing.assert_allclose(out, bodies(*refs, args[3]))
    for got, want in ((r, refs[0]), (args[1], refs[1]), (rows, refs[2])):
        np.testing.assert_allclose(got, want[...])


def test_what_is_only_read_is_not_carried():
    args = arguments()
    jaxpr = staged(bodies, *map(weft.new_ref, args[:3]), args[3])
    plain = dce_jaxpr(ref.discharge_state(jaxpr)[0])[0]
    loops = [e for e in plain.eqns if e.primitive.name == "scan"]
    assert [e.params["num_consts"] for e in loops][0] == 1  # s
    assert [a.aval.shape for a in loops[0].invars] == [(3,), (3,), ()]
    assert next(e for e in plain.eqns if e.primitive.name == "while").params["cond_nconsts"] == 0


def test_references_may_stay():
    refs = weft.new_ref(jnp.ones(2)), weft.new_ref(jnp.ones(2))
    jaxpr = staged(lambda a, b: a.__setitem__(0, b[0]), *refs)
    plain, written = ref.discharge_state(jaxpr, (False, True))
    assert written == () and [type(a) is AbstractRef for a in plain.in_avals] == [True, False]
    assert plain.eqns[-1].primitive.name == "swap"


def test_a_primitive_without_the_rule_says_so(monkeypatch):
    monkeypatch.setattr(type(scan_p), "discharge", None)
    r = weft.new_ref(jnp.ones(2))
    f = lambda: lax.scan(lambda c, _: (c + r[0], None), 0.0, None, 3)[0]
    with pytest.raises(MissingRule, match="scan: has no `discharge` rule"):
        weft.jit(f)()


def test_programs_without_references_are_not_walked(monkeypatch):
    """Lowering discharges nothing then, and a derivative of a jitted function does not either."""
    monkeypatch.setattr("weft.passes.discharge.Discharge", None)
    f = weft.jit(lambda x: lax.fori_loop(0, 2, lambda i, c: jnp.sin(c) * i, x))
    weft.jit(weft.vmap(weft.grad(f)))(jnp.ones(5))
    jaxpr = weft.make_jaxpr(f)(1.0).jaxpr
    assert not has_state(jaxpr)
    with pytest.raises(TypeError):
        discharge_jaxpr(jaxpr)


@pytest.mark.usefixtures("as_for_users")
def test_a_compiled_loop_copies_nothing():
    """By XLA's buffer assignment: the result is in the argument's memory, and little else is."""
    n = 100_000
    r = weft.new_ref(jnp.zeros(n))

    @weft.jit
    def f(r):
        lax.fori_loop(0, 1000, lambda i, _: r.__setitem__(i * 7, r[i] + 1.5), None)

    stats = f.lower(r).compile().memory_analysis()
    assert stats.alias_size_in_bytes == 4 * n and stats.temp_size_in_bytes < 1000
    f(r)
    assert int(jnp.count_nonzero(r[...])) == 1000
