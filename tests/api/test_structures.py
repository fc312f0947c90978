"""Pytrees known by their structure: classes that look at their leaves, and arrays of float0."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import dtypes, lax
from weft.errors import PytreeError

ROWS = np.arange(3, dtype=np.float32)


@weft.tree_util.register_pytree_node_class
class Converting:
    """A class that converts its leaf to an array, as many users' classes do."""

    def __init__(self, x):
        self.x = jnp.asarray(x)

    def tree_flatten(self):
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)


@weft.tree_util.register_pytree_node_class
class Asking(Converting):
    """A class that asks its leaf for its shape."""

    def __init__(self, x):
        self.x = x
        self.shape = x.shape


def double(c):
    return type(c)(c.x * 2)


def custom(c, kind):
    f = getattr(weft, kind)(double)
    if kind == "custom_jvp":
        f.defjvp(lambda primals, tangents: (double(*primals), double(*tangents)))
    else:
        f.defvjp(lambda c: (double(c), c), lambda _, ct: (double(ct),))
    return weft.vjp(f, c)[1](c)[0]


def over_mesh(c):
    mesh = weft.make_mesh((1,), ("i",), axis_types=(weft.sharding.AxisType.Auto,))
    spec = weft.P("i")
    return weft.shard_map(double, mesh=mesh, in_specs=spec, out_specs=spec)(c)


def beside_a_reference(c):
    ref = weft.new_ref(0.0)

    @weft.jit
    def count(ref, c):
        ref[...] += 1.0
        return double(c)

    assert (count(ref, c), count(ref, c)) and float(ref[...]) == 2.0
    return count(ref, c)


TRANSFORMED = {
    "jit": weft.jit(double),
    "jit that donates": lambda c: weft.jit(double, donate_argnums=0)(type(c)(c.x + 0)),
    "vmap": weft.vmap(double),
    "vmap with axes": lambda c: weft.vmap(lambda d: double(d["c"]), ({"c": 0},), 0)({"c": c}),
    "jvp": lambda c: weft.jvp(double, (c,), (c,))[1],
    "vjp": lambda c: weft.vjp(double, c)[1](c)[0],
    "linearize": lambda c: weft.linearize(double, c)[1](c),
    "linear_transpose": lambda c: weft.linear_transpose(double, c)(c)[0],
    "scan": lambda c: lax.scan(lambda d, x: (d, double(x)), c, c)[1],
    "scan of a carry": lambda c: lax.scan(lambda d, _: (double(d), None), c, None, length=1)[0],
    "map": lambda c: lax.map(double, c),
    "cond": lambda c: lax.cond(True, double, lambda c: c, c),
    "switch": lambda c: lax.switch(1, [lambda c: c, double], c),
    "while": lambda c: lax.while_loop(lambda d: jnp.all(d.x == c.x), double, c),
    "fori": lambda c: lax.fori_loop(0, 1, lambda i, d: double(d), c),
    "checkpoint": weft.checkpoint(double),
    "custom_jvp": functools.partial(custom, kind="custom_jvp"),
    "custom_vjp": functools.partial(custom, kind="custom_vjp"),
    "shard_map": over_mesh,
    "a reference": beside_a_reference,
}


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("cls", [Converting, Asking])
def test_classes_that_look_at_their_leaves(cls, name):
    c = cls(jnp.asarray(ROWS))
    np.testing.assert_array_equal(TRANSFORMED[name](c).x, 2 * ROWS)


def test_errors_for_a_class_that_asks_its_leaves():
    c = Asking(jnp.asarray(ROWS))
    with pytest.raises(weft.errors.ShapeError, match=r"got f32\[3\] at carry.* and f32\[\]"):
        lax.scan(lambda d, x: (Asking(d.x[0]), None), c, None, length=2)
    with pytest.raises(PytreeError, match="got a dict with keys 'a' at out_axes where result has"):
        weft.vmap(lambda c: c, out_axes={"a": 0})(c)


NOTHING = np.zeros((2,), dtypes.float0)


def make_loops(count):
    """Programs that are given arrays of float0, and give some: the result is (2,) or (count, 2)."""
    rows = np.zeros((count, 2), dtypes.float0)
    more = lambda c, _: (c, NOTHING)
    return {
        "scan": lambda: lax.scan(more, 0, jnp.ones(count))[1],
        "scan of rows": lambda: lax.scan(lambda c, x: (c, {"x": x}), 0, rows)[1]["x"],
        "scan of both": lambda: lax.scan(lambda c, x: (c, x[0]), 0, (rows, jnp.ones(count)))[1],
        "scan of a carry": lambda: lax.scan(lambda c, x: (c, x), NOTHING, ROWS)[0],
        "map": lambda: lax.map(lambda x: NOTHING, jnp.ones(count)),
        "map of rows": lambda: lax.map(lambda x: x, rows),
        "cond": lambda: lax.cond(True, lambda: NOTHING, lambda: NOTHING),
        "cond of one": lambda: lax.cond(False, lambda x, y: x, lambda x, y: x, NOTHING, 1.0),
        "switch": lambda: lax.switch(1, [lambda x: x] * 3, NOTHING),
        "while": lambda: lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, NOTHING)
        )[1],
        "fori": lambda: lax.fori_loop(0, 3, lambda i, c: c, NOTHING),
        "fori of a bound": lambda: weft.jit(
            lambda n: lax.fori_loop(0, n, lambda i, c: (c[0] + 1, c[1]), (0, NOTHING))
        )(3)[1],
        "checkpoint": lambda: weft.checkpoint(lambda x: x)(NOTHING),
    }


@pytest.mark.parametrize("name", make_loops(3))
def test_float0_in_programs(name):
    plain = make_loops(3)[name]
    for run in (plain, weft.jit(plain)):
        found = run()
        assert found.dtype == dtypes.float0
        assert found.shape == ((3, 2) if found.ndim == 2 else (2,))
    assert (found.ndim == 2) == ("map" in name or ("scan" in name and "carry" not in name))


def test_float0_in_a_carry_is_checked():
    with pytest.raises(PytreeError, match="the carry must keep its structure"):
        lax.while_loop(lambda c: True, lambda c: 1.0, NOTHING)
    with pytest.raises(PytreeError, match="branches must return the same structure"):
        lax.cond(True, lambda: NOTHING, lambda: np.zeros(3, dtypes.float0))


def test_float0_beside_derivatives():
    f = lambda x: lax.scan(lambda c, _: (c * x, NOTHING), 1.0, None, length=3)
    assert weft.grad(lambda x: f(x)[0])(2.0) == 12.0
    carry, rows = weft.vmap(f)(jnp.arange(2.0))
    assert rows.dtype == dtypes.float0 and rows.shape == (2, 3, 2) and carry.shape == (2,)
