"""Dead code, on toy programs."""

import numpy as np

from tests.core import toys
from tests.core.toys import add, cond, cos, f32, jit, make, mul, sin
from weft.core.jaxpr import ClosedJaxpr
from weft.passes.check import check_jaxpr
from weft.passes.dce import dce_jaxpr


def text(jaxpr):
    return jaxpr.pretty_print(width=1000)


def test_dce_drops_what_no_result_needs():
    def program(x, y):
        sin(cos(y))
        return mul(x, 2.0)

    jaxpr = make(program, f32(), f32())
    before = text(jaxpr)
    lean, used = dce_jaxpr(jaxpr)
    assert text(lean) == "{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a 2.0 in (c,) }"
    assert used == (True, False)
    assert text(jaxpr) == before
    check_jaxpr(lean)


def test_dce_for_some_of_the_results():
    jaxpr = make(lambda x, y: (sin(x), cos(y), 1.0), f32(), f32())
    lean, used = dce_jaxpr(jaxpr, (False, True, False))
    assert text(lean) == "{ lambda ; a:f32[] b:f32[]. let c:f32[] = cos b in (c,) }"
    assert used == (False, True)
    lean, used = dce_jaxpr(jaxpr, [False, True, True], keep_inputs=False)
    assert text(lean) == "{ lambda ; a:f32[]. let b:f32[] = cos a in (b, 1.0) }"
    assert used == (False, True)
    lean, used = dce_jaxpr(jaxpr, (False, False, False), keep_inputs=False)
    assert text(lean) == "{ lambda ; . let  in () }"


def test_dce_of_a_lean_program_is_the_program():
    jaxpr = make(lambda x: sin(x), f32())
    assert dce_jaxpr(jaxpr)[0] is jaxpr
    assert dce_jaxpr(jaxpr, (True,), False)[0] is jaxpr


def test_dce_is_remembered():
    jaxpr = make(lambda x: (sin(x), cos(x)), f32())
    assert dce_jaxpr(jaxpr, (True, False))[0] is dce_jaxpr(jaxpr, [True, False])[0]


def test_dce_keeps_constvars():
    held = np.ones(3, np.float32)
    closed = toys.make_closed(lambda x: (add(x, held), sin(x)), f32(3))
    lean, _ = dce_jaxpr(closed.jaxpr, (False, True))
    assert text(ClosedJaxpr(lean, closed.consts)).startswith("{ lambda a:f32[3]; b:f32[3]. let")


def test_dce_keeps_effects_also_inside_what_is_held():
    def prints(x):
        toys.print_.apply(x)
        return sin(x)

    def program(x):
        prints(x)
        jit(prints, f32(), name="prints")(x)
        jit(cos, f32(), name="silent")(x)
        cond.apply(0, x, branches=(make(cos, f32()), make(prints, f32())))
        return x

    jaxpr = make(program, f32())
    lean, _ = dce_jaxpr(jaxpr)
    assert [str(e.primitive) for e in lean.eqns] == ["print", "jit", "cond"]
    assert lean.effects == jaxpr.effects == {"Print"}


class PrunedCall(toys.Call):
    """A call that drops unused computations."""

    def dce(self, eqn, live):
        jaxpr, used = dce_jaxpr(eqn.params["jaxpr"], tuple(live), False)
        if not jaxpr.eqns and not any(live):
            return None
        return eqn.replace(
            params={**eqn.params, "jaxpr": jaxpr},
            invars=[a for a, u in zip(eqn.invars, used, strict=True) if u],
            outvars=[v for v, u in zip(eqn.outvars, live, strict=True) if u],
        )


def test_dce_by_a_rule_of_the_primitive():
    call = jit(lambda x, y: (sin(x), cos(y)), f32(), f32(), call=PrunedCall())

    def program(x, y, z):
        mul(sin(y), z)
        return call(x, y)[1]

    lean, used = dce_jaxpr(make(program, f32(), f32(), f32()))
    assert used == (False, True, False)
    assert text(lean) == (
        "{ lambda ; a:f32[] b:f32[] c:f32[]. let "
        "d:f32[] = jit[name=f jaxpr={ lambda ; b:f32[]. let d:f32[] = cos b in (d,) }] b "
        "in (d,) }"
    )
    check_jaxpr(lean)
