"""Mutable objects: passed to functions, closed over, made within, and forbidden contents."""

import dataclasses

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.api import mutable
from weft.errors import RefError
from weft.experimental import cur_qdd, hijax


@dataclasses.dataclass(frozen=True)
class Known:
    """Types of the arrays of a box, and its structure."""

    avals: tuple
    tree: object

    def normalize(self):
        return Known(tuple(a.normalize() for a in self.avals), self.tree)


class Box:
    """A pytree that may be set."""

    __slots__ = ("leaves", "tree")

    def cur_qdd(self):
        return Known(tuple(map(weft.typeof, self.leaves)), self.tree)

    def get(self):
        known = cur_qdd(self)
        return weft.tree.unflatten(known.tree, get_p.bind(self))

    def set(self, value):
        leaves, tree = weft.tree.flatten(value)
        set_p.bind(self, *leaves, tree=tree)


@dataclasses.dataclass(frozen=True)
class BoxType(hijax.MutableHiType):
    """The type of all boxes."""

    def lo_ty_qdd(self, known):
        return list(known.avals)

    def read_loval(self, known, box):
        return weft.tree.leaves(box.get())

    def new_from_loval(self, known, *arrays):
        return New("").to_lojax(*arrays, tree=known.tree)

    def update_from_loval(self, known, box, *arrays):
        box.set(weft.tree.unflatten(known.tree, arrays))


class New(hijax.HiPrimitive):
    def abstract_eval(self, *avals, tree):
        return hijax.AvalQDD(BoxType(), Known(avals, tree)), set()

    def to_lojax(self, *leaves, tree):
        box = Box()
        box.leaves, box.tree = leaves, tree
        return box


class Set(hijax.HiPrimitive):
    def to_lojax(self, box, *leaves, tree):
        box.leaves, box.tree = leaves, tree
        return []


class Get(hijax.HiPrimitive):
    def to_lojax(self, box):
        return list(box.leaves)


new_p, set_p, get_p = New("new"), Set("set"), Get("get")
hijax.register_hitype(Box, lambda box: BoxType())


def make_box(value):
    leaves, tree = weft.tree.flatten(value)
    return new_p.bind(*leaves, tree=tree)


def bump(box, by=1.0):
    box.set(box.get() + by)
    return box.get()


def test_a_function_under_jit_writes_what_it_is_passed():
    box, traces = make_box(jnp.float32(1)), []

    @weft.jit
    def f(box, other, x):
        traces.append(1)
        assert box is other and weft.typeof(box) == BoxType()
        return weft.jit(bump)(box, x) * 2

    assert [f(box, box, 3.0), f(box, box, 3.0)] == [8, 14] and traces == [1]
    assert box.get() == 7 and weft.tree.leaves([box, 1]) == [box, 1]
    assert weft.eval_shape(f, box, box, 1.0).shape == () and box.get() == 7
    assert f.eval_shape(box, box, 1.0)[0].shape == ()
    assert weft.jit(lambda box, n: bump(box, n), static_argnums=1)(box, 2) == 9
    only_read = weft.make_jaxpr(lambda box: box.get() + 1)(box)
    assert str(only_read) == "{ lambda ; a:f32[]. let b:f32[] = add a 1.0 in (b,) }"


def test_its_structure_may_change_where_it_is_passed():
    box = make_box({})
    weft.jit(lambda box, x: box.set({"sum": x.sum(), **box.get()}))(box, jnp.ones(3))
    assert box.get() == {"sum": 3}
    read = weft.jit(lambda: box.get()["sum"] + 1)  # from here on references hold it
    assert read() == 4
    box.set({"sum": jnp.float32(5)})
    assert read() == 6
    box.set({"sum": jnp.float32(7), "more": jnp.ones(2)})
    assert read() == 8 and box.get()["more"].shape == (2,)
    with pytest.raises(RefError, match="Box: an object that a traced function closes over must"):
        weft.jit(lambda: box.set({}))()


@weft.jit
def made_inside(x):
    box = make_box(x)
    lax.fori_loop(0, 3, lambda i, _: bump(box, box.get()) * 0, 0.0)
    return box.get()


def test_loops_and_branches_write_what_they_close_over():
    box = make_box(jnp.float32(3))
    lax.scan(lambda c, x: (bump(box, x), None), 0.0, jnp.ones(5))
    assert box.get() == 8
    lax.cond(box.get() > 0, lambda: bump(box), lambda: jnp.float32(0))
    lax.while_loop(lambda i: box.get() < 12, lambda i: (bump(box), i + 1)[1], 0)
    assert box.get() == 12
    add = weft.jit(lambda x: bump(box, x))
    assert [add(1.0), add(2.0), box.get()] == [13, 15, 15]
    box.set(jnp.float32(100))
    assert [add(1.0), box.get()] == [101, 101]
    assert made_inside(3.0) == 24 and weft.grad(made_inside)(3.0) == 8
    np.testing.assert_array_equal(weft.vmap(made_inside)(np.arange(3.0)), [0, 8, 16])


def test_derivatives_and_mapped_values_do_not_leak_into_objects_from_outside():
    box = make_box(jnp.float32(1))

    def loss(x, box, stop):
        box.set(stop(2 * x))
        return x**2 + box.get()

    assert weft.grad(loss)(3.0, box, lax.stop_gradient) == 6 and box.get() == 6
    with pytest.raises(RefError, match=r"Box: .* is differentiated; got f32\[\]"):
        weft.grad(loss)(4.0, box, lambda x: x)
    assert box.get() == 6
    with pytest.raises(RefError, match=r"Box: .* is mapped; got f32\[\]\. Hint: return it"):
        weft.vmap(lambda x: loss(x, box, lambda x: x))(np.arange(3.0))
    assert box.get() == 6
    assert weft.vmap(lambda x: x * bump(box))(np.arange(3.0)).tolist() == [0, 7, 14]
    own = lambda x: loss(x, make_box(x), lambda x: x)
    assert weft.grad(own)(3.0) == 8
    with pytest.raises(TypeError, match="scan: arguments must be arrays or numbers; got <.*Box"):
        lax.scan(lambda c, x: (c, x), box, None, length=2)


def test_objects_of_ended_functions_are_forgotten():
    boxes = [make_box(jnp.float32(i)) for i in range(40)]
    for box in boxes:
        lax.fori_loop(0, 2, lambda i, _, box=box: bump(box) * 0, 0.0)
    for x in range(200):
        assert weft.grad(lambda x: make_box(x).get())(float(x)) == 1
    assert len(mutable._states) <= 128
    assert [float(box.get()) for box in boxes] == list(range(2, 42))


def test_shardings_are_those_of_the_other_arguments_and_results():
    here = weft.sharding.SingleDeviceSharding(weft.devices()[0])
    box = make_box(jnp.ones(2))
    f = weft.jit(lambda box, x: bump(box, x), in_shardings=(None, here), out_shardings=here)
    assert f(box, np.ones(2)).tolist() == [2, 2]
