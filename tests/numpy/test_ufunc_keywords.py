"""The methods of universal functions with each of their keywords, against NumPy."""

import contextlib

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.settings import ALL

FLOATS = np.array([[3.5, 1, 2, 4], [2.25, 5, 4.5, 1.5], [7, 6, 1, 2.75]])
INTS = np.array([[1, 5, 2, 3], [3, 1, 2, 7], [6, 2, 1, 3]])
BOOLS = INTS % 2 == 1
OPERANDS = (FLOATS, INTS, BOOLS)
WHERE = FLOATS > 1.2
AT = np.array([0, 2, 0])
NAMES = """
add arctan2 bitwise_and bitwise_or bitwise_xor copysign divide equal float_power floor_divide fmax
fmin fmod gcd greater hypot lcm less logaddexp logaddexp2 logical_and logical_or logical_xor maximum
minimum multiply not_equal power remainder subtract
""".split()  # noqa: SIM905
KEYWORDS = {
    "reduce": [
        {}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"axis": None}, {"axis": (0, 1)},
        {"axis": ()}, {"where": WHERE, "initial": 1}, {"initial": 2}, {"dtype": "float32"},
    ],
    "accumulate": [{}, {"axis": 1}, {"axis": -1}, {"dtype": "float32"}],
    "reduceat": [{}, {"axis": 1}, {"dtype": "float32"}],
    "outer": [{}],
    "at": [{}],
}  # fmt: skip
# Infinite results that are converted to integers, as the operand has them, are not defined.
CASES = [(n, m) for n in NAMES for m in KEYWORDS if (n, m) != ("float_power", "at")]


def call(home, name, method, x, kwargs):
    """Return the result of a method, of `at` the array that is changed."""
    fun = getattr(getattr(home, name), method)
    if method == "outer":
        return fun(x[0], x[:2])
    if method == "reduceat":
        return fun(x, np.array([0, 2, 1]), **kwargs)
    if method != "at":
        return fun(x, **kwargs)
    if home is np:
        fun(x := x.copy(), AT, x[1:2].copy())
        return x
    return fun(x, AT, x[1:2], inplace=False)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.sample(one_in=30)
@pytest.mark.parametrize(("name", "method"), CASES)
def test_methods_with_each_keyword(name, method):
    """All calls are one program; the first one runs eagerly too.

    Each keyword is tested with one of the operands, and with another one for the next name. With
    --all it is tested with each.
    """
    calls, wants = [], []
    turn = NAMES.index(name) + list(KEYWORDS).index(method)
    for k, x in enumerate(OPERANDS):
        for i, kwargs in enumerate(KEYWORDS[method]):
            if len(KEYWORDS[method]) > 1 and (turn + i + k) % len(OPERANDS) and not ALL:
                continue
            with contextlib.suppress(TypeError, ValueError):
                wants.append(call(np, name, method, x, kwargs))
                calls.append((k, kwargs))
    every = lambda xs: [call(jnp, name, method, xs[k], kwargs) for k, kwargs in calls]
    with weft.config.scope(enable_x64=True):
        founds = weft.jit(every)(OPERANDS)
        k, kwargs = calls[0]
        check(k, kwargs, call(jnp, name, method, OPERANDS[k], kwargs), wants[0])
    for (k, kwargs), got, want in zip(calls, founds, wants, strict=True):
        check(k, kwargs, got, want)


def check(k, kwargs, got, want):
    x, got = OPERANDS[k], np.asarray(got)
    assert got.shape == want.shape, (x.dtype, kwargs)
    if x is BOOLS and want.dtype != bool:  # often float16 or int8, in NumPy
        want = want.astype(got.dtype)
    assert got.dtype == want.dtype, (x.dtype, kwargs)
    near = 1e-6 if got.dtype == np.float32 else 1e-12
    near = 1e-3 if x is BOOLS else near
    np.testing.assert_allclose(got, want, rtol=near, err_msg=f"{x.dtype} {kwargs}")
