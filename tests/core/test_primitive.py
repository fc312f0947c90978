"""What a primitive says of itself, on toy programs: what it holds, and what it refers to."""

import pytest

from tests.core import toys
from tests.core.toys import cond, cos, f32, i32, make, sin
from weft.core.jaxpr import bodies_of, held_jaxprs, jaxpr_uses_axis, uses_axis
from weft.core.primitive import Body, References


class Outer(toys.Holds):
    """Binds the axis "i" for the programs that it holds."""

    def refers(self, params):
        return References(binds=("i",))


class Named(toys.Like):
    def refers(self, params):
        return References(uses=("i",))


def test_without_a_rule_all_programs_among_the_parameters_are_held():
    branches = (make(sin, f32()), make(cos, f32()))
    jaxpr = make(lambda i, x: cond.bind(i, x, branches=branches)[0], i32(), f32())
    (eqn,) = jaxpr.eqns
    assert bodies_of(eqn) == [Body(b, "branches") for b in branches]
    assert held_jaxprs(eqn) == list(branches)
    assert bodies_of(branches[0].eqns[0]) == ()


def test_a_named_axis_is_used_by_what_uses_it_and_by_what_holds_that():
    inner = make(Named("named"), f32())
    held = make(toys.jit(lambda x: Named("named")(x), f32()), f32())
    outer = Outer("outer", lambda jaxpr: jaxpr.out_avals)
    assert jaxpr_uses_axis(inner, "i") and jaxpr_uses_axis(held, "i")
    assert not jaxpr_uses_axis(held, "j") and not uses_axis(outer, {"jaxpr": held}, "i")


def test_what_a_python_function_does_is_not_known():
    class Staged(toys.Holds):
        def bodies(self, params):
            return [Body(None, runs=params["runs"])]

    prim = Staged("staged", list)
    assert uses_axis(prim, {"runs": ""}, "i") and not uses_axis(prim, {"runs": "host"}, "i")


def test_parameters_that_cannot_be_hashed_are_named():
    with pytest.raises(TypeError, match=r"sin: parameters must be hashable; got axes\."):
        sin.type_of((f32(),), {"axes": [1]})
