import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from weft import flatten_util, grad, jit, vmap
from weft.errors import DtypeError, ShapeError
from weft.flatten_util import ravel_pytree

TREES = {
    "one dtype": {"a": np.ones((2, 3), np.float32), "b": (np.float32(2), [])},
    "mixed": {"a": jnp.ones(2, jnp.bfloat16), "b": np.arange(3), "c": 2.5},
    "bools": [np.array([True, False]), np.arange(2, dtype=np.int8)],
    "complex": [np.ones(2, np.complex64) * 1j, np.ones(2, np.float32)],
    "numbers": [1.0, (2, 3)],
    "weak": [1.0, 2.0],
    "empty": {"a": None, "b": []},
    "no elements": [np.ones((0, 3), np.float32), np.ones(2, np.float32)],
}


def test_doctests():
    check_examples(flatten_util)


@pytest.mark.parametrize("name", TREES)
def test_there_and_back(name):
    tree = TREES[name]
    flat, unravel = ravel_pytree(tree)
    leaves = [jnp.asarray(x) for x in weft.tree.leaves(tree)]
    assert flat.shape == (sum(x.size for x in leaves),)
    want = np.concatenate([np.zeros(0), *[np.ravel(x.astype(complex)) for x in leaves]])
    np.testing.assert_array_equal(flat.astype(complex), want)
    back = unravel(flat)
    assert weft.tree.structure(back) == weft.tree.structure(tree)
    for x, y in zip(weft.tree.leaves(back), leaves, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)
    weft.tree.map(
        np.testing.assert_array_equal, jit(lambda t: unravel(ravel_pytree(t)[0]))(tree), back
    )


def test_dtypes():
    kinds = {n: ravel_pytree(t)[0].dtype.name for n, t in TREES.items()}
    assert kinds == {
        "one dtype": "float32", "mixed": "float32", "bools": "int8", "complex": "complex64",
        "numbers": "float32", "weak": "float32", "empty": "float32", "no elements": "float32",
    }  # fmt: skip
    flat, unravel = ravel_pytree(TREES["one dtype"])
    assert unravel(flat.astype(jnp.float16))["a"].dtype == jnp.float16


def test_equal_trees_have_equal_ways_back():
    (_, f), (_, g), (_, h) = (ravel_pytree(TREES[n]) for n in ("mixed", "mixed", "bools"))
    assert f == g and hash(f) == hash(g) and f != h
    assert repr(h).startswith("Unravel(i8[4] -> ")
    traces = []

    @weft.jit(static_argnums=0)
    def back(unravel, x):
        traces.append(unravel)
        return unravel(x)

    flat = ravel_pytree(TREES["mixed"])[0]
    back(f, flat), back(g, flat)
    assert len(traces) == 1


def test_transformations():
    flat, unravel = ravel_pytree(TREES["one dtype"])
    got = grad(lambda v: jnp.sum(unravel(v)["a"] ** 2))(flat)
    np.testing.assert_array_equal(got, [2.0] * 6 + [0])
    rows = vmap(lambda t: ravel_pytree(t)[0])({"x": np.ones((3, 2)), "y": np.zeros(3)})
    np.testing.assert_array_equal(rows, [[1, 1, 0]] * 3)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda u: u(np.ones(3)), ShapeError, r"that ravel_pytree made, f32\[6\]; got f32\[3\]"),
        (lambda u: u(np.arange(6)), DtypeError,
         r"made, float32; got i32\[6\]. Hint: flat.astype\(jnp.float32\)"),
        (lambda u: u([1.0]), DtypeError, "unravel: .* got a list"),
        (lambda u: ravel_pytree(["text"]), TypeError, "ravel_pytree: "),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(ravel_pytree(TREES["mixed"])[1])
