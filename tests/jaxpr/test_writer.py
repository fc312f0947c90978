"""`unparse`, equality and hash of structure, pickle and copy."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.experimental import checkify
from weft.extend.core.primitives import convert_element_type_p
from weft.jaxpr import parse, structural_hash, structurally_equal, unparse


def test_all_is_written():
    closed = weft.make_jaxpr(lambda x: jnp.sin(x) @ jnp.ones(3, jnp.float16))(jnp.ones(3))
    assert "precision=None" in unparse(closed)
    assert "precision=None" not in str(closed)
    named = weft.jit(lambda x: x)
    named.__name__ = "two words"
    assert parse(unparse(weft.make_jaxpr(named)(1.0))).eqns[0].params["name"]
    assert unparse(weft.make_jaxpr(lambda x: x * 2)(1.5)) == (
        "{ lambda ; a:~f32[]. let b:~f32[] = mul a 2.0 in (b,) }"
    )


def test_weak_types_and_numbers_read_back():
    def f(x, n):
        return x * 2, x + np.float32(1 / 3), n + 1, x * True, -n

    closed = weft.make_jaxpr(f)(1.0, 2)
    again = parse(unparse(closed))
    assert structurally_equal(again, closed)
    assert [a.weak_type for a in again.out_avals] == [a.weak_type for a in closed.out_avals]


@pytest.mark.parametrize("x", [1.0, np.float32(1), np.ones(3, np.float32)], ids=repr)
def test_conversions_to_the_same_dtype_read_back(x):
    """They make weak types strong, but a primitive may be applied to any."""
    convert = lambda x: convert_element_type_p.bind(x, new_dtype=np.dtype("f4"), weak_type=False)
    first = lambda x: lax.cond(x.sum() > 0, convert, convert, x)
    for f in (convert, first, weft.jit(first)):
        closed = weft.make_jaxpr(f)(x)
        again = parse(unparse(closed))
        assert structurally_equal(again, closed)
        assert unparse(again) == unparse(closed)
        assert again.in_avals == closed.in_avals


def test_primitives_of_one_name():
    """Samples are made with an erf_inv of their own; ordered callbacks are instances."""
    closed = weft.make_jaxpr(lambda k: weft.random.normal(k, (2,)))(weft.random.key(0))
    assert "erf_inv@fast_erf_inv_p" in unparse(closed)
    assert structurally_equal(parse(unparse(closed)), closed)


PROGRAMS = {
    "base": lambda x: lax.scan(lambda c, y: (c + y, c * 2.0), x, jnp.arange(3.0)),
    "number": lambda x: lax.scan(lambda c, y: (c + y, c * 3.0), x, jnp.arange(3.0)),
    "order": lambda x: lax.scan(lambda c, y: (y + c, c * 2.0), x, jnp.arange(3.0)),
    "zero": lambda x: x + 0.0,
    "negative zero": lambda x: x + -0.0,
    "const": lambda x: x + np.arange(3.0),
    "other const": lambda x: x + np.arange(3.0)[::-1],
}


def test_structure():
    programs = {name: weft.make_jaxpr(f)(1.0) for name, f in PROGRAMS.items()}
    for a, p in programs.items():
        assert p.structurally_equal(weft.make_jaxpr(PROGRAMS[a])(2.0))
        assert structural_hash(p) == structural_hash(weft.make_jaxpr(PROGRAMS[a])(2.0))
        for b, q in programs.items():
            assert structurally_equal(p, q) == (a == b)
            assert (structural_hash(p) == structural_hash(q)) == (a == b)
    assert not structurally_equal(weft.make_jaxpr(jnp.sin)(1.0), weft.make_jaxpr(jnp.sin)(1j))


def test_programs_held_in_many_places_are_gone_through_once():
    f = weft.jit(lambda x: x + 1)
    for _ in range(60):
        f = weft.jit(lambda x, f=f: f(f(x)))
    for x in (1.0, np.float32(1)):  # a weak type, and a strong one
        a, b = weft.make_jaxpr(f)(x), weft.make_jaxpr(f)(2 * x)
        assert structurally_equal(a, pickle.loads(pickle.dumps(b)))
        assert structural_hash(a) == structural_hash(parse(unparse(b)))


@pytest.mark.slow
def test_the_hash_is_that_of_any_process():
    code = (
        "import weft, weft.numpy as jnp; program = weft.make_jaxpr(jnp.sin)(1.0); "
        "print(weft.jaxpr.structural_hash(program))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == structural_hash(weft.make_jaxpr(jnp.sin)(1.0))


@pytest.mark.parametrize("way", ["pickle", "copy", "deepcopy"])
@pytest.mark.parametrize("name", ["base", "const"])
def test_copies_are_equal(name, way):
    closed = weft.make_jaxpr(PROGRAMS[name])(1.0)
    ways = {"pickle": lambda x: pickle.loads(pickle.dumps(x))}
    again = ways.get(way, getattr(copy, way, None))(closed)
    assert structurally_equal(again, closed)
    assert str(again) == str(closed)


def test_holes_pickle():
    f = weft.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda x, t: (f(*x), t[0]))
    again = parse(str(weft.make_jaxpr(f)(1.0)))
    assert structurally_equal(pickle.loads(pickle.dumps(again)), again)


def test_an_array_equals_no_hole():
    checked = checkify.checkify(weft.jit(lambda x, i: x[i]), errors=checkify.all_checks)
    closed = weft.make_jaxpr(lambda x: checked(x, 0)[1])(jnp.ones(3))
    again = parse(unparse(closed))
    assert structurally_equal(again, again) and not structurally_equal(again, closed)
