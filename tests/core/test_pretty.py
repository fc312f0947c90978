"""Printing: the golden files, then numbers, sizes, source lines and speed, which they lack."""

import doctest
import itertools
import re
import string
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.core import toys
from tests.core.toys import cond, f32, i32, jit, make, mul, pjit, reduce_sum, sin
from weft.core.aval import ShapedArray
from weft.core.jaxpr import DropVar, Eqn, Jaxpr, Literal, Var
from weft.core.pretty import equation_text, fresh_names, number_text
from weft.display.printing import pretty_print

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda p: p.stem)
def test_golden(path):
    failed, tried = doctest.testfile(str(path), module_relative=False, globs=dict(vars(toys)))
    assert tried > 0
    assert failed == 0


@pytest.mark.parametrize(
    ("val", "dtype", "text"),
    [
        (3.0, "float32", "3.0"),
        (0.1, "float32", "0.1"),
        (1 / 3, "float32", "0.33333334"),
        (1 / 3, "float64", "0.3333333333333333"),
        (1e10, "float32", "10000000000.0"),
        (1e20, "float32", "1e+20"),
        (1e300, "float32", "inf"),
        (5e-324, "float64", "5e-324"),
        (float("-inf"), "float32", "-inf"),
        (float("nan"), "float32", "nan"),
        (-0.0, "float32", "-0.0"),
        (0.1, "float16", "0.1"),
        (0.1, ml_dtypes.bfloat16, "0.1"),
        (1.75, ml_dtypes.float8_e5m2, "1.75"),
        (448, ml_dtypes.float8_e4m3fn, "448.0"),
        (3, "float32", "3.0"),
        (-7, "int32", "-7"),
        (2**64 - 1, "uint64", "18446744073709551615"),
        (-8, ml_dtypes.int4, "-8"),
        (1, "bool", "True"),
        (1 + 2j, "complex64", "(1+2j)"),
        (0j, "complex64", "0j"),
        (complex(-0.0, 0.1), "complex128", "(-0+0.1j)"),
    ],
)
def test_numbers(val, dtype, text):
    assert number_text(val, np.dtype(dtype)) == text


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, "float32", "float64"])
def test_floats_read_back(dtype, rng):
    dtype = np.dtype(dtype)
    bits = rng.integers(0, 256, size=(300, dtype.itemsize), dtype=np.uint8)
    for x in bits.view(dtype).ravel():
        again = dtype.type(float(number_text(x, dtype)))
        assert again == x or (np.isnan(float(again)) and np.isnan(float(x)))


@pytest.mark.parametrize(
    ("val", "dtype", "text"),
    [
        (3.0, "float32", "3.0"),
        (3.0, "float64", "3.0:f64[]"),
        (3.0, ml_dtypes.bfloat16, "3.0:bf16[]"),
        (3, "int32", "3"),
        (3, "int8", "3:i8[]"),
        (3, "int64", "3:i64[]"),
        (3, "uint32", "3:u32[]"),
        (True, "bool", "True"),
        (1j, "complex64", "1j"),
        (1j, "complex128", "1j:c128[]"),
    ],
)
def test_literals_say_their_type(val, dtype, text):
    literal = Literal(val, ShapedArray((), dtype))
    assert str(Jaxpr([], [], [literal], [])) == f"{{ lambda ; . let  in ({text},) }}"


def test_names_count_to_the_base_26_without_words_that_mean_something():
    names = [name for name, _ in zip(fresh_names(), range(18000), strict=False)]
    assert names[:3] + names[24:29] == ["a", "b", "c", "y", "z", "ba", "bb", "bc"]
    assert len(set(names)) == len(names)
    assert not {"in", "let", "inf", "nan", "lambda"} & set(names)
    assert {"im", "io", "les", "leu", "ine", "ing"} <= set(names)


def test_variable_names_keep_clear_of_program_names():
    call = jit(lambda x: sin(x), f32(), name="b")
    text = str(make(lambda x: call(call(x)), f32()))
    assert text.startswith("let b = { lambda ; a:f32[]. let c:f32[] = sin a in (c,) } in\n")


def test_parameters_break_at_the_edge():
    jaxpr = make(lambda x: reduce_sum(reduce_sum(x, axes=(0,)), axes=(0,)), f32(2, 3))
    line = "    b:f32[3] = reduce_sum[axes=(0,)] a"
    assert line in jaxpr.pretty_print(width=len(line) - 2).split("\n")
    broken = "    b:f32[3] = reduce_sum[\n      axes=(0,)\n    ] a\n"
    assert broken in jaxpr.pretty_print(width=len(line) - 3)


def test_programs_break_at_the_edge():
    jaxpr = make(lambda x: sin(x), f32())
    flat = "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"
    assert jaxpr.pretty_print(width=len(flat)) == flat
    broken = "{ lambda ; a:f32[]. let\n    b:f32[] = sin a\n  in (b,) }"
    assert jaxpr.pretty_print(width=len(flat) - 1) == broken


def test_reads_and_writes_of_references():
    def f(x):
        r = weft.new_ref(x)
        r[1] = r[0]
        return weft.ref.swap(r, 3, r[2]) + r[...].sum()

    assert str(weft.make_jaxpr(f)(jnp.ones(4))).split("\n")[2:7] == [
        "    c:f32[] <- b[0]",
        "    b[1] <- c",
        "    d:f32[] <- b[2]",
        "    e:f32[], b[3] <- b[3], d",
        "    f:f32[4] <- b[...]",
    ]


def test_drop_var():
    x, y = Var(f32()), DropVar(f32(2))
    eqn = Eqn(sin, [x], {}, [y])
    assert str(Jaxpr([], [x], [], [eqn])) == "{ lambda ; a:f32[]. let _:f32[2] = sin a in () }"
    assert str(eqn) == "_:f32[2] = sin a"


def test_variables_in_two_programs_are_named_in_each():
    jaxpr = make(lambda x: (sin(x), mul(x, 2.0)), f32())
    fewer = jaxpr.replace(outvars=jaxpr.outvars[:1])
    both = make(lambda i, x: cond.apply(i, x, branches=(fewer, jaxpr))[0], i32(), f32())
    assert "{ lambda ; d:f32[]. let e:f32[] = sin d; _:f32[] = mul d 2.0 in (e,) }" in str(both)
    assert "{ lambda ; f:f32[]. let g:f32[] = sin f; h:f32[] = mul f 2.0 in (g, h) }" in str(both)


def test_a_primitive_may_say_what_is_shown():
    class Quiet(toys.Like):
        def pretty_params(self, params):
            return {k: v for k, v in params.items() if v is not None}

    quiet = Quiet("quiet")
    jaxpr = make(lambda x: quiet(quiet(x, a=1, b=None), a=None), f32())
    assert "quiet[a=1] a; c:f32[] = quiet b in" in str(jaxpr)
    raw = jaxpr.pretty_print(custom_pp_eqn_rules=False, width=99)
    assert "quiet[a=1 b=None] a; c:f32[] = quiet[a=None] b in" in raw


def test_source_info():
    body = make(lambda x: mul.apply(x, 1.0)[0], f32())

    def program(x):
        (y,) = sin.apply(x)
        return pjit.apply(y, name="body", jaxpr=body)[0]

    line = program.__code__.co_firstlineno
    jaxpr = make(program, f32())
    text = f"""\
{{ lambda ; a:f32[]. let
    b:f32[] = sin a                 # test_pretty.py:{line + 1}:15 (program)
    c:f32[] = jit[                  # test_pretty.py:{line + 2}:15 (program)
      name=body
      jaxpr={{ lambda ; b:f32[]. let
          c:f32[] = mul b 1.0       # test_pretty.py:{line - 2}:26 (<lambda>)
        in (c,) }}
    ] b
  in (c,) }}"""
    assert jaxpr.pretty_print(source_info=True) == text
    assert "#" not in jaxpr.pretty_print()


def test_source_info_where_none_is_known():
    x = Var(f32())
    text = Jaxpr([], [x], [x], [Eqn(sin, [x], {}, [Var(f32())])]).pretty_print(source_info=True)
    assert text == "{ lambda ; a:f32[]. let _:f32[] = sin a in (a,) }"


def test_color_is_only_color():
    jaxpr = make(lambda x: reduce_sum(sin(x), axes=(0,)), f32(2))
    colored = jaxpr.pretty_print(use_color=True)
    assert "\x1b[34;1mlambda" in colored
    assert "a\x1b[35m:f32[2]\x1b[39m" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == str(jaxpr)


def test_wrong_notation():
    with pytest.raises(ValueError, match="notation must be 'typed' or 'classic'; got 'new'"):
        pretty_print(make(lambda x: x, f32()), notation="new")


def test_repr_is_the_text():
    jaxpr = make(lambda x: sin(x), f32())
    closed = toys.make_closed(lambda x: sin(x), f32())
    assert repr(jaxpr) == str(jaxpr) == repr(closed) == str(closed) == jaxpr.pretty_print()


def test_long_programs_take_linear_time():
    def chain(n):
        def program(x):
            for _ in range(n):
                x = mul(sin(x), 2.0)
            return x

        jaxpr = make(program, f32())
        calls = 0

        def count(frame, event, arg):
            nonlocal calls
            calls += 1

        sys.setprofile(count)
        try:
            text = str(jaxpr)
        finally:
            sys.setprofile(None)
        assert text.count("\n") == 2 * n + 1
        return calls

    assert chain(5_000) < 11 * chain(500)


def test_shared_programs_are_not_written_out_again_and_again():
    call = jit(lambda x: sin(x), f32(), name="f0")
    for depth in range(1, 60):
        call = jit(lambda x, f=call: f(f(x)), f32(), name=f"f{depth}")
    assert str(make(call, f32())).count("\n") < 400


def test_one_equation_as_a_line():
    """Up to 80 characters whole, else its first line and the end of its last."""
    program = lambda n: weft.make_jaxpr(lambda *xs: jnp.concatenate(xs))(*[np.ones(3)] * n).jaxpr
    texts = [equation_text(program(n), 0) for n in range(2, 30)]
    whole = [not t.endswith("... ]") and " ... " not in t for t in texts]
    longest = max(map(len, itertools.compress(texts, whole)))
    assert whole == sorted(whole, reverse=True) and 78 < longest <= 80 and not whole[-1]
    ends = [f" {c}" for c in string.ascii_lowercase]
    for n, text in enumerate(texts, 2):
        assert ":f32[" in text and "concatenate[" in text and "\n" not in text
        assert n > 26 or text.endswith(ends[n - 1])
