"""correlation: Pearson's correlations of the columns of a table of data.

A standard deviation of at most 0.1 counts as 1, so that no column is divided by zero.
"""

sizes = {"small": (100, 80), "medium": (600, 500), "large": (1400, 1200)}


def make(size, rng):
    n, m = sizes[size]
    data = rng.rand(n, m)
    data[:, ::7] *= 0.01
    return (data,)


def program(xp, data):
    centred = data - data.mean(0)
    deviation = xp.sqrt((centred**2).mean(0))
    deviation = xp.where(deviation <= 0.1, 1.0, deviation)
    scaled = centred / (deviation * data.shape[0] ** 0.5)
    eye = xp.eye(data.shape[1], dtype=data.dtype)
    return xp.where(eye > 0, 1.0, scaled.T @ scaled)


def torch_form(torch, data):
    return program(torch, data)
