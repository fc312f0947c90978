"""The rules of `while`: printing, lowering, forward mode, batching, clean-up, the later part."""

import textwrap

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import jit, jvp, lax, make_jaxpr, vmap
from weft.passes.dce import dce_jaxpr


@pytest.fixture(autouse=True)
def checked():
    with weft.enable_checks():
        yield


def whiles(jaxpr):
    return [e for e in jaxpr.eqns if e.primitive.name == "while"]


def body_of(f, *args):
    (eqn,) = whiles(make_jaxpr(f)(*args).jaxpr)
    return eqn.params["body_jaxpr"]


def func10(arg, n):
    ones = jnp.ones(arg.shape)  # A constant.
    return lax.fori_loop(0, n, lambda i, carry: carry + ones * 3.0 + arg, arg + ones)


def test_prints_as_in_seed_003():
    assert str(make_jaxpr(func10)(np.ones(16), 5)) == textwrap.dedent("""\
        { lambda ; a:f32[16] b:i32[]. let
            c:f32[16] = broadcast_in_dim[
              broadcast_dimensions=()
              shape=(16,)
              sharding=None
            ] 1.0
            d:f32[16] = add a c
            _:i32[] _:i32[] e:f32[16] = while[
              body_jaxpr={ lambda ; f:f32[16] g:f32[16] h:i32[] i:i32[] j:f32[16]. let
                  k:i32[] = add h 1
                  l:f32[16] = mul f 3.0
                  m:f32[16] = add j l
                  n:f32[16] = add m g
                in (k, i, n) }
              body_nconsts=2
              cond_jaxpr={ lambda ; o:i32[] p:i32[] q:f32[16]. let
                  r:bool[] = lt o p
                in (r,) }
              cond_nconsts=0
            ] c a 0 b d
          in (e,) }""")
    assert func10(np.ones(2), 5).tolist() == jit(func10)(np.ones(2), 5).tolist() == [22.0, 22.0]


def test_what_a_user_asks_of_reverse_mode_is_printed():
    loop = lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x, checkpoints=7)
    assert "checkpoints=7" in str(make_jaxpr(loop)(1.0))


def test_what_does_not_change_is_named_from_outside():
    text = jit(func10).lower(np.ones(16), 5).as_text()
    assert '"stablehlo.while"(%' in text
    operands = text.split('"stablehlo.while"(')[1].split(")")[0].split(",")
    assert len(operands) == 2  # the index and the carry, without the bound and consts


# --------------------------------------------------------------------------------------------
# Forward mode.


def test_only_what_moves_has_a_tangent():
    def loop(x):
        body = lambda c: (c[0] + 1, c[1] * x, c[2] + 2.0)
        return lax.while_loop(lambda c: c[2] < 9.0, body, (0, x, 1.0))

    body = body_of(lambda x: jvp(loop, (x,), (1.0,)), 2.0)
    assert len(body.outvars) == 4
    out, dot = jvp(loop, (2.0,), (1.0,))
    assert [float(x) for x in out] == [4, 2.0**5, 9.0] and float(dot[1]) == 5 * 2.0**4
    assert dot[0].dtype == weft.float0 and float(dot[2]) == 0.0


def test_tangents_reach_the_carry_step_by_step():
    def loop(x):  # a tangent that starts in the last of the carry is in the first two steps later
        body = lambda c: (c[1], c[2], c[2] * x, c[3] + 1)
        return lax.while_loop(lambda c: c[3] < 4, body, (1.0, 2.0, 3.0, 0))[:3]

    out, dot = jvp(loop, (2.0,), (1.0,))
    assert [float(x) for x in out] == [12.0, 24.0, 48.0]
    assert [float(x) for x in dot] == [12.0, 36.0, 96.0]


def test_linearize_runs_the_loop_once_and_the_tangents_later():
    loop = lambda x: lax.while_loop(lambda c: c < 50.0, lambda c: c * x, x)
    out, linear = weft.linearize(loop, 2.0)
    assert float(out) == 64.0 and float(linear(1.0)) == 6 * 2.0**5
    out, dots = vmap(lambda t: jvp(loop, (2.0,), (t,)))(jnp.array([1.0, 2.0]))
    assert dots.tolist() == [192.0, 384.0]


# --------------------------------------------------------------------------------------------
# Batching.


def test_one_predicate_for_all_stays_one():
    def loop(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))

    (eqn,) = whiles(make_jaxpr(vmap(loop))(jnp.arange(3.0)).jaxpr)
    assert [str(a) for a in eqn.params["cond_jaxpr"].out_avals] == ["bool[]"]
    assert [str(a) for a in eqn.params["body_jaxpr"].out_avals] == ["i32[]", "f32[3]"]
    assert vmap(loop)(jnp.arange(3.0))[1].tolist() == [0.0, 1.0, 16.0]


def test_each_element_stops_by_its_own_predicate():
    def loop(x, limit):
        return lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + x, c[1] + 1), (x, 0))

    def python(x, limit):
        a, n = x, 0
        while a < limit:
            a, n = a + x, n + 1
        return a, n

    xs, limits = np.array([1.0, 2.0, 3.0, 50.0]), np.array([9.0, 5.0])
    f = vmap(vmap(loop, (0, None)), (None, 0))
    want = np.array([[python(x, m) for x in xs] for m in limits])
    for g in (f, jit(f)):
        np.testing.assert_array_equal(np.stack(g(xs, limits), -1), want)
    mapped_limit = vmap(loop, (None, 0))(2.0, limits)  # the consts of the predicate are mapped
    np.testing.assert_array_equal(np.stack(mapped_limit, -1), [python(2.0, m) for m in limits])
    many = lax.while_loop  # an axis that is mapped elsewhere than in front
    sums = vmap(lambda x: many(lambda c: c.sum() < 9.0, lambda c: c + x, x), 1, 1)
    np.testing.assert_array_equal(sums(np.ones((2, 3)) * [1.0, 2.0, 6.0]), [[5, 6, 6]] * 2)


def test_a_carry_mapped_by_an_axis_that_the_predicate_has_not():
    def loop(x, y):  # the inner vmap maps the predicate, the outer one only y
        body = lambda c: (c[0] * 2, c[1] + y)
        return lax.while_loop(lambda c: c[0] < 9.0, body, (x, y))[1]

    xs, ys = jnp.array([1.0, 3.0]), jnp.array([1.0, 10.0, 100.0])
    out = vmap(vmap(loop, (0, None)), (None, 0))(xs, ys)
    np.testing.assert_array_equal(out, np.outer(ys, [5.0, 3.0]))


def test_sizes_of_zero():
    loop = lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x)
    assert vmap(loop)(jnp.zeros(0)).shape == (0,)
    still = lambda x: lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] * 2, c[1] + x), (1, x))[1]
    assert vmap(still)(jnp.zeros((0, 2))).shape == (0, 2)


# --------------------------------------------------------------------------------------------
# Clean-up.


def test_dead_carries_go_and_what_they_need():
    def loop(x, y):
        body = lambda c: (c[0] + 1, c[1] * 2, c[2] + c[1], c[3] * y)
        return lax.while_loop(lambda c: c[0] < 3, body, (0, x, x, y))

    jaxpr = make_jaxpr(loop)(1.0, 2.0).jaxpr
    for live, left in [((0, 0, 1, 0), 3), ((0, 1, 0, 0), 2), ((0, 0, 0, 1), 2), ((1, 0, 0, 0), 1)]:
        (eqn,) = whiles(dce_jaxpr(jaxpr, [bool(m) for m in live])[0])
        assert len(eqn.params["body_jaxpr"].outvars) == len(eqn.params["cond_jaxpr"].invars) == left
    assert whiles(dce_jaxpr(jaxpr, [False] * 4)[0]) == []
    assert whiles(dce_jaxpr(jaxpr, [True] * 4)[0]) == whiles(jaxpr)


def test_a_loop_nobody_asks_for_is_not_run():
    assert float(jit(lambda x: (lax.while_loop(lambda c: True, lambda c: c, x), x)[1])(2.0)) == 2.0


def test_the_later_part_of_a_loop_that_counts_needs_no_count():
    f = lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, x)
    text = str(make_jaxpr(lambda x, n: weft.vjp(lambda x: f(x, n), x)[1](1.0))(2.0, 3))
    assert text.count("while[") == 1 and "add d 1" not in text.split("reversal")[0][200:]
    assert float(weft.grad(f)(2.0, 3)) == 4 * 2.0**3
