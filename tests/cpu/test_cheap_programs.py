"""Programs of one cheap operation, computed by a kernel: against XLA's bits, and against NumPy."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import config, lax, nn
from weft.cpu import groups
from weft.cpu.kernels import load_kernels
from weft.cpu.opcodes import cheap_instruction

pytestmark = pytest.mark.skipif(bool(load_kernels()), reason="there are no kernels")


@pytest.fixture(autouse=True)
def leave_groups(monkeypatch):
    """Have what these plans leave compiled by XLA, not computed by calls of a later pass."""
    monkeypatch.setattr(groups, "call_operations", lambda jaxpr: jaxpr)


N = 1500
SPECIAL = np.array(
    [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-40, -1e-40, 1e-310, 1.2e-38, 3e38, 1e300]
    + [0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 0.49999999999999994, 8388607.5, 4503599627370495.5]
    + [1, -1, 3, 127, -128, 255, 256, 2147483647, 2147483648, -2147483904, 4e9]
)
REAL = ["float32", "float64"]
ALL = [*REAL, "int32", "int8", "uint8"]


def draw(dtype, size=N, seed=0):
    """Return numbers of all magnitudes, with the ends of the dtype and special values."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(size) < 0.5
    rare = rng.random(size) < 0.3
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            x = rng.standard_normal(size) * 10.0 ** rng.integers(-3, 4, size)
            return np.where(rare, rng.choice(SPECIAL, size), x).astype(dtype)
    ends = np.iinfo(dtype)
    special = rng.choice([ends.min, ends.max, 0, 1], size)
    return np.where(rare, special, rng.integers(ends.min, ends.max, size)).astype(dtype)


def is_called(fun, *args):
    return "weft_program" in weft.jit(fun).lower(*args).as_text()


def assert_same_bits(x, y):
    """All bits are alike; of NaN none is looked at."""
    x, y = np.asarray(x), np.asarray(y)
    assert x.dtype == y.dtype and x.shape == y.shape
    if x.dtype.kind == "f":
        assert (np.isnan(x) == np.isnan(y)).all()
        x, y = (np.where(np.isnan(z), 0, z).view(f"u{z.itemsize}") for z in (x, y))
    np.testing.assert_array_equal(x, y)


def like(x, value):
    return np.array(value, x.dtype)[()]


OF_ALL = {
    "add": lambda x, y, z, b, a: x + y,
    "sub": lambda x, y, z, b, a: x - y,
    "from a number": lambda x, y, z, b, a: like(x, 3) - x,
    "mul": lambda x, y, z, b, a: x * y,
    "times a number": lambda x, y, z, b, a: x * like(x, 3),
    "by an element": lambda x, y, z, b, a: x * a,
    "square": lambda x, y, z, b, a: lax.square(x),
    "power": lambda x, y, z, b, a: lax.integer_pow(x, 2),
    "abs": lambda x, y, z, b, a: lax.abs(x),
    "sign": lambda x, y, z, b, a: lax.sign(x),
    "max": lambda x, y, z, b, a: lax.max(x, y),
    "max with zero": lambda x, y, z, b, a: lax.max(x, like(x, 0)),
    "min": lambda x, y, z, b, a: lax.min(x, y),
    "clamp": lambda x, y, z, b, a: lax.clamp(x, y, z),
    "clamp to numbers": lambda x, y, z, b, a: lax.clamp(like(x, 1), y, like(x, 3)),
    "eq": lambda x, y, z, b, a: x == y,
    "ne": lambda x, y, z, b, a: x != x,
    "lt": lambda x, y, z, b, a: x < y,
    "le": lambda x, y, z, b, a: x <= like(x, 3),
    "gt": lambda x, y, z, b, a: x > like(x, 1),
    "ge": lambda x, y, z, b, a: x >= z,
    "select": lambda x, y, z, b, a: lax.select(b, x, y),
    "not": lambda x, y, z, b, a: ~b,
}
OF_REAL = {
    "div": lambda x, y, z, b, a: x / y,
    "over": lambda x, y, z, b, a: like(x, 2) / y,
    "inverse": lambda x, y, z, b, a: jnp.reciprocal(x),
    "neg": lambda x, y, z, b, a: -x,
    "floor": lambda x, y, z, b, a: lax.floor(x),
    "ceil": lambda x, y, z, b, a: lax.ceil(x),
    "round": lambda x, y, z, b, a: jnp.rint(x),
    "isnan": lambda x, y, z, b, a: jnp.isnan(x),
    "isfinite": lambda x, y, z, b, a: jnp.isfinite(x),
    "isinf": lambda x, y, z, b, a: jnp.isinf(x),
    "clip": lambda x, y, z, b, a: jnp.clip(x, 1, y),
    "where": lambda x, y, z, b, a: jnp.where(x > 2, y, like(x, 7)),
    "relu6": lambda x, y, z, b, a: nn.relu6(x),
    "relu": lambda x, y, z, b, a: nn.relu(x),
    "leaky_relu": lambda x, y, z, b, a: nn.leaky_relu(x),
    "hard_sigmoid": lambda x, y, z, b, a: nn.hard_sigmoid(x),
    "by a number": lambda x, y, z, b, a: x / like(x, 3),
    "nan_to_num": lambda x, y, z, b, a: jnp.nan_to_num(x),
    "sum, then product": lambda x, y, z, b, a: (x - y) * z,
    **{
        f"{f.__name__} with {c}": lambda x, y, z, b, a, f=f, c=c: f(x, like(x, c))
        for f in (lax.max, lax.min)
        for c in (2, -2, 0.0, -0.0, np.nan)
    },
    **{
        f"where {name} a number": lambda x, y, z, b, a, f=f: jnp.where(f(x, 2.5), y, z)
        for name, f in {
            "eq": lax.eq,
            "ne": lax.ne,
            "gt": lax.gt,
            "ge": lax.ge,
            "lt": lax.lt,
        }.items()
    },
    "where le an element": lambda x, y, z, b, a: jnp.where(x <= a, like(x, 7), x),
    "a test used twice": lambda x, y, z, b, a: ((c := x > 2) & b) | jnp.where(c, x < 9, x > 1),
    "slices": lambda x, y, z, b, a: x[3:] - y[:-3],
    "a row": lambda x, y, z, b, a: x.reshape(-1, 5)[1:] + y.reshape(-1, 5)[:-1],
}
OF_BITS = {
    "and": lambda x, y, z, b, a: x & y,
    "or": lambda x, y, z, b, a: x | y,
    "xor": lambda x, y, z, b, a: x ^ y,
    "invert": lambda x, y, z, b, a: ~x,
}


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("dtype", [*ALL, "bool"])
def test_its_bits_are_those_of_xla(dtype, as_for_users):
    found = {} if dtype == "bool" else dict(OF_ALL)
    found |= OF_REAL if dtype in REAL else OF_BITS
    for to in {*ALL, "bool"} - {dtype}:
        found[f"to {to}"] = lambda x, y, z, b, a, to=to: lax.convert_element_type(x, to)
    with config.scope(enable_x64=True):
        args = (*(x := [draw(dtype, seed=k) for k in range(3)]), draw(bool), x[1][5])
        called = {name: is_called(fun, *args) for name, fun in found.items()}
        assert called == dict.fromkeys(found, True)
        ours = {
            name: weft.jit(fun, compiler_options=as_for_users)(*args) for name, fun in found.items()
        }
        with config.scope(native=False):
            every = weft.jit(
                lambda *args: {name: fun(*args) for name, fun in found.items()},
                compiler_options=as_for_users,
            )
            assert "weft_program" not in every.lower(*args).as_text()
            for name, want in every(*args).items():
                assert_same_bits(ours[name], want)


@pytest.mark.sample(one_in=8)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float32"])
def test_what_the_kernel_has_not_is_left_to_xla(dtype):
    x, y, z = (draw(dtype, seed=k) for k in range(3))
    y = np.where(y == 0, like(y, 1), y)  # what XLA divides by, too
    count = 0
    primitives = [getattr(lax, name) for name in dir(lax) if name.endswith("_p")]
    for name in ("reciprocal", *[p.name for p in primitives if cheap_instruction(p)]):
        if (name, dtype) == ("clamp", "bool"):  # which XLA has not
            continue
        f = getattr(lax, BITWISE.get(name, name))
        every = {"select_n": [draw(bool), x, y], "clamp": [x, y, z]}.get(name, [x, y])
        for args in (every, every[:1], [x, y[0]], [x[0], y]):
            try:
                jaxpr = weft.make_jaxpr(f)(*args).jaxpr
            except TypeError:
                continue
            if jaxpr.eqns:
                short = [a[:100] if a.shape else a for a in args]
                assert_same_bits(weft.jit(f)(*args)[:100], weft.jit(f)(*short))
                count += 1
    assert count > 20


BITWISE = {name: f"bitwise_{name}" for name in ("and", "or", "xor", "not")}


# sizes of one block and less, of some, and of several pieces
@pytest.mark.parametrize("shape", [(1024,), (1, 70, 31), (400_003,)])
def test_against_numpy(shape):
    x, y = np.random.default_rng(0).standard_normal((2, *shape)).astype(np.float32)
    cases = [
        (jnp.add, np.add, (x, y)),
        (lambda x: x - 3, lambda x: x - np.float32(3), (x,)),
        (lambda x: jnp.maximum(x, 0), lambda x: np.maximum(x, 0), (x,)),
        (jnp.logical_or, np.logical_or, (x > 0, y > 0)),
        (jnp.where, np.where, (x > 0, x, y)),
        (lambda x: x.astype("int32"), lambda x: x.astype("int32"), (x,)),
    ]
    for ours, numpys, args in cases:
        assert is_called(ours, *args)
        np.testing.assert_array_equal(weft.jit(ours)(*args), numpys(*args))
        np.testing.assert_array_equal(ours(*map(jnp.asarray, args)), numpys(*args))


@pytest.mark.parametrize("x64", [False, True])
def test_numbers_are_converted_first(x64):
    with config.scope(enable_x64=x64):
        x = jnp.arange(1024.0, dtype=np.float32)
        for number in (3, 2.5, True, np.int8(-2), jnp.int32(7)):
            times = weft.jit(lambda x, y: x * y)
            assert "weft_program" in times.lower(x, number).as_text()
            np.testing.assert_array_equal(times(x, number), np.asarray(x) * np.float32(number))
            np.testing.assert_array_equal(x * number, np.asarray(x) * np.float32(number))


def test_transformed():
    x = np.random.default_rng(0).standard_normal((2, N)).astype(np.float32)
    assert is_called(weft.vmap(lambda x: nn.relu(x)), x)
    np.testing.assert_array_equal(weft.vmap(nn.relu)(x), np.maximum(x, 0))
    g = weft.jit(weft.grad(lambda x: nn.relu(x).sum()))(x)
    np.testing.assert_array_equal(g, np.where(x > 0, np.float32(1), np.float32(0)))
    np.testing.assert_array_equal(weft.grad(lambda x: (x * 3).sum())(x), np.full_like(x, 3))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, y: jnp.sin(x),  # not cheap
        lambda x, y: x * y + y,  # in one
        lambda x, y: x + 0.0,  # nothing to do
        lambda x, y: 1.0 * x,
        lambda x, y: x / 1e-39,  # a product with a subnormal number
        lambda x, y: x**3,
        lambda x, y: (x + y, x),
        lambda x, y: x.astype("complex64"),
        lambda x, y: lax.select_n(x.astype("int32"), x, y, x),
        lambda x, y: x[:1000] + y[:1000],
        lambda x, y: x.astype("int32") // 3,
        lambda x, y: lax.round(x),  # halves away from zero
        lambda x, y: jnp.broadcast_to(x, (2, N)),
        lambda x, y: (2.0, x + y),
        lambda x, y: jnp.flip(x) + y,
    ],
)
def test_what_is_left_to_xla(fun):
    assert not is_called(fun, *np.ones((2, N), np.float32))


def test_results_that_are_numbers_or_arguments():
    x = np.arange(N, dtype=np.float32)
    two, more, same = weft.jit(lambda x: (2.0, x + 1, x))(x)
    assert two == 2
    np.testing.assert_array_equal(more, x + 1)
    np.testing.assert_array_equal(same, x)


def count_flops(fun, *args):
    """Count what XLA knows of; `cost_analysis` of a program counts kernels too."""
    compiled = weft.jit(fun).lower(*args).compile()
    return compiled.runtime_executable().cost_analysis()["flops"]


LINALG = {
    "cholesky": lambda x, b: jnp.linalg.cholesky(x),
    "cho_factor": lambda x, b: weft.scipy.linalg.cho_factor(x, lower=True)[0],
    "inv": lambda x, b: jnp.linalg.inv(x),
    "solve": lambda x, b: jnp.linalg.solve(x + 2, b),
    "qr": lambda x, b: jnp.linalg.qr(x),
    "eigh": lambda x, b: jnp.linalg.eigh(x),
    "svd": lambda x, b: jnp.linalg.svd(x),
    "schur": lambda x, b: weft.scipy.linalg.schur(x),
    "triangular": lambda x, b: weft.scipy.linalg.solve_triangular(x, 2 * b),
}


@pytest.mark.parametrize("name", LINALG)
def test_beside_lapack_the_engine_counts_few_operations(name):
    """It gives programs of a thousand to another thread."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 40)).astype(np.float32)
    args = x @ x.T + 40 * np.eye(40, dtype=np.float32), x[0]
    assert count_flops(LINALG[name], *args) < 1000
    got = weft.jit(LINALG[name])(*args)
    with config.scope(native=False):
        assert count_flops(LINALG[name], *args) > 1000 or name == "triangular"
        want = weft.jit(LINALG[name])(*args)
    for x, y in zip(*map(weft.tree.leaves, (got, want)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)


def test_sizes_and_settings():
    x, many = np.ones(N, np.float32), weft.ShapeDtypeStruct((1 << 21,), np.float32)
    assert is_called(jnp.add, x, x) and not is_called(jnp.add, x[:1000], x[:1000])
    assert not is_called(jnp.add, many, many)
    some = weft.ShapeDtypeStruct((1 << 19,), np.float32)
    assert is_called(jnp.maximum, some, some) and is_called(nn.relu, some)
    assert not is_called(lambda x: (x > 1) & (x < 2), some)
    assert not is_called(jnp.add, *np.ones((2, 0, 3), np.float32))
    assert not is_called(jnp.add, 1.0, 2)
    donating = weft.jit(jnp.add, donate_argnums=0).lower(x, x).as_text()
    assert "weft_program" not in donating
    with config.scope(passes=""):  # what nothing needs stays
        assert weft.jit(lambda x: [x + 1][:0])(x) == []
    with config.scope(native=False):
        assert not is_called(jnp.add, x, x)
        np.testing.assert_array_equal(weft.jit(jnp.add)(x, x), x + x)
    kept = weft.jit(lambda x, y: x + x, keep_unused=True)
    np.testing.assert_array_equal(kept(x, x[:5]), x + x)


VIEWS = {  # of 60 by 70
    "steps": lambda np, x: x[::3, 1:],
    "columns": lambda np, x: x[:, 5::2],
    "backward": lambda np, x: np.flip(x),
    "rows backward": lambda np, x: x[::-1],
    "a column": lambda np, x: x.reshape(1400, 3)[:, 2],
    "a diagonal": lambda np, x: np.concatenate([np.diagonal(x, 7)] * 1).repeat(1),
    **{f"every {k}.": lambda np, x, k=k: x.reshape(-1)[2::k] for k in (2, 3, 4, 5, -1)},
    "repeated": lambda np, x: np.broadcast_to(x[3, :, None], (60, 70, 40)),
    "rows again": lambda np, x: np.broadcast_to(x[2], (33, 60, 70)[::2]),
    "filled": lambda np, x: np.full_like(x, 3),
    "by an element": lambda np, x: np.broadcast_to(x[2, 3], (50, 50)),
    "parts": lambda np, x: np.split(x, 2, 1),
    "both": lambda np, x: [x[::-1], np.where(x > 3, x, np.zeros_like(x))],
    "a turn": lambda np, x: np.rot90(np.concatenate([x] * 1).reshape(60, 70)),
}


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32", "float64", "complex64", "uint8"])
def test_moved_elements(dtype):
    x = (np.arange(4200).reshape(60, 70) % 251).astype(dtype)
    for fun in VIEWS.values():
        found = weft.jit(lambda x, fun=fun: fun(jnp, x))(x)
        expected = fun(np, x)
        for y, z in zip(*map(weft.tree.leaves, (found, expected)), strict=True):
            np.testing.assert_array_equal(np.asarray(y), z.astype(y.dtype))


def test_which_moves_are_called():
    x = np.ones((60, 70), np.float32)
    element = np.arange(4200, dtype=np.float32).reshape(60, 70)
    calls = lambda fun, x=x: weft.jit(fun).lower(x).as_text().count("weft_view")
    assert calls(lambda x: x[::-1]) == calls(lambda x: x[::3, 1:]) == calls(jnp.zeros_like) == 1
    assert calls(lambda x: jnp.split(x, 7, 1)) == 0  # short rows
    assert calls(lambda x: jnp.split(x, 3)) == 3
    assert calls(lambda x: (x[::-1], x + 2)) == 1
    assert calls(lambda x: x[::-1] + 1) == calls(lambda x: x) == calls(lambda x: x[:1, :100]) == 0
    assert calls(jnp.transpose, np.ones((300, 300), np.float32)) == 0
    assert calls(lambda x: jnp.repeat(x, 2, 1)) == 0
    assert calls(lambda x: x[::-1].reshape(-1)) == 0
    assert calls(lambda x: x[::-1], np.ones((60, 70), jnp.int4)) == 0
    np.testing.assert_array_equal(weft.jit(lambda x: x * x[3, 2])(element), element * element[3, 2])
    x = np.zeros((0, 70), np.float32)
    assert calls(lambda x: x[::-1], x) == 0 and weft.jit(lambda x: x[::-1])(x).shape == (0, 70)
    numbers = weft.jit(lambda x: x.astype("int32") * x[3, 2].astype("int32"))(element)
    np.testing.assert_array_equal(numbers, element.astype("int32") * 212)
