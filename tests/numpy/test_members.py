"""numpy/members.py: elements that are among others, against comparisons of all pairs."""

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import config
from weft.cpu.kernels import load_kernels
from weft.numpy.members import MAX_COMPARED

DTYPES = ["bool", "int4", "complex64", "float8_e4m3fn", "float16", "bfloat16", "float32", "float64"]
DTYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
# Elements and members: none, a few that are compared, a table, and a table of a wide range.
SIZES = [(0, 3), (7, 0), (400, 5), (400, MAX_COMPARED), (400, 90), (9000, 2), (9000, 700)]


def draw_elements(dtype, size, wide, rng):
    """Return elements from a pool, so that many are equal: with NaN, -0 and the extremes."""
    if dtype.kind == "b":
        return rng.integers(0, 2, size).astype(bool)
    if dtype.kind in "iu" or dtype.name == "int4":
        info = ml_dtypes.iinfo(dtype)
        low, high = (info.min, info.max) if wide else (max(-90, info.min), min(90, info.max))
        pool = rng.integers(low, high, 300, np.int64 if info.max < 2**62 else dtype, endpoint=True)
        pool[:2] = low, high
    else:
        pool = rng.standard_normal(300) * (100 if wide else 1)
        pool[:3] = 0.0, -0.0, np.nan
    return rng.choice(pool, size).astype(dtype)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("native", [True, False], ids=["native", "plain"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_members_are_those_that_are_equal(dtype, native, rng):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    as_known = np.asarray if dtype.kind in "biufc" else lambda x: x.astype(np.float64)
    with config.scope(enable_x64=True, native=native):
        for n, m in SIZES:
            for wide in (False, True):
                x, members = (draw_elements(dtype, k, wide, rng) for k in (n, m))
                found = jnp.isin(jnp.asarray(x), jnp.asarray(members))
                expected = (as_known(x)[:, None] == as_known(members)).any(1)
                np.testing.assert_array_equal(found, expected, f"{n} {m} {wide}")


def test_members_of_batches(rng):
    x, members = rng.integers(0, 90, (4, 50)), rng.integers(0, 90, (4, 40))
    each = np.stack([np.isin(a, b) for a, b in zip(x, members, strict=True)])
    np.testing.assert_array_equal(weft.vmap(jnp.isin)(x, members), each)
    shared = weft.vmap(jnp.isin, (1, None), 1)(x, members[0])
    np.testing.assert_array_equal(shared, np.isin(x, members[0]))
    each = np.stack([np.isin(x[0], b) for b in members])
    np.testing.assert_array_equal(weft.vmap(jnp.isin, (None, 0))(x[0], members), each)


def test_members_of_sizes_that_vary(rng):
    found = weft.jit(jnp.isin, sizes="(n,), (m,)")
    for n, m in ((5, 3), (50, 45), (7, 90)):
        x, members = rng.integers(-3, 40, n), rng.integers(1, 80, m)
        for y in (x, np.zeros_like(x)):  # no member is 0, which padding might be
            np.testing.assert_array_equal(found(y, members), np.isin(y, members))


def test_members_move_nothing():
    x = jnp.arange(50.0)
    chosen, moved = weft.jvp(lambda x: jnp.where(jnp.isin(x, x[:40]), x, 0), (x,), (x,))
    np.testing.assert_array_equal(chosen, moved)
    np.testing.assert_array_equal(chosen, np.where(np.arange(50) < 40, np.arange(50.0), 0))


@pytest.mark.skipif(bool(load_kernels()), reason="the kernels are not built")
def test_a_table_is_for_many_members_and_for_programs_that_would_wake_a_thread():
    def looks_up(fun, n, m):
        return "weft_members" in weft.jit(fun).lower(jnp.zeros(n), jnp.zeros(m)).as_text()

    assert looks_up(jnp.isin, 100_000, MAX_COMPARED + 1)
    assert looks_up(jnp.isin, 1000, 3) and not looks_up(jnp.isin, 100, 3)
    assert not looks_up(jnp.isin, 100_000, 3)
    assert not looks_up(lambda x, y: jnp.sin(x) * jnp.isin(x, y), 1000, 3)
