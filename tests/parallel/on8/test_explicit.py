"""Programs with explicit axes over a mesh: numbers as on one device, and correct types."""

import functools

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, grad, jit, lax, vmap
from weft.errors import ShardingTypeError
from weft.sharding import NamedSharding, reshard

MESH = weft.make_mesh((4, 2), ("X", "Y"))
rng = np.random.default_rng(0)
X = rng.normal(size=(8, 4)).astype(np.float32)
W = rng.normal(size=(4, 6)).astype(np.float32)
V = rng.normal(size=(6, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def mesh():
    with weft.sharding.use_mesh(MESH):
        yield


def over(x, *spec, **kinds):
    return weft.device_put(x, NamedSharding(MESH, P(*spec, **kinds)))


def mlp(x, w, v):
    h = jnp.tanh(x @ w)
    rows = weft.typeof(h).sharding.spec[:-1]
    return jnp.sin(lax.dot(h, v, out_sharding=P(*rows, None)))


def loss(x, w, v):
    return (mlp(x, w, v) ** 2).mean()


@weft.custom_vjp
def double(x):
    return 2 * x


double.defvjp(lambda x: (2 * x, None), lambda _, ct: (3 * ct,))


@weft.custom_jvp
def cube(x):
    return x**3


cube.defjvp(lambda p, t: (p[0] ** 3, 3 * p[0] ** 2 * t[0]))


PROGRAMS = {
    "loss": loss,
    "gradients": grad(loss, (0, 1, 2)),
    "jvp": lambda x, w, v: weft.jvp(mlp, (x, w, v), (x, w, v))[1],
    "vjp": lambda x, w, v: weft.vjp(mlp, x, w, v)[1](mlp(x, w, v)),
    "second": lambda x, w, v: weft.jvp(grad(loss), (x, w, v), (x, w, v))[1],
    "twice": grad(lambda x, w, v: (grad(loss)(x, w, v) ** 2).sum(), 1),
    "checkpoint": grad(lambda *a: weft.checkpoint(loss)(*a), (0, 1)),
    "nested": grad(lambda *a: jit(loss)(*a) * 2, (0, 1, 2)),
    "mapped": lambda x, w, v: vmap(lambda r: mlp(r, w, v))(x),
    "mapped gradients": lambda x, w, v: vmap(grad(lambda r: mlp(r, w, v).sum()))(x),
    "gradients of mapped": grad(lambda x, w, v: vmap(lambda r: mlp(r, w, v))(x).sum(), (0, 1)),
    "mapped programs": lambda x, w, v: vmap(jit(lambda r: jnp.sin(r) * r.sum()))(x),
    "mapped loops": lambda x, w, v: vmap(
        lambda r: (
            lax.while_loop(lambda c: c.sum() < 3, lambda c: c + jnp.abs(r) + 0.1, jnp.abs(r)),
            lax.scan(lambda c, s: (c + s, c * s), r * 0, jnp.ones(3))[1],
            lax.cond(r[0] > 0, jnp.sin, jnp.cos, r),
        )
    )(x),
    "mapped columns": lambda x, w, v: vmap(lambda c: jnp.sin(c) * 2, 1, 1)(x),
    "custom": grad(lambda x, w, v: (double(x) @ w).sum() + cube(w).sum(), (0, 1)),
    "cond": grad(lambda x, w, v: lax.cond(x.sum() > 0, lambda: mlp(x, w, v), lambda: x).sum()),
    "while": lambda x, w, v: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) + x, x),
    "rows": lambda x, w, v: x - x.max(1, keepdims=True) + jnp.argmin(x, 0),
    "softmax": grad(lambda x, w, v: (weft.nn.log_softmax(x @ w) * 0.5).sum(), (0, 1)),
    "shapes": lambda x, w, v: (x.reshape(8, 2, 2).sum(1), x.T[None], jnp.stack([x, x], 1)),
    "merge": lambda x, w, v: jnp.sin(x).reshape(-1) * 2,
    "choose": lambda x, w, v: jnp.where(x > 0, x, 0).clip(0, 0.5).astype(np.int32),
    "jacobian": lambda x, w, v: weft.jacfwd(lambda r: jnp.sin(r).sum(0))(x),
    "linear": lambda x, w, v: weft.linearize(mlp, x, w, v)[1](x, w, v),
}
LAYOUTS = {
    "data": (("X",), (), ()),
    "tensor": ((), (None, "Y"), ("Y",)),
    "both": (("X",), (None, "Y"), ("Y",)),
    "all": ((("X", "Y"),), (), ()),
}


def lies_as_typed(y):
    """The sharding of an array is the one that its type says."""
    mesh, spec, lies = y.sharding.mesh, y.sharding.spec, y.aval.sharded
    explicit = [tuple(n for n in spec.axes(i) if n in mesh.explicit_axes) for i in range(y.ndim)]
    assert (lies.entries if lies else ((),) * y.ndim) == tuple(explicit)


# every program where rows and columns are split, and some in each other layout
CASES = [(name, "both") for name in PROGRAMS] + [
    (name, layout)
    for layout in ("data", "tensor", "all")
    for name in ("gradients", "second", "mapped gradients", "merge")
]


def compare(got, wanted, types):
    for want, y, aval in zip(*map(weft.tree.leaves, (wanted, got)), types, strict=True):
        np.testing.assert_allclose(y, want, rtol=2e-5, atol=2e-6)
        lies_as_typed(y)
        assert y.aval.sharded is aval.sharded, (y.aval, aval)


@functools.cache
def on_one_device(name):
    return jit(PROGRAMS[name])(X, W, V)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize(("name", "layout"), CASES)
def test_programs(name, layout):
    args = [over(a, *spec) for a, spec in zip((X, W, V), LAYOUTS[layout], strict=True)]
    program = jit(PROGRAMS[name])
    compare(program(*args), on_one_device(name), program.trace(*args).jaxpr.out_avals)


@pytest.mark.parametrize("name", ["gradients", "jvp", "custom", "shapes", "mapped columns"])
def test_programs_without_jit(name):
    fun = PROGRAMS[name]
    args = [over(a, *spec) for a, spec in zip((X, W, V), LAYOUTS["both"], strict=True)]
    compare(fun(*args), on_one_device(name), weft.make_jaxpr(fun)(*args).out_avals)


def test_derivatives_are_split_as_what_they_are_of():
    x = over(X, "X", "Y")
    functions = [
        lambda x: reshard(x, P()).sum(1),
        lambda x: reshard(jnp.sin(x), P("Y", None)).sum(1),
        lambda x: jnp.sin(x).sum(1),
        lambda x: jnp.max(x, 0),
    ]
    for fun in functions:
        rows = [*fun(x).aval.sharded.entries] if fun(x).aval.sharded else [()]
        total = lambda x, fun=fun: (fun(x) ** 2).sum()
        for wrap in (jit, lambda f: f):
            found = wrap(grad(total))(x)
            assert found.aval.sharded is x.aval.sharded
            np.testing.assert_allclose(found, grad(total)(X), rtol=2e-5, atol=2e-6)
            found = wrap(weft.jacfwd(fun))(x)
            assert [*(found.aval.sharded.entries if found.aval.sharded else [()])][:1] == rows
            np.testing.assert_allclose(found, weft.jacfwd(fun)(X), rtol=2e-5, atol=2e-6)
            lies_as_typed(found)


def test_scan_keeps_the_layout_of_its_carry():
    x = over(X, None, "Y")

    def run(x, c):
        step = lambda c, row: (jnp.tanh(c + row), c * row)
        return lax.scan(step, c, x)

    c = over(X[0], "Y")
    total = grad(lambda x, c: sum(y.sum() for y in run(x, c)), (0, 1))
    for fun, types in ((run, "f32[4@Y] f32[8,4@Y]"), (total, "f32[8,4@Y] f32[4@Y]")):
        assert " ".join(map(str, weft.make_jaxpr(fun)(x, c).out_avals)) == types
        compare(jit(fun)(x, c), jit(fun)(X, X[0]), weft.make_jaxpr(fun)(x, c).out_avals)
    with pytest.raises(TypeError, match="carry"):
        jit(run)(x, X[0])
    with pytest.raises(ValueError, match="scan"):
        jit(run)(over(X, "X", None), X[0])


def test_branches_have_one_layout():
    x = over(X, "X", "Y")
    with pytest.raises(
        ShardingTypeError, match=r"one layout .* weft.reshard\(result, P\('Y', None\)\)"
    ):
        lax.cond(True, lambda: x, lambda: reshard(x, P("Y")))


def test_jit_with_shardings_given():
    seen = []

    def f(a, b):
        seen.append(f"{weft.typeof(a)} {weft.typeof(b)}")
        return a * b, a.sum(0)

    s = lambda *spec: NamedSharding(MESH, P(*spec))
    laid = jit(f, in_shardings=(s("X"), None), out_shardings=(s(None, "Y"), None))
    y, total = laid(X, 2.0)
    assert seen == ["f32[8@X,4] f32[]"] and str(y.aval) == "f32[8,4@Y]"
    assert y.sharding.spec == P(None, "Y") and str(total.aval) == "f32[4]"
    np.testing.assert_allclose(y, X * 2)
    outer = jit(lambda x: laid(x, 2.0)[0])
    assert str(outer(X).aval) == "f32[8,4@Y]"  # also in another program
    given = jit(f, in_shardings=(P("X"), None))(X, over(X, "X"))
    assert str(given[0].aval) == "f32[8@X,4]"
    donated = jit(lambda x: x + 1, donate_argnums=0)
    x = over(X, "X")
    np.testing.assert_allclose(donated(x), X + 1)
    assert x.is_deleted()


def test_a_mapped_axis_over_the_mesh():
    f = lambda r: reshard(r, P("Y")) * 2
    text = str(weft.make_jaxpr(vmap(f, spmd_axis_name="X"))(X))
    assert "f32[8@X,4@Y] = reshard" in text
    y = jit(vmap(f, spmd_axis_name="X"))(X)
    np.testing.assert_allclose(y, X * 2)
    assert str(y.aval) == "f32[8@X,4@Y]"
    x = over(X, "X")  # mapped values keep their split, in loops and programs too
    assert str(vmap(lambda r: r.sum())(x).aval) == "f32[8@X]"
    types = weft.make_jaxpr(PROGRAMS["mapped loops"])(x, W, V).out_avals
    assert " ".join(map(str, types)) == "f32[8@X,4] f32[8@X,3,4] f32[8@X,4]"
    with pytest.raises(ShardingTypeError, match="must be split alike along the mapped axis"):
        vmap(jnp.add)(x, over(X, "Y"))


@pytest.mark.parametrize("names", [{"Y"}, {"X", "Y"}])
def test_a_shard_map_along_a_split_axis(names):
    """The mesh axis that splits the mapped axis is manual inside, or stays in the types."""
    f = weft.shard_map(
        lambda a: jnp.sin(a) * 2, in_specs=P("Y"), out_specs=P("Y"), axis_names=names
    )
    x = over(X, "X", "Y")
    for fun, want in ((vmap(f), 2 * np.sin(X)), (grad(lambda x: vmap(f)(x).sum()), 2 * np.cos(X))):
        y = jit(fun)(x)
        np.testing.assert_allclose(y, want, rtol=1e-5)
        assert str(y.aval) == "f32[8@X,4@Y]"


def test_constraints_say_what_is_so():
    x = over(X, "X", "Y")
    same = lambda *spec: jit(lambda x: lax.with_sharding_constraint(x, P(*spec)))
    assert same("X", "Y")(x).aval is x.aval is same("X", P.UNCONSTRAINED)(x).aval
    with pytest.raises(ShardingTypeError, match="with_sharding_constraint: .* explicit"):
        same("Y", "X")(x)


def test_terms_of_sums():
    x, w = over(X, "X", "Y"), over(W, "Y", None)
    y = jit(lambda x, w: lax.dot(x, w, out_sharding=P("X", None, unreduced={"Y"})))(x, w)
    assert str(y.aval) == "f32[8@X,6]{U:Y}" and y.sharding.spec.unreduced == {"Y"}
    assert "unreduced={'Y'}" in repr(y)
    with pytest.raises(ShardingTypeError, match="must be added up to be read"):
        np.asarray(y)
    np.testing.assert_allclose(reshard(y, P("X")), X @ W, rtol=1e-5)
    np.testing.assert_allclose(reshard(y + y, P(("X", "Y"))), 2 * X @ W, rtol=1e-5)
    parts = [np.asarray(s.data) for s in y.addressable_shards]
    np.testing.assert_allclose(parts[0] + parts[1], (X @ W)[:2], rtol=1e-5)
    reduced = over(W, reduced={"X"})
    ct = grad(lambda w: (over(X, "X") @ w).sum())(reduced)
    assert str(ct.aval) == "f32[4,6]{U:X}"
    np.testing.assert_allclose(reshard(ct, P()), X.T @ np.ones((8, 6)), rtol=1e-5)


def test_programs_of_mixed_axes():
    """Along automatic axes the compiler decides, along explicit ones types say it."""
    kinds = (weft.sharding.AxisType.Explicit, weft.sharding.AxisType.Auto)
    mixed = weft.make_mesh((4, 2), ("X", "Y"), kinds)
    x = weft.device_put(X, NamedSharding(mixed, P("X", "Y")))
    w = weft.device_put(W, NamedSharding(mixed, P("Y", None)))
    assert str(x.aval) == "f32[8@X,4]"
    y = jit(lambda x, w: jnp.tanh(x @ w))(x, w)
    np.testing.assert_allclose(y, np.tanh(X @ W), rtol=1e-5)
    assert str(y.aval) == "f32[8@X,6]" and y.sharding.spec[0] == "X"
    g = jit(grad(lambda x, w: jnp.tanh(x @ w).sum(), (0, 1)))(x, w)
    compare(g, jit(grad(lambda x, w: jnp.tanh(x @ w).sum(), (0, 1)))(X, W), [x.aval, w.aval])


def test_what_is_broadcast_lies_as_the_others_so_that_gradients_are_summed_and_not_gathered():
    """For one bias of all rows, a device has a sum of cotangents, not the rows' cotangents."""
    b, x = over(np.ones(4, np.float32), "Y"), over(X, "X", "Y")
    f = lambda b, x: (jnp.where(x > b, jnp.tanh(x * b + b), x.sum(1, keepdims=True)) ** 2).sum()
    step = jit(grad(f, (0, 1)))
    compare(step(b, x), jit(grad(f, (0, 1)))(np.ones(4, np.float32), X), [b.aval, x.aval])
    assert "all-gather" not in step.lower(b, x).compile().as_text()
    assert weft.typeof(jnp.pad(x, ((1, 3), (0, 0)))) is weft.typeof(
        over(np.ones((12, 4)), "X", "Y")
    )
    cross = lambda u, v: jnp.add(u[:, None], v)
    assert str(weft.typeof(cross(x.sum(1), x.sum(0)))) == "f32[8@X,4@Y]"


def test_a_reshape_that_would_move_parts_is_refused():
    with weft.sharding.use_mesh(weft.make_mesh((4, 2), ("X", "Y"))):
        x = weft.device_put(np.ones((4, 8), np.float32), P(None, "Y"))
        with pytest.raises(ShardingTypeError, match="reshape: axis 1 must not be split"):
            x.reshape(32)
        assert str(weft.typeof(x.reshape(4, 4, 2))) == "f32[4,4@Y,2]"
        assert str(weft.typeof(x.T.reshape(32))) == "f32[32@Y]"


def test_an_array_bound_to_one_device_is_refused_over_a_mesh_in_scope():
    x = weft.device_put(np.ones(4, np.float32), weft.devices()[1])
    with weft.set_mesh(weft.make_mesh((4,), ("X",))):
        for f in (jnp.sin, weft.jit(lambda x: x * 2), lambda x: x[0], jnp.sum):
            with pytest.raises(
                ValueError, match=r"CpuDevice\(id=1\) where another is on 4 devices"
            ):
                f(x)
        np.testing.assert_array_equal(-weft.device_put(x, P("X")), -np.ones(4))
        assert len(jnp.sin(jnp.asarray(np.ones(4))).devices()) == 4


def test_medians_of_rows_that_are_split():
    x = rng.normal(size=(8, 40)).astype(np.float32)  # so many that a selection is used, not a sort
    y = jit(lambda x: jnp.median(x, 1))(over(x, "X", None))
    np.testing.assert_array_equal(y, np.median(x, 1))
    assert y.sharding.spec == P("X")
    ct = jit(grad(lambda x: jnp.median(x, 1).sum()))(over(x, "X", None))
    np.testing.assert_array_equal(ct.sum(1), np.ones(8))
