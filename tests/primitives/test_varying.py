"""`Varying`, which types carry; the operations that change it are in test_collective.py."""

import numpy as np

import weft
from weft import P
from weft.core.primitive import Zero
from weft.primitives import varying
from weft.primitives.varying import Varying, add_terms
from weft.sharding import AbstractMesh, AxisType, NamedSharding


def test_varying_is_interned_by_the_set_of_its_names():
    v = Varying.of(["a", "b"])
    assert Varying.of(("b", "a")) is v and Varying.of(["a"]) | Varying.of(["b"]) is v
    assert v.without(["a"]) is Varying.of("b") and v.without(["a", "b"]) is Varying.of([]) is None
    assert (str(v), str(Varying.of(["a"]))) == ("{V:(a,b)}", "{V:a}")


def test_threads_that_make_the_same_varying_at_once_get_one(monkeypatch):
    ordered, quicker = varying.order_by_scope, []

    def slow(names):  # another thread makes it meanwhile
        if not quicker:
            quicker.append(None)
            quicker.append(Varying.of(names))
        return ordered(names)

    monkeypatch.setattr(varying, "order_by_scope", slow)
    assert Varying.of(["only", "here"]) is quicker[1]


def test_only_terms_of_a_sum_are_added_up():
    mesh = AbstractMesh((2,), ("i",), AxisType.Explicit)
    found = []

    def f(x, terms):
        for ct in (np.ones(2), Zero(x.aval), x, terms):
            found.append((ct, add_terms(ct)))

    lying = lambda spec: weft.ShapeDtypeStruct((2,), "float32", sharding=NamedSharding(mesh, spec))
    weft.make_jaxpr(f)(lying(P("i")), lying(P(unreduced={"i"})))
    *others, (terms, added) = found
    assert all(given is ct for ct, given in others)
    assert added is not terms and added.aval.sharded is None
