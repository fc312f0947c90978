"""The planted faults and the stable programs in float64, with arguments at the scale of float64.

Functions of `faults.py` that do not name a dtype are used as they are. `FAULTS` and `STABLE` have
the same form as there; run them within `enable_x64`.
"""

import numpy as np

import weft
import weft.numpy as jnp
from tests.explain.numerics import faults
from weft import lax

RNG = np.random.default_rng(0)
F64 = np.float64
SEEDS: dict[str, tuple] = {  # arguments for functions of faults.py
    "variance_by_squares": (RNG.normal(size=100) + 1e8,),
    "quadratic_formula": (F64(1.0), F64(1e9), F64(1.0)),
    "near_points": (np.array([1 + 3e-9, 2 + 7e-9]), np.array([1 + 2e-9, 2 + 5e-9])),
    "log_of_one_plus": (np.array([1e-18, 3e-17, 1e-16]),),
    "exp_minus_one": (np.array([1e-14, 3e-15, 1e-15]),),
    "one_minus_cos": (np.array([1e-8, 3e-8]),),
    "difference_of_roots": (F64(1e15),),
    "difference_of_squares": (F64(100000001.3), F64(100000001.2)),
    "one_minus_tanh": (F64(16.0),),
    "one_minus_sigmoid": (np.array([35.0, 36.0]),),
    "covariance_by_products": (3e8 + np.array([0.1, 0.2, 0.4]), 3e8 + np.array([0.0, 1.0, 2.0])),
    "area_by_shoelace": (np.array([1e8 + 0.1, 1e8]), np.array([1e8, 1e8 + 0.1])),
    "kalman_update": (np.array([[1e9, 0.0], [0.0, 1e-6]]), F64(1e-8)),
    "rank_by_gram": (RNG.normal(size=(30, 1)) * 1e-9 + 1,),
    "sine_of_large": (F64(1e13 + 0.3),),
    "acos_near_one": (F64(1e-4),),
    "softmax_of_large": (np.array([1000.0, 999.0, 3.0]),),
    "log_of_softmax": (np.array([0.0, -900.0, 3.0]),),
    "log_of_sum_of_exp": (np.array([800.0, 801.0]),),
    "norm_overflows": (np.array([3e190, 4e190]),),
    "likelihood_product": (np.full(1000, 0.3),),
    "softplus": (np.array([800.0, 2.0]),),
    "chaotic_map": (F64(0.3),),
    "time_in_float32": (F64(2.0**53),),
    "gradient_of_hidden_root": (F64(0.0),),
    "normalize_zero": (np.zeros(3),),
    "root_of_negative": (np.array([0.5, 1.0 + 1e-12]),),
    "entropy_of_zero": (np.array([0.0, 2.0]),),
    "mixed_dtypes": (RNG.normal(size=64), RNG.normal(size=64)),
}
FAULTS: dict[str, tuple] = {name: (faults.FAULTS[name][0], args) for name, args in SEEDS.items()}


def fault(*args):
    def add(fun):
        FAULTS[fun.__name__] = fun, args
        return fun

    return add


@fault(F64(1e-9))
def numerical_derivative(h):
    x = 1.3 + 0 * h
    rise = jnp.sin(x + h * 1e-5) - jnp.sin(x)  # <-
    return rise / (h * 1e-5)


@fault(F64(60.0))
def series_of_exp(x):
    def add_term(i, state):
        term, total = state
        term = -term * x / (i + 1)
        return term, total + term  # <-

    return lax.fori_loop(0, 220, add_term, (jnp.ones(()), jnp.ones(())))[1]


@fault(F64(1.0))
def recurrence_wrong_way(x):
    def step(value, n):
        value = 1 - n * value  # <-
        return value, value

    return lax.scan(step, 1 - jnp.exp(-x), jnp.arange(1.0, 24.0))[0]


@fault(F64(1.5707963267948))
def tan_near_pole(x):
    y = x * 1.0000000000000615 - 1e-17
    return jnp.tan(y)  # <-


@fault(F64(1e-9))
def heron(c):
    a, b = 3.0 + c * 0, 3.0 - c / 2
    s = (a + b + c) / 2
    return jnp.sqrt(jnp.abs(s * (s - a) * (s - b) * (s - c)))  # <-


@fault(RNG.normal(size=30) * 1e-9 + 5)
def deviation_of_standardized(x):
    total, squares = jnp.sum(x), jnp.sum(x**2)
    return squares / 30 - (total / 30) ** 2  # <-


@fault(F64(1e-6), F64(3.0))
def slope_through_near_points(d, x):
    first, second = jnp.exp(x * 1e-5), jnp.exp((x + d) * 1e-5)
    return (second - first) / d  # <-


@fault(np.array([1e8 + 1.0, 1e8 - 1.0]))
def log_of_quotient(x):
    ratio = x[0] / x[1]
    return jnp.log(ratio)  # <-


@fault(F64(40.0))
def factorial_ratio(n):
    def step(i, f):
        return f * (i + 1)  # <-

    top = lax.fori_loop(0, 180, step, jnp.ones(()))
    return top / (top / n)


@fault(np.array([100, 2**62]))
def integers_wrap(x):
    total = x + x * 2  # <-
    return total.astype(F64)


@fault(np.arange(1.0, 33.0))
def stored_in_float32(x):
    low = (x * 1.1).astype(np.float32)  # <-
    return jnp.sum(low.astype(F64))


@fault(np.array([[1.0, 1.0 + 1e-14], [1.0, 1.0]]))
def determinant_of_near_rows(a):
    left, right = a[0, 0] * 1.1 * a[1, 1], a[0, 1] * 1.1 * a[1, 0]
    return left - right  # <-


@fault(F64(1.0))
def sum_of_alternating(x):
    n = jnp.arange(1.0, 3001.0)
    terms = 1e10 * jnp.cos(n) + x / n
    return jnp.sum(terms - 1e10 * jnp.cos(n))  # <-


STABLE = {
    name: (fun, tuple(widen(a) for a in args))
    for widen in [
        lambda a: (
            np.asarray(a).astype(np.complex128 if np.iscomplexobj(a) else F64)
            if np.asarray(a).dtype.kind in "fc"
            else a
        )
    ]
    for name, (fun, args) in faults.STABLE.items()
    if name not in ("compensated_sum", "newton_root", "moving_average", "backward_recurrence")
}


def stable(*args):
    def add(fun):
        STABLE[fun.__name__] = fun, args
        return fun

    return add


@stable(RNG.normal(size=1000))
def compensated_sum(x):
    def step(state, v):
        total, low = state
        y = v - low
        new = total + y
        return (new, (new - total) - y), None

    return lax.scan(step, (jnp.asarray(100.0), jnp.zeros(())), x)[0][0]


@stable(F64(2.0))
def newton_root(x):
    return lax.fori_loop(0, 8, lambda i, y: y - (y * y - x) / (2 * y), jnp.ones(()))


@stable(RNG.normal(size=5))
def moving_average(x):
    step = lambda m, v: (0.9 * m + 0.1 * v, m)
    return lax.scan(step, jnp.zeros(()), x)


@stable(F64(10.0))
def backward_recurrence(x):
    def step(c, n):
        value = (1 - c) / n
        return value, value

    return lax.scan(step, x * 0, jnp.arange(30.0, 1.0, -1.0))[0]


@stable(RNG.normal(size=(6, 6)))
def eigenvalues(a):
    return jnp.linalg.eigvalsh(a + a.T)


@stable(RNG.normal(size=(12, 12)))
def cholesky_solve(a):
    factor = jnp.linalg.cholesky(a @ a.T + 3 * jnp.eye(12))
    return weft.scipy.linalg.cho_solve((factor, True), jnp.ones(12))


@stable(RNG.normal(size=(40, 5)))
def least_squares(a):
    q, r = jnp.linalg.qr(a)
    return weft.scipy.linalg.solve_triangular(r, q.T @ jnp.ones(40))
