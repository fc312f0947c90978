"""Static and donated arguments: which they are, and calls without them."""

import numpy as np
import pytest

from weft.api.arguments import (
    FixedCall,
    Marked,
    find_donated,
    find_unhashable,
    fix_static,
    hashable_hint,
    mark_arguments,
)
from weft.api.functions import argument_names
from weft.pytrees import flatten


def loss(params, x, *more, mode="sum", **options):
    return params, x, more, mode, options


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ((None, None), Marked()),
        ((1, None), Marked((1,), ("x",))),
        (((0, -1), None), Marked((0, -1), ("params", "x"))),
        ((None, "x"), Marked((1,), ("x",))),
        ((None, ("mode", "rate")), Marked((), ("mode", "rate"))),
        ((5, ()), Marked((5,), ())),
    ],
)
def test_positions_and_names_complete_each_other(given, want):
    assert mark_arguments(loss, *given, "static_argnums") == want


@pytest.mark.parametrize("bad", [2.5, ["a"], [None], 2**31, [0, -(2**31)]])
def test_positions_are_integers(bad):
    with pytest.raises(TypeError, match="jit: static_argnums must be integers"):
        mark_arguments(lambda x, y: x, bad, None, "static_argnums")


def test_a_call_without_its_static_arguments():
    args, kwargs = (1.0, "two", 3.0, 4.0), {"mode": "mean", "rate": 5.0}
    static, dynamic, fun, named = fix_static(loss, Marked((1, -1), ("mode",)), args, kwargs)
    assert (dynamic, named) == ((1.0, 3.0), {"rate": 5.0})
    assert static == (((1, str, "two"), (3, float, 4.0)), (("mode", str, "mean"),))
    assert fun(*dynamic, **named) == loss(*args, **kwargs)
    assert argument_names(fun, flatten((dynamic, named))[1]) == ["params", "more[0]", "rate"]
    assert fix_static(loss, Marked(), args, kwargs) == FixedCall((), args, loss, kwargs)
    assert fix_static(loss, Marked((7,)), args, {}).args == args  # a call need not pass it


def test_leaves_that_are_donated():
    args, kwargs = ({"w": 0, "b": 1}, "static", [2, 3]), {"y": 4, "z": (5, 6)}
    tree = flatten(((args[0], args[2]), kwargs))[1]
    donated = lambda *donate: find_donated(Marked(*donate), Marked((1,)), 3, tree)
    assert donated() == () and donated((0,)) == (0, 1) and donated((-1,)) == (2, 3)
    assert donated((2,), ("z",)) == (2, 3, 5, 6) and donated((1,)) == ()


def test_the_part_that_has_no_hash():
    assert find_unhashable(((1, {"a": 1}), 2)) == ("[0][1]", {"a": 1})
    path, part = find_unhashable((1, (np.ones(2),)))
    assert path == "[1][0]" and type(part) is np.ndarray


def test_the_hint_for_what_has_no_hash():
    for x, hint in (
        ([1], "pass a tuple for a list."),
        ({1}, "pass a frozenset for a set."),
        ({1: 2}, "pass tuple(sorted(x.items())) for a dict, or a frozen dataclass."),
        (np.ones(2), "pass an array as an argument that is not static, or tuple(x.tolist())."),
        (bytearray(), "pass a frozen dataclass for an object with settings."),
    ):
        assert hashable_hint(x) == hint
