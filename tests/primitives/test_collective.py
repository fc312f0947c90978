"""Collectives under vmap, against NumPy on all copies at once; derivatives; errors; the text.

On devices they are tested in tests/parallel/on8/test_collectives.py, against the same references.
"""

import math
import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.primitives.test_conformance import assert_close
from weft import errors, grad, jvp, lax, make_jaxpr, vjp, vmap
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Axis
from weft.core.stage import stage
from weft.options import config
from weft.primitives import collective, copies, varying
from weft.primitives.varying import Varying
from weft.transforms.batch import in_scope
from weft.xla.hlo import Builder, Part, Value
from weft.xla.lower import lower_jaxpr

# --- references: stacks of the operands of all copies in, stacks of the results out -------------


def grouped(fun):
    """A reference for whole axes as one for groups."""

    def within(xs, *args, groups=None, **kwargs):
        if groups is None:
            return fun(xs, *args, **kwargs)
        found = {}
        for g in groups:
            found.update(zip(g, fun(xs[list(g)], *args, **kwargs), strict=True))
        return np.stack([found[i] for i in range(len(xs))])

    return within


def same(y, n):
    return np.stack([y] * n)


@grouped
def ref_psum(xs):
    dtype = np.int32 if xs.dtype == bool else xs.dtype
    return same(xs.sum(0, dtype=dtype), len(xs))


@grouped
def ref_pmean(xs):
    return same(xs.mean(0), len(xs))


def lexical(xs, pick):
    """The extremum as NumPy orders complex numbers."""
    return same(pick(np.sort(xs, axis=0)), len(xs))


@grouped
def ref_pmax(xs):
    return lexical(xs, lambda s: s[-1])


@grouped
def ref_pmin(xs):
    return lexical(xs, lambda s: s[0])


@grouped
def ref_all_gather(xs, axis=0, tiled=False):
    out = np.concatenate(list(xs), axis) if tiled else np.stack(list(xs), axis)
    return same(out, len(xs))


@grouped
def ref_psum_scatter(xs, scatter_dimension=0, tiled=False):
    dtype = np.int32 if xs.dtype == bool else xs.dtype
    total = xs.sum(0, dtype=dtype)
    parts = np.split(total, len(xs), scatter_dimension)
    return np.stack([p if tiled else p.squeeze(scatter_dimension) for p in parts])


@grouped
def ref_all_to_all(xs, split_axis, concat_axis, tiled=False):
    cuts = [np.split(x, len(xs), split_axis) for x in xs]
    out = []
    for j in range(len(xs)):
        parts = [c[j] for c in cuts]
        if tiled:
            out.append(np.concatenate(parts, concat_axis))
        else:
            out.append(np.stack([p.squeeze(split_axis) for p in parts], concat_axis))
    return np.stack(out)


def ref_ppermute(xs, perm):
    out = np.zeros_like(xs)
    for i, j in perm:
        out[j] = xs[i]
    return out


def ref_pshuffle(xs, perm):
    return xs[list(perm)]


def ref_pbroadcast(xs, source):
    return same(xs[source], len(xs))


def ref_axis_index(xs):
    return np.arange(len(xs), dtype=np.int32)


# Each row: the function, its reference, the shape of an operand, positional and keyword arguments.
GROUPS = [[0, 3], [2, 1]]
FULL = [(0, 2), (2, 1), (1, 3), (3, 0)]
ROWS = {
    "psum": (lax.psum, ref_psum, (3, 2), (), {}),
    "psum-groups": (lax.psum, ref_psum, (3, 2), (), {"groups": GROUPS}),
    "psum-uneven": (lax.psum, ref_psum, (2,), (), {"groups": [[0, 1, 3], [2]]}),
    "psum-each": (lax.psum, ref_psum, (2,), (), {"groups": [[0], [1], [2], [3]]}),
    "pmean": (lax.pmean, ref_pmean, (3, 2), (), {}),
    "pmean-groups": (lax.pmean, ref_pmean, (2,), (), {"groups": GROUPS}),
    "pmean-uneven": (lax.pmean, ref_pmean, (2,), (), {"groups": [[3], [0, 1, 2]]}),
    "pmax": (lax.pmax, ref_pmax, (3, 2), (), {}),
    "pmax-groups": (lax.pmax, ref_pmax, (3,), (), {"groups": GROUPS}),
    "pmin": (lax.pmin, ref_pmin, (3, 2), (), {}),
    "pmin-uneven": (lax.pmin, ref_pmin, (3,), (), {"groups": [[0, 1, 3], [2]]}),
    "all_gather": (lax.all_gather, ref_all_gather, (3, 2), (), {}),
    "all_gather-scalar": (lax.all_gather, ref_all_gather, (), (), {}),
    "all_gather-1": (lax.all_gather, ref_all_gather, (3, 2), (), {"axis": 1}),
    "all_gather-last": (lax.all_gather, ref_all_gather, (3, 2), (), {"axis": -1}),
    "all_gather-tiled": (lax.all_gather, ref_all_gather, (3, 2), (), {"tiled": True}),
    "all_gather-tiled-1": (
        lax.all_gather, ref_all_gather, (3, 2), (), {"tiled": True, "axis": 1}),
    "all_gather-groups": (lax.all_gather, ref_all_gather, (3,), (), {"groups": GROUPS, "axis": 1}),
    "psum_scatter": (lax.psum_scatter, ref_psum_scatter, (4, 3), (), {}),
    "psum_scatter-1": (
        lax.psum_scatter, ref_psum_scatter, (3, 4), (), {"scatter_dimension": 1}),
    "psum_scatter-tiled": (lax.psum_scatter, ref_psum_scatter, (8, 3), (), {"tiled": True}),
    "psum_scatter-groups": (lax.psum_scatter, ref_psum_scatter, (2, 3), (), {"groups": GROUPS}),
    "psum_scatter-groups-tiled": (
        lax.psum_scatter, ref_psum_scatter, (3, 6), (),
        {"groups": GROUPS, "tiled": True, "scatter_dimension": -1}),
    "all_to_all-same": (lax.all_to_all, ref_all_to_all, (4, 3), (0, 0), {}),
    "all_to_all-up": (lax.all_to_all, ref_all_to_all, (4, 3, 2), (0, 1), {}),
    "all_to_all-up-2": (lax.all_to_all, ref_all_to_all, (4, 3, 2), (0, 2), {}),
    "all_to_all-down": (lax.all_to_all, ref_all_to_all, (3, 2, 4), (2, 0), {}),
    "all_to_all-down-1": (lax.all_to_all, ref_all_to_all, (3, 2, 4), (-1, -2), {}),
    "all_to_all-tiled": (lax.all_to_all, ref_all_to_all, (8, 3), (0, 1), {"tiled": True}),
    "all_to_all-tiled-same": (lax.all_to_all, ref_all_to_all, (3, 8), (1, 1), {"tiled": True}),
    "all_to_all-groups": (lax.all_to_all, ref_all_to_all, (3, 2), (1, 0), {"groups": GROUPS}),
    "ppermute": (lax.ppermute, ref_ppermute, (3,), (FULL,), {}),
    "ppermute-some": (lax.ppermute, ref_ppermute, (3,), ([(0, 1), (3, 0)],), {}),
    "ppermute-none": (lax.ppermute, ref_ppermute, (3,), ([],), {}),
    "pshuffle": (lax.pshuffle, ref_pshuffle, (3,), ([2, 0, 3, 1],), {}),
    "pbroadcast": (lax.pbroadcast, ref_pbroadcast, (3, 2), (2,), {}),
}  # fmt: skip
N = 4
rows = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)


def stack_of(row, dtype=np.float32, n=N):
    rng = np.random.default_rng(1)
    x = rng.integers(0 if np.dtype(dtype).kind == "u" else -3, 4, (n, *row[2]))
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.integers(-3, 4, x.shape)
    return x.astype(dtype)


def applied(row, names):
    fun, _, _, args, kwargs = row
    kwargs = {("axis_index_groups" if k == "groups" else k): v for k, v in kwargs.items()}
    return lambda x: fun(x, names, *args, **kwargs)


def expected(row, xs):
    _, ref, _, args, kwargs = row
    return ref(xs, *args, **kwargs)


def check(got, want, dtype=np.float32):
    got = np.asarray(got)
    if np.dtype(dtype).kind in "iub":
        assert got.dtype.kind == want.dtype.kind or want.dtype.kind == "f"
    assert_close(got, want, 2e-6)


# --- values -------------------------------------------------------------------------------------


@pytest.mark.sample(one_in=8)
@rows
def test_mapped_along_each_axis(row):
    xs = stack_of(row)
    want = expected(row, xs)
    fun = applied(row, "i")
    last = lambda xs: vmap(fun, axis_name="i", out_axes=-1)(xs)

    def each_axis(xs):
        moved = [jnp.moveaxis(xs, 0, d) for d in range(xs.ndim)]
        return [vmap(fun, in_axes=d, axis_name="i")(x) for d, x in enumerate(moved)], last(xs)

    found, got = weft.jit(each_axis)(xs)
    for y in [*found, vmap(fun, axis_name="i")(xs)]:
        check(y, want)
    check(np.moveaxis(np.asarray(got), -1, 0), want)


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "complex64", "bool", "float16"])
@rows
def test_dtypes(row, dtype):
    xs = stack_of(row, dtype)
    got = weft.jit(vmap(applied(row, "i"), axis_name="i"))(xs)
    want = expected(row, xs)
    check(got, want, dtype)
    if row[1] is not ref_pmean:
        assert got.dtype == (np.int32 if want.dtype == np.int64 else want.dtype)


@rows
def test_operand_that_is_not_mapped(row):
    x = stack_of(row)[0]
    got = weft.jit(vmap(lambda _: applied(row, "i")(x), axis_name="i"))(np.zeros(N, np.float32))
    check(got, expected(row, same(x, N)))


@pytest.mark.sample(one_in=4)
@rows
def test_mapped_along_an_axis_that_is_not_named(row):
    # the named axis is the outer one, so the inner vmap has to leave the collective standing
    xs = np.stack([stack_of(row), stack_of(row)[::-1]])
    want = np.stack([expected(row, x) for x in xs])
    fun = applied(row, "i")

    def each_axis(xs):
        moved = [jnp.moveaxis(xs, 0, d + 1) for d in range(xs.ndim - 1)]
        inner = [vmap(fun, in_axes=d, axis_name="j") for d in range(xs.ndim - 1)]
        return [vmap(f, axis_name="i", out_axes=1)(x) for f, x in zip(inner, moved, strict=True)]

    for got in weft.jit(each_axis)(xs):
        check(got, want)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("names", [("i", "j"), ("j", "i")])
@rows
def test_two_named_axes(row, names):
    # four copies as two axes of two
    xs = stack_of(row)
    want = expected(row, xs)
    fun = applied(row, names)
    square = lambda y: y.reshape(2, 2, *y.shape[1:])
    if names == ("j", "i"):
        square = lambda y: y.reshape(2, 2, *y.shape[1:]).swapaxes(0, 1)
    both = weft.jit(vmap(vmap(fun, axis_name="j"), axis_name="i"))
    check(both(square(xs)), square(want))
    # an operand that only one of them maps
    if row[1] is ref_psum:
        once = vmap(vmap(fun, in_axes=None, axis_name="j", axis_size=2), axis_name="i")
        pair = same(xs[:2], 2).swapaxes(0, 1)
        flat = pair if names == ("i", "j") else pair.swapaxes(0, 1)
        check(weft.jit(once)(xs[:2]), square(expected(row, flat.reshape(N, *row[2]))))


def test_three_named_axes_in_any_order():
    xs = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    place = {"i": 0, "j": 1, "k": 2}
    for names in (("k", "i", "j"), ("j", "k", "i")):
        order = [place[n] for n in names]
        fun = lambda x, names=names: (lax.all_gather(x, names), lax.axis_index(names))
        every, index = vmap(vmap(vmap(fun, axis_name="k"), axis_name="j"), axis_name="i")(xs)
        flat = xs.transpose(order).reshape(-1)
        np.testing.assert_array_equal(every, np.broadcast_to(flat, (2, 3, 4, 24)))
        np.testing.assert_array_equal(np.asarray(every)[0, 0, 0][np.asarray(index)], xs)


def test_empty_operands():
    x = np.zeros((N, 0, 3), np.float32)
    assert vmap(lambda x: lax.psum(x, "i"), axis_name="i")(x).shape == (N, 0, 3)
    assert vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(x).shape == (N, N, 0, 3)


def test_nan_is_the_extremum():
    x = np.array([1, np.nan, 2], np.float32)
    for fun in (lax.pmax, lax.pmin):
        assert np.isnan(vmap(lambda x, f=fun: f(x, "i"), axis_name="i")(x)).all()


def test_pytrees_and_constants():
    def f(x):
        out = lax.psum({"a": x, "b": (x + 1, 2)}, "i")
        return out, lax.psum(1, "i"), lax.pmean({"c": 3, "d": True}, "i"), lax.psum(True, "i")

    x = np.arange(3.0, dtype=np.float32)
    out, n, mean, true = vmap(f, axis_name="i", out_axes=None)(x)
    assert (float(out["a"]), float(out["b"][0]), out["b"][1], n, true) == (3, 6, 6, 3, 3)
    assert mean == {"c": 3.0, "d": 1.0}
    const = np.array([1.5, 2], np.float32)
    seen = []
    vmap(lambda x: seen.append((lax.psum(const, "i"), lax.axis_size("i"))), axis_name="i")(x)
    assert type(seen[0][0]) is np.ndarray and seen[0][1] == 3
    np.testing.assert_array_equal(seen[0][0], 3 * const)
    half = vmap(lambda x: lax.psum(2.5, "i", axis_index_groups=[[0, 1], [2, 3]]), axis_name="i")
    np.testing.assert_array_equal(half(np.zeros(4)), 5.0)


def test_results_that_are_the_same_in_all_copies_are_not_mapped():
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    for fun in (lax.psum, lax.pmean, lax.pmax, lax.pmin, lax.all_gather):
        got = vmap(lambda x, f=fun: f(x, "i"), axis_name="i", out_axes=None)(x)
        assert got.ndim == (2 if fun is lax.all_gather else 1)
    assert vmap(lambda x: lax.pbroadcast(x, "i", 2), axis_name="i", out_axes=None)(x)[1] == 5


def test_positional_axes():
    x = np.arange(24.0, dtype=np.float32).reshape(4, 3, 2)
    for fun, ref in ((lax.psum, np.sum), (lax.pmean, np.mean), (lax.pmax, np.max)):
        got = vmap(lambda x, f=fun: f(x, ("i", 0)), axis_name="i", out_axes=None)(x)
        np.testing.assert_allclose(got, ref(x, (0, 1)), rtol=1e-6)
        np.testing.assert_allclose(fun(x, (0, -1)), ref(x, (0, 2)), rtol=1e-6)
    np.testing.assert_array_equal(lax.psum(x, ()), x)


def test_the_innermost_of_two_axes_with_one_name():
    x = np.ones((2, 3), np.float32)
    both = vmap(vmap(lambda x: lax.psum(x, "i"), axis_name="i"), axis_name="i")
    np.testing.assert_array_equal(both(x), 3 * x)
    mixed = vmap(lambda x: vmap(lambda y: lax.psum(x, "i"), axis_name="i")(x), axis_name="i")
    np.testing.assert_array_equal(mixed(x), np.full((2, 3, 3), 3))


def test_spmd_axis_name_changes_no_values():
    x = np.arange(4.0, dtype=np.float32)
    got = vmap(lambda x: lax.psum(x, "i"), axis_name="i", spmd_axis_name="data")(x)
    np.testing.assert_array_equal(got, np.full(4, 6))


# --- inside of other programs -------------------------------------------------------------------

X = np.arange(1.0, 5.0, dtype=np.float32)


def test_in_jit_checkpoint_and_custom_rules():
    share = lambda x: x / lax.psum(x, "i")
    custom = weft.custom_jvp(share)
    custom.defjvp(lambda primals, dots: (share(*primals), dots[0]))
    rule = weft.custom_vjp(share)
    rule.defvjp(lambda x: (share(x), lax.axis_index("i")), lambda i, ct: (ct * i,))
    for f in (weft.jit(share), weft.checkpoint(share), custom, rule):
        np.testing.assert_allclose(vmap(f, axis_name="i")(X), X / 10, rtol=1e-6)
    got = vmap(grad(rule), axis_name="i")(X)
    np.testing.assert_array_equal(got, np.arange(4))


def test_in_loops_whose_operands_are_not_mapped():
    def scanned(_):
        step = lambda c, x: (c + x * lax.axis_index("i"), lax.psum(c, "i"))
        return lax.scan(step, jnp.int32(1), jnp.arange(3))

    last, sums = vmap(scanned, axis_name="i")(X)
    c, want = np.ones(4, np.int32), []
    for k in range(3):
        want.append(np.full(4, c.sum()))
        c = c + k * np.arange(4)
    np.testing.assert_array_equal(last, c)
    np.testing.assert_array_equal(sums, np.stack(want, 1))

    def looped(_):
        return lax.while_loop(
            lambda c: c < 10, lambda c: c + lax.psum(1, "i") + lax.axis_index("i"), 0
        )

    np.testing.assert_array_equal(vmap(looped, axis_name="i")(X), [12, 10, 12, 14])

    def until(_):  # only the condition uses the axis
        return lax.while_loop(lambda c: c < 3 * lax.axis_index("i"), lambda c: c + 2, 0)

    np.testing.assert_array_equal(vmap(until, axis_name="i")(X), [0, 4, 6, 10])

    def counted(_):
        return lax.fori_loop(0, 3, lambda k, c: c + lax.pmax(lax.axis_index("i"), "i"), 0)

    np.testing.assert_array_equal(vmap(counted, axis_name="i")(X), np.full(4, 9))


def test_in_branches():
    def chosen(x):
        return lax.cond(True, lambda: lax.axis_index("i") * 2, lambda: lax.axis_index("i") * 3)

    np.testing.assert_array_equal(vmap(chosen, axis_name="i")(X), 2 * np.arange(4))

    def branched(p, x):
        return lax.cond(p, lambda x: x - lax.pmean(x, "i"), lambda x: x, x)

    got = vmap(branched, in_axes=(None, 0), axis_name="i")(True, X)
    np.testing.assert_allclose(got, X - 2.5)
    mapped = vmap(branched, axis_name="i")(X > 2, X)
    np.testing.assert_allclose(mapped, np.where(X > 2, X - 2.5, X))
    switched = vmap(
        lambda k: lax.switch(k, [lambda: lax.psum(1.0, "i"), lambda: 0.0]), axis_name="i"
    )
    np.testing.assert_array_equal(switched(np.array([0, 1, 1, 0])), [4, 0, 0, 4])


def test_in_linear_solves_and_maps():
    def solved(x):
        matvec = lambda v: v * 2 + lax.psum(0.0 * v, "i")
        return lax.custom_linear_solve(matvec, x, lambda mv, b: b / 2, symmetric=True)

    np.testing.assert_allclose(vmap(solved, axis_name="i")(X), X / 2)
    per_row = lambda x: lax.map(lambda r: r - lax.pmean(r, "i"), x)
    xs = X[:, None] * np.ones((4, 3), np.float32)
    np.testing.assert_allclose(vmap(per_row, axis_name="i")(xs), xs - 2.5)


# --- derivatives --------------------------------------------------------------------------------


LINEAR = {k: r for k, r in ROWS.items() if k.split("-")[0] not in ("pmax", "pmin")}


@pytest.mark.parametrize("row", LINEAR.values(), ids=LINEAR)
def test_linear_ones_are_their_tangents_and_transposes(row):
    with config.scope(enable_x64=True):
        xs = stack_of(row, np.float64)
        f = vmap(applied(row, "i"), axis_name="i")
        ct = np.random.default_rng(3).normal(size=expected(row, xs).shape)
        both = weft.jit(lambda x, ct: (*jvp(f, (x,), (x,)), *vjp(f, x)[1](ct)))
        y, dot, back = both(xs, ct)
        np.testing.assert_array_equal(dot, y)
        np.testing.assert_allclose(np.vdot(ct, y), np.vdot(back, xs), rtol=1e-10, atol=1e-12)


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("name", ["i", ("i", "j"), ("j", "i")])
@pytest.mark.parametrize("row", LINEAR.values(), ids=LINEAR)
def test_derivatives_within_the_axis(row, name):
    # grad inside of vmap: each copy's own function, whose cotangents are exchanged between copies
    two = name != "i"
    xs = stack_of(row)
    shape = (2, 2) if two else (N,)
    rng = np.random.default_rng(5)
    want_shape = expected(row, xs).shape[1:]
    cts = rng.normal(size=(*shape, *want_shape)).astype(np.float32)

    def pull(x, ct):
        return vjp(applied(row, name), x)[1](ct)[0]

    def push(x):
        return jvp(applied(row, name), (x,), (x,))[1]

    over = lambda f: vmap(vmap(f, axis_name="j"), axis_name="i") if two else vmap(f, axis_name="i")
    xs = xs.reshape(*shape, *row[2])
    both = weft.jit(lambda xs, cts: (over(push)(xs), over(pull)(xs, cts)))
    ys, got = map(np.asarray, both(xs, cts))
    np.testing.assert_allclose(np.vdot(cts, ys), np.vdot(got, xs), rtol=1e-4, atol=1e-4)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("groups", [None, GROUPS, [[0, 1, 3], [2]]])
@pytest.mark.parametrize("fun", [lax.pmax, lax.pmin])
def test_derivative_of_extrema(fun, groups):
    f = vmap(lambda x: jnp.sin(fun(x * x, "i", axis_index_groups=groups)), axis_name="i")
    with config.scope(enable_x64=True):
        x, t = np.random.default_rng(2).normal(size=(2, N, 3))
        eps = 1e-6
        want = (np.asarray(f(x + eps * t)) - np.asarray(f(x - eps * t))) / (2 * eps)
        y, dot = jvp(f, (x,), (t,))
        np.testing.assert_allclose(dot, want, atol=1e-8)
        (back,) = vjp(f, x)[1](np.cos(np.asarray(y)))
        np.testing.assert_allclose(np.vdot(back, t), np.vdot(np.cos(y), dot), rtol=1e-10)


def test_ties_share_the_derivative_of_an_extremum():
    f = vmap(lambda x: lax.pmax(x, "i"), axis_name="i")
    ties = np.array([2, 1, 2, 0], np.float32)
    np.testing.assert_array_equal(grad(lambda x: f(x)[0])(ties), [0.5, 0, 0.5, 0])


def test_second_derivatives_through_a_sum():
    loss = lambda x: vmap(lambda x: lax.psum(x**3, "i") ** 2, axis_name="i")(x)[0]
    plain = lambda x: jnp.sum(x**3) ** 2
    np.testing.assert_allclose(weft.hessian(loss)(X), weft.hessian(plain)(X), rtol=1e-5)


def test_gradients_of_a_loop_with_collectives():
    def total(w, xs):
        def step(c, x):
            c = jnp.tanh(c * w + lax.psum(x, "i") * lax.axis_index("i"))
            return c, lax.pmean(c, "i")

        return lax.scan(step, w, xs)[1].sum()

    xs = np.linspace(-1, 1, 12).reshape(4, 3).astype(np.float32)

    def loss(w):
        return vmap(total, in_axes=(None, 0), axis_name="i")(w, xs)[1]

    def by_hand(w):
        c, out = jnp.full(4, 1.0) * w, 0.0
        for k in range(3):
            c = jnp.tanh(c * w + xs[:, k].sum() * np.arange(4, dtype=np.float32))
            out = out + c.mean()
        return out

    np.testing.assert_allclose(loss(0.7), by_hand(0.7), rtol=1e-6)
    np.testing.assert_allclose(grad(loss)(0.7), grad(by_hand)(0.7), rtol=1e-5)
    np.testing.assert_allclose(weft.jacfwd(loss)(0.7), grad(by_hand)(0.7), rtol=1e-5)


# --- programs -----------------------------------------------------------------------------------


def env(fun, shape=(4, 4), axes=(("i", 4),), dtype=np.float32):
    return make_jaxpr(fun, axis_env=axes)(np.zeros(shape, dtype))


# What JAX 0.10.2 prints.
PRINTED = {
    "b:f32[4,4] = psum[axes=('i',) axis_index_groups=None] a": lambda x: lax.psum(x, "i"),
    "psum[axes=('i',) axis_index_groups=((0, 1), (2, 3))] a": lambda x: lax.psum(
        x, "i", axis_index_groups=[[0, 1], [2, 3]]
    ),
    "pmax[axes=('i',) axis_index_groups=None] a": lambda x: lax.pmax(x, "i"),
    "b:f32[4,4,4] = all_gather[ all_gather_dimension=2 axis_index_groups=None axis_name=('i',) "
    "axis_size=4 tiled=False ] a": lambda x: lax.all_gather(x, "i", axis=-1),
    "b:f32[4] = reduce_scatter[ axis_index_groups=None axis_name=('i',) axis_size=4 "
    "scatter_dimension=0 tiled=False ] a": lambda x: lax.psum_scatter(x, "i"),
    "c:f32[1,4,4] = all_to_all[ axis_index_groups=None axis_name=i concat_axis=2 split_axis=0 "
    "tiled=False ] b": lambda x: lax.all_to_all(x, "i", 0, 1),
    "ppermute[axis_name=('i',) perm=((0, 1), (1, 2))] a": lambda x: lax.ppermute(
        x, "i", [(0, 1), (1, 2)]
    ),
    "ppermute[ axis_name=('i',) perm=((1, 0), (0, 1), (2, 2), (3, 3)) ] a": lambda x: lax.pshuffle(
        x, "i", [1, 0, 2, 3]
    ),
    "pbroadcast[axis_name=i source=1] a": lambda x: lax.pbroadcast(x, "i", 1),
    "b:i32[] = axis_index[axis_name=i]": lambda x: lax.axis_index("i"),
}


@pytest.mark.parametrize("text", PRINTED)
def test_printed(text):
    got = re.sub(r"\s+", " ", str(env(PRINTED[text])))
    assert text in got, got


def test_classic_notation():
    text = env(lambda x: lax.psum(x, "rows"), axes=[("rows", 4)]).pretty_print(notation="classic")
    assert "psum[ axis_name=rows ] a" in text
    both = lambda x: lax.psum(x, ("rows", "columns"))
    text = env(both, axes=[("rows", 4), ("columns", 2)]).pretty_print(notation="classic")
    assert "psum[ axis_name=('rows', 'columns') ] a" in text
    text = env(lambda x: lax.ppermute(x, "i", [(0, 1)])).pretty_print(notation="classic")
    assert "ppermute[ axis_name=i\n" in text and "perm=((0, 1),) ] a" in text
    sums = make_jaxpr(lambda x: x.sum())(X).pretty_print(notation="classic")
    assert "reduce_sum[ axes=(" in sums


def test_vmapped_programs_hold_no_collective():
    for row in ROWS.values():
        jaxpr = make_jaxpr(vmap(applied(row, "i"), axis_name="i"))(stack_of(row))
        names = {e.primitive.name for e in jaxpr.eqns}
        assert not names & {"psum", "pmax", "all_gather", "all_to_all", "ppermute"}, names
    sums = make_jaxpr(vmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None))(X)
    assert [e.primitive.name for e in sums.eqns] == ["reduce_sum"]
    shifts = make_jaxpr(vmap(lambda x: lax.pshuffle(x, "i", [1, 2, 3, 0]), axis_name="i"))(X)
    assert "gather" not in str(shifts)  # a few slices cost less


def test_a_function_is_traced_again_for_another_axis():
    traced = []

    @weft.jit
    def f(x):
        traced.append(lax.axis_size("i"))
        return x / lax.psum(1, "i")

    for n in (2, 3, 2):
        vmap(f, axis_name="i")(np.ones(n, np.float32))
    assert traced == [2, 3]


# --- errors -------------------------------------------------------------------------------------

MISTAKES = {
    r"^psum: axis_name must be an axis in scope; got 'j', in scope 'i' \(size 4\)\. Hint: "
    r"vmap\(f, axis_name='j'\), or shard_map": lambda x: lax.psum(x, "j"),
    r"^axis_index: axis_name must be an axis in scope; got 'j'": lambda x: lax.axis_index("j"),
    r"^axis_size: axis_name must be .* got 'j'": lambda x: lax.axis_size(("i", "j")),
    r"^ppermute: axis_name must be .* got 0": lambda x: lax.ppermute(x, 0, []),
    r"^psum: axis_name must name each axis once; got \('i', 'i'\)": lambda x: lax.psum(
        x, ("i", "i")
    ),
    r"^psum: axis_index_groups must hold each index of axis 'i' \(size 4\) once; got "
    r"\[\[0, 1\], \[1, 3\]\]": lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [1, 3]]),
    r"^pmax: axis_index_groups must hold .* got \[\[0, 1\]\]": lambda x: lax.pmax(
        x, "i", axis_index_groups=[[0, 1]]
    ),
    r"^psum: axis_index_groups are for named axes alone": lambda x: lax.psum(
        x, (0, "i"), axis_index_groups=[[0, 1], [2, 3]]
    ),
    r"^all_gather: axis_index_groups must be of one size; got groups of 3, 1": (
        lambda x: lax.all_gather(x, "i", axis_index_groups=[[0, 1, 2], [3]])
    ),
    r"^all_gather: an axis of an array of rank 3 must be in \[-3, 3\); got 3": (
        lambda x: lax.all_gather(x, "i", axis=3)
    ),
    r"^all_gather: to must be 'varying', 'invarying' or 'reduced'; got 'all'": (
        lambda x: lax.all_gather(x, "i", to="all")
    ),
    r"^psum_scatter: the size of scatter_dimension must be equal to the size of axis 'i', 4; got 8 "
    r"\(axis 1 of f32\[4,8\]\)\. Hint: tiled=True": lambda x: lax.psum_scatter(
        x, "i", scatter_dimension=1
    ),
    r"^psum_scatter: .* divisible by the size of the groups along axis 'i', 2; got 3": (
        lambda x: lax.psum_scatter(
            x[:3], "i", tiled=True, axis_index_groups=[[0, 1], [2, 3]]
        )
    ),
    r"^all_to_all: the size of split_axis must be equal to the size of axis 'i', 4; got 8 \(axis 1 "
    r"of f32\[4,8\]\)": lambda x: lax.all_to_all(x, "i", 1, 0),
    r"^all_to_all: .* must be divisible by the size of axis 'i', 4; got 6": (
        lambda x: lax.all_to_all(x[:, :6], "i", 1, 0, tiled=True)
    ),
    r"^ppermute: sources must be distinct indices of axis 'i', in \[0, 4\); got \[0, 0\]": (
        lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)])
    ),
    r"^ppermute: destinations must be distinct .* got \[1, 1\]": lambda x: lax.ppermute(
        x, "i", [(0, 1), (2, 1)]
    ),
    r"^ppermute: destinations must be .* got \[4\]": lambda x: lax.ppermute(x, "i", [(0, 4)]),
    r"^pshuffle: perm must hold each index of axis 'i' \(size 4\) once; got \[0, 1, 1, 2\]": (
        lambda x: lax.pshuffle(x, "i", [0, 1, 1, 2])
    ),
    r"^pbroadcast: source must be an index of axis 'i', in \[0, 4\); got 4": lambda x: (
        lax.pbroadcast(x, "i", 4)
    ),
    r"^psum: operands must be arrays or numbers; got a str": lambda x: lax.psum("x", "i"),
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(text):
    with pytest.raises((ValueError, TypeError, NameError), match=text):
        vmap(MISTAKES[text], axis_name="i")(np.zeros((4, 4, 8), np.float32))


def test_axes_out_of_scope():
    for f in (lambda: lax.psum(X, "i"), lambda: weft.jit(lambda x: lax.psum(x, "i"))(X)):
        with pytest.raises(errors.UnboundAxisError, match="got 'i', in scope none"):
            f()
    # a program that was made where the axis was in scope, and is run where it is not
    held = env(lambda x: lax.psum(x, "i"))
    with pytest.raises(NameError, match=r"^psum: axis_name must be .* got 'i', in scope none"):
        weft.core.eval_jaxpr(held.jaxpr, held.consts, np.zeros((4, 4), np.float32))


# --- the text for devices -----------------------------------------------------------------------

MESH = (("a", 2), ("b", 3))


def written(fun, shape=(6, 4), mesh=MESH, dtype=np.float32):
    """The StableHLO of a function in the body of a program for each device of a mesh."""
    aval = ShapedArray(shape, np.dtype(dtype))
    with in_scope([Axis(size, name) for name, size in mesh]):
        jaxpr, consts = stage(lambda x: [fun(x)], [aval])
    assert not consts
    hlo = Builder()
    hlo.part = Part(mesh)
    lower_jaxpr(hlo, jaxpr, [Value("%arg0", aval)])
    return "\n".join(hlo.lines)


WRITTEN = {
    "replica_groups = dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>": lambda x: lax.psum(
        x, "a"
    ),
    "replica_groups = dense<[[0, 3, 1, 4, 2, 5]]> : tensor<1x6xi64>": lambda x: lax.psum(
        x, ("b", "a")
    ),
    "replica_groups = dense<[[0, 2], [1, -1], [3, 5], [4, -1]]> : tensor<4x2xi64>": (
        lambda x: lax.psum(x, "b", axis_index_groups=[[0, 2], [1]])
    ),
    '"stablehlo.maximum"(': lambda x: lax.pmax(x, "a"),
    "all_gather_dim = 1 : i64": lambda x: lax.all_gather(x, "b", axis=1),
    "(tensor<6x1x4xf32>) -> (tensor<6x3x4xf32>)": lambda x: lax.all_gather(x, "b", axis=1),
    "(tensor<6x4xf32>) -> (tensor<2x4xf32>)": lambda x: lax.psum_scatter(x, "b", tiled=True),
    "split_count = 3 : i64, split_dimension = 0 : i64": lambda x: lax.all_to_all(
        x, "b", 0, 1, tiled=True
    ),
    "source_target_pairs = dense<[[0, 1], [3, 4]]> : tensor<2x2xi64>": lambda x: lax.ppermute(
        x, "b", [(0, 1)]
    ),
    '"stablehlo.partition_id"()': lambda x: lax.axis_index("a"),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_written_for_devices(text):
    got = written(WRITTEN[text])
    assert text in got, got
    if "collective_permute" in got or "all_" in got:
        assert "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>" in got


def test_an_axis_that_the_mesh_lacks():
    with pytest.raises(errors.UnboundAxisError, match=r"got 'c', in scope 'a' \(size 2\), 'b'"):
        hlo = Builder()
        hlo.part = Part(MESH)
        copies.device_rows(hlo, "psum", ("c",))


# --- what varies --------------------------------------------------------------------------------


def test_types_of_collectives():
    a, ab = Varying.of(["a"]), Varying.of(["a", "b"])
    kind = lambda prim, v, **params: prim.type_of((ShapedArray((4,), "f4", False, v),), params)[0]
    assert kind(varying.pvary_p, a, axes=("b",)).varying is ab
    assert kind(varying.pvary_p, None, axes=("a",)).varying is a
    assert kind(varying.psum_invariant_p, ab, axes=("b",)).varying is a
    assert kind(varying.psum_invariant_p, a, axes=("a",)).varying is None
    groups = {"axes": ("b",), "axis_index_groups": ((0,), (1,))}
    assert kind(collective.pmax_p, ab, **groups).varying is ab
    assert kind(collective.pmax_p, ab, **groups | {"axis_index_groups": None}).varying is a
    index = collective.axis_index_p.type_of((), {"axis_name": "a", "tracked": True})
    assert str(index[0]) == "i32[]{V:a}"


def test_every_collective_is_tested():
    tested = {row[0].__name__ for row in ROWS.values()}
    others = {"axis_index", "axis_size", "pcast", "precv", "psend", "pswapaxes", "pvary"}
    assert tested | others == set(lax.HOMES["weft.api.collectives"].split())
    x = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    got = vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(x)
    np.testing.assert_array_equal(got, x.T)
    assert math.isclose(typeof(lax.pvary(X, ())).size, 4)


def test_a_permutation_in_two_steps():
    pairs = [(0, 2), (1, 0), (2, 1)]

    def f(x, perm=pairs, like=None):
        token = lax.psend({"a": x}, "i", pairs)
        y = x * 2  # meanwhile
        return lax.precv(token, {"a": x if like is None else like}, "i", perm)["a"] + y

    x = np.arange(3, dtype=np.float32)
    want = np.array([1, 2, 0]) + 2 * x
    np.testing.assert_array_equal(weft.jit(weft.vmap(f, axis_name="i"))(x), want)
    for wrong, text in [
        (
            lambda x: f(x, pairs[:1]),
            "precv: the token must be that of psend along the same axis; got",
        ),
        (
            lambda x: f(x, like=np.ones(2)),
            "precv: out_shape must be of the types that were sent; got",
        ),
        (lambda x: lax.precv(3, x, "i", pairs), "got 3 for"),
    ]:
        with pytest.raises(ValueError, match=text):
            weft.vmap(wrong, axis_name="i")(x)


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8", "uint8", "int16", "int32", "uint32"])
def test_means_of_integers_whose_sum_exceeds_their_dtype(dtype):
    info = jnp.iinfo(dtype)
    x = np.array([[info.max, info.min], [info.max, info.min], [info.max - 1, info.max]])
    found = vmap(lambda x: lax.pmean(x, ("i", 0)), axis_name="i")(jnp.asarray(x).astype(dtype))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, np.full(3, x.mean()), 1e-6)
