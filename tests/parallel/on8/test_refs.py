"""References over devices: parts of them in shard_map, one for each device in pmap."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, lax, ref
from weft.errors import RefError, ShapeError


def over_mesh(f, in_specs, out_specs):
    return weft.shard_map(
        f, mesh=weft.make_mesh((8,), ("x",)), in_specs=in_specs, out_specs=out_specs
    )


def count(r, x):
    """Add to the first element of each part, and return the contents."""
    lax.fori_loop(0, 2, lambda i, _: ref.addupdate(r, i, x[0]), None)
    return r[:1]


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit], ids=["eager", "jit"])
def test_shard_map_writes_parts(wrap):
    r, xs = weft.new_ref(jnp.zeros(16)), jnp.arange(8.0)
    f = wrap(over_mesh(count, (P("x"), P("x")), P("x")))
    for k in (1, 2, 3):
        np.testing.assert_array_equal(f(r, xs), k * np.arange(8))
    np.testing.assert_array_equal(r[...], np.repeat(3 * np.arange(8), 2))


def test_shard_map_writes_what_all_devices_have():
    r, closed = weft.new_ref(jnp.zeros(4)), weft.new_ref(jnp.float32(0))

    def f(r, x):
        total = lax.psum(x[0], "x")
        r[1] = total
        ref.addupdate(closed, ..., total)
        own = weft.new_ref(x)
        own[0] *= 2
        return own[...]

    f = weft.jit(over_mesh(f, (P(), P("x")), P("x")))
    np.testing.assert_array_equal(f(r, jnp.arange(8.0)), 2 * np.arange(8))
    assert r[1] == closed[...] == 28
    with pytest.raises(ShapeError, match="swap: what differs between devices"):
        over_mesh(lambda r, x: r.__setitem__(0, x[0]), (P(), P("x")), P())(r, jnp.arange(8.0))


def test_gradient_in_shard_map():
    def f(x):
        r = weft.new_ref(x)
        lax.fori_loop(0, 3, lambda i, _: r.__setitem__(0, jnp.sin(r[0]) * x[1]), None)
        return lax.psum(r[...].sum(), "x")

    def plain(x):
        x = x.reshape(8, 2)
        y = x[:, 0]
        for _ in range(3):
            y = jnp.sin(y) * x[:, 1]
        return (y + x[:, 1]).sum()

    x = jnp.linspace(0.1, 2.0, 16)
    got = weft.jit(weft.grad(over_mesh(f, P("x"), P())))(x)
    np.testing.assert_allclose(got, weft.jit(weft.grad(plain))(x), 1e-5)


def test_pmap_writes_what_is_mapped():
    r, xs = weft.new_ref(jnp.zeros((8, 3))), jnp.arange(8.0)
    f = weft.pmap(lambda r, x: (r.__setitem__(1, r[1] + lax.psum(x, "i")), r[1])[1], axis_name="i")
    for k in (1, 2):
        np.testing.assert_array_equal(f(r, xs), np.full(8, 28.0 * k))
    np.testing.assert_array_equal(r[...], np.outer(np.ones(8), [0, 56, 0]))
    shared = weft.new_ref(jnp.ones(3))
    read = weft.pmap(lambda r, x: r[0] * x, in_axes=(None, 0))
    np.testing.assert_array_equal(read(shared, xs), xs)
    with pytest.raises(RefError, match="not mapped must not be written"):
        weft.pmap(lambda r, x: r.__setitem__(0, x), in_axes=(None, 0))(shared, xs)
