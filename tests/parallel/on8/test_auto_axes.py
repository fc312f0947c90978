"""Programs with parts left to the compiler, or typed, or written for one device: numbers.

All programs of a table are one, compiled once for the mesh and once for one device.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, grad, jit, lax, reshard, shard_map, vmap
from weft.sharding import AxisType, auto_axes, explicit_axes

MESH = weft.make_mesh((4, 2), ("X", "Y"))
AUTO = weft.make_mesh((4, 2), ("X", "Y"), AxisType.Auto)
X = np.arange(32, dtype=np.float32).reshape(8, 4) / 7
W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
INDEX = np.repeat(np.arange(4), 2)[:, None]  # of the rows' devices along X


def summed(x, w):
    """Products summed over Y in a shard_map, and then over X as terms that leave another."""
    u = lax.dot(x, w, out_sharding=P("X", None, unreduced={"Y"}))
    y = shard_map(lambda r: lax.psum(r, "Y"), out_specs=P("X"))(u)
    z = shard_map(lambda a: lax.pcast(a, "X", to="unreduced"), out_specs=P(unreduced={"X"}))(y)
    return reshard(z, P())


def some_manual(x, w):
    f = lambda x, w: jnp.tanh(lax.dot(x, w, out_sharding=P(None, None))) * lax.axis_index("X")
    return shard_map(f, out_specs=P("X"), axis_names={"X"})(x, w)


def nested(x, w):
    inner = lambda b: lax.psum(b, "Y") * lax.axis_index("X")
    f = lambda a: shard_map(inner, out_specs=P())(a)
    return shard_map(f, axis_names={"X"}, out_specs=P("X"))(x)


def by_casts(x, w):
    terms = lambda x: (
        lax.pcast(x, "X", to="unreduced") * lax.pcast(jnp.ones((2, 2)), "X", to="reduced")
    )
    return shard_map(lambda x: lax.psum(terms(x), "X") + 1.0, out_specs=P(None, "Y"))(x)


def reduced(x, w):
    w, x = reshard(w, P(reduced={"X"})), reshard(x, P("X"))
    f = shard_map(lambda w, x: lax.psum(jnp.sin(x @ w).sum(), "X"), out_specs=P())
    return reshard(grad(f)(w, x), P())


def in_auto(f, *spec, **how):
    return auto_axes(f, out_sharding=P(*spec), **how)


# each with what one device computes
PROGRAMS = {
    "sums": (summed, lambda x, w: (x @ w).reshape(4, 2, 3).sum(0)),
    "gradient of sums": (
        grad(lambda x, w: (summed(x, w) ** 2).sum()),
        grad(lambda x, w: ((x @ w).reshape(4, 2, 3).sum(0) ** 2).sum()),
    ),
    "some manual": (some_manual, lambda x, w: jnp.tanh(x @ w) * INDEX),
    "gradient of some manual": (
        grad(lambda x, w: (some_manual(x, w) ** 2).sum(), 1),
        grad(lambda x, w: ((jnp.tanh(x @ w) * INDEX) ** 2).sum(), 1),
    ),
    "nested": (nested, lambda x, w: x.reshape(8, 2, 2).sum(1) * INDEX),
    "casts": (by_casts, lambda x, w: x.reshape(4, 2, 4).sum(0) + 1),
    "reduced": (reduced, lambda x, w: grad(lambda w: jnp.sin(x @ w).sum())(w)),
    "auto": (in_auto(lambda x, w: jnp.sin(x @ w), "X"), lambda x, w: jnp.sin(x @ w)),
    "reshaped": (
        lambda x, w: in_auto(lambda x: x.reshape(2, 4, 4), None, "X", axes="X")(x),
        lambda x, w: x.reshape(2, 4, 4),
    ),
    "gradient of auto": (
        grad(lambda x, w: in_auto(lambda x, w: jnp.sin(x @ w), "X", axes="Y")(x, w).sum(), 1),
        grad(lambda x, w: jnp.sin(x @ w).sum(), 1),
    ),
    "mapped auto": (
        lambda x, w: vmap(in_auto(jnp.cumsum, "X"), 1, 1)(x),
        lambda x, w: jnp.cumsum(x, 0),
    ),
    "typed again": (
        lambda x, w: explicit_axes(jnp.sin, in_sharding=P("Y", "X"))(x) * 2,
        lambda x, w: jnp.sin(x) * 2,
    ),
}  # fmt: skip
TYPES = {"typed again": "f32[8@Y,4@X]", "mapped auto": "f32[8@X,4@Y]", "nested": "f32[8@X,2]"}


def check(programs, args):
    got = jit(lambda *args: {k: f(*args) for k, (f, _) in programs.items()})(*args)
    want = jit(lambda *args: {k: f(*args) for k, (_, f) in programs.items()})
    with weft.sharding.use_mesh(weft.sharding.Mesh(np.array(weft.devices()[:1]), "one")):
        want = want(X, W)
    for name, y in got.items():
        np.testing.assert_allclose(y, want[name], rtol=2e-5, atol=2e-5, err_msg=name)
        assert str(y.aval) == TYPES.get(name, str(y.aval))


def test_numbers():
    with weft.sharding.use_mesh(MESH):
        check(PROGRAMS, (reshard(X, P("X", "Y")), reshard(W, P("Y"))))


def test_typed_parts_of_automatic_programs():
    typed = lambda f, *spec, **how: explicit_axes(f, in_sharding=P(*spec), **how)
    programs = {
        "all": (lambda x, w: typed(jnp.sin, "X", "Y")(x), lambda x, w: jnp.sin(x)),
        "some": (lambda x, w: typed(jnp.sin, "X", axes="X")(x), lambda x, w: jnp.sin(x)),
        "gradient": (
            grad(lambda x, w: typed(jnp.sin, "X")(x).sum()), lambda x, w: jnp.cos(x),
        ),
        "made there": (
            lambda x, w: typed(lambda x: x + reshard(jnp.ones((8, 4)), P("X")), "X")(x),
            lambda x, w: x + 1,
        ),
    }  # fmt: skip
    with weft.sharding.use_mesh(AUTO):
        check(programs, (weft.device_put(X, P("X", "Y")), W))


@pytest.mark.parametrize("name", ["sums", "nested", "typed again"])
def test_without_jit(name):
    f, on_one = PROGRAMS[name]
    with weft.sharding.use_mesh(MESH):
        y = f(reshard(X, P("X", "Y")), reshard(W, P("Y")))
    np.testing.assert_allclose(y, on_one(X, W), rtol=2e-5, atol=2e-5)
