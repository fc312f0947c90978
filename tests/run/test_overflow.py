"""Integers that do not fit their type, under debug_overflow: against Python's integers."""

import operator

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import config, lax, random

BIG = np.int32(2**31 - 1)
PAIRS = [
    (BIG, 1),
    (BIG, 0),
    (-BIG - 1, 1),
    (-BIG - 1, -1),
    (2**16, 2**15),
    (2**16, 2**15 - 1),
    (3, -4),
]


def fits(exact, dtype=np.int32):
    return np.iinfo(dtype).min <= exact <= np.iinfo(dtype).max


def overflows(fun, *args):
    try:
        fun(*args)
    except OverflowError:
        return True
    return False


@pytest.fixture(autouse=True)
def checked():
    with config.scope(debug_overflow=True):
        yield


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit, lambda f: weft.vmap(f, (0, 0))])
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul])
def test_raises_just_where_the_exact_result_does_not_fit(op, wrap):
    f = wrap(op)
    for a, b in PAIRS:
        x, y = jnp.int32([int(a)] * 2), jnp.int32([int(b)] * 2)
        assert overflows(f, x, y) == (not fits(op(int(a), int(b))))


@pytest.mark.parametrize(
    "fun, exact",
    [
        (jnp.sum, lambda xs: [sum(xs)]),
        (jnp.cumsum, lambda xs: np.cumsum(xs, dtype=object)),
        (jnp.prod, lambda xs: [np.prod(xs, dtype=object)]),
        (lambda x: jnp.dot(x, x), lambda xs: [sum(x * x for x in xs)]),
        (lambda x: -x, lambda xs: [-x for x in xs]),
        (lambda x: x**3, lambda xs: [x**3 for x in xs]),
        (jnp.abs, lambda xs: [*map(abs, xs)]),
    ],
)
def test_reductions_and_the_rest(fun, exact):
    for xs in ([1, 2], [2**30, 2**30], [-(2**31), 0], [1290, 1], [1291, 1], [46341, 1]):
        assert overflows(fun, jnp.int32(xs)) == (not all(map(fits, exact(xs))))


def test_conversions_must_keep_the_number():
    assert overflows(lambda x: x.astype(jnp.int32), jnp.float32(3e9))
    assert overflows(lambda x: x.astype(jnp.int8), jnp.int32(128))
    assert overflows(lambda x: x.astype(jnp.int32), jnp.float32(np.nan))
    assert jnp.float32([1.7, -2.5]).astype(jnp.int32).tolist() == [1, -2]
    assert jnp.int32(-128).astype(jnp.int8) == -128
    assert jnp.float32([0, -0.0]).astype(jnp.int32).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_sums_that_just_fit(dtype):
    """Also for 64 bits, where the exact result is rounded to a float64."""
    with weft.enable_x64():
        most, two = np.iinfo(dtype).max, jnp.array(2, dtype)
        for a, b in ((most - 2, 2), (most // 2, most // 2), (most // 3, most // 5)):
            a, b = np.array(a, dtype), np.array(b, dtype)
            assert (jnp.array(a) + jnp.array(b)).item() == int(a) + int(b)
            assert (jnp.array(a) - jnp.array(b) if a > b else two).item() in (int(a) - int(b), 2)
        assert overflows(operator.add, jnp.array(most, dtype), two)


def test_64_bits():
    with weft.enable_x64():
        assert overflows(lambda x: x + 1, jnp.int64(2**63 - 1))
        assert (jnp.int64(2**62) + 1).item() == 2**62 + 1


def test_loops_name_the_line_and_the_step():
    f = weft.jit(lambda n: lax.fori_loop(1, 20, lambda k, c: c * k, n))
    with pytest.raises(OverflowError, match=r"mul: .* got 6227020800, made by `c \* k` at test_ov"):
        f(jnp.int32(1))
    with pytest.raises(OverflowError, match="in step 19 of scan"):
        lax.scan(lambda c, _: (c * 3, None), jnp.int32(1), None, length=40)


def test_what_wraps_on_purpose_passes():
    random.normal(random.key(0), (3,)), random.permutation(random.key(1), 5)
    assert (jnp.uint8(255) + jnp.uint8(1)).item() == 0
    assert lax.cond(jnp.bool_(True), lambda x: x, lambda x: x * x, jnp.int32(BIG)) == BIG
