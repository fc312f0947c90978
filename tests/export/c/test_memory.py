"""The arena: buffers that are in use at the same time do not overlap; unused variables go."""

import numpy as np
import pytest

from tests.random_programs import draw_program
from weft import enable_x64, export
from weft import numpy as jnp
from weft.export.c.index import Index, index_number
from weft.export.c.kinds import KINDS
from weft.export.c.memory import Lives, drop_unread, drop_unused, plan_arena
from weft.export.c.nodes import Assign, Buffer, Call, For, Let, Load, Pointer, Role, Store

F32 = KINDS[np.dtype(np.float32)]


def make_buffer(name, size=32):
    return Buffer(name, F32, size, Role.WORK)


def write(buffer):
    return Store(buffer, Index(), "1.0f")


def read(buffer):
    return Let("t1", "float", "{0}", [Load(buffer, Index())])


def overlap(a, b):
    return a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes


def test_memory_is_shared_in_turn():
    a, b, c = map(make_buffer, "abc")
    arena = plan_arena([write(a), read(a), write(b), read(b), write(c), read(b), read(c)])
    assert a.offset == 0 and arena == (256, [])
    assert not overlap(b, c)


def test_places_follow_the_order_of_use_and_are_the_same_in_each_process():
    buffers = [make_buffer(f"b{k}") for k in range(12)]
    plan_arena([Call("f", [Pointer(b, Index()) for b in buffers])])
    offsets = [b.offset for b in buffers]
    assert offsets == sorted(offsets) and len({*offsets}) == 12


def test_what_is_used_before_a_loop_and_in_it_is_in_use_in_all_of_it():
    a, b = map(make_buffer, "ab")
    plan_arena([write(a), For("i1", index_number(3), [read(a), write(b), read(b)])])
    assert not overlap(a, b)


def test_what_a_loop_fills_is_in_use_in_all_of_it():
    a, b = map(make_buffer, "ab")
    plan_arena([For("i1", index_number(3), [write(a), read(a), write(b)]), read(b)])
    assert not overlap(a, b)


def test_what_is_used_in_one_iteration_shares_memory():
    a, b = map(make_buffer, "ab")
    plan_arena([For("i1", index_number(3), [write(a), read(a), write(b), read(b)])])
    assert a.offset == b.offset


def test_variables_that_nothing_reads_go():
    a = make_buffer("a")
    kept = Let("t2", "float", "1", [])
    unread = Let("t4", "float", "0", [], mutable=True)
    inner = [Let("t5", "float", "t2 + 1", []), Assign("t4", "t5")]
    block = [kept, read(a), For("i3", index_number(2), inner),
             unread, Store(a, Index(), "t2")]  # fmt: skip
    drop_unused(block)
    assert [type(s) for s in block] == [Let, Store]


def test_small_buffers_are_local_arrays():
    a, b, c = make_buffer("a", 16), make_buffer("b", 17), make_buffer("c", 2)
    call = Call("sort", [Pointer(c, Index())])
    arena = plan_arena([write(a), read(a), write(b), read(b), call])
    assert [x.role for x in (a, b, c)] == [Role.LOCAL, Role.WORK, Role.WORK]
    assert arena.fixed == 80  # c after b


def test_stores_that_nothing_reads_go():
    a, b = make_buffer("a"), make_buffer("b")
    first = Let("t1", "float", "{0}", [Load(a, Index())])
    block = [write(a), first, Store(b, Index(), "t1")]
    drop_unread(block)
    assert not block


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_have_arenas_that_fit(seed):
    program, given = draw_program(seed)
    with enable_x64(True):
        source = export.to_c(lambda *xs: program(jnp, *xs))(*given)
    assert 0 <= source.report().workspace_bytes < 100_000
    assert source.report().workspace_bytes % 16 == 0


def test_lives_of_a_loop():
    a = make_buffer("a")
    lives = Lives([write(a), For("i1", index_number(3), [read(a)])])
    assert (lives.first[a], lives.last[a]) == (1, 4)
