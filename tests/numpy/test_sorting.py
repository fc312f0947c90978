"""Order by value, searching and sets against NumPy; sizes that are fixed; under jit, grad, vmap."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import same_values
from weft.errors import DtypeError, ShapeError

HOST = np.array([[3, 1, 2, 1], [0, -5, 7, 7], [2, 2, 2, -1]], np.float32)
NAN = np.array([3, np.nan, -np.inf, 1, np.inf, -0.0, np.nan, 0.0], np.float32)
COMPLEX = np.array([1 + 2j, 1 - 1j, 0, -3 + 1j, 1 + 1j], np.complex64)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool", "bfloat16", "float16"])
def test_sort(axis, dtype):
    x = jnp.asarray(np.abs(HOST)).astype(dtype)
    host = np.asarray(x)
    same_values(jnp.sort(x, axis), np.sort(host, axis))
    same_values(jnp.argsort(x, axis), np.argsort(host, axis, kind="stable"))
    down = jnp.sort(x, axis, descending=True)
    same_values(down, np.flip(np.sort(host, axis), -1 if axis is None else axis))


def test_sort_puts_nan_last_and_keeps_ties_in_order():
    x = jnp.asarray(NAN)
    same_values(jnp.sort(x), np.sort(NAN))
    same_values(jnp.argsort(x), np.argsort(NAN, kind="stable"))
    same_values(jnp.sort(jnp.asarray(COMPLEX)), np.sort(COMPLEX))
    same_values(jnp.sort_complex(jnp.array([3, 1])), np.sort_complex([3, 1]))
    assert jnp.argsort(jnp.array([1, 1, 0]), descending=True).tolist() == [0, 1, 2]
    assert jnp.argsort(jnp.array([1, 0]), dtype="int8").dtype == "int8"


def test_sort_under_transformations():
    x = jnp.asarray(HOST)
    same_values(weft.jit(jnp.sort)(x), np.sort(HOST))
    same_values(weft.vmap(jnp.argsort, in_axes=1)(x), np.argsort(HOST.T, kind="stable"))
    weights = jnp.arange(4.0)
    grad = weft.grad(lambda v: (jnp.sort(v) * weights).sum())(jnp.array([3.0, 0.0, 2.0, 9.0]))
    assert grad.tolist() == [2, 0, 1, 3]


def test_partition_and_lexsort():
    x = jnp.asarray(HOST)
    for kth in (0, 2, -1):
        got = np.asarray(jnp.partition(x, kth, axis=1))
        want = np.sort(HOST, 1)[:, kth]
        same_values(got[:, kth], want)
        assert (got[:, :kth] <= want[:, None]).all() if kth > 0 else True
        same_values(
            np.take_along_axis(HOST, np.asarray(jnp.argpartition(x, kth, 1)), 1)[:, kth], want
        )
    keys = [jnp.array([1, 0, 1]), jnp.array([2, 1, 1])]
    same_values(jnp.lexsort(keys), np.lexsort([np.asarray(k) for k in keys]))
    same_values(jnp.lexsort(jnp.stack(keys)), np.lexsort([np.asarray(k) for k in keys]))
    assert int(jnp.lexsort((1, 2))) == int(jnp.lexsort((1, 2), axis=0)) == 0


@pytest.mark.parametrize("axis", [0, -1])
def test_top_k(axis):
    n = HOST.shape[axis]
    values, places = jnp.top_k(jnp.asarray(HOST), n - 1, axis=axis)
    same_values(values, np.flip(np.sort(HOST, axis), axis).take(range(n - 1), axis))
    same_values(np.take_along_axis(HOST, np.asarray(places), axis), values)
    values, places = jnp.top_k(jnp.asarray(HOST), 2, axis=axis, mode="smallest")
    same_values(values, np.sort(HOST, axis).take(range(2), axis))
    same_values(np.take_along_axis(HOST, np.asarray(places), axis), values)
    with pytest.raises(ValueError, match="top_k: mode must be 'largest' or 'smallest'; got 'best'"):
        jnp.top_k(jnp.asarray(HOST), 1, mode="best")
    for mode in ("largest", "smallest"):
        for k in (-1, HOST.shape[axis] + 1):
            with pytest.raises(ShapeError, match=f"top_k: k must be from 0 to the .* got k={k} "):
                jnp.top_k(jnp.asarray(HOST), k, axis=axis, mode=mode)
        with pytest.raises(DtypeError, match="top_k: needs an operand of real dtype; got c64"):
            jnp.top_k(1j * jnp.asarray(HOST), 1, mode=mode)


@pytest.mark.parametrize("method", ["scan", "compare_all"])
def test_positions_that_integers_cannot_hold(method):
    many, one = weft.ShapeDtypeStruct((2**31,), np.int8), weft.ShapeDtypeStruct((3,), np.int8)
    for fun, order in ((jnp.searchsorted, (many, one)), (jnp.digitize, (one, many))):
        call = lambda *xs, fun=fun: fun(*xs, method=method)
        with pytest.raises(DtypeError, match=r"a position must fit int32.*got i8\[2147483648\]"):
            weft.eval_shape(call, *order)
        with weft.enable_x64():
            assert weft.eval_shape(call, *order).dtype == np.int64


def test_sort_errors():
    with pytest.raises(TypeError, match="kind must be None; got 'stable'. Hint: stable=True"):
        jnp.sort(jnp.zeros(2), kind="stable")
    with pytest.raises(ShapeError, match="axis must"):
        jnp.sort(jnp.float32(1))
    with pytest.raises(ShapeError, match=r"kth must be in \[-2, 2\)"):
        jnp.partition(jnp.zeros(2), 2)
    with pytest.raises(TypeError, match="operands must be arrays"):
        jnp.sort([2, 1])
    with pytest.raises(TypeError, match="at least one key"):
        jnp.lexsort([])
    with pytest.raises(TypeError, match="lexsort: axis must be"):
        jnp.lexsort((1, 2), axis=0.5)


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side, method):
    for a, v in (
        (np.sort(NAN), NAN),
        (np.sort(HOST.ravel()), HOST),
        (np.arange(0), np.array([1])),
        (np.sort(COMPLEX), COMPLEX),
        (np.array([1, 3, 5], np.int32), np.float32(3.5)),
    ):
        got = jnp.searchsorted(jnp.asarray(a), jnp.asarray(v), side, method=method)
        same_values(got, np.searchsorted(a, v, side))
        assert got.dtype == np.int32


def test_searchsorted_otherwise():
    a = jnp.array([2, 1, 3])
    assert int(jnp.searchsorted(a, 2, sorter=jnp.argsort(a))) == 1
    rows = jnp.array([[0.0, 2.0], [1.0, 5.0]])
    assert weft.vmap(lambda r: jnp.searchsorted(r, 1.0, side="right"))(rows).tolist() == [1, 1]
    with pytest.raises(ShapeError, match="a must be a vector"):
        jnp.searchsorted(rows, 1.0)
    with pytest.raises(ValueError, match="side must be"):
        jnp.searchsorted(a, 1, side="middle")
    with pytest.raises(ValueError, match="method must be 'default', "):
        jnp.searchsorted(a, 1, method="magic")


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[2.0, 4.0], [4.0, 2.0], [3.0], []])
def test_digitize(bins, right):
    x = np.arange(6, dtype=np.float32)
    got = jnp.digitize(jnp.asarray(x), jnp.array(bins), right)
    same_values(got, np.digitize(x, np.array(bins), right))
