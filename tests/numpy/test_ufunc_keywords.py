"""The methods of universal functions with each of their keywords, against NumPy."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp

FLOATS = np.array([[3.5, 1, 2, 4], [2.25, 5, 4.5, 1.5], [7, 6, 1, 2.75]])
INTS = np.array([[1, 5, 2, 3], [3, 1, 2, 7], [6, 2, 1, 3]])
BOOLS = INTS % 2 == 1
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
    for x in (FLOATS, INTS, BOOLS):
        for kwargs in KEYWORDS[method]:
            try:
                want = call(np, name, method, x, kwargs)
            except (TypeError, ValueError):
                continue
            with weft.config.scope(enable_x64=True):
                got = np.asarray(call(jnp, name, method, x, kwargs))
            assert got.shape == want.shape, (x.dtype, kwargs)
            if x is BOOLS and want.dtype != bool:  # often float16 or int8, in NumPy
                want = want.astype(got.dtype)
            assert got.dtype == want.dtype, (x.dtype, kwargs)
            near = 1e-6 if got.dtype == np.float32 else 1e-12
            near = 1e-3 if x is BOOLS else near
            np.testing.assert_allclose(got, want, rtol=near, err_msg=f"{x.dtype} {kwargs}")
