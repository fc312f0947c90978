"""Arrays of random keys: a dtype like others wherever elements are moved, and never numbers."""

import copy
import pickle
from unittest import mock

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.random.compare import GOLDEN, check_bits
from weft import config, lax, random
from weft.errors import DtypeError, ShapeError, TypePromotionError

KEY = random.key(0)
KEYS = random.split(KEY, (2, 3))
LINE = KEYS[0]
STRUCT = weft.ShapeDtypeStruct((3,), KEY.dtype)


def words(keys):
    """The words of keys, on the host."""
    return np.asarray(random.key_data(keys))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_key_arrays(impl):
    key = random.key(3, impl=impl)
    assert key.shape == () and random.key_impl(key) == impl
    assert jnp.issubdtype(key.dtype, weft.dtypes.prng_key)
    keys = random.split(key, 6)
    assert keys.shape == (6,) and keys[2:4].shape == (2,) and len(list(keys)) == 6
    assert keys.reshape(2, 3).shape == (2, 3)
    mapped = weft.vmap(lambda k: random.bits(k, (2,)))(keys)
    np.testing.assert_array_equal(mapped, np.stack([random.bits(k, (2,)) for k in keys]))
    last, drawn = weft.lax.scan(
        lambda k, _: (random.fold_in(k, 1), random.bits(k)), key, None, length=3
    )
    assert last.dtype == key.dtype and drawn.shape == (3,)
    data = random.key_data(keys)
    again = random.wrap_key_data(data, impl=impl)
    np.testing.assert_array_equal(random.key_data(again), data)


PLACED = [
    lambda x: jnp.stack([x, x]),
    lambda x: jnp.stack([x, x], axis=-1),
    lambda x: jnp.concatenate([x, x], axis=1),
    lambda x: jnp.array([x[0, 0], x[1, 1]]),
    lambda x: jnp.where(jnp.array([True, False, True]), x, x[::-1]),
    lambda x: jnp.ravel(x),
    lambda x: jnp.reshape(x, (3, 2)),
    lambda x: jnp.expand_dims(x, 1),
    lambda x: jnp.moveaxis(x, 0, 1),
    lambda x: jnp.broadcast_to(x[0], (4, 3)),
    lambda x: jnp.tile(x, (1, 2)),
    lambda x: jnp.repeat(x, 2, axis=0),
    lambda x: jnp.flip(x),
    lambda x: jnp.roll(x, 1, axis=-1),
    lambda x: jnp.take(x, jnp.array([2, 0]), axis=1),
    lambda x: jnp.split(x, 3, axis=-1)[1],
    lambda x: jnp.vstack([x, x]),
    lambda x: jnp.delete(x, 0, axis=1),
    lambda x: x.at[0, 1].set(x[1, 2]),
    lambda x: x.at[:, 0].get(),
    lambda x: x.transpose(1, 0),
    lambda x: x.swapaxes(0, 1),
    lambda x: x[:1].squeeze(0),
    lambda x: x[jnp.array([True, False])],
    lambda x: x[jnp.array([1, 0]), 1],
    lambda x: x.T,
    lambda x: x.mT,
    lambda x: jnp.hstack([x, x]),
    lambda x: jnp.append(x, x, 0),
    lambda x: jnp.broadcast_arrays(x, jnp.zeros((4, 1, 1)))[0],
    lambda x: jnp.diagonal(x),
    lambda x: jnp.rot90(x),
    lambda x: jnp.atleast_3d(x),
    lambda x: jnp.meshgrid(x[0], x[1])[1],
    lambda x: jnp.take_along_axis(x, jnp.array([[2, 1, 0], [0, 1, 2]]), 1),
    lambda x: jnp.full((2, 2), x[1, 1]),
    lambda x: jnp.full_like(x, x[0, 1]),
    lambda x: jnp.asarray([x[0], x[1]], x.dtype),
    lambda x: jnp.copy(x).astype(x.dtype),
    lambda x: x.at[jnp.array([0, 1]), 0].set(x[0, :2]),
    lambda x: lax.select(jnp.array([[True, False, True]] * 2), x, x[::-1]),
    lambda x: lax.dynamic_slice(x, (0, 1), (2, 2)),
    lambda x: lax.dynamic_update_slice(x, x[:1, :2], (1, 1)),
    lambda x: lax.dynamic_index_in_dim(x, 1, keepdims=False),
    lambda x: lax.broadcast(x, (2,)),
    lambda x: lax.rev(x, (0, 1)),
    lambda x: lax.slice(x, (0, 1), (2, 3)),
    lambda x: lax.pad(x, x[0, 0], [(1, 0, 1), (-1, 0, 0)]),
    lambda x: lax.sort((jnp.array([[2, 1, 3]] * 2), x), num_keys=1)[1],
    lambda x: lax.stop_gradient(lax.optimization_barrier(x)),
    lambda x: weft.device_put(x, weft.devices()[0]),
    lambda x: weft.checkpoint(lambda x: x.T)(x),
    lambda x: weft.tree.map(lambda x: x[0], {"a": x})["a"],
    lambda x: lax.scan(lambda c, x: (x[0], x[::-1]), x[0, 0], x)[1],
    lambda x: lax.cond(x.shape[0] > 1, lambda x: x[1], lambda x: x[0], x),
    lambda x: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, c[1][::-1]), (0, x))[1],
]


@weft.jit(static_argnums=0)
def place_all(place, number, keys):
    """Return the places of scalars, and of mapped scalars and keys, in one program."""
    last = lambda x: jnp.stack([x, x[::-1]], -1)
    mapped = weft.vmap(place, in_axes=-1, out_axes=-1)
    return place(number), mapped(last(number)), random.key_data(mapped(last(keys)))


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("k", range(len(PLACED)))
def test_keys_are_placed_as_numbers_are(k):
    number = np.arange(6, dtype=np.int32).reshape(2, 3)
    alone, several, mapped = map(np.asarray, place_all(PLACED[k], number, KEYS))
    found = PLACED[k](KEYS)
    assert found.dtype == KEYS.dtype and found.shape == alone.shape
    np.testing.assert_array_equal(words(found), words(KEYS).reshape(6, 2)[alone])
    np.testing.assert_array_equal(mapped, words(KEYS).reshape(6, 2)[several])


def test_a_key_is_an_array_and_a_leaf_with_a_dtype_of_its_own():
    assert isinstance(KEY, weft.Array) and not isinstance(KEY.dtype, np.dtype)
    (leaf,) = weft.tree.leaves({"a": KEYS})
    assert leaf is KEYS
    assert (KEYS.shape, KEYS.ndim, KEYS.size, KEYS.itemsize, KEYS.nbytes) == ((2, 3), 2, 6, 8, 48)
    assert str(KEY.dtype) == repr(KEY.dtype) == KEY.dtype.name == "key<fry>"
    assert repr(KEY) == str(KEY) == f"{KEY}" == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert str(weft.typeof(KEYS)) == "key<fry>[2,3]"
    assert jnp.issubdtype(KEY.dtype, weft.dtypes.prng_key)
    assert not jnp.issubdtype(KEY.dtype, np.uint32) and KEY.dtype != np.uint32
    assert KEY.dtype == random.key(3).dtype != random.key(3, impl="rbg").dtype
    assert KEY.devices() == {weft.devices()[0]} and not KEY.committed and not KEY.is_deleted()
    (shard,) = KEYS.addressable_shards
    assert shard.data.shape == (2, 3) and len(shard.index) == 2
    assert weft.block_until_ready(KEYS) is KEYS
    for again in (pickle.loads(pickle.dumps(KEYS)), copy.copy(KEYS), copy.deepcopy(KEYS)):
        assert again.dtype is KEYS.dtype and (again == KEYS).all()
    assert random.key_data(KEYS) is random.key_data(KEYS)  # no copy


def test_types_of_keys():
    assert weft.eval_shape(lambda x: x, STRUCT) == STRUCT
    assert weft.eval_shape(random.split, KEY).shape == (2,)
    assert repr(STRUCT) == "ShapeDtypeStruct(shape=(3,), dtype=key<fry>)"
    text = str(weft.make_jaxpr(lambda x: x[0])(LINE))
    assert "a:key<fry>[3]" in text and "key<fry>[]" in text
    compiled = weft.jit(lambda x: x[::-1]).lower(STRUCT).compile()
    assert (compiled(LINE) == LINE[::-1]).all()
    assert "tensor<3x2xui32>" in weft.jit(lambda x: x[::-1]).lower(STRUCT).as_text()
    assert jnp.result_type(KEY, KEYS) is KEY.dtype
    for zeros in (jnp.zeros(3, KEY.dtype), jnp.zeros_like(LINE), jnp.empty_like(LINE)):
        assert zeros.shape == (3,) and not words(zeros).any()
    np.testing.assert_array_equal(words(jnp.ones(2, KEY.dtype)), np.ones((2, 2)))
    np.testing.assert_array_equal(words(LINE.at[5].get(mode="fill")), [2**32 - 1] * 2)


def test_keys_have_no_tangents():
    draw = lambda x, k: x * random.normal(k)
    np.testing.assert_allclose(weft.grad(draw)(2.0, KEY), random.normal(KEY))
    zero = np.zeros((), weft.dtypes.float0)
    out, dot = weft.jvp(lambda k: k, (KEY,), (zero,))
    assert out == KEY and dot.dtype == weft.dtypes.float0
    (ct,) = weft.vjp(random.normal, KEY)[1](jnp.float32(1))
    assert ct.dtype == weft.dtypes.float0 and ct.shape == ()
    assert weft.grad(random.normal, allow_int=True)(KEY).dtype == weft.dtypes.float0
    with pytest.raises(DtypeError, match=r"must be floating-point or complex; got key<fry>\[\]"):
        weft.grad(random.normal)(KEY)
    with pytest.raises(DtypeError, match=r"must be float0; got f32\[\] for key<fry>\[\]"):
        weft.jvp(random.normal, (KEY,), (1.0,))

    @weft.custom_vjp
    def scaled(x, k):
        return x * random.normal(k)

    scaled.defvjp(lambda x, k: (scaled(x, k), k), lambda k, ct: (ct * random.normal(k), None))
    np.testing.assert_allclose(weft.grad(scaled)(2.0, KEY), random.normal(KEY))
    again = weft.checkpoint(lambda x, k: jnp.sin(x * random.normal(k)))
    np.testing.assert_allclose(
        weft.grad(again)(2.0, KEY), jnp.cos(2 * random.normal(KEY)) * random.normal(KEY), rtol=1e-6
    )


def test_programs_with_keys_are_told_apart_by_their_types():
    traced = []

    @weft.jit
    def f(x):
        traced.append(str(weft.typeof(x)))
        return x

    for x in (LINE, random.key_data(LINE), jnp.zeros(3, np.uint32), KEYS, LINE, KEYS):
        assert f(x).dtype is x.dtype and f(x).shape == x.shape
    assert traced == ["key<fry>[3]", "u32[3,2]", "u32[3]", "key<fry>[2,3]"]


def test_donated_keys_are_gone():
    keys = random.split(random.key(1), 4)
    out = weft.jit(lambda x: x[::-1], donate_argnums=0)(keys)
    assert out.shape == (4,) and keys.is_deleted() and "deleted" in repr(keys)


NUMBERS = [
    (lambda: KEY + 1, TypePromotionError, "add: random keys promote only with themselves"),
    (lambda: 1 - KEY, TypeError, "random keys promote only with themselves"),
    (
        lambda: KEY + KEY,
        DtypeError,
        r"add: operands must be numbers, not random keys; got key<fry>\[",
    ),
    (lambda: -KEY, DtypeError, "neg: operands must be numbers"),
    (lambda: KEY < KEY, DtypeError, "lt: operands must be numbers"),
    (lambda: KEY == 0, TypeError, "equal: random keys promote only with themselves"),
    (lambda: random.key(0, impl="rbg") == KEY, TypeError, "equal: random keys promote only"),
    (lambda: jnp.stack([KEY, random.key(0, impl="rbg")]), ValueError, "got key<fry>, key<rbg>"),
    (lambda: jnp.where(True, KEY, 0), TypeError, "where: random keys promote only"),
    (lambda: LINE.at[0].set(0), TypeError, "set: random keys promote only"),
    (lambda: LINE.at[0].add(KEY), DtypeError, "operands must be numbers, not random keys"),
    (lambda: jnp.sum(KEYS), DtypeError, "reduce_sum: operands must be numbers"),
    (lambda: jnp.sort(KEYS), DtypeError, "sort: random keys have no order; got key<fry>"),
    (lambda: jnp.sin(KEY), DtypeError, "needs a numeric dtype; got key<fry>"),
    (lambda: jnp.dot(LINE, LINE), DtypeError, "operands must be numbers"),
    (lambda: KEY.astype(np.uint32), DtypeError, "convert_element_type: operands must be numbers"),
    (lambda: lax.convert_element_type(1, KEY.dtype), DtypeError, "operands must be numbers"),
    (lambda: np.asarray(KEY), TypeError, r"random keys are not numbers.*random.key_data\(keys\)"),
    (lambda: float(KEY), TypeError, "random keys are not numbers"),
    (lambda: bool(KEY), TypeError, "random keys are not numbers"),
    (lambda: KEYS.tolist(), TypeError, "random keys are not numbers"),
    (lambda: KEYS.__dlpack__(), TypeError, "random keys are not numbers"),
    (lambda: hash(KEY), TypeError, "unhashable type: .*KeyArray"),
    (lambda: len(KEY), ShapeError, r"len\(\): needs an array with an axis; got key<fry>\[\]"),
    (lambda: weft.jit(lambda k: k * 2)(KEY), TypeError, "promote only with themselves"),
    (lambda: weft.vmap(lambda k: k * k)(LINE), DtypeError, "operands must be numbers"),
]


@pytest.mark.parametrize(("call", "error", "text"), NUMBERS, ids=range(len(NUMBERS)))
def test_keys_are_never_numbers(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_keys_are_compared():
    assert (KEYS == KEYS).all() and not (KEYS != KEYS).any()
    assert (KEYS[::-1] == KEYS).shape == (2, 3) and not (KEYS[::-1] == KEYS).any()
    half = random.wrap_key_data(words(KEYS) * np.array([1, 0], np.uint32))  # one word the same
    assert not (half == KEYS).any() and (half != KEYS).all()


def test_callbacks_are_given_keys():
    seen = []
    struct = weft.ShapeDtypeStruct((), np.float32)

    def draw(keys):
        seen.append(str(weft.typeof(keys)))
        return random.normal(keys)

    call = lambda k: weft.pure_callback(draw, struct, k, vmap_method="sequential")
    for run in (call, weft.jit(call)):
        np.testing.assert_allclose(run(KEY), random.normal(KEY), rtol=1e-6)
    for run in (weft.vmap(call), weft.jit(weft.vmap(call, in_axes=-1))):
        np.testing.assert_allclose(run(LINE), weft.vmap(random.normal)(LINE), rtol=1e-6)
    assert set(seen) == {"key<fry>[]"}
    shown = []
    weft.jit(lambda k: weft.debug.callback(lambda k: shown.append(k == KEY), k))(KEY)
    assert shown == [True]
    with pytest.raises(
        TypeError, match="result_shape_dtypes must be of numbers, not of random keys"
    ):
        weft.pure_callback(lambda k: k, STRUCT, LINE)


def test_class_of_keys_is_a_class_of_arrays():
    assert issubclass(type(random.key(0)), weft.Array)


@pytest.mark.parametrize("setting", GOLDEN)
def test_bits_are_those_of_jax(setting):
    check_bits(setting, "split fold_in PRNGKey key_data", one_in=2)


def test_seeds():
    for seed in (5, np.int8(5), np.uint64(2**32 + 5), 2**40 + 5, jnp.uint8(5), jnp.int32(5)):
        assert random.PRNGKey(seed).tolist() == [0, 5]
    assert random.PRNGKey(-1).tolist() == [0, 2**32 - 1]
    assert random.PRNGKey(True, impl="rbg").tolist() == [0, 1, 0, 1]
    assert weft.jit(random.PRNGKey)(jnp.array(True)).tolist() == [0, 1]
    with config.scope(enable_x64=True):
        for seed in (2**40 + 5, np.int64(2**40 + 5), jnp.int64(2**40 + 5)):
            assert random.PRNGKey(seed).tolist() == [2**8, 5]
    with config.scope(enable_custom_prng=True):
        assert random.PRNGKey(3, impl="rbg").dtype == random.key_dtype("rbg")
    assert random.key(3, dtype=random.key_dtype("rbg")) == random.key(3, impl="rbg")
    raw = random.PRNGKey(3)
    assert random.clone(raw) is raw and random.clone(KEY) is KEY
    with config.scope(debug_key_reuse=True):
        assert random.clone(KEY) == KEY and words(random.clone(raw)).tolist() == raw.tolist()
    assert (random.fold_in(KEY, np.int8(7)) == random.fold_in(KEY, 7)).all()


WORDS = random.PRNGKey(7)
MISTAKES = [
    (lambda: random.normal(1.5), DtypeError, "normal: key must be a random key"),
    (lambda: random.normal("a"), DtypeError, "key must be a random key; got a str"),
    (
        lambda: random.normal(jnp.zeros(4, np.uint32)),
        DtypeError,
        r"wrap_key_data\(words, impl='rbg'",
    ),
    (lambda: random.normal(random.split(WORDS)), ShapeError, "Hint: vmap over the keys"),
    (lambda: random.key(0, impl="x"), ValueError, "impl must be one of"),
    (lambda: random.fold_in(WORDS, -1), OverflowError, r"fold_in: data must be in \[0, 2\*\*32\)"),
    (lambda: random.PRNGKey(1.5), DtypeError, "PRNGKey: seed must be an integer"),
    (
        lambda: random.wrap_key_data(WORDS, impl="rbg"),
        DtypeError,
        r"u32\[..., 4\]; got u32\[2\]. Hint: random.wrap_key_data\(words, impl='threefry2x32'\)",
    ),
    (lambda: random.split(LINE), ShapeError, r"split: takes one key; got keys of shape \(3,\). Hi"),
    (lambda: random.split(KEY, -1), ShapeError, "split: "),
    (
        lambda: random.normal(jnp.zeros((3,), np.uint32)),
        DtypeError,
        r"u32\[2\]; got u32\[3\]. Hint: random.key\(0\)",
    ),
    (lambda: random.normal(np.zeros(2)), DtypeError, r"key<fry> or its words u32\[2\]; got f"),
    (lambda: random.key(2**64), OverflowError, "key: seed must be an integer of 64 bits; got 1844"),
    (lambda: random.key(-(2**63) - 1), OverflowError, "key: seed must be an integer of 64 bits"),
    (lambda: random.key(jnp.arange(2)), ShapeError, r"key: seed must be a scalar; .*vmap\(key\)"),
    (lambda: random.key(None), DtypeError, "key: "),
    (
        lambda: random.wrap_key_data(jnp.zeros(2)),
        DtypeError,
        r"must be u32\[..., 2\]; got f32\[2\].$",
    ),
    (lambda: random.wrap_key_data(jnp.zeros(3, np.uint32)), DtypeError, r"got u32\[3\].$"),
    (
        lambda: random.fold_in(KEY, 1.5),
        DtypeError,
        r"fold_in: data must be an integer; .*int\(data",
    ),
    (lambda: random.fold_in(KEY, 2**32), OverflowError, "fold_in: data must be in"),
    (
        lambda: random.fold_in(KEY, np.arange(2)),
        ShapeError,
        "fold_in: data must be a scalar; .*vmap",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_raw_words_may_be_refused():
    assert random.bits(WORDS) == random.bits(random.wrap_key_data(WORDS))
    text = r"bits: key must be of a key dtype under legacy_prng_key='{}'; got its words u32\[2\]."
    with (
        config.scope(legacy_prng_key="error"),
        pytest.raises(ValueError, match=text.format("error")),
    ):
        random.bits(WORDS)
    with config.scope(legacy_prng_key="warn"), pytest.warns(UserWarning, match=text.format("warn")):
        random.bits(WORDS)


def test_fold_in_takes_numbers_of_all_32_bits():
    calls = []
    for data in (0, 5, 2**31 - 1, 2**31, 2**32 - 1):
        want = random.fold_in(WORDS, jnp.asarray(np.uint32(data)))
        assert (random.fold_in(WORDS, data) == want).all()
        with weft.enable_x64(True):
            assert (random.fold_in(WORDS, data) == want).all()
    with mock.patch("weft.run.fastpath.copy_writable", lambda x: calls.append(x) or x):
        random.fold_in(WORDS, 6)
    assert not calls  # NumPy's numbers are copied, which takes 15 us


def test_chances_that_are_python_numbers_are_not_looked_at_by_numpy():
    draw = lambda: (random.bernoulli(WORDS, 0.5), random.poisson(WORDS, 3))
    want = draw()
    with mock.patch("weft.random.sampling.np", None):  # which takes 10 us
        assert draw() == want
    for chance in (1.5, -0.5, np.nan):
        with pytest.raises(ValueError, match=r"bernoulli: p must be in \[0, 1\]"):
            random.bernoulli(WORDS, chance)
