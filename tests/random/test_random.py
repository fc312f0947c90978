"""Keys and distributions: against SciPy in distribution, loops for vmap, differences for grad."""

import importlib

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.docstrings import check_examples
from tests.random.compare import GOLDEN, check_bits
from weft import lax, random
from weft.errors import DtypeError, ShapeError, ShardingTypeError

KEY = random.PRNGKey(7)
N = 20000


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("setting", GOLDEN)
def test_bits_are_those_of_jax(setting):
    check_bits(setting, "bits randint permutation choice categorical")


def test_choices_over_axes():
    """The elements come from the drawn rows, each at most once without replacement."""
    x = jnp.arange(24).reshape(2, 3, 4)
    calls = [
        lambda k, axis: random.choice(k, x, (5,), axis=axis),
        lambda k, axis: random.choice(k, x, (2,), False, axis=axis),
        lambda k, axis: random.choice(k, x, (2,), False, jnp.arange(1.0, 9)[: x.shape[axis]], axis),
        lambda k, axis: random.choice(k, x, (3, 2), p=np.arange(x.shape[axis]), axis=axis),
        lambda k, axis: random.permutation(k, x, axis),
        lambda k, axis: random.permutation(k, x, axis, independent=True),
    ]
    run = weft.jit(lambda k: [[draw(k, axis) for axis in (0, 1, 2)] for draw in calls])
    for i, found in enumerate(run(random.PRNGKey(3))):
        for axis, got in enumerate(found):
            lines = np.moveaxis(
                np.asarray(got), range(axis, axis + got.ndim - 2), range(got.ndim - 2)
            )
            if i < 5:  # each line along the axis is one of x
                lines = lines.reshape(-1, *np.delete(x.shape, axis))
                wanted = np.moveaxis(np.asarray(x), axis, 0)
                at = [int(np.flatnonzero((wanted == y).all((1, 2)))[0]) for y in lines]
                assert len(set(at)) == len(at) if i in (1, 2, 4) else 0 not in at or i == 0
            else:
                np.testing.assert_array_equal(np.sort(got, axis), x)
                assert axis == 0 or len(np.unique(np.argsort(got, axis), axis=2 - axis)) > 1


def test_categorical_over_axes():
    """The probability of an index follows from its logit, at each index of the other axes."""
    p = np.random.default_rng(0).dirichlet(np.ones(3), (2, 4))
    for axis in (0, 1, 2, -1):
        logits = jnp.moveaxis(jnp.log(p.astype(np.float32)), -1, axis) + 5
        found = random.categorical(KEY, logits, axis, (4000, 2, 4))
        share = (np.asarray(found)[..., None] == np.arange(3)).mean(0)
        np.testing.assert_allclose(share, p, atol=0.03)
        once = random.categorical(KEY, logits, axis, (3, 2, 4), replace=False)
        np.testing.assert_array_equal(
            np.sort(once, 0), np.broadcast_to(np.c_[:3][..., None], (3, 2, 4))
        )
    # the first of those that are not put back is as likely
    first = weft.vmap(
        lambda k: random.categorical(k, jnp.log(p[0, 0]), shape=(2,), replace=False)[0]
    )
    share = (np.asarray(first(random.split(KEY, 4000)))[:, None] == np.arange(3)).mean(0)
    np.testing.assert_allclose(share, p[0, 0], atol=0.03)


def test_edges_of_parameters():
    x = random.poisson(KEY, jnp.array([0.0, -1.0, jnp.nan]))
    np.testing.assert_array_equal(x, [0, -1, -1])
    b = random.binomial(KEY, jnp.array([0.0, 5, 5, 5]), jnp.array([0.5, 0.0, 1.0, 1.5]))
    np.testing.assert_array_equal(b, [0, 0, 5, np.nan])
    g = random.gamma(KEY, jnp.array([0.0, -1.0]))
    np.testing.assert_array_equal(g, [0, np.nan])
    assert random.gamma(KEY, 1.0, (0,)).shape == (0,)


@pytest.mark.parametrize("partitionable", [False, True])
def test_vmap_is_a_loop(partitionable):
    with weft.config.scope(threefry_partitionable=partitionable):
        keys = random.split(KEY, 3)
        for draw in (
            lambda k: random.normal(k, (5,)),
            lambda k: random.split(k, 3),
            lambda k: random.fold_in(k, 2),
            lambda k: random.permutation(k, 7),
            lambda k: random.gamma(k, 2.0, (2,)),
        ):
            each = np.stack([draw(k) for k in keys])
            np.testing.assert_allclose(weft.jit(weft.vmap(draw))(keys), each, rtol=1e-6)


def test_the_engines_bits_of_many_keys_are_those_of_each(rng):
    """Up to four keys are written out, more are a loop."""
    words = rng.integers(0, 2**32, (7, 4), np.uint32)
    kinds = [(np.uint8, 1), (np.uint32, 2), (np.uint16, 0)]

    def draw(keys):
        made = {}
        for dtype, algorithm in kinds:
            f = lambda k, d=dtype, a=algorithm: lax.rng_bit_generator(k, (3, 2), d, a)
            counts = {f"{n} {dtype.__name__}": weft.vmap(f)(keys[:n]) for n in (0, 4, 5, 7)}
            made |= {name: (many, [f(k) for k in keys]) for name, many in counts.items()}
        return made

    for name, (many, each) in weft.jit(draw)(words).items():
        for found, *wanted in zip(many, *each, strict=True):
            np.testing.assert_array_equal(found, np.stack(wanted)[: len(found)], name)
    key = np.arange(1, 5, dtype=np.uint32)
    after, found = lax.rng_bit_generator(key, (2,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
    assert after.tolist() == [1, 2, 4, 4] and found.tolist() == [1576285164, 2249660814]


def test_half_of_the_bits_are_set_and_neighbours_differ():
    with weft.config.scope(threefry_partitionable=True):
        bits = np.asarray(random.bits(KEY, (1000,), np.uint8))
    assert 470 < np.unpackbits(bits).sum() / 8 < 530


BAD = [
    (lambda: random.normal(KEY, (3,), np.int32), DtypeError, "normal: dtype must be one of"),
    (lambda: random.bits(KEY, (3,), np.int32), DtypeError, "bits: dtype must be"),
    (lambda: random.rayleigh(KEY, -1.0), ValueError, "rayleigh: scale must not be negative"),
    (lambda: random.gamma(KEY, jnp.ones(3), (2,)), ShapeError, "must broadcast to shape"),
    (lambda: random.choice(KEY, 5, p=jnp.ones(4)), ShapeError, r"choice: p must be \(5,\)"),
    (lambda: random.choice(KEY, 5, (6,), replace=False), ShapeError, "at most 5 can be drawn"),
    (lambda: random.randint(KEY, (2,), 0.5, 5), DtypeError, "minval and maxval must be integers"),
    (
        lambda: random.categorical(KEY, jnp.zeros((2, 3)), shape=(5,)),
        ShapeError,
        "axes of logits but the one must broadcast",
    ),
    (lambda: random.gumbel(KEY, mode="x"), ValueError, "mode must be 'low' or 'high'"),
    (
        lambda: random.bernoulli(KEY, 1.5),
        ValueError,
        r"p must be in \[0, 1\], a probability; got 1",
    ),
    (
        lambda: random.bernoulli(KEY, np.array([0.5, -0.5], np.float32)),
        ValueError,
        r"bernoulli: p must be in \[0, 1\], a probability; got -0.5 in f32\[2\]",
    ),
    (lambda: random.binomial(KEY, 3, 1.5), ValueError, r"binomial: p must be in \[0, 1\]"),
    (lambda: random.binomial(KEY, -3, 0.5), ValueError, "binomial: n must not be negative; got -3"),
    (lambda: random.geometric(KEY, -0.1), ValueError, r"geometric: p must be in \[0, 1\]"),
    (lambda: random.poisson(KEY, np.float32(-1)), ValueError, "poisson: lam must not be negative"),
    (lambda: random.gamma(KEY, float("nan")), ValueError, "gamma: a must not be negative; got nan"),
    (lambda: random.dirichlet(KEY, -np.ones(2)), ValueError, "dirichlet: alpha must not be neg"),
    (lambda: random.multinomial(KEY, 5, -np.ones(2)), ValueError, "multinomial: p must not be"),
    (lambda: random.choice(KEY, 2, p=-np.ones(2)), ValueError, "choice: p must not be negative"),
    (lambda: random.choice(KEY, 2, p=np.zeros(2)), ValueError, "choice: some of p must be positi"),
    (
        lambda: random.triangular(KEY, 3.0, 2.0, 4.0),
        ValueError,
        "triangular: it must hold that left <= mode <= right; got left=3.0, mode=2.0, right=4.0",
    ),
    (lambda: random.truncated_normal(KEY, 2.0, 1.0), ValueError, "hold that lower <= upper"),
    (
        lambda: random.randint(KEY, (), -1, 2**31 + 1),
        OverflowError,
        "must fit int32; got 2147483649",
    ),
    (lambda: random.randint(KEY, (), -(2**31) - 1, 1), OverflowError, "must fit int32; got -214"),
    (lambda: random.randint(KEY, (2,), 0, 5, float), DtypeError, "must be one of integers; got"),
    (lambda: random.choice(KEY, -1), ShapeError, "choice: the number must not be negative; got -1"),
    (lambda: random.choice(KEY, jnp.ones(())), DtypeError, r"or have an axis; got f32\[\]"),
    (lambda: random.choice(KEY, 0, (2,)), ShapeError, "must have elements to draw from"),
    (
        lambda: random.categorical(KEY, jnp.zeros((2, 3)), shape=(4, 2), replace=False),
        ShapeError,
        "categorical: without replacement at most 3 can be drawn; got 4",
    ),
    (lambda: random.dirichlet(KEY, 1.0), ShapeError, r"dirichlet: alpha must be \(..., n\); got"),
    (lambda: random.rayleigh(KEY, 1j), DtypeError, r"parameters must be real; got c64\[\]"),
    (
        lambda: random.normal(KEY, out_sharding=KEY.sharding),
        ShardingTypeError,
        "normal: out_sharding must be a spec or a NamedSharding; got SingleDeviceSharding",
    ),
    (lambda: random.orthogonal(KEY, 1.5), ShapeError, "orthogonal: n must be an integer that"),
    (lambda: random.ball(KEY, -1), ShapeError, "ball: d must be an integer that is not negative"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD, ids=range(len(BAD)))
def test_mistakes_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", ["keys", "continuous", "choices", "gammas", "counts"])
def test_examples_of_the_documentation(name):
    module = importlib.import_module(f"weft.random.{name}")
    check_examples(module)


def test_integers_of_a_whole_dtype_are_the_same_when_compiled():
    draw = lambda key: random.randint(key, (7,), 0, 2**32, jnp.uint32)
    got = weft.jit(draw)(KEY)  # a remainder by a constant zero stopped the process
    np.testing.assert_array_equal(got, draw(KEY))
    assert got.dtype == jnp.uint32 and len(set(got.tolist())) == 7


INF, NAN = np.inf, np.nan
LARGEST = float(np.finfo(np.float32).max)


def test_logits_of_every_dtype():
    """Drawn in their own floats, integers in the default ones."""
    for dtype in (np.int32, np.float16, jnp.bfloat16, np.float32):
        logits = jnp.array([0, 2, 1]).astype(dtype)
        found = np.asarray(random.categorical(KEY, logits, shape=(2000,)))
        p = np.exp([0, 2, 1]) / np.exp([0, 2, 1]).sum()
        np.testing.assert_allclose((found[:, None] == np.arange(3)).mean(0), p, atol=0.04)


def test_words_of_64_bits():
    with weft.enable_x64(True):
        for partitionable in (False, True):
            with weft.config.scope(threefry_partitionable=partitionable):
                words = np.asarray(random.bits(KEY, (500,), np.uint64))
                share = np.unpackbits(words.view(np.uint8).reshape(500, 8), axis=1).mean(0)
                np.testing.assert_allclose(share, 0.5, atol=0.12)
                again = np.asarray(random.bits(KEY, (5, 100), np.uint64)).ravel()
                np.testing.assert_array_equal(again, words)


def test_shapes_and_bounds_as_users_give_them():
    low, high = jnp.array([[-3.0], [5.0]]), np.array([6.0, 7.0, 9.0], np.float32)
    x = np.asarray(random.uniform(KEY, [400, 2, 3], minval=low, maxval=high))
    assert x.shape == (400, 2, 3) and (x >= low).all() and (x < high).all()
    np.testing.assert_allclose(x.mean(0), (low + high) / 2, atol=0.5)
    np.testing.assert_array_equal(random.uniform(KEY, (4,), float, 2, jnp.float32(5)),
                                  random.uniform(KEY, (4,), float, jnp.float32(2), 5))  # fmt: skip
    x = np.asarray(random.uniform(KEY, shape=[500], minval=2.0, maxval=5.0))
    assert (x >= 2).all() and (x < 5).all() and abs(x.mean() - 3.5) < 0.2
    with weft.config.scope(numpy_rank_promotion="raise"), pytest.raises(ValueError, match="rank"):
        random.beta(KEY, low, high)
    assert random.choice(KEY, 4, ()).shape == () and random.choice(KEY, 0, (0,)).shape == (0,)


def test_one_draw_that_bounds_of_a_shape_scale():
    bounds = np.float32([[[1.0], [3.0]], [[2.0], [7.0]]])
    low, high = bounds[:, :1], bounds[:, 1:]
    x = weft.vmap(random.uniform, (None, None, None, 0, 0))(KEY, (), np.float32, low, high)
    assert x.shape == (2, 1, 1)
    np.testing.assert_allclose(x, low + (high - low) * random.uniform(KEY), rtol=1e-6)


def test_bounds_that_are_whole():
    assert random.randint(KEY, (3,), 0.0, np.prod(())).tolist() == [0, 0, 0]
