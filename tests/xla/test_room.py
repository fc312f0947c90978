"""Room for executables: caches are emptied before the process has too many memory maps."""

import sys

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.xla import room
from weft.xla.room import ROOM, Room

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limit")


@pytest.fixture
def few_maps(monkeypatch):
    """A limit that a hundred executables reach, and the numbers of maps that were counted."""
    weft.clear_caches()
    allowed, counted = room.count_maps() + 600, []

    def count_maps(count=room.count_maps):
        counted.append(count())
        return counted[-1]

    monkeypatch.setattr(room, "MAX_MAPS_OF_ONE", 16)
    monkeypatch.setattr(room, "count_allowed", lambda: allowed)
    monkeypatch.setattr(room, "count_maps", count_maps)
    monkeypatch.setattr(ROOM, "next_look", 0)
    monkeypatch.setattr(ROOM, "kept", 0)
    yield allowed, counted
    monkeypatch.undo()
    ROOM.next_look = 0


def test_many_programs_have_room(few_maps):
    """Eager operations, their derivatives and jitted functions, each called again at the end."""
    allowed, counted = few_maps
    double = weft.jit(lambda x: x * 2)
    slope = weft.grad(lambda x: jnp.sin(x).sum())
    sizes = [*range(1, 90), *range(1, 20)]
    for n in sizes:
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(double(x), 2 * x)
        np.testing.assert_allclose(slope(x), np.cos(x), rtol=1e-5)
    assert max(counted) < allowed
    assert sum(a > b for a, b in zip(counted, counted[1:], strict=False)) > 1  # emptied


def test_programs_that_are_held_are_told_of(few_maps):
    held, x = [], jnp.ones(3)
    with pytest.raises(MemoryError, match=r"compile: a process must have at most \d+ memory maps"):
        for i in range(400):
            held.append(weft.jit(lambda x, i=i: jnp.sin(x) + i).lower(x).compile())
    assert len(held) > 50
    np.testing.assert_allclose(held[7](x), np.sin(np.ones(3)) + 7, rtol=1e-6)
    held.clear()
    ROOM.next_look = 0
    assert weft.jit(lambda x: x - 1)(x).tolist() == [0, 0, 0]


def test_systems_without_a_limit(monkeypatch):
    monkeypatch.setattr(room, "LIMIT", "/no/such/file")
    monkeypatch.setattr(room, "MAPS", "/no/such/file")
    made = Room()
    made.make()
    made.make()
    assert made.next_look == float("inf")
