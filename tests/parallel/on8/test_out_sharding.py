"""`out_sharding` and operations on split arrays: numbers as on one device, and true layouts.

All expressions of a group are one program, compiled once for the mesh and once for one device.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
import weft.ops
from weft import P, grad, jit, lax, random, vmap
from weft.errors import ShardingTypeError
from weft.nn import initializers
from weft.sharding import NamedSharding, reshard

MESH = weft.make_mesh((4, 2), ("X", "Y"))
rng = np.random.default_rng(0)
A = rng.normal(size=(8, 4)).astype(np.float32)
W = rng.normal(size=(4, 4)).astype(np.float32)
C = rng.normal(size=(8, 4, 6)).astype(np.float32)
IDS = np.array([5, 0, 3, 3, 7, 1, 0, 2], np.int32)
KEY = random.key(0)
I = np.array([1, 3])  # noqa: E741


@pytest.fixture(autouse=True)
def mesh():
    with weft.sharding.use_mesh(MESH):
        yield


def to(x, *spec, **kinds):
    """`x` split so, where there is a mesh."""
    return reshard(x, P(*spec, **kinds)) if ON_MESH[0] else x


def out(*spec, **kinds):
    """The argument `out_sharding`."""
    return {"out_sharding": P(*spec, **kinds)} if ON_MESH[0] else {}


ON_MESH = [True]

# a is f32[8@X,4@Y], c f32[8@X,4@Y,6], ids i32[8@X]; each with the type of its result
PRODUCTS = {
    "dot f32[8@X,8]": lambda a, c, w, ids: jnp.dot(a, a.T, **out("X", None)),
    "matmul f32[8@X,4]": lambda a, c, w, ids: jnp.matmul(a, to(w, "Y"), **out("X")),
    "matmul of stacks f32[6,8@X,8]": lambda a, c, w, ids: jnp.matmul(
        c.transpose(2, 0, 1), a.T, **out(None, "X")
    ),
    "matmul by stacks f32[2@Y,2,8@X,4]": lambda a, c, w, ids: jnp.matmul(
        a, jnp.stack([w, 2 * w, 3 * w, 4 * w]).reshape(2, 2, 4, 4), **out("Y", None, "X")
    ),
    "tensordot f32[8@Y,8]": lambda a, c, w, ids: jnp.tensordot(a, a, (1, 1), **out("Y")),
    "einsum f32[6,8@X]": lambda a, c, w, ids: jnp.einsum("bij,bi->jb", c, a, **out(None, "X")),
    "three f32[6@Y,8@X]": lambda a, c, w, ids: jnp.einsum(
        "bij,bk,ki->jb", c, to(a, "X"), w, **out("Y", "X")
    ),
    "one operand f32[4,8@Y]": lambda a, c, w, ids: jnp.einsum("bij->ib", c, **out(None, "Y")),
    "terms f32[8@X,4]": lambda a, c, w, ids: to(
        jnp.einsum("bi,ij->bj", a, to(w, "Y"), **out("X", unreduced={"Y"})), "X"
    ),
    "sums f32[8@X]": lambda a, c, w, ids: to(
        lax.reduce_sum(a, (1,), **out("X", unreduced={"Y"})), "X"
    ),
    "reduce f32[8@(X,Y)]": lambda a, c, w, ids: lax.reduce(
        a, 0.0, lax.add, (1,), **out(("X", "Y"))
    ),
    "ragged f32[8@X,4]": lambda a, c, w, ids: lax.ragged_dot(
        a, jnp.stack([w, 2 * w]), np.array([3, 5], np.int32), **out("X")
    ),
    "conv f32[8@X,3,6]": lambda a, c, w, ids: lax.conv_general_dilated(
        c, to(jnp.ones((3, 4, 3)), None, "Y"), (1,), "SAME", **out("X")
    ),
    "conv of space f32[8@X,3,4@Y]": lambda a, c, w, ids: lax.conv_general_dilated(
        to(c[:, :, :4].swapaxes(1, 2), "X", None, "Y"), jnp.ones((3, 4, 3)), (1,), "SAME"
    ),
    # products of few rows, and padding that cuts, which one device writes in other ways
    "stacks f32[32@X,4,4]": lambda a, c, w, ids: jnp.matmul(
        *[to(jnp.tile(w, (32, 1, 1)) + i, "X") for i in (0, 1)]
    ),
    "cut conv f32[8@X,4,4]": lambda a, c, w, ids: lax.conv_general_dilated(
        to(c, "X"), jnp.ones((4, 4, 3)), (1,), [(-1, 1)], **out("X")
    ),
    "gradients f32[8@X,4@Y], f32[4,4]": grad(
        lambda a, c, w, ids: jnp.sin(jnp.dot(a, w, **out("X"))).sum(), (0, 2)
    ),
    "gradients of conv f32[8@X,4@Y,6]": grad(
        lambda a, c, w, ids: lax.conv_general_dilated(
            jnp.sin(c), c[:4], (1,), "SAME", **out("X")
        ).sum(),
        1,
    ),
}
PLACES = {
    "get f32[2,4@Y]": lambda a, c, w, ids: a.at[I].get(**out(None, "Y")),
    "take f32[8@X,4@Y]": lambda a, c, w, ids: to(w, None, "Y")[ids % 4],
    "set f32[8@X,4@Y]": lambda a, c, w, ids: a.at[I].set(7.0, **out("X", "Y")),
    "add f32[4,4@X]": lambda a, c, w, ids: w.at[ids % 4].add(a, **out(None, "X")),
    "gradient of take f32[4,4]": grad(lambda a, c, w, ids: (w[ids % 4] * to(a, "X")).sum(), 2),
    "gradient of get f32[8@X,4@Y]": grad(
        lambda a, c, w, ids: (a.at[ids].get(**out("X", None)) ** 2).sum()
    ),
    "gradient of split add f32[8@X,4@Y]": grad(
        lambda a, c, w, ids: jnp.sin(a.at[ids].add(a * a, **out("X", "Y"))).sum()
    ),
    "gradient of add f32[4,4], f32[8@X,4@Y]": lambda a, c, w, ids: grad(
        lambda w, a: jnp.sin(w.at[ids % 4].add(a, **out())).sum(), (0, 1)
    )(w, a),
    "segments f32[4@X,4]": lambda a, c, w, ids: weft.ops.segment_sum(a, ids % 4, 4, **out("X")),
    "rows f32[8@X,2]": lambda a, c, w, ids: jnp.take_along_axis(
        to(a, "X"), ids[:, None] * I % 4, 1
    ),
    "reshape f32[32@X]": lambda a, c, w, ids: jnp.reshape(a, 32, **out("X")),
    "by columns f32[2,16@X]": lambda a, c, w, ids: a.reshape(2, 16, order="F", **out(None, "X")),
    "ravel f32[32]": lambda a, c, w, ids: jnp.ravel(a, **out()),
    "broadcast f32[8@X,4]": lambda a, c, w, ids: jnp.broadcast_to(w[0], (8, 4), **out("X")),
    "repeat f32[16@X,4@Y]": lambda a, c, w, ids: jnp.repeat(a, 2, axis=0, **out("X", "Y")),
    "count i32[8@X]": lambda a, c, w, ids: jnp.bincount(ids, length=8, **out("X")),
    "percentile f32[4@X]": lambda a, c, w, ids: jnp.percentile(a, 30, axis=0, **out("X")),
    "order f32[8@X,4@Y]": lambda a, c, w, ids: random.permutation(KEY, a, **out("X", "Y")),
    "samples f32[8@X,4@Y]": lambda a, c, w, ids: random.normal(KEY, (8, 4), **out("X", "Y")),
    "weights f32[8@X,4]": lambda a, c, w, ids: initializers.he_normal()(
        KEY, (8, 4), np.float32, *out("X").values()
    ),
    "fft c64[8@X,4@Y]": lambda a, c, w, ids: jnp.fft.fft(a),
    "update f32[8@X,4]": lambda a, c, w, ids: lax.dynamic_update_slice(
        to(a, "X"), to(w, "X"), (2, 0)
    ),
    "reduced by a function f32[8@X]": lambda a, c, w, ids: lax.reduce(
        a, 0.0, lambda x, y: x + y * 1.0, (1,)
    ),
    "each row f32[8@X,2@Y]": lambda a, c, w, ids: vmap(lambda r: r.at[I].get(**out("Y")))(a),
    "reference f32[8@X,4@Y], f32[8@X]": lambda a, c, w, ids: through_a_reference(a),
    "zeros f32[8@X,4], f32[8@X,4@Y]": lambda a, c, w, ids: (
        jnp.zeros((8, 4), **out("X")), jnp.zeros_like(a),
    ),
    "terms of zeros f32[8]": lambda a, c, w, ids: to(jnp.zeros(8, **out(unreduced={"X"}))),
    "terms of counts i32[8@Y]": lambda a, c, w, ids: to(jnp.arange(8, **out(unreduced={"X"})), "Y"),
    "terms of ones f32[8,4@X]": lambda a, c, w, ids: to(
        jnp.ones((8, 4), **out("Y", unreduced={"X"})), None, "X"
    ),
    "terms of a bias f32[8@X,4]": lambda a, c, w, ids: to(
        jnp.dot(a, to(w, "Y"), **out("X", unreduced={"Y"})) / 2
        + to(to(a, "X")[:, :1] * w[0], "X", **({"unreduced": {"Y"}} if ON_MESH[0] else {})),
        "X",
    ),
}  # fmt: skip


def through_a_reference(a):
    r = weft.new_ref(a)
    r[...] = r[...] * 2
    r[...] += a
    columns = weft.new_ref(to(a, "X"))
    columns[:, 1] = jnp.ones(8)
    return r[...], columns[:, 0] + columns[:, 1]


def numbers_of(programs, args):
    return jit(lambda *args: [fun(*args) for fun in programs.values()])(*args)


def check_layout(y):
    """The sharding of an array is the one that its type says."""
    lies = y.aval.sharded
    entries = tuple(y.sharding.spec.axes(i) for i in range(y.ndim))
    assert entries == (lies.entries if lies else ((),) * y.ndim)


@pytest.mark.parametrize("programs", [PRODUCTS, PLACES], ids=["products", "places"])
def test_numbers_and_layouts(programs):
    with weft.sharding.use_mesh(weft.sharding.Mesh(np.array(weft.devices()[:1]), ("one",))):
        ON_MESH[0] = False
        wanted = numbers_of(programs, (A, C, W, IDS))
    ON_MESH[0] = True
    args = to(A, "X", "Y"), to(C, "X", "Y"), to(W), to(IDS, "X")
    got = numbers_of(programs, args)
    for name, want, ys in zip(programs, wanted, got, strict=True):
        ys = weft.tree.leaves(ys)
        types = ", ".join(str(y.aval) for y in ys)
        assert name.endswith(types), (name, types)
        for y, value in zip(ys, weft.tree.leaves(want), strict=True):
            np.testing.assert_allclose(y, value, rtol=2e-5, atol=2e-5, err_msg=name)
            check_layout(y)


def test_without_jit():
    a, ids = to(A, "X", "Y"), to(IDS, "X")
    for y, want in (
        (jnp.dot(a, a.T, **out("X", None)), A @ A.T),
        (a.at[I].get(**out(None, "Y")), A[I]),
        (a.at[ids].add(1.0, **out("X")), A + np.bincount(IDS, minlength=8)[:, None]),
        (random.bits(KEY, (8,), **out("X")), random.bits(KEY, (8,))),
        (jnp.arange(8, **out("Y")), np.arange(8)),
        (jnp.full((8, 2), 2.0, **out("X")), np.full((8, 2), 2)),
        (jnp.array([A[0], A[1]], **out("Y", "X")), A[:2]),
        (lax.full_like(a, 3), np.full_like(A, 3)),
        (jnp.full_like(W, to(W[0], "Y")), np.full_like(W, W[0])),
        (jnp.linspace(0, 1, 8, device=NamedSharding(MESH, P("X"))), np.linspace(0, 1, 8)),
    ):
        np.testing.assert_allclose(y, want, rtol=2e-5, atol=2e-5)
        check_layout(y)
        assert y.sharding.mesh == MESH


def test_terms_of_a_sum_have_no_numbers_to_show():
    y = jnp.zeros(8, **out(unreduced={"X"}))
    with pytest.raises(ShardingTypeError, match=r"only a program can make .* weft.reshard\(x, P"):
        jit(lambda x: x, in_shardings=y.sharding)(np.zeros(8, np.float32))
    assert str(y) == repr(y) and repr(y).startswith("Array(shape=(8,), dtype=float32, sharding=")


def test_new_arrays_are_on_the_mesh_in_scope():
    for y in (jnp.arange(8), jnp.zeros(3), jnp.asarray(A), jnp.array(2.0), jnp.eye(2)):
        assert y.sharding == NamedSharding(MESH, P(*[None] * y.ndim)) and y.committed
    assert weft.device_put(A).sharding.num_devices == 1


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("out_sharding: axis 0 of the result f32[6@X] must be", lambda a: jnp.zeros(6, **out("X"))),
        (
            "must name explicit axes",
            lambda a: jnp.ones(6, out_sharding=NamedSharding(AUTO, P("X"))),
        ),
        ("Hint: x.at[i].get(out_sharding=P(...))", lambda a: a[I]),
        ("Hint: x.at[i].set(values, out_sharding=P(...))", lambda a: a.at[I].set(1)),
        ("full: device and out_sharding must", lambda a: jnp.full(3, 1, device=AUTO, **out("X"))),
        ("must be unreduced along", lambda a: jnp.dot(W, W, **out(unreduced={"X"}))),
        ("must be unreduced along", lambda a: lax.reduce_sum(a, (0,), **out(unreduced={"Y"}))),
        ("must have no more entries", lambda a: random.normal(KEY, (8,), **out("X", "Y"))),
    ],
)
def test_what_is_refused(text, call):
    with pytest.raises((ShardingTypeError, ValueError)) as error:
        call(to(A, "X", "Y"))
    assert text in str(error.value)


AUTO = weft.make_mesh((4, 2), ("X", "Y"), (weft.sharding.AxisType.Auto,) * 2)


def test_arrays_that_are_broadcast_together_are_split_alike():
    with weft.sharding.use_mesh(weft.make_mesh((4, 2), ("X", "Y"))):
        x = weft.device_put(np.ones((8, 4), np.float32), P("X"))
        row = weft.device_put(np.arange(4, dtype=np.float32), P("Y"))
        for y, want in zip(
            jnp.broadcast_arrays(x, row, np.arange(8)[:, None], 1), (1, row), strict=False
        ):
            assert str(weft.typeof(y)).endswith("[8@X,4@Y]")
            np.testing.assert_array_equal(y, np.broadcast_to(want, (8, 4)))
        with pytest.raises(
            ShardingTypeError, match="broadcast_arrays: operands must be split alike"
        ):
            jnp.broadcast_arrays(x, weft.device_put(np.ones((8, 4)), P("Y")))
