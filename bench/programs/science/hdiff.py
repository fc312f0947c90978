"""Horizontal diffusion of a weather model with a flux limiter, on levels of a grid.

Source: the fourth-order diffusion of COSMO (G. Doms and M. Baldauf, Dynamics and Numerics, 2011).
"""

sizes = {"small": (20, 24, 8), "medium": (128, 128, 30), "large": (400, 400, 60)}


def make(size, rng):
    i, j, k = sizes[size]
    return rng.rand(i + 4, j + 4, k).astype("f"), rng.rand(i, j, k).astype("f")


def program(xp, field, coefficient):
    lap = 4.0 * field[1:-1, 1:-1] - (
        field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2]
    )
    step = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flux_i = xp.where(step * (field[2:-1, 2:-2] - field[1:-2, 2:-2]) > 0, 0, step)
    step = lap[1:-1, 1:] - lap[1:-1, :-1]
    flux_j = xp.where(step * (field[2:-2, 2:-1] - field[2:-2, 1:-2]) > 0, 0, step)
    change = flux_i[1:] - flux_i[:-1] + flux_j[:, 1:] - flux_j[:, :-1]
    return field[2:-2, 2:-2] - coefficient * change


def torch_form(torch, field, coefficient):
    return program(torch, field, coefficient)
