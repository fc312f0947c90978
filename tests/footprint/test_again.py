"""Values computed again in the program of a gradient: the same results, and fewer bytes kept."""

from __future__ import annotations

import numpy as np

import weft
import weft.numpy as jnp
from tests.footprint.test_chunks import check, flatten_program
from tests.footprint.test_limit import arrays, chaotic_loss
from weft import lax
from weft.footprint.again import list_recomputing
from weft.footprint.estimate import Measure


def test_a_recurrence_keeps_its_carry():
    args = arrays((16, 16), (16,))
    jaxpr, args = flatten_program(weft.grad(chaotic_loss, (0, 1)), args)
    before = Measure().estimate(jaxpr).bytes
    found = [*list_recomputing(jaxpr, before // 4, 0)]
    programs, kept, whole = zip(*found, strict=True)
    assert max(kept) < min(whole)
    assert min(Measure().estimate(p).bytes for p in programs) < 0.8 * before
    check([(jaxpr, programs[0])], [args], ["chaotic"])


def test_programs_that_keep_nothing():
    jaxpr, _ = flatten_program(lambda x: x + 1, [np.zeros(4, np.float32)])
    assert [*list_recomputing(jaxpr, 0, 0)] == []


def test_a_scan_reads_values_that_are_computed():
    def loss(w, x):
        rows = jnp.sin(x) * w[0]
        return jnp.sum(lax.scan(lambda h, r: (jnp.tanh(w @ h + r), None), jnp.tanh(x[0]), rows)[0])

    jaxpr, args = flatten_program(weft.grad(loss), arrays((8, 8), (12, 8)))
    found = [*list_recomputing(jaxpr, 1000, 1)]
    check([(jaxpr, found[0][0])], [args], ["scan"])
