"""Programs of all kinds: errors against mpmath, control flow, dtypes, and second calls."""

import functools

import mpmath
import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.settings import ALL
from weft import dtypes, lax
from weft.core.trace import typed_values
from weft.cpu.flags import HAS_OLDER_LOOPS, OLDER_LOOPS
from weft.errors import TracerError
from weft.explain.numerics import loops
from weft.explain.numerics.follow import QUICK, choose_options, find_program, follow_program
from weft.explain.subject import Subject
from weft.options import config

F32 = np.float32
numerics = weft.explain.numerics


def report(fun, *args):
    return numerics(fun)(*args)


def test_errors_are_those_against_exact_arithmetic():
    x = F32(0.3)

    def fun(x):
        return jnp.exp(x * 3) / 7

    found = report(fun, x).results[0]
    exact = mpmath.exp(mpmath.mpf(float(x)) * 3) / 7
    got = float(weft.jit(fun)(x))
    ulp = float(np.spacing(F32(float(exact))))
    assert found.worst == pytest.approx(abs(got - float(exact)) / ulp, abs=0.01)


def test_arrays_of_numpy_have_the_dtypes_of_the_call():
    """The followed program runs with 64 bits, and a call without them has converted its arrays."""
    labels, x = np.arange(3), np.array([0.1, 0.2, 0.3])

    def fun(labels, x):
        return jnp.sum((1 - labels) * x)

    found = report(fun, labels, x).results[0]
    assert found.worst == report(fun, jnp.asarray(labels), jnp.asarray(x)).results[0].worst < 4


def test_float64_is_followed_in_pairs():
    with weft.enable_x64(True), mpmath.workdps(50):
        x = np.array([1e6 + 0.1, 1e6 + 0.3, 1e6 + 0.7])

        def variance(x):
            mean = jnp.sum(x) / 3
            return jnp.dot(x, x) / 3 - mean * mean

        out = report(variance, x)
        exact = [mpmath.mpf(float(v)) for v in x]
        mean = sum(exact) / 3
        want = float(sum(v * v for v in exact) / 3 - mean * mean)
        error = out.results[0].values[0] - want
        assert out.results[0].worst * np.spacing(abs(want)) == pytest.approx(abs(error), rel=0.1)
        assert out.findings[0].kind == "cancellation"


def test_functions_of_float64_are_followed_in_pairs():
    with weft.enable_x64(True), mpmath.workdps(50):
        found = report(lambda x: 1 - jnp.cos(x), 3e-8)
        exact = 1 - mpmath.cos(mpmath.mpf(3e-8))
        off = abs(found.results[0].values[0] - float(exact)) / np.spacing(float(exact))
        assert found.results[0].worst == pytest.approx(off, rel=1e-2)
        assert found.findings[0].remedy == "2 * jnp.sin(x / 2) ** 2"


def loop(x):
    return lax.fori_loop(0, 40, lambda i, v: v * 1.7 - v * 0.7, x)


def while_loop(x):
    return lax.while_loop(lambda s: s[0] < 30, lambda s: (s[0] + 1, s[1] * 1.01), (0, x))[1]


def scanned(x):
    return lax.scan(lambda c, v: (c + v, c * v), x, jnp.arange(30.0) * 0.1, reverse=True)


def nested(x):
    inner = lambda c: lax.fori_loop(0, 5, lambda i, v: v * 1.1, c)
    return lax.scan(lambda c, _: (inner(c), c), x, None, length=4)[0]


def branch(x):
    return lax.cond(x > 0, lambda v: jnp.sqrt(v) * 3, lambda v: v * 5, x)


def many_loops(x):
    one = lambda v: lax.while_loop(lambda s: s < 10, lambda s: s * 1.5, v)
    return weft.vmap(one)(x + jnp.arange(3.0))


@weft.custom_jvp
def cubed(x):
    return x**3


cubed.defjvp(lambda xs, ts: (xs[0] ** 3, 3 * xs[0] ** 2 * ts[0]))


@weft.custom_vjp
def doubled(x):
    return x * 2.2


doubled.defvjp(lambda x: (x * 2.2, None), lambda _, g: (g * 2.2,))

CONTROL = {
    "loop": loop,
    "while": while_loop,
    "scan": scanned,
    "nested": nested,
    "branch": branch,
    "many loops": many_loops,
    "jit": weft.jit(lambda x: weft.jit(jnp.sin)(x) * 3),
    "custom_jvp": lambda x: cubed(x) + doubled(x),
    "checkpoint": weft.grad(weft.checkpoint(lambda x: jnp.sin(x) ** 2)),
    "gradient of a loop": weft.grad(lambda x: jnp.sum(scanned(x)[1])),
    "gradient of a branch": weft.grad(branch),
    "jvp": lambda x: weft.jvp(jnp.tan, (x,), (x,)),
    "hessian": weft.hessian(lambda x: cubed(x) * doubled(x)),
}


@pytest.mark.parametrize("name", CONTROL if ALL else list(CONTROL)[2::5])
def test_the_wide_run_goes_through_all_that_holds_programs(name):
    """The report equals the difference of the narrow run and the same program in float64."""
    fun, x = CONTROL[name], F32(0.73)
    found = report(fun, x)
    with weft.enable_x64(True):
        exact = weft.tree.leaves(fun(jnp.asarray(x, np.float64)))
    leaves = weft.tree.leaves(fun(jnp.asarray(x)))
    for r, wide, narrow in zip(found.results, exact, leaves, strict=True):
        ulp = np.spacing(np.abs(np.asarray(wide)).astype(F32))
        off = np.abs(np.asarray(narrow, np.float64) - np.asarray(wide)) / ulp
        assert r.worst <= off.max() + 30  # constants such as 1.7 are float32 in the wide run
        assert not r.nans
    assert found.lines
    assert all(line.place.file.endswith("test_follow.py") for line in found.lines)


def test_the_branch_that_is_taken_is_followed():
    for x in (-2.0, 3.0):
        fun = lambda x: lax.cond(x > 0, lambda v: jnp.sqrt(v) * 3, lambda v: -v / 7, x)
        (line,) = report(fun, F32(x)).lines
        assert line.place.text.startswith("fun =")


def test_jitted_methods_are_followed():
    class Model:
        scale = 1.7

        @functools.partial(weft.jit, static_argnums=0)
        def run(self, x):
            return jnp.sin(x) * self.scale

    model = Model()
    (line,) = report(model.run, F32(0.7)).lines
    assert line.place.text == "return jnp.sin(x) * self.scale"
    assert weft.explain.memory(model.run)(F32(0.7)).memory["arguments"] == 4


def test_values_are_rounded_to_their_dtype(kernels_as_for_users):
    """XLA contracts a product and a sum, which hides the rounding of the product."""
    x = F32(1e4 / 1.1 + 3.3)
    found = report(lambda x: x * 1.1 - 1e4, x).results[0]
    assert found.values[0] == F32(x * F32(1.1)) - F32(1e4)
    exact = float(x) * float(F32(1.1)) - 1e4
    assert found.worst == pytest.approx(abs(found.values[0] - exact) / np.spacing(F32(exact)))


def test_a_line_of_a_loop_says_in_which_iteration():
    found = report(loop, F32(0.73))
    assert any(line.worst[1] for line in found.lines)


def roll(x):
    """Scan over rows; the result of each iteration is NaN if a row is below -1, and stays so."""
    weights = jnp.eye(16) * F32(0.9) + F32(0.01)
    step = lambda h, row: (jnp.log(jnp.tanh(h @ weights) + row), h)
    return lax.scan(step, x[0], x, reverse=True)[0]


@pytest.mark.parametrize(
    ("fun", "quick"),
    [(loop, True), (while_loop, True), (scanned, True), (nested, True), (jnp.sin, False)],
)
def test_only_loops_are_compiled_without_most_passes(fun, quick):
    """The passes double the compile time of a loop with records."""
    jaxpr = weft.make_jaxpr(weft.jit(fun))(F32(1)).jaxpr
    assert (choose_options(jaxpr, "cpu") == QUICK) == quick
    assert choose_options(jaxpr, "gpu") is None


@pytest.mark.skipif(not HAS_OLDER_LOOPS, reason="later releases have one way")
def test_pairs_of_factorizations_are_compiled_in_the_older_way():
    """In the newer way the pairs of a factor of 3 x 3 took 80 s to run.

    In the older way, those of four products of 2 x 2 took more than 70 s to compile.
    """
    with config.scope(enable_x64=True):
        x = np.eye(3) + 1
        factor, product = (weft.make_jaxpr(f)(x).jaxpr for f in (jnp.linalg.cholesky, jnp.sin))
        assert choose_options(factor, "cpu") == dict([OLDER_LOOPS])
        assert choose_options(product, "cpu") is None
        follow_program(
            Subject(weft.jit(lambda x: jnp.linalg.cholesky(x @ x.T)), (x,), {}, "factor")
        )


def test_records_after_a_loop_are_those_in_the_loop(monkeypatch):
    """Both ways record the same iterations, with the same figures up to the order of sums."""
    x = np.random.default_rng(0).uniform(1, 2, (100, 8, 16)).astype(F32)
    x[60] = -3  # NaN in iteration 39, which is recorded for this reason alone
    found = []
    for least in (1, 1 << 40):
        monkeypatch.setattr(loops, "MIN_AGAIN_ELEMENTS", least)
        subject = Subject(weft.jit(lambda x: roll(x)), (x,), {}, "roll")
        found.append([r for r in follow_program(subject).records if r.site.turns])
    assert [r.site.operation for r in found[0]] == ["dot_general", "tanh", "add", "log"]
    for after, within in zip(*found, strict=True):
        assert after.site.operation == within.site.operation
        turns = [s.turns for s in after.samples]
        assert turns == [s.turns for s in within.samples]
        assert (39,) in turns
        for mine, theirs in zip(after.samples, within.samples, strict=True):
            assert mine.facts["nans"] == theirs.facts["nans"]
            for field in ("narrow", "wide", "scale"):
                np.testing.assert_allclose(getattr(mine, field), getattr(theirs, field), 1e-5)
            for field in ("errors", "added"):
                np.testing.assert_allclose(getattr(mine, field), getattr(theirs, field), 0, 1e-5)


def test_nan_is_found_in_the_iteration_that_makes_it():
    def fun(x):
        return lax.fori_loop(0, 300, lambda i, v: jnp.sqrt(v * v * 0.99 - 0.001), x)

    (finding,) = report(fun, F32(0.5)).findings
    assert finding.kind == "nan"
    v, turn = 0.5, 0
    while v * v * 0.99 >= 0.001:
        v, turn = np.sqrt(v * v * 0.99 - 0.001), turn + 1
    assert f"in iteration {turn}" in finding.text


def test_inner_loops_record_in_the_outer_iterations_that_are_recorded():
    """The first NaN is found in its inner iteration; the outer one is recorded for it alone."""
    x = np.full(200, F32(3.0))
    x[101] = -3

    def outer(c, row):
        c = lax.fori_loop(0, 20, lambda i, v: jnp.sqrt(v * 0.5 + jnp.where(i < 7, 3.0, row)), c)
        return jnp.where(jnp.isnan(c), 1.0, c), c

    subject = Subject(weft.jit(lambda x: lax.scan(outer, F32(1), x)[1]), (x,), {}, "nested")
    records = {r.site.operation: r for r in follow_program(subject).records if r.site.turns == 2}
    turns = [s.turns for s in records["sqrt"].samples]
    recorded = {*range(8), *range(8, 200, 20), 101, 199}
    assert {i for i, _ in turns} == recorded
    (nan,) = [s.turns for s in records["sqrt"].samples if s.facts["nans"] > s.facts["nans_in"]]
    assert nan == (101, 7)


DTYPES = "bfloat16 float16 float32 float64 complex64 complex128 float8_e4m3fn int8 uint8 int32 bool"


@pytest.mark.parametrize("name", DTYPES.split() if ALL else DTYPES.split()[::4])
def test_each_dtype_is_followed(name):
    with weft.enable_x64(name in ("float64", "complex128")):
        x = jnp.arange(4).astype(name)

        def fun(x):
            y = x * x
            return {"sum": jnp.sum(y), "rest": [x[:0], y]}

        found = report(fun, x)
        assert str(found)
        inexact = dtypes.is_inexact(x.dtype)
        assert len(found.results) == 2 * inexact


@pytest.mark.parametrize(
    "args", [(), (jnp.zeros((0, 3)),), (1.5,), (np.float32(2),), (2,), ({"a": [1.0, jnp.ones(2)]},)]
)
def test_any_arguments(args):
    def fun(*args):
        return weft.tree.map(lambda x: x * 1.5, args)

    assert str(report(fun, *args)).startswith("numerics of fun")


def test_a_second_call_stages_nothing():
    traced = []

    def fun(x):
        traced.append(1)
        return jnp.log(1 + x)

    follow = numerics(fun)
    first = follow(F32(1e-9)).findings
    second = follow(F32(1e-9)).findings
    assert first == second
    assert len(traced) == 1


def test_keys_and_references_pass():
    def fun(key, x):
        return jnp.sum(weft.random.normal(key, (3,)) * x)

    assert not report(fun, weft.random.key(0), F32(2)).findings
    cell = weft.new_ref(jnp.ones(3))

    def update(x):
        cell[...] = cell[...] * x
        return cell[...] + 1

    assert report(update, F32(1.1)).results[0].worst < 1
    assert np.asarray(cell[...]).tolist() == [1, 1, 1]


def test_integers_of_hashes_may_wrap():
    def fun(x):
        return (x * np.uint32(2654435769)) >> np.uint32(16)

    assert not report(fun, np.arange(5, dtype=np.uint32) * 10**8).findings


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_the_remedy_for_integers_that_wrap_is_a_wider_type(bits):
    with weft.enable_x64(True):
        x = np.array([2 ** (bits - 2)], f"int{bits}")
        (finding,) = report(lambda x: x * x, x).findings
    assert finding.kind == "wrapped"
    asked = finding.remedy.partition("jnp.")[2].partition(")")[0]
    assert (np.dtype(asked).itemsize * 8 > bits) if bits < 64 else asked == ""


def test_errors_say_what_must_hold():
    with pytest.raises(TracerError, match="numerics: must be called with values; got a traced"):
        weft.jit(lambda x: numerics(jnp.sin)(x).results[0].worst)(1.0)
    with pytest.raises(TypeError, match="numerics: "):
        numerics(3)(1.0)
    for tolerance in (-1, 0, float("nan"), "1e-2"):
        with pytest.raises(ValueError, match="numerics: tolerance must be a positive number; got"):
            numerics(jnp.sin, tolerance=tolerance)


WINDOWS = {
    "sums of windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 1), (1, 1), "SAME"),
    "convolution": lambda x: lax.conv_general_dilated(
        x.reshape(1, 1, 3000, 8), jnp.ones((1, 1, 3, 1)), (1, 1), "SAME"
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_sampled_with_their_neighbors(name):
    x = np.random.default_rng(0).normal(size=(3000, 8)).astype(F32)
    padded = np.pad(x.astype(float), ((1, 1), (0, 0)))
    exact = padded[:-2] + padded[1:-1] + padded[2:]
    got = np.asarray(weft.jit(WINDOWS[name])(x)).reshape(x.shape)
    most = (np.abs(got - exact) / np.spacing(np.abs(got))).max()
    (line,) = [a for a in report(WINDOWS[name], x).lines if a.added[1]]
    assert 0.3 < line.added[1] <= most


def test_large_elementwise_results_are_followed_in_samples():
    def fun(x):
        return jnp.exp(jnp.sin(x) * 3) - 1

    x = np.linspace(0, 1, 5000, dtype=F32)
    jitted = weft.jit(fun)
    found = report(jitted, x).results[0]
    exact = np.exp(np.sin(x.astype(float)) * 3) - 1
    got = np.asarray(jitted(x))
    most = (np.abs(got - exact) / np.spacing(np.abs(exact).astype(F32))).max()
    assert 0.5 < found.worst <= most
    step = -(-len(x) // len(found.values))
    assert np.array_equal(found.values, got[::step])
    subject = Subject(jitted, (x,), {}, "numerics")
    program, _, leaves = find_program(subject)
    with weft.enable_x64(True):
        follower = program.jaxpr.memo["numerics"].jitted
        text = follower.lower(np.uint8(0), *typed_values(leaves, program.jaxpr.invars)).as_text()
    assert "tensor<5000xf32>" in text
    assert "tensor<5000xf64>" not in text
