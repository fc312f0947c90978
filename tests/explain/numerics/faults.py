"""Programs with a planted fault of the textbooks, and stable programs beside them.

`FAULTS` has for each name a function, whose faulty line ends in `# <-`, and its arguments; `STABLE`
the same without a fault.
"""

import numpy as np

import weft
import weft.numpy as jnp
from weft import lax

RNG = np.random.default_rng(0)
F32 = np.float32
FAULTS: dict[str, tuple] = {}
STABLE: dict[str, tuple] = {}


def fault(*args):
    def add(fun):
        FAULTS[fun.__name__] = fun, args
        return fun

    return add


def stable(*args):
    def add(fun):
        STABLE[fun.__name__] = fun, args
        return fun

    return add


def normal(*shape):
    return RNG.normal(size=shape).astype(F32)


def half(x):
    return jnp.asarray(x, jnp.float16)


def brain(x):
    return jnp.asarray(x, jnp.bfloat16)


# --- cancellation ---------------------------------------------------------------------------------


@fault(normal(100) + 3000)
def variance_by_squares(x):
    mean = jnp.mean(x)
    squares = jnp.mean(x * x)
    var = squares - mean * mean  # <-
    return jnp.sqrt(jnp.abs(var) + 1e-3)


@fault(F32(1.0), F32(2e4), F32(1.0))
def quadratic_formula(a, b, c):
    root = jnp.sqrt(b * b - 4 * a * c)
    return (-b + root) / (2 * a)  # <-


@fault(np.array([1.0003, 2.0007], F32), np.array([1.0002, 2.0005], F32))
def near_points(x, y):
    xx, yy, xy = jnp.sum(x * x), jnp.sum(y * y), jnp.sum(x * y)
    squared = xx + yy - 2 * xy  # <-
    return jnp.sqrt(jnp.abs(squared))


@fault(np.array([1e-9, 3e-9, 1e-8], F32))
def log_of_one_plus(x):
    return jnp.log(1 + x)  # <-


@fault(np.array([1e-6, 3e-7, 1e-7], F32))
def exp_minus_one(x):
    y = x * 1.1
    return jnp.exp(y) - 1  # <-


@fault(np.array([1e-4, 3e-4], F32))
def one_minus_cos(x):
    c = jnp.cos(x)
    return 1 - c  # <-


@fault(F32(1e6))
def difference_of_roots(x):
    a, b = jnp.sqrt(x + 1), jnp.sqrt(x)
    return a - b  # <-


@fault(F32(10001.3), F32(10001.2))
def difference_of_squares(x, y):
    p, q = x * x, y * y
    return p - q  # <-


@fault(F32(1e-3))
def numerical_derivative(h):
    x = jnp.float32(1.3)
    rise = jnp.sin(x + h * 1e-3) - jnp.sin(x)  # <-
    return rise / (h * 1e-3)


@fault(F32(6.0))
def one_minus_tanh(x):
    t = jnp.tanh(x)
    return 1 - t  # <-


@fault(F32(4.5))
def one_minus_erf(x):
    return 1 - weft.scipy.special.erf(x)  # <-


@fault(np.array([20.0, 25.0], F32))
def one_minus_sigmoid(x):
    p = 1 / (1 + jnp.exp(-x))
    return jnp.log(1 - p + 1e-30)  # <-


@fault(np.array([3000.1, 3000.2, 3000.4], F32), np.array([3000.0, 3001.0, 3002.0], F32))
def covariance_by_products(x, y):
    cross = jnp.mean(x * y)
    return cross - jnp.mean(x) * jnp.mean(y)  # <-


@fault(np.array([1000.1, 1000.0], F32), np.array([1000.0, 1000.1], F32))
def area_by_shoelace(x, y):
    a = x[0] * y[1] * 1.01
    b = x[1] * y[0] * 1.01
    return 0.5 * (a - b) - 0.5 * (a - b) * 0.5  # <-


@fault(F32(0.017))
def kahan_triangle(c):
    a, b = jnp.float32(3.0) + c * 0, jnp.float32(2.9999998)
    s = (a + b + c * 1e-5) / 2
    return jnp.sqrt(jnp.abs(s * (s - a) * (s - b) * (s - c * 1e-5)))  # <-


@fault(F32(40.0))
def series_of_exp(x):
    def add_term(i, state):
        term, total = state
        term = -term * x / (i + 1)
        return term, total + term  # <-

    return lax.fori_loop(0, 120, add_term, (jnp.float32(1), jnp.float32(1)))[1]


@fault(np.array([[1e4, 0.0], [0.0, 1e-3]], F32), F32(1e-4))
def kalman_update(P, R):
    H = jnp.array([[1.0, 0.3]])
    S = H @ P @ H.T + R
    K = P @ H.T / S
    new = P - K @ (H @ P)  # <-
    return new[0, 0]


@fault(normal(30, 1) * 1e-4 + 1)
def rank_by_gram(X):
    A = jnp.concatenate([X, jnp.ones_like(X)], 1)
    G = A.T @ A
    return G[0, 0] * G[1, 1] - G[0, 1] * G[1, 0]  # <-


@fault(F32(1.0))
def recurrence_wrong_way(x):
    def step(value, n):
        value = 1 - n * value  # <-
        return value, value

    return lax.scan(step, 1 - jnp.exp(-x), jnp.arange(1.0, 16.0, dtype=F32))[0]


@fault(F32(0.3))
def chaotic_map(x):
    def step(i, x):
        return 3.99 * x * (1 - x)  # <-

    return lax.fori_loop(0, 60, step, x)


@fault(F32(1e5 + 0.3))
def sine_of_large(x):
    angle = x * 6.2831853
    return jnp.sin(angle)  # <-


@fault(F32(1.5707))
def tan_near_pole(x):
    y = x * 1.00006128 - 1e-9
    return jnp.tan(y)  # <-


@fault(F32(0.1))
def acos_near_one(x):
    c = jnp.cos(x * 1e-3)
    return jnp.arccos(c)  # <-


# --- overflow and underflow -----------------------------------------------------------------------


@fault(np.array([1000.0, 999.0, 3.0], F32))
def softmax_of_large(x):
    e = jnp.exp(x)  # <-
    return e / jnp.sum(e)


@fault(np.array([0.0, -200.0, 3.0], F32))
def log_of_softmax(x):
    e = jnp.exp(x - jnp.max(x))  # <-
    p = e / jnp.sum(e)
    return jnp.log(p)


@fault(np.array([800.0, 801.0], F32))
def log_of_sum_of_exp(x):
    total = jnp.sum(jnp.exp(x))  # <-
    return jnp.log(total)


@fault(np.array([3e19, 4e19], F32))
def norm_overflows(x):
    s = jnp.sum(x * x)  # <-
    return jnp.sqrt(s)


@fault(np.array([3e-25, 4e-25], F32))
def norm_underflows(x):
    s = jnp.sum(x * x)  # <-
    return jnp.sqrt(s)


@fault(np.full(200, 0.3, F32))
def likelihood_product(p):
    product = jnp.prod(p)  # <-
    return jnp.log(product)


@fault(np.array([100.0, 2.0], F32))
def softplus(x):
    return jnp.log(1 + jnp.exp(x))  # <-


@fault(half(np.array([300.0, 400.0])))
def squares_in_half(x):
    s = x * x  # <-
    return jnp.mean(s)


@fault(half(np.array([1e-4, 2e-4])), half(np.array([1e-4, 1e-4])))
def loss_without_scaling(x, w):
    loss = lambda w: jnp.sum(w * x) * half(1e-4)  # <-
    return weft.grad(loss)(w)


@fault(F32(40.0))
def factorial_ratio(n):
    def step(i, f):
        return f * (i + 1)  # <-

    top = lax.fori_loop(0, 45, step, jnp.float32(1))
    return top / (top / n)


# --- rounding -------------------------------------------------------------------------------------


@fault(brain(np.float32(1.0)))
def small_updates_in_bfloat16(w):
    def step(i, w):
        return w + jnp.bfloat16(1e-3)  # <-

    return lax.fori_loop(0, 500, step, w)


@fault(normal(64), normal(64))
def mixed_dtypes(x, y):
    low = (x + 2).astype(jnp.bfloat16)  # <-
    return jnp.sum(low.astype(F32) * y) ** 2 + jnp.sum(low.astype(F32)[:3])


@fault(np.arange(1, 4001, dtype=F32))
def counter_in_half(x):
    def step(total, v):
        return total + v, None  # <-

    return lax.scan(step, jnp.float16(0), jnp.ones(4000, jnp.float16))[0] + half(x[0])


@fault(F32(16777216.0))
def time_in_float32(t):
    now = t + 0.37
    return now - t  # <-


# --- NaN and infinities ---------------------------------------------------------------------------


@fault(F32(0.0))
def gradient_of_hidden_root(x):
    def f(x):
        root = jnp.sqrt(x)  # <-
        return jnp.where(x > 0, root, 0.0)

    return weft.grad(f)(x)


@fault(np.zeros(3, F32))
def normalize_zero(x):
    norm = jnp.sqrt(jnp.sum(x * x))
    return x / norm  # <-


@fault(np.array([0.5, 1.0 + 1e-6], F32))
def root_of_negative(x):
    y = 1 - x * x
    return jnp.sqrt(y)  # <-


@fault(np.array([100, 120], np.int8))
def integers_wrap(x):
    total = x + jnp.int8(30)  # <-
    return total.astype(F32)


@fault(np.array([0.0, 2.0], F32))
def entropy_of_zero(p):
    q = p / jnp.sum(p)
    return -jnp.sum(q * jnp.log(q))  # <-


# --- stable ---------------------------------------------------------------------------------------


@stable(F32([-100.0, -2.0, 0.0, 5.0, 90.0]))
def saturated_gradient(x):
    return weft.grad(lambda x: jnp.sum(weft.nn.log_sigmoid(x)))(x)  # the last one is 8e-40


@stable(normal(100) + 3000)
def variance_in_two_passes(x):
    d = x - jnp.mean(x)
    return jnp.mean(d * d)


@stable(np.array([1000.0, 999.0, -3.0], F32))
def softmax_shifted(x):
    return weft.nn.softmax(x)


@stable(np.array([1000.0, 999.0, -3.0], F32))
def log_softmax(x):
    return weft.nn.log_softmax(x)


@stable(np.array([800.0, 801.0], F32))
def logsumexp(x):
    return weft.scipy.special.logsumexp(x)


@stable(np.array([1e-9, 3e-9, 1e-8], F32))
def log1p(x):
    return jnp.log1p(x) + jnp.expm1(x)


@stable(F32(1.0), F32(2e4), F32(1.0))
def stable_quadratic(a, b, c):
    q = -0.5 * (b + jnp.sign(b) * jnp.sqrt(b * b - 4 * a * c))
    return q / a, c / q


@stable(np.array([3e19, 4e19], F32))
def scaled_norm(x):
    top = jnp.max(jnp.abs(x))
    return top * jnp.sqrt(jnp.sum((x / top) ** 2))


@stable(normal(1000))
def compensated_sum(x):
    def step(state, v):
        total, low = state
        y = v - low
        new = total + y
        return (new, (new - total) - y), None

    return lax.scan(step, (jnp.float32(100), jnp.float32(0)), x)[0][0]


@stable(F32(2.0))
def newton_root(x):
    return lax.fori_loop(0, 8, lambda i, y: y - (y * y - x) / (2 * y), jnp.float32(1))


@stable(normal(16, 8), normal(8, 4), normal(16, 4))
def network_gradient(x, w, y):
    loss = lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2)
    return weft.grad(loss)(w)


@stable(normal(8, 8))
def linear_solve(A):
    return jnp.linalg.solve(A @ A.T + 8 * jnp.eye(8), jnp.ones(8))


@stable(normal(12))
def layer_norm(x):
    d = x - jnp.mean(x)
    return d / jnp.sqrt(jnp.mean(d * d) + 1e-5)


@stable(np.array([0.0, 4.0], F32))
def double_where(x):
    f = lambda x: jnp.sum(jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0))
    return weft.grad(f)(x)


@stable(normal(6, 6))
def masked_attention(x):
    mask = jnp.tril(jnp.ones((6, 6), bool))
    return weft.nn.softmax(jnp.where(mask, x @ x.T, -jnp.inf)) @ x


@stable(normal(5))
def moving_average(x):
    step = lambda m, v: (0.9 * m + 0.1 * v, m)
    return lax.scan(step, jnp.float32(0), x)


@stable(F32(10.0))
def backward_recurrence(x):
    def step(c, n):
        value = (1 - c) / n
        return value, value

    return lax.scan(step, x * 0, jnp.arange(30.0, 1.0, -1.0, dtype=F32))[0]


@stable(np.arange(10, dtype=np.int32))
def integers_only(x):
    return jnp.cumsum(x * x) // 3


@stable(np.array([-3.0, 0.0, 2.0], F32))
def cross_entropy(x):
    return -jnp.sum(weft.nn.log_sigmoid(x))


@stable(F32(0.5))
def ode_step(y):
    def step(i, y):
        k1 = -y
        k2 = -(y + 0.05 * k1)
        return y + 0.1 * k2

    return lax.fori_loop(0, 50, step, y)


@stable(normal(20, 3))
def principal_scales(x):
    d = x - jnp.mean(x, 0)
    return jnp.linalg.svd(d, compute_uv=False)


@stable(normal(4, 4) + 1j * normal(4, 4))
def complex_product(z):
    return jnp.abs(z @ z) + jnp.real(jnp.fft.fft(z[0]))
