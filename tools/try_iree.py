"""Compile what `export` writes by IREE, run it, and compare: StableHLO as other compilers read it.

Run by a Python that has iree-base-compiler and iree-base-runtime, with the folder that weft has
written, and by one that has weft, to write it:

    python tools/try_iree.py write FOLDER
    python-with-iree tools/try_iree.py run FOLDER
"""

import pathlib
import sys

import numpy as np


def programs():
    """Return six programs by name, each with its arguments."""
    import weft
    import weft.numpy as jnp
    from weft import lax, nn, random

    rng = np.random.default_rng(0)
    make = lambda *shape: rng.normal(size=shape).astype(np.float32)

    def network(x, k, w):
        y = nn.relu(lax.conv(x, k, (1, 1), "SAME"))
        y = lax.reduce_window(y, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return nn.softmax(y.reshape(len(y), -1) @ w)

    def attention(x, w):
        q, k, v = jnp.einsum("btd,adk->abtk", x, w)
        mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
        scores = jnp.where(mask, jnp.einsum("btk,bsk->bts", q, k), -jnp.inf)
        return jnp.einsum("bts,bsk->btk", nn.softmax(scores), v)

    def lstm(x, w, u):
        def step(state, x):
            h, c = state
            i, f, g, o = jnp.split(x @ w + h @ u, 4)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
            return (nn.sigmoid(o) * jnp.tanh(c), c), c

        return lax.scan(step, (jnp.zeros(4), jnp.zeros(4)), x)

    def loss(w, x, y):
        return jnp.mean((jnp.tanh(x @ w) - y) ** 2)

    def places(x, i):
        return jnp.sort(x, axis=1), x[i], x.at[i].add(1.0)

    def sample(seed):
        first, second = random.split(random.key(seed))
        return random.normal(first, (5,)), random.randint(second, (4,), 0, 10)

    return {
        "network": (network, make(2, 1, 8, 8), make(3, 1, 3, 3), make(48, 10)),
        "attention": (attention, make(2, 5, 6), make(3, 6, 4)),
        "lstm": (lstm, make(7, 3), make(3, 16), make(4, 16)),
        "step": (weft.value_and_grad(loss), make(3), make(8, 3), make(8)),
        "places": (places, make(5, 4), np.array([3, 0, 3], np.int32)),
        "sample": (sample, np.int32(3)),
    }


def write(folder):
    """Write modules of StableHLO, arguments and results."""
    import weft
    from weft import export

    folder.mkdir(parents=True, exist_ok=True)
    for name, (fun, *args) in programs().items():
        exported = export.export(weft.jit(fun))(*args)
        (folder / f"{name}.mlir").write_text(exported.mlir_module())
        outs = weft.tree.leaves(weft.jit(fun)(*args))
        rows = {f"in{k}": x for k, x in enumerate(args)} | {
            f"out{k}": x for k, x in enumerate(outs)
        }
        np.savez(folder / f"{name}.npz", **rows)


def run(folder):
    """Compile each module by IREE for the CPU, and compare its results."""
    from iree import compiler, runtime

    wrong = 0
    for file in sorted(folder.glob("*.mlir")):
        data = dict(np.load(file.with_suffix(".npz")))
        args = [data[f"in{k}"] for k in range(len(data)) if f"in{k}" in data]
        want = [data[f"out{k}"] for k in range(len(data)) if f"out{k}" in data]
        try:
            module = compiler.compile_str(
                file.read_text(), target_backends=["llvm-cpu"], input_type="stablehlo",
                extra_args=["--iree-llvmcpu-target-cpu=host"],
            )  # fmt: skip
            loaded = runtime.load_vm_flatbuffer(module, driver="local-task")
            outs = loaded.main(*args)
            outs = outs if isinstance(outs, list | tuple) else [outs]
            for a, b in zip(outs, want, strict=True):
                np.testing.assert_allclose(a.to_host(), b, rtol=1e-4, atol=1e-5)
            print(f"{file.stem}: agrees, {len(module)} bytes")
        except Exception as error:  # a compiler's own error, of any class
            wrong += 1
            print(f"{file.stem}: {type(error).__name__}: {str(error)[:2000]}")
    return wrong


if __name__ == "__main__":
    command, place = sys.argv[1:]
    sys.exit({"write": write, "run": run}[command](pathlib.Path(place)))
