"""Elements that operations read, by their `element` rules, against their effect on numbers."""

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.element import describe_elements
from weft.primitives.dot import dot_general_p
from weft.primitives.dynamic_slicing import dynamic_slice_p
from weft.primitives.slicing import pad_p
from weft.sparsity import reads
from weft.sparsity.reads import Source, find_reads

F32 = np.dtype(np.float32)


def read(prim, params, *sources):
    """The matrices of the first result of an operation on `sources`."""
    avals = [s.aval for s in sources]
    (places, expression), *_ = describe_elements(prim, avals, params)
    (out,) = prim.type_of(tuple(avals), params)
    return find_reads(places, expression, out.shape, sources)


def source(shape, value=None, moves=False, dtype=F32):
    return Source(ShapedArray(shape, dtype), value is not None and (lambda: value) or None, moves)


def test_a_product_with_a_known_matrix_reads_where_it_is_not_zero():
    known = np.array([[1, 0, 2], [0, 0, 0]], np.float32)
    params = {
        "dimension_numbers": (((1,), (0,)), ((), ())),
        "precision": None,
        "preferred_element_type": None,
        "out_sharding": None,
    }
    _, local = read(dot_general_p, params, source((2, 3), known), source((3,), moves=True))
    np.testing.assert_array_equal(local.toarray(), known != 0)
    _, local = read(dot_general_p, params, source((2, 3)), source((3,), moves=True))
    assert local.toarray().all()


def test_an_index_that_is_not_known_stands_for_all():
    start = source((), dtype=np.dtype(np.int32))
    local, _ = read(dynamic_slice_p, {"slice_sizes": (2,)}, source((5,), moves=True), start)
    assert local.toarray().all()
    start = source((), np.int32(7), dtype=np.dtype(np.int32))  # moved back inside, to 3
    local, _ = read(dynamic_slice_p, {"slice_sizes": (2,)}, source((5,), moves=True), start)
    np.testing.assert_array_equal(local.toarray().nonzero(), [[0, 1], [3, 4]])


def test_the_inside_of_a_padded_array_is_read():
    params = {"padding_config": ((2, -1, 1),)}
    local, other = read(pad_p, params, source((3,), moves=True), source((), moves=True))
    want = np.array([9, 9, 1, 9, 2, 9])  # two in front, one between, one less behind
    rows, columns = local.toarray().nonzero()
    np.testing.assert_array_equal(rows, [2, 4])
    np.testing.assert_array_equal(columns, [0, 1])
    np.testing.assert_array_equal(other.toarray()[:, 0], want == 9)


def test_parts_of_a_large_result_are_joined(monkeypatch):
    whole, _ = read(dynamic_slice_p, {"slice_sizes": (6,)}, *moving_vector())
    monkeypatch.setattr(reads, "MAX_PAIRS", 2)
    parts, _ = read(dynamic_slice_p, {"slice_sizes": (6,)}, *moving_vector())
    np.testing.assert_array_equal(parts.toarray(), whole.toarray())


def moving_vector():
    return source((9,), moves=True), source((), np.int32(2), dtype=np.dtype(np.int32))
