"""`while_loop` and `fori_loop` as users call them: values, types of the carry, bounds, errors."""

import collections
import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, lax, make_jaxpr, vmap
from weft.errors import DtypeError, PytreeError, ShapeError


def doubled(x, limit=9.0, **how):
    return lax.while_loop(lambda c: c < limit, lambda c: c * 2, x, **how)


# --------------------------------------------------------------------------------------------
# while_loop.


def test_values_eagerly_and_compiled():
    for x in (1.0, 3.0, 10.0, -0.0, float("inf")):
        want = x
        while want < 9.0 and want != 0:
            want *= 2
        if x != 0:
            assert float(doubled(x)) == float(jit(doubled)(x)) == want
    assert np.isnan(doubled(float("nan")))


def test_structures_are_kept():
    Pair = collections.namedtuple("Pair", "a b")
    init = {"p": Pair(0, jnp.ones(2)), "none": None, "list": [1.0]}

    def body(c):
        a, b = c["p"]
        return {"p": Pair(a + 1, b * 2), "none": None, "list": [c["list"][0] + a]}

    out = lax.while_loop(lambda c: c["p"].a < 3, body, init)
    assert type(out["p"]) is Pair and out["none"] is None
    assert [int(out["p"].a), out["p"].b.tolist(), float(out["list"][0])] == [3, [8.0, 8.0], 4.0]
    assert lax.while_loop(lambda c: False, lambda c: c, ()) == ()


def test_functions_of_any_kind():
    less, times = functools.partial(lambda a, x: x < a, 9), functools.partial(lambda a, x: x * a, 2)
    assert int(lax.while_loop(less, times, 1)) == 16
    assert float(lax.while_loop(lambda c: False, lambda c: c + 1, 1.0)) == 1.0
    assert float(lax.while_loop(jit(lambda c: c < 9), jit(lambda c: c * 2), 1.0)) == 16.0


def test_a_carry_that_is_a_number_takes_the_dtype_of_the_body():
    out = lax.while_loop(lambda c: c < 3, lambda c: c + jnp.float32(1.5), 0)
    assert (out.dtype, float(out)) == (jnp.float32, 3.0)
    half = jnp.bfloat16(1.5)
    out = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + half, c[1] + c[0]), (0, 1))
    assert [x.dtype for x in out] == [jnp.bfloat16] * 2  # one after the other
    y = jnp.float32(2.0)
    assert str(make_jaxpr(lambda y: lax.while_loop(lambda c: c < 3, lambda c: c + y, 1))(y)) == (
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = while[\n"
        "      body_jaxpr={ lambda ; c:f32[] d:f32[]. let e:f32[] = add d c in (e,) }\n"
        "      body_nconsts=1\n"
        "      cond_jaxpr={ lambda ; f:f32[]. let g:bool[] = lt f 3.0 in (g,) }\n"
        "      cond_nconsts=0\n"
        "    ] a 1.0\n"
        "  in (b,) }"
    )


def test_an_eager_loop_stages_its_functions_once():
    staged = []

    def body(c):
        staged.append(c)
        return c + 1

    go = lambda c: c < 3
    for start in (0.0, 1.0, 2.0):
        assert float(lax.while_loop(go, body, start)) == 3.0
    assert len(staged) == 1
    for _ in range(3):
        grad(lambda x: lax.while_loop(go, body, x))(0.0)
    assert len(staged) == 1


def test_max_steps():
    assert [float(doubled(1.0, max_steps=n)) for n in (0, 2, 4, 9)] == [1.0, 4.0, 16.0, 16.0]
    forever = lambda x: lax.while_loop(lambda c: True, lambda c: c * x, x, max_steps=3)
    assert float(forever(2.0)) == 16.0 and float(grad(forever)(2.0)) == 32.0
    assert vmap(lambda x: doubled(x, max_steps=2))(jnp.array([1.0, 3.0])).tolist() == [4.0, 12.0]


def test_without_jit_loops_are_pythons():
    seen = []

    def body(c):
        seen.append(float(c))
        return c * 2

    with weft.disable_jit():
        assert float(lax.while_loop(lambda c: c < 5, body, 1.0)) == 8.0
        assert seen == [1.0, 2.0, 4.0]
        assert float(doubled(1.0, max_steps=2)) == 4.0
        assert float(grad(doubled)(1.0)) == 16.0
        assert vmap(doubled)(jnp.array([1.0, 3.0])).tolist() == [16.0, 12.0]
        assert float(lax.fori_loop(0, jnp.int32(3), lambda i, c: c + i, 0.0)) == 3.0
        counts = vmap(lambda n: lax.fori_loop(0, n, lambda i, c: c + 1, 0))(jnp.arange(3))
        assert counts.tolist() == [0, 1, 2]
        typed = lambda *args: args[-1].astype(args[0].dtype)
        assert lax.while_loop(lambda c: c < 5, lambda c: typed(c, c + 1), 0) == 5
        assert lax.fori_loop(0, 2, lambda i, c: typed(i, c + i), 0) == 1


@pytest.mark.parametrize("n", [3, np.int32(3), jnp.int32(3)])
def test_the_index_is_as_weak_as_the_lower_bound(n):
    for fori_loop in (lax.fori_loop, jit(lax.fori_loop, static_argnums=2)):
        total = fori_loop(0, n, lambda i, c: c + i, jnp.int8(0))
        assert total == 3 and total.dtype == jnp.int8
    with pytest.raises(TypeError, match="carry must keep its dtypes"):
        lax.fori_loop(jnp.int32(0), n, lambda i, c: c + i, jnp.int8(0))


def test_errors_of_while_loop():
    go, double = (lambda c: c < 3), (lambda c: c * 2)

    def of(error, text, *args, **how):
        with pytest.raises(error) as info:
            lax.while_loop(*args, **how)
        assert str(info.value) == "while_loop: " + text

    def index(c):
        return c

    of(ShapeError, "<lambda> must return a scalar bool; got bool[2]. Hint: jnp.any(...) or "
       "jnp.all(...), or vmap for a loop of each element.", go, double, jnp.zeros(2))  # fmt: skip
    of(DtypeError, "index must return a scalar bool; got i32[]. Hint: return x != 0.",
       index, double, 1)  # fmt: skip
    of(TypeError, "<lambda> must return a scalar bool; got (bool[],).",
       lambda c: (c < 3,), double, 1)  # fmt: skip
    of(DtypeError, "the carry must keep its dtypes; got i32[] at carry[0] and f32[] for it from "
       "<lambda>. Hint: start with carry[0].astype(jnp.float32).",
       lambda c: c[0] < 3, lambda c: (c[0] + 1.0, c[1]), (jnp.int32(1), 1.0))  # fmt: skip
    of(DtypeError, "the carry must keep its dtypes; got bf16[] at carry and i32[] for it from "
       "<lambda>. Hint: return it as .astype(jnp.bfloat16).",
       go, lambda c: jnp.int32(1), jnp.bfloat16(1))  # fmt: skip
    of(ShapeError, "the carry must keep its shapes; got f32[2] at carry['b'] and f32[3] for it "
       "from <lambda>.",
       lambda c: c["a"] < 3, lambda c: {"a": c["a"], "b": jnp.ones(3)},
       {"a": 1, "b": jnp.zeros(2)})  # fmt: skip
    of(PytreeError, "the carry must keep its structure; got a tuple of length 2 at carry where "
       "the one that <lambda> returns has a list of length 2.",
       lambda c: c[0] < 3, lambda c: [c[0], c[1]], (1, 2))  # fmt: skip
    of(ValueError, "max_steps must be at least 0; got -1.", go, double, 1, max_steps=-1)
    of(ValueError, "checkpoints must be at least 1; got 0.", go, double, 1, checkpoints=0)
    of(TypeError, "max_steps must be an integer; got 1.5.", go, double, 1, max_steps=1.5)
    with pytest.raises(TypeError, match="while_loop: needs a function; got 3"):
        lax.while_loop(3, double, 1)
    with pytest.raises(
        DtypeError, match="while_loop: arguments must be arrays or numbers; got 'a'"
    ):
        lax.while_loop(go, double, "a")
    assert float(lax.while_loop(go, double, 1.0)) == 4.0  # nothing is lost


# --------------------------------------------------------------------------------------------
# fori_loop.


def test_bounds():
    count = lambda low, high: int(lax.fori_loop(low, high, lambda i, c: c + i, 0))
    for low, high in [(0, 5), (2, 2), (5, 0), (-3, 2), (np.int32(1), np.array(4)), (False, True)]:
        want = sum(range(int(low), int(high)))
        assert count(low, high) == want
        assert count(jnp.int32(low), int(high)) == count(int(low), jnp.int32(high)) == want
        assert int(jit(lambda a, b: lax.fori_loop(a, b, lambda i, c: c + i, 0))(low, high)) == want


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "float32"])
def test_the_index_has_the_dtype_of_the_bounds(dtype):
    seen = []

    def body(i, c):
        seen.append(i.dtype)
        return c + 1

    start = 0.0 if dtype == "float32" else 0
    assert int(lax.fori_loop(start, jnp.array(4, dtype), body, 0)) == 4
    assert int(lax.fori_loop(np.array(1, dtype), jnp.array(4, dtype), body, 0)) == 3
    assert {str(d) for d in seen} == {dtype}


def test_a_loop_of_known_length_is_a_scan():
    known = make_jaxpr(lambda x: lax.fori_loop(0, 5, lambda i, c: c * x + i, x))(2.0)
    assert [e.primitive.name for e in known.eqns] == ["scan"]
    assert known.eqns[0].params["length"] == 5 and known.eqns[0].params["unroll"] == 1
    for unroll in (1, 2, True):
        loop = lambda x: lax.fori_loop(0, 5, lambda i, c: c * x + i, x, unroll=unroll)  # noqa: B023
        assert float(loop(2.0)) == 90.0
    traced = make_jaxpr(lambda n: lax.fori_loop(0, n, lambda i, c: c * i, 1.0, unroll=1))(5)
    assert [e.primitive.name for e in traced.eqns] == ["while"]


def test_fori_loop_scatters():
    fill = lambda n: lax.fori_loop(0, n, lambda i, a: a.at[i].set(i * i), jnp.zeros(6))
    assert fill(6).tolist() == jit(fill)(6).tolist() == [0.0, 1.0, 4.0, 9.0, 16.0, 25.0]
    assert jit(fill)(3).tolist() == [0.0, 1.0, 4.0, 0.0, 0.0, 0.0]


def test_errors_of_fori_loop():
    def of(error, text, *args, **how):
        with pytest.raises(error) as info:
            lax.fori_loop(*args, **how)
        assert str(info.value) == "fori_loop: " + text

    double = lambda i, c: c * 2
    of(DtypeError, "bounds must have one dtype; got i8[], i32[]. Hint: upper.astype(jnp.int8).",
       jnp.int8(0), jnp.int32(5), double, 1.0)  # fmt: skip
    of(DtypeError, "bounds must both be integers or both floats; got i32[], f32[]. "
       "Hint: int(upper), or astype(int) of a traced one.",
       0, 5.0, double, 1.0)  # fmt: skip
    of(DtypeError, "bounds must both be integers or both floats; got f32[], i32[]. "
       "Hint: int(lower), or astype(int) of a traced one.",
       jnp.float32(0), 5, double, 1.0)  # fmt: skip
    of(ShapeError, "bounds must be scalar integers; got i32[3], i32[].",
       jnp.zeros(3, int), 5, double, 1.0)  # fmt: skip
    of(ValueError, "unroll needs bounds that are known now; got unroll=2 with bounds i32[], i32[]. "
       "Hint: mark them static in jit (static_argnums).",
       0, jnp.int32(4), double, 1.0, unroll=2)  # fmt: skip
    of(DtypeError, "the carry must keep its dtypes; got i32[] at carry and f32[] for it from "
       "<lambda>. Hint: start with carry.astype(jnp.float32).",
       0, 3, lambda i, c: c * 0.5, jnp.int32(1))  # fmt: skip
    of(ShapeError, "the carry must keep its shapes; got f32[2] at carry['a'] and f32[] for it from "
       "<lambda>.",
       0, jnp.int32(3), lambda i, c: {"a": c["a"].sum()}, {"a": jnp.ones(2)})  # fmt: skip
    with pytest.raises(TypeError, match="fori_loop: needs a function; got 4"):
        lax.fori_loop(0, 3, 4, 1.0)
    with pytest.raises(DtypeError, match="fori_loop: arguments must be arrays or numbers"):
        lax.fori_loop(0, 3, double, {"a": "b"})


@pytest.mark.parametrize("start", [0, 0.0, np.float32(0)])
def test_a_carry_that_takes_another_dtype_is_strong(start):
    """JAX does the same in every loop; a carry that keeps its dtype keeps its weak type."""
    step = lambda c: c + 0.5
    found = [
        lax.fori_loop(0, 3, lambda i, c: step(c), start),
        weft.jit(lambda n: lax.fori_loop(0, n, lambda i, c: step(c), start))(3),
        lax.while_loop(lambda c: c < 1, step, start),
        lax.scan(lambda c, _: (step(c), None), start, None, length=2)[0],
    ]
    for x in found:
        assert x.dtype == np.float32 and x.weak_type == (type(start) is float)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ((None, 3), "fori_loop: bounds must be integers; got None, 3."),
        (
            (0, "a"),
            "fori_loop: arguments must be arrays or numbers; got 'a' of type str at upper of "
            "fori_loop. Hint: close over it, as in lambda x: f(x, setting).",
        ),
        ((1j, 3.0), "fori_loop: bounds must be scalar integers; got c64[], f32[]."),
        ((0, np.ones(2, int)), "fori_loop: bounds must be scalar integers; got i32[], i32[2]."),
        (
            (0.5, 2),
            "fori_loop: bounds must both be integers or both floats; got f32[], i32[]. Hint: "
            "int(lower), or astype(int) of a traced one.",
        ),
    ],
)
def test_bounds_that_are_none(bounds, said):
    with pytest.raises(TypeError) as info:
        lax.fori_loop(*bounds, lambda i, c: c, 0.0)
    assert str(info.value) == said
