"""`device_put` in differentiated and mapped functions: shardings of values and gradients."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import device_put
from weft.sharding import AxisType, NamedSharding
from weft.sharding import PartitionSpec as P

DEVICES = weft.devices()
MESH = weft.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
ROWS = NamedSharding(MESH, P("i"))
X = np.arange(8, dtype=np.float32)


def move(x):
    return device_put(x * 2, DEVICES[2]) ** 2


def there_and_back(x):
    return device_put(device_put(x * 2, DEVICES[3]) * 1.0, DEVICES[2]) ** 2


def lay_out(x):
    return device_put(x * 2, ROWS) ** 2


def devices_of(tree):
    return [{d.id for d in y.devices()} for y in weft.tree.leaves(tree)]


def twice(f, x):
    return weft.grad(lambda x: weft.grad(lambda x: f(x).sum())(x).sum())(x)


TRANSFORMED = {  # the computation, and for each result True if it is sharded as x
    "jvp": (lambda f, x: weft.jvp(f, (x,), (x,)), [False, False]),
    "vjp": (lambda f, x: (lambda y, pull: (y, pull(y)))(*weft.vjp(f, x)), [False, True]),
    "linearize": (lambda f, x: (lambda y, push: (y, push(x)))(*weft.linearize(f, x)), [False] * 2),
    "grad": (lambda f, x: weft.grad(lambda x: f(x).sum())(x), [True]),
    "grad of grad": (twice, [True]),
    "value_and_grad": (lambda f, x: weft.value_and_grad(lambda x: f(x).sum())(x), [False, True]),
    "jacfwd": (lambda f, x: weft.jacfwd(f)(x), [False]),
    "jacrev": (lambda f, x: weft.jacrev(f)(x), [True]),
    "vmap": (lambda f, x: weft.vmap(f)(x), [False]),
    "vmap of grad": (lambda f, x: weft.vmap(weft.grad(lambda x: f(x).sum()))(x), [True]),
    "grad of vmap": (lambda f, x: weft.grad(lambda x: weft.vmap(f)(x).sum())(x), [True]),
}  # fmt: skip


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("f", [move, there_and_back])
def test_to_a_device(name, start, f):
    transformed, returns = TRANSFORMED[name]
    x = device_put(X, DEVICES[1]) if start else jnp.asarray(X)
    out = transformed(f, x)
    assert devices_of(out) == [{start} if back else {2} for back in returns]
    plain = transformed(lambda x: (x * 2) ** 2, X)
    for y, want in zip(weft.tree.leaves(out), weft.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(y, want, rtol=1e-6)


def test_beside_values_of_each_device():
    near, far = (device_put(X, d) for d in DEVICES[1:3])
    f = lambda x: (device_put(x * near, DEVICES[2]) * far).sum()
    gradient = weft.grad(f)(near)
    assert devices_of(gradient) == [{1}]
    np.testing.assert_array_equal(gradient, X * X)


def test_to_a_mesh():
    x = jnp.asarray(X)
    y, dot = weft.jvp(lay_out, (x,), (x,))
    assert y.sharding == dot.sharding == ROWS
    gradient = weft.grad(lambda x: lay_out(x).sum())(x)
    assert devices_of(gradient) == [{0}]
    np.testing.assert_array_equal(gradient, 8 * X)
    mapped = weft.vmap(lay_out)(jnp.ones((3, 8)))
    assert mapped.sharding.spec == P(None, "i")
    kept = weft.grad(lambda x: lay_out(x).sum())(device_put(X, ROWS))
    assert kept.sharding.is_equivalent_to(ROWS, 1)


def test_to_another_kind_of_memory():
    host = weft.sharding.SingleDeviceSharding(DEVICES[0], memory_kind="pinned_host")
    y, dot = weft.jvp(lambda x: device_put(x, host), (jnp.asarray(X),), (jnp.asarray(X),))
    assert y.sharding.memory_kind == dot.sharding.memory_kind == "pinned_host"


def test_in_a_program():
    """A program runs where its operands are."""
    x = device_put(X, DEVICES[1])
    assert devices_of(weft.jit(move)(x)) == devices_of(
        weft.jit(weft.grad(lambda x: move(x).sum()))(x)
    )
    assert devices_of(weft.grad(lambda x: weft.jit(move)(x).sum())(x)) == [{1}]
