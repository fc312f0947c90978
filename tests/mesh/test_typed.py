"""Layouts in types: what each operation makes of them, as text, over a mesh without devices."""

import copy
import itertools
import math
import operator
import pickle

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import P, lax
from weft.errors import ShardingTypeError
from weft.mesh.typed import Sharded
from weft.sharding import AbstractMesh, AxisType, NamedSharding, reshard

MESH = AbstractMesh((4, 2), ("X", "Y"), AxisType.Explicit)


def struct(*spec, shape=(8, 4), dtype=np.float32, **kinds):
    return weft.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*spec, **kinds)))


def result(fun, *structs):
    """The type of what a function gives, as text."""
    with weft.sharding.use_abstract_mesh(MESH):
        return ", ".join(str(a) for a in weft.make_jaxpr(fun)(*structs).out_avals)


XY = struct("X", "Y")
ONES = lambda *shape: jnp.ones(shape, np.float32)
IDS = np.array([0, 1])
to = lambda x, *spec, **kinds: reshard(x, P(*spec, **kinds))

# from x of type f32[8@X,4@Y], as JAX has it but where a comment says more
TYPES = {
    "f32[8@X,4@Y]": [
        lambda x: x + 1, lambda x: jnp.sin(x), lambda x: x * x, lambda x: jnp.where(x > 0, x, 0),
        lambda x: jnp.clip(x, 0, 1), lambda x: lax.rev(x, (0,)), lambda x: lax.stop_gradient(x),
        lambda x: weft.nn.softmax(x), lambda x: weft.nn.relu(x), lambda x: jnp.tril(x),
        lambda x: weft.checkpoint(jnp.sin)(x), lambda x: lax.cond(True, jnp.sin, jnp.cos, x),
        lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x), lambda x: weft.jit(jnp.sin)(x),
        lambda x: lax.pad(x, 0.0, [(0, 0, 0), (0, 0, 0)]), lambda x: lax.optimization_barrier(x),
        lambda x: weft.vmap(lambda r: r * 2)(x),
        lambda x: lax.dynamic_slice(x, (0, 0), (8, 4)),
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1), (1, 1), "VALID"),
    ],
    "f32[4@Y]": [lambda x: x.sum(0), lambda x: x.max(0), lambda x: x.var(0)],
    "f32[8@X]": [
        lambda x: x.mean(1), lambda x: jnp.linalg.norm(x, axis=1), lambda x: x.prod(1),
        lambda x: weft.nn.logsumexp(x, 1), lambda x: weft.vmap(jnp.sum)(x),
    ],
    "f32[]": [lambda x: x.sum()],
    "f32[4@Y,8@X]": [lambda x: x.T, lambda x: x.swapaxes(0, 1)],
    "f32[1,8@X,4@Y]": [lambda x: x[None], lambda x: jnp.expand_dims(x, 0)],
    "f32[8@X,4@Y,1]": [lambda x: x.reshape(8, 4, 1)],
    "f32[4@X,2,4@Y]": [lambda x: x.reshape(4, 2, 4)],
    "f32[8@X,2@Y,2]": [lambda x: x.reshape(8, 2, 2)],
    "f32[32@(X,Y)]": [lambda x: x.reshape(-1)],
    "f32[3,8@X,4@Y]": [lambda x: jnp.broadcast_to(x, (3, 8, 4))],
    "f32[2,8@X,4@Y]": [lambda x: jnp.stack([x, x])],
    "f32[16@X,4@Y]": [lambda x: jnp.concatenate([x, x])],
    "f32[4@X,4@Y]": [lambda x: lax.dynamic_slice(x, (0, 0), (4, 4))],
    "f32[8@X,3]": [
        lambda x: x @ ONES(4, 3), lambda x: weft.vmap(lambda r, w: r @ w, (0, None))(x, ONES(4, 3)),
    ],
    "f32[2,4@Y]": [lambda x: ONES(2, 8) @ x],
    "f32[8@X,8]": [
        lambda x: jnp.einsum("ij,kj->ik", x, ONES(8, 4)),
        lambda x: lax.dot_general(x, x, (((1,), (1,)), ((), ())), out_sharding=P("X", None)),
    ],
    "f32[8,8]": [lambda x: lax.dot_general(x, x, (((1,), (1,)), ((), ())), out_sharding=P())],
    "f32[8@X,8]{U:Y}": [
        lambda x: lax.dot_general(
            x, x, (((1,), (1,)), ((), ())), out_sharding=P("X", None, unreduced={"Y"})
        ),
    ],
    "f32[8,4@X]": [lambda x: to(x, None, "X")],
    "f32[32@X]": [lambda x: lax.reshape(x, (32,), out_sharding=P("X"))],
    "f32[8@X,2@Y], f32[8@X,2@Y]": [lambda x: jnp.split(x, 2, 1)],
    "i32[4@Y]": [lambda x: jnp.argmax(x, 0)],
    "i32[8@X,4@Y]": [lambda x: lax.bitcast_convert_type(x, np.int32)],
    "bf16[8@X,4@Y]": [lambda x: x.astype(jnp.bfloat16)],
    "f32[8,4]": [lambda x: to(x)],
    "f32[8@X]{U:Y}": [
        lambda x: lax.dot_general(
            x, to(ONES(4), "Y"), (((1,), (0,)), ((), ())), out_sharding=P("X", unreduced={"Y"})
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", TYPES)
def test_types_of_results(text):
    for fun in TYPES[text]:
        assert result(fun, XY) == text


REFUSED = {
    "reshape: axis 0 must not be split over a mesh here": lambda x: x.reshape(2, 4, 4),
    "the axis that is summed over is split in both operands": lambda x: x @ x.T,
    "sort: axis 0 must not be split": lambda x: jnp.sort(x, 0),
    "cumsum: axis 1 must not be split": lambda x: jnp.cumsum(x, 1),
    "top_k: axis 1 must not be split": lambda x: lax.top_k(x, 2),
    "gather: axis 0 must not be split": lambda x: x[IDS],
    "add: operands must be split alike over the mesh": lambda x: to(x, "X") + to(x, None, "X"),
    "tile: axis 0 must not be split": lambda x: jnp.tile(x, (2, 1)),
    "must be added up first": lambda x: jnp.sin(
        lax.dot_general(x, x, (((1,), (1,)), ((), ())), out_sharding=P("X", None, unreduced={"Y"}))
    ),
    "must name explicit axes of the mesh; got 'Z'": lambda x: lax.reshape(
        x, (32,), out_sharding=NamedSharding(AbstractMesh((2,), ("Z",), AxisType.Auto), P("Z"))
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_ambiguous_is_refused(text):
    with pytest.raises(ShardingTypeError) as error:
        result(REFUSED[text], XY)
    assert text in str(error.value) and "got" in str(error.value)


ENTRIES = (None, "X", "Y", ("X", "Y"), ("Y", "X"))
SHAPES = {
    (64,): [(8, 8), (4, 16), (2, 32), (1, 64), (4, 2, 8), (2, 4, 8), (4, 16, 1), (1, 8, 8)],
    (8, 8): [(64,), (4, 2, 8), (8, 4, 2), (2, 4, 8), (8, 1, 8), (4, 16), (32, 2), (4, 2, 4, 2)],
    (4, 2, 8): [(64,), (8, 8), (4, 16), (4, 2, 4, 2), (2, 2, 2, 8), (32, 2), (1, 8, 8)],
    (6, 8): [(48,), (2, 3, 8), (3, 2, 8), (2, 24), (3, 16), (12, 4)],
}


def list_specs(shape):
    """Every spec over the mesh that splits an array of this shape evenly, with all entries."""
    for spec in itertools.product(ENTRIES, repeat=len(shape)):
        names = [name for entry in map(names_of, spec) for name in entry]
        counts = [math.prod(MESH.shape[name] for name in names_of(entry)) for entry in spec]
        if len({*names}) == len(names) and not any(map(operator.mod, shape, counts)):
            yield spec


def names_of(entry):
    return () if entry is None else entry if isinstance(entry, tuple) else (entry,)


def parts_of(shape, spec):
    """For each device the numbers of the elements that it holds, in its order."""
    held = []
    for place in itertools.product(*map(range, MESH.axis_sizes)):
        part = np.arange(math.prod(shape)).reshape(shape)
        for axis, entry in enumerate(spec):
            for name in names_of(entry):
                pieces = np.split(part, MESH.shape[name], axis)
                part = pieces[place[MESH.axis_names.index(name)]]
        held.append(part.ravel().tolist())
    return held


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reshape_splits_what_stays_on_its_device(shape):
    """Every way to split, merge and regroup axes, from every layout."""
    for sizes, spec in itertools.product(SHAPES[shape], list_specs(shape)):
        held = parts_of(shape, spec)
        kept = [s for s in list_specs(sizes) if parts_of(sizes, s) == held]
        split = [i for i, entry in enumerate(spec) if entry and shape[i] > 1]
        try:
            with weft.sharding.use_abstract_mesh(MESH):
                fun = lambda x, sizes=sizes: lax.reshape(x, sizes)
                got = (*weft.eval_shape(fun, struct(*spec, shape=shape)).sharding.spec,)
        except ShardingTypeError:
            assert not kept
        else:  # axes that are all split become one that is, as JAX has it
            merged = len(sizes) == 1 and split == [*range(len(split))]
            assert got in kept or merged, (shape, spec, sizes, got)


def test_derivatives_lie_as_their_values():
    w = struct(None, "Y", shape=(4, 6))
    x = struct("X", None)
    loss = lambda x, w: jnp.tanh(x @ w).sum()
    assert result(weft.grad(loss, (0, 1)), x, w) == "f32[8@X,4], f32[4,6@Y]"
    assert result(lambda x: weft.jvp(jnp.sin, (x,), (x,)), XY) == "f32[8@X,4@Y], f32[8@X,4@Y]"
    across = lambda x: weft.jvp(jnp.sin, (to(x, "X"),), (to(x, None, "X"),))
    assert result(across, XY) == "f32[8@X,4], f32[8@X,4]"  # tangents are sharded as their primals
    along = lambda x, w: weft.linearize(lambda w: x @ w, w)[1](to(w, "X"))
    assert result(along, x, w) == "f32[8@X,6@Y]"
    reduced = struct(shape=(4, 6), reduced={"X"})
    assert result(weft.grad(lambda w, x: (x @ w).sum()), reduced, x) == "f32[4,6]{U:X}"

    def summed_later(x, w):
        y = lax.dot(x, w, out_sharding=P("X", None, unreduced={"Y"}))
        return to(y, "X").sum()

    w = struct("Y", shape=(4, 3))
    assert result(weft.grad(summed_later, (0, 1)), XY, w) == "f32[8@X,4@Y], f32[4@Y,3]"


def test_loops_keep_layouts():
    step = lambda c, r: (c + r, c * r)
    run = lambda x: lax.scan(step, to(ONES(4), "Y"), x)
    assert result(run, struct(None, "Y")) == "f32[4@Y], f32[8,4@Y]"


def test_the_part_of_a_type():
    x = struct("X").aval
    assert str(x) == "f32[8@X,4]" and x.sharding == NamedSharding(MESH, P("X", None))
    lies = x.sharded
    assert Sharded.of(MESH, [("X",), ()]) is lies is pickle.loads(pickle.dumps(lies))
    assert copy.copy(lies) is lies and Sharded.of(MESH, [(), ()]) is None
    assert x is pickle.loads(pickle.dumps(x)) and repr(x) == "ShapedArray(float32[8@X,4])"
    assert str(x.update(shape=(8, 4, 1))) == "f32[8,4,1]" and x.update(dtype=np.int32) is not x
    both = Sharded.of(MESH, [()], unreduced={"X"}, reduced={"Y"})
    assert str(both) == "{U:X, R:Y}" and str(both.dual) == "{U:Y, R:X}" and lies.dual is lies
    assert repr(lies) == "Sharded(P('X', None))"


def test_the_compiler_decides_within_auto_axes():
    seen = []

    def look(x):
        seen.append((str(x.aval), weft.sharding.get_abstract_mesh().auto_axes))
        return x.reshape(2, 4, 4)

    f = weft.sharding.auto_axes(look)
    assert result(lambda x: f(x, out_sharding=P(None, "X")), XY) == "f32[2,4@X,4]"
    f = weft.sharding.auto_axes(look, axes="X", out_sharding=P(None, "X"))
    assert result(f, XY) == "f32[2,4@X,4]"
    assert seen == [("f32[8,4]", ("X", "Y")), ("f32[8,4@Y]", ("X",))]
    f = weft.sharding.auto_axes(jnp.sin, out_sharding=P("X"))
    assert result(weft.grad(lambda x: f(x).sum()), XY) == "f32[8@X,4@Y]"
    f = weft.sharding.auto_axes(jnp.cumsum, out_sharding=P("X"))
    assert result(weft.vmap(f, 1, 1), XY) == "f32[8@X,4@Y]"
    with pytest.raises(TypeError, match="auto_axes: needs out_sharding; got none. Hint: auto_axes"):
        result(weft.sharding.auto_axes(jnp.sin), XY)


def test_types_say_it_within_explicit_axes():
    auto = AbstractMesh((4, 2), ("X", "Y"), AxisType.Auto)
    seen = []
    look = lambda x: seen.append(str(x.aval)) or jnp.sin(x)
    with weft.sharding.use_abstract_mesh(auto):
        x = np.ones((8, 4), np.float32)
        for axes, spec in ((None, P("X", "Y")), ("Y", P(None, "Y"))):
            f = weft.sharding.explicit_axes(look, axes=axes, in_sharding=spec)
            (out,) = weft.make_jaxpr(weft.grad(lambda x, f=f: f(x).sum()))(x).out_avals
            assert str(out) == "f32[8,4]"
        with pytest.raises(TypeError, match="explicit_axes: needs in_sharding; got none"):
            weft.make_jaxpr(weft.sharding.explicit_axes(look))(x)
    assert seen == ["f32[8@X,4@Y]", "f32[8,4@Y]"]
