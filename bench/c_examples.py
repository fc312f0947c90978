"""Programs of the examples by XLA and by C, on one core: `python bench/c_examples.py [NAME ...]`.

Prints a table: an answer, a step of training, or the value and gradient, of each; sizes of the C
program; the least CPU time of many calls in turn, and the CPU time of compilation. XLA's thread
pool has one thread, because the process is kept on one core.
"""

import os
import sys
import time

os.environ["WEFT_CACHE_DIR"] = "off"
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads of one core wait for each other

import ctypes
import pathlib

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "examples"))
import digits
import gp
import hmc
import logistic
import maml
import ode_fit
import vae

import weft
import weft.numpy as jnp
from weft import random

weft.config.update("enable_x64", False)  # which ode_fit has turned on

ROUNDS = 12
MIN_CPU = 0.02  # seconds of a round
FLAGS = ("-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")


def count_cpu():
    """Seconds of this process and of the compilers that it has run."""
    return sum(os.times()[:4])


def make_programs():
    """The programs, by name: a function of arrays, and its arguments."""
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float32)
    params = digits.init_params(rng)
    zeros = weft.tree.map(np.zeros_like, params)
    images, labels = rng.uniform(size=(64, 64)).astype(np.float32), np.arange(64) % 10
    targets = rng.uniform(size=400) < 0.5
    labelled = targets.astype(np.float32)
    key, *keys = random.split(random.key(0), 5)
    nets = vae.encoder_init(keys[0], (64,))[1], vae.decoder_init(keys[1], (2,))[1]
    counts = rng.integers(0, 17, size=(64, 64)).astype(np.float32)
    tasks, _ = weft.vmap(lambda k: maml.draw_task(k, 20))(random.split(keys[2], 25))
    density = lambda x, features, labels: hmc.logistic_density(features, labels)(x)
    grid = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), -1).reshape(64, 2).astype("f")

    def transition(key, position, features, labels):
        log_density = lambda x: density(x, features, labels)
        return hmc.transition(log_density, 16, key, position, 0.02)

    def vae_step(nets, key, counts):
        loss = lambda nets: -vae.mean_over_images(vae.elbo, nets, key, counts)
        value, grads = weft.value_and_grad(loss)(nets)
        return weft.tree.map(lambda p, g: p - 1e-3 * g, nets, grads), value

    def likelihood(log_params, x, y):
        return weft.value_and_grad(lambda p: gp.log_likelihood(0, p, x, y))(log_params)

    mode = np.log(np.array([0.55, 0.028, 0.80, 0.024, 34.0, 5.9, 0.25, 0.25], np.float32))
    posterior = lambda p, times, pelts: weft.value_and_grad(ode_fit.log_posterior)(p, times, pelts)
    times = (ode_fit.YEARS - ode_fit.YEARS[0]).astype(np.float32)
    return {
        "digits, an answer": (digits.log_probabilities, (params, images[0])),
        "digits, a step": (digits.train_step, ((params, zeros, zeros, 0), images, labels)),
        "logistic, a step": (logistic.step, ((draw(30), 0.0), draw(400, 30), targets, 1.0)),
        "vae, a step": (vae_step, (nets, key, counts)),
        "gp, value and gradient": (likelihood, (draw(4), grid, draw(64))),
        "hmc, a transition": (transition, (key, draw(31), draw(400, 30), labelled)),
        "maml, value and gradient": (weft.value_and_grad(maml.meta_loss),
                                     (maml.init_params(keys[3]), tasks)),
        "ode_fit, value and gradient": (posterior, (mode, times, ode_fit.PELTS.astype("f"))),
    }  # fmt: skip


def time_in_turn(calls):
    """The least CPU microseconds of a call, of each of some functions."""
    least = {}
    for name, call in calls.items():
        start, count = time.process_time(), 0
        while time.process_time() - start < MIN_CPU:
            call()
            count += 1
        least[name] = count, np.inf
    for _ in range(ROUNDS):
        for name, call in calls.items():
            count, before = least[name]
            start = time.process_time()
            for _ in range(count):
                call()
            least[name] = count, min(before, (time.process_time() - start) / count * 1e6)
    return {name: us for name, (_, us) in least.items()}


def as_words(x):
    """An argument as an array of numbers; keys are made of such."""
    is_key = isinstance(x, weft.Array) and jnp.issubdtype(x.dtype, weft.dtypes.prng_key)
    return np.asarray(random.key_data(x) if is_key else x)


def prepare_c(program, built, args):
    """The results, and a call of the function in C on arrays that are there."""
    parameters = program._source.parameters
    leaves = [
        np.ascontiguousarray(as_words(x), p.aval.dtype)
        for x, p in zip(weft.tree.leaves(args), parameters, strict=True)
    ]
    given = [
        x.item() if p.by_value else ctypes.c_void_p(x.ctypes.data)
        for x, p in zip(leaves, parameters, strict=True)
    ]
    outs = [np.empty(r.aval.shape, r.aval.dtype) for r in program._source.results]
    work = np.empty(program.report().workspace_bytes + 64, np.uint8)
    start = work.ctypes.data + -work.ctypes.data % 64
    pointers = [ctypes.c_void_p(y.ctypes.data) for y in outs]
    held = leaves, outs, work
    return outs, lambda held=held: built._call(*given, *pointers, start)


def compare(name, fun, args):
    """Print the row of a program."""
    jitted = weft.jit(lambda *xs: fun(*xs))
    args = weft.tree.map(lambda x: jnp.asarray(x) if isinstance(x, np.ndarray) else x, args)
    before = count_cpu()
    want = weft.block_until_ready(jitted(*args))
    by_xla = count_cpu() - before
    before = count_cpu()
    program = weft.export.to_c(fun, name="program")(*args)
    built = program.build(flags=FLAGS)
    by_c = count_cpu() - before
    outs, call = prepare_c(program, built, args)
    call()
    for a, b in zip(outs, map(np.asarray, weft.tree.leaves(want)), strict=True):
        np.testing.assert_allclose(a, b, 2e-2, 1e-3 * max(1e-3, np.abs(b).max()))
    _, fast = prepare_c(program, program.build(flags=[*FLAGS, "-ffast-math"]), args)
    by_jit = lambda: weft.block_until_ready(jitted(*args))
    us = time_in_turn({"C": call, "fast": fast, "XLA": by_jit})
    report, library = program.report(), built.library.stat().st_size
    sizes = [report.source_bytes, library, report.workspace_bytes]
    shown = [f"{size / 1e3:.0f}" for size in sizes]
    shown += [f"{us[way]:.1f}" for way in ("C", "fast", "XLA")]
    shown += [f"{us[way] / us['XLA']:.2f}" for way in ("C", "fast")]
    print(f"| {name} | {' | '.join([*shown, f'{by_c:.1f}', f'{by_xla:.1f}'])} |", flush=True)


def main():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    titles = "source (kB),library (kB),workspace (kB),C (us),-ffast-math (us),XLA (us),C / XLA"
    titles += ",-ffast-math / XLA,compile C (s),compile XLA (s)"
    print(f"| program | {titles.replace(',', ' | ')} |\n|{'---|' * 11}")
    for name, (fun, args) in make_programs().items():
        if len(sys.argv) < 2 or any(word in name for word in sys.argv[1:]):
            compare(name, fun, args)


if __name__ == "__main__":
    main()
