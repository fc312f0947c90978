"""The words that stand for keys in compiled programs."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax, random
from weft.core.aval import ShapedArray
from weft.passes.physical import has_extended, physical_jaxpr
from weft.primitives.layout import rev_p
from weft.pytrees import call_registry
from weft.xla.array import KeyArray

KEYS = random.split(random.key(0), (2, 3))
WORDS = random.key_data(KEYS)


def physical(fun, *args):
    return physical_jaxpr(weft.make_jaxpr(fun)(*args).jaxpr)


def test_a_type_knows_the_type_of_its_buffer():
    aval = weft.typeof(KEYS)
    assert str(aval) == "key<fry>[2,3]" and str(aval.physical) == "u32[2,3,2]"
    assert aval.hlo == "tensor<2x3x2xui32>" and aval is ShapedArray((2, 3), KEYS.dtype)
    number = ShapedArray((2,), np.float32)
    assert number.physical is number
    assert str(aval.to_tangent()) == "float0[2,3]"


def test_a_program_without_keys_is_left_alone():
    jaxpr = weft.make_jaxpr(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x))(jnp.ones(3)).jaxpr
    assert not has_extended(jaxpr)
    draw = lambda c, _: (c, random.normal(random.key(c)))
    assert has_extended(weft.make_jaxpr(lambda c: lax.scan(draw, c, None, 2)[1])(1).jaxpr)


def test_words_move_as_their_keys_do():
    program = physical(lambda x: x.T[1:], KEYS)
    assert [str(v.aval) for v in program.invars] == ["u32[2,3,2]"]
    assert [str(v.aval) for v in program.outvars] == ["u32[2,2,2]"]
    (out,) = program(WORDS)
    np.testing.assert_array_equal(out, random.key_data(KEYS.T[1:]))


def test_programs_that_are_held_are_brought_to_words_too():
    def f(keys):
        draw = lambda k, row: (random.fold_in(k, 1), row[0])
        last, firsts = lax.scan(draw, keys[0, 0], keys)
        return lax.cond(True, lambda k: k, lambda k: random.fold_in(k, 2), last), firsts

    program = physical(f, KEYS)
    assert not has_extended(program) and "key<" not in str(program)


def test_comparisons_look_at_every_word():
    program = physical(lambda x, y: x == y, KEYS, KEYS)
    text = weft.jit(lambda x, y: x == y).lower(KEYS, KEYS).as_text()
    assert "stablehlo.and" in text and "stablehlo.or" not in text
    assert str(program.outvars[0].aval) == "bool[2,3]"


def test_cpp_tells_keys_from_words():
    traced = []

    @weft.jit
    def f(x):
        traced.append(str(weft.typeof(x)))
        return x

    rbg = random.split(random.key(0, impl="rbg"), 3)
    for x in (KEYS[0], WORDS[0], WORDS[0, :, 0], rbg, KEYS, KEYS[0], rbg):
        assert f(x).dtype == x.dtype and f(x).shape == x.shape
    assert traced == ["key<fry>[3]", "u32[3,2]", "u32[3]", "key<rbg>[3]", "key<fry>[2,3]"]


def test_a_second_call_with_keys_stays_in_cpp(monkeypatch):
    f = weft.jit(lambda x, k: {"sum": x + random.normal(k), "keys": [k]})
    want = f(1.0, KEYS[0, 0])
    monkeypatch.setattr("weft.api.jit.JitFunction.miss", None)
    found = f(1.0, KEYS[0, 0])
    assert found["sum"] == want["sum"] and type(found["keys"][0]) is KeyArray
    (words,) = call_registry.flatten(found)[0][:1]
    assert type(words) is not KeyArray


def test_an_operation_with_consts_of_its_own_is_refused():
    class Odd(type(rev_p)):
        name = "odd"

        def batch(self, axis, args, dims, **params):
            return [lax.rev(args[0], (0,)) + np.arange(2, dtype=np.uint32)], dims

    with pytest.raises(NotImplementedError, match="odd: must not use arrays of its own on random"):
        weft.jit(lambda x: Odd().apply(x, dimensions=(0,))[0])(KEYS[0])
