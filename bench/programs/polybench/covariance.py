"""covariance: the covariance matrix of the columns of a table of data."""

sizes = {"small": (100, 80), "medium": (600, 500), "large": (1400, 1200)}


def make(size, rng):
    n, m = sizes[size]
    return (rng.rand(n, m),)


def program(xp, data):
    centred = data - data.mean(0)
    return centred.T @ centred / (data.shape[0] - 1)


def torch_form(torch, data):
    return program(torch, data)
