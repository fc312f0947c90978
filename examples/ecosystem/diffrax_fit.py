"""Solve an ODE with diffrax, and fit it to noisy data: python -m weft diffrax_fit.py."""

import sys

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optax

BAR = 0.02  # the error of each fitted number, as a part of its true value
TRUE = {"stiffness": 2.0, "damping": 0.3}
TIMES = jnp.linspace(0, 6, 40)


def push(t, state, rates):
    """The change of the place and speed of a mass on a spring."""
    place, speed = state
    return speed, -rates["stiffness"] * place - rates["damping"] * speed


def solve(rates):
    """The places at TIMES of a mass let go at 1."""
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(push),
        diffrax.Tsit5(),
        t0=0.0,
        t1=6.0,
        dt0=0.05,
        y0=(jnp.array(1.0), jnp.array(0.0)),
        args=rates,
        saveat=diffrax.SaveAt(ts=TIMES),
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-7),
    )
    return solution.ys[0]


def find_exact(stiffness, damping):
    """The solution as a formula."""
    times = np.asarray(TIMES, np.float64)
    speed = np.sqrt(stiffness - damping**2 / 4)
    wave = np.cos(speed * times) + damping / (2 * speed) * np.sin(speed * times)
    return np.exp(-damping * times / 2) * wave


def main(steps=200):
    exact = find_exact(**TRUE)
    error = abs(np.asarray(solve(TRUE)) - exact).max()
    print(f"greatest error of the solution {error:.1e} (bar 1e-4)")

    seen = exact + 0.01 * np.random.default_rng(0).normal(size=exact.shape)
    seen = jnp.asarray(seen, jnp.float32)
    rates = {"stiffness": jnp.array(1.0), "damping": jnp.array(0.1)}
    optimizer = optax.adam(0.05)
    state = optimizer.init(rates)

    @jax.jit
    def improve(rates, state):
        loss, grads = jax.value_and_grad(lambda r: ((solve(r) - seen) ** 2).mean())(rates)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(rates, updates), state, loss

    for step in range(steps):
        rates, state, loss = improve(rates, state)
        if step % 50 == 0:
            print(f"step {step}: loss {loss:.5f}")
    off = {name: abs(float(rates[name]) / TRUE[name] - 1) for name in TRUE}
    print(", ".join(f"{name} {float(rates[name]):.3f}" for name in TRUE), f"(bar {BAR:.0%})")
    return error < 1e-4 and max(off.values()) < BAR


if __name__ == "__main__":
    sys.exit(not main())
