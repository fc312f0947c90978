"""Roundings to bfloat16 by operations on bits: against XLA's own, and against NumPy."""

import functools

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS
from weft import lax, nn
from weft.cpu import rounding
from weft.cpu.passes import prepare_jaxpr
from weft.cpu.rounding import EXACT, MAX_ROUNDINGS, MIN_ELEMENTS, ODD, ROUNDED, count_roundings

BF16 = ml_dtypes.bfloat16
EVERY = np.arange(1 << 16, dtype=np.uint16).view(BF16)  # all of them: NaN, infinities, tiny ones
assert EVERY.size == MIN_ELEMENTS


def pairs():
    """Each number with another, and the special ones with each other."""
    rng = np.random.default_rng(0)
    odd = [0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80]
    odd = np.array([*odd, 0x7F81, 0x7FC0, 0x7FFF, 0xFF81, 0xFFFF], np.uint16).view(BF16)
    x, y = EVERY.copy(), rng.permutation(EVERY)
    n = len(odd) ** 2
    x[:n], y[:n] = np.repeat(odd, len(odd)), np.tile(odd, len(odd))
    near = rng.standard_normal((2, MIN_ELEMENTS // 2)).astype(BF16)
    x[-len(near[0]) :], y[-len(near[1]) :] = near
    return x, y


def prepare(fun, *args):
    """The program that the CPU is given, without kernels."""
    return prepare_jaxpr(weft.make_jaxpr(fun)(*args).jaxpr, NO_KERNELS)


def count_rounded(fun, *args):
    """Return the number of operations that are rounded by bits."""
    return count_roundings(prepare(fun, *args))


def assert_same(x, y):
    """All bits are alike; of NaN none is looked at."""
    x, y = np.asarray(x), np.asarray(y)
    assert x.dtype == y.dtype and x.shape == y.shape
    if x.dtype.kind in "fV":
        nans = np.isnan(y.astype(np.float32))
        assert (np.isnan(x.astype(np.float32)) == nans).all()
        x, y = (np.where(nans, 0, z.view(f"u{z.itemsize}")) for z in (x, y))
    np.testing.assert_array_equal(x, y)


def by_the_engine(monkeypatch, fun, *args, **options):
    """Return the results of a program with XLA's roundings."""
    with monkeypatch.context() as patch:
        patch.setattr(rounding, "MIN_ELEMENTS", 1 << 60)
        return weft.jit(lambda *xs: fun(*xs), compiler_options=options)(*args)


FUNCTIONS = {
    "abs": jnp.abs, "ceil": lax.ceil, "clamp": lambda x, y: lax.clamp(x, y, lax.neg(x)),
    "floor": lax.floor, "maximum": lax.max, "minimum": lax.min, "negate": lax.neg,
    "select": lambda x, y: jnp.where(x < y, x, y), "sign": lax.sign, "add": lax.add,
    "cosine": lax.cos, "divide": lax.div, "exponential": lax.exp,
    "exponential_minus_one": lax.expm1, "log": lax.log, "log_plus_one": lax.log1p,
    "logistic": lax.logistic, "multiply": lax.mul, "power": lax.pow, "rsqrt": lax.rsqrt,
    "sine": lax.sin, "sqrt": lax.sqrt, "subtract": lax.sub, "tanh": lax.tanh,
}  # fmt: skip


BINARY = (lax.max, lax.min, lax.add, lax.sub, lax.mul, lax.div, lax.pow)


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("op", sorted(ROUNDED))
def test_every_number_is_rounded_as_by_the_engine(op, as_for_users, monkeypatch):
    fun = FUNCTIONS[op]
    args = pairs() if op in ("clamp", "select") or fun in BINARY else (EVERY,)
    with weft.config.scope(native=False, enable_compilation_cache=False):
        text = str(prepare(fun, *args))
        rounded = "cut" if op in EXACT else "any" if op in ODD else "round"
        if op not in ("cosine", "sine", "power"):  # formulas, of float64
            assert f"settings=('{rounded}',) write=write_rounding" in text
        want = by_the_engine(monkeypatch, fun, *args, **as_for_users)
        assert_same(weft.jit(fun, compiler_options=as_for_users)(*args), want)


def test_against_numpy(as_for_users):
    x, y = pairs()
    with np.errstate(all="ignore"):
        usual = np.float32(x), np.float32(y)
        cases = [(jnp.add, np.add), (jnp.multiply, np.multiply), (jnp.maximum, np.maximum)]
        for ours, numpys in cases:
            want = numpys(*usual)
            keep = (abs(want) >= 2.0**-126) & (abs(usual[0]) >= 2.0**-126)  # others are flushed
            keep &= abs(usual[1]) >= 2.0**-126
            with weft.config.scope(native=False):
                found = weft.jit(ours, compiler_options=as_for_users)(x, y)
            assert_same(np.asarray(found)[keep], want.astype(BF16)[keep])


def test_conversions_from_float32(as_for_users):
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 32, 4 * MIN_ELEMENTS, dtype=np.uint32)
    bits[::3] = bits[::3] & 0xFFFF0000 | 0x8000  # halfway
    bits[1::5] = bits[1::5] & 0x807FFFFF  # tiny
    bits[2::7] |= 0x7F800000  # NaN of all payloads
    bits[:4] = 0x7F800001, 0xFFFFFFFF, 0x7FFF8000, 0x7F7FFFFF
    x = bits.view(np.float32)
    to_half = lambda x: x.astype(jnp.bfloat16)
    assert count_rounded(to_half, x) == 1
    with np.errstate(all="ignore"):
        want = x.astype(BF16)
    with weft.config.scope(native=False):
        found = weft.jit(to_half, compiler_options=as_for_users)(x)
        assert_same(found, want)
        found = weft.jit(lambda x: to_half(x).astype(np.float32), compiler_options=as_for_users)(x)
        assert_same(found, want.astype(np.float32))


def softmax_loss(x, y):
    return jnp.mean(nn.log_softmax(x, -1) * y)


def gelu_by_tanh(x, y):
    return x * (0.5 * (1 + jnp.tanh(0.8 * (x + 0.045 * x**3))))


PROGRAMS = {
    "a chain": (lambda x, y: jnp.exp(x * 2 + 1) * y - 3, 5),
    "gelu by tanh": (gelu_by_tanh, 9),
    "silu": (lambda x, y: nn.silu(x), 2),
    "elu": (lambda x, y: nn.elu(x), 4),
    "power": (lambda x, y: (x + 1) ** 3, 3),
    "softmax": (lambda x, y: nn.softmax(x), 0),
    "normalized": (lambda x, y: (x - jnp.mean(x, 1, keepdims=True)) * lax.rsqrt(y * y + 1), 5),
    "of a product": (lambda x, y: nn.relu(x @ y) * 2, 2),
    "of a conversion": (lambda x, y: x.astype("float32").astype(jnp.bfloat16) * y, 2),
    "not rounded": (lambda x, y: (x * y).astype("float32") * 3, 0),
    "moved, then wide": (lambda x, y: (x * y).T.astype("float32") * 3, 1),
    "division by a number": (lambda x, y: x / 3, 1),
    "a gradient": (weft.grad(softmax_loss), 0),
    "a loop": (lambda x, y: lax.fori_loop(0, 3, lambda i, v: v * y + 1, x), 2),
    "a branch": (lambda x, y: lax.cond(x[0, 0] > 0, lambda: x * y, lambda: x + y), 2),
    "called": (lambda x, y: weft.jit(jnp.exp)(jnp.tanh(x)).astype("float32"), 0),
    "mapped": (lambda x, y: weft.vmap(lambda a, b: jnp.tanh(a * b))(x, y), 2),
}


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_they_gave(name, as_for_users, monkeypatch):
    fun, count = PROGRAMS[name]
    x, y = np.random.default_rng(2).standard_normal((2, 256, 256)).astype(BF16)
    assert count_rounded(fun, x, y) == count
    with weft.config.scope(native=False, enable_compilation_cache=False):
        want = by_the_engine(monkeypatch, fun, x, y, **as_for_users)
        assert_same(weft.jit(fun, compiler_options=as_for_users)(x, y), want)


def test_what_reductions_alone_read_is_left():
    x = weft.ShapeDtypeStruct((256, 256), jnp.bfloat16)
    for fun in (jnp.sum, lambda x: jnp.sum(jnp.exp(x - 1).astype("float32"), 1), jnp.std):
        assert count_rounded(fun, x) == 0
    costly = lambda x: [y := jnp.exp(x), y.sum()]
    assert count_rounded(costly, x) == 1


def test_what_is_left():
    half, full = (weft.ShapeDtypeStruct((MIN_ELEMENTS,), d) for d in (jnp.bfloat16, np.float32))
    few = weft.ShapeDtypeStruct((MIN_ELEMENTS - 1,), jnp.bfloat16)
    for fun, x in ((jnp.exp, few), (jnp.exp, full), (lambda x: x[::2] > 0, half)):
        assert count_rounded(fun, x) == 0
    rough = lambda x: lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST)
    assert count_rounded(rough, half) == 0


def test_what_would_be_computed_again_is_left():
    x = weft.ShapeDtypeStruct((256, 256), jnp.bfloat16)
    some = {
        "a mean": lambda x: (y := x * 3 + 1) - jnp.mean(y, 1, keepdims=True),
        "a product": lambda x: (y := x + 1) + y @ y,
        "a result": lambda x: [y := x - 1, y * 2],
        "moved": lambda x: [(y := x - 1).T, y * 2],
        "a loop": lambda x: lax.fori_loop(0, 3, lambda i, v: v * 2, y := x + 1) + y,
    }
    for name, fun in some.items():
        assert count_rounded(fun, x) == 0, name
    assert count_rounded(lambda x: (y := jnp.tanh(x)) + y @ y, x) == 2


def test_long_programs_are_left():
    x = weft.ShapeDtypeStruct((MIN_ELEMENTS,), jnp.bfloat16)
    repeat = lambda n: lambda x: functools.reduce(lambda x, _: x * x, range(n), x)
    assert (
        count_rounded(repeat(MAX_ROUNDINGS), x) == MAX_ROUNDINGS
        and count_rounded(repeat(MAX_ROUNDINGS + 1), x) == 0
    )


def test_what_crosses_calls_is_left():
    x = weft.ShapeDtypeStruct((256, 256), jnp.bfloat16)
    layer = weft.jit(lambda x: jnp.tanh(x @ x) + x)
    assert count_rounded(lambda x: layer(layer(x * 2) * 3), x) == 0


def test_programs_that_are_called_are_looked_at_by_themselves():
    x = weft.ShapeDtypeStruct((2, MIN_ELEMENTS), jnp.bfloat16)
    inner = weft.jit(lambda x: jnp.exp(x * 2) > 1)
    assert count_rounded(lambda x: [jnp.exp(x), inner(x)], x) == 3


def test_the_compiled_program_rounds_by_bits():
    x = jnp.ones(MIN_ELEMENTS, jnp.bfloat16)
    lowered = weft.jit(lambda x: (jnp.exp(x), x)).lower(x)
    with weft.config.scope(enable_compilation_cache=False):
        assert "shift-right-logical" in lowered.compile().as_text()


def test_names_of_scopes_stay():
    def double(x):
        with weft.named_scope("outer"):
            return x * 2

    with weft.config.scope(native=False):
        lowered = weft.jit(double).lower(jnp.ones(MIN_ELEMENTS, jnp.bfloat16))
    lines = lowered.as_text(debug_info=True).splitlines()
    kept = [line for line in lines if 'loc("jit(double)/outer/mul"' in line]
    assert any("multiply" in line for line in kept) and any("shift_right" in line for line in kept)
