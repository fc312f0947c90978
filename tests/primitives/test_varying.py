"""`Varying`, which types carry; the operations that change it are in test_collective.py."""

from weft.primitives import varying
from weft.primitives.varying import Varying


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
