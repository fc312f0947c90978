"""nonzero, compress and extract against NumPy; sizes that are given, and errors."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.numpy.compare import same_values
from weft import export
from weft.errors import ConcretizationTypeError, ShapeError

HOST = np.array([[3, 1, 2, 1], [0, -5, 7, 7], [2, 2, 2, -1]], np.float32)


NAN = np.array([3, np.nan, -np.inf, 1, np.inf, -0.0, np.nan, 0.0], np.float32)


@pytest.mark.parametrize("host", [HOST > 1, HOST, NAN, np.zeros((2, 0)), np.zeros(3)], ids=str)
def test_nonzero(host):
    x = jnp.asarray(host)
    for got, want in zip(jnp.nonzero(x), np.nonzero(host), strict=True):
        same_values(got, want)
    for got, want in zip(jnp.where(x), np.nonzero(host), strict=True):
        same_values(got, want)
    same_values(jnp.flatnonzero(x), np.flatnonzero(host))
    same_values(jnp.argwhere(x), np.argwhere(host))
    for size in (0, 2, 15):
        found = [
            np.pad(i[:size], (0, max(size - len(i), 0)), constant_values=-1)
            for i in np.nonzero(host)
        ]
        got = weft.jit(lambda v, size=size: jnp.nonzero(v, size=size, fill_value=-1))(x)
        for g, w in zip(got, found, strict=True):
            same_values(g, w)


def test_nonzero_fills_and_errors():
    x = jnp.asarray(HOST > 2)
    assert [i.tolist()[-1] for i in jnp.nonzero(x, size=9)] == [0, 0]
    assert [i.tolist()[-1] for i in jnp.nonzero(x, size=9, fill_value=(3, 4))] == [3, 4]
    assert weft.vmap(lambda r: jnp.flatnonzero(r, size=2))(x).tolist() == [[0, 0], [2, 3], [0, 0]]
    assert jnp.argwhere(jnp.float32(3)).shape == (1, 0)
    with pytest.raises(ConcretizationTypeError, match=r"Hint: jnp.nonzero\(..., size=n\)"):
        weft.jit(jnp.nonzero)(x)
    with pytest.raises(ShapeError, match="needs at least one axis"):
        jnp.nonzero(jnp.float32(1))
    with pytest.raises(ShapeError, match="one for each axis; got 1"):
        jnp.nonzero(x, size=2, fill_value=(1,))
    with pytest.raises(TypeError, match="both x and y, or neither"):
        jnp.where(x, 1)


def test_compress_and_extract():
    x, host = jnp.asarray(HOST), HOST
    for axis, condition in (
        (None, [True, False, True]),
        (0, [False, True, True]),
        (1, [True, False]),
    ):
        got = jnp.compress(jnp.array(condition), x, axis)
        same_values(got, np.compress(condition, host, axis))
    same_values(x.compress(jnp.array([True, False, True]), 0), host[[0, 2]])
    same_values(jnp.extract(x > 1, x), np.extract(host > 1, host))
    fixed = weft.jit(lambda v: jnp.extract(v > 1, v, size=8, fill_value=-9))(x)
    same_values(fixed, np.pad(np.extract(host > 1, host), (0, 1), constant_values=-9))
    with pytest.raises(ConcretizationTypeError, match="size=n"):
        weft.jit(lambda v: jnp.extract(v > 1, v))(x)


def test_conditions_over_axes_of_symbolic_size():
    """The error is that of a traced condition: it came from NumPy, in its own words."""
    (n,) = export.symbolic_shape("n")
    x = weft.ShapeDtypeStruct((n,), np.dtype(np.float32))
    for f in (lambda x: jnp.compress(x > 0, x), lambda x: jnp.extract(x > 0, x)):
        with pytest.raises(ConcretizationTypeError, match="needs a concrete value; got a traced"):
            weft.eval_shape(f, x)


def test_conditions_beyond_the_axis():
    x = jnp.asarray(HOST)
    long = np.array([True, False, True, False, False])
    same_values(jnp.compress(long, x, 0), np.compress(long[:3], HOST, 0))
    same_values(jnp.compress(jnp.asarray(long), x, axis=1), np.compress(long[:4], HOST, 1))
    same_values(jnp.compress(long[:2], x, 0), np.compress(long[:2], HOST, 0))
    with pytest.raises(ShapeError, match=r"beyond the axis must be False; got bool\[5\] for 3"):
        jnp.compress(long[::-1], x, 0)
    got = weft.jit(lambda c: jnp.compress(c, x, 0, size=2, fill_value=-1))(long)
    same_values(got, np.compress(long[:3], HOST, 0))
