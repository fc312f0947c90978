"""Writing by index: every method of x.at[...] against NumPy's in-place forms."""

import math
import re

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.errors import MutationError, NonConcreteBooleanIndexError, ShapeError
from weft.numpy import updates
from weft.run.hot import HOT

HOST = np.arange(1, 61, dtype=np.float32).reshape(3, 4, 5)
PAIR = np.array([1, -2], np.int32)
TWICE = np.array([1, 1, 0], np.int32)

METHODS = {
    "set": lambda x, i, v: x.__setitem__(i, v),
    "add": np.add.at,
    "subtract": np.subtract.at,
    "multiply": np.multiply.at,
    "divide": np.divide.at,
    "power": np.power.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
}
INDICES = [
    np.s_[0],
    np.s_[-1, 1:3],
    np.s_[:],
    np.s_[::-1],
    np.s_[..., 0],
    np.s_[:, None, 1],
    np.s_[2:0:-1, ::2],
    np.s_[5:],
    np.s_[1, 2, 3],
    np.s_[()],
    PAIR,
    np.s_[PAIR, :, PAIR],
    np.s_[:, PAIR, PAIR],
    np.s_[PAIR, ::-2, 1:4],
    np.s_[None, PAIR, :, 0],
    TWICE,
    HOST > 30,
    HOST[:, 0, 0] > 10,
    np.s_[:, HOST[0, :, 0] > 5],
    True,
    False,
    ([0, 1],),
    ((0, 1),),
    ((),),
]


def updated(method, index, values):
    """Return NumPy's result on HOST."""
    out = HOST.copy()
    METHODS[method](out, index, values)
    return out


def close(got, want):
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=2e-5)


@pytest.mark.sample(one_in=24)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_every_method_at_every_kind_of_index(method, index, rng):
    x = jnp.asarray(HOST)
    with np.errstate(over="ignore"):
        want = updated(method, index, 2.5)
    close(getattr(x.at[index], method)(2.5), want)
    if index is TWICE and method == "set":
        return
    values = rng.integers(1, 4, HOST[index].shape).astype(np.float32)
    want = updated(method, index, values)
    close(getattr(x.at[index], method)(values), want)
    if method in ("set", "divide"):
        close(weft.jit(lambda v: getattr(v.at[index], method)(values))(x), want)
    if method in ("set", "add"):
        got = weft.vmap(lambda v: getattr(v.at[index], method)(values))(jnp.stack([x, x]))
        close(got[1], want)


def test_a_sequence_in_a_tuple_is_an_array_of_places():
    x = jnp.asarray(HOST)
    for index in (([0, 1],), ((0, 1),), ((),)):
        close(x.at[index].set(2.5), updated("set", index, 2.5))
        close(weft.jit(lambda x, i=index: x.at[i].add(1))(x), updated("add", index, 1))


def test_short_names_and_values():
    x = jnp.arange(4.0)
    assert x.at[0].mul(5.0).tolist() == x.at[0].multiply(5.0).tolist()
    assert x.at[1:3].set([7, 8]).tolist() == [0, 7, 8, 3]
    assert x.at[1:3].set(jnp.float16(7)).dtype == x.dtype
    assert x.at[0].set(True).tolist() == [1, 1, 2, 3]
    assert x.tolist() == [0, 1, 2, 3]


def test_apply():
    x = jnp.arange(4.0)
    np.testing.assert_allclose(x.at[2:].apply(jnp.sin), [0, 1, np.sin(2), np.sin(3)], rtol=1e-6)
    np.testing.assert_allclose(x.at[x > 2].apply(jnp.sin), [0, 1, 2, np.sin(3)], rtol=1e-6)
    assert x.at[jnp.array([1, 1])].apply(lambda v: v + 1).tolist() == [0, 3, 2, 3]


def test_modes():
    x, i = jnp.arange(4.0), jnp.array([9, -9, 1])
    assert x.at[i].set(7.0, mode="drop").tolist() == [0, 7, 2, 3]
    assert x.at[i].set(7.0, mode="clip").tolist() == [7, 7, 2, 7]
    assert x.at[9].set(7.0, mode="drop").tolist() == [0, 1, 2, 3]
    assert x.at[-9].set(7.0, mode="clip").tolist() == [7, 1, 2, 3]
    np.testing.assert_array_equal(x.at[i].get(mode="fill"), [np.nan, np.nan, 1])
    assert x.at[i].get(mode="fill", fill_value=-1).tolist() == [-1, -1, 1]
    assert x.at[i].get(mode="clip").tolist() == [3, 0, 1]
    assert jnp.arange(3).at[9].get(mode="fill").tolist() == -(2**31)
    assert jnp.arange(3, dtype="uint8").at[9].get(mode="fill").tolist() == 255
    assert np.isnan(x.at[-1].get(mode="fill", wrap_negative_indices=False))
    assert x.at[-1].set(7.0, mode="drop", wrap_negative_indices=False).tolist() == [0, 1, 2, 3]
    assert x.at[i[2:]].add(1.0, indices_are_sorted=True, unique_indices=True)[1] == 2
    with pytest.raises(ValueError, match="mode: must be 'clip'"):
        x.at[0].get(mode="wrap")


def test_traced_places_out_of_bounds_are_dropped():
    put = weft.jit(lambda v, i: v.at[i].set(7.0))
    x = jnp.arange(4.0)
    assert put(x, 9).tolist() == [0, 1, 2, 3]
    assert put(x, -1).tolist() == [0, 1, 2, 7]
    assert put(x, jnp.array([9, 0])).tolist() == [7, 1, 2, 3]


def test_traced_masks():
    x = jnp.arange(4.0)
    assert weft.jit(lambda v: v.at[v > 1].set(0.0))(x).tolist() == [0, 1, 0, 0]
    assert weft.jit(lambda v: v.at[v > 1].add(jnp.ones(1)))(x).tolist() == [0, 1, 3, 4]
    with pytest.raises(NonConcreteBooleanIndexError):
        weft.jit(lambda v: v.at[v > 1].set(jnp.arange(2.0)))(x)
    grad = weft.grad(lambda v: v.at[v > 0].apply(jnp.log).sum())(x)
    np.testing.assert_allclose(grad, [1, 1, 1 / 2, 1 / 3], rtol=1e-6)


@pytest.mark.parametrize("method", ["set", "add", "divide"])
def test_values_where_a_traced_mask_holds(method):
    """Values that have one shape for all masks, or whose size is given."""
    xs = np.arange(1, 7, dtype=np.float32).reshape(2, 3), np.ones((2, 1), np.float32)
    masks = [x[:, 0] > n for x in xs for n in (0, 9)] + [x > 2 for x in xs]
    cases = [(x, m) for x in xs for m in masks if x.shape[: m.ndim] == m.shape]
    run = lambda x, m, v: getattr(x.at[m], method)(v)
    for shape in [(), (1,), (2,), (3,), (1, 1), (1, 2), (1, 3)]:
        v = np.arange(2, 2 + math.prod(shape), dtype=np.float32).reshape(shape)
        fit = []
        for x, m in cases:
            rest = x.shape[m.ndim :]
            if v.ndim > len(rest) + 1 or (v.ndim > len(rest) and shape[0] != 1):
                continue  # an element for each place
            try:
                np.broadcast_to(v[0] if v.ndim > len(rest) else v, rest)
                fit.append((x, m))
            except ValueError:
                told = f"{method}: values must broadcast to the shape of x[...], {rest}; got f32["
                with pytest.raises(ShapeError, match=re.escape(told)):
                    weft.eval_shape(run, x, m, v)
        outs = weft.jit(lambda fit, v: [run(x, m, v) for x, m in fit])(fit, v)
        for (x, m), got in zip(fit, outs, strict=True):
            want = x.copy()
            METHODS[method](want, m, v)
            close(np.asarray(got), want)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("index", [np.s_[1:3], np.s_[::2], np.s_[3:1:-1], PAIR], ids=str)
@pytest.mark.parametrize("method", ["set", "add", "multiply", "divide", "max"])
def test_gradients_in_both_arguments(method, index):
    x = jnp.array([3.0, 1.0, 2.0, 5.0])
    v = jnp.array([2.0, 4.0])

    def loss(x, v):
        return (getattr(x.at[index], method)(v, unique_indices=True) ** 2).sum()

    for k, at in enumerate((x, v)):
        got = weft.grad(loss, k)(x, v)
        for i in range(at.size):
            ends = []
            for eps in (1e-2, -1e-2):
                args = [x, v]
                args[k] = at + eps * (np.arange(at.size) == i)
                ends.append(float(loss(*args)))
            assert abs(float(got[i]) - (ends[0] - ends[1]) / 2e-2) < 2e-2


@pytest.mark.parametrize(
    "update",
    [
        lambda x: x.at[:].multiply(0.5),
        lambda x: x.at[0:2].min(0.5),
        lambda x: x.at[0:2].multiply(0.5),
        lambda x: x.at[::1].max(0.5),
        lambda x: x.at[::2].multiply(0.5),
        lambda x: x.at[np.array([0, 1])].multiply(0.5),
    ],
)
def test_flipped_updates_do_not_abort_the_compiler(update):
    """XLA:CPU aborts the process on a reversed scatter-mul of a whole slice."""
    x = jnp.array([1.0, 3.0])
    np.testing.assert_array_equal(
        weft.jit(lambda v: jnp.flip(update(v)))(x), np.asarray(update(x))[::-1]
    )


def test_dtypes():
    i = jnp.arange(3)
    with pytest.warns(FutureWarning, match=r"x.at\[...\].set: values should be of a dtype"):
        assert i.at[0].set(1.5).tolist() == [1, 1, 2]
    with pytest.warns(FutureWarning, match="got f32"):
        assert i.at[jnp.array([0])].add(1.5).dtype == i.dtype
    assert i.at[1].divide(2).tolist() == [0, 0.5, 2]
    assert i.at[1].power(2).dtype == i.dtype
    assert jnp.asarray(1.0).at[()].set(2).weak_type
    for dtype in ("bfloat16", "complex64", "uint8", "bool"):
        x = jnp.zeros(3, dtype)
        one = jnp.ones((), dtype)
        for got in (x.at[1].set(one), x.at[jnp.array([1])].set(one), x.at[1:2].multiply(one)):
            assert got.dtype == x.dtype


@pytest.mark.parametrize(
    ("index", "values"),
    [(0, [1.0]), (slice(0, 2), np.ones((1, 2))), (PAIR, np.ones(3)), (slice(0, 2), np.ones(3))],
)
def test_values_that_do_not_fit(index, values):
    with pytest.raises(ShapeError, match=r"x.at\[...\].set: values must broadcast to the shape"):
        jnp.arange(4.0).at[index].set(values)


def test_assignment():
    text = r"must not be assigned into; got x\[0\] = ... on f32\[4\]. Hint: x = x.at\[0\].set"
    x = jnp.arange(4.0)
    with pytest.raises(MutationError, match=text):
        x[0] = 1
    with pytest.raises(MutationError, match=text):

        def assign(v):
            v[0] = 1

        weft.jit(assign)(x)
    assert x.tolist() == [0, 1, 2, 3]


def test_functions_of_numpy_that_write():
    x = jnp.arange(8.0)
    host = np.arange(8.0, dtype=np.float32)
    for mode, ind in ((None, [1, -1, 3]), ("clip", [1, 20, -3]), ("wrap", [1, 20, -3])):
        want = host.copy()
        np.put(want, ind, [7, 8], mode or "raise")
        np.testing.assert_array_equal(
            jnp.put(x, jnp.array(ind), jnp.array([7.0, 8.0]), mode, inplace=False), want
        )
    want = host.copy()
    np.place(want, want > 3, [1, 2])
    got = jnp.place(x, x > 3, jnp.array([1.0, 2.0]), inplace=False)
    np.testing.assert_array_equal(got, want)
    y, i = host.reshape(2, 4), np.array([[1], [3]])
    want = y.copy()
    np.put_along_axis(want, i, 9, 1)
    got = jnp.put_along_axis(jnp.asarray(y), jnp.asarray(i), 9, 1, inplace=False)
    np.testing.assert_array_equal(got, want)
    for call in (
        lambda: jnp.put(x, 0, 1),
        lambda: jnp.place(x, x > 3, 1),
        lambda: jnp.put_along_axis(x, jnp.array([0]), 1, 0),
    ):
        with pytest.raises(MutationError, match="inplace=False"):
            call()


def test_repr_names_the_place():
    assert repr(jnp.arange(2).at[0]) == "Places(Array([0, 1], dtype=int32), 0)"


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("run", [lambda f: f, weft.jit])
def test_numbers_of_a_higher_kind_are_cast(run):
    assert run(lambda x: x.at[0].set(1))(jnp.zeros(2, bool)).tolist() == [True, False]
    assert run(lambda x: x.at[jnp.array([1])].set(1.5))(jnp.zeros(2, int)).tolist() == [0, 1]


@pytest.mark.parametrize("wrap", [True, False])
def test_modes_at_every_place_and_dtype_of_indices(wrap):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    places = np.array([0, 3, -1, -4, 4, 9, -5, -9])
    calls, wanted = [], []
    for mode in ("clip", "drop"):
        how = {"mode": mode, "wrap_negative_indices": wrap}
        for n in places:
            at = n + 4 if wrap and n < 0 else n
            there = 0 <= at < 4 or mode == "clip"
            at = min(max(at, 0), 3)
            for key, row in ((n, at), ((int(n), slice(1, 3)), (at, slice(1, 3)))):
                want = x.copy()
                want[row] = 7 if there else want[row]
                keys = [key] if isinstance(key, tuple) else [int(n), np.array([n], np.int8)]
                calls += [(k, how) for k in keys]
                wanted += [want] * len(keys)
    every = lambda x: [x.at[key].set(7, **how) for key, how in calls]
    found = weft.jit(every)(x)
    for k, ((key, how), got, want) in enumerate(zip(calls, found, wanted, strict=True)):
        np.testing.assert_array_equal(got, want, f"{key} {how}")
        if k % 7 == 0:  # some of them now
            np.testing.assert_array_equal(jnp.asarray(x).at[key].set(7, **how), want)


def test_an_update_that_is_met_often_gets_a_program_of_its_own(monkeypatch):
    made = []
    real = updates.compile_function
    monkeypatch.setattr(updates, "compile_function", lambda *a: made.append(a) or real(*a))
    x = jnp.zeros(213)
    for i in (*range(40), *[7] * (2 * HOT)):
        assert int(x.at[i].set(i + 1).argmax()) == i and x.at[i].add(-0.5).sum() == -0.5
    assert len(made) == 4
    for value in (2, 2.0, True, jnp.int32(2), np.float32(2)):
        out = x.at[7].set(value)
        assert out.aval == x.aval and out[7] == value
    for value in (1.5, jnp.float32(1.5), np.array(1.5, np.float32)):
        for at in (7, jnp.int32(7)):
            for _ in range(2 * HOT):
                with pytest.warns(FutureWarning):
                    assert jnp.zeros(213, int).at[at].set(value)[7] == 1
                assert jnp.zeros(213, int).at[at].set(np.asarray(1))[7] == 1


def test_an_index_of_arrays_and_numbers_is_written_again_as_it_was():
    host, i = np.arange(24.0).reshape(2, 3, 4), jnp.array([1, 0, -1])
    x = jnp.asarray(host)
    for _ in range(HOT + 2):
        for key in (np.s_[i, 1], np.s_[:, 1], np.s_[i, i], np.s_[..., 2:], np.s_[i[0], 1, 0]):
            want = host.copy()
            want[tuple(np.asarray(k) if isinstance(k, weft.Array) else k for k in key)] = 7
            for value in (7, 7.0, jnp.float32(7), np.float32(7)):
                np.testing.assert_array_equal(x.at[key].set(value), want)
        with pytest.raises(IndexError):
            x.at[i, 3].set(7)
        assert x.at[i, 1].set(2**40).max() == 2.0**40
        with pytest.raises(OverflowError):
            jnp.zeros((2, 3), int).at[i, 1].set(2**40)
        np.testing.assert_array_equal(x.at[-1].set(0), x.at[1].set(0))
        np.testing.assert_array_equal(x.at[-1].set(0, wrap_negative_indices=False, mode="drop"), x)
        np.testing.assert_array_equal(x.at[i[0], 3].set(7, mode="clip"), x.at[1, 2].set(7))


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("op", METHODS)
def test_an_index_of_one_array_is_written_again_as_it_was(op):
    """Types decide the program, not values: of masks, narrow integers, keywords, numbers."""
    x = 1 + HOST[:, 0] / 64
    indices = [PAIR, TWICE, TWICE.astype(np.int8), np.int32(1), np.array([7, -9]), x[:, 0] > 1.2]
    for _ in range(2):
        for index in indices:
            for keywords in ({}, {"mode": "clip"}, {"wrap_negative_indices": False}):
                for value in (2.0, 3, x[1]):
                    given = index if index.dtype == bool or not keywords else np.atleast_1d(index)
                    expected = write_by_rows(op, x, given, value, **keywords)
                    found = getattr(jnp.asarray(x).at[jnp.asarray(given)], op)(value, **keywords)
                    np.testing.assert_allclose(found, expected, rtol=1e-6)
    y = jnp.asarray(x)
    with weft.config.scope(check_bounds="all"), pytest.raises(IndexError, match="index must be in"):
        getattr(y.at[jnp.array([7, -9])], op)(2.0)


def write_by_rows(op, x, index, value, mode=None, wrap_negative_indices=True):
    """`x.at[index].op(value)` by a loop over the places along the first axis."""
    out, n = x.copy(), len(x)
    places = np.flatnonzero(index) if index.dtype == bool else np.atleast_1d(index)
    for i in places:
        i = int(i)
        i = i + n if i < 0 and (wrap_negative_indices and index.dtype != bool) else i
        if mode == "clip":
            i = min(max(i, 0), n - 1)
        if 0 <= i < n:
            METHODS[op](out, i, value)
    return out


@pytest.mark.parametrize("index", [[3, -1, 500, 3, -80, 79] * 20, [[[0], [7]], [[2], [2]]] * 9])
def test_many_rows_set_to_one_number(index):
    """A mask of rows chooses, where a scatter would write the number into each of them."""
    x = np.arange(80 * 9 * 30, dtype=np.float32).reshape(80, 9, 30)
    index = np.array(index)
    inside = np.where(index < 0, index + 80, index)
    expected = {"drop": x.copy(), "clip": x.copy()}
    expected["drop"][inside[(inside >= 0) & (inside < 80)]] = 2
    expected["clip"][np.clip(inside, 0, 79)] = 2
    for mode, want in expected.items():
        write = lambda x, i, v, mode=mode: x.at[i].set(v, mode=mode)
        np.testing.assert_array_equal(write(jnp.asarray(x), index, 2), want)
        np.testing.assert_array_equal(weft.jit(write)(x, index, np.float32(2)), want)
    pairs = index.reshape(-1) % 80, np.arange(index.size) % 9
    both = x.copy()
    both[pairs] = 5
    np.testing.assert_array_equal(jnp.asarray(x).at[pairs].set(5), both)
    gx, gv = weft.grad(lambda x, v: (x.at[index].set(v) * x).sum(), (0, 1))(x[:, 0], 3.0)
    written = expected["drop"][:, 0] == 2
    np.testing.assert_array_equal(gx, np.where(written, 3, 2 * x[:, 0]))
    np.testing.assert_allclose(gv, x[:, 0][written].sum(), rtol=1e-6)


def test_which_rows_are_chosen_by_a_mask():
    x, i = np.zeros((80, 270), np.float32), np.arange(40)
    selects = lambda fun: "select_n" in str(weft.make_jaxpr(fun)(x, i).jaxpr.eqns[-1])
    assert selects(lambda x, i: x.at[i].set(1)) and selects(lambda x, i: x.at[i].set(x[0, 0]))
    assert not selects(lambda x, i: x.at[i[:19]].set(1))  # few
    assert not selects(lambda x, i: x.at[i].set(x[0])) and not selects(lambda x, i: x.at[i].add(1))
    assert not selects(lambda x, i: x.at[:, i].set(1))
    assert not selects(lambda x, i: x[:, :100].at[i].set(1))
