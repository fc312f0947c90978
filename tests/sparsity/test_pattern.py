"""Patterns as users see them, and their pictures."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import scipy.sparse

import weft
import weft.numpy as jnp
from weft.errors import ShapeError
from weft.sparsity import Pattern


def differences(x):
    return x[1:] ** 2 - x[:-1]


def test_what_a_pattern_says():
    pattern = weft.sparse_jacobian(differences).pattern(jnp.ones(4))
    assert repr(pattern) == "Pattern((3, 4), nnz=6, products=(2, 0))"
    assert isinstance(pattern, Pattern)
    np.testing.assert_array_equal(pattern.rows, [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(pattern.columns, [0, 1, 1, 2, 2, 3])
    found = pattern.to_scipy_sparse()
    np.testing.assert_array_equal(found.toarray(), pattern.todense())
    found.data[:] = False  # a copy
    assert pattern.todense().sum() == 6


@pytest.mark.parametrize("n", [1, 4, 1000])
def test_a_picture_is_svg(n, tmp_path):
    picture = weft.sparse_jacobian(lambda x: x**2).pattern(jnp.ones(n)).draw()
    picture.save(tmp_path / "pattern.svg")
    root = ElementTree.fromstring((tmp_path / "pattern.svg").read_text())
    squares = root.findall(".//{http://www.w3.org/2000/svg}g/*")
    assert len(squares) == min(n, 360)
    assert float(root.get("width")) <= 362
    assert "SVG" in repr(picture) and picture._repr_svg_() == picture.svg


def test_patterns_that_are_given():
    full = weft.sparse_jacobian(differences)(jnp.ones(4))
    own = weft.sparse_jacobian(differences).pattern(jnp.ones(4))
    for given in (
        own,
        own.todense(),
        own.to_scipy_sparse(),
        full,
        scipy.sparse.coo_array(own.todense()),
    ):
        found = weft.sparse_jacobian(differences, pattern=given)(jnp.ones(4))
        np.testing.assert_array_equal(found.todense(), full.todense())
    with pytest.raises(ShapeError, match=r"pattern must have a row .* \(3, 4\); got \(2, 4\)\."):
        weft.sparse_jacobian(differences, pattern=np.ones((2, 4)))(jnp.ones(4))
