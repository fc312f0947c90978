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
from weft.padding.contents import FINITE, find_content, join_contents
from weft.padding.sizes import Sizes
from weft.primitives.constant import write_consts
from weft.primitives.elementwise import add_p, div_p, max_p, mul_p, neg_p

F32 = np.dtype(np.float32)
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
    assert (
        join_contents(ZERO, ONE) is FINITE and join_contents(ZERO, np.full((), np.nan, F32)) is None
    )


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
            for axis, fact in sizes.find_known(y).items():
                if type(axis) is not int or isinstance(y, weft.core.Tracer):
                    continue  # in the body of a loop, where arrays are traced
                true = v.aval.shape[axis].evaluate({"n": n})
                beyond = np.asarray(y)[(*[slice(None)] * axis, slice(true, None))]
                good = np.isfinite(beyond) if fact is FINITE else beyond == np.asarray(fact)
                assert good.all(), f"{eqn.primitive.name}: {fact} along {axis}; got {beyond}"
                count += 1
        return outs

    plain = interpret.run_equation
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpret, "run_equation", run)
        interpret.run_padded(jaxpr, sizes, [*closed.consts, *given][-len(jaxpr.invars) :])
    return count


MATRIX, VECTOR = ("n, 3",), ("n",)
KNOWN = {
    "product": Program(lambda x: (jnp.abs(x) * 0.5).T @ x, MATRIX),
    "difference": Program(lambda x: ((x[:, None] - x) ** 2).sum(-1), MATRIX),
    "selection": Program(lambda x: jnp.where(x > 0, x, -x).sum(0), MATRIX),
    "factor": Program(lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(x.shape[0])) @ x, MATRIX),
    "solve": Program(lambda x: lax.linalg.triangular_solve(
        jnp.eye(x.shape[0]), x[:, None], left_side=True, lower=True) * 2.0, VECTOR),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_facts_of_programs_hold(name):
    assert check_facts(KNOWN[name], wild=name != "factor")


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
