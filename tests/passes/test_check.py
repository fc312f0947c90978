"""The checker: each rule is broken once, on purpose."""

import re
import time

import numpy as np
import pytest

from tests.core import toys
from tests.core.toys import add, bf16, clamp, cond, cos, f32, i32, make, pjit, sin
from weft.core.aval import ShapedArray
from weft.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from weft.errors import CheckError, JaxprTypeError
from weft.passes.check import check_jaxpr


def x_and_y():
    return Var(f32(3)), Var(f32(3))


def refused(jaxpr, message):
    with pytest.raises(CheckError, match=re.escape(message)):
        check_jaxpr(jaxpr)


def test_check_accepts_every_toy():
    branches = (make(sin, f32()), make(cos, f32()))
    jaxpr = make(lambda i, x: cond.apply(clamp(0, i, 1), x, branches=branches)[0], i32(), f32())
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
    jaxpr = make(lambda x: sin.apply(cos.apply(x)[0])[0], f32())
    refused(
        jaxpr.replace(eqns=jaxpr.eqns[::-1]),
        "of type f32[] as operand 0. In equation 0, `b:f32[] = sin c` at test_check.py:",
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
        jaxpr = make(lambda x, j=jaxpr: add(*pjit.apply(x, name="f", jaxpr=j) * 2), f32())
        both = (jaxpr, jaxpr)
        jaxpr = make(lambda x, b=both: cond.apply(0, x, branches=b)[0], f32())
    start = time.perf_counter()
    check_jaxpr(jaxpr)
    assert time.perf_counter() - start < 1
