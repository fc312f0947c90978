"""Eleven programs that need more memory than there is: `jit(f)` dies, `jit(f, memory=...)` runs.

    python bench/memory.py [name ...]

Each program runs in processes of its own, with `ulimit -v` set to what the process has after a
first small call, the limit of the program, and SLACK for the compiler. Prints a table: what XLA
says that the program needs, whether it lives, and the time without a limit on the process, as a
multiple of that of `jit(f)`: the least CPU time of several runs, in turns.
"""

import json
import os
import resource
import subprocess
import sys
import time

LIMIT = 64 * 10**6  # bytes beside the arguments
SLACK = 300 * 10**6
TURNS = 3


def programs():
    """The name of each program, with the function and the shapes of its arguments."""
    import weft
    import weft.numpy as jnp
    from weft import lax, nn

    def distances(x):
        return jnp.sqrt(((x[:, None] - x) ** 2).sum(-1) + 1e-3).min(0, initial=9.0)

    def kernel_product(x, v):
        squares = (x**2).sum(1)
        return jnp.exp(x @ x.T - squares[:, None] / 2 - squares / 2) @ v

    def clipped_gradient(w, x, y):
        loss = lambda w, x, y: (jnp.tanh(x @ w).sum() - y) ** 2
        g = weft.vmap(weft.grad(loss), (None, 0, 0))(w, x, y)
        return (g / jnp.maximum(jnp.sqrt((g**2).sum((1, 2))), 1.0)[:, None, None]).sum(0)

    def attention(q, k, v):
        return nn.softmax(jnp.einsum("qhd,khd->hqk", q, k) / 8) @ v.transpose(1, 0, 2)

    def deep_loss(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return (x**2).mean()

    def recurrent_loss(w, x):
        def step(h, row):
            h = jnp.tanh(h @ w + row)
            return h, None

        return (lax.scan(step, x[0], x)[0] ** 2).mean()

    def sequence_loss(w, h):
        step = lambda h, _: (jnp.tanh(0.4 * w @ h + 0.1), None)
        return lax.scan(step, h, None, length=700_000)[0].sum()

    def histogram(x):
        return nn.one_hot((abs(x) * 100).astype(int), 512).sum(0)

    def outer_products(a, b):
        return (a[:, :, None] * b[:, None]).max(0)

    def forces(x, m):
        d = x - x[:, None]
        return (d * (m / ((d**2).sum(-1) + 0.01) ** 1.5)[..., None]).sum(1)

    def hessian(w, x, y):
        return weft.hessian(lambda w: jnp.log1p(jnp.exp(-y * (x @ w))).mean())(w)

    n = 11_000
    return {
        "distances": (distances, [(n, 3)]),
        "kernel times vector": (kernel_product, [(n, 3), (n,)]),
        "clipped gradients": (clipped_gradient, [(128, 128), (8_000, 128), (8_000,)]),
        "attention": (attention, [(4_000, 4, 32)] * 3),
        "gradient of a deep network": (
            weft.grad(lambda w, x: deep_loss(w, x)), [(16, 64, 64), (120_000, 64)]),
        "gradient of a recurrence": (weft.grad(recurrent_loss), [(16, 16), (90, 50_000, 16)]),
        "gradient of a long sequence": (weft.grad(sequence_loss), [(64, 64), (64,)]),
        "histogram": (histogram, [(250_000,)]),
        "largest of outer products": (outer_products, [(30_000, 64)] * 2),
        "forces": (forces, [(5_500, 3), (5_500,)]),
        "hessian": (hessian, [(64,), (900_000, 64), (900_000,)]),
    }  # fmt: skip


def count_bytes(compiled):
    """The memory of a compiled program, by XLA."""
    m = compiled.memory_analysis()
    whole = m.argument_size_in_bytes + m.output_size_in_bytes + m.temp_size_in_bytes
    return whole - m.alias_size_in_bytes


def read_status(field):
    """A figure of this process in bytes, as the kernel has it."""
    with open("/proc/self/status") as file:
        return next(int(x.split()[1]) * 1024 for x in file if x.startswith(field))


def run(name, mode):
    """One process: run a program with `jit` or with a limit, or time both."""
    import numpy as np

    import weft

    fun, shapes = programs()[name]
    rng = np.random.default_rng(0)
    args = [weft.device_put(rng.normal(size=s).astype(np.float32) / 4) for s in shapes]
    fixed = sum(x.nbytes for x in args)
    limit = LIMIT + fixed
    plain, limited = weft.jit(fun), weft.jit(fun, memory=limit)
    weft.jit(lambda x: x @ x)(np.ones((256, 256), np.float32)).block_until_ready()
    if mode != "time":
        most = read_status("VmSize") + LIMIT + SLACK  # the arguments are in it
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        weft.block_until_ready((plain if mode == "plain" else limited)(*args))
        print(json.dumps({"lives": True}))
        return
    seconds = {}
    for _ in range(TURNS):
        for key, call in (("plain", plain), ("limited", limited)):
            weft.block_until_ready(call(*args)) if key not in seconds else None
            start = time.process_time()
            weft.block_until_ready(call(*args))
            spent = time.process_time() - start
            seconds[key] = min(seconds.get(key, spent), spent)
    a, b = plain(*args), limited(*args)
    error = max(
        float(abs(x - y).max() / abs(x).max())
        for x, y in zip(weft.tree.leaves(a), weft.tree.leaves(b), strict=True)
    )
    sizes = [count_bytes(f.lower(*args).compile()) for f in (plain, limited)]
    print(json.dumps({"sizes": sizes, "limit": limit, "error": error, **seconds}))


def start(name, mode):
    """The JSON that a process prints; None if it died."""
    done = subprocess.run(
        [sys.executable, __file__, "--run", name, mode], capture_output=True, text=True,
        env={**os.environ, "WEFT_ENABLE_COMPILATION_CACHE": "0"},
    )  # fmt: skip
    if done.returncode:
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main(names):
    print("| program | MB, `jit` | MB, limit | MB, `memory=` | `jit` | `memory=` | time | error |")
    print("|---|---:|---:|---:|---|---|---:|---:|")
    for name in names:
        lives = ["runs" if start(name, mode) else "dies" for mode in ("plain", "limited")]
        found = start(name, "time")
        if found is None:
            print(f"| {name} | | | | {lives[0]} | {lives[1]} | | |", flush=True)
            continue
        sizes = [f"{x / 1e6:.0f}" for x in (found["sizes"][0], found["limit"], found["sizes"][1])]
        ratio = found["limited"] / found["plain"]
        row = [name, *sizes, *lives, f"{ratio:.2f}", f"{found['error']:.0e}"]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(*sys.argv[2:])
    else:
        main(sys.argv[1:] or programs())
