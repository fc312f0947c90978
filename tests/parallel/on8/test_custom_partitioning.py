"""custom_partitioning: the user's partition runs, with the same results as the function."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import NamedSharding, P, lax
from weft.errors import ShapeError
from weft.experimental.custom_partitioning import custom_partitioning, write_rule

MESH = weft.make_mesh((4, 2), ("x", "y"), weft.sharding.AxisType.Auto)
X = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
seen = []


@custom_partitioning
def sort_rows(a):
    return jnp.sort(a, axis=1)


def split_rows(mesh, arg_shapes, result_shape):
    seen.append((arg_shapes[0].sharding.spec, result_shape.sharding.spec))
    rows = NamedSharding(mesh, P(arg_shapes[0].sharding.spec[0], None))
    return mesh, lambda a: jnp.sort(a, axis=1) + 100 * lax.axis_index("x"), rows, (rows,)


sort_rows.def_partition(split_rows, sharding_rule="i j -> i j", need_replication_factors=("j",))


def over(x, *spec):
    return weft.device_put(x, NamedSharding(MESH, P(*spec)))


def test_each_device_runs_its_part():
    seen.clear()
    got = weft.jit(lambda x: sort_rows(x * 2) + 1)(over(X, "x", None))
    want = np.sort(2 * X, 1) + 1 + 100 * np.repeat(np.arange(4), 2)[:, None]
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert got.sharding.spec[0] == "x" and len(seen) == 1 and seen[0][0][0] == "x"
    np.testing.assert_allclose(sort_rows(X), np.sort(X, 1))  # on one device
    np.testing.assert_allclose(weft.vmap(sort_rows)(X[None])[0], np.sort(X, 1))
    grads = weft.grad(lambda x: (sort_rows(x) * np.arange(4.0)).sum())(X)
    np.testing.assert_array_equal(grads, np.argsort(np.argsort(X, 1), 1))


def test_several_values_sums_and_static_arguments():
    def product(scale, a, b):
        return a @ b * scale, -(a @ b)

    def split(scale, mesh, arg_shapes, result_shape):
        def part(a, b):
            y = lax.psum(a @ b, "y")
            return y * scale, -y

        a, b = (NamedSharding(mesh, s) for s in (P("x", "y"), P("y", None)))
        return mesh, part, (NamedSharding(mesh, P("x", None)),) * 2, (a, b)

    f = custom_partitioning(product, static_argnums=0)
    rule = lambda scale, mesh, ins, outs: "i j, j k -> i k, i k"
    f.def_partition(split, sharding_rule=rule, reduction_factors=("j",))
    y, z = weft.jit(lambda a, b: f(3.0, a, b))(over(X, "x", "y"), over(X.T, "y", None))
    np.testing.assert_allclose(y, 3 * X @ X.T, rtol=1e-5)
    np.testing.assert_allclose(z, -X @ X.T, rtol=1e-5)


def test_rules_and_errors():
    a, b = weft.typeof(X), weft.typeof(np.ones((2, 3, 4, 12), np.float32))
    assert write_rule("i j -> j", [a], [weft.typeof(X[0])], {"reduction": "i"}, {}) == (
        "#sdy.op_sharding_rule<([i, j])->([j]) {i=8, j=4} reduction={i}, custom>"
    )
    assert write_rule("... (p q) -> ... p", [b], [b], {}, {"p": 3, "q": 4}) == (
        "#sdy.op_sharding_rule<([i, j, k, lm])->([i, j, k, l]) {i=2, j=3, k=4, l=12, m=4}, custom>"
    )
    with pytest.raises(ShapeError, match="must name the axes of each operand and result; got 'i"):
        write_rule("i, j -> i", [a], [a], {}, {})
    with pytest.raises(ShapeError, match="must name the axes of each value; got 'i -> i' for f32"):
        write_rule("i -> i", [a], [a], {}, {})
    with pytest.raises(TypeError, match="must be told how it is split; got no partition"):
        custom_partitioning(abs)(1.0)
    with pytest.raises(TypeError, match="must take all arrays that it uses as arguments; got f32"):
        f = custom_partitioning(lambda x: x + weft.device_put(X))
        f.def_partition(split_rows)
        f(X)


def test_a_partition_that_fails_says_why():
    f = custom_partitioning(jnp.sin)
    f.def_partition(lambda mesh, ins, out: 1 / 0, sharding_rule="i j -> i j")
    with pytest.raises(Exception, match="ZeroDivisionError: division by zero"):
        weft.jit(f)(over(X, "x", None))
