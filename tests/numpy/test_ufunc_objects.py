"""The methods of universal functions against NumPy's; functions made by frompyfunc."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import grad, jit
from weft.errors import IndexingError, ShapeError

FLOATS = np.array([[0.5, -1.5, 2.0, 0.25], [3.0, 1.0, -2.0, 0.0], [1.0, 2.0, 0.5, 4.0]], np.float32)
INTS = np.arange(1, 13, dtype=np.int32).reshape(3, 4)
REAL = ["add", "multiply", "maximum", "minimum", "subtract", "logaddexp", "logaddexp2", "hypot"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "gcd"]
TRUTHS = ["logical_and", "logical_or", "logical_xor"]
CASES = [*((n, FLOATS) for n in REAL), *((n, INTS) for n in [*BITS, *TRUTHS, "add", "multiply"])]
MASK = np.array([True, False, True, True])


def same(got, want):
    assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, x", CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_against_numpy(name, x):
    f, g = getattr(jnp, name), getattr(np, name)
    assert (f.nin, f.nout, f.identity) == (g.nin, g.nout, g.identity)
    assert isinstance(f, jnp.ufunc)
    where, start = np.array([0, 2, 1, 3]), False if name in TRUTHS else 1
    ordered = name in ("subtract", "hypot", "gcd")  # NumPy's order of these over axes is its own

    def run(f, x):
        yield f.reduce(x)
        yield f.reduce(x, axis=1, keepdims=True)
        yield f.accumulate(x, axis=1)
        yield f.outer(x[0], x[:, 1])
        yield f.reduceat(x, where, axis=1)
        if not ordered:
            yield f.reduce(x, axis=None)
            yield f.reduce(x, axis=1, initial=start, where=MASK)
        if name not in TRUTHS and f is not g:
            yield f.at(x, (jnp.array([0, 0, 2]), 1), x[0, :3], inplace=False)

    wanted = [np.asarray(y) for y in run(g, x)]
    if name not in TRUTHS:
        wanted.append(x.copy())
        g.at(wanted[-1], ([0, 0, 2], 1), x[0, :3])
    for got, want in zip(jit(lambda x: list(run(f, x)))(x), wanted, strict=True):
        same(got, want)


def test_of_one_operand():
    got = jnp.negative.at(jnp.arange(4), jnp.array([1, 1, 2]), inplace=False)
    assert got.tolist() == [0, 1, -2, 3]
    assert (jnp.sin.nin, jnp.sin.nout, jnp.sin.identity) == (1, 1, None)
    assert jnp.frexp.nout == 2


def test_dtypes_and_empty_axes():
    small = INTS.astype(np.int8)
    assert jnp.add.reduce(small).dtype == np.int32
    assert jnp.add.reduce(small, dtype=np.float32).dtype == np.float32
    assert jnp.add.accumulate(INTS, dtype=np.float32).dtype == np.float32
    assert jnp.add.reduceat(INTS, np.array([0]), dtype=np.float32).dtype == np.float32
    assert jnp.maximum.reduce(INTS, dtype=np.float32).dtype == np.float32
    assert jnp.logaddexp.reduce(jnp.zeros((0, 2))).tolist() == [-np.inf] * 2
    assert jnp.bitwise_and.reduce(jnp.zeros((0,), int)) == -1
    assert jnp.hypot.reduce(jnp.zeros((2, 0)), axis=1).tolist() == [0, 0]
    assert jnp.subtract.accumulate(jnp.zeros((0, 2))).shape == (0, 2)


def test_under_transformations():
    f = jit(lambda x: (jnp.subtract.reduce(x, 1), jnp.logaddexp.accumulate(x, 0)))
    same(f(FLOATS)[0], np.subtract.reduce(FLOATS, 1))
    slope = grad(lambda x: jnp.logaddexp.reduce(x).sum())(FLOATS)
    np.testing.assert_allclose(slope, np.exp(FLOATS - np.logaddexp.reduce(FLOATS)), rtol=1e-5)
    slope = grad(lambda x: jnp.multiply.reduceat(x, jnp.array([0, 2])).sum())(FLOATS[0])
    np.testing.assert_allclose(slope, [-1.5, 0.5, 0.25, 2.0])


def test_frompyfunc():
    f = jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1)
    assert f(jnp.arange(3), 2.0).tolist() == [1, 3, 5]
    assert f.reduce(jnp.arange(4)) == 10 and f.accumulate(jnp.arange(4)).tolist() == [0, 1, 3, 10]
    assert repr(f) == "<jnp.ufunc '<lambda>'>" and (f.nin, f.nout, f.nargs) == (2, 1, 2)
    total = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    assert total.reduce(jnp.arange(4), where=jnp.arange(4) != 2) == 4
    assert total.reduce(jnp.arange(8).reshape(2, 2, 2), axis=(0, 2)).tolist() == [10, 18]
    assert total.reduceat(jnp.arange(8), jnp.array([0, 4, 1, 5])).tolist() == [6, 4, 10, 18]
    assert total.at(jnp.arange(4), jnp.array([1, 1]), 3, inplace=False).tolist() == [0, 7, 2, 3]
    assert total.outer(jnp.arange(2), jnp.arange(3)).shape == (2, 3)
    sums, differences = jnp.frompyfunc(lambda x, y: (x + y, x - y), 2, 2)(jnp.arange(2), 1)
    assert sums.tolist() == [1, 2] and differences.tolist() == [-1, 0]
    own = jnp.ufunc(lambda x, y: x + y, 2, 1, name="plus", reduce=lambda a, **kw: "reduced")
    assert own.reduce(jnp.ones(2)) == "reduced" and own.name == "plus"


def test_errors():
    x = jnp.arange(4)
    with pytest.raises(NotImplementedError, match="add: out must be None, for arrays do not cha"):
        jnp.add(x, 1, out=x)
    with pytest.raises(NotImplementedError, match=r"sin: where must be None.* Hint: jnp.where\("):
        jnp.sin(x, where=x > 1)
    with pytest.raises(NotImplementedError, match=r"Hint: x = jnp.add.at\(x, .*inplace=False\)"):
        jnp.add.at(x, 0, 1)
    with pytest.raises(ValueError, match="negative.reduce: needs a function of 2 operands with on"):
        jnp.negative.reduce(x)
    with pytest.raises(ShapeError, match="subtract.reduce: needs at least one element"):
        jnp.subtract.reduce(jnp.zeros(0))
    with pytest.raises(ValueError, match="with where=, initial must be given"):
        jnp.subtract.reduce(x, where=x > 1)
    with (
        weft.config.scope(check_bounds="all"),
        pytest.raises(IndexingError, match=r"add.reduceat: indices must be in \[0, 4\); got 9"),
    ):
        jnp.add.reduceat(x, jnp.array([9]))
    with pytest.raises(ShapeError, match="indices must be a vector of integers"):
        jnp.add.reduceat(x, 1)
    with pytest.raises(TypeError, match="<lambda>: needs 2 operands; got 1"):
        jnp.frompyfunc(lambda x, y: x, 2, 1)(x)
    with pytest.raises(TypeError, match="ufunc: func must be a function; got 3"):
        jnp.frompyfunc(3, 2, 1)
    with pytest.raises(TypeError, match="add.at: must be given b"):
        jnp.add.at(x, 0, inplace=False)


def test_what_is_a_universal_function():
    assert isinstance(jnp.add, jnp.ufunc) and isinstance(jnp.frompyfunc(max, 2, 1), jnp.ufunc)
    others = 3, jnp.ufunc, jnp.sum, type(jnp.add), weft.vmap(jnp.add), weft.custom_jvp(jnp.sin)
    assert not any(isinstance(x, jnp.ufunc) for x in others)
