"""The functions on whole trees, under both of their names."""

import collections
import dataclasses
import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import tree, tree_util
from weft.errors import PytreeError
from weft.tree_util import DictKey, keystr, tree_structure

Point = collections.namedtuple("Point", ["x", "y"])


def fails(error, text):
    return pytest.raises(error, match=f"^{re.escape(text)}$")


def test_every_name_is_there_and_the_short_ones_are_the_long_ones():
    for module in (tree, tree_util):
        assert module.__all__ == sorted(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)
    for name in set(tree.__all__) - {"static", "summary"}:
        short, long = getattr(tree, name), getattr(tree_util, f"tree_{name}")
        assert short.__code__ is long.__code__
        assert (short.__name__, long.__name__) == (name, f"tree_{name}")


def test_map_with_path():
    got = tree.map_with_path(lambda path, *xs: (keystr(path), *xs), {"a": [1]}, {"a": [(2,)]})
    assert got == {"a": [("['a'][0]", 1, (2,))]}
    assert tree.map_with_path(lambda path, x: x, []) == []
    assert tree.map_with_path(lambda path, x, y: x, (), ()) == ()
    got = tree.map_with_path(
        lambda path, x: sum(x), [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple)
    )
    assert got == [3, 3]
    got = tree.map_with_path(
        lambda path, x, y: (x, y),
        {"a": [1]},
        {"a": 5},
        is_leaf=lambda path, _: path == (DictKey("a"),),
        is_leaf_takes_path=True,
    )
    assert got == {"a": ([1], 5)}
    with fails(
        PytreeError,
        "tree.map_with_path: tree must be a tree prefix of rest[0]; "
        "got a dict with keys 'a' at tree where rest[0] has a dict with keys 'b' "
        "(Dict key mismatch).",
    ):
        tree.map_with_path(lambda *xs: xs, {"a": 1}, {"b": 1})


def test_leaves_with_path():
    assert tree.leaves_with_path({"a": None, "b": 2}) == [((DictKey("b"),), 2)]
    assert tree.leaves_with_path(3) == [((), 3)]


def test_all():
    assert tree.all([]) is True
    assert tree.all({"a": 1, "b": [True]}) is True
    assert tree.all({"a": 1, "b": [0]}) is False
    assert tree.all([[], 1], is_leaf=lambda x: x == []) is False


def test_reduce():
    assert tree.reduce(lambda x, y: x - y, [10, (1, {"a": 2})]) == 7
    assert tree.reduce(lambda x, y: x - y, [1, 2], 10) == 7
    assert tree.reduce(lambda x, y: (x, y), [1, 2], None) == ((None, 1), 2)
    assert tree.reduce(lambda x, y: x + y, [[1], [2]], is_leaf=lambda x: x in ([1], [2])) == [1, 2]
    assert tree.reduce(max, [], 5) == 5
    with fails(
        TypeError,
        "tree.reduce: a tree without leaves needs an initializer; got PyTreeDef([None]). "
        "Hint: tree.reduce(f, tree, initializer=0)",
    ):
        tree.reduce(max, [None])


def test_reduce_associative_is_balanced_and_keeps_order():
    pair = lambda x, y: (x, y)
    assert tree.reduce_associative(pair, [1, 2, 3, 4, 5]) == ((1, 2), (3, (4, 5)))
    assert tree.reduce_associative(pair, list(range(7))) == ((0, (1, 2)), ((3, 4), (5, 6)))
    assert tree.reduce_associative(pair, {"b": 2, "a": 1}, identity=0) == (1, 2)
    assert tree.reduce_associative(pair, [1]) == 1
    assert tree.reduce_associative(pair, (), identity=0) == 0
    with fails(
        TypeError,
        "tree.reduce_associative: a tree without leaves needs an identity; got PyTreeDef(()). "
        "Hint: tree.reduce_associative(f, tree, identity=0)",
    ):
        tree.reduce_associative(pair, ())


def test_transpose():
    outer, inner = tree_structure([0, 0]), tree_structure({"a": 0, "b": (0,)})
    nested = [{"a": 1, "b": (2,)}, {"a": 3, "b": (4,)}]
    turned = {"a": [1, 3], "b": ([2, 4],)}
    assert tree.transpose(outer, inner, nested) == turned
    assert tree.transpose(outer, None, nested) == turned
    assert tree.transpose(inner, outer, turned) == nested
    assert tree.transpose(tree_structure([]), tree_structure(0), []) == []
    assert tree.transpose(outer, None, [(1, None), (2, None)]) == ([1, 2], None)


def test_transpose_errors():
    outer, inner = tree_structure([0, 0]), tree_structure({"a": 0, "b": 0})
    with fails(
        PytreeError,
        "tree.transpose: the tree must hold PyTreeDef({'a': *, 'b': *}) at each leaf of "
        "PyTreeDef([*, *]); got PyTreeDef([{'a': *, 'b': *}, {'a': *}]).",
    ):
        tree.transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3}])
    with fails(
        PytreeError,
        "tree.transpose: outer_treedef must be a tree prefix of pytree_to_transpose; got a list of "
        "length 2 at outer_treedef where pytree_to_transpose has a tuple of length 2.",
    ):
        tree.transpose(outer, None, (1, 2))
    with fails(
        PytreeError,
        "tree.transpose: inner_treedef must be given where outer_treedef has no leaves; got None.",
    ):
        tree.transpose(tree_structure([]), None, [])
    with fails(
        TypeError,
        "tree.transpose: outer_treedef must be a PyTreeDef; got list. "
        "Hint: tree.structure(x) is the PyTreeDef of x",
    ):
        tree.transpose([0, 0], inner, [])
    with pytest.raises(TypeError):  # what JAX's users catch
        tree.transpose(outer, inner, [{"a": 1}, {"a": 1}, 2])


def test_broadcast():
    full = {"a": 0, "b": (0, [0])}
    assert tree.broadcast(1, full) == {"a": 1, "b": (1, [1])}
    assert tree.broadcast({"a": 1, "b": 2}, full) == {"a": 1, "b": (2, [2])}
    assert tree.broadcast([1, None], [1, [2]], is_leaf=lambda x: x is None) == [1, [None]]
    assert tree.broadcast(1, [None, 2], is_leaf=lambda x: x is None) == [None, 1]
    with fails(
        PytreeError,
        "tree.broadcast: prefix_tree must be a tree prefix of full_tree; got a dict with keys 'a' "
        "at prefix_tree where full_tree has a dict with keys 'a', 'b' (Dict key mismatch).",
    ):
        tree.broadcast({"a": 1}, full)


def test_all_leaves():
    assert tree_util.all_leaves(x for x in [1, "two"])
    assert not tree_util.all_leaves([1, None])
    assert not tree_util.all_leaves([1, [2]])
    assert tree_util.all_leaves([1, [2]], is_leaf=lambda x: x == [2])
    with fails(TypeError, "all_leaves: iterable must be a sequence; got 3."):
        tree_util.all_leaves(3)


def test_arguments_that_are_no_functions_or_structures():
    x = [1, [2]]
    for op in ("leaves", "flatten", "structure", "leaves_with_path", "flatten_with_path", "all"):
        with fails(TypeError, "pytree: is_leaf must be a function; got 2.5."):
            getattr(tree_util, f"tree_{op}")(x, is_leaf=2.5)
    for op, name in (("map", "f"), ("map_with_path", "f"), ("reduce", "function"),
                     ("reduce_associative", "operation")):  # fmt: skip
        with fails(TypeError, f"tree.{op}: {name} must be a function; got 'a'."):
            getattr(tree_util, f"tree_{op}")("a", x)
    for op in ("treedef_is_leaf", "treedef_children"):
        with pytest.raises(TypeError, match=f"{op}: treedef must be a PyTreeDef; got str."):
            getattr(tree_util, op)("a")
    with fails(TypeError, "keystr: keys must be a sequence; got 1."):
        tree_util.keystr(1)
    with fails(TypeError, "keystr: separator must be a string; got None."):
        tree_util.keystr((), separator=None)


def test_treedefs():
    treedef = tree_structure((0, [0, None]))
    assert tree_util.treedef_children(treedef) == [tree_structure(0), tree_structure([0, None])]
    assert tree_util.treedef_tuple(iter([treedef])) == tree_structure(((0, [0, None]),))
    assert tree_util.treedef_tuple([]) == tree_structure(())
    flags = [tree_util.treedef_is_leaf(tree_structure(x)) for x in (0, None, (), [0])]
    assert flags == [True, True, True, False]
    with fails(
        TypeError,
        "treedef_tuple: treedefs[1] must be a PyTreeDef; got int. "
        "Hint: tree.structure(x) is the PyTreeDef of x",
    ):
        tree_util.treedef_tuple([treedef, 1])


def test_treedef_methods():
    treedef = tree_structure([1, {"a": 2}])
    assert (treedef.num_leaves, treedef.num_nodes) == (2, 4)
    assert treedef.node_data() == (list, None)
    assert treedef.children() == [tree_structure(0), tree_structure({"a": 0})]
    assert treedef.compose(tree_structure((1, 2))) == tree_structure([(1, 2), {"a": (1, 2)}])
    assert treedef.flatten_up_to([(1, 2), {"a": [5]}]) == [(1, 2), [5]]
    assert treedef.unflatten([3, 4]) == [3, {"a": 4}]
    assert treedef.from_iterable_tree([1, [2]]) == [1, {"a": 2}]
    nodes = treedef.walk(lambda children, data: (children, data), lambda x: x * 10, [1, 2])
    assert nodes == ((10, ((20,), ["a"])), None)
    registry = tree_util.default_registry
    rebuilt = tree_util.PyTreeDef.from_node_data_and_children(
        registry, treedef.node_data(), treedef.children()
    )
    assert rebuilt == treedef
    data = treedef.serialize_using_proto()
    assert tree_util.PyTreeDef.deserialize_using_proto(registry, data) == treedef


def test_one_level():
    one, keyed = tree_util.flatten_one_level, tree_util.flatten_one_level_with_keys
    assert one({"b": [1, 2], "a": 3}) == ((3, [1, 2]), ("a", "b"))
    assert one(None) == ((), None)
    assert [keystr((key,)) for key, _ in keyed({"b": 1, "a": 2})[0]] == ["['a']", "['b']"]
    # jaxlib 0.10 itself names both children of a namedtuple `.x`.
    assert [keystr((key,)) for key, _ in keyed(Point(1, 2))[0]] == [".x", ".y"]
    for op in (one, keyed):
        with fails(PytreeError, f"{op.__name__}: the tree must be a node; got a leaf of type int."):
            op(1)


def test_static_fields():
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Config:
        x: float
        mode: str = tree.static(default="fast", metadata={"doc": "how"})

    field = dataclasses.fields(Config)[1]
    assert dict(field.metadata) == {"static": True, "doc": "how"}
    assert field.default == "fast"
    assert tree.map(lambda x: x + 1, Config(1.0)) == Config(2.0)
    assert tree.structure(Config(1.0)) != tree.structure(Config(1.0, "slow"))


# --- the table of a pytree ----------------------------------------------------------------------


def test_summary_counts_elements_and_bytes():
    params = {
        "a": [jnp.ones((2, 3)), np.ones(4)],
        "b": weft.ShapeDtypeStruct((5,), "bfloat16"),
        "c": {"d": 1.5, "e": "text", "f": None, "g": weft.random.key(0)},
    }
    table = tree.summary(params)
    assert table.rows == (
        ("a/0", "f32[2,3]", 6, 24),
        ("a/1", "f64[4]", 4, 32),
        ("b", "bf16[5]", 5, 10),
        ("c/d", "float", 1, 0),
        ("c/e", "str", 0, 0),
        ("c/g", "key<fry>[]", 1, 8),
    )
    assert (table.leaves, table.size, table.nbytes) == (6, 17, 74)
    lines = repr(table).split("\n")
    assert len({len(line) for line in lines}) == 1 and len(lines) == 8
    assert lines[-1].split() == ["total", "6", "leaves", "17", "74", "bytes"]
    assert "<td>a/0</td><td>f32[2,3]</td><td>6</td><td>24 bytes</td>" in table._repr_html_()


def test_summary_adds_up_below_a_depth():
    params = {"a": [jnp.ones(2), jnp.ones(3)], "b": jnp.ones(4)}
    shallow = tree.summary(params, depth=1)
    assert shallow.rows == (("a", "2 leaves", 5, 20), ("b", "f32[4]", 4, 16))
    assert shallow.leaves == 3 and tree.summary(params, depth=9).leaves == 3
    assert tree.summary([]).rows == () and tree.summary(2).rows == (("", "int", 1, 0),)
    pairs = tree.summary(params, is_leaf=lambda x: isinstance(x, list))
    assert pairs.rows[0] == ("a", "list", 0, 0)
    with pytest.raises(ValueError, match=r"tree.summary: depth must be at least 1; got 0\."):
        tree.summary(params, depth=0)
