"""Flow past a cylinder by the lattice Boltzmann method with nine speeds.

Source: Y. Qian, D. d'Humieres and P. Lallemand, Europhysics Letters 17 (1992).
"""

import numpy as np

sizes = {"small": (24, 40, 5), "medium": (100, 200, 30), "large": (300, 600, 60)}

DX = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
DY = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
WEIGHT = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
OPPOSITE = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
TAU = 0.6


def make(size, rng):
    ny, nx, steps = sizes[size]
    density = WEIGHT[:, None, None] * (1 + 3 * DX[:, None, None] * 0.1)
    flow = density * np.ones((9, ny, nx)) + 0.001 * rng.randn(9, ny, nx)
    y, x = np.mgrid[:ny, :nx]
    solid = (x - nx / 4) ** 2 + (y - ny / 2) ** 2 < (ny / 8) ** 2
    return flow.astype("f"), solid, steps


def advance(xp, flow, solid):
    moved = [xp.roll(flow[i], (int(DY[i]), int(DX[i])), (0, 1)) for i in range(9)]
    flow = xp.stack(moved)
    bounced = flow[OPPOSITE]
    density = flow.sum(0)
    ux = (flow[1] - flow[3] + flow[5] - flow[6] - flow[7] + flow[8]) / density
    uy = (flow[2] - flow[4] + flow[5] + flow[6] - flow[7] - flow[8]) / density
    square = 1.5 * (ux**2 + uy**2)
    rest = []
    for i in range(9):
        along = 3.0 * (float(DX[i]) * ux + float(DY[i]) * uy)
        rest.append(float(WEIGHT[i]) * density * (1 + along + along**2 / 2 - square))
    return xp.where(solid, bounced, flow - (flow - xp.stack(rest)) / TAU)


def numpy_form(flow, solid, steps):
    for _ in range(steps):
        flow = advance(np, flow, solid)
    return flow


def jax_form(jax, flow, solid, steps):
    return jax.lax.fori_loop(0, steps, lambda _, flow: advance(jax.numpy, flow, solid), flow)


def torch_form(torch, flow, solid, steps):
    for _ in range(steps):
        flow = advance(torch, flow, solid)
    return flow
