"""Our own functions under numpy_rank_promotion="raise" and numpy_dtype_promotion="strict".

Operands that satisfy the rule must not make a function raise from inside, and those that do not
must still raise. Functions are traced, never compiled.
"""

import importlib
import inspect
import itertools
import re
import warnings

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests import test_calls
from tests.scipy.stats.test_distribution import CASES
from weft import config, dtypes, eval_shape, image, nn, random
from weft.example_libraries import stax
from weft.experimental import rnn, sparse
from weft.experimental.ode import odeint
from weft.experimental.sparse.linalg import lobpcg_standard
from weft.scipy import fft, integrate, linalg, ndimage, signal, special, stats
from weft.scipy.interpolate import RegularGridInterpolator
from weft.scipy.sparse.linalg import bicgstab, cg, gmres
from weft.scipy.spatial.transform import Rotation, Slerp

STRICT = {"numpy_rank_promotion": "raise", "numpy_dtype_promotion": "strict"}
KEY = random.key(0)
HOST = np.arange(4, dtype=np.float32)
F32, C64, BF16 = np.dtype("float32"), np.dtype("complex64"), np.dtype(jnp.bfloat16)


def of(shape, dtype=F32):
    return weft.ShapeDtypeStruct(shape, dtype)


V, M, T, Q = (of((4,) * n) for n in (1, 2, 3, 4))
CV, CM = of((4,), C64), of((4, 4), C64)
IV, IM = of((4,), np.int32), of((4, 4), np.int32)


def rotate(q, v, times):
    r = Rotation.from_quat(q)
    turned = (r * r.inv()).apply(v), r.as_euler("xyz"), r.as_matrix(), r.as_rotvec(), r.as_mrp()
    return turned, r.magnitude(), Rotation.from_euler("zyx", v).as_quat(), r.mean().as_quat()


def run_lstm(key, x):
    weights = rnn.init_lstm_weight(key, 4, 3, 2, True)
    states = [jnp.zeros((4, 4, 3)) for _ in range(2)]
    lengths = jnp.array([4, 2, 3, 1])
    return rnn.lstm(x, *states, weights, lengths, 4, 3, 2, 0.0, True)


@pytest.mark.parametrize(("f", "args"), [
    (lambda x: image.resize(x, (7, 3), "cubic"), [M]),
    (lambda x: image.resize(x, (7, 3), "linear"), [of((4, 4), BF16)]),
    (lambda x: image.resize(x, (7, 3), "lanczos3", antialias=False), [M]),
    (lambda x, s: image.scale_and_translate(x, (5, 5), (0, 1), s, s, "linear"), [M, of((2,))]),
    (lambda x: random.categorical(KEY, x, shape=(3, 4)), [M]),
    (lambda x: random.truncated_normal(KEY, x, x, (3, 4)), [V]),
    (lambda x: random.gamma(KEY, x, (3, 4)), [V]),
    (lambda x: random.binomial(KEY, 5, x, (3, 4)), [V]),
    (lambda n, p: random.multinomial(KEY, n, p), [V, V]),
    (lambda x, c: random.multivariate_normal(KEY, x, c, (3,)), [V, M]),
    (lambda x: nn.dot_product_attention(x, x, x, is_causal=True, local_window_size=1), [Q]),
    (lambda x, n: nn.dot_product_attention(
        x, x, x, query_seq_lengths=n, key_value_seq_lengths=n), [Q, IV]),
    (lambda x: nn.softmax(x) + nn.log_softmax(x) + nn.logsumexp(x, 0, keepdims=True), [CM]),
    (lambda x: nn.one_hot(x, 300), [of((4,), np.int8)]),
    (lambda x: [nn.relu(x), nn.hard_tanh(x)], [of((4,), bool)]),
    (lambda: nn.initializers.orthogonal()(KEY, (4, 3)), []),
    (lambda: nn.initializers.glorot_uniform()(KEY, (4, 3), C64), []),
    (lambda: nn.initializers.lecun_normal()(KEY, (4, 3), C64), []),
    (lambda x: jnp.gradient(x, 0.5), [M]),
    (lambda x, t: jnp.gradient(x, t, axis=0), [M, V]),
    (lambda x, t: jnp.trapezoid(x, t), [M, V]),
    (lambda x, q: jnp.quantile(x, q, 0, method="inverted_cdf", weights=x), [M, V]),
    (lambda x: jnp.median(x, 0) + jnp.nanmedian(x, 1), [M]),
    (lambda x: jnp.nanpercentile(x, jnp.array([20, 50.0]), 0), [M]),
    (lambda x: jnp.corrcoef(x), [CM]),
    (lambda x, y: jnp.polyfit(x, y, 2, w=x, cov=True), [V, M]),
    (lambda x: jnp.linalg.matrix_rank(x), [T]),
    (lambda x: jnp.linalg.pinv(x), [T]),
    (lambda x, w: jnp.histogram(x, 3, weights=w), [IV, IV]),
    (lambda x, m: [f(x, 0, where=m) for f in (jnp.mean, jnp.var, jnp.std)], [CM, of((4, 4), bool)]),
    (lambda x, m: jnp.max(x, 0, where=m, initial=0), [M, of((4, 4), bool)]),
    (lambda i, x: jnp.choose(i, [x, x], mode="clip"), [IM, M]),
    (lambda x: fft.dct(x, 1) + fft.idct(x, norm="ortho") + fft.dct(x, 3), [M]),
    (lambda x: [linalg.companion(x[0]), linalg.convolution_matrix(x, 3), linalg.lu(x)], [M]),
    (lambda x: [linalg.fiedler_companion(x), linalg.leslie(x, x[:, 1:])], [M]),
    (lambda x: linalg.lu(x), [T]),
    (lambda x: [linalg.sqrtm(x), linalg.expm(x), linalg.funm(x, jnp.exp)], [M]),
    (lambda x: linalg.solve_sylvester(x, x, x), [M]),
    (lambda x: linalg.rsf2csf(x, x), [M]),
    (lambda x: [signal.csd(x, x, nperseg=2), signal.welch(x, nperseg=2), signal.detrend(x)], [M]),
    (lambda x: signal.istft(signal.stft(x, nperseg=4)[2], nperseg=4), [M]),
    (lambda x: [special.logsumexp(x, 0, return_sign=True), special.softmax(x)], [CM]),
    (lambda a, b: [gmres(a, b, solve_method=s)[0] for s in ("batched", "incremental")], [CM, CV]),
    (lambda a, b: [cg(a, b)[0], bicgstab(a, b)[0]], [CM, CV]),
    (lambda x: stats.poisson.entropy(x), [M]),
    (lambda x: stats.rankdata(x, axis=0), [M]),
    (lambda x: ndimage.map_coordinates(x, [x, x], 1), [M]),
    (lambda x: integrate.trapezoid(x), [M]),
    (lambda x: RegularGridInterpolator((np.arange(4.0),) * 2, np.ones((4, 4)))(x), [of((5, 2))]),
    (rotate, [of((3, 4)), of((3, 3)), of((3,))]),
    (lambda t: Slerp.init(np.arange(3.0), Rotation.from_quat(np.eye(3, 4)))(t).as_quat(), [V]),
    (run_lstm, [KEY, of((4, 4, 4))]),
    (lambda x, i: jnp.add.reduceat(x, i, axis=1), [M, IV]),
    (lambda x, y: jnp.multiply.outer(x, y), [M, V]),
    (lambda x, i: jnp.cov(x, fweights=i), [M, IV]),
    (lambda x, i, w: jnp.cov(x, fweights=i, aweights=w), [M, IV, V]),
    (lambda x: linalg.hessenberg(x, calc_q=True), [T]),
    (lambda d, e: linalg.eigh_tridiagonal(d, e[1:], eigvals_only=True), [V, V]),
    (lambda i, x: special.sph_harm_y(i, i, x, x, n_max=3), [IV, V]),
    (lambda x: special.lpmn(2, 2, x), [V]),
    (lambda i, n, p: [stats.multinomial.logpmf(i, n, p), stats.multinomial.pmf(i, 6, p)],
     [IV, of((), np.int32), V]),
    (lambda x: lobpcg_standard(x, x[:, :1]), [M]),
    (lambda x, w: stats.gaussian_kde(x, weights=w).resample(KEY, (3,)), [M, V]),
    (lambda x: stats.gaussian_kde(x[0])(x[1]), [M]),
    (lambda x: odeint(lambda y, t: -y * t, x, x, mxstep=3), [V]),
    (lambda x: stax.Dense(4)[1]((x, x[0]), x), [M]),
])  # fmt: skip
def test_no_function_raises_from_inside(f, args):
    with config.scope(**STRICT):
        eval_shape(f, *args)


@pytest.mark.parametrize("f", [
    lambda x: x.sum(0), lambda x: x[0], lambda x: x[None], lambda x: x[1:, ::2], lambda x: x @ x,
    lambda x: x @ jnp.ones((3, 2)), lambda x: x * x, lambda x: x.reshape(9), lambda x: x.T + x,
    lambda x: x[jnp.int32(1)], lambda x: x * jnp.ones((1, 3)), lambda x: x.todense(),
    lambda x: [sparse.bcoo_concatenate([x, x], dimension=d) for d in (0, 1)],
    lambda x: sparse.bcoo_rev(x, (0,)), lambda x: sparse.bcoo_extract(x, jnp.ones((3, 3))),
    lambda x: sparse.bcoo_update_layout(x, n_batch=1, on_inefficient=None),
    lambda x: sparse.bcoo_dot_general(
        x, x.todense(), dimension_numbers=(((1,), (0,)), ((), ())),
        preferred_element_type=np.float16),
])  # fmt: skip
def test_sparse_arrays(f):
    with config.scope(**STRICT):
        eval_shape(f, sparse.BCOO.fromdense(np.eye(3, dtype=np.float32), nse=3))


@pytest.mark.parametrize("f", [
    lambda x: sparse.bcoo_reduce_sum(x, axes=(0, 2)), lambda x: x[:1, 1:], lambda x: x[0] @ x[1],
    lambda x: x.reshape(1, 2, 9), lambda x: x * x, lambda x: x.sum_duplicates(nse=3),
    lambda x: sparse.bcoo_dot_general(x, x, dimension_numbers=(((2,), (1,)), ((0,), (0,)))),
])  # fmt: skip
def test_sparse_arrays_in_batches(f):
    with config.scope(**STRICT):
        eval_shape(f, sparse.BCOO.fromdense(np.ones((2, 3, 3), np.float32), n_batch=1))


@pytest.mark.parametrize("f", [
    lambda x: linalg.lu(x),
    lambda x: nn.dot_product_attention(
        *[x[None, :, None]] * 3, query_seq_lengths=jnp.ones(1, "int32"), is_causal=True),
])  # fmt: skip
def test_numbers_of_32_bits_where_64_are_the_default(f):
    with config.scope(enable_x64=True, **STRICT):
        eval_shape(f, M)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x + y,
        lambda x, y: jnp.hypot(x, y),
        lambda x, y: jnp.clip(x, y),
        lambda x, y: special.xlogy(x, y),
        lambda x, y: stats.norm.logpdf(x, y, 1.0),
        lambda x, y: random.truncated_normal(KEY, x, y),
    ],
)
def test_operands_that_break_the_rule_raise(f):
    with config.scope(numpy_rank_promotion="raise"):
        with pytest.raises(weft.errors.ShapeError, match="must have equal ranks under numpy_rank"):
            eval_shape(f, V, M)
        eval_shape(f, of(()), M)


MODULES = """numpy numpy.linalg numpy.fft nn nn.initializers image ops random
    scipy.special scipy.linalg scipy.signal scipy.fft scipy.ndimage scipy.integrate scipy.stats
    scipy.cluster.vq"""

# Ways to call a function of operands of one rank and dtype.
CALLS = [
    lambda f, x: f(x),
    lambda f, x: f(x, x),
    lambda f, x: f(x, x, x),
    lambda f, x: f(x, x, x, x),
    lambda f, x: f([x, x]),
    lambda f, x: f(x, 2),
    lambda f, x: f(2, x),
    lambda f, x: f(x, 0.5),
    lambda f, x: f(x, x, 2),
    lambda f, x: f(x, axis=0),
    lambda f, x: f(x, x, axis=0),
    lambda f, x: f(x, axis=0, keepdims=True, ddof=1),
    lambda f, x: f(x, where=x == 0, axis=-1),
    lambda f, x: f(x, where=x == 0, axis=0, initial=0),
    lambda f, x: f(x, weights=x, axis=0),
    lambda f, x: f(x, x, mode="same"),
    lambda f, x: f(x, (5,) * x.ndim),
    lambda f, x: f(x, bins=3, range=(0, 1), weights=x),
    lambda f, x: f(KEY, x),
    lambda f, x: f(KEY, x, x),
    lambda f, x: f(KEY, x, shape=(3, *x.shape)),
    lambda f, x: f(KEY, x, x, shape=(3, *x.shape)),
    lambda f, x: f()(KEY, x.shape, x.dtype),
]

# Operands of equal rank break the rule where one of these has an axis more by its meaning: the
# coefficients, or a tolerance, a frequency or a number for each matrix or vector. And `soft_sign`
# divides complex numbers by real ones.
EXEMPT = {"polyval", "matrix_rank", "multinomial", "multivariate_normal", "csd", "welch"}
EXEMPT |= {"soft_sign"}


def public_functions():
    for name in MODULES.split():
        module = importlib.import_module(f"weft.{name}")
        for n in dir(module):
            value = getattr(module, n)
            if n in EXEMPT or n.startswith("_") or inspect.isclass(value):
                continue
            if name == "scipy.stats" and inspect.ismodule(value):
                yield from ((f"{n}.{k}", getattr(value, k)) for k in dir(value))
            elif callable(value):
                yield f"{name}.{n}", value


OURS = re.compile(r"\b(?:bool|[iufc]\d+|bf16)\b(\[[\d,]*\])?")
# In these calls the operands differ in dtype or rank by how the call is written.
MIXED = re.compile(r"^numpy\.(piecewise|interp)$|0j|standardize|nan_to_num|betabinom")


def names_operands(text, args):
    """Return True if an error names only types of the caller's operands."""
    avals = [x.aval for x in weft.tree.leaves(args) if hasattr(x, "aval")]
    avals += [weft.typeof(x) for x in weft.tree.leaves(args) if type(x) in (int, float)]
    known = {str(a) for a in avals} | {str(a).partition("[")[0] for a in avals}
    return {m.group() for m in OURS.finditer(text.partition("got")[2].partition(". ")[0])} <= known


@pytest.mark.sample(one_in=40)
@pytest.mark.parametrize("group", test_calls.GROUPS)
def test_calls_that_run_by_default_run_under_both_settings(group, monkeypatch):
    """The calls of test_calls.py, sparse arrays and expressions among them."""
    wrong, ran, stage = [], [], test_calls.stage

    def stage_twice(fun, args, options, lowered=False):
        made = stage(fun, args, options, lowered)
        if not (made.failed or lowered):
            with config.scope(**STRICT):
                strict = stage(fun, args, options)
            if strict.failed and not names_operands(strict.text, args):
                wrong.append(f"{name} {test_calls.show(args)} {options}: {strict.text}")
        return made

    monkeypatch.setattr(test_calls, "stage", stage_twice)
    monkeypatch.setattr("weft.errors.find_expression", lambda: None)
    with warnings.catch_warnings(), config.scope(hints=False, native=False):
        warnings.simplefilter("ignore")
        for name, texts in test_calls.GROUPS[group]:
            if not MIXED.search(name):
                ran += texts()
    assert ran
    assert not wrong, "\n".join(wrong)


@pytest.mark.sample(one_in=16)
@pytest.mark.parametrize("law", CASES)
def test_distributions(law):
    """Every function of a distribution, of operands of one rank and dtype, and its derivatives.

    Shape parameters, a location and a scale are arrays like the points, or numbers.
    """
    wrong, ran = [], 0
    shapes = len(CASES[law]) - 1
    for name in [name for name in dir(getattr(stats, law)) if name[0] != "_"]:
        f = getattr(getattr(stats, law), name)
        for dtype, x64 in itertools.product([F32, BF16, np.dtype("int32")], [False, True]):
            x = of((3, 3), dtype)
            points = [x] * (name != "entropy")
            y = 2 if dtype == np.int32 else 0.5
            for more in ([x] * shapes, [y] * shapes, [x] * (shapes + 2), [y] * shapes + [2, 3]):
                numbers = [z for z in more if z is not x]
                arrays = [*points, *[z for z in more if z is x]]
                run = lambda *xs, f=f, numbers=numbers: f(*xs, *numbers)
                slope = lambda *xs, run=run: weft.grad(lambda *xs: run(*xs).astype(F32).sum())(*xs)
                for fun in (run, slope):
                    with config.scope(enable_x64=x64):
                        ran, failed = try_both(fun, arrays, ran)
                        wrong += [f"{name} {more} x64={x64}: {failed}"] * bool(failed)
    assert ran > 20
    assert not wrong, "\n".join(wrong)


def try_both(fun, arrays, ran):
    """Count a call that runs by default, and return the error that it raises under the settings."""
    try:
        out = eval_shape(fun, *arrays)
    except (TypeError, ValueError):
        return ran, None
    try:
        with config.scope(**STRICT):
            assert eval_shape(fun, *arrays) == out
    except Exception as error:
        return ran + 1, error
    return ran + 1, None


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_whatever_runs_by_default_runs_under_both_settings(rank, dtype):
    """Every public function, called in every way that it takes."""
    failed, ran = [], 0
    for name, f in public_functions():
        for call in CALLS:
            run = lambda x, f=f, call=call: call(f, x)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    eval_shape(run, of((4,) * rank, dtype))
                except Exception:
                    continue
                ran += 1
                try:
                    with config.scope(**STRICT):
                        eval_shape(run, of((4,) * rank, dtype))
                except Exception as error:
                    failed.append(f"{name} ({inspect.getsource(call).strip()}): {error}")
    assert ran > 500
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("f", [
    lambda x: jnp.arange(5), lambda x: jnp.arange(1.0, 2, 0.5), lambda x: jnp.zeros(3),
    lambda x: jnp.full((2, 2), 7), lambda x: jnp.eye(3), lambda x: jnp.tri(3), lambda x: x[x > x],
    lambda x: jnp.nonzero(x), lambda x: jnp.unique(x), lambda x: jnp.histogram(x, 3),
    lambda x: weft.jit(lambda x: x + np.arange(4))(x), lambda x: weft.grad(jnp.sum)(x),
    lambda x: weft.lax.scan(lambda c, x: (c + HOST, x), x, x)[0],
])  # fmt: skip
def test_what_the_library_makes_passes_the_guard_of_transfers(f):
    x = jnp.ones(4)
    with weft.transfer_guard("disallow"):
        f(x)
        with pytest.raises(weft.errors.JaxRuntimeError, match="Disallowed host-to-device"):
            x + HOST
    refused = pytest.raises(weft.errors.JaxRuntimeError, match="Disallowed host-to-device")
    with weft.transfer_guard("disallow_explicit"), refused:
        jnp.arange(5)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, C64], ids=str)
def test_constants_of_activations_meet_the_dtype_of_the_operand(dtype):
    """Integers are made floats first, and a coordinate's weights meet any dtype."""
    names = (
        "celu elu hard_sigmoid hard_silu leaky_relu mish relu6 selu soft_sign softplus sparse_plus"
    )
    with config.scope(**STRICT):
        for name in names.split() + ["sparse_sigmoid", "squareplus"]:
            if dtype != C64 or name == "soft_sign":
                assert dtypes.is_inexact(eval_shape(getattr(nn, name), of((3,), dtype)).dtype)
        move = lambda x, c: ndimage.map_coordinates(x, [c], 1)
        assert eval_shape(move, of((3,), dtype), of((2,))).dtype == dtype
