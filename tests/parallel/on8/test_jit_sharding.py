"""jit over a mesh: shardings of arguments and results, requests for them, and errors."""

import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, device_put, grad, jit, lax, vmap
from weft.errors import PytreeError, ShapeError
from weft.experimental.layout import Format, Layout
from weft.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding

DEVICES = np.array(weft.devices())
LINE = Mesh(DEVICES.reshape(8), ("x",))
GRID = Mesh(DEVICES.reshape(2, 4), ("a", "b"))
HALF = Mesh(DEVICES[:4], ("x",))
ROWS, ALL = NamedSharding(LINE, P("x")), NamedSharding(LINE, P())
BLOCKS = NamedSharding(GRID, P("a", "b"))
COLUMNS = NamedSharding(GRID, P(None, "b"))
X = np.arange(16, dtype=np.float32).reshape(8, 2) / 7
Y = np.arange(32, dtype=np.float32).reshape(4, 8) / 16


def close(a, b):
    weft.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5), a, b)


def spec(x):
    return x.sharding.spec


# --- propagation: as JAX 0.10.2 over an Auto mesh of eight CPU devices ----------------------------

KEPT = {
    "elementwise": (lambda y: jnp.sin(y) * 2, P("a", "b")),
    "transposed": (lambda y: y.T, P("b", "a")),
    "summed": (lambda y: jnp.sum(y, 0), P("b")),
    "product": (lambda y: y @ y.T, P("a")),
    "row": (lambda y: y[1], P("b")),
    "written": (lambda y: y.at[1].set(0.0), P("a", "b")),
    "cumulative": (lambda y: jnp.cumsum(y, 0), P("a", "b")),
    "scan": (
        lambda y: lax.scan(lambda c, t: (c * 2 + t, c), y, jnp.arange(3.0))[1], P(None, "a", "b"),
    ),
    "while": (lambda y: lax.while_loop(lambda y: y[0, 0] < 1, lambda y: y * 2 + 1, y), P("a", "b")),
    "fori": (lambda y: lax.fori_loop(0, 3, lambda i, y: y * 2 + i, y), P("a", "b")),
    "cond": (lambda y: lax.cond(y[0, 0] > 1, lambda y: y * 2, lambda y: y - 1, y), P("a", "b")),
    "jit": (lambda y: jit(jnp.sin)(y), P("a", "b")),
    "relu": (lambda y: weft.nn.relu(y) + weft.nn.gelu(y), P("a", "b")),
    "softmax": (lambda y: weft.nn.softmax(y, 0), P("a", "b")),
    "random": (lambda y: weft.random.normal(weft.random.key(0), y.shape) + y, P("a", "b")),
    "gradient": (grad(lambda y: jnp.sum(jnp.sin(y) ** 2)), P("a", "b")),
    "gradient of scan": (
        grad(lambda y: jnp.sum(lax.scan(lambda c, t: (jnp.sin(c * t), None), y, jnp.ones(3))[0])),
        P("a", "b"),
    ),
    "gradient of checkpoint": (
        grad(lambda y: jnp.sum(weft.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(y))), P("a", "b"),
    ),
    "mapped": (vmap(lambda r: r * jnp.sum(r)), P("a", "b")),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_results_lie_as_follows_from_the_arguments(name):
    f, want = KEPT[name]
    out = jit(f)(device_put(Y, BLOCKS))
    close(out, jit(f)(Y))
    assert spec(out) == want
    assert out.sharding.mesh == GRID


def test_without_jit_too():
    y = device_put(Y, BLOCKS)
    for out, want, where in (
        (jnp.sin(y), np.sin(Y), P("a", "b")),
        (y + 1, Y + 1, P("a", "b")),
        (y @ y.T, Y @ Y.T, P("a")),
        (y.sum(0), Y.sum(0), P("b")),
    ):
        close(out, want)
        assert spec(out) == where


# --- requested shardings --------------------------------------------------------------------------


def test_arguments_and_results():
    double = lambda x: x * 2
    assert spec(jit(double, in_shardings=ROWS)(X)) == P("x")
    assert spec(jit(double, in_shardings=ROWS, out_shardings=ALL)(X)) == P()
    assert spec(jit(lambda x: x, out_shardings=ROWS)(X)) == P("x")
    assert spec(jit(lambda: jnp.ones((8, 2)), out_shardings=ROWS)()) == P("x")
    one = SingleDeviceSharding(DEVICES[2])
    assert jit(double, out_shardings=one)(X).devices() == {DEVICES[2]}
    assert jit(double, in_shardings=one)(X).devices() == {DEVICES[2]}
    close(jit(double, in_shardings=ROWS, out_shardings=ALL)(device_put(X, ROWS)), X * 2)


def test_pytrees_of_shardings():
    f = jit(
        lambda d, y: ({"r": d["a"] + d["b"]}, y, jnp.sum(y)),
        in_shardings=({"a": BLOCKS, "b": None}, BLOCKS),
        out_shardings=({"r": COLUMNS}, None, None),
    )
    out = f({"a": Y, "b": Y}, Y)
    close(out, ({"r": Y * 2}, Y, Y.sum()))
    assert spec(out[0]["r"]) == P(None, "b")
    listed = jit(lambda x, y: x + y, in_shardings=[BLOCKS, None])
    close(listed(Y, Y), Y * 2)


def test_static_keyword_and_donated_arguments():
    close(jit(lambda x, n: x * n, in_shardings=(BLOCKS,), static_argnums=1)(Y, 3), Y * 3)
    close(jit(lambda x, n: x * n, in_shardings=BLOCKS, static_argnames="n")(Y, n=3), Y * 3)
    close(jit(lambda x, *, y: x + y, in_shardings=BLOCKS)(Y, y=Y), Y * 2)
    y = device_put(Y, BLOCKS)
    f = jit(lambda y: y + 1, donate_argnums=0, in_shardings=BLOCKS, out_shardings=BLOCKS)
    pointers = [s.data.unsafe_buffer_pointer() for s in y.addressable_shards]
    out = f(y)
    assert y.is_deleted()
    assert [s.data.unsafe_buffer_pointer() for s in out.addressable_shards] == pointers
    close(out, Y + 1)


def test_shardings_over_the_axes_in_scope():
    """A mesh of no particular devices stands for the one in scope, and is an error without one."""
    rows = NamedSharding(LINE.abstract_mesh, P("x"))
    with weft.set_mesh(LINE):
        assert jit(lambda x: x, in_shardings=rows, out_shardings=rows)(X).sharding == ROWS
        assert jit(lambda x: lax.with_sharding_constraint(x, rows))(X).sharding == ROWS
        assert device_put(X, rows).sharding == ROWS
        kept = Format(Layout((0, 1)), rows)
        assert lax.with_sharding_constraint(X, kept).sharding == ROWS
    with pytest.raises(ValueError, match="the mesh must have devices for this"):
        device_put(X, rows)


def test_specs_over_the_mesh_in_scope():
    with weft.set_mesh(GRID):
        f = jit(lambda x: x * 2, in_shardings=P("a", "b"), out_shardings=P(None, "b"))
        assert spec(f(Y)) == P(None, "b")
        out = jit(lambda x: lax.with_sharding_constraint(x * 2, P("b")))(Y)
    assert spec(out) == P("b")
    with GRID:
        assert spec(jit(lambda x: lax.with_sharding_constraint(x * 2, P("a")))(Y)) == P("a")


def test_constraints_over_an_abstract_mesh_take_the_devices_of_the_value():
    abstract = NamedSharding(GRID.abstract_mesh, P("b"))
    placed = device_put(Y, NamedSharding(GRID, P("a")))
    assert lax.with_sharding_constraint(placed, abstract).sharding == NamedSharding(GRID, P("b"))
    with pytest.raises(ValueError, match="the mesh must have devices"):
        lax.with_sharding_constraint(Y, abstract)


def test_constraints():
    f = lambda y: lax.with_sharding_constraint({"a": y * 2, "b": y}, {"a": COLUMNS, "b": None})
    out = jit(f)(device_put(Y, BLOCKS))
    assert spec(out["a"]) == P(None, "b")
    close(out, {"a": Y * 2, "b": Y})
    constrained = lambda y: lax.with_sharding_constraint(jnp.sin(y), COLUMNS)
    loss = lambda y: jnp.sum(constrained(y) ** 2)
    close(jit(grad(loss))(Y), 2 * np.sin(Y) * np.cos(Y))
    assert spec(vmap(constrained)(jnp.stack([Y, Y]))) == P(None, None, "b")
    assert spec(constrained(Y)) == P(None, "b")
    free = NamedSharding(GRID, P(P.UNCONSTRAINED, "b"))
    out = jit(lambda y: lax.with_sharding_constraint(y * 2, free))(device_put(Y, BLOCKS))
    assert spec(out) == P("a", "b")
    uneven = jit(lambda x: lax.with_sharding_constraint(x * 2, ROWS))(X[:6])  # within a program
    close(uneven, X[:6] * 2)


def test_transformed():
    f = jit(jnp.sin, in_shardings=BLOCKS, out_shardings=COLUMNS)
    close(grad(lambda y: jnp.sum(f(y)))(Y), np.cos(Y))
    close(jit(grad(lambda y: jnp.sum(f(y) ** 2)))(Y), 2 * np.sin(Y) * np.cos(Y))
    close(vmap(f)(np.stack([Y, Y])), np.sin(np.stack([Y, Y])))
    close(jit(lambda y: f(y) + 1)(Y), np.sin(Y) + 1)
    close(weft.jvp(f, (Y,), (Y,)), (np.sin(Y), np.cos(Y) * Y))
    close(weft.hessian(lambda y: jnp.sum(f(y * jnp.ones((4, 8)))))(2.0), -32 * np.sin(2.0))


def test_what_it_closes_over():
    c = device_put(Y, BLOCKS)
    out = jit(lambda y: y + c)(1.0)
    close(out, Y + 1)
    assert spec(out) == P("a", "b")
    close(jit(lambda y: y @ c.T)(Y), Y @ Y.T)


def test_stages():
    f = jit(lambda x, w: (x @ w, x), in_shardings=(BLOCKS, None), out_shardings=(None, COLUMNS))
    w = np.ones((8, 3), np.float32)
    lowered = f.lower(Y, w)
    assert '<@mesh, [{"a"}, {"b"}]>' in lowered.as_text()
    compiled = lowered.compile()
    close(compiled(Y, w), (Y @ w, Y))
    assert [s.spec for s in compiled.output_shardings] == [P("a"), P(None, "b")]
    (of_x, of_w), _ = compiled.input_shardings
    assert of_x.spec == P("a", "b")
    shapes = weft.ShapeDtypeStruct((4, 8), np.float32, sharding=BLOCKS)
    assert jit(jnp.sin).lower(shapes).compile().output_shardings.spec == P("a", "b")


# --- calls ----------------------------------------------------------------------------------------


def test_a_second_call_traces_nothing():
    count = 0

    def f(y):
        nonlocal count
        count += 1
        return y * 2

    asked = jit(f, in_shardings=BLOCKS)
    out = asked(Y)
    asked(out)
    asked(Y)
    asked(device_put(Y, BLOCKS))
    assert count == 1
    free = jit(lambda y: f(y))
    for y in (Y, device_put(Y, BLOCKS), device_put(Y, COLUMNS), device_put(Y, DEVICES[3])):
        close(free(y), Y * 2)
    assert count == 2  # compiled for each, traced once


def test_many_threads():
    f = jit(lambda y: jnp.sin(y) @ y.T, in_shardings=BLOCKS)
    found = [None] * 4

    def work(i):
        found[i] = np.asarray(f(Y * i))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, got in enumerate(found):
        close(got, np.sin(Y * i) @ (Y * i).T)


def test_without_jit_and_with_checks():
    f = jit(lambda y: jnp.log(y), in_shardings=BLOCKS)
    with weft.disable_jit():
        close(f(Y + 1), np.log(Y + 1))
    with weft.debug_nans(True), pytest.raises(FloatingPointError):
        f(Y - 1)
    with weft.debug_nans(True):
        close(f(Y + 1), np.log(Y + 1))


PROGRAM = """
import numpy as np, weft, weft.numpy as jnp
from weft import P
mesh = weft.make_mesh((2, 4), ("a", "b"), weft.sharding.AxisType.Auto)
s = weft.sharding.NamedSharding(mesh, P("a", "b"))
x = np.ones((4, 8), np.float32)
out = weft.jit(lambda x: jnp.sin(x) @ x.T * 1.0625, in_shardings=s)(x)
own = lambda x: weft.lax.psum(x, "a") * 1.0625
add = weft.shard_map(own, mesh=mesh, in_specs=P("a"), out_specs=P())
print(out.sharding.spec, float(out[0, 0]), float(add(x)[0, 0]))
"""


def test_the_disk_cache_serves_other_processes(tmp_path):
    env = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path)}
    env["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    run = lambda: subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=300
    )
    first = run()
    assert first.returncode == 0, first.stderr
    entries = sorted(p.name for p in tmp_path.rglob("*") if p.is_file())
    second = run()
    where, total, added = first.stdout.split(") ")[0], *first.stdout.split(") ")[1].split()
    assert where == "P('a',"
    close((float(total), float(added)), (8 * np.sin(1) * 1.0625, 2.125))
    assert entries
    assert second.stdout == first.stdout
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == entries


# --- bad input ------------------------------------------------------------------------------------


def same(x):
    return x


BAD = {
    "sizes": (lambda: jit(same, in_shardings=ROWS)(np.zeros(6)), ShapeError,
        "jit: axis 0 of argument `x` of same at test_jit_sharding.py:LINE must be divisible by 8, "
        "the size of mesh axis 'x' (8); got size 6 in shape (6,) with P('x',). Hint: pad the axis "
        "to 8, or have None at place 0 of the spec."),
    "result sizes": (
        lambda: jit(same, out_shardings=NamedSharding(LINE, P(None, "x")))(X), ShapeError,
        "jit: axis 1 of the result must be divisible by 8, the size of mesh axis 'x' (8); got size "
        "2 in shape (8, 2) with P(None, 'x')."),
    "rank": (lambda: jit(same, in_shardings=NamedSharding(LINE, P("x", None, None)))(X), ShapeError,
        "jit: P('x', None, None) must have no more entries than argument `x` of same at "
        "test_jit_sharding.py:LINE has axes; got 3 for rank 2."),
    "bound otherwise": (lambda: jit(same, in_shardings=ROWS)(device_put(X, ALL)), ValueError,
        "P('x',), memory_kind=device) for f32[8,2] with NamedSharding(mesh=Mesh('x': 8, "
        "axis_types=(Auto,)), spec=P(), memory_kind=device). Hint: weft.device_put(x, sharding) "
        "first, or leave in_shardings out."),
    "no mesh": (lambda: jit(same, in_shardings=P("x"))(X), ValueError,
        "jit: in_shardings must hold shardings where no mesh is in scope; got P('x',). Hint: "
        "NamedSharding(mesh, P('x',)), or with weft.set_mesh(mesh): ..."),
    "structure": (lambda: jit(same, in_shardings=(ROWS, ROWS))(X), PytreeError,
        "jit: in_shardings must be a tree prefix of the values; got a tuple of length 2 at "
        "in_shardings where the values has a tuple of length 1."),
    "result structure": (lambda: jit(lambda x: (x, x), out_shardings=(ROWS,))(X), PytreeError,
        "jit: out_shardings must be a tree prefix of the values; got a tuple of length 1 at "
        "out_shardings where the values has a tuple of length 2."),
    "no sharding": (lambda: jit(same, in_shardings=3)(X), TypeError,
        "jit: in_shardings must hold shardings, specs or None; got 3 of type int. Hint: "
        "NamedSharding(mesh, P('x')), or P('x') with weft.set_mesh(mesh)."),
    "two meshes": (
        lambda: jit(lambda x, y: x + y)(
            device_put(X, ROWS), device_put(X, NamedSharding(HALF, P("x")))), ValueError,
        "jit: operands must be on one device, or over one mesh; got argument `y` of <lambda> at "),
    "a mesh and a device": (
        lambda: jit(lambda x, y: x + y)(device_put(X, ROWS), device_put(X, DEVICES[1])), ValueError,
        ", f32[8,2], is on "
        f"8 devices ({', '.join(map(repr, DEVICES))}). Hint: weft.device_put(x, "
        "NamedSharding(mesh, P()))."),
    "two meshes asked": (
        lambda: jit(same, in_shardings=NamedSharding(HALF, P("x")), out_shardings=ROWS)(X),
        ValueError, "operands must be on one device, or over one mesh; got "),
    "without jit": (
        lambda: device_put(X, ROWS) + device_put(X, NamedSharding(HALF, P("x"))), ValueError,
        "operands must be on one device, or over one mesh; got f32[8,2] on 4 devices"),
    "constraint sizes": (
        lambda: lax.with_sharding_constraint(X[:6], ROWS), ShapeError,
        "with_sharding_constraint: axis 0 of the operand f32[6,2] must be divisible by 8"),
    "constraint without mesh": (
        lambda: jit(lambda x: lax.with_sharding_constraint(x, P("x")))(X), ValueError,
        "with_sharding_constraint: shardings must hold shardings where no mesh is in scope; got "
        "P('x',)."),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors(name):
    call, error, text = BAD[name]
    with pytest.raises(error, match=re.escape(text).replace("LINE", r"\d+")):
        call()


KINDS = [AxisType.Auto, AxisType.Explicit]


@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_program_over_a_mesh(kind):
    """On the devices of another mesh too, in another order; with its derivative."""
    mesh = weft.make_mesh((4, 2), ("x", "y"), kind)
    sharded = lambda *spec: NamedSharding(mesh, P(*spec))

    def f(a, b):
        c = weft.lax.with_sharding_constraint(a @ b, sharded("x", "y"))
        return jnp.sin(c), c.sum()

    a = weft.device_put(np.arange(64, dtype=np.float32).reshape(8, 8), sharded("x", None))
    b = weft.device_put(np.ones((8, 4), np.float32), sharded(None, "y"))
    exported = weft.export.export(jit(f, out_shardings=(sharded("x"), None)))(a, b)
    found = weft.export.deserialize(exported.serialize(vjp_order=1))
    assert found.nr_devices == 8 == found.vjp().nr_devices
    assert [str(s) for s in found.in_shardings_hlo] == [str(s) for s in exported.in_shardings_hlo]
    other = weft.make_mesh((4, 2), ("x", "y"), kind, devices=weft.devices()[::-1])
    places = found.in_shardings_jax(other)
    y, total = found.call(*map(weft.device_put, (a, b), places))
    assert y.sharding.mesh == other and y.sharding.spec[0] == "x"
    np.testing.assert_allclose(y, f(a, b)[0], rtol=1e-5)
    grad = weft.grad(lambda a: found.call(a, b)[1])(a)
    np.testing.assert_allclose(grad, np.full((8, 8), 4))
    with pytest.raises(ValueError, match=r"^f: an exported program must .* for, 8; got 1\."):
        found.call(np.asarray(a), np.asarray(b))
    with pytest.raises(weft.errors.ShapeError, match="^f: the mesh must have the 8 devices"):
        found.in_shardings_jax(weft.make_mesh((2,), ("x",), devices=weft.devices()[:2]))
