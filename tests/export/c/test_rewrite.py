"""Copies of statements with other names, and what statements read and write."""

from weft.export.c.index import Index, index_number, index_term
from weft.export.c.kinds import KINDS
from weft.export.c.nodes import Assign, Buffer, Copy, For, Let, Load, Pointer, Role, Store
from weft.export.c.printer import print_block
from weft.export.c.rewrite import Effects, Renaming, copy_block, list_accesses

F32 = next(k for k in KINDS.values() if k.name == "f32")
A, B = (Buffer(name, F32, 12, Role.WORK) for name in "ab")
PLACE = index_term("i1", 0, 11)


def make_loop():
    return For(
        "i1",
        index_number(12),
        [
            Let("t2", "float", "{0}", [Load(A, PLACE)]),
            Let("t3", "float", "{0} + {1}", ["t9", "t2"]),
            Assign("t9", "t3"),
            Store(B, PLACE.add(index_number(1)), "t3"),
        ],
    )


def test_effects():
    loop = Effects(make_loop())
    assert loop.made == {"t2", "t3", "t9"}
    assert loop.read == {"t2", "t3", "t9", "i1"}
    assert (loop.loaded, loop.stored) == ({A}, {B})
    zero = Effects(Store(A, Index(), "0.0f"))
    assert loop.meets(zero) and zero.meets(loop)
    assert not zero.meets(Effects(Let("t7", "float", "{0}", [Load(B, Index())])))
    assert loop.meets(Effects(Let("t7", "float", "{0}", ["t9"])))
    copy = Effects(Copy(Pointer(A, Index()), Pointer(B, Index()), 8))
    assert (copy.stored, copy.loaded) == ({A}, {B})
    places = {A: [PLACE], B: [PLACE.add(index_number(1))]}
    assert list_accesses([make_loop()]) == places


def test_copies_have_other_names_and_indices():
    loop = make_loop()
    body = copy_block(loop.body)
    at = index_term("i5", 0, 3).scale(3)
    Renaming({"t2": "t12", "t9": "t19"}, {"i1": at}).change_block(body)
    assert print_block(body, 0) == [
        "const float t12 = a[3 * i5];",
        "const float t3 = t19 + t12;",
        "t19 = t3;",
        "b[3 * i5 + 1] = t3;",
    ]
    assert print_block(loop.body, 0)[0] == "const float t2 = a[i1];"
