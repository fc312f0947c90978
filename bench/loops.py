"""The cost of loops: gradients of simulations of 1,000 steps, here and in JAX.

    python bench/loops.py weft
    path/to/python bench/loops.py jax       a Python that has JAX

Prints the least CPU time and the least wall time of a call, in microseconds. On a shared machine,
run the two by turns and take the least of each row.
"""

import importlib
import sys
import time

BATCHES, CALLS = 40, 10
STEPS = 1000


def make_programs(library):
    """Functions of a parameter and a state, with arguments for them, by name."""
    jnp, scan = library.numpy, library.lax.scan
    float32, exp, roll, stack = jnp.float32, jnp.exp, jnp.roll, jnp.stack

    def run(step, state):
        return scan(lambda state, _: (step(state), None), state, None, length=STEPS)[0]

    def fitzhugh_nagumo(params, state):
        """A neuron's voltage and recovery."""
        rate, current = params

        def step(state):
            v, w = state
            return v + 0.05 * (v - v**3 / 3 - w + current), w + 0.05 * rate * (v + 0.7 - 0.8 * w)

        return run(step, state)[0]

    def hodgkin_huxley(params, state):
        """A neuron's voltage and three gates: six exponentials a step."""
        current, sodium, potassium = params

        def step(state):
            v, m, h, n = state
            open_m = 0.1 * (v + 40) / (1 - exp(-(v + 40) / 10))
            open_h = 0.07 * exp(-(v + 65) / 20)
            open_n = 0.01 * (v + 55) / (1 - exp(-(v + 55) / 10))
            close_m, close_h = 4 * exp(-(v + 65) / 18), 1 / (1 + exp(-(v + 35) / 10))
            close_n = 0.125 * exp(-(v + 65) / 80)
            flow = sodium * m**3 * h * (v - 50) + potassium * n**4 * (v + 77) + 0.3 * (v + 54.4)
            return (
                v + 0.02 * (current - flow),
                m + 0.02 * (open_m * (1 - m) - close_m * m),
                h + 0.02 * (open_h * (1 - h) - close_h * h),
                n + 0.02 * (open_n * (1 - n) - close_n * n),
            )

        return run(step, state)[0]

    def lorenz_96(force, x):
        """Forty numbers, each coupled with three neighbours."""
        step = lambda x: x + 0.01 * ((roll(x, -1) - roll(x, 2)) * roll(x, 1) - x + force)
        return jnp.mean(run(step, x) ** 2)

    def network(weights, x):
        """Forty neurons of rates, each coupled with all."""
        return jnp.mean(run(lambda x: x + 0.01 * (jnp.tanh(weights @ x) - x), x) ** 2)

    numbers = lambda *values: tuple(map(float32, values))
    forty = jnp.arange(40, dtype=float32)
    weights = stack([jnp.cos(forty * i) for i in range(40)]) / 6
    return {
        "a neuron, 2 numbers": (fitzhugh_nagumo, numbers(0.08, 0.5), numbers(0.1, 0.2)),
        "a neuron, 4 numbers": (
            hodgkin_huxley, numbers(10, 120, 36), numbers(-65, 0.05, 0.6, 0.32),
        ),
        "40 numbers, neighbours": (lorenz_96, float32(8), forty / 40),
        "40 numbers, all pairs": (network, weights, jnp.sin(forty)),
    }  # fmt: skip


def measure(wait, call, args):
    """The least CPU and wall time of a call, in microseconds."""
    wait(call(*args))
    cpu = wall = float("inf")
    for _ in range(BATCHES):
        before = time.process_time_ns(), time.perf_counter_ns()
        for _ in range(CALLS):
            wait(call(*args))
        cpu = min(cpu, time.process_time_ns() - before[0])
        wall = min(wall, time.perf_counter_ns() - before[1])
    return cpu / CALLS / 1e3, wall / CALLS / 1e3


def main():
    library = importlib.import_module(sys.argv[1])
    importlib.import_module(f"{sys.argv[1]}.numpy")
    for name, (fun, *args) in make_programs(library).items():
        kinds = {"value": library.jit(fun), "gradient": library.jit(library.value_and_grad(fun))}
        for kind, call in kinds.items():
            cpu, wall = measure(library.block_until_ready, call, args)
            print(f"{sys.argv[1]:5}{name:24}{kind:9} CPU {cpu:7.0f} us  wall {wall:7.0f} us")


if __name__ == "__main__":
    main()
