"""The examples of the seeds in the public API, as far as they need first-order operations and jit.

Those with control flow are, in the toy language, in golden/seed_typed.txt and seed_classic.txt.
"""

import textwrap

import numpy as np
import pytest

from weft import jit, make_jaxpr
from weft import numpy as jnp

FUNC1_TYPED = """\
{ lambda ; a:f32[8] b:f32[8]. let
    c:f32[8] = sin b
    d:f32[8] = mul c 3.0
    e:f32[8] = add a d
    f:f32[] = reduce_sum[axes=(0,)] e
  in (f,) }"""

FUNC1_CLASSIC = """\
{ lambda  ; a b.
  let c = sin b
      d = mul c 3.0
      e = add a d
      f = reduce_sum[ axes=(0,) ] e
  in (f,) }"""


def func1(first, second):
    temp = first + jnp.sin(second) * 3.0
    return jnp.sum(temp)


def func2(inner, first, second):
    temp = first + inner(second) * 3.0
    return jnp.sum(temp)


def inner(second):
    if second.shape[0] > 4:
        return jnp.sin(second)
    raise AssertionError


def func3(first, second):
    return func2(inner, first, second)


def func4(arg):  # The `arg` is a pair.
    temp = arg[0] + jnp.sin(arg[1]) * 3.0
    return jnp.sum(temp)


def func5(first, second):
    return first + jnp.sin(second) * 3.0 - jnp.ones(8)


def func6(first):
    return func5(first, jnp.ones(8))


def func12(arg):
    @jit
    def inner(x):
        return x + arg * jnp.ones(1)  # Include a constant in the inner function.

    return arg + inner(arg - 2.0)


@pytest.mark.parametrize("fun", [func1, func3])
def test_first_order(fun):
    jaxpr = make_jaxpr(fun)(jnp.zeros(8), jnp.ones(8))
    assert str(jaxpr) == FUNC1_TYPED
    assert jaxpr.pretty_print(notation="classic") == FUNC1_CLASSIC


def test_pytrees():
    jaxpr = make_jaxpr(func4)((jnp.zeros(8), jnp.ones(8)))
    assert str(jaxpr) == FUNC1_TYPED
    assert jaxpr.pretty_print(notation="classic") == FUNC1_CLASSIC


def test_other_sizes():
    jaxpr = make_jaxpr(func1)(jnp.zeros(5), jnp.ones(5))
    assert str(jaxpr) == FUNC1_TYPED.replace("8", "5")
    assert jaxpr.pretty_print(notation="classic") == FUNC1_CLASSIC


def test_arrays_made_inside_are_operations_and_those_from_outside_are_consts():
    # Seed 000 computes func6's ones while tracing; since seed 003 everything inside is staged.
    assert str(make_jaxpr(func6)(jnp.ones(8))) == textwrap.dedent("""\
        { lambda ; a:f32[8]. let
            b:f32[8] = broadcast_in_dim[
              broadcast_dimensions=()
              shape=(8,)
              sharding=None
            ] 1.0
            c:f32[8] = sin b
            d:f32[8] = mul c 3.0
            e:f32[8] = add a d
            f:f32[8] = broadcast_in_dim[
              broadcast_dimensions=()
              shape=(8,)
              sharding=None
            ] 1.0
            g:f32[8] = sub e f
          in (g,) }""")
    sines, ones = jnp.sin(jnp.ones(8)) * 3.0, jnp.ones(8)
    jaxpr = make_jaxpr(lambda first: first + sines - ones)(jnp.ones(8))
    assert str(jaxpr) == textwrap.dedent("""\
        { lambda a:f32[8] b:f32[8]; c:f32[8]. let
            d:f32[8] = add c a
            e:f32[8] = sub d b
          in (e,) }""")
    assert [np.asarray(c).tolist() for c in jaxpr.consts] == [sines.tolist(), ones.tolist()]


def test_jit():
    assert str(make_jaxpr(func12)(1.0)) == textwrap.dedent("""\
        { lambda ; a:f32[]. let
            b:f32[] = sub a 2.0
            c:f32[1] = pjit[
              name=inner
              jaxpr={ lambda ; a:f32[] b:f32[]. let
                  d:f32[1] = broadcast_in_dim[
                    broadcast_dimensions=()
                    shape=(1,)
                    sharding=None
                  ] 1.0
                  e:f32[] = convert_element_type[new_dtype=float32 weak_type=False] a
                  f:f32[1] = mul e d
                  g:f32[] = convert_element_type[new_dtype=float32 weak_type=False] b
                  c:f32[1] = add g f
                in (c,) }
            ] a b
            h:f32[] = convert_element_type[new_dtype=float32 weak_type=False] a
            i:f32[1] = add h c
          in (i,) }""")
