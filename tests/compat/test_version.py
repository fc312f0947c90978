"""The effects of the jaxlib version: the JAX version that libraries see, and behaviour."""

import importlib.metadata

import pytest

import weft.numpy as jnp
from weft.compat import version
from weft.sharding import AbstractMesh, AxisType
from weft.util import JAXLIB

NEW = JAXLIB >= (0, 12)


def test_the_version_is_that_of_jaxlib():
    installed = importlib.metadata.version("jaxlib").split(".")[:2]
    assert version.__version__.split(".")[:2] == installed
    assert version.__version_info__[:2] == JAXLIB


@pytest.mark.parametrize("name", ["meshgrid", "broadcast_arrays", "atleast_1d", "atleast_3d"])
def test_groups_of_results(name):
    x = jnp.arange(2.0)
    assert type(getattr(jnp, name)(x, x)) is (tuple if NEW else list)


def test_axes_of_an_abstract_mesh():
    (kind,) = AbstractMesh((2,), ("x",)).axis_types
    assert kind is (AxisType.Explicit if NEW else AxisType.Auto)
