"""Pytrees: nodes, flattening and unflattening, and errors for trees that differ."""

import collections
import copy
import dataclasses
import functools
import gc
import inspect
import pickle
import re
import threading
import weakref

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft
from weft import pytrees
from weft.errors import PytreeError
from weft.pytrees import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Partial,
    SequenceKey,
    broadcast_prefix,
    find_mismatches,
    flatten,
    flatten_with_path,
    keystr,
    leaves,
    prefix_error,
    structure,
    tree_map,
    unflatten,
)

Point = collections.namedtuple("Point", ["x", "y"])
OrderedDict, defaultdict = collections.OrderedDict, collections.defaultdict


class Pair:
    """Registered, with keys."""

    def __init__(self, x, y, note=None):
        self.x, self.y, self.note = x, y, note


pytrees.register_pytree_with_keys(
    Pair,
    lambda p: (((GetAttrKey("x"), p.x), (GetAttrKey("y"), p.y)), p.note),
    lambda note, children: Pair(*children, note),
)


class Plain:
    """Registered, without keys."""

    def __init__(self, *items):
        self.items = items


pytrees.register_pytree_node(Plain, lambda p: (p.items, None), lambda _, items: Plain(*items))


@dataclasses.dataclass
class Layer:
    weights: object
    name: str = "dense"


pytrees.register_dataclass(Layer, data_fields=["weights"], meta_fields=["name"])


class Color(str):
    __slots__ = ()


pytrees.register_static(Color)


def fails(error, text):
    return pytest.raises(error, match=f"^{re.escape(text)}$")


# --- Flatten and unflatten -------------------------------------------------------------------


def leaf_paths(tree):
    """The place of each leaf as text."""
    return [keystr(path) for path, _ in flatten_with_path(tree)[0]]


CASES = [
    (1, [1], "PyTreeDef(*)", [""]),
    (None, [], "PyTreeDef(None)", []),
    ((), [], "PyTreeDef(())", []),
    ([], [], "PyTreeDef([])", []),
    ({}, [], "PyTreeDef({})", []),
    ((1,), [1], "PyTreeDef((*,))", ["[0]"]),
    ([1, (2, 3)], [1, 2, 3], "PyTreeDef([*, (*, *)])", ["[0]", "[1][0]", "[1][1]"]),
    ({"b": 2, "a": 3}, [3, 2], "PyTreeDef({'a': *, 'b': *})", ["['a']", "['b']"]),
    ({2: 5, 1: None}, [5], "PyTreeDef({1: None, 2: *})", ["[2]"]),
    (Point(1, 2), [1, 2], "PyTreeDef(CustomNode(namedtuple[Point], [*, *]))", [".x", ".y"]),
    (
        OrderedDict(b=1, a=2),
        [1, 2],
        "PyTreeDef(CustomNode(OrderedDict[('b', 'a')], [*, *]))",
        ["['b']", "['a']"],
    ),
    (
        defaultdict(list, b=1, a=2),
        [2, 1],
        "PyTreeDef(CustomNode(defaultdict[(<class 'list'>, ('a', 'b'))], [*, *]))",
        ["['a']", "['b']"],
    ),
    (Layer([1]), [1], "PyTreeDef(CustomNode(Layer[('dense',)], [[*]]))", [".weights[0]"]),
    ([Color("red"), 1], [1], "PyTreeDef([CustomNode(Color[red], []), *])", ["[1]"]),
    ("text", ["text"], "PyTreeDef(*)", [""]),
]


@pytest.mark.parametrize(("tree", "values", "text", "paths"), CASES)
def test_flatten_and_back(tree, values, text, paths):
    got, treedef = flatten(tree)
    assert got == values == leaves(tree)
    assert repr(treedef) == str(treedef) == text
    assert treedef == structure(tree)
    assert (treedef.num_leaves, leaf_paths(tree)) == (len(values), paths)
    rebuilt = unflatten(treedef, iter(got))
    assert rebuilt == tree
    assert type(rebuilt) is type(tree)


@pytest.mark.parametrize(("tree", "values", "text", "paths"), CASES)
def test_treedefs_pickle_copy_and_hash(tree, values, text, paths):
    treedef = structure(tree)
    for other in (pickle.loads(pickle.dumps(treedef)), copy.deepcopy(treedef)):
        assert other == treedef
        assert hash(other) == hash(treedef)
        assert unflatten(other, values) == tree


def test_unregistered_objects_and_subclasses_are_leaves():
    class Stack(list):
        pass

    class Special:
        pass

    for x in (Stack([1]), Special(), {1, 2}, collections.deque([1]), np.zeros(3)):
        assert structure(x) == structure(0)


def test_defaultdict_keeps_its_factory_and_dict_sorts_its_keys():
    rebuilt = tree_map(lambda x: x, defaultdict(list, a=1))
    assert rebuilt.default_factory is list
    assert list(tree_map(lambda x: x, {"b": 1, "a": 2})) == ["a", "b"]
    assert list(tree_map(lambda x: x, OrderedDict(b=1, a=2))) == ["b", "a"]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ([1], [2], True),
        ([1], (1,), False),
        ({"a": 1, "b": 2}, {"b": 1, "a": 2}, True),
        ({"a": 1}, {"b": 1}, False),
        (OrderedDict(a=1, b=2), OrderedDict(b=1, a=2), False),
        (defaultdict(int, a=1), defaultdict(list, a=1), False),
        (defaultdict(int, b=1, a=2), defaultdict(int, a=1, b=2), True),
        (Point(1, 2), (1, 2), False),
        (None, (), False),
        (Pair(1, 2, "n"), Pair(3, 4, "n"), True),
        (Pair(1, 2, "n"), Pair(1, 2, "m"), False),
        (Color("red"), Color("blue"), False),
        (Partial(max, 1), Partial(max, 2), True),
        (Partial(max, 1), Partial(min, 1), False),
    ],
)
def test_treedef_equality_and_mismatches_agree(one, other, equal):
    assert (structure(one) == structure(other)) is equal
    assert (structure(one) != structure(other)) is not equal
    assert (not list(find_mismatches(structure(one), structure(other)))) is equal


def test_is_leaf_stops_the_walk():
    tree = [1, [2, None], (3,)]
    got, treedef = flatten(tree, lambda x: x is None or isinstance(x, tuple))
    assert got == [1, 2, None, (3,)]
    assert str(treedef) == "PyTreeDef([*, [*, *], *])"
    assert leaves(tree, is_leaf=lambda x: x is tree) == [tree]


trees = st.recursive(
    st.none() | st.integers(),
    lambda sub: (
        st.lists(sub, max_size=3)
        | st.lists(sub, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), sub, max_size=3)
        | st.dictionaries(st.text(max_size=2), sub, max_size=3).map(OrderedDict)
        | st.tuples(sub, sub).map(lambda xy: Point(*xy))
    ),
    max_leaves=12,
)


# A machine that does something else takes longer than hypothesis allows.
on_any_machine = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(trees)
@on_any_machine
def test_any_tree_comes_back(tree):
    got, treedef = flatten(tree)
    assert unflatten(treedef, got) == tree
    assert len(leaf_paths(tree)) == len(set(leaf_paths(tree))) == len(got)
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert list(find_mismatches(treedef, treedef)) == []
    assert broadcast_prefix(tree, tree) == got
    assert broadcast_prefix(7, tree) == [7] * len(got)


@given(trees, trees)
@on_any_machine
def test_there_are_mismatches_exactly_when_structures_differ(one, other):
    differ = structure(one) != structure(other)
    assert bool(list(find_mismatches(structure(one), structure(other)))) == differ


def test_flattening_lets_go_of_its_leaves():
    class Leaf:
        pass

    leaf = Leaf()
    ref = weakref.ref(leaf)
    treedef = structure({"a": leaf})
    del leaf
    gc.collect()
    assert ref() is None
    assert treedef.num_leaves == 1


def test_threads_may_flatten_at_once():
    tree = {"a": [1, Pair(2, 3)], "b": Layer((4,))}
    expected, bad = leaves(tree), []

    def work():
        for _ in range(300):
            if leaves(tree_map(lambda x: x, tree)) != expected:
                bad.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not bad


# --- Maps ------------------------------------------------------------------------------------


def test_map_over_several_trees():
    assert tree_map(lambda x: -x, {"a": 1, "b": [2, None]}) == {"a": -1, "b": [-2, None]}
    assert tree_map(lambda x, y: (x, y), [1, 2], [[1], (2, 3)]) == [(1, [1]), (2, (2, 3))]
    assert tree_map(lambda *xs: sum(xs), [1], [2], [3]) == [6]
    assert tree_map(lambda x, y: x is y, [None, 1], [None, 1], is_leaf=lambda x: x is None) == [
        True,
        True,
    ]


def test_errors_of_the_mapped_function_pass_through():
    empty = iter([])
    with pytest.raises(StopIteration):
        tree_map(lambda _: next(empty), [1, 2])
    with pytest.raises(ValueError, match="^invalid literal"):
        tree_map(lambda x, y: int(y), [1], ["y"])


# --- Key paths -------------------------------------------------------------------------------


def test_key_paths_of_every_kind():
    tree = {"a": [Pair(1, 2)], "b": Plain(3), "c": Layer(4), "d": Point(5, 6)}
    assert leaf_paths(tree) == [
        "['a'][0].x",
        "['a'][0].y",
        "['b'][<flat index 0>]",
        "['c'].weights",
        "['d'].x",
        "['d'].y",
    ]
    assert flatten_with_path(tree)[0][0] == ((DictKey("a"), SequenceKey(0), GetAttrKey("x")), 1)
    assert flatten_with_path(tree)[1] == structure(tree)


def test_keys_are_values():
    for key, text, attribute in [
        (SequenceKey(0), "[0]", "idx"),
        (DictKey("a"), "['a']", "key"),
        (GetAttrKey("x"), ".x", "name"),
        (FlattenedIndexKey(3), "[<flat index 3>]", "key"),
    ]:
        assert str(key) == text
        again = pickle.loads(pickle.dumps(key))
        assert again == key
        assert hash(again) == hash(key)
        assert repr(key) == f"{type(key).__name__}({attribute}={getattr(key, attribute)!r})"
    assert DictKey(1) != FlattenedIndexKey(1)


def test_keystr():
    path = (SequenceKey(0), DictKey("a"), GetAttrKey("x"), FlattenedIndexKey(3), "own")
    assert keystr(path) == "[0]['a'].x[<flat index 3>]own"
    assert keystr(path, simple=True, separator="/") == "0/a/x/3/own"
    assert keystr(path[:2], separator="/") == "[0]/['a']"
    assert keystr(()) == ""


def test_is_leaf_may_see_the_path():
    tree = [1, [2, 3]]
    pairs, treedef = flatten_with_path(tree, lambda path, _: len(path) == 1, True)
    assert pairs == [((SequenceKey(0),), 1), ((SequenceKey(1),), [2, 3])]
    assert str(treedef) == "PyTreeDef([*, *])"
    assert len(flatten_with_path(tree, lambda x: x == [2, 3])[0]) == 2


# --- Registration ----------------------------------------------------------------------------


def test_class_decorators():
    @pytrees.register_pytree_node_class
    class Box:
        def __init__(self, value, label):
            self.value, self.label = value, label

        def tree_flatten(self):
            return (self.value,), self.label

        @classmethod
        def tree_unflatten(cls, label, children):
            return cls(*children, label)

    assert isinstance(tree_map(lambda x: x + 1, Box(1, "l")), Box)
    assert tree_map(lambda x: x + 1, Box(1, "l")).value == 2
    assert leaf_paths(Box([1], "l")) == ["[<flat index 0>][0]"]
    assert str(structure(Box(1, "l"))) == "PyTreeDef(CustomNode(Box[l], [*]))"

    @pytrees.register_pytree_with_keys_class
    class Keyed(Box):
        def tree_flatten_with_keys(self):
            return (("value", self.value),), self.label

    assert leaf_paths(Keyed([1], "l")) == ["value[0]"]
    assert leaves(Keyed([1], "l")) == [1]


def test_registration_errors():
    class Bare:
        pass

    with fails(
        TypeError,
        "register_pytree_node_class: the class must define tree_flatten and tree_unflatten; "
        f"got {Bare!r} without tree_flatten and tree_unflatten.",
    ):
        pytrees.register_pytree_node_class(Bare)
    with fails(TypeError, "register_pytree_node: a node must be a class; got 3."):
        pytrees.register_pytree_node(3, None, None)
    with fails(
        PytreeError, "register_pytree_node: a class registers once; got <class 'list'> again."
    ):
        pytrees.register_pytree_node(list, lambda x: (x, None), lambda _, x: list(x))
    with fails(PytreeError, f"register_static: a class registers once; got {Color!r} again."):
        pytrees.register_static(Color)
    assert structure(Bare()) == structure(0)


def make_dataclass(**fields):
    @dataclasses.dataclass
    class Data:
        x: object
        y: object = dataclasses.field(default="y", metadata={"static": True})
        z: object = 3

    return pytrees.register_dataclass(Data, **fields)


def test_dataclass_fields_are_inferred():
    cls = make_dataclass()
    assert flatten(cls(1, 2, 3))[0] == [1, 3]
    assert leaf_paths(cls(1, 2, [3])) == [".x", ".z[0]"]
    assert tree_map(lambda v: v * 10, cls(1, 2, 3)) == cls(10, 2, 30)
    dropping = make_dataclass(drop_fields=["z"])
    assert tree_map(lambda v: v * 10, dropping(1, 2, 4)) == dropping(10, 2, 3)


def test_dataclass_fields_are_given():
    cls = make_dataclass(data_fields=["z"], meta_fields=["x", "y"])
    assert leaves(cls(1, 2, 3)) == [3]
    assert str(structure(cls(1, 2, 3))) == "PyTreeDef(CustomNode(Data[(1, 2)], [*]))"

    class Free:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytrees.register_dataclass(Free, data_fields=["a"], meta_fields=["b"])
    assert tree_map(lambda v: v + 1, Free(1, 2)).a == 2


DATACLASS_RULE = (
    "register_dataclass: data_fields and meta_fields must be the dataclass's fields with init=True"
)


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        (
            {"data_fields": ["x"]},
            TypeError,
            "register_dataclass: data_fields and meta_fields must be given together; "
            "got data_fields=['x'], meta_fields=None.",
        ),
        (
            {"data_fields": ["x", "y"], "meta_fields": ["y", "z"]},
            PytreeError,
            "register_dataclass: no field may be both data and metadata; got 'y' in both.",
        ),
        (
            {"data_fields": ["x"], "meta_fields": ["y"]},
            PytreeError,
            f"{DATACLASS_RULE}; got none of 'z'. Hint: drop_fields=['z'] leaves them out.",
        ),
        (
            {"data_fields": ["x", "w"], "meta_fields": ["y", "z"]},
            PytreeError,
            f"{DATACLASS_RULE}; got also 'w'.",
        ),
    ],
)
def test_dataclass_errors(fields, error, text):
    with fails(error, text):
        make_dataclass(**fields)


def test_dataclass_field_without_init_must_be_dropped():
    @dataclasses.dataclass
    class Derived:
        x: int
        double: int = dataclasses.field(init=False)

        def __post_init__(self):
            self.double = 2 * self.x

    with fails(
        PytreeError,
        f"{DATACLASS_RULE}; got also 'double'. Hint: drop_fields=['double'] leaves them out.",
    ):
        pytrees.register_dataclass(Derived)
    pytrees.register_dataclass(Derived, drop_fields=["double"])
    assert tree_map(lambda v: v + 1, Derived(1)).double == 4

    class NoDataclass:
        pass

    with fails(
        TypeError,
        "register_dataclass: data_fields and meta_fields must be given for a class that is no "
        f"dataclass; got {NoDataclass!r}.",
    ):
        pytrees.register_dataclass(NoDataclass)


def test_is_tree_node():
    nodes = [list, tuple, dict, type(None), Point, OrderedDict, defaultdict, Partial, Layer, Color]
    assert all(map(pytrees.is_tree_node, nodes))
    assert not any(map(pytrees.is_tree_node, [int, str, set, np.ndarray, collections.deque]))


# --- Partial ---------------------------------------------------------------------------------


def power(base, exponent=2):
    return base**exponent


def test_partial_is_a_function_and_a_tree():
    square = Partial(power, 3, exponent=2)
    assert square() == 9
    assert repr(square) == f"Partial({power!r}, 3, exponent=2)"
    assert isinstance(square, functools.partial)
    assert leaves(square) == [3, 2]
    assert leaf_paths(square) == ["[<flat index 0>][0]", "[<flat index 1>]['exponent']"]
    assert tree_map(lambda x: x + 1, square)() == 64
    assert pickle.loads(pickle.dumps(square))() == 9
    with pytest.raises(TypeError, match="callable"):
        Partial(3)


@pytest.mark.parametrize("kind", [functools.partial, Partial])
def test_partial_of_a_partial_keeps_its_arguments_out_of_the_leaves(kind):
    inner = kind(power, 3)
    outer = Partial(inner, exponent=4)
    assert outer() == 81
    assert leaves(outer) == [4]
    assert repr(outer) == f"Partial({inner!r}, exponent=4)"
    assert structure(outer) == structure(Partial(inner, exponent=5))
    assert hash(structure(outer)) == hash(structure(Partial(inner, exponent=5)))
    assert str(inspect.signature(outer)) == "(*, exponent=4)"
    assert pickle.loads(pickle.dumps(outer))() == 81


# --- What is said when trees do not fit ------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "other", "text"),
    [
        (
            [1, [2, 3]],
            [1, [2, 3, 4]],
            "got a list of length 2 at tree[1] where rest[0] has a list of length 3.",
        ),
        ([1, 2], (1, 2), "got a list of length 2 at tree where rest[0] has a tuple of length 2."),
        (
            {"a": 1, "b": 2},
            {"a": 1, "c": 2},
            "got a dict with keys 'a', 'b' at tree where rest[0] has a dict with keys 'a', 'c' "
            "(Dict key mismatch).",
        ),
        (
            {"a": [1]},
            {"a": 1.0},
            "got a list of length 1 at tree['a'] where rest[0] has a leaf of type float.",
        ),
        (
            [None],
            [1],
            "got None at tree[0] where rest[0] has a leaf of type int. "
            "Hint: is_leaf=lambda x: x is None makes None a leaf.",
        ),
        (
            {"a": 1},
            OrderedDict(a=1),
            "got a dict with keys 'a' at tree where rest[0] has an OrderedDict with keys 'a'.",
        ),
        (
            defaultdict(int, a=1),
            defaultdict(list, a=1),
            "got a defaultdict with keys 'a' and default <class 'int'> at tree "
            "where rest[0] has a defaultdict with keys 'a' and default <class 'list'>.",
        ),
        (
            [Pair(1, [2], "n")],
            [Pair(1, {}, "n")],
            "got a list of length 1 at tree[0].y where rest[0] has a dict with no keys.",
        ),
        (
            Pair(1, 2, "n"),
            Pair(1, 2),
            "got a Pair with metadata 'n' at tree where rest[0] has a Pair.",
        ),
        (
            Layer([1]),
            Layer((1,)),
            "got a list of length 1 at tree.weights where rest[0] has a tuple of length 1.",
        ),
        (
            Plain(1),
            Plain(1, 2),
            "got a Plain (children: 1) at tree where rest[0] has a Plain (children: 2).",
        ),
        (Point(1, 2), (1, 2), "got a Point at tree where rest[0] has a tuple of length 2."),
        (
            Point(1, 2),
            collections.namedtuple("Point", "x y")(1, 2),
            "got a Point at tree where rest[0] has a Point of another class of that name.",
        ),
        (
            dict.fromkeys(range(10), 0),
            dict.fromkeys(range(1, 12), 0),
            "got a dict of 10 keys (only here: 0) at tree "
            "where rest[0] has a dict of 11 keys (only here: 10, 11) (Dict key mismatch).",
        ),
        (
            OrderedDict.fromkeys(range(9), 0),
            OrderedDict.fromkeys(reversed(range(9)), 0),
            "got an OrderedDict of 9 keys at tree "
            "where rest[0] has an OrderedDict of 9 keys that compares unequal.",
        ),
    ],
)
def test_map_says_where_trees_differ(tree, other, text):
    with fails(PytreeError, f"tree.map: tree must be a tree prefix of rest[0]; {text}"):
        tree_map(lambda x, y: x, tree, other)


def test_map_names_the_tree_that_differs():
    with pytest.raises(PytreeError, match=re.escape("tree prefix of rest[1]; got")):
        tree_map(lambda *xs: xs, [1], [1], (1,))


def test_broadcast_prefix():
    full = {"a": (1, [2, 3]), "b": 4}
    assert broadcast_prefix({"a": 0, "b": 1}, full) == [0, 0, 0, 1]
    assert broadcast_prefix({"a": (5, 6), "b": None}, {"a": (1, [2, 3]), "b": None}) == [5, 6, 6]
    assert broadcast_prefix([0, None], [1, (2, 3)], lambda x: x is None) == [0, None, None]
    assert broadcast_prefix([7], [()]) == []
    with fails(
        PytreeError,
        "vmap: in_axes must be a tree prefix of args; "
        "got a list of length 2 at in_axes[0] where args has a tuple of length 2.",
    ):
        broadcast_prefix(([0, None],), ((1, 2),), op="vmap", names=("in_axes", "args"))


def test_prefix_error_is_none_for_a_prefix():
    assert prefix_error("op", structure([0, (1, 2)]), [[5], (6, {})], "a", "b") is None


def test_every_mismatch_is_found():
    one = {"a": [1, 2], "b": Point(3, (4,)), "c": Layer([5])}
    other = {"a": [1, (2,)], "b": Point(3, [4]), "c": Layer(5)}
    found = [*find_mismatches(structure(one), structure(other))]
    assert [(keystr(m.path), m.expected, m.given) for m in found] == [
        ("['a'][1]", "a leaf", "a tuple of length 1"),
        ("['b'].y", "a tuple of length 1", "a list of length 1"),
        ("['c'].weights", "a list of length 1", "a leaf"),
    ]
    assert found[0].between("out1", "out2") == (
        "a leaf at out1['a'][1] where out2 has a tuple of length 1"
    )


def test_unflatten_counts_leaves():
    treedef = structure([0, 0])
    text = "tree.unflatten: leaves must number 2, for PyTreeDef([*, *]); got "
    with fails(PytreeError, text + "3."):
        unflatten(treedef, [1, 2, 3])
    with fails(PytreeError, text + "1."):
        unflatten(treedef, (1,))
    with fails(PytreeError, text + "too few leaves."):
        unflatten(treedef, iter([1]))
    with fails(
        TypeError,
        "tree.unflatten: the first argument must be a PyTreeDef; got a list. "
        "Hint: tree.unflatten(treedef, leaves)",
    ):
        unflatten([1, 2], treedef)


def test_errors_of_a_users_own_functions_pass_through():
    class Fragile:
        pass

    def explode(error):
        raise error

    pytrees.register_pytree_node(
        Fragile,
        lambda x: explode(x.on_flatten) if hasattr(x, "on_flatten") else ((1,), None),
        lambda _, children: explode(AttributeError("rebuild")),
    )
    with pytest.raises(AttributeError, match="^rebuild$"):
        tree_map(lambda x: x, Fragile())
    with pytest.raises(AttributeError, match="^rebuild$"):
        unflatten(structure(Fragile()), [1])
    bad = Fragile()
    bad.on_flatten = ValueError("flatten")
    for take_apart in (flatten, flatten_with_path):
        with pytest.raises(ValueError, match="^flatten$"):
            take_apart([bad])
    with pytest.raises(ZeroDivisionError):
        flatten([1], lambda x: 1 / 0)


def test_dict_keys_that_do_not_sort():
    text = (
        "pytree: the keys of a dict must sort; got 1, 'a' at {}. "
        "Hint: collections.OrderedDict(d) keeps the order it has."
    )
    with fails(PytreeError, text.format("the root")):
        flatten({1: 2, "a": 3})
    with fails(PytreeError, text.format("[1]['z']")):
        flatten_with_path([0, {"z": {1: 2, "a": 3}}])
    with fails(PytreeError, text.format("[0]")):
        flatten([defaultdict(int, {1: 2, "a": 3})])
    with fails(PytreeError, text.format("the root")):
        tree_map(lambda x, y: x, {"a": 1}, {1: 2, "a": 3})
    assert leaves(OrderedDict([(1, 2), ("a", 3)])) == [2, 3]


def test_a_tree_that_holds_itself():
    loop = []
    loop.append(loop)
    for take_apart in (flatten, flatten_with_path):
        with fails(
            PytreeError,
            "pytree: a tree must be finite, and nest less deep than the recursion limit; "
            "got a list that holds itself or nests deeper.",
        ):
            take_apart(loop)
    assert leaves([1]) == [1]


@pytest.mark.parametrize("also_plain", [False, True])
def test_classes_with_keys_are_flattened_with_and_without_them(also_plain):
    class Box:
        def __init__(self, *values):
            self.values = values

        def tree_flatten_with_keys(self):
            return [(weft.tree_util.GetAttrKey("value"), v) for v in self.values], "aux"

        @classmethod
        def tree_unflatten(cls, aux, children):
            assert aux == "aux"
            return cls(*children)

    if also_plain:
        Box.tree_flatten = lambda self: ([*self.values], "aux")
    weft.tree_util.register_pytree_with_keys_class(Box)
    assert weft.tree.leaves([Box(1, 2)]) == [1, 2]
    assert weft.tree.map(lambda x: x + 1, Box(1, 2)).values == (2, 3)
    ((path, leaf),) = weft.tree_util.tree_leaves_with_path(Box(5))
    assert leaf == 5 and weft.tree_util.keystr(path) == ".value"


def test_functions_held_by_partials_are_compared():
    held = pytrees._Opaque(max)
    assert held == pytrees._Opaque(max) != pytrees._Opaque(min)
    assert held != max and hash(held) == hash(pytrees._Opaque(max)) and held(1, 2) == 2
