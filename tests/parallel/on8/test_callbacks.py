"""Python called from programs over a mesh: once for the program, or by each device for its part."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, jit, lax
from weft.experimental import io_callback
from weft.sharding import Mesh, NamedSharding

X = np.arange(16, dtype=np.float32).reshape(4, 4)
WHOLE = weft.ShapeDtypeStruct((4, 4), np.float32)
PART = weft.ShapeDtypeStruct((2, 4), np.float32)


@pytest.fixture
def mesh():
    return Mesh(np.array(weft.devices()[:4]).reshape(2, 2), ("a", "b"))


@pytest.fixture
def x(mesh):
    return weft.device_put(X, NamedSharding(mesh, P("a")))


@pytest.mark.parametrize("ordered", [False, True])
def test_a_program_over_a_mesh_prints_once(x, capfd, ordered):
    def f(x):
        weft.debug.print("sum {}", x.sum(), ordered=ordered)
        weft.debug.print("max {}", x.max(), ordered=ordered)
        return x * 2

    for _ in range(2):
        out = jit(f)(x)
    weft.effects_barrier()
    assert sorted(capfd.readouterr().out.split("\n")) == ["", *["max 15.0"] * 2, *["sum 120.0"] * 2]
    np.testing.assert_array_equal(out, X * 2)
    assert out.sharding.spec == P("a")


def test_a_pure_callback_is_given_the_whole(x):
    seen = []

    def host(v):
        seen.append(v.shape)
        return np.asarray(v) * 2

    out = jit(lambda x: weft.pure_callback(host, WHOLE, x) + 1)(x)
    np.testing.assert_array_equal(out, X * 2 + 1)
    assert seen == [(4, 4)]


def test_within_shard_map_each_device_calls_for_its_part(mesh, x):
    seen = []

    def host(v):
        seen.append(float(np.asarray(v).sum()))
        return np.asarray(v) * 2

    def f(x):
        return weft.pure_callback(host, PART, x) + 1

    out = weft.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a"))(x)
    np.testing.assert_array_equal(out, X * 2 + 1)
    assert sorted(seen) == [28, 28, 92, 92]


def test_each_device_of_a_pmap_prints(capfd):
    weft.pmap(lambda x: (weft.debug.print("{}", x.sum()), x)[1])(np.ones((4, 2), np.float32))
    weft.effects_barrier()
    assert capfd.readouterr().out.split() == ["2.0"] * 4


def test_the_error_of_a_callback_is_raised_itself(x):
    def host(v):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        jit(lambda x: weft.pure_callback(host, WHOLE, x))(x)
    np.testing.assert_array_equal(x, X)


def test_an_array_like_one_on_a_mesh_lies_as_it_does(x):
    for like in (jnp.zeros_like(x), jnp.full_like(x, 3), jnp.ones_like(x, dtype=jnp.int32)):
        assert like.sharding is x.sharding
    assert jnp.zeros_like(x, shape=(3,)).sharding.num_devices == 1


@pytest.mark.parametrize("check_vma", [True, False])
def test_a_call_from_the_one_device_of_a_mesh(check_vma, capfd):
    mesh = weft.make_mesh((1,), ("a",))

    def f(x):
        weft.debug.callback(lambda v: print("got", v), x[0, 0])
        y = weft.pure_callback(lambda v: np.asarray(v) * 2, WHOLE, x)
        z = io_callback(lambda v: np.asarray(v) + 1, WHOLE, y, ordered=True)
        return z + lax.psum(x, "a")

    mapped = weft.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a"), check_vma=check_vma)
    x = weft.device_put(X, NamedSharding(mesh, P("a")))
    y = jit(mapped)(x)
    weft.effects_barrier()
    assert capfd.readouterr().out == "got 0.0\n"
    np.testing.assert_array_equal(y, X * 3 + 1)
    assert str(weft.typeof(y)) == "f32[4@a,4]"


def test_calls_before_what_python_prints_are_made_before_it_and_once(mesh, capfd):
    log = []

    def f(x):
        weft.debug.print("row {}", x[0, 0])
        jit(lambda x: weft.debug.print("rows {}", x.shape[0]))(x)
        ref = weft.new_ref(x.sum())
        ref[...] *= 10
        print("ten times", float(lax.pmax(ref[...], "a")))
        weft.debug.print("after {}", x[0, 1])
        y = io_callback(lambda x: (log.append(1), x)[1], PART, x)  # its value is not known before
        print(y)
        ref[...] *= 10
        return y * ref[...]

    f = weft.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a"), check_vma=False)
    sums = X.reshape(2, 8).sum(1).repeat(2)[:, None]
    np.testing.assert_array_equal(f(X), X * sums * 100)
    weft.effects_barrier()
    shown = capfd.readouterr().out.split("\n")
    assert sorted(shown[:8]) == sorted(["row 0.0", "row 8.0", "rows 2"] * 2 + ["rows 2"] * 2)
    assert shown[8:10] == ["ten times 920.0", "Traced<f32[2,4]>"]
    assert sorted(shown[10:]) == sorted(["", *["after 1.0", "after 9.0"] * 2]) and len(log) == 4


@pytest.mark.filterwarnings("error")
def test_python_decides_by_values_of_which_derivatives_are_taken(mesh, capfd):
    def loss(w):
        def f(x):
            total = lax.psum((x * w).sum(), "a")
            print(total)
            return x * w**2 if total > 0 else x * w

        return weft.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a"))(X).sum()

    assert weft.grad(loss)(3.0) == 6 * X.sum() and weft.grad(loss)(-3.0) == X.sum()
    assert weft.jvp(loss, (3.0,), (1.0,))[1] == 6 * X.sum()
    shown = capfd.readouterr()
    assert shown.out.startswith("On cpu:0 at mesh") and not shown.err  # no hint that it is traced
    with pytest.raises(TypeError, match="a traced bool"):
        weft.vmap(loss)(np.ones(2, np.float32))
