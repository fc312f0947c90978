"""Programs that need much memory, and the error if one runs out of it."""

import traceback
import types

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import jit, lax
from weft.core.aval import ShapedArray
from weft.errors import is_own_file
from weft.xla.memory import describe_memory, largest_values, much_memory, needs_much_memory

HUGE = 1 << 22  # HUGE * HUGE float32 are 64 TiB, more than a machine has


def test_a_lack_of_memory_names_the_largest_arrays():
    avals = [ShapedArray((1 << 20, n), np.float32) for n in (1024, 2048, 512, 4096)]
    note = describe_memory(avals[:2], [])
    assert "results of 12 GiB, the largest of them f32[1048576,2048] (8 GiB), f32[" in note
    with pytest.raises(weft.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED") as raised:
        jnp.ones((1 << 24, 1 << 24), np.int8)
    assert "i8[16777216,16777216] (2.62e+05 GiB)" in raised.value.__notes__[0]


def nearest(x):
    gaps = x[:, None] - x[None, :]
    return jnp.sort(gaps, axis=1)[:, 0]


def nearest_in_a_loop(x):
    return lax.fori_loop(0, 3, lambda _, x: nearest(x), x)


@pytest.mark.parametrize("fun", [nearest, nearest_in_a_loop])
def test_a_lack_of_memory_within_a_program_names_the_lines(fun):
    """The results are small, so the error would otherwise be raised where they are read."""
    run, x = jit(fun), jnp.ones(HUGE)
    for _ in range(2):  # the first call, and a call of the kept program
        with pytest.raises(weft.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED") as raised:
            run(x)
        (note,) = raised.value.__notes__
        line = nearest.__code__.co_firstlineno + 1
        made = f"made by `x[:, None] - x[None, :]` at {__file__.rsplit('/', 1)[1]}:{line}"
        assert f"f32[{HUGE},{HUGE}] (6.55e+04 GiB) {made}" in note
        assert note.count("GiB) made by") == 2  # small values are not named
        assert "Hint: smaller batches, lax.map" in note
        frames = traceback.extract_tb(raised.value.__traceback__)
        assert sum(is_own_file(f.filename) for f in frames) <= 4


def test_an_operation_outside_jit_names_no_line():
    """Its program may have been made for another line than the one that calls it now."""
    assert largest_values(weft.make_jaxpr(lambda x: jnp.outer(x, x))(jnp.ones(3)).jaxpr) == []


class Program:
    """A compiled program, with the number of bytes that XLA reports; None if it reports nothing."""

    def __init__(self, stored):
        self.stored, self.asked = stored, 0

    def get_compiled_memory_stats(self):
        self.asked += 1
        if self.stored is None:
            raise weft.errors.JaxRuntimeError("UNIMPLEMENTED")
        return types.SimpleNamespace(temp_size_in_bytes=self.stored)


@pytest.mark.parametrize(
    "fun, stored, asked, much",
    [
        (lambda x: jnp.ones((1 << 20, 1 << 20)), 0, 0, True),  # the result is large
        (lambda x: x * 2 + 1, 0, 0, False),
        (nearest, 1 << 42, 1, True),
        (nearest_in_a_loop, 1 << 42, 1, True),
        (nearest, 0, 1, False),  # fused
        (nearest, None, 1, False),
    ],
)
def test_a_program_that_stores_much_blocks(fun, stored, asked, much):
    jaxpr = weft.make_jaxpr(fun)(weft.ShapeDtypeStruct((1 << 20,), jnp.float32)).jaxpr
    program = Program(stored)
    assert much_memory() < 1 << 41  # an eighth of 16 TiB
    assert needs_much_memory(program, jaxpr, jaxpr.out_avals) == much
    assert program.asked == asked
