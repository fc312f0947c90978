"""The estimate of memory: programs for which the arrays that are alive are known."""

from __future__ import annotations

import numpy as np
import pytest

import weft.numpy as jnp
from tests.footprint.test_chunks import flatten_program
from weft import lax
from weft.footprint.estimate import Measure

MATRIX = 4 * 64 * 64
X = np.zeros((64, 64), np.float32)


def chain(x):
    return jnp.tanh(jnp.tanh(x @ x) @ x) @ x


def fork(x):
    a, b = x @ x, x @ x.T
    return (a @ b) @ (b @ a)


def loop(x):
    return lax.scan(lambda c, _: ((c @ x) @ x, None), x, None, length=3)[0]


# A function of one matrix, and the matrices in memory at once: operands, results and in between.
KNOWN = {
    "elementwise": (lambda x: jnp.exp(x) * 2 + x, 2),
    "products": (lambda x: (x @ x) @ x, 3),
    "chain": (chain, 3),
    "fork": (fork, 5),
    "fused sum": (lambda x: (x * x + 1).sum(1), 1),
    "sum over rows": (lambda x: (x * x + 1).sum(0), 2),
    "loop": (loop, 3),
    "stack": (lambda x: lax.map(lambda r: r * 2, x), 2),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known(name):
    fun, count = KNOWN[name]
    jaxpr, _ = flatten_program(fun, [X])
    found = Measure().estimate(jaxpr)
    assert round(found.bytes / MATRIX) == count
    assert found.live[0][0].aval.nbytes == MATRIX


def test_a_donated_argument_is_written_over():
    jaxpr, _ = flatten_program(lambda x: x * 2 + 1, [X])
    assert Measure().estimate(jaxpr).bytes == 2 * MATRIX
    assert Measure((0,)).estimate(jaxpr).bytes == MATRIX
