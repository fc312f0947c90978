"""`scan` and `map` on pytrees: arguments, structures, types and errors."""

from typing import NamedTuple

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit, lax, vmap
from weft.api.scan import scan
from weft.errors import DtypeError, PytreeError, ShapeError

XS = np.arange(6.0, dtype=np.float32).reshape(3, 2)


class State(NamedTuple):
    position: object
    velocity: object


def step(c, x):
    return c + x, c * 2.0


# --------------------------------------------------------------------------------------------
# scan.


def test_pytrees():
    def body(c, x):
        state, extra = c["state"], c["none"]
        moved = State(state.position + x[0]["a"], state.velocity)
        return {"state": moved, "none": extra}, (moved.position, {"n": None, "k": x[1]})

    init = {"state": State(jnp.zeros(2), 3.0), "none": None}
    c, (ys, rest) = scan(body, init, ({"a": XS}, np.arange(3)))
    assert type(c["state"]) is State and c["none"] is None and c["state"].velocity == 3.0
    assert rest["n"] is None and rest["k"].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(ys, XS.cumsum(0))


def test_keyword_arguments_and_length():
    c, ys = scan(f=lambda c, x: (c + 1, x), init=0, length=4)
    assert c == 4 and ys is None
    c, ys = scan(f=step, init=jnp.zeros(2), xs=XS, length=np.int64(3), reverse=True, unroll=2)
    np.testing.assert_array_equal(ys, 2 * np.flip(np.cumsum(XS[::-1], 0) - XS[::-1], 0))
    assert scan(step, jnp.zeros(2), XS, None, False, 1, _split_transpose=True)[0].tolist() == [6, 9]


def test_numpy_and_python_values():
    c, ys = scan(step, 1, np.array([1, 2, 3]))
    assert c == 7 and c.dtype == np.int32 and ys.dtype == np.float32
    c, _ = scan(lambda c, x: (c + x, None), 1.0, np.float64([1, 2]))
    assert c.dtype == np.float32


def test_numbers_take_the_type_that_the_body_gives_them():
    (c, n), _ = scan(lambda c, x: ((c[0] + x, c[1] + 1), None), (0, 0), XS[0])
    assert c == 1.0 and c.dtype == np.float32 and n.dtype == np.int32
    # one may need the other to be settled first
    (a, b), _ = scan(lambda c, x: ((c[0] + x, c[1] + c[0]), None), (0, 0), XS[0])
    assert a.dtype == b.dtype == np.float32


def test_a_body_is_traced_once():
    traced = []

    def body(c, x):
        traced.append(1)
        return step(c, x)

    for i in range(3):
        scan(body, jnp.zeros(2) + i, XS)
    assert len(traced) == 1
    scan(body, jnp.zeros(2), XS[:2])
    assert len(traced) == 1  # the length is not part of the body


def test_bodies_close_over_anything():
    table, scale = jnp.arange(2.0), np.float32(3.0)

    def f(w):
        return scan(lambda c, x: (c + w * x * table * scale, None), jnp.zeros(2), XS)[0].sum()

    assert f(2.0) == jit(f)(2.0) == 54.0
    assert grad(f)(2.0) == jit(grad(f))(2.0) == 27.0
    assert vmap(grad(f))(np.ones(2, np.float32)).tolist() == [27.0, 27.0]
    ones = np.ones(2, np.float32)
    assert vmap(grad(f))(ones).tolist() == grad(lambda w: vmap(f)(w).sum())(ones).tolist()


def test_zero_length():
    c, ys = scan(step, jnp.ones(2), XS[:0])
    assert c.tolist() == [1, 1] and ys.shape == (0, 2)
    assert scan(step, 1.0, XS[:0, 0], unroll=True)[1].shape == (0,)
    assert scan(lambda c, x: (c, x), 1.0, None, length=0) == (1.0, None)
    assert grad(lambda c: scan(step, c, XS[:0, 0])[0])(1.0) == 1.0


def test_without_jit_it_is_a_loop_in_python():
    seen = []

    def body(c, x):
        seen.append(float(x))
        return (c + x, x) if x > 1 else (c, -x)

    with weft.disable_jit():
        c, ys = scan(body, 0.0, XS[0] + 1, reverse=True)
        assert seen == [2.0, 1.0] and c == 2.0 and ys.tolist() == [-1.0, 2.0]
        assert grad(lambda c: scan(lambda c, x: (c * x, None), c, XS[:, 1])[0])(1.0) == 15.0
        assert scan(step, 0.0, XS[0, :0])[1].shape == (0,)
        assert scan(lambda c, x: (c.astype(x.dtype), c.shape), 0, XS[0])[0] == 0
        assert lax.map(lambda x: x if x > 1 else -x, XS[0] + 1).tolist() == [-1.0, 2.0]


ERRORS = [
    (lambda: scan(3, 0.0, XS), TypeError, "scan: needs a function; got 3 of type int."),
    (
        lambda: scan(step, 0.0),
        ValueError,
        r"scan: needs arrays in xs, or length; got neither. Hint: length=10.",
    ),
    (
        lambda: scan(step, 0.0, {"a": XS, "b": np.float32(1)}),
        ShapeError,
        r"scan: each array of xs must have an axis to go along; got f32\[\] at xs\['b'\]. "
        "Hint: close over what is the same in every step.",
    ),
    (
        lambda: scan(step, 0.0, (XS, XS[:2])),
        ShapeError,
        r"scan: the first axes of xs must be equally long; got f32\[3,2\] at xs\[0\] and "
        r"f32\[2,2\] at xs\[1\].",
    ),
    (
        lambda: scan(step, 0.0, XS, length=4),
        ShapeError,
        r"scan: the first axes of xs must be as long as length; got f32\[3,2\] at xs and length=4.",
    ),
    (
        lambda: scan(step, 0.0, XS, length=2.5),
        TypeError,
        "scan: length must be an integer; got 2.5.",
    ),
    (
        lambda: scan(step, 0.0, None, length=-1),
        ValueError,
        "scan: length must be at least 0; got -1.",
    ),
    (
        lambda: scan(step, 0.0, XS[0], unroll=-1),
        ValueError,
        "scan: unroll must be a bool or an integer >= 0; got -1.",
    ),
    (
        lambda: scan(lambda c, x: c, 0.0, XS),
        PytreeError,
        r"scan: <lambda> must return a pair \(carry, y\); got .*. Hint: return carry, None.",
    ),
    (
        lambda: scan(lambda c, x: ((c, c), None), 0.0, XS),
        PytreeError,
        r"scan: the carry must keep its structure; got a leaf at carry where the one that "
        r"<lambda> returns has a tuple.*",
    ),
    (
        lambda: scan(lambda c, x: ({"w": c["w"][:1]}, None), {"w": jnp.ones(2)}, XS),
        ShapeError,
        r"scan: the carry must keep its shapes; got f32\[2\] at carry\['w'\] and f32\[1\] for it "
        "from <lambda>.",
    ),
    (
        lambda: scan(lambda c, x: ([c[0].astype(jnp.int32)], None), [jnp.ones(2)], XS),
        DtypeError,
        r"scan: the carry must keep its dtypes; got f32\[2\] at carry\[0\] and i32\[2\] for it "
        r"from <lambda>. Hint: return it as .astype\(jnp.float32\).",
    ),
    (
        lambda: scan(lambda c, x: (c + 1.5, None), jnp.ones(2, jnp.int32), XS),
        DtypeError,
        r"scan: the carry must keep its dtypes; got i32\[2\] at carry and f32\[2\] for it "
        r"from <lambda>. Hint: start with carry.astype\(jnp.float32\).",
    ),
    (
        lambda: scan(step, "a", XS),
        DtypeError,
        "scan: arguments must be arrays or numbers; got 'a' of type str at c of step.*",
    ),
    (
        lambda: lax.map(step, None),
        ValueError,
        r"map: needs arrays in xs; got none. Hint: lax.map\(lambda i: f\(\), jnp.arange\(10\)\) .*",
    ),
    (
        lambda: lax.map(jnp.sin, XS, batch_size=0),
        ValueError,
        "map: batch_size must be at least 1; got 0.",
    ),
]


@pytest.mark.parametrize("call, error, text", ERRORS, ids=range(len(ERRORS)))
def test_errors(call, error, text):
    with pytest.raises(error, match=f"^{text}$"):
        call()
    assert scan(step, 0.0, XS[0])[0] == 1.0  # nothing is lost


def test_a_length_must_be_known():
    with pytest.raises(TypeError, match="length: needs a concrete value; got a traced i32"):
        jit(lambda n: scan(step, 0.0, None, length=n))(3)


# --------------------------------------------------------------------------------------------
# map.


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7, 10])
def test_map(batch_size):
    xs = {"a": np.arange(7.0, dtype=np.float32), "b": XS[:1].repeat(7, 0)}
    f = lambda x: (x["a"] * x["b"], {"n": None, "two": 2})
    ys, rest = lax.map(f, xs, batch_size=batch_size)
    np.testing.assert_array_equal(ys, xs["a"][:, None] * xs["b"])
    assert rest["n"] is None and rest["two"].tolist() == [2] * 7
    loss = lambda a: lax.map(lambda x: jnp.sin(x) * a[0], a, batch_size=batch_size).sum()
    want = grad(lambda a: (jnp.sin(a) * a[0]).sum())(xs["a"])
    np.testing.assert_allclose(grad(loss)(xs["a"]), want, rtol=1e-5)


def test_map_of_nothing():
    assert lax.map(jnp.sin, XS[:0]).shape == (0, 2)
    assert lax.map(jnp.sin, XS[:0], batch_size=2).shape == (0, 2)


def test_map_stages_its_function_once():
    traced = []

    def f(x):
        traced.append(1)
        return x * 2

    for _ in range(2):
        lax.map(f, XS)
        lax.map(f, XS, batch_size=2)
    assert len(traced) == 1
