"""A loop that gathers a number of each row, as beginners' examples of compilers have it.

result := A + sum over i of tanh(A[i, i]); each term is made and added by the loop.
"""

import numpy as np

sizes = {"small": 100, "medium": 1000, "large": 4000}


def make(size, rng):
    return (rng.rand(sizes[size], sizes[size]),)


def numpy_form(a):
    trace = 0.0
    for i in range(len(a)):
        trace += np.tanh(a[i, i])
    return a + trace


def jax_form(jax, a):
    def step(i, trace):
        return trace + jax.numpy.tanh(a[i, i])

    return a + jax.lax.fori_loop(0, len(a), step, 0.0)


loops = numpy_form
