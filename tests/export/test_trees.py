"""Structures of pytrees in files: Python's containers, and classes by their registered names."""

import collections
import importlib
import sys

import numpy as np
import pytest

import weft
from weft import export
from weft.export import trees
from weft.pytrees import structure

Point = collections.namedtuple("Point", "x y")
Bare = collections.namedtuple("Bare", "x")


@weft.tree_util.register_pytree_node_class
class Scaled:
    def __init__(self, x, scale):
        self.x, self.scale = x, scale

    def tree_flatten(self):
        return (self.x,), self.scale

    @classmethod
    def tree_unflatten(cls, scale, children):
        return cls(*children, scale)


export.register_namedtuple_serialization(Point, serialized_name="tests.Point")
export.register_pytree_node_serialization(
    Scaled,
    serialized_name="tests.Scaled",
    serialize_auxdata=lambda scale: str(scale).encode(),
    deserialize_auxdata=lambda data: float(data.decode()),
)


@pytest.mark.parametrize(
    "tree",
    [
        1,
        None,
        (),
        [1, (2, [], {})],
        {"b": 1, "a": None},
        {2: 1, 1: (0,)},
        collections.OrderedDict(b=1, a=[2]),
        Point(1, Point([2], None)),
        [Scaled((1, 2), 0.5), {"x": Scaled(None, 2.0)}],
    ],
)
def test_a_structure_comes_back(tree):
    found = trees.read_tree(container_json(trees.write_tree(structure(tree))))
    assert found == structure(tree)


@pytest.mark.parametrize("name", trees.RESULTS)
def test_namedtuples_that_functions_return_have_names(name):
    cls = getattr(importlib.import_module(trees.RESULTS[name]), name)
    tree = structure(cls(*[0] * len(cls._fields)))
    assert trees.read_tree(container_json(trees.write_tree(tree))) == tree


def test_no_result_is_without_a_name():
    modules = [m for n, m in [*sys.modules.items()] if n.startswith(("weft.numpy", "weft.scipy"))]
    classes = {c for m in modules for c in vars(m).values() if isinstance(c, type)}
    kinds = ("Result", "Results", "UniqueAll", "UniqueCounts", "UniqueInverse")
    found = {c.__name__ for c in classes if hasattr(c, "_fields") and c.__name__.endswith(kinds)}
    assert found <= {*trees.RESULTS}, found - {*trees.RESULTS}


def container_json(data):
    import json

    return json.loads(json.dumps(data))


def test_registered_classes_through_a_program():
    f = weft.jit(lambda p, s: Scaled(Point(p.y, p.x * s.x), s.scale))
    x = np.ones(2, np.float32)
    found = export.deserialize(export.export(f)(Point(x, 2 * x), Scaled(3 * x, 0.5)).serialize())
    out = found.call(Point(x, 2 * x), Scaled(3 * x, 0.5))
    assert type(out) is Scaled and type(out.x) is Point and out.scale == 0.5
    np.testing.assert_array_equal(out.x.y, [3, 3])


def test_classes_without_a_name():
    with pytest.raises(
        weft.errors.PytreeError, match=r"^serialize: .* must have a name in files; got B"
    ):
        trees.write_tree(structure(Bare(1)))
    with pytest.raises(weft.errors.PytreeError, match="^deserialize: a class must be registered"):
        trees.read_tree(["node", "nobody's", ""])
    with pytest.raises(weft.errors.PytreeError, match="^serialize: the keys of dicts must be"):
        trees.write_tree(structure({(1, 2): 3}))


def test_a_name_is_given_once():
    for cls, name in ((Point, "other"), (Bare, "tests.Point")):
        with pytest.raises(ValueError, match="^register_pytree_node_serialization: a class and a"):
            export.register_namedtuple_serialization(cls, serialized_name=name)
    with pytest.raises(ValueError, match="nodetype must be a namedtuple; got"):
        export.register_namedtuple_serialization(Scaled, serialized_name="s")


def test_a_namedtuple_with_other_fields():
    other = trees.write_tree(structure(Point(1, 2)))
    other[2] = trees.base64.b64encode(b"x,z").decode()
    with pytest.raises(ValueError, match="^deserialize: the namedtuple 'tests.Point' must have"):
        trees.read_tree(other)
