"""The special cases of the array API standard: NaN, infinities, zeros and their signs.

Each elementwise function is applied to a grid of special values in one program for each dtype.
NumPy is the oracle, whose functions have the cases of the standard. Not compared are the signs of
zeros in functions of complex numbers without branch cuts.
"""

import itertools

import numpy as np
import pytest

import weft
import weft.numpy as jnp

NAN, INF = np.nan, np.inf
REAL = [NAN, INF, -INF, 0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1.5, -2.5, 1e30, -1e30, 1e-3]
PARTS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0]
UNARY = """
abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log10
log1p log2 negative positive reciprocal round signbit sin sinh sqrt square tan tanh trunc
"""
CUT = """
acos acosh asin asinh atan atanh conj imag isfinite isinf isnan log log10 log1p negative positive
real sqrt
"""
WHOLE = "abs cos cosh exp expm1 sign sin sinh square tan tanh"
BINARY = """
add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp
multiply not_equal pow remainder subtract
"""


def same(got, want, near, signed):
    """Return True if arrays are equal: NaN, infinities and zeros with signs, others nearly."""
    finite = np.isfinite(want)
    close = np.isclose(got, want, rtol=near, atol=0 if signed else near)
    good = np.where(finite & (want != 0), close, (np.isnan(want) & np.isnan(got)) | (got == want))
    if not signed or want.dtype == bool:
        return good
    return good & (np.isnan(want) | (np.signbit(got) == np.signbit(want)))


def compare(names, operands, near, signed=True):
    """Return the operands at which functions differ from NumPy's, by function."""
    wrong = {}
    found = weft.jit(lambda *xs: {name: getattr(jnp, name)(*xs) for name in names})(*operands)
    for name in names:
        with np.errstate(all="ignore"):
            want, got = getattr(np, name)(*operands), np.asarray(found[name])
            assert got.dtype == want.dtype, name
            parts = [(got.real, want.real), (got.imag, want.imag)]
            parts = parts if np.iscomplexobj(want) else [(got, want)]
            good = np.all([same(*pair, near, signed) for pair in parts], axis=0)
        for i in np.flatnonzero(~good):
            wrong.setdefault(name, []).append((*[x[i] for x in operands], got[i], want[i]))
    return "\n".join(f"{name}: {rows}" for name, rows in wrong.items())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_real_functions_of_special_values(dtype):
    near = 1e-5 if dtype == "float32" else 1e-13
    pairs = [*np.array([*itertools.product(REAL, REAL)], dtype).T.copy()]
    with weft.config.scope(enable_x64=True):
        assert not compare(UNARY.split(), [np.array(REAL, dtype)], near)
        assert not compare(BINARY.split(), pairs, near)
        assert not compare(["maximum", "minimum"], pairs, near, False)
        assert not compare(["sign"], [np.array(REAL, dtype)], near, False)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_functions_of_special_values(dtype):
    """On a branch cut the sign of a zero says on which side the operand is."""
    near = 1e-5 if dtype == "complex64" else 1e-13
    z = np.array([complex(a, b) for a, b in itertools.product(PARTS, PARTS)], dtype)
    with weft.config.scope(enable_x64=True):
        assert not compare(CUT.split(), [z[~np.isnan(z)]], near)
        assert not compare(WHOLE.split(), [z[np.isfinite(z)]], near, False)
