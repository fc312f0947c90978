"""Sharded computation: automatic, explicit and manual parallelism over eight devices."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
print(len(jax.devices()))
arr = jnp.arange(32.0).reshape(4, 8)
print(arr.devices() == {jax.devices()[0]}, isinstance(arr.sharding, SingleDeviceSharding))

mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
sharding = NamedSharding(mesh, P("x", "y"))
arr_sharded = jax.device_put(arr, sharding)
print(arr_sharded.sharding.spec, len(arr_sharded.addressable_shards))
for shard in arr_sharded.addressable_shards[:2]:
    print(shard.device.id, shard.index, shard.data)
jax.debug.visualize_array_sharding(arr_sharded)


@jax.jit
def f_elementwise(x):
    return 2 * jnp.sin(x) + 1


result = f_elementwise(arr_sharded)
print(result.sharding == arr_sharded.sharding, result[0, :3])


@jax.jit
def f_contract(x):
    return x.sum(axis=0)


result = f_contract(arr_sharded)
print(result, result.sharding.is_equivalent_to(NamedSharding(mesh, P("y")), 1))


@jax.jit
def f_constrained(x):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("y", None)))
    return x @ x.T


print(f_constrained(arr_sharded).sum(), f_constrained(arr_sharded).shape)

# Manual: each device sees its part.
line = Mesh(jax.devices(), ("x",))


@jax.jit
@functools.partial(jax.shard_map, mesh=line, in_specs=P("x"), out_specs=P("x"))
def f_manual(x):
    return x * 2 + jax.lax.axis_index("x")


print(f_manual(jnp.arange(16)))


@functools.partial(jax.shard_map, mesh=line, in_specs=P("x"), out_specs=P())
def f_sum(x):
    return jax.lax.psum(x.sum(), "x")


print(f_sum(jnp.arange(16.0)))


@functools.partial(
    jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None)
)
def matmul(a, b):
    return jax.lax.psum(a @ b, "y")


a, b = jnp.arange(32.0).reshape(4, 8), jnp.ones((8, 2))
print(matmul(a, b), jnp.allclose(matmul(a, b), a @ b))
rotate = jax.shard_map(
    lambda x: jax.lax.ppermute(x, "x", [(i, (i + 1) % 8) for i in range(8)]),
    mesh=line, in_specs=P("x"), out_specs=P("x"),
)  # fmt: skip
print(rotate(jnp.arange(8)))
gather = jax.shard_map(
    lambda x: jax.lax.all_gather(x, "x", tiled=True).sum(keepdims=True),
    mesh=line, in_specs=P("x"), out_specs=P("x"),
)  # fmt: skip
print(gather(jnp.arange(8)))

# Data parallel training of a layer: the batch is split, the weights are on all.
weights = jax.device_put(jnp.ones((8, 4)), NamedSharding(line, P()))
batch = jax.device_put(jnp.arange(128.0).reshape(16, 8) / 128, NamedSharding(line, P("x")))


@jax.jit
def step(w, x):
    loss, grad = jax.value_and_grad(lambda w: jnp.mean(jax.nn.sigmoid(x @ w)))(w)
    return w - 0.1 * grad, loss


for _ in range(3):
    weights, loss = step(weights, batch)
print(loss, weights[0], weights.sharding.is_fully_replicated)
print(jax.pmap(lambda x: jax.lax.pmean(x, "i"), axis_name="i")(jnp.arange(8.0)))
