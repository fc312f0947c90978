"""Integers that the default dtypes do not hold: numbers beside arrays, and long ones as floats."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax

# Calls with an array X and a number S that its dtype holds; `np` is NumPy or weft.numpy.
BESIDE = """
np.pad(X, 1, constant_values=S)
np.fmax(X, S)
np.logical_and(X, S)
np.add.outer(X, S)
np.unwrap(X, period=S)
np.pad(X, ((1, 2),), constant_values=((S, 1),))
np.pad(X, 2, mode="linear_ramp", end_values=S)
np.isin(X, S)
np.union1d(X, S)
np.setdiff1d(X, S)
np.intersect1d(X, S)
np.setxor1d(X, S)
np.searchsorted(X, S)
np.append(X, S)
np.insert(X, 1, S)
np.insert(X, np.array([0, 2]), [S, 7])
np.diff(X, prepend=S, append=S)
np.ediff1d(X, to_begin=S, to_end=S)
np.piecewise(X, [X > 1], [S, 0])
np.piecewise(X, [X > 1], [0, S])
np.choose(np.array([0, 1]), [X[:2], S])
np.select([X > 1], [X], default=S)
np.where(X > 1, X, S)
np.clip(X, 0, S)
np.full_like(X, S)
np.full((2,), S, dtype=X.dtype)
np.array_equal(X, S)
np.array_equiv(X, S)
np.isclose(X, S)
np.dot(X, S)
np.inner(X, S)
np.outer(X, S)
np.kron(X, S)
np.stack([X[0], S])
np.hstack([X, S])
np.max(X, initial=S)
np.min(X, initial=S, where=X > 1)
np.sum(X, initial=S)
np.bitwise_or.reduce(X, initial=S)
np.maximum.reduce(X, initial=S)
np.linspace(0, S, 3, dtype=X.dtype)
S - X
X // S
"""
# the same for functions that NumPy has not, with the result
OWN = {
    "X.at[0].set(S)": lambda x, s: [s, *x[1:]],
    "X.at[:2].set([S, 7])": lambda x, s: [s, 7, *x[2:]],
    "jnp.put(X, 0, S, inplace=False)": lambda x, s: [s, *x[1:]],
    "jnp.put_along_axis(X, jnp.array([1]), S, 0, inplace=False)": lambda x, s: [x[0], s, *x[2:]],
    "jnp.place(X, X > 1, S, inplace=False)": lambda x, s: np.where(x > 1, s, x),
    "jnp.take(X, jnp.array([0, 9]), mode='fill', fill_value=S)": lambda x, s: [x[0], s],
    "jnp.fill_diagonal(X[None].repeat(1, 0), S, inplace=False)": lambda x, s: [[s, *x[1:]]],
    "jnp.unique(X, size=4, fill_value=S)": lambda x, s: [*x, s],
    "jnp.array([X[0], S])": lambda x, s: [x[0], s],
    "lax.pad(X, S, [(1, 0, 0)])": lambda x, s: [s, *x],
    "lax.clamp(0, X, S)": lambda x, s: x,
    "lax.polynomial(X, [S, 1])": lambda x, s: x + s,
    "lax.convert_element_type(S, X.dtype)": lambda x, s: s,
}
LARGE = {"uint32": 2**32 - 1, "uint64": 2**63 + 2**62, "int64": 2**62, "float32": 2**40}


def find_exact(text, x, s):
    """Return the result of a call by NumPy; None if it refuses the call."""
    if text in OWN:
        return np.array(OWN[text](x, x.dtype.type(s)), x.dtype)
    try:
        with np.errstate(all="ignore"):
            return np.asarray(eval(text, {"np": np, "X": x, "S": s}))
    except (OverflowError, TypeError, ValueError):
        return None


@pytest.mark.sample(one_in=2)
@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.filterwarnings("ignore")
def test_numbers_that_only_the_dtype_of_the_array_holds(dtype):
    """They are taken eagerly and in a program, with NumPy's results."""
    x, s = np.array([1, 2, 5], dtype), LARGE[dtype]
    wants = {text: find_exact(text, x, s) for text in [*BESIDE.strip().split("\n"), *OWN]}
    wants = {text: want for text, want in wants.items() if want is not None}
    wrong = []

    def call_all(v, texts):
        found = {}
        for text in texts:
            try:
                found[text] = eval(text, {"np": jnp, "jnp": jnp, "lax": lax, "X": v, "S": s})
            except Exception as error:
                wrong.append(f"{text}: {' '.join(str(error).split())[:200]}")
        return found

    fixed = [text for text in wants if "1d(" not in text and "union" not in text]
    with weft.enable_x64(dtype.endswith("64")):
        eager = call_all(jnp.asarray(x), wants)
        compiled = weft.jit(lambda v: call_all(v, fixed))(jnp.asarray(x))
    for text, got in [*eager.items(), *compiled.items()]:
        got, want = np.asarray(got), wants[text]
        kind = got.dtype if got.dtype == x.dtype else float  # modulo 2**bits
        try:
            np.testing.assert_allclose(got.astype(kind), want.astype(kind), 1e-6)
        except AssertionError as error:
            wrong.append(f"{text}: {' '.join(str(error).split())[:200]}")
    assert not wrong, "\n".join(wrong)


FAR = np.array([3, 1, 8, 0, 6, 2])
# Functions that subtract integers, which float32 would round first: their operands are near 2**30.
DIFFERENCES = {
    "var": lambda np, x: np.var(x),
    "std": lambda np, x: np.std(x, axis=0, ddof=1),
    "cov": lambda np, x: np.cov(x, x[::-1]),
    "cov of columns": lambda np, x: np.cov(np.stack([x, x[::-1]], axis=1), rowvar=False),
    "cov with weights": lambda np, x: np.cov(x, fweights=np.array([1, 2, 1, 3, 1, 1])),
    "corrcoef": lambda np, x: np.corrcoef(x, x[::-1] * 0 + np.array([1, 5, 2, 4, 4, 1])),
    "gradient": lambda np, x: np.gradient(x),
    "gradient along places": lambda np, x: np.gradient(np.array([1.0, 4, 2, 2, 7, 1]), np.sort(x)),
    "trapezoid": lambda np, x: np.trapezoid(np.array([1.0, 4, 2, 2, 7, 1]), np.sort(x)),
    "interp": lambda np, x: np.interp(x, np.array([0, 5, 9]) + x.min(), np.array([1.0, 3, 7])),
    "interp from outside": lambda np, x: np.interp(
        x, np.array([2, 5]) + x.min(), np.array([1.0, 3]), left=-1, right=-2
    ),
    "interp of a period": lambda np, x: np.interp(
        x, np.array([2, 5]) + x.min(), np.array([1.0, 3]), period=7
    ),
    "isclose": lambda np, x: np.isclose(x, x[::-1], rtol=0, atol=2),
    "allclose": lambda np, x: np.allclose(x, x + np.array([0, 0, 0, 0, 0, 1]), rtol=0, atol=0),
    "ptp": lambda np, x: np.ptp(x),
}
ROUNDED = {
    "pad mean": lambda np, x: np.pad(x, 1, mode="mean"),
    "pad median": lambda np, x: np.pad(x, 1, mode="median"),
    "pad mean of some": lambda np, x: np.pad(x, 1, mode="mean", stat_length=2),
    "pad ramp": lambda np, x: np.pad(x, 3, mode="linear_ramp", end_values=int(2**30)),
    "linspace": lambda np, x: np.linspace(x.min(), x.max(), 4, dtype=x.dtype),
}


@pytest.mark.sample(one_in=3)
@pytest.mark.parametrize("name", [*DIFFERENCES, *ROUNDED])
@pytest.mark.parametrize(
    ("dtype", "base"), [("int32", 2**30), ("int32", -(2**31)), ("uint32", 2**32 - 20)]
)
def test_differences_of_long_integers(name, dtype, base):
    x = (FAR + base).astype(dtype)
    fun = {**DIFFERENCES, **ROUNDED}[name]
    want = np.asarray(fun(np, x if name in ROUNDED or name == "ptp" else x.astype(np.int64)))
    for call in (lambda x: fun(jnp, x), weft.jit(lambda x: fun(jnp, x))):
        got = np.asarray(call(jnp.asarray(x)))
        if name in ROUNDED:
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_integers_in_even_steps_are_exact():
    """Floats of 32 bits round 2.9999998, of steps by a seventh, down to 2."""
    for start, stop, num in [(0, 9, 4), (0, 49, 50), (5, -7, 13), (-3, 100, 7), (0, 2**31 - 1, 8)]:
        for endpoint in (True, False):
            parts = num - endpoint
            want = [start + (stop - start) * i // parts for i in range(num)]
            got = jnp.linspace(start, stop, num, endpoint, dtype=np.int32)
            assert got.tolist() == want
            got = jnp.linspace(jnp.array([start, stop]), float(stop), num, endpoint, dtype=int)
            assert got.dtype == np.int32
    assert jnp.linspace(0.0, 9.0, 4, dtype=int).tolist() == [0, 3, 6, 9]
    assert jnp.linspace(0, 1, 3, dtype=np.uint8).tolist() == [0, 0, 1]
    out, step = jnp.linspace(0, 9, 4, retstep=True, dtype=int)
    values, step = jnp.linspace(0, 9, 4, retstep=True, dtype=int)
    assert float(step) == 3 and values.tolist() == [0, 3, 6, 9]


def test_a_ramp_ends_at_an_axis_of_one_element():
    x = jnp.array([4])
    np.testing.assert_array_equal(jnp.pad(x, 2, "linear_ramp"), np.pad([4], 2, "linear_ramp"))
    short = jnp.array([60000], np.float16)
    assert np.isfinite(np.asarray(jnp.pad(short, 1, "median"))).all()
