"""Split a transformer and its batches over a mesh of devices, and count what they say.

Two of the four devices share every batch's halves, and two of them every layer (Shoeybi et al.
2019, Megatron-LM): its heads and hidden units are split, so that each layer adds up activations
twice on the way forward and twice on the way back. The step is written once and run three ways: on
one device; by `jit`, which is told how arrays lie and plans the rest; by `shard_map`, where every
sum is a `psum` of ours. The bar: losses and parameters as on one device, step by step, and no more
collectives in the compiled programs than a careful engineer would write. With `--processes 2` the
devices are those of two processes, started here and joined by `weft.distributed`.

usage: python examples/tensor_parallel.py [--processes 1] [--steps 100] [--width 64] [--layers 2]
       [--heads 4] [--context 64] [--batch 16] [--rate 0.005] [--seed 0] [--out examples/out]
"""

import math
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter

import numpy as np
from common import BLUE, GREEN, GREY, ORANGE, arguments, axes, progress, save, verdict
from transformer import load_text, rms_norm, rotated

import weft
import weft.numpy as jnp
from weft import NamedSharding, P, device_put, jit, lax, nn, random, shard_map, value_and_grad
from weft.sharding import AxisType
from weft.tree_util import tree_leaves, tree_map

MESH = {"data": 2, "model": 2}
DECAY_MEAN, DECAY_SQUARE, EPSILON = 0.9, 0.98, 1e-6
ONE = "one device"
CLOSE = 1e-4  # how far losses may be from those of one device
KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"

# How every parameter lies: what is not named is whole on each device.
LAYER_SPECS = {
    "norms": P(),
    "qkv": P(None, None, "model"),  # by heads
    "out": P("model"),
    "up": P(None, "model"),  # by hidden units
    "down": P("model"),
}


def init_params(key, alphabet_size, args):
    """The characters' features, and a list of layers."""
    normal = lambda shape, fan_in: random.normal(next(keys), shape) * fan_in**-0.5
    keys = iter(random.split(key, 1 + 4 * args.layers))
    width, heads, deep = args.width, args.heads, 2 * args.layers
    return {
        "characters": normal((alphabet_size, width), width),
        "layers": [
            {
                "norms": jnp.ones((2, width)),
                "qkv": normal((3, width, heads, width // heads), width),
                "out": normal((heads, width // heads, width), width * deep),
                "up": normal((width, 4 * width), width),
                "down": normal((4 * width, width), 4 * width * deep),
            }
            for _ in range(args.layers)
        ],
        "norm": jnp.ones(width),
    }


def specs_of(params):
    """A spec for each parameter."""
    return {"characters": P(), "layers": [LAYER_SPECS for _ in params["layers"]], "norm": P()}


def layer(params, x, joined):
    """Attention to earlier positions, then two dense layers; x is (batch, position, feature).

    `joined` makes a whole of what devices have each computed from their heads or hidden units.
    """
    h = rms_norm(params["norms"][0], x)
    q, k, v = jnp.einsum("btw,cwhf->cbthf", h, params["qkv"])
    seen = nn.dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
    x = x + joined(jnp.einsum("bthf,hfw->btw", seen, params["out"]))
    hidden = nn.gelu(rms_norm(params["norms"][1], x) @ params["up"])
    return x + joined(hidden @ params["down"])


def loss(params, windows, joined):
    """Bits to say each character of `windows` (batch, position) but the first, on average."""
    x = params["characters"][windows[:, :-1]]
    for weights in params["layers"]:
        x = layer(weights, x, joined)
    log_p = nn.log_softmax(rms_norm(params["norm"], x) @ params["characters"].T)
    right = jnp.take_along_axis(log_p, windows[:, 1:, None], axis=-1)
    return -jnp.mean(right) / jnp.log(2)


def adam(state, grads, rate):
    """One step (Kingma & Ba 2015, algorithm 1): each number by itself, on any device."""
    params, mean, square, step = state
    step = step + 1
    mean = tree_map(lambda m, g: DECAY_MEAN * m + (1 - DECAY_MEAN) * g, mean, grads)
    square = tree_map(lambda s, g: DECAY_SQUARE * s + (1 - DECAY_SQUARE) * g * g, square, grads)
    rate = rate * jnp.sqrt(1 - DECAY_SQUARE**step) / (1 - DECAY_MEAN**step)
    move = lambda p, m, s: p - rate * m / (jnp.sqrt(s) + EPSILON)
    return tree_map(move, params, mean, square), mean, square, step


# --- three ways to run it -------------------------------------------------------------------------


def on_one_device(rate):
    """Nothing to join."""

    def step(state, windows):
        value, grads = value_and_grad(loss)(state[0], windows, lambda x: x)
        return adam(state, grads, rate), value

    return jit(step, donate_argnums=0)


def by_jit(rate, mesh, specs):
    """The compiler gets the layouts of arguments, results and sums, and finds the communication."""
    lying = lambda spec: NamedSharding(mesh, spec)
    whole = lambda x: lax.with_sharding_constraint(x, lying(P("data")))

    def step(state, windows):
        value, grads = value_and_grad(loss)(state[0], windows, whole)
        return adam(state, grads, rate), value

    state = tree_map(lying, specs)
    return jit(
        step,
        in_shardings=(state, lying(P("data"))),
        out_shardings=(state, lying(P())),
        donate_argnums=0,
    )


def by_shard_map(rate, mesh, specs):
    """Each device's own program: it sees its part of everything, and adds up with the others.

    `pcast` says that from there on each half of the batch has its own gradients; what undoes it on
    the way back is a sum over "data", one for each parameter.
    """
    summed = lambda x: lax.psum(x, "model")

    def mean_loss(params, windows):
        own = tree_map(lambda p: lax.pcast(p, "data", to="varying"), params)
        return lax.pmean(loss(own, windows, summed), "data")

    def step(state, windows):
        value, grads = value_and_grad(mean_loss)(state[0], windows)
        return adam(state, grads, rate), value

    step = shard_map(step, mesh=mesh, in_specs=(specs, P("data")), out_specs=(specs, P()))
    return jit(step, donate_argnums=0)


def collectives(compiled):
    """Count the collectives of each kind in a compiled program, and the bytes they move."""
    counts, sent = Counter(), 0
    for types, kind in re.findall(rf"= (.*?) ({KINDS})(?:-start)?\(", compiled.as_text()):
        counts[kind] += 1
        for size in re.findall(r"f32\[([\d,]*)\]", types):
            sent += 4 * math.prod(int(n) for n in size.split(",") if n)
    return counts, sent


def careful(params, specs, args):
    """The same for what one would write by hand.

    Four sums of activations for each layer, and one of all gradients and the loss.
    """
    activations = args.batch // MESH["data"] * args.context * args.width
    own = sum(
        p.size // math.prod(MESH[name] for name in spec if name)
        for p, spec in zip(tree_leaves(params), tree_leaves(specs), strict=True)
    )
    sums = 4 * args.layers
    return Counter({"all-reduce": sums + 1}), 4 * (sums * activations + own + 1)


# --- training -------------------------------------------------------------------------------------


def size(params):
    """Return the number of numbers."""
    return sum(p.size for p in tree_leaves(params))


def first_state(key, alphabet_size, args):
    """Parameters, the two means of Adam, and the number of steps done."""
    params = init_params(key, alphabet_size, args)
    mean, square = (tree_map(jnp.zeros_like, params) for _ in range(2))  # donated: not one twice
    return params, mean, square, jnp.int32(0)


def compiled(steps, states, windows):
    """Each way's program."""
    programs = {}
    for name, step in steps.items():
        start = time.perf_counter()
        lowered = step.lower(states[name], windows)
        traced = time.perf_counter() - start
        programs[name] = lowered.compile()
        total = time.perf_counter() - start
        print(f"{name}: traced in {1e3 * traced:.0f} ms, compiled in {total - traced:.1f} s")
    return programs


def laid(tree, mesh, specs):
    """The numbers, each process's part of them on its devices."""
    return tree_map(
        lambda x, spec: device_put(np.asarray(x), NamedSharding(mesh, spec)), tree, specs
    )


def distance(tree, whole):
    """The greatest difference between this process's parts of a tree and that of one device."""
    return max(
        np.abs(np.asarray(part.data) - np.asarray(wanted)[part.index]).max()
        for x, wanted in zip(tree_leaves(tree), tree_leaves(whole), strict=True)
        for part in x.addressable_shards
    )


def train(key, programs, states, text, args, mesh):
    """Loss of each way by step, and how far its parameters are from those of the first way."""
    starts = np.asarray(
        random.randint(key, (args.steps, args.batch, 1), 0, len(text) - args.context)
    )
    losses, apart = [], []
    bar = progress(args.steps)
    for i in bar:
        windows = text[starts[i] + np.arange(args.context + 1)]
        spread = laid(windows, mesh, P("data"))
        values = {}
        for name, program in programs.items():
            given = windows if name == ONE else spread
            states[name], values[name] = program(states[name], given)
        losses.append([float(value) for value in values.values()])
        apart.append([distance(states[name][0], states[ONE][0]) for name in list(states)[1:]])
        bar.set_postfix(bits=f"{losses[-1][0]:.2f}", off=f"{max(apart[-1]):.1e}")
    return np.array(losses), np.array(apart)


def draw(names, losses, apart, path):
    """The losses over each other, and what separates them from one device."""
    figure, (left, right) = axes(1, 2, size=(10, 3.8))
    steps = np.arange(1, len(losses) + 1)
    looks = ((GREY, 5, "-"), (ORANGE, 2.5, "-"), (BLUE, 1.2, "--"))
    for name, values, (color, width, style) in zip(names, losses.T, looks, strict=True):
        left.plot(steps, values, color=color, linewidth=width, linestyle=style, label=name)
    left.set(xlabel="step", ylabel="bits per character", title="Loss of each batch")
    left.legend(frameon=False)
    for name, values, moved, (color, _, style) in zip(
        names[1:], losses.T[1:], apart.T, looks[1:], strict=True
    ):
        off = np.maximum(np.abs(values - losses[:, 0]), np.finfo(np.float32).eps)
        right.plot(
            steps, moved, color=color, linewidth=2, label=f"{name}: parameters", linestyle=style
        )
        right.plot(steps, off, color=color, linewidth=0.9, alpha=0.7, label=f"{name}: loss")
    right.axhline(CLOSE, color=GREEN, linewidth=1)
    right.text(1, CLOSE, "bar for the loss", color=GREEN, fontsize=9, va="bottom", ha="right",
               transform=right.get_yaxis_transform())  # fmt: skip
    right.set(xlabel="step", ylabel="greatest difference", yscale="log",
              title="4 devices against one")  # fmt: skip
    right.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0, 0.93))
    save(figure, path)


def check(args):
    """Stop where the mesh does not divide the sizes."""
    if math.prod(MESH.values()) % args.processes:
        sys.exit(
            f"--processes must divide the {math.prod(MESH.values())} devices; got {args.processes}"
        )
    for name, over in (("batch", "data"), ("heads", "model")):
        if getattr(args, name) % MESH[over]:
            sys.exit(f"--{name} must be a multiple of {MESH[over]}; got {getattr(args, name)}")
    if args.width % (2 * args.heads):
        sys.exit(f"--width must be a multiple of twice --heads; got {args.width}, {args.heads}")


def report(programs, wanted):
    """Print what each program says beside what one would write; whether none says more often."""
    fine = True
    for name, program in {**programs, "a careful engineer": None}.items():
        if name == ONE:
            continue
        counts, sent = wanted if program is None else collectives(program)
        listed = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())) or "none"
        print(f"collectives of a step, {name}: {listed}, {sent / 1e3:.1f} kB a device")
        fine = fine and counts <= wanted[0]
    return fine


def in_processes(count):
    """Run this program as several processes, print the first's output; the worst exit status."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    running = []
    for i in range(count):
        names = {"COORDINATOR_ADDRESS": address, "NUM_PROCESSES": count, "PROCESS_ID": i}
        who = {f"WEFT_{name}": str(value) for name, value in names.items()}
        quiet = {"TQDM_DISABLE": "1"} if i else {}
        out = subprocess.DEVNULL if i else None
        command = [sys.executable, *sys.argv]
        running.append(subprocess.Popen(command, env={**os.environ, **who, **quiet}, stdout=out))
    return max(abs(process.wait()) for process in running)


def main():
    """Compile the three, count, train them side by side, draw; 0 when they agree."""
    args = arguments(
        __doc__,
        processes=1,
        steps=100,
        width=64,
        layers=2,
        heads=4,
        context=64,
        batch=16,
        rate=0.005,
    )
    check(args)
    if args.processes > 1:
        if "WEFT_PROCESS_ID" not in os.environ:
            return in_processes(args.processes)
        weft.distributed.initialize()
    weft.config.update("num_cpu_devices", math.prod(MESH.values()) // args.processes)
    mesh = weft.make_mesh(tuple(MESH.values()), tuple(MESH), axis_types=(AxisType.Auto,) * 2)
    text, alphabet = load_text()
    key_params, key_steps = random.split(random.key(args.seed))
    first = first_state(key_params, len(alphabet), args)
    specs = specs_of(first[0])
    all_specs = (specs, specs, specs, P())
    print(f"{mesh} in {weft.process_count()} process(es), {size(first[0])} parameters")

    steps = {
        ONE: on_one_device(args.rate),
        "jit": by_jit(args.rate, mesh, all_specs),
        "shard_map": by_shard_map(args.rate, mesh, all_specs),
    }
    states = {name: first if name == ONE else laid(first, mesh, all_specs) for name in steps}
    programs = compiled(steps, states, np.zeros((args.batch, args.context + 1), np.int32))
    few = report(programs, careful(first[0], specs, args))

    start = time.perf_counter()
    losses, apart = train(key_steps, programs, states, text, args, mesh)
    print(
        f"trained three times in {time.perf_counter() - start:.1f} s, to {losses[-1, 0]:.3f} bits"
    )
    off = np.abs(losses[:, 1:] - losses[:, :1]).max(axis=0)
    for name, loss_off, moved in zip(list(steps)[1:], off, apart.max(axis=0), strict=True):
        print(f"{name}: loss within {loss_off:.1e} of one device, parameters within {moved:.1e}")
    if weft.process_index() == 0:
        draw(list(steps), losses, apart, args.out / "tensor_parallel.png")
    bar = f"losses within {CLOSE:g} of one device, collectives as written by hand"
    return verdict("tensor_parallel", few and off.max() < CLOSE, bar)


if __name__ == "__main__":
    sys.exit(main())
