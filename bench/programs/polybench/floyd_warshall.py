"""floyd-warshall: the lengths of all shortest paths of a graph (Floyd, CACM 5, 1962)."""

import numpy as np

sizes = {"small": 60, "medium": 200, "large": 600}


def make(size, rng):
    n = sizes[size]
    lengths = rng.randint(1, 100, (n, n)).astype(np.int32)
    lengths[rng.rand(n, n) < 0.7] = 9999
    return (lengths,)


def numpy_form(path):
    for k in range(len(path)):
        path = np.minimum(path, path[:, k, None] + path[k])
    return path


def jax_form(jax, path):
    def step(k, path):
        return jax.numpy.minimum(path, path[:, k, None] + path[k])

    return jax.lax.fori_loop(0, len(path), step, path)


def torch_form(torch, path):
    for k in range(len(path)):
        path = torch.minimum(path, path[:, k, None] + path[k])
    return path


def loops(path):
    path = path.copy()
    n = len(path)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])
    return path
