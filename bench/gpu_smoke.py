"""The whole spine on a GPU: every kind of program checked against NumPy and timed, beside JAX.

    python bench/gpu_smoke.py [--platform gpu] [--jax PYTHON] [--compile-only]

Without such a device it says so, and that is all; with the plugin for CUDA installed, the programs
can still be compiled for an H100. JAX, in an environment of its own, runs the same
programs if its Python is given and has the platform too.
"""

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


class Case(NamedTuple):
    """A program of a library's modules, its arguments, and NumPy's result."""

    program: Callable[[Any], Callable]
    args: tuple
    expected: Any  # None: its own check is in the program
    tolerance: float = 2e-3


def cases(n: int) -> dict[str, Case]:
    """The programs; `n` is the size of a matrix."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(n, n)).astype(np.float32) for _ in range(2))
    spd = (a @ a.T / n + np.eye(n, dtype=np.float32)).astype(np.float32)
    v = rng.normal(size=n * n).astype(np.float32)
    image = rng.normal(size=(4, 8, 32, 32)).astype(np.float32)
    kernel = rng.normal(size=(8, 8, 3, 3)).astype(np.float32)
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    wave = np.cumsum(v[:4096]).astype(np.float32)
    running = np.cumsum(wave.astype(np.float64))
    holes = np.where(a < -2, np.float32(np.nan), a)

    def conv(m: Any) -> Callable:
        return lambda x, k: m.lax.conv_general_dilated(x, k, (1, 1), "SAME", precision="highest")

    def rng_program(m: Any) -> Callable:
        def stats(seed: Any) -> Any:
            x = m.random.normal(m.random.key(seed), (n * n,))
            return m.jnp.stack([m.jnp.mean(x), m.jnp.std(x)])

        return stats

    def gamma(m: Any) -> Callable:
        def stats(seed: Any) -> Any:
            x = m.random.gamma(m.random.key(seed), 2.0, (n * n,))
            return m.jnp.stack([m.jnp.mean(x), m.jnp.var(x)])

        return stats

    def permutation(m: Any) -> Callable:
        return lambda seed: m.jnp.sort(m.random.permutation(m.random.key(seed), n * n))

    def scan(m: Any) -> Callable:
        def step(carry: Any, x: Any) -> tuple:
            carry = carry + x
            return carry, carry

        return lambda x: m.lax.scan(step, m.jnp.float32(0), x)[1]

    def collective(m: Any) -> Callable:
        mesh = m.sharding.Mesh(np.array(m.lib.devices(m.platform)[:1]), ("x",))
        spec = m.sharding.PartitionSpec
        total = lambda x: m.lax.psum(x, "x")
        return m.lib.shard_map(total, mesh=mesh, in_specs=spec("x"), out_specs=spec())

    def svd(m: Any) -> Callable:
        def back(x: Any) -> Any:
            u, s, vh = m.jnp.linalg.svd(x, full_matrices=False)
            return m.jnp.matmul(u * s, vh, precision="highest")

        return back

    def eigh(m: Any) -> Callable:
        def back(x: Any) -> Any:
            w, u = m.jnp.linalg.eigh(x)
            return m.jnp.matmul(u * w, u.T, precision="highest")

        return back

    def qr(m: Any) -> Callable:
        return lambda x: m.jnp.matmul(*m.jnp.linalg.qr(x), precision="highest")

    dot = lambda m: lambda x, y: m.jnp.matmul(x, y, precision="highest")
    loss = lambda m: lambda x: m.jnp.sum(m.jnp.tanh(x) ** 2)
    return {
        "elementwise": Case(lambda m: lambda x: m.jnp.sin(x) * x + 1, (v,), np.sin(v) * v + 1),
        "reduce": Case(lambda m: lambda x: m.jnp.mean(x, axis=0), (a,), a.mean(0)),
        "dot": Case(dot, (a, b), a @ b, 1e-2),
        "conv": Case(conv, (image, kernel), np.einsum("bchwij,ocij->bohw", windows, kernel), 1e-2),
        "grad": Case(lambda m: m.lib.grad(loss(m)), (v,), 2 * np.tanh(v) * (1 - np.tanh(v) ** 2)),
        "vmap": Case(lambda m: m.lib.vmap(m.jnp.dot), (a, b), np.einsum("ij,ij->i", a, b), 1e-2),
        "scan": Case(scan, (wave,), running, 1.0),
        "cumsum": Case(lambda m: m.jnp.cumsum, (wave,), running, 1.0),
        "cummax": Case(lambda m: m.lax.cummax, (v,), np.maximum.accumulate(v)),
        "nanmax": Case(lambda m: lambda x: m.jnp.nanmax(x, 0), (holes,), np.nanmax(holes, 0)),
        "sort": Case(lambda m: m.jnp.sort, (v,), np.sort(v)),
        "median": Case(lambda m: lambda x: m.jnp.median(x, 1), (a,), np.median(a, 1)),
        "top_k": Case(lambda m: lambda x: m.lax.top_k(x, 9)[0], (v,), -np.sort(-v)[:9]),
        "gather": Case(
            lambda m: lambda x, i: x[i], (v, np.arange(0, n * n, 3, dtype=np.int32)), v[::3]
        ),
        "scatter": Case(
            lambda m: lambda x: m.jnp.zeros(7).at[m.jnp.arange(x.size) % 7].add(x),
            (v,),
            np.bincount(np.arange(v.size) % 7, v),
            5e-2,
        ),
        "gamma": Case(gamma, (np.int32(0),), np.array([2.0, 2.0]), 12 / n),
        "permutation": Case(permutation, (np.int32(0),), np.arange(n * n)),
        "rng": Case(rng_program, (np.int32(0),), np.array([0.0, 1.0]), 5 / n),
        "fft": Case(lambda m: lambda x: m.jnp.abs(m.jnp.fft.fft(x)), (a,), np.abs(np.fft.fft(a))),
        "cholesky": Case(lambda m: m.jnp.linalg.cholesky, (spd,), np.linalg.cholesky(spd)),
        "solve": Case(lambda m: m.jnp.linalg.solve, (spd, a), np.linalg.solve(spd, a), 1e-2),
        "qr": Case(qr, (a,), a, 1e-2),
        "eigh": Case(eigh, (spd,), spd, 1e-2),
        "svd": Case(svd, (a,), a, 1e-2),
        "collective": Case(collective, (v,), v),
    }


def modules(library: str, platform: str) -> SimpleNamespace:
    """The modules of a library that the programs are written with."""
    part = lambda name: importlib.import_module(library + name)
    return SimpleNamespace(
        lib=part(""),
        jnp=part(".numpy"),
        lax=part(".lax"),
        random=part(".random"),
        sharding=part(".sharding"),
        platform=platform,
    )


def timed(f: Callable, args: tuple, repeats: int = 20) -> float:
    """The milliseconds that a call takes, as the median of some."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        f(*args).block_until_ready()
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e3


def measure(library: str, platform: str, n: int) -> None:
    """Run the programs with one library; prints a line of JSON for each."""
    m = modules(library, platform)
    try:
        device = m.lib.devices(platform)[0]
    except RuntimeError as error:
        print(json.dumps({"absent": str(error)}))
        return
    print(json.dumps({"device": f"{device.device_kind} ({device.platform})"}))
    for name, case in cases(n).items():
        try:
            args = m.lib.device_put(case.args, device)
            f = m.lib.jit(case.program(m))
            start = time.perf_counter()
            out = np.asarray(f(*args))
            first = (time.perf_counter() - start) * 1e3
            off = float(np.max(np.abs(out - case.expected), initial=0))
            start = time.perf_counter()
            m.lib.jit(case.program(m))(*args).block_until_ready()
            again = (time.perf_counter() - start) * 1e3
            found = {"off": off, "ok": off <= case.tolerance, "first": first, "again": again}
            found["ms"] = timed(f, args)
        except Exception as error:  # one that fails is a line of the report
            found = {"ok": False, "error": f"{type(error).__name__}: {error}".split("\n")[0]}
        print(json.dumps({"name": name, **found}), flush=True)


# The description for the compiler of a device that is not present.
H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
runtime_version { major: 12 minor: 9 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def compile_only(n: int) -> int:
    """Compile the programs for an H100 that is not here; the number of those that fail."""
    import weft.mesh.client  # noqa: F401, I001  # quiets the engine's log, so comes first

    from jaxlib import _jax
    from weft.primitives.constant import write_consts
    from weft.xla.callbacks import parse_module
    from weft.xla.hlo import Builder
    from weft.xla.lower import lower_jaxpr
    from weft.mesh.plugins import find_cuda_tools, find_plugins, load_plugin

    plugin = find_plugins().get("cuda")
    if plugin is None:
        print("gpu-smoke: nothing to compile with: no plugin for CUDA is installed")
        return 0
    options = {"target_config": H100, "topology": "1x1x1"}
    devices = _jax.get_c_api_topology(
        load_plugin(plugin), "h100", options
    )._make_compile_only_devices()
    m = modules("weft", "cpu")
    failed = 0
    for name, case in cases(n).items():
        if name == "collective":  # is over devices that are here
            continue
        start = time.perf_counter()
        try:
            traced = m.lib.make_jaxpr(case.program(m))(*case.args)
            jaxpr = write_consts(traced.jaxpr, traced.consts)
            hlo = Builder((), "cuda")
            write = lambda *xs, hlo=hlo, jaxpr=jaxpr: lower_jaxpr(hlo, jaxpr, xs)
            hlo.function("main", jaxpr.in_avals, write, "public")
            given = _jax.CompileOptions()
            given.device_assignment = _jax.DeviceAssignment.create(np.zeros((1, 1), np.int32))
            tools = find_cuda_tools() or ""
            flags = [("xla_gpu_autotune_level", "0"), ("xla_gpu_cuda_data_dir", tools)]
            given.env_option_overrides = flags
            text = parse_module(hlo.module(name))
            devices[0].client.compile(text, _jax.DeviceList(tuple(devices)), given)
            print(f"{name:<12} compiles in {time.perf_counter() - start:.2f} s", flush=True)
        except Exception as error:  # one that fails is a line of the report
            failed += 1
            print(f"{name:<12} FAILED {type(error).__name__}: {error}".split("\n")[0], flush=True)
    return failed


def results(python: str, library: str, platform: str, n: int) -> list[dict]:
    """Return the measurements of a process with one library."""
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    if library == "weft":
        environment["PYTHONPATH"] = str(ROOT / "src")
    else:
        environment.pop("PYTHONPATH", None)
    command = [python, __file__, "--measure", library, "--platform", platform, "--size", str(n)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise SystemExit(f"gpu-smoke: {library} must run; got\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def report(mine: list[dict], other: list[dict]) -> int:
    """Print the table; the number of programs that failed."""
    theirs = {row["name"]: row for row in other if "name" in row}
    print(f"on {mine[0]['device']}; times in ms: first call, another jit of it, a call")
    print(f"{'program':<12} {'error':>9} {'first':>9} {'again':>9} {'call':>9} {'JAX call':>9}")
    failed = 0
    for row in mine[1:]:
        failed += not row["ok"]
        if "error" in row:
            print(f"{row['name']:<12} FAILED {row['error']}")
            continue
        jax_ms = theirs.get(row["name"], {}).get("ms")
        beside = "" if jax_ms is None else f"{jax_ms:9.3f}"
        line = f"{row['name']:<12} {row['off']:9.2e} {row['first']:9.1f} {row['again']:9.1f}"
        print(f"{line} {row['ms']:9.3f} {beside}" + ("" if row["ok"] else " WRONG"))
    return failed


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", default="gpu")
    parser.add_argument("--jax", default=str(ROOT / ".venv-bench" / "bin" / "python"))
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.platform, options.size)
        return
    if options.compile_only:
        failed = compile_only(options.size)
        raise SystemExit(f"gpu-smoke: {failed} programs do not compile" if failed else 0)
    mine = results(sys.executable, "weft", options.platform, options.size)
    if "absent" in mine[0]:
        print(f"gpu-smoke: nothing to check: {mine[0]['absent']}")
        return
    there = Path(options.jax).exists()
    other = results(options.jax, "jax", options.platform, options.size) if there else []
    failed = report(mine, other)
    if failed:
        raise SystemExit(f"gpu-smoke: {failed} programs failed")


if __name__ == "__main__":
    main()
