"""Declarations of primitives on toy programs: held programs, and references."""

import copy
import pickle
import sys
import types

import numpy as np
import pytest

import weft
from tests.core import toys
from tests.core.toys import cond, cos, f32, i32, make, sin
from weft.core.facts import Runs
from weft.core.jaxpr import bodies_of, held_jaxprs, jaxpr_uses_axis, uses_axis
from weft.core.primitive import (
    Axis,
    Body,
    Linear,
    LinearUsed,
    Primitive,
    References,
    Zero,
    cotangents_of,
    mark_linear,
    mark_moving,
    not_linear,
    tangent_zero,
    tangents_of,
)
from weft.errors import DtypeError, MissingRule
from weft.util import CACHES


class Outer(toys.Holds):
    """Binds the axis "i" for the programs that it holds."""

    def refers(self, params):
        return References(binds=("i",))


class Named(toys.Like):
    def refers(self, params):
        return References(uses=("i",))


def test_without_a_rule_all_programs_among_the_parameters_are_held():
    branches = (make(sin, f32()), make(cos, f32()))
    jaxpr = make(lambda i, x: cond.apply(i, x, branches=branches)[0], i32(), f32())
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
    assert uses_axis(prim, {"runs": Runs.UNKNOWN}, "i") and not uses_axis(
        prim, {"runs": Runs.HOST}, "i"
    )


def test_parameters_that_cannot_be_hashed_are_named():
    with pytest.raises(TypeError, match=r"sin: parameters must be hashable; got axes="):
        sin.type_of((f32(),), {"axes": [1]})


def test_a_rule_that_is_missing_is_named():
    class Bare(Primitive):
        name = "bare"

    prim = Bare()
    for rule, hint in (
        ("abstract_eval", ""), ("lower", ""), ("jvp", ""), ("batch", ""),
        ("transpose", " Hint: linear_transpose takes linear functions; vjp serves for others."),
    ):  # fmt: skip
        with pytest.raises(MissingRule) as caught:
            getattr(prim, rule)(*[()] * (3 if rule == "batch" else 2))
        assert str(caught.value) == f"bare: has no `{rule}` rule; define Bare.{rule}.{hint}"
    assert repr(prim) == str(prim) == "bare"


def test_primitives_pickle_by_the_global_that_holds_them():
    again = pickle.loads(pickle.dumps(sin))
    assert again is sin and pickle.loads(pickle.dumps(LOCAL[0])).name == "here"


class Here(Primitive):
    name = "here"


LOCAL = [Here()]  # no global holds it
MODULE = """
from tests.core.test_primitive import Here
from weft.core.primitive import Primitive
class Mine(Primitive):
    name = "mine"
def make(cls):
    return cls()
direct_p, made_p = Mine(), make(Here)
held = [Mine()]
"""


def run_module(name, monkeypatch):
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(MODULE, vars(module))
    return module


def test_primitives_of_a_users_module_pickle_by_its_globals(monkeypatch):
    module = run_module("module_of_a_user", monkeypatch)
    for prim in (module.direct_p, module.made_p):
        assert copy.copy(prim) is prim
        assert pickle.loads(pickle.dumps(prim)) is prim
    (held,) = module.held
    again = pickle.loads(pickle.dumps(held))
    assert again is not held and type(again) is module.Mine


def test_primitives_of_a_program_pickle_by_their_fields(monkeypatch):
    """Another process that loads them has a `__main__` of its own."""
    module = run_module("__main__", monkeypatch)
    for prim in (module.direct_p, module.made_p):
        again = pickle.loads(pickle.dumps(prim))
        assert again is not prim and type(again) is type(prim)


def test_axes_markers_and_types():
    assert repr(Axis(3)) == "Axis(size=3, name=None)"
    assert repr(Axis(3, "i", True, "x")) == "Axis(size=3, name='i', tracked=True, spmd='x')"
    aval = f32(2)
    assert repr(Zero(aval)) == "Zero(f32[2])" and repr(Linear(aval)) == "Linear(f32[2])"
    with pytest.raises(LinearUsed):
        np.sin(Linear(aval))
    assert str(not_linear("mul", [Linear(aval), 1.0])) == (
        "mul: must be linear in what is transposed; got a linear value and a fixed one. "
        "Hint: linear_transpose takes linear functions; vjp serves for others."
    )
    marks = [Linear(aval), 1.0, Linear(aval), Linear(aval)]
    assert mark_linear(marks) == (True, False, True, True)
    assert mark_moving([Zero(aval), 1.0]) == (False, True)
    first, none, second, third = cotangents_of(marks, ["a", "b"], [True, False, True])
    assert (first, none, third) == ("a", None, "b")
    assert type(second) is Zero and second.aval is aval
    one, two = tangents_of([np.float32(1), np.float32(2)], ["t"], [False, True])
    assert type(one) is Zero and two == "t" and tangent_zero(np.float32(3)) is one
    assert str(tangent_zero(np.int32(3)).aval) == "float0[]"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (lambda: np.zeros(2, weft.dtypes.float0), "must not be given float0, .* Hint: jnp.zeros"),
        (lambda: weft.random.key(0), r"operands must be numbers, not random keys; got key<fry>"),
    ],
)
def test_types_that_nothing_computes_with(x, text):
    with pytest.raises(DtypeError, match=f"^neg: {text}"):
        weft.lax.neg_p.apply(x())


def test_types_are_asked_for_once():
    asked = []

    class Counted(Primitive):
        name = "counted"

        def abstract_eval(self, x):
            asked.append(x)
            return [x]

    prim = Counted()
    make(lambda x: prim.apply(prim.apply(x)[0])[0], f32())
    assert asked == [f32()]
    CACHES["types of results"].clear()
    make(lambda x: prim.apply(x)[0], f32())
    assert asked == [f32()] * 2
