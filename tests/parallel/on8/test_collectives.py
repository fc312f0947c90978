"""Every collective on devices, by shard_map, against the references that vmap is tested against."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.conftest import ALL
from tests.primitives.test_collective import (
    LINEAR,
    ROWS,
    N,
    X,
    applied,
    check,
    expected,
    ref_pmean,
    ref_psum,
    rows,
    stack_of,
)
from weft import grad, lax, nn, shard_map, vmap
from weft.mesh.mesh import make_mesh
from weft.mesh.spec import PartitionSpec as P
from weft.primitives.varying import Varying
from weft.run import programs as run
from weft.sharding import AxisType, NamedSharding

# Each row runs in one of three ways to have two axes, and one of two derivatives; --all runs all.
SHARES = [[name for k, name in enumerate(ROWS) if ALL or k % 3 == share] for share in range(3)]
some_rows = [
    pytest.mark.parametrize("row", [ROWS[n] for n in names], ids=names) for names in SHARES
]
SOME_LINEAR = {name: row for k, (name, row) in enumerate(LINEAR.items()) if ALL or k % 2 == 0}

ONE = make_mesh((4,), ("i",), devices=weft.devices()[:4])
BETWEEN = make_mesh((2, 4), ("a", "i"))
SQUARE = make_mesh((2, 2, 2), ("i", "a", "j"))


def over(mesh, fun, names, **kwargs):
    """`fun` of one copy, as a function of the stack of what all copies have, on the devices."""

    def own(x):
        return fun(x.reshape(x.shape[1:]))[None]

    spec = P(names)
    return shard_map(own, mesh=mesh, in_specs=spec, out_specs=spec, **kwargs)


def varied(fun, names):
    """`fun` with a result that varies along the axes, as a spec that names them asks for."""
    return lambda x: lax.pcast(fun(x), names, to="varying")


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("check_vma", [True, False])
@rows
def test_on_devices(row, check_vma):
    xs = stack_of(row)
    fun = varied(applied(row, "i"), "i")
    check(over(ONE, fun, "i", check_vma=check_vma)(xs), expected(row, xs))


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("dtype", ["int32", "complex64", "bool", "bfloat16", "int8"])
@pytest.mark.parametrize("name", [
    "psum", "psum-uneven", "pmax", "pmax-groups", "pmin-uneven", "all_gather", "psum_scatter",
    "all_to_all-tiled", "ppermute-some", "pbroadcast",
])  # fmt: skip
def test_dtypes_on_devices(name, dtype):
    row = ROWS[name]
    dtype = jnp.dtype(dtype)
    xs = stack_of(row, dtype)
    got = over(ONE, varied(applied(row, "i"), "i"), "i")(xs)
    want = expected(row, xs.astype(np.float32) if dtype == jnp.bfloat16 else xs)
    np.testing.assert_array_equal(np.asarray(got).astype(want.dtype), want)


@some_rows[0]
def test_beside_another_axis_of_the_mesh(row):
    pair = np.stack([stack_of(row), stack_of(row)[::-1]])
    fun = varied(applied(row, "i"), "i")
    f = shard_map(
        lambda x: fun(x.reshape(row[2]))[None, None],
        mesh=BETWEEN,
        in_specs=P("a", "i"),
        out_specs=P("a", "i"),
    )
    check(f(pair), np.stack([expected(row, xs) for xs in pair]))


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("names", [("i", "j"), ("j", "i")])
@some_rows[1]
def test_two_axes_of_the_mesh(row, names, check_vma):
    xs = stack_of(row)
    fun = varied(applied(row, names), names)
    check(over(SQUARE, fun, names, check_vma=check_vma)(xs), expected(row, xs))


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("names", [("i", "v"), ("v", "i")])
@some_rows[2]
def test_an_axis_of_the_mesh_with_one_of_a_vmap(row, names):
    xs = stack_of(row)
    want = expected(row, xs)
    square = lambda y: y.reshape(2, 2, *y.shape[1:])
    if names == ("v", "i"):
        square = lambda y: y.reshape(2, 2, *y.shape[1:]).swapaxes(0, 1)
    fun = varied(vmap(applied(row, names), axis_name="v"), "i")
    check(over(SQUARE, fun, "i")(square(xs)), square(want))


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("row", SOME_LINEAR.values(), ids=SOME_LINEAR)
@pytest.mark.parametrize("check_vma", [True, False])
def test_derivatives_on_devices(row, check_vma):
    """The pullback through shard_map, and inside of it, by inner products."""
    xs = stack_of(row)
    f = over(ONE, varied(applied(row, "i"), "i"), "i", check_vma=check_vma)
    y, dot = weft.jvp(f, (xs,), (xs,))
    np.testing.assert_allclose(dot, y, rtol=1e-6)
    ct = np.random.default_rng(3).normal(size=y.shape).astype(np.float32)
    (back,) = weft.vjp(f, xs)[1](ct)
    np.testing.assert_allclose(np.vdot(ct, y), np.vdot(back, xs), rtol=1e-4, atol=1e-4)

    fun = varied(applied(row, "i"), "i")

    def pull(x, ct):
        out = weft.vjp(fun, x.reshape(x.shape[1:]))[1](ct.reshape(ct.shape[1:]))[0]
        return out[None]

    inside = shard_map(
        pull, mesh=ONE, in_specs=(P("i"), P("i")), out_specs=P("i"), check_vma=check_vma
    )
    np.testing.assert_allclose(inside(xs, ct), back, rtol=1e-4, atol=1e-5)


def test_derivatives_of_extrema_on_devices():
    f = over(ONE, varied(lambda x: jnp.sin(lax.pmax(x * x, "i")), "i"), "i")
    g = vmap(lambda x: jnp.sin(lax.pmax(x * x, "i")), axis_name="i")
    x = np.array([0.5, -1.5, 1.5, 1.0], np.float32)
    weights = np.arange(1.0, 5.0, dtype=np.float32)
    loss = lambda f: lambda x: jnp.vdot(f(x), weights)
    np.testing.assert_allclose(grad(loss(f))(x), grad(loss(g))(x), rtol=1e-5)
    np.testing.assert_allclose(weft.jvp(f, (x,), (x,))[1], weft.jvp(g, (x,), (x,))[1], rtol=1e-5)


def test_results_that_do_not_vary():
    f = lambda fun, spec=P(), n="i": shard_map(fun, mesh=ONE, in_specs=P(n), out_specs=spec)(X)
    assert float(f(lambda x: lax.psum(x[0], "i"))) == 10
    assert float(f(lambda x: lax.pmean(x[0], "i"))) == 2.5
    assert float(f(lambda x: lax.pmin(x[0], "i"))) == 1
    whole = f(lambda x: lax.all_gather(x, "i", tiled=True, to="invarying"))
    np.testing.assert_array_equal(whole, X)
    stacked = f(lambda x: lax.all_gather(x, "i", to="invarying", axis=1))
    np.testing.assert_array_equal(stacked, X[None])
    loss = lambda x: jnp.sum(
        shard_map(
            lambda x: lax.all_gather(x, "i", tiled=True, to="invarying") ** 2,
            mesh=ONE,
            in_specs=P("i"),
            out_specs=P(),
        )(x)
    )
    np.testing.assert_allclose(grad(loss)(X), 2 * X)
    with pytest.raises(ValueError, match="out_specs"):
        f(lambda x: lax.all_gather(x, "i", tiled=True))


def test_sums_of_what_does_not_vary():
    def f(x, w):
        index = lax.axis_index("i")
        return lax.psum(w, "i"), lax.psum(2, "i"), lax.psum(w * index, ("i", "a")), x + index

    g = shard_map(f, mesh=BETWEEN, in_specs=(P("i"), P()), out_specs=(P(), P(), P(), P("i")))
    four, eight, weighted, moved = g(X, np.float32(3))
    assert (float(four), int(eight), float(weighted)) == (12, 8, 36)
    np.testing.assert_array_equal(moved, X + np.arange(4))


def test_indices_on_devices():
    def f():
        a, i, both = lax.axis_index("a"), lax.axis_index("i"), lax.axis_index(("i", "a"))
        assert lax.axis_size(("i", "a")) == 8
        return jnp.stack([lax.pcast(a, "i", to="varying") * 100 + i * 10, both])[None, None]

    got = shard_map(f, mesh=BETWEEN, in_specs=(), out_specs=P("a", "i"))()
    a, i = np.mgrid[:2, :4]
    np.testing.assert_array_equal(got, np.stack([a * 100 + i * 10, i * 2 + a], -1))


PARTIAL = {
    "axis_index": (lambda x: x * lax.axis_index("i"), lambda xs: xs * np.arange(4)[:, None]),
    "psum": (lambda x: lax.psum(x, "i"), ref_psum),
    "all_gather": ROWS["all_gather"][:2],
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 1), lambda xs: np.stack([xs[1]] * 4)),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_along_some_axes_while_the_compiler_splits_over_others(name):
    fun, ref = PARTIAL[name]
    fun = varied(fun if name != "all_gather" else lambda x: lax.all_gather(x, "i"), "i")
    xs = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    f = shard_map(
        lambda x: fun(x[0])[None], mesh=BETWEEN, in_specs=P("i"), out_specs=P("i"), axis_names={"i"}
    )
    np.testing.assert_array_equal(weft.jit(f)(xs), ref(xs))


def test_types_print_what_varies():
    seen = []

    def f(x):
        y = lax.psum(x, "a")
        seen.extend([weft.typeof(x), weft.typeof(y), weft.typeof(lax.pmax(y, "i"))])
        return y

    shard_map(f, mesh=BETWEEN, in_specs=P("a", "i"), out_specs=P(None, "i"))(np.ones((2, 4), "f4"))
    assert list(map(str, seen)) == ["f32[1,1]{V:(a,i)}", "f32[1,1]{V:i}", "f32[1,1]"]
    assert str(Varying.of(("i", "a"))) == "{V:(a,i)}"


def test_in_loops_and_branches_on_devices():
    def f(x):
        x = x[0]
        step = lambda c, k: (jnp.tanh(c + k * lax.pmean(c, "i")), lax.ppermute(c, "i", ring))
        ring = [(0, 1), (1, 2), (2, 3), (3, 0)]
        last, seen = lax.scan(step, x, jnp.arange(3.0))
        return lax.cond(True, lambda c: c - lax.psum(c, "i"), lambda c: c, last)[None], seen[None]

    xs = X / 4
    got = shard_map(f, mesh=ONE, in_specs=P("i"), out_specs=P("i"))(xs)
    want = vmap(lambda x: f(x[None]), axis_name="i")(xs)
    np.testing.assert_allclose(got[0], want[0][:, 0], rtol=1e-6)
    np.testing.assert_allclose(got[1], want[1][:, 0], rtol=1e-6)
    loss = lambda g: lambda x: sum(jnp.sum(y**2) for y in g(x))
    on_devices = shard_map(f, mesh=ONE, in_specs=P("i"), out_specs=P("i"))
    mapped = vmap(lambda x: f(x[None]), axis_name="i")
    np.testing.assert_allclose(grad(loss(on_devices))(xs), grad(loss(mapped))(xs), rtol=1e-5)


def test_two_meshes_in_one_program():
    """Cached text for one mesh is not used for another."""
    other = make_mesh((4, 2), ("i", "a"))

    @weft.jit
    def f(x):
        fun = lambda x: lax.all_gather(x, "i", tiled=True)
        first = shard_map(fun, mesh=BETWEEN, in_specs=P(("a", "i")), out_specs=P(("a", "i")))(x)
        return first, shard_map(fun, mesh=other, in_specs=P(("i", "a")), out_specs=P(("i", "a")))(x)

    x = np.arange(8.0, dtype=np.float32)
    first, second = f(x)
    np.testing.assert_array_equal(np.asarray(first)[:4], x[:4])
    np.testing.assert_array_equal(np.asarray(second)[:4], x[::2])


def test_references_are_those_of_vmap():
    assert N == 4 and ref_psum is ROWS["psum"][1] and ref_pmean is ROWS["pmean"][1]


def test_a_loop_that_waits_for_nothing():
    """More calls at once than XLA starts: each device needs a thread for either end."""
    total = weft.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    x = total(np.ones((8, 2), np.float32))
    results = [total(x) for _ in range(200)]
    np.testing.assert_array_equal(results[-1], np.full((8, 2), 64))


def test_operations_that_wait_are_built_once(monkeypatch):
    """Operations with collectives do so too, if XLA has few threads; C++ caches the others."""
    monkeypatch.setenv("NPROC", "2")
    built, lower = [], run.lower_program
    monkeypatch.setattr(run, "lower_program", lambda *given: built.append(1) or lower(*given))
    x = weft.device_put(np.arange(56.0).reshape(8, 7), weft.NamedSharding(ONE, P("i")))
    assert [float(jnp.sum(x)) for _ in range(3)] == [1540.0] * 3
    assert len(built) == 1


def test_gradients_of_what_branches_and_loops_share_are_summed_after_them():
    """Each device takes its own branch and number of steps, so no sum may be within."""
    w, x = np.arange(1.0, 4.0, dtype=np.float32), np.ones((4, 3), np.float32)

    def times(x, w, n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * w), (0, x))[1]

    def fun(x):
        i = lax.axis_index("i")
        loss = lambda w: lax.cond(i < 2, lambda: times(x, w, 3), lambda: times(x, w, i)).sum()
        return grad(loss)(jnp.asarray(w))

    total = shard_map(fun, mesh=ONE, in_specs=P("i"), out_specs=P())(x)
    np.testing.assert_allclose(total, sum(n * w ** (n - 1) for n in (3, 3, 2, 3)), rtol=1e-6)


EXTREMES = {
    "max": lambda x: jnp.max(x),
    "min": lambda x: jnp.min(x),
    "ptp": lambda x: jnp.ptp(x),
    "rows": lambda x: (jnp.max(x, 1), jnp.min(x, 1)),
    "columns": lambda x: (jnp.max(x, 0), jnp.min(x, 0)),
    "reduce": lambda x: lax.reduce(x, jnp.array(-jnp.inf, x.dtype), lax.max, (0, 1)),
    "argmax": lambda x: jnp.argmax(x, 0),
    "nanmax": lambda x: jnp.nanmax(x, 0),
    "softmax": lambda x: nn.softmax(x),
    "gradient": lambda x: grad(lambda x: jnp.max(x).astype(np.float32))(x),
}


@pytest.mark.parametrize(
    ("dtype", "kind"), [("float32", AxisType.Explicit), ("bfloat16", AxisType.Auto)]
)
def test_extremes_over_a_mesh_keep_nan(dtype, kind):
    """XLA's reductions between devices lose NaN."""
    mesh = make_mesh((2,), ("i",), kind, devices=weft.devices()[:2])
    x = np.arange(16.0).reshape(4, 4) - 7
    x[0], x[1, 3], x[2, 0] = 0, np.nan, -0.0
    x = x.astype(dtype)
    fun = weft.jit(lambda x: {name: f(x) for name, f in EXTREMES.items()})
    want = fun(x)
    assert np.isnan(want["max"]) and np.isnan(want["min"])
    for spec in (P("i"), P(None, "i")):
        got = fun(weft.device_put(x, NamedSharding(mesh, spec)))
        for name in EXTREMES:
            for g, w in zip(weft.tree.leaves(got[name]), weft.tree.leaves(want[name]), strict=True):
                g, w = (np.asarray(v, np.float32) for v in (g, w))
                np.testing.assert_allclose(g, w, rtol=1e-2, err_msg=name)
    both = shard_map(
        lambda x: (lax.pmax(x, "i"), lax.pmin(x, "i")), mesh=mesh, in_specs=P("i"), out_specs=P()
    )
    for g, reduce in zip(weft.jit(both)(x), (np.maximum, np.minimum), strict=True):
        np.testing.assert_array_equal(np.float32(g), np.float32(reduce(x[:2], x[2:])))
