"""Partition specs: how they print, pickle and compare."""

import pickle

import pytest

import weft
from weft import P


@pytest.mark.parametrize(
    "spec, text",
    [
        (P(), "P()"),
        (P("x"), "P('x',)"),
        (P("x", None), "P('x', None)"),
        (P(("x",)), "P('x',)"),
        (P(()), "P(None,)"),
        (P(["x", "y"], None), "P(('x', 'y'), None)"),
        (P(P.UNCONSTRAINED, "x"), "P(UNCONSTRAINED, 'x')"),
        (P("x", unreduced={"y"}), "P('x', unreduced={'y'})"),
        (P(unreduced={"x"}), "P(unreduced={'x'})"),
        (P("x") + P("y"), "P('x', 'y')"),
        (P("x") + ("y",), "P('x', 'y')"),
        (("y",) + P("x"), "P('y', 'x')"),
        (P(*P("x"), "y"), "P('x', 'y')"),
        (P("x").update(partitions=("y",)), "P('y',)"),
        (P(1), "P(1,)"),
    ],
)
def test_specs_print_as_in_jax(spec, text):
    assert repr(spec) == text
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_specs_compare_as_in_jax():
    assert P("x") == P(("x",)) and hash(P("x")) == hash(P(("x",)))
    assert P("x") != P("x", None) and P() != P(None) and P(()) == P(None)
    assert P("x") != ("x",)
    assert len(P("x", None)) == 2 and list(P("x", None)) == ["x", None] and P("x", "y")[1] == "y"
    assert P("x", "y")[0:1] == ("x",)
    assert P("x", "y").index("y") == 1 and P("x", None, None).count(None) == 2
    assert weft.tree.leaves({"a": P("x"), "b": P(None, "y")}) == [P("x"), P(None, "y")]
    assert P("x", reduced={"y"}).reduced == {"y"} and P("x").unreduced == frozenset()


def test_axes_of_the_mesh_by_axis_of_the_array():
    spec = P("x", None, ("y", "z"), P.UNCONSTRAINED)
    assert [spec.axes(i) for i in range(5)] == [("x",), (), ("y", "z"), (), ()]
