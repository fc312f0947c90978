"""The IR itself: fields, replacement, evaluation, the order in which values are freed."""

import gc
import weakref

import numpy as np
import pytest

from tests.core import toys
from tests.core.toys import add, cond, cos, f32, i32, jit, make, mul, sin
from weft.core import jaxpr as ir
from weft.core.jaxpr import ClosedJaxpr, DropVar, Eqn, Jaxpr, Literal, Var, eval_jaxpr, last_uses
from weft.core.stage import close_jaxpr
from weft.errors import ShapeError


def test_fields():
    held = np.ones(2, np.float32)
    closed = toys.make_closed(lambda x, y: (add(x, held), y), f32(2), i32())
    jaxpr = closed.jaxpr
    assert [v.aval for v in jaxpr.constvars] == [f32(2)]
    assert jaxpr.in_avals == closed.in_avals == [f32(2), i32()]
    assert jaxpr.out_avals == closed.out_avals == [f32(2), i32()]
    assert closed.consts == closed.literals == [held]
    assert closed.eqns is jaxpr.eqns
    assert jaxpr.jaxpr is jaxpr
    assert jaxpr.consts == []


def test_replace_makes_another():
    jaxpr = make(lambda x: (sin(x), cos(x)), f32(), name="both")
    jaxpr.memo["found"] = 1
    fewer = jaxpr.replace(outvars=jaxpr.outvars[:1])
    assert (len(jaxpr.outvars), len(fewer.outvars)) == (2, 1)
    assert (fewer.name, fewer.out_avals, fewer.memo) == ("both", [f32()], {})
    eqn = jaxpr.eqns[0]
    other = eqn.replace(primitive=cos)
    assert (eqn.primitive, other.primitive, other.source) == (sin, cos, eqn.source)
    closed = ClosedJaxpr(fewer)
    assert closed.replace(jaxpr=jaxpr).jaxpr is jaxpr


def test_consts_must_match_constvars():
    with pytest.raises(ShapeError, match="one value for each constvar; got 1 for 0"):
        ClosedJaxpr(make(sin, f32()), [1.0])


def test_close_jaxpr():
    closed = toys.make_closed(lambda x: add(x, np.ones(2, np.float32)), f32(2))
    jaxpr = close_jaxpr(closed.jaxpr)
    assert (jaxpr.constvars, len(jaxpr.invars)) == ([], 2)
    assert close_jaxpr(jaxpr) is jaxpr


def test_effects_come_from_what_is_held_too():
    def prints(x):
        toys.print_.apply(x)
        return sin(x)

    plain = make(sin, f32())
    call = make(lambda x: jit(prints, f32())(x), f32())
    branch = make(lambda x: cond.apply(0, x, branches=(plain, call))[0], f32())
    assert plain.effects == frozenset()
    assert call.effects == branch.effects == ClosedJaxpr(branch).effects == {"Print"}
    assert call.eqns[0].effects == frozenset()
    assert list(ir.subjaxprs(branch)) == [plain, call]


def test_a_jaxpr_is_applied_under_the_current_trace():
    inner = make(lambda x, y: (mul(sin(x), y), 2.0, y), f32(), f32())
    outer = make(lambda x: tuple(inner(x, 3.0)), f32())
    assert str(outer).endswith("c:f32[] = mul b 3.0 in (c, 2.0, 3.0) }")
    const = np.float32(4)
    closed = ClosedJaxpr(
        inner.replace(constvars=inner.invars[1:], invars=inner.invars[:1]), [const]
    )
    again = make(lambda x: tuple(closed(x)), f32())
    assert str(again).endswith("c:f32[] = mul b 4.0 in (c, 2.0, 4.0) }")


def test_the_number_of_arguments():
    with pytest.raises(ShapeError, match="one argument for each invar; got 2 for 1"):
        make(sin, f32())(1.0, 2.0)


def test_last_uses():
    x, y, z, unused = (Var(f32()) for _ in range(4))
    eqns = [
        Eqn(sin, [x], {}, [y]),
        Eqn(mul, [x, y], {}, [z]),
        Eqn(add, [z, Literal(1.0)], {}, [unused]),
    ]
    jaxpr = Jaxpr([], [x], [z], eqns)
    assert [set(vs) for vs in last_uses(jaxpr)] == [set(), {x, y}, {unused}]
    assert last_uses(jaxpr) is last_uses(jaxpr)


def test_evaluation_lets_go_of_values_after_their_last_use():
    class Value:
        """Stands for an array."""

    class Make(toys.Like):
        def impl(self, *args, **params):
            gc.collect()
            alive.append(sum(ref() is not None for ref in made))
            value = Value()
            made.append(weakref.ref(value))
            return [value]

    made, alive = [], []
    prim = Make("make")
    variables = [Var(f32()) for _ in range(6)]
    eqns = [Eqn(prim, [a], {}, [b]) for a, b in zip(variables, variables[1:], strict=False)]
    jaxpr = Jaxpr([], variables[:1], variables[-1:], eqns)
    (out,) = eval_jaxpr(jaxpr, (), Value())
    assert alive == [0, 1, 1, 1, 1]
    assert made[-1]() is out


def test_memo_jaxpr_remembers_on_the_jaxpr():
    calls = []

    @ir.memo_jaxpr
    def verb_jaxpr(jaxpr, n):
        """What it does."""
        calls.append(n)
        return n

    jaxpr = make(sin, f32())
    assert [verb_jaxpr(jaxpr, n) for n in (1, 2, 1)] == [1, 2, 1]
    assert calls == [1, 2]
    assert (verb_jaxpr.__name__, verb_jaxpr.__doc__) == ("verb_jaxpr", "What it does.")


def test_jaxprs_die():
    jaxpr = make(lambda x: add(sin(x), 1.0), f32())
    str(jaxpr), last_uses(jaxpr)
    ref = weakref.ref(jaxpr)
    del jaxpr
    gc.collect()
    assert ref() is None


def test_reprs():
    assert repr(Literal(2.0)) == "Literal(2.0:f32[])"
    assert repr(Var(i32(2))).endswith(":i32[2]")
    assert isinstance(DropVar(f32()), Var)
    assert repr(sin) == str(sin) == "sin"
