"""The program of each of several processes; the command line names its body.

test_processes.py starts the processes. They print their results as lines of JSON, which the test
compares.
"""

import json
import os
import signal
import sys
import time

import numpy as np

import weft
import weft.numpy as jnp
from weft import distributed, lax
from weft.experimental import multihost_utils as mh
from weft.sharding import Mesh, NamedSharding
from weft.sharding import PartitionSpec as P

SILENCE = 3  # seconds without a sign of life


def say(**found):
    print(json.dumps({k: np.asarray(x).tolist() for k, x in found.items()}), flush=True)


def over_all(name="x"):
    mesh = Mesh(np.array(weft.devices()), (name,))
    return mesh, NamedSharding(mesh, P(name))


def everything(rank, size):
    """Devices, arrays, collectives, and the values that processes pass each other."""
    say(
        devices=weft.device_count(),
        local=weft.local_device_count(),
        rank=weft.process_index(),
        size=weft.process_count(),
        ranks=weft.process_indices(),
        mine=all(d.process_index == rank for d in weft.local_devices()),
        default=jnp.ones(2).device.process_index,
    )
    mesh, split = over_all()
    n = weft.device_count()
    x = weft.make_array_from_callback((2 * n,), split, lambda i: np.arange(2.0 * n)[i])
    mapped = weft.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    say(
        sum=weft.jit(jnp.sum)(x),
        eager=jnp.sum(x * 2),
        psum=weft.jit(mapped)(x),
        grad=weft.grad(lambda w: jnp.sum((w * x) ** 2))(1.0),
        whole=weft.device_put(x, NamedSharding(mesh, P())),
        shards=[s.data for s in x.addressable_shards],
        text=str(x) == repr(x) == f"Array(shape=({2 * n},), dtype=float32)",
    )
    gathered = mh.process_allgather({"a": np.arange(2) + 10 * rank, "b": np.float16(-0.0)})
    say(
        allgather=gathered["a"],
        sign=np.signbit(gathered["b"]),
        tiled=mh.process_allgather(np.array([rank == 1]), tiled=True),
        content=mh.process_allgather(x, tiled=True),
        broadcast=mh.broadcast_one_to_all(rank + 5),
        chosen=mh.broadcast_one_to_all(np.float32(rank), is_source=rank == size - 1),
    )
    whole = mh.host_local_array_to_global_array(np.full(2, rank + 1.0), mesh, P("x"))
    back = mh.global_array_to_host_local_array(whole, mesh, P("x"))
    say(shape=whole.shape, total=jnp.sum(whole), back=back)
    mh.sync_global_devices("all the same")
    mh.assert_equal({"steps": 3})
    say(errors=[error_of(f) for f in mistakes(rank, size, x)])


def typed(rank, size):
    """A step of a model with explicit axes over the devices of all processes."""
    mesh = weft.make_mesh((2, 2), ("data", "model"), devices=weft.devices())
    x, up, down = model()
    with weft.set_mesh(mesh):
        x = weft.make_array_from_callback(x.shape, NamedSharding(mesh, P("data")), x.__getitem__)
        up, down = (
            weft.make_array_from_callback(w.shape, NamedSharding(mesh, P(*spec)), w.__getitem__)
            for w, spec in ((up, (None, "model")), (down, ("model", None)))
        )
        loss, grads = weft.jit(weft.value_and_grad(model_loss, (0, 1)))(up, down, x)
        gathered = weft.jit(lambda g: [weft.reshard(w, P()) for w in g])(grads)
        terms = weft.jit(lambda x: lax.reduce_sum(x, (0,), out_sharding=P(unreduced={"data"})))(x)
        say(
            types=[str(weft.typeof(w)) for w in (x, *grads, terms)],
            loss=loss,
            up=gathered[0],
            down=gathered[1],
            column=weft.reshard(terms, P()),
            new=str(jnp.arange(3.0).sharding.spec),
        )


def model():
    rng = np.random.default_rng(0)
    return [rng.normal(size=s).astype(np.float32) for s in ((4, 3), (3, 6), (6, 3))]


def model_loss(up, down, x):
    h = jnp.tanh(x @ up)
    rows = None if h.aval.sharded is None else P("data", None)
    return jnp.mean((lax.dot(h, down, out_sharding=rows) - x) ** 2)


def mapped(rank, size):
    """A pmap over the devices of all processes, whose results go into the next call."""
    n = weft.local_device_count()
    f = weft.pmap(
        lambda x, y, k: (lax.psum(x, "i") + k * y, lax.pmax(x, "i")),
        axis_name="i",
        in_axes=(1, 0, None),
        out_axes=(1, None),
        static_broadcasted_argnums=2,
    )
    x = np.arange(2.0 * n, dtype=np.float32).reshape(n, 2).T + 2 * n * rank
    first, most = f(x, np.ones((n, 2), np.float32), 3)
    second, _ = f(first, np.ones((n, 2), np.float32), 3)
    say(first=first, most=most, second=second, local_mesh=first.is_fully_addressable)


def mistakes(rank, size, x):
    far = next(d for d in weft.devices() if d.process_index == (rank + 1) % size)
    return [
        lambda: np.asarray(x),
        lambda: mh.process_allgather(x),
        lambda: mh.sync_global_devices(f"step {rank}"),
        lambda: mh.assert_equal(rank, "ranks"),
        lambda: weft.device_put(np.ones(2), far),
        lambda: distributed.initialize("localhost:1", size, rank),
        lambda: weft.local_devices(size),
    ]


def error_of(f):
    try:
        f()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def train(steps=20):
    """The weights of a small network after some steps, on a batch split over all devices."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(32, 3)).astype("f"), rng.normal(size=(32, 1)).astype("f")
    params = [rng.normal(size=s).astype("f") * 0.5 for s in ((3, 8), (8,), (8, 1))]
    mesh, split = over_all("batch")
    whole = NamedSharding(mesh, P())

    def loss(params, x, y):
        w, b, v = params
        return jnp.mean((jnp.tanh(x @ w + b) @ v - y) ** 2)

    @weft.jit
    def step(params, x, y):
        value, grads = weft.value_and_grad(loss)(params, x, y)
        return [p - 0.1 * g for p, g in zip(params, grads, strict=True)], value

    rows = slice(*(np.arange(2) + weft.process_index()) * (32 // weft.process_count()))
    x, y = (weft.make_array_from_process_local_data(split, a[rows]) for a in (x, y))
    params = weft.device_put(params, whole)
    for _ in range(steps):
        params, value = step(params, x, y)
    say(loss=value, weights=np.concatenate([np.asarray(p).ravel() for p in params]))


def lose(rank, size, how, stuck):
    """Process 1 is lost; the others find out in a computation, or doing nothing together."""
    _, split = over_all()
    x = weft.make_array_from_callback((weft.device_count(),), split, lambda i: np.ones(8)[i])
    total = weft.jit(jnp.sum)
    say(sum=total(x))
    # each process in another way
    ways = (total, jnp.sum, total.lower(x).compile(), lambda x: weft.device_get(x.sum()))
    call = ways[(rank + len(how)) % 4]
    call(x)
    if rank == int(os.environ.get("VICTIM", "1")):
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        raise ValueError("no more")
    try:
        for _ in range(2000):
            time.sleep(0.01)
            if stuck:
                weft.block_until_ready(call(x + 1))
    except weft.errors.ProcessFailureError as error:
        say(failed=sorted(d.id for d in error.failed_devices))
        raise


if __name__ == "__main__":
    body, *rest = sys.argv[1:]
    if body == "alone":
        train()
    else:
        distributed.initialize(
            # a machine that is busy with other tests may starve a process for seconds
            heartbeat_timeout_seconds=40 if body in ("everything", "train") else SILENCE,
            initialization_timeout=30,
            shutdown_timeout_seconds=20,
        )
        place = weft.process_index(), weft.process_count()
        if body == "everything":
            everything(*place)
            mapped(*place)
            typed(*place)
        elif body == "train":
            train()
        else:
            lose(*place, body, rest == ["stuck"])
