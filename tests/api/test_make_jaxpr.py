"""make_jaxpr and eval_shape; the jaxprs that JAX's documentation prints.

In the toy language of tests/core they are in golden/typed_notation.txt and classic_notation.txt.
"""

import textwrap

import numpy as np
import pytest

import weft
from weft import eval_shape, jit, lax, make_jaxpr, pmap
from weft import numpy as jnp
from weft.options import named_axes

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


def func11(arr, extra):
    ones = jnp.ones(arr.shape)  # A constant

    def body(carry, aelems):
        # carry: running dot-product of the two arrays
        # aelems: a pair with corresponding elements from the two arrays
        ae1, ae2 = aelems
        return (carry + ae1 * ae2 + extra, carry)

    return lax.scan(body, 0.0, (arr, ones))


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
    # The first JAX computed func6's ones while tracing; everything inside is staged since.
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
            c:f32[1] = jit[
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


def one_of_three(index, arg):
    return lax.switch(index, [lambda x: x + 1.0, lambda x: x - 2.0, lambda x: x + 3.0], arg)


def func7(arg):
    return lax.cond(arg >= 0.0, lambda xtrue: xtrue + 3.0, lambda xfalse: xfalse - 3.0, arg)


def func7_with_five_arguments(arg):
    return lax.cond(arg >= 0.0, arg, lambda xtrue: xtrue + 3.0, arg, lambda xfalse: xfalse - 3.0)


def func8(arg1, arg2):  # Where `arg2` is a pair.
    return lax.cond(
        arg1 >= 0.0, lambda xtrue: xtrue[0], lambda xfalse: jnp.array([1]) + xfalse[1], arg2
    )


def test_switch():
    assert str(make_jaxpr(one_of_three)(1, 5.0)) == textwrap.dedent("""\
        { lambda ; a:i32[] b:f32[]. let
            c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] a
            d:i32[] = clamp 0 c 2
            e:f32[] = cond[
              branches=(
                { lambda ; f:f32[]. let g:f32[] = add f 1.0 in (g,) }
                { lambda ; h:f32[]. let i:f32[] = sub h 2.0 in (i,) }
                { lambda ; j:f32[]. let k:f32[] = add j 3.0 in (k,) }
              )
            ] d b
          in (e,) }""")


def test_cond():
    assert str(make_jaxpr(func7)(5.0)) == textwrap.dedent("""\
        { lambda ; a:f32[]. let
            b:bool[] = ge a 0.0
            c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b
            d:f32[] = cond[
              branches=(
                { lambda ; e:f32[]. let f:f32[] = sub e 3.0 in (f,) }
                { lambda ; g:f32[]. let h:f32[] = add g 3.0 in (h,) }
              )
            ] c a
          in (d,) }""")
    for arg in 5.0, -5.0:
        assert func7_with_five_arguments(arg) == func7(arg)


def test_cond_with_a_const_that_one_branch_reads():
    assert str(make_jaxpr(func8)(5.0, (jnp.zeros(1), 2.0))) == textwrap.dedent("""\
        { lambda a:i32[1]; b:f32[] c:f32[1] d:f32[]. let
            e:bool[] = ge b 0.0
            f:i32[] = convert_element_type[new_dtype=int32 weak_type=False] e
            g:f32[1] = cond[
              branches=(
                { lambda ; h:i32[1] i:f32[1] j:f32[]. let
                    k:f32[1] = convert_element_type[new_dtype=float32 weak_type=True] h
                    l:f32[1] = add k j
                  in (l,) }
                { lambda ; m_:i32[1] n:f32[1] o:f32[]. let  in (n,) }
              )
            ] f a c d
          in (g,) }""")


def test_scan():
    text = """\
{ lambda ; a:f32[16] b:f32[]. let
    c:f32[16] = broadcast_in_dim[
      broadcast_dimensions=()
      shape=(16,)
      sharding=None
    ] 1.0
    d:f32[] e:f32[16] = scan[
      _split_transpose=False
      jaxpr={ lambda ; f:f32[] g:f32[] h:f32[] i:f32[]. let
          j:f32[] = mul h i
          k:f32[] = convert_element_type[new_dtype=float32 weak_type=False] g
          l:f32[] = add k j
          m:f32[] = convert_element_type[new_dtype=float32 weak_type=False] f
          n:f32[] = add l m
        in (n, g) }
      length=16
      linear=(False, False, False, False)
      num_carry=1
      num_consts=1
      reverse=False
      unroll=1
    ] b 0.0 a c
  in (d, e) }"""
    assert str(make_jaxpr(func11)(np.ones(16), 5.0)) == text


def func13(arr, extra):
    def inner(x):
        # use a free variable "extra" and a constant jnp.ones(1)
        return (x + extra + jnp.ones(1)) / lax.psum(x, axis_name="rows")

    return pmap(inner, axis_name="rows")(arr)


def test_pmap():
    # The first JAX did not stage ones, and x + extra promoted silently.
    text = make_jaxpr(func13)(jnp.ones((1, 3)), 5.0).pretty_print(notation="classic")
    assert text == textwrap.dedent("""\
        { lambda  ; a b.
          let c = xla_pmap[ axis_name=rows
                            axis_size=1
                            backend=None
                            call_jaxpr={ lambda  ; a b.
                                         let c = convert_element_type[ new_dtype=float32
                                                                       weak_type=False ] a
                                             d = add b c
                                             e = broadcast_in_dim[ broadcast_dimensions=()
                                                                   shape=(1,)
                                                                   sharding=None ] 1.0
                                             f = broadcast_in_dim[ broadcast_dimensions=(0,)
                                                                   shape=(3,)
                                                                   sharding=None ] e
                                             g = add d f
                                             h = psum[ axis_name=rows ] b
                                             i = div g h
                                         in (i,) }
                            devices=None
                            global_axis_size=None
                            mapped_invars=(False, True)
                            name=inner ] b a
          in (c,) }""")


# --- arguments, and eval_shape ------------------------------------------------------------------

A = np.array([1.0, 2.0, 3.0], np.float32)
B = np.array([4.0, 5.0, 6.0], np.float32)


def test_static_arguments_that_a_call_leaves_out():
    times = lambda x, n=2: x * n
    for fun in (lambda x: make_jaxpr(times, static_argnums=1)(x), make_jaxpr(times)):
        assert [str(e.primitive) for e in fun(2.0).eqns] == ["mul"]
    for call in (make_jaxpr, jit):
        with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'n'"):
            call(lambda x, n: x * n, static_argnums=1)(2.0)
        with pytest.raises(TypeError, match=r"missing 2 required positional arguments"):
            call(lambda x, n: x * n, static_argnums=1)()


def test_make_jaxpr_takes_arrays_structs_statics_and_keywords():
    struct = weft.ShapeDtypeStruct((2, 3), np.float32)
    assert str(make_jaxpr(lambda x: x * 2)(struct).out_avals) == "[ShapedArray(float32[2,3])]"
    assert len(make_jaxpr(lambda x, n: x * n, static_argnums=1)(2.0, 3).in_avals) == 1
    assert len(make_jaxpr(lambda x, *, y: x * y)(A, y=B).in_avals) == 2
    closed, shapes = make_jaxpr(lambda x: {"a": x, "b": x > 0}, return_shape=True)(A)
    assert shapes["b"] == weft.ShapeDtypeStruct((3,), bool)
    assert len(closed.out_avals) == 2
    big = jnp.add(A, 1)
    assert make_jaxpr(lambda x: x + big)(B).consts[0] is big


def test_axis_env_puts_names_in_scope():
    seen = []
    make_jaxpr(lambda x: seen.append(named_axes.value), axis_env=[("i", 4)])(1.0)
    assert [(a.name, a.size) for a in seen[0]] == [("i", 4)]


def test_a_call_of_a_jitted_function_is_one_equation_named_as_the_function():
    @jit
    def scale(x):
        return x * 2

    (eqn, _) = make_jaxpr(lambda x: scale(x) + 1)(1.0).eqns
    assert eqn.params["name"] == "scale"
    assert make_jaxpr(lambda x: jit(lambda y: y * 2, inline=True)(x))(1.0).eqns[0].primitive is (
        lax.mul_p
    )


def test_eval_shape_computes_nothing():
    ran = []

    def f(x, k):
        ran.append(type(x))
        return {"a": lax.dot(x, x), "n": None, "k": k}

    out = eval_shape(f, weft.ShapeDtypeStruct((3, 3), np.float16), k=2)
    assert out == {
        "a": weft.ShapeDtypeStruct((3, 3), np.float16),
        "n": None,
        "k": weft.ShapeDtypeStruct((), np.int32, weak_type=True),
    }
    assert issubclass(ran[0], weft.core.Tracer)


def test_anything_with_a_shape_and_a_dtype_stands_for_an_array():
    class Duck:
        shape = (3,)
        dtype = np.dtype("float32")

    assert eval_shape(lambda x: x * 2, Duck()) == weft.ShapeDtypeStruct((3,), np.float32)
    assert jit(lambda x: x * 2).lower(Duck()).out_info.shape == (3,)
    with pytest.raises(TypeError, match="of type Duck at x"):
        jit(lambda x: x)(Duck())


def test_an_error_in_eval_shape_names_the_operation():
    with pytest.raises(weft.errors.ShapeError, match="add: .*f32"):
        eval_shape(lax.add, weft.ShapeDtypeStruct((3, 4), np.float32), A)
