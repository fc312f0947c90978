"""Elementary functions at thousands of points, in units in the last place, against long doubles.

test_elementary_accuracy.py compares a few hundred points with mpmath. Where a formula is wrong in a
narrow range only, they may miss it. Errors of complex results are relative to their modulus.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp

LONG = np.finfo(np.longdouble).nmant > np.finfo(np.float64).nmant
REAL = """
exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh
arcsinh arccosh arctanh abs square reciprocal
""".split()  # noqa: SIM905
COMPLEX = [name for name in REAL if name not in ("exp2", "cbrt")]
CASES = [(name, dtype) for name in REAL for dtype in ("float32", "float64")]
CASES += [(name, dtype) for name in COMPLEX for dtype in ("complex64", "complex128")]
# Units in the last place.
BOUNDS = {"float32": 4, "float64": 5, "complex64": 8, "complex128": 8}
LOOSE = {("tanh", "float64"): 8}  # XLA's, for results next to 1
COUNT = 4096


def make_points(dtype, seed=0):
    """Return points near 0, of all sizes, and next to whole numbers."""
    rng = np.random.default_rng(seed)
    sign = rng.choice([-1, 1], COUNT)
    x = np.concatenate([
        rng.uniform(-3, 3, 2 * COUNT),
        rng.uniform(-30, 30, COUNT),
        10.0 ** rng.uniform(-8, 4, COUNT) * sign,
        rng.integers(-4, 5, COUNT) + 10.0 ** rng.uniform(-9, -1, COUNT) * sign,
    ])  # fmt: skip
    return (x + 1j * rng.permutation(x) if dtype[0] == "c" else x).astype(dtype)


def find_exact(name, x):
    """Return the value of NumPy in long doubles."""
    if name == "log1p" and np.iscomplexobj(x):  # NumPy's takes the logarithm of 1 + x
        a, b = x.real, x.imag
        size = a * (2 + a) + b * b
        near = np.log1p(np.where(size > -0.9, size, 0)) / 2
        return np.where(size > -0.9, near, np.log(np.hypot(1 + a, b))) + 1j * np.arctan2(b, 1 + a)
    return getattr(np, name)(x)


def count_units(got, want):
    """Return the errors in units in the last place; 0 where the results are not normal."""
    limits = np.finfo(got.dtype)
    size = np.abs(want)
    normal = (size > 8 * float(limits.tiny)) & (size < float(limits.max) / 2)
    for part in (want.real, want.imag):  # what is flushed to 0 is beside a small number
        normal &= (part == 0) | (abs(part) > float(limits.tiny))
    unit = np.spacing(np.where(normal, size, 1).astype(limits.dtype) * limits.dtype.type(0.9999))
    return np.where(normal, np.nan_to_num(np.abs(got - want) / unit, nan=np.inf), 0).astype(float)


@pytest.mark.skipif(not LONG, reason="long doubles are doubles here")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.sample(one_in=16)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_units_at_thousands_of_points(name, dtype):
    x = make_points(dtype)
    with weft.config.scope(enable_x64=True):
        got = np.asarray(weft.jit(getattr(jnp, name))(x))
    want = find_exact(name, x.astype(np.clongdouble if dtype[0] == "c" else np.longdouble))
    units = count_units(got, want)
    worst = units.argmax()
    where = (x[worst], got[worst], want[worst])
    assert units[worst] <= LOOSE.get((name, dtype), BOUNDS[dtype]), where
