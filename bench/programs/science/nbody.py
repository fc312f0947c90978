"""Gravity among bodies, softened, by leapfrog.

Source: S. Aarseth, Gravitational N-Body Simulations (2003), sections 1.4 and 2.
"""

import numpy as np

sizes = {"small": (32, 10), "medium": (128, 30), "large": (600, 30)}

SOFTENING, DT = 0.1, 0.01


def make(size, rng):
    n, steps = sizes[size]
    mass = np.full((n, 1), 20.0 / n)
    return rng.randn(n, 3).astype("f"), rng.randn(n, 3).astype("f"), mass.astype("f"), steps


def pull(positions, mass):
    """The accelerations."""
    apart = positions[None] - positions[:, None]
    square = (apart**2).sum(-1) + SOFTENING**2
    return ((apart * square[..., None] ** -1.5) * mass).sum(1)


def numpy_form(positions, speeds, mass, steps):
    force = pull(positions, mass)
    for _ in range(steps):
        speeds = speeds + force * (DT / 2)
        positions = positions + speeds * DT
        force = pull(positions, mass)
        speeds = speeds + force * (DT / 2)
    return positions, speeds


def jax_form(jax, positions, speeds, mass, steps):
    def step(_, state):
        positions, speeds, force = state
        speeds = speeds + force * (DT / 2)
        positions = positions + speeds * DT
        force = pull(positions, mass)
        return positions, speeds + force * (DT / 2), force

    start = positions, speeds, pull(positions, mass)
    return jax.lax.fori_loop(0, steps, step, start)[:2]


def torch_form(torch, *inputs):
    return numpy_form(*inputs)


def loops(positions, speeds, mass, steps):
    positions, speeds = positions.copy(), speeds.copy()
    n = len(positions)
    force = np.zeros_like(positions)
    for step in range(steps + 1):
        if step:
            positions += speeds * np.float32(DT)
        for i in range(n):
            x = y = z = np.float32(0)
            for j in range(n):
                dx = positions[j, 0] - positions[i, 0]
                dy = positions[j, 1] - positions[i, 1]
                dz = positions[j, 2] - positions[i, 2]
                square = dx * dx + dy * dy + dz * dz + np.float32(SOFTENING**2)
                pulled = mass[j, 0] / (square * np.sqrt(square))
                x, y, z = x + dx * pulled, y + dy * pulled, z + dz * pulled
            force[i, 0], force[i, 1], force[i, 2] = x, y, z
        speeds += force * np.float32(DT if 0 < step < steps else DT / 2)
    return positions, speeds
