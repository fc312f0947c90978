"""shard_map over explicit axes: types within it and of its results, over a mesh without devices.

As JAX 0.10.2 has them, but where a comment says more.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, jit, lax, shard_map
from weft.errors import ShardingTypeError
from weft.sharding import (
    AbstractMesh,
    AxisType,
    ManualAxisType,
    NamedSharding,
    get_abstract_mesh,
    reshard,
    use_abstract_mesh,
)

MESH = AbstractMesh((4, 2), ("X", "Y"), AxisType.Explicit)
AUTO = AbstractMesh((4, 2), ("X", "Y"), AxisType.Auto)
MIXED = AbstractMesh((4, 2), ("X", "Y"), (AxisType.Auto, AxisType.Explicit))


def struct(*spec, shape=(8, 4), mesh=MESH, **kinds):
    return weft.ShapeDtypeStruct(shape, np.float32, sharding=NamedSharding(mesh, P(*spec, **kinds)))


def result(fun, *structs, mesh=MESH):
    """The types of what a function gives, as text."""
    with use_abstract_mesh(mesh):
        return ", ".join(str(a) for a in weft.make_jaxpr(fun)(*structs).out_avals)


def within(fun, *structs, mesh=MESH, **settings):
    """Return the types of a function's results within a shard_map without in_specs."""
    seen = []

    def look(*args):
        out = fun(*args)
        seen.append(", ".join(str(x.aval) for x in weft.tree.leaves(out)))
        return jnp.ones(())

    result(shard_map(look, out_specs=P(), **settings), *structs, mesh=mesh)
    return seen[0]


XY = struct("X", "Y")
vary = lambda x, *names: lax.pcast(x, names or "X", to="varying")
terms = lambda x: lax.pcast(x, "X", to="unreduced")
shared = lambda x: lax.pcast(x, "X", to="reduced")
ONES = lambda *shape: jnp.ones(shape, np.float32)
SAME, VARIES = lambda: ONES(4), lambda: vary(ONES(4))
TERMS, SHARED = lambda: terms(vary(ONES(4))), lambda: shared(ONES(4))


def test_parts_have_the_rest_of_the_layout():
    same = lambda x: x
    assert within(same, XY) == "f32[2,2]{V:(X,Y)}"
    assert within(same, XY, axis_names={"X"}) == "f32[2,4@Y]{V:X}"
    assert within(same, struct(("X", "Y")), axis_names={"X"}) == "f32[2@Y,4]{V:X}"
    assert within(same, struct("X", unreduced={"Y"})) == "f32[2,4]{V:X, U:Y}"
    assert within(same, struct(reduced={"X"})) == "f32[8,4]{R:X}"
    assert within(same, struct("X", reduced={"Y"}), check_vma=False) == "f32[2,4]"
    assert within(same, struct(None, "Y", mesh=MIXED), mesh=MIXED, axis_names={"X"},
                  in_specs=P("X")) == "f32[2,4@Y]{V:X}"  # fmt: skip


def test_results_have_the_layout_of_the_specs():
    twice = lambda x: x * 2
    over = lambda f=twice, **settings: shard_map(f, **settings)
    assert result(over(out_specs=P("X", "Y")), XY) == "f32[8@X,4@Y]"
    assert result(over(out_specs=P("X"), axis_names={"X"}), XY) == "f32[8@X,4@Y]"
    assert result(over(out_specs=P(("X", "Y"))), struct(("X", "Y"))) == "f32[8@(X,Y),4]"
    moved = over(lambda x: reshard(x, P("Y")), out_specs=P("X"), axis_names={"X"})
    assert result(moved, XY) == "f32[8@(X,Y),4]"
    assert result(over(out_specs=P(reduced={"X"})), struct(reduced={"X"})) == "f32[8,4]{R:X}"
    later = over(lambda x: x, out_specs=P(unreduced={"X"}))  # what varies may be added up later
    assert result(later, struct("X")) == "f32[2,4]{U:X}"
    summed = over(lambda x: lax.psum(x, "Y"), out_specs=P("X"))
    assert result(summed, struct("X", unreduced={"Y"})) == "f32[8@X,4]"
    kept = over(lambda x: x, out_specs=P("X"), axis_names={"X"})
    assert result(kept, struct("X", unreduced={"Y"})) == "f32[8@X,4]{U:Y}"
    assert result(weft.smap(twice, out_axes=0, axis_name="X"), XY) == "f32[8@X,4@Y]"
    nested = over(lambda x: over(out_specs=P(None, "Y"))(x), out_specs=P("X"), axis_names={"X"})
    assert result(nested, XY) == "f32[8@X,4@Y]"
    # A value that all devices have may be split: that takes no communication (JAX asks for a
    # reshard).
    assert result(over(in_specs=P("X"), out_specs=P("X")), struct()) == "f32[8@X,4]"
    by_auto = over(in_specs=P("X", "Y"), out_specs=P("X", "Y"))
    assert result(by_auto, struct(None, "Y", mesh=MIXED), mesh=MIXED) == "f32[8,4@Y]"


def test_the_mesh_in_scope_says_what_is_manual():
    seen = []

    def look(x):
        seen.append((get_abstract_mesh().axis_types, x.aval.sharding.spec, x.aval.vma))
        return x

    result(shard_map(look, out_specs=P("X"), axis_names={"X"}), XY)
    result(shard_map(look, out_specs=P("X", "Y")), XY)
    manual = AxisType.Manual
    assert seen == [
        ((manual, AxisType.Explicit), P(None, "Y"), {"X"}),
        ((manual, manual), P(None, None), {"X", "Y"}),
    ]
    kinds = struct("X", unreduced={"Y"}).aval.manual_axis_type
    assert kinds == ManualAxisType() and kinds.varying == set()  # outside


CASTS = {
    (SAME, "varying"): "f32[4]{V:X}", (SAME, "reduced"): "f32[4]{R:X}",
    (VARIES, "unreduced"): "f32[4]{U:X}", (SHARED, "varying"): "f32[4]{V:X}",
    (VARIES, "varying"): "f32[4]{V:X}",  # JAX refuses what changes nothing
}  # fmt: skip


@pytest.mark.parametrize("start", [SAME, VARIES, TERMS, SHARED])
@pytest.mark.parametrize("to", ["varying", "unreduced", "reduced", "invarying"])
def test_casts(start, to):
    cast = lambda x: lax.pcast(start(), "X", to=to)
    if (start, to) in CASTS:
        assert within(cast, XY) == CASTS[start, to]
    else:
        with pytest.raises(ValueError, match="pcast: (a value must be|to must be 'varying', 'u)"):
            within(cast, XY)


KINDS = {
    "f32[4]": [lambda: lax.psum(TERMS(), "X"), lambda: lax.psum(SHARED(), "X")],
    "f32[4]{U:X}": [
        lambda: TERMS() + TERMS(), lambda: TERMS() * SHARED(), lambda: SHARED() * TERMS(),
        lambda: weft.grad(lambda w: jnp.sum(w * VARIES()))(SHARED()),
    ],
    "f32[4]{R:X}": [
        lambda: jnp.sin(SHARED()), lambda: SHARED() * 2, lambda: SHARED() + SAME(),
        lambda: weft.grad(lambda w: jnp.sum(lax.psum(w, "X")))(TERMS()),
    ],
    "f32[4]{V:X}": [lambda: SHARED() * VARIES()],
    "f32[4]{V:Y}": [lambda: lax.psum(vary(TERMS(), "Y"), "X")],
    "f32[4]{V:Y, U:X}": [lambda: vary(TERMS(), "Y")],
    "f32[16]{R:X}": [lambda: lax.all_gather(VARIES(), "X", tiled=True, to="reduced")],
    "f32[1]{V:X}": [lambda: lax.psum_scatter(TERMS(), "X", tiled=True)],
    "f32[1,1]{V:X}": [
        lambda: weft.grad(lambda w: jnp.sum(
            lax.all_gather(w, "X", tiled=True, to="reduced") * vary(ONES(4, 1))
        ))(vary(ONES(1, 1))),
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", KINDS)
def test_kinds_of_results(text):
    for fun in KINDS[text]:
        assert within(lambda x, fun=fun: fun(), XY) == text
    assert within(lambda x: lax.psum(terms(x), "X"), np.ones((8, 4), np.float32), mesh=AUTO,
                  in_specs=P("X")) == "f32[2,4]"  # fmt: skip


def test_cotangents_of_parts():
    def loss(w, x):
        f = lambda w, x: lax.psum(jnp.sum(x @ w), "X")
        return shard_map(f, out_specs=P())(w, x)

    w = struct(shape=(4, 3), reduced={"X"})
    assert result(weft.grad(loss, (0, 1)), w, struct("X")) == "f32[4,3]{U:X}, f32[8@X,4]"
    added = lambda x: jnp.sum(shard_map(lambda x: lax.psum(x, "Y"), out_specs=P("X"))(x))
    assert result(weft.grad(added), struct("X", unreduced={"Y"})) == "f32[8@X,4]{R:Y}"


REFUSED = {
    "in_specs must be how arguments lie over explicit axes; got P(None, 'X') for f32[8@X,4@Y] in "
    "the call of <lambda>. Hint: leave in_specs out, or call it with weft.reshard(x, P(None, 'X'))":
        lambda: (XY, {"in_specs": P(None, "X")}),
    "in_specs must be how arguments lie over explicit axes; got P(reduced={'X'}) for f32[8,4]":
        lambda: (struct(), {"in_specs": P(reduced={"X"})}),
    "in_specs must be given where types do not say how arguments lie, along axes that are not "
    "explicit; got none for <lambda> over 'X'":
        lambda: (struct(None, "Y", mesh=MIXED), {"mesh": MIXED}),
    "axes that the function is for must split an array's axis before others; got f32[8@(Y,X),4]":
        lambda: (struct(("Y", "X")), {"axis_names": {"X"}, "out_specs": P("X")}),
    "out_specs must say along which explicit axes a result is unreduced; got P('X',) for "
    "f32[2,4]{V:X, U:Y}, result of <lambda>": lambda: (struct("X", unreduced={"Y"}), {}),
    "Hint: lax.psum(x, 'Y'), or P(unreduced={'Y'})": lambda: (struct("X", unreduced={"Y"}), {}),
    "out_specs must say along which explicit axes a result is reduced; got P('X',) for "
    "f32[2,4]{V:X, R:Y}": lambda: (struct("X", reduced={"Y"}), {}),
    "Hint: lax.pcast(x, 'X', to='reduced')": lambda: (struct(), {"out_specs": P(reduced={"X"})}),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_not_fit_is_refused(text):
    x, settings = REFUSED[text]()
    mesh = settings.pop("mesh", MESH)
    with pytest.raises((ShardingTypeError, TypeError)) as error:
        result(shard_map(lambda x: x, **{"out_specs": P("X"), **settings}), x, mesh=mesh)
    assert "shard_map: " in str(error.value) and text in str(error.value)


def test_terms_do_not_go_with_others():
    for fun in (lambda: TERMS() + SAME(), lambda: TERMS() * VARIES(), lambda: jnp.sin(TERMS())):
        with pytest.raises(ShardingTypeError, match="terms of a sum .*must be added up first; got"):
            within(lambda x, fun=fun: fun(), XY)


# --- devices that take different ways, where JAX waits until XLA ends the process ----------------

MEET = "what decides must be the same on devices that wait for each other"
at = lambda name="X": lax.axis_index(name)
choose = lambda pred, f, g=lambda x: x * 2: lambda x: lax.cond(pred(), f, g, x)
total = lambda x: x + lax.psum(x, "X")
over_y = lambda x: x + lax.psum(x, "Y")
REPEAT = lambda bound, f: lambda x: lax.fori_loop(0, bound(), lambda i, c: f(c), x)
UNTIL = lambda pred, f: lambda x: lax.while_loop(lambda c: pred(c), f, x)
FIRST = lambda: at() == 0
in_loop = lambda f: lambda x: lax.scan(f, (True, x), length=2)
in_map = lambda f: weft.vmap(f, axis_name="V")
less = lambda x: x - lax.psum(x, "V")


@pytest.mark.parametrize(
    "fun",
    [
        choose(FIRST, total),
        choose(FIRST, jit(total)),
        choose(FIRST, choose(lambda: at("Y") == 0, total)),
        choose(FIRST, lambda x: lax.scan(lambda c, _: (total(c), None), x, None, 2)[0]),
        choose(FIRST, lambda x: lax.pmax(x, "X") + x, total),  # of one shape: XLA mixes them up
        choose(FIRST, lambda x: total(total(x)), lambda x: total(total(x))),
        choose(FIRST, lambda x: lax.psum(x, ("X", "Y")) + x),
        choose(FIRST, lambda x: lax.all_gather(x, "X").sum(0)),
        choose(FIRST, lambda x: lax.ppermute(x, "Y", [(0, 1), (1, 0)])),  # of all devices, on CPU
        lambda x: lax.switch(at(), [total, jnp.sin, jnp.cos], x),
        REPEAT(lambda: at() + 1, total),
        UNTIL(lambda c: c.sum() < 9, total),
        UNTIL(lambda c: total(c).sum() < 9, lambda c: c * 2),
        lambda x: lax.while_loop(lambda c: c[0] < at(), lambda c: (c[0] + 1, total(c[1])), (0, x)),
        in_loop(lambda c, _: ((FIRST(), choose(lambda: c[0], total)(c[1])), None)),
    ],
)  # fmt: skip
def test_devices_that_differ_must_not_wait_for_each_other(fun):
    with pytest.raises(ShardingTypeError, match=MEET):
        within(fun, XY)


@pytest.mark.parametrize(
    "fun",
    [
        choose(lambda: at() == 0, over_y),
        choose(lambda: lax.pmax(FIRST(), "X"), total),
        choose(FIRST, total, lambda x: x - lax.psum(x, "X")),
        choose(FIRST, lambda x: x + at()),
        choose(FIRST, lambda x: x + jnp.ones(2)),
        choose(FIRST, lambda x: lax.psum(x, "X", axis_index_groups=[[0], [1], [2], [3]])),
        REPEAT(lambda: at() + 1, over_y),
        REPEAT(lambda: 3, total),
        REPEAT(lambda: lax.psum(1, "X"), total),
        UNTIL(lambda c: lax.psum(c, ("X", "Y")).sum() < 9, total),
        in_map(choose(lambda: at("V") == 0, less)),
        in_map(lambda x: lax.cond(x[0] > 0, less, jnp.sin, x)),
        weft.grad(lambda x: choose(FIRST, over_y)(x).sum()),
    ],
)  # fmt: skip
def test_devices_that_decide_alike_may_wait_for_each_other(fun):
    within(fun, XY)
