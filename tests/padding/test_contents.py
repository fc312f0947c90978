"""Facts of padding: each one that is noted holds, also if arguments are infinite or NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.conftest import ALL
from tests.padding.programs import Program
from tests.padding.test_fuzz import make_program
from weft import lax
from weft.core.element import Apply, Number, Read, Select, sum_over
from weft.errors import InconclusiveDimensionOperation, ShapeError
from weft.export.specs import symbolic_args_specs
from weft.padding import interpret
from weft.padding.contents import (
    EXACT_POINTS,
    FINITE,
    PROPAGATING,
    OrNaN,
    find_content,
    join_contents,
)
from weft.padding.sizes import NUMBER, Sizes
from weft.primitives.constant import write_consts
from weft.primitives.elementwise import add_p, div_p, max_p, mul_p, neg_p, sub_p
from weft.primitives.layout import convert_element_type_p
from weft.primitives.transcendental import integer_pow_p, log_p

F32 = np.dtype(np.float32)
INTEGERS = {"new_dtype": np.dtype(np.int32), "weak_type": False}
ZERO, ONE = np.zeros((), F32), np.ones((), F32)


def content(expression: Any, *contents: Any) -> Any:
    """The content of an expression whose operands have these contents."""
    return find_content(expression, lambda read: contents[read.operand])


def apply(prim: Any, *args: Any) -> Apply:
    return Apply(prim, args, {})


def test_contents_of_expressions():
    x, y = Read(0, ()), Read(1, ())
    assert content(apply(mul_p, x, y), ZERO, FINITE) == 0
    assert content(apply(mul_p, x, y), ZERO, None) is None  # 0 * inf is NaN
    assert content(apply(add_p, x, y), FINITE, FINITE) is None  # it may overflow
    assert content(apply(add_p, x, y), ONE, ONE) == 2
    assert content(apply(div_p, x, y), ONE, ZERO) is None  # 1 / -0 is -inf
    assert content(apply(neg_p, x), FINITE) is FINITE
    assert content(apply(max_p, x, y), FINITE, ZERO) is FINITE
    assert content(Select(Read(2, ()), x, y), ZERO, ONE, np.ones((), bool)) == 0
    assert content(sum_over([5], F32, lambda k: Read(0, (k,))), ZERO) == 0
    assert content(sum_over([5], F32, lambda k: Read(0, (k,))), FINITE) is None
    assert content(Number(3, F32)) == 3
    failed = OrNaN(ZERO)
    assert content(apply(mul_p, x, y), failed, FINITE).content == 0
    assert content(apply(mul_p, x, y), failed, failed).content == 0
    assert content(apply(mul_p, x, y), failed, None) is None
    assert content(apply(add_p, x, y), failed, ONE).content == 1
    assert content(apply(log_p, x), OrNaN(ONE)).content == 0
    assert content(apply(max_p, x, y), failed, ONE) is None
    assert content(Apply(convert_element_type_p, (x,), INTEGERS), failed) is None
    assert content(Apply(integer_pow_p, (x,), {"y": 0}), failed) is None
    assert content(Select(Read(2, ()), x, y), failed, ONE, np.ones((), bool)) is None
    assert content(sum_over([5], F32, lambda k: Read(0, (k,))), failed).content == 0
    assert content(sum_over([5], F32, lambda k: Read(0, (k,))), OrNaN(ONE)) is None
    assert (
        join_contents(ZERO, ONE) is FINITE
        and join_contents(ZERO, failed) is None
        and join_contents(ZERO, np.full((), np.nan, F32)) is None
    )


def is_true(fact: Any, beyond: np.ndarray, whole: np.ndarray) -> bool:
    """Return True if padding contains what a fact says."""
    if isinstance(fact, OrNaN):
        return bool(np.isnan(whole).all()) or is_true(fact.content, beyond, whole)
    return bool((np.isfinite(beyond) if fact is FINITE else beyond == np.asarray(fact)).all())


def check_facts(program: Program, wild: bool, n: int = 5, bucket: int = 8) -> int:
    """Run a padded program eagerly, check each fact against the array, and count the facts."""
    args = tuple(program.arrays(np.random.default_rng(0), n=n))
    closed = weft.make_jaxpr(program.fun)(*symbolic_args_specs(args, program.shapes))
    jaxpr = write_consts(closed.jaxpr, closed.consts)
    sizes, count = Sizes({"n": bucket}, {"n": np.int32(n)}), 0
    given = []
    for x, v in zip(args, jaxpr.invars[-len(args) :], strict=True):
        if wild and x.dtype.kind == "f":
            x.flat[0], x.flat[-1] = np.inf, np.nan
        shape = sizes.pad_type(v.aval).shape
        given.append(jnp.asarray(np.pad(x, [(0, m - k) for k, m in zip(x.shape, shape)])))
        sizes.note_zeros(given[-1], v.aval)

    def run(eqn: Any, sizes: Sizes, ins: Any) -> list:
        nonlocal count
        outs = plain(eqn, sizes, ins)
        for v, y in zip(eqn.outvars, outs, strict=True):
            if isinstance(y, weft.core.Tracer):
                continue  # in the body of a loop, where arrays are traced
            for axis, fact in sizes.find_known(y).items():
                if axis == NUMBER:
                    beyond = np.asarray(y)
                elif type(axis) is int:
                    true = v.aval.shape[axis].evaluate({"n": n})
                    beyond = np.asarray(y)[(*[slice(None)] * axis, slice(true, None))]
                else:
                    continue
                good = is_true(fact, beyond, np.asarray(y))
                assert good, f"{eqn.primitive.name}: {fact} along {axis}; got {beyond}"
                count += 1
        return outs

    plain = interpret.run_equation
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpret, "run_equation", run)
        interpret.run_padded(jaxpr, sizes, [*closed.consts, *given][-len(jaxpr.invars) :])
    return count


def log_det(x: Any) -> Any:
    """The factor of x x^T + I, or NaN if there is none, and what follows from its diagonal."""
    low = lax.linalg.cholesky(x @ x.T + jnp.eye(x.shape[0]))
    logs = jnp.log(jnp.diagonal(low))
    return logs.sum(), (logs**2 * -2.0) @ x, jnp.sqrt(jnp.exp(logs * 0.5))


def likelihood(x: Any) -> Any:
    """The likelihood of the rows of x as a Gaussian process."""
    low = lax.linalg.cholesky(x @ x.T + jnp.eye(x.shape[0]))
    z = lax.linalg.triangular_solve(low, x[:, :1], left_side=True, lower=True)
    return (z**2).sum() / 2 + jnp.log(jnp.diagonal(low)).sum()


MATRIX, VECTOR = ("n, 3",), ("n",)
KNOWN = {
    "product": Program(lambda x: (jnp.abs(x) * 0.5).T @ x, MATRIX),
    "difference": Program(lambda x: ((x[:, None] - x) ** 2).sum(-1), MATRIX),
    "selection": Program(lambda x: jnp.where(x > 0, x, -x).sum(0), MATRIX),
    "factor": Program(lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(x.shape[0])) @ x, MATRIX),
    "logarithms": Program(log_det, MATRIX),
    "likelihood": Program(likelihood, MATRIX),
    "gradient": Program(lambda x: weft.grad(likelihood)(x), MATRIX),
    "solve": Program(lambda x: lax.linalg.triangular_solve(
        jnp.eye(x.shape[0]), x[:, None], left_side=True, lower=True) * 2.0, VECTOR),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("wild", [True, False])
def test_facts_of_programs_hold(name, wild):
    assert check_facts(KNOWN[name], wild)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_points_are_exact_and_nan_propagates(dtype):
    """Functions at `EXACT_POINTS`, alone and in arrays; `PROPAGATING` ones of NaN."""
    points = [(f, x, y) for f, row in EXACT_POINTS.items() for x, y in row.items()]
    pairs = [prim for prim in PROPAGATING if prim in (add_p, sub_p, mul_p, div_p)]
    others = list(set(PROPAGATING).difference(pairs, (convert_element_type_p, integer_pow_p)))
    with weft.enable_x64(True):
        xs = [jnp.full(9, x, dtype) for _, x, _ in points]
        nan, numbers = jnp.full(4, np.nan, dtype), jnp.asarray([0, 1, np.inf, -2], dtype)

        @weft.jit
        def run(xs: Any, nan: Any) -> tuple:
            at_nan = [f.apply(nan)[0] for f in others]
            at_nan += [f.apply(*p)[0] for f in pairs for p in ((nan, numbers), (numbers, nan))]
            at_nan += [nan**2, nan**-1, nan.astype("float32"), nan.astype("float64")]
            return [f.apply(x)[0] for (f, *_), x in zip(points, xs, strict=True)], at_nan

        found, at_nan = run(xs, nan)
        for (f, x, y), got in zip(points, found, strict=True):
            assert (np.asarray(got, np.float64) == y).all(), f"{f.name}({x}) is {got}, not {y}"
            assert float(f.apply(jnp.asarray(x, dtype))[0]) == y
        assert all(np.isnan(np.asarray(x, np.float64)).all() for x in at_nan)


FACTORED = {
    "definite": (np.eye(5) * 2 + 1, np.arange(5)),
    "not definite": (np.eye(5) - 1, np.arange(5)),
    "NaN in the matrix": (np.where(np.arange(5) == 4, np.nan, np.eye(5)), np.arange(5)),
    "inf in the matrix": (np.diag([1, np.inf, 1, 1, 2]), np.arange(5)),
    "inf last": (np.eye(5) * 2 + 1, [1, 2, 3, 4, np.inf]),
    "inf first": (np.eye(5) * 2 + 1, [np.inf, 2, 3, 4, 5]),
    "NaN": (np.eye(5) * 2 + 1, [1, 2, 3, np.nan, 5]),
    "overflow": (np.eye(5) * 1e-30, np.arange(5) * 1e30),
}


@pytest.fixture(scope="module")
def solved():
    """A likelihood and its gradients, plain and with sizes that vary."""

    def fun(a, y):
        low = lax.linalg.cholesky(a)
        z = lax.linalg.triangular_solve(low, y[:, None], left_side=True, lower=True)
        return (z**2).sum() + jnp.log(jnp.diagonal(low)).sum()

    both = lambda a, y: weft.value_and_grad(fun, (0, 1))(a, y)
    return weft.jit(both), weft.jit(both, sizes="(n, n), (n,)")


@pytest.mark.parametrize("name", FACTORED)
def test_infinite_numbers_and_failed_factors_reach_the_same_results(solved, name):
    plain, padded = solved
    args = [np.asarray(x, np.float32) for x in FACTORED[name]]
    wants, found = weft.tree.leaves(plain(*args)), weft.tree.leaves(padded(*args))
    for got, want in zip(found, wants, strict=True):
        np.testing.assert_allclose(got, want, 1e-5, 1e-6)


def test_sums_of_failed_values_are_masked_if_they_may_be_empty():
    """The sum of the first n - 1 of n logarithms has no terms if n is 1."""

    def fun(a):
        low = lax.linalg.cholesky(a)
        return jnp.log(jnp.diagonal(low)).sum(), jnp.log(jnp.diagonal(low))[1:].sum()

    padded = weft.jit(fun, sizes="n, n")
    for n in (1, 3):
        bad = -np.eye(n, dtype=np.float32)
        np.testing.assert_array_equal(np.stack(padded(bad)), np.stack(fun(bad)))
        good = np.eye(n, dtype=np.float32) * 3
        np.testing.assert_allclose(np.stack(padded(good)), np.stack(fun(good)), 1e-6)


def test_masks_are_shared():
    """A product that is summed is masked once, also if later operations read it."""

    def fun(x):
        y = jnp.exp(x)
        return y.sum(), (y * 2.0).sum(), (-y).sum()

    padded = weft.jit(fun, sizes="(n, _)")
    x = np.ones((5, 3), np.float32)
    plan, _ = padded.find_plan((x,), {})
    assert [e.primitive.name for e in plan.run.jaxpr.eqns].count("select_n") == 1
    np.testing.assert_allclose(np.stack(padded(x)), np.stack(fun(x)), 1e-6)


@pytest.mark.parametrize("seed", range(300 if ALL else 3))
def test_facts_of_random_programs_hold(seed):
    try:
        check_facts(make_program(seed), wild=seed % 2 == 0)
    except (InconclusiveDimensionOperation, ShapeError):
        pytest.skip("refused")


def test_known_zeros_need_no_masks():
    """A product of two arguments sums over their padding without a mask."""
    fun = weft.jit(lambda x, y: (x * 2.0).T @ y, sizes="(n, _), (n, _)")
    x = np.ones((5, 3), np.float32)
    (plan, _) = fun.find_plan((x, x), {})
    names = lambda jaxpr: [e.primitive.name for e in jaxpr.eqns]
    assert names(plan.run.jaxpr).count("select_n") == 0
    assert names(fun.padded_jaxpr(x, x)).count("select_n") == 2
    y = x.copy()
    y[2, 1] = np.inf
    np.testing.assert_array_equal(fun(x, y), 2 * x.T @ y)


def test_diagonals_of_padded_matrices_are_slices():
    fun = lambda x: jnp.log(jnp.diagonal(x)).sum()
    x = np.random.default_rng(0).uniform(1, 2, (5, 5)).astype(np.float32)
    for f in (fun, weft.grad(fun)):
        padded = weft.jit(f, sizes="n, n")
        np.testing.assert_allclose(padded(x), f(x), 1e-6)
        names = {e.primitive.name for e in padded.padded_jaxpr(x).eqns}
        assert not names & {"gather", "scatter-add"}
