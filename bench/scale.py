"""The growth of costs with size: programs, trees, constants, batches, devices and threads.

    python bench/scale.py [PACKAGE] [PART ...]
    python bench/scale.py --write --peer PYTHON [PART ...]

PACKAGE is `weft` or a package with JAX's API; the parts are the names of `PARTS`, all by default.
Prints a table per part: the cost of one unit (an equation, a leaf, a byte ...) at each size, as
CPU time of the process, the least of several calls. A straight line in size is a row of equal
numbers. Each part runs in a process of its own, since sizes of one part must not disturb another.
`--write` puts the tables of weft and of JAX, as the interpreter PYTHON has it, into docs/scale.md;
there the reasons for rows that are not straight are written by hand.
"""

import argparse
import gc
import importlib
import math
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parent.parent / "docs" / "scale.md"
MIN_SLOPE = 3  # the cost of a unit at the largest size, over the least cost, that is not straight
PARTS = {}


class Part(NamedTuple):
    """A function that gives {what: seconds} at a size, and the sizes.

    JAX is measured at sizes of up to `peer_most`, as more would take minutes.
    """

    function: object
    unit: str
    sizes: list
    peer_most: float
    variables: dict


def part(name, unit, sizes, peer_most=math.inf, **variables):
    """Register a function that gives {what: seconds} at a size, with the unit that is counted."""

    def register(function):
        PARTS[name] = Part(function, unit, sizes, peer_most, variables)
        return function

    return register


def least(function, prepare=tuple, calls=3, budget=4.0):
    """The least CPU seconds of several calls, fewer if they take long; the first one counts too.

    `prepare` returns the arguments of each call, and is not timed.
    """
    found, started = [], time.perf_counter()
    for _ in range(calls):
        args = prepare()
        gc.collect()
        before = time.process_time()
        function(*args)
        found.append(time.process_time() - before)
        if time.perf_counter() - started > budget:
            break
    return min(found)


@part("equations", "equation", [100, 1_000, 10_000, 100_000], peer_most=10_000)
def equations(jax, jnp, count):
    """Straight programs of `count` equations; XLA compiles up to 1,000 of them."""

    def make():
        def chain(x):
            for _ in range(count // 2):
                x = jnp.sin(x) * x
            return x

        return chain

    x = jnp.ones(8)
    traced = jax.jit(make()).trace(x)
    found = {
        "trace": least(lambda: jax.jit(make()).trace(x)),
        # a program that was lowered before may be looked up
        "lower": least(lambda t: t.lower(), lambda: (jax.jit(make()).trace(x),)),
        "trace of the gradient": least(
            lambda: jax.jit(jax.grad(lambda x: make()(x).sum())).trace(x), calls=2
        ),
        "trace of vmap": least(lambda: jax.jit(jax.vmap(make())).trace(x), calls=2),
        "str of the jaxpr": least(lambda: str(traced.jaxpr), calls=2),
    }
    if count <= 1_000:
        lowered = traced.lower()
        found["compile"] = least(lambda: lowered.compile(), calls=1)
    return found


@part("loop carries", "carry", [10, 100, 1_000], peer_most=100)
def carries(jax, jnp, count):
    """A scan that carries `count` scalars."""

    def make():
        def step(carry, _):
            return [jnp.sin(c) + d for c, d in zip(carry, carry[1:] + carry[:1], strict=True)], None

        return lambda carry: jax.lax.scan(step, carry, None, length=100)[0]

    carry = [jnp.float32(i) for i in range(count)]
    lowered = jax.jit(make()).trace(carry).lower()
    compiled = jax.jit(make())
    compiled(carry)
    return {
        "trace": least(lambda: jax.jit(make()).trace(carry)),
        "lower": least(lambda t: t.lower(), lambda: (jax.jit(make()).trace(carry),)),
        "compile": least(lambda: lowered.compile(), calls=1),
        "call": least(lambda: jax.block_until_ready(compiled(carry)), calls=20),
    }


@part("leaves", "leaf", [10, 100, 1_000, 10_000, 100_000, 1_000_000], peer_most=100_000)
def leaves(jax, jnp, count):
    """Trees of `count` leaves; only those of up to 10,000 are arguments of programs."""
    del jnp
    tree = {f"part{i}": [float(j) for j in range(10)] for i in range(count // 10)}
    found = {
        "flatten": least(lambda: jax.tree.flatten(tree), calls=10),
        "tree.map": least(lambda: jax.tree.map(lambda x: x, tree), calls=5),
        "flatten with paths": least(lambda: jax.tree_util.tree_flatten_with_path(tree), calls=5),
    }
    if count <= 10_000:
        tree = jax.tree.map(lambda x: jax.numpy.float32(x), tree)
        pick = jax.jit(lambda tree: tree["part0"][0])
        pick(tree)
        found["call that uses one leaf"] = least(lambda: pick(tree), calls=20)
        shift = lambda tree: jax.tree.map(lambda x: x + 1, tree)
        found["trace"] = least(lambda: jax.jit(lambda tree: shift(tree)).trace(tree))
    if count <= 1_000:
        shifted = jax.jit(shift)
        found["first call"] = least(lambda: jax.block_until_ready(shifted(tree)), calls=1)
        found["call"] = least(lambda: jax.block_until_ready(shifted(tree)), calls=20)
    return found


@part("constants", "MB", [1, 10, 100, 1_000], peer_most=100)
def constants(jax, jnp, megabytes):
    """A program that holds an array of `megabytes` MB as a constant."""
    import numpy as np

    held = np.ones((megabytes, 250_000), np.float32)

    def make(held):
        return lambda x: (x + held[:, :1]).sum() + held[0, 0] + jnp.asarray(held).sum()

    found = {
        "trace": least(lambda: jax.jit(make(held)).trace(1.0)),
        "lower": least(lambda t: t.lower(), lambda: (jax.jit(make(held)).trace(1.0),)),
    }
    if megabytes <= 100 or jax.__name__ == "weft":
        function = jax.jit(make(held))
        found["first call"] = least(lambda: function(1.0).block_until_ready(), calls=1)
        found["call"] = least(lambda: function(1.0).block_until_ready(), calls=5)
    return found


@part("batches", "example", [1, 100, 10_000, 1_000_000])
def batches(jax, jnp, count):
    """`vmap` of a small network's gradient and of a solve over `count` examples."""
    weights = jnp.ones((8, 8)) / 8

    def loss(x):
        return (jnp.tanh(jnp.tanh(x @ weights) @ weights) ** 2).sum()

    def solve(x):
        return jnp.linalg.solve(jnp.eye(8) * 9 + jnp.outer(x, x), x)

    xs = jnp.ones((count, 8))
    gradient, solved = jax.jit(jax.vmap(jax.grad(loss))), jax.jit(jax.vmap(solve))
    return {
        "first call of the gradient": least(lambda: gradient(xs).block_until_ready(), calls=1),
        "gradient": least(lambda: gradient(xs).block_until_ready(), calls=5),
        "gradient, eager": least(lambda: jax.vmap(jax.grad(loss))(xs).block_until_ready(), calls=5),
        "solve": least(lambda: solved(xs).block_until_ready(), calls=5) if count <= 10**5 else None,
    }


FLAG = "--xla_force_host_platform_device_count=8"


@part("devices", "device", [1, 2, 4, 8], XLA_FLAGS=FLAG)
def devices(jax, jnp, count):
    """A step of data parallelism on a mesh of `count` devices of this machine."""
    mesh = jax.make_mesh((count,), ("data",), devices=jax.devices()[:count])
    spec = jax.sharding.PartitionSpec("data")
    xs = jax.device_put(jnp.ones((64, 32)), jax.sharding.NamedSharding(mesh, spec))
    w = jax.device_put(
        jnp.ones((32, 32)), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    )

    def make():
        return jax.grad(lambda w, xs: (jnp.tanh(xs @ w) ** 2).mean())

    step = jax.jit(make())
    traced = jax.jit(make()).trace(w, xs)
    lowered = traced.lower()
    return {
        "trace and lower": least(lambda: jax.jit(make()).trace(w, xs).lower()),
        "compile": least(lambda: lowered.compile(), calls=1),
        "first call": least(lambda: step(w, xs).block_until_ready(), calls=1),
        "call": least(lambda: step(w, xs).block_until_ready(), calls=50),
        "device_put": least(
            lambda: jax.device_put(jnp.ones((64, 32)), xs.sharding).block_until_ready(), calls=20
        ),
    }


@part("threads", "call", [1, 2, 4, 8, 16])
def threads(jax, jnp, count):
    """2,000 calls in all of a small program, and 192 traces, by `count` threads of Python."""
    x = jnp.ones(8)
    step = jax.jit(lambda x: jnp.sin(x) * x)
    step(x)

    def share(function, total):
        def work():
            for _ in range(total // count):
                function()

        workers = [threading.Thread(target=work) for _ in range(count)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def trace():
        jax.jit(lambda x: jnp.sin(jnp.cos(x) * x)).trace(x)

    calls = least(lambda: share(lambda: step(x), 2_000))
    return {
        "call": calls / 2_000 * count,
        "eager operation": least(lambda: share(lambda: x + x, 2_000)) / 2_000 * count,
        "trace": least(lambda: share(trace, 192)) / 192 * count,
    }


def run_size(package, name, size):
    """Print what one size of a part costs, a figure per line."""
    jax = importlib.import_module(package)
    function = PARTS[name].function
    for what, seconds in function(jax, importlib.import_module(package + ".numpy"), size).items():
        if seconds is not None:
            print(f"{what}\t{seconds / size}")


def measure(package, name, python=sys.executable, most=math.inf):
    """{what: {size: seconds of a unit}} of a part, each size in a process of its own."""
    found = {}
    for size in [size for size in PARTS[name].sizes if size <= most]:
        done = subprocess.run(
            [python, __file__, package, name, "--size", str(size)],
            env={**os.environ, "WEFT_ENABLE_COMPILATION_CACHE": "0", **PARTS[name].variables},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            print(f"{name} at {size}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        for line in done.stdout.splitlines():
            what, seconds = line.split("\t")
            found.setdefault(what, {})[size] = float(seconds)
    return found


def show(seconds):
    """A time with its unit, in three digits."""
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def write_table(name, packages):
    """The table of a part, from {package: what `measure` gives}; names of bent rows have a star."""
    sizes, lines = PARTS[name].sizes, []
    several = len(packages) > 1
    lines.append(f"| {name}: cost of one {PARTS[name].unit} |" + " |" * several)
    lines[0] += "".join(f" {size:,} |" for size in sizes)
    lines.append("|---|" + "---|" * several + "---:|" * len(sizes))
    for what in dict.fromkeys(what for costs in packages.values() for what in costs):
        for package, found in packages.items():
            costs = found.get(what, {})
            cells = [show(costs[size]) if size in costs else "" for size in sizes]
            star = " *" if costs and costs[max(costs)] > MIN_SLOPE * min(costs.values()) else ""
            begin = [what + star, package] if several else [what + star]
            lines.append("| " + " | ".join([*begin, *cells]) + " |")
    return lines


def write_page(names, peer):
    """Measure parts of weft and of JAX, and write their tables into the page, each at once."""
    for name in names:
        packages = {"weft": measure("weft", name)}
        packages["JAX"] = measure("jax", name, peer, PARTS[name].peer_most)
        table = "\n".join(write_table(name, packages))
        begin, end = f"<!-- {name} -->\n", "\n<!-- end -->"
        pattern = re.escape(begin) + ".*?" + re.escape(end)
        made = begin + table + end
        text = re.sub(pattern, lambda found, made=made: made, PAGE.read_text(), flags=re.DOTALL)
        PAGE.write_text(text)


def main():
    """Measure the parts that are asked for and print a table of each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="PACKAGE PART")
    parser.add_argument("--size", type=int, help="one size, in this process")
    parser.add_argument("--write", action="store_true", help="write docs/scale.md")
    parser.add_argument("--peer", default=sys.executable, help="the interpreter that has JAX")
    args = parser.parse_args()
    if args.write:
        return write_page(args.names or PARTS, args.peer)
    package, *names = args.names or ["weft"]
    if args.size is not None:
        return run_size(package, names[0], args.size)
    for name in names or PARTS:
        print("", *write_table(name, {package: measure(package, name)}), sep="\n", flush=True)


if __name__ == "__main__":
    main()
