"""Clean-up, the checker and comparison, on toy programs. Each rule is broken once, on purpose."""

import math
import re
import time

import numpy as np
import pytest

from tests.core import toys
from tests.core.toys import add, bf16, clamp, cond, cos, f32, i32, jit, make, mul, pjit, sin
from weft.core.aval import ShapedArray
from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from weft.core.passes import check_jaxpr, cse_jaxpr, dce_jaxpr, inline_calls, jaxpr_equal
from weft.errors import CheckError, JaxprTypeError


def text(jaxpr):
    return jaxpr.pretty_print(width=1000)


# --- dead code


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
        toys.print_.bind(x)
        return sin(x)

    def program(x):
        prints(x)
        jit(prints, f32(), name="prints")(x)
        jit(cos, f32(), name="silent")(x)
        cond.bind(0, x, branches=(make(cos, f32()), make(prints, f32())))
        return x

    jaxpr = make(program, f32())
    lean, _ = dce_jaxpr(jaxpr)
    assert [str(e.primitive) for e in lean.eqns] == ["print", "pjit", "cond"]
    assert lean.effects == jaxpr.effects == {"Print"}


class PrunedCall(toys.Call):
    """A call which drops what it need not compute."""

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
        "d:f32[] = pjit[name=f jaxpr={ lambda ; b:f32[]. let d:f32[] = cos b in (d,) }] b "
        "in (d,) }"
    )
    check_jaxpr(lean)


# --- common subexpressions


def test_cse_computes_equal_things_once():
    def program(x, y):
        first = add(sin(x), y)
        second = add(sin(x), y)
        return mul(first, second), second, add(y, sin(x))

    jaxpr = make(program, f32(), f32())
    lean = cse_jaxpr(jaxpr)
    assert text(lean) == (
        "{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a; d:f32[] = add c b; e:f32[] = mul d d; "
        "f:f32[] = add b c in (e, d, f) }"
    )
    assert len(jaxpr.eqns) == 7
    check_jaxpr(lean)
    assert cse_jaxpr(lean) is lean
    assert cse_jaxpr(jaxpr) is lean


@pytest.mark.parametrize(
    ("x", "y"), [(0.0, -0.0), (0, 0.0), (1, True), (1.0, np.float32(1)), (2.0, 3.0), (None, 0)]
)
def test_cse_tells_values_apart(x, y):
    by_param = make(lambda a: (sin(a, k=x), sin(a, k=y), sin(a, k=(x,)), sin(a, k=(y,))), f32())
    assert cse_jaxpr(by_param) is by_param
    if x is not None:
        by_operand = make(lambda a: (mul(a, x), mul(a, y)), f32())
        assert cse_jaxpr(by_operand) is by_operand


def test_cse_sees_equal_values():
    nan = float("nan")
    jaxpr = make(lambda a: (mul(a, nan), mul(a, -nan * 0), sin(a, k=nan), sin(a, k=nan)), f32())
    assert len(cse_jaxpr(jaxpr).eqns) == 2
    shared = make(cos, f32())
    jaxpr = make(lambda a: tuple(pjit.bind(a, name="f", jaxpr=shared) * 2), f32())
    assert len(cse_jaxpr(jaxpr).eqns) == 1


def test_cse_leaves_effects():
    def program(x):
        toys.print_.bind(x)
        toys.print_.bind(x)
        return x

    jaxpr = make(program, f32())
    assert cse_jaxpr(jaxpr) is jaxpr


# --- inlining


def test_inline_puts_programs_in_place_of_calls():
    inner = jit(lambda x, y: (mul(sin(x), y), y, 2.0), f32(), f32(), call=toys.inlined_pjit)
    kept = jit(cos, f32(), name="kept")

    def program(x):
        a, b, c = inner(x, 3.0)
        d, _, _ = inner(a, b)
        return kept(add(d, c))

    jaxpr = make(program, f32())
    flat = inline_calls(jaxpr)
    assert text(flat) == (
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 3.0; d:f32[] = sin c; "
        "e:f32[] = mul d 3.0; f:f32[] = add e 2.0; "
        "g:f32[] = pjit[name=kept jaxpr={ lambda ; f:f32[]. let g:f32[] = cos f in (g,) }] f "
        "in (g,) }"
    )
    check_jaxpr(flat)
    assert inline_calls(jaxpr) is flat
    assert inline_calls(flat) is flat
    assert len(jaxpr.eqns) == 4


def test_inline_goes_through_nested_calls():
    call = sin
    for depth in range(5):
        call = jit(call, f32(), name=f"f{depth}", call=toys.inlined_pjit)
    flat = inline_calls(make(lambda x: call(call(x)), f32()))
    assert text(flat) == "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin b in (c,) }"


def test_inline_keeps_source_lines():
    flat = inline_calls(make(jit(lambda x: sin(x), f32(), call=toys.inlined_pjit), f32()))
    assert "toys.py" in flat.pretty_print(source_info=True)


# --- the checker


def x_and_y():
    return Var(f32(3)), Var(f32(3))


def refused(jaxpr, message):
    with pytest.raises(CheckError, match=re.escape(message)):
        check_jaxpr(jaxpr)


def test_check_accepts_every_toy():
    branches = (make(sin, f32()), make(cos, f32()))
    jaxpr = make(lambda i, x: cond.bind(clamp(0, i, 1), x, branches=branches)[0], i32(), f32())
    check_jaxpr(jaxpr)
    check_jaxpr(toys.make_closed(lambda x: add(x, np.ones(3, np.float32)), f32(3)))
    check_jaxpr(Jaxpr([], [], [Literal(np.float16(2)), Literal(3, bf16())], []))
    assert JaxprTypeError is CheckError


def test_check_undefined_operand():
    x, y = x_and_y()
    jaxpr = Jaxpr([], [x], [y], [Eqn(sin, [Var(f32(2))], {}, [y])])
    refused(
        jaxpr,
        "jaxpr: a variable must be defined before it is used; got an undefined one of type f32[2] "
        "as operand 0. In equation 0, `b:f32[3] = sin c`.",
    )


def test_check_use_before_definition_names_the_source_line():
    jaxpr = make(lambda x: sin.bind(cos.bind(x)[0])[0], f32())
    refused(
        jaxpr.replace(eqns=jaxpr.eqns[::-1]),
        "of type f32[] as operand 0. In equation 0, `b:f32[] = sin c` at test_passes.py:",
    )


def test_check_undefined_result():
    x, y = x_and_y()
    refused(Jaxpr([], [x], [x, y], []), "got an undefined one of type f32[3] as result 1.")


def test_check_second_definitions():
    x, y = x_and_y()
    message = "a variable must be defined once; got a second definition"
    refused(Jaxpr([], [x, x], [x], []), f"{message} in the parameters of a variable of type f32[3]")
    refused(Jaxpr([x], [x], [x], []), message)
    refused(Jaxpr([], [x], [x], [Eqn(sin, [x], {}, [x])]), f"{message} among the results")
    twice = [Eqn(sin, [x], {}, [y]), Eqn(sin, [x], {}, [y])]
    refused(Jaxpr([], [x], [y], twice), "In equation 1, `b:f32[3] = sin a`.")


def test_check_types_of_results():
    x, y = Var(f32(3)), Var(f32(2))
    refused(
        Jaxpr([], [x], [y], [Eqn(sin, [x], {}, [y])]),
        "the results of sin must have the types of its type rule, (f32[3]); got (f32[2]). "
        "In equation 0, `b:f32[2] = sin a`.",
    )
    refused(Jaxpr([], [x], [], [Eqn(sin, [x], {}, [])]), "(f32[3]); got ().")
    weak = Var(ShapedArray((3,), np.float32, True))
    check_jaxpr(Jaxpr([], [x], [weak], [Eqn(sin, [x], {}, [weak])]))


def test_check_operands_against_the_type_rule():
    x, y = Var(f32(3)), Var(f32(2))
    refused(
        Jaxpr([], [x, y], [], [Eqn(add, [x, y], {}, [Var(f32(3))])]),
        "operands and parameters must pass the type rule of add; "
        "got ShapeError: add: operands must have equal shapes. "
        "In equation 0, `c:f32[3] = add a b`.",
    )


@pytest.mark.parametrize(
    ("val", "aval"),
    [
        (3.5, i32()),
        (3, ShapedArray((), np.bool_)),
        (1j, f32()),
        (True, f32()),
        (np.float32(1), bf16()),
        (1.0, f32(3)),
        ("x", f32()),
        (np.ones(3, np.float32), f32()),
    ],
)
def test_check_literals(val, aval):
    x = Var(f32())
    message = "a literal must be a number of its own scalar type"
    refused(Jaxpr([], [x], [Literal(val, aval)], []), f"{message}; got {val!r}:{aval} as result 0.")
    refused(Jaxpr([], [x], [], [Eqn(add, [x, Literal(val, aval)], {}, [Var(f32())])]), message)


def test_check_atoms():
    x = Var(f32())
    refused(
        Jaxpr([], [x], [], [Eqn(add, [x, 2.0], {}, [Var(f32())])]),
        "an atom must be a variable or a literal; got 2.0 as operand 1. In equation 0, `",
    )
    refused(
        Jaxpr([], [x], [], [Eqn(sin, [x], {}, [Literal(1.0)])]),
        "only typed variables can be defined; got Literal(1.0:f32[]) among the results. "
        "In equation 0, `sin`.",
    )


def test_check_params():
    x, y = x_and_y()
    refused(
        Jaxpr([], [x], [y], [Eqn(sin, [x], {"k": [1]}, [y])]),
        "parameters must be hashable; got k=[1]. In equation 0, `b:f32[3] = sin[k=[1]] a`.",
    )


def test_check_held_programs():
    x, y = Var(f32()), Var(f32())
    held = Jaxpr([Var(f32())], [x], [x], [])
    call = Eqn(pjit, [x], {"name": "f", "jaxpr": held}, [y])
    message = "a program held by an equation must be closed; got one with 1 constvars."
    refused(Jaxpr([], [x], [y], [call]), message)
    wrong = Jaxpr([], [x], [Var(f32())], [])
    call = Eqn(cond, [Literal(0), x], {"branches": (make(sin, f32()), wrong)}, [y])
    refused(Jaxpr([], [x], [y], [call]), "as result 0. In equation 0, `b:f32[] = cond[ ... ] 0 a`.")


def test_check_consts():
    x = Var(f32(3))
    refused(
        ClosedJaxpr(Jaxpr([x], [], [x], []), [np.zeros(2, np.float32)]),
        "a const must have the type of its constvar; got a const f32[2] for a constvar f32[3].",
    )


def test_check_is_done_once_for_each_program():
    jaxpr = make(lambda x: sin(x), f32())
    for _ in range(40):
        jaxpr = make(lambda x, j=jaxpr: add(*pjit.bind(x, name="f", jaxpr=j) * 2), f32())
        both = (jaxpr, jaxpr)
        jaxpr = make(lambda x, b=both: cond.bind(0, x, branches=b)[0], f32())
    start = time.perf_counter()
    check_jaxpr(jaxpr)
    assert time.perf_counter() - start < 1


# --- comparison


def test_equal_up_to_names():
    def program(x, y):
        inner = make(lambda a: mul(sin(a), 2.0), f32())
        out = pjit.bind(add(x, y), name="f", jaxpr=inner)[0]
        return cond.bind(0, out, branches=(inner, make(cos, f32())))[0], math.nan

    a, b = make(program, f32(), f32(), name="a"), make(program, f32(), f32(), name="b")
    assert a is not b
    assert jaxpr_equal(a, b)
    assert jaxpr_equal(a, a)
    assert jaxpr_equal(a, ClosedJaxpr(b))
    assert not jaxpr_equal(a, inline_calls(b.replace(eqns=b.eqns[:1], outvars=b.invars)))


@pytest.mark.parametrize(
    "other",
    [
        make(lambda x, y: add(sin(y), x), f32(), f32()),
        make(lambda x, y: add(cos(x), y), f32(), f32()),
        make(lambda x, y: add(sin(x, k=1), y), f32(), f32()),
        make(lambda x, y: (add(sin(x), y), x), f32(), f32()),
        make(lambda x, y: sin(x), f32(), f32()),
        make(lambda x: add(sin(x), x), f32()),
        make(lambda x: add(sin(x), 1.0), f32()),
        make(lambda x, y: add(sin(x), 1.0), f32(), f32()),
        make(lambda x, y: add(sin(x), y), bf16(), bf16()),
        make(lambda x, y: add(sin(x), y), f32(), ShapedArray((), np.float32, True)),
    ],
    ids=str,
)
def test_not_equal(other):
    jaxpr = make(lambda x, y: add(sin(x), y), f32(), f32())
    assert not jaxpr_equal(jaxpr, other)
    assert not jaxpr_equal(other, jaxpr)


def test_equal_literals_and_params():
    def one(val, key):
        return make(lambda x: mul(sin(x, k=key), val), f32())

    assert jaxpr_equal(one(1.0, (1, 2)), one(1.0, (1, 2)))
    assert jaxpr_equal(one(math.nan, math.nan), one(math.nan, math.nan))
    assert not jaxpr_equal(one(0.0, 1), one(-0.0, 1))
    assert not jaxpr_equal(one(1.0, 1), one(np.float32(1.0), 1))
    assert not jaxpr_equal(one(1.0, 1), one(1.0, True))
    assert not jaxpr_equal(one(1.0, (1,)), one(1.0, (1, 2)))
    assert not jaxpr_equal(one(1.0, make(sin, f32())), one(1.0, make(cos, f32())))
    assert not jaxpr_equal(one(1.0, make(sin, f32())), one(1.0, None))


def test_equal_consts():
    def one(*values):
        const = np.array(values, np.float32)
        return toys.make_closed(lambda x: add(x, const), f32(len(values)))

    assert jaxpr_equal(one(1, math.nan), one(1, math.nan))
    assert not jaxpr_equal(one(0.0), one(-0.0))
    assert not jaxpr_equal(one(1, 2), one(1, 3))
    assert not jaxpr_equal(one(1, 2), one(1, 2).jaxpr)
