"""Running programs: their placement, caches, the hand-over to C++, observers."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax, make_jaxpr
from weft.core.jaxpr import Jaxpr
from weft.errors import JaxRuntimeError, UnexpectedTracerError
from weft.pytrees import flatten
from weft.run import programs as module
from weft.run.pipeline import JitSpec
from weft.run.programs import find_executable, place_program, run_program

A = np.array([1.0, 2.0, 3.0], np.float32)
SPEC = JitSpec("f")
PAIR = flatten([0, 0])[1]


def program(fun, *args) -> Jaxpr:
    return make_jaxpr(fun)(*args).jaxpr


@pytest.fixture
def lowered(monkeypatch):
    """The list that grows with each program that is lowered."""
    found, lower = [], module.lower_program
    monkeypatch.setattr(module, "lower_program", lambda *a: found.append(a) or lower(*a))
    return found


def test_a_program_is_built_once_for_each_place_and_spec(lowered):
    jaxpr = program(lambda x: (lax.sin(x), x + 1), A)
    for spec in (SPEC, SPEC, SPEC._replace(keep_unused=True), SPEC):
        outs, fast = run_program(jaxpr, (), [A], spec)
        assert fast is None and len(outs) == 2
    np.testing.assert_allclose(outs[0], np.sin(A), rtol=1e-6)
    assert len(lowered) == 2
    here = place_program(jaxpr, (), [A], SPEC)
    assert find_executable(jaxpr, (), SPEC, here) is find_executable(jaxpr, (), SPEC, here)
    assert len(lowered) == 2


def test_what_cpp_is_given():
    jaxpr = program(lambda x: (x * 2, x + 1), A)
    _, fast = run_program(jaxpr, (), [A], SPEC, PAIR)
    assert fast.out_pytree_def == PAIR and fast.kept_var_bitvec == [True]
    assert (
        fast.xla_executable
        is find_executable(jaxpr, (), SPEC, place_program(jaxpr, (), [A], SPEC)).loaded
    )
    for option in ("debug_nans", "debug_infs", "debug_key_reuse"):
        with weft.config.scope(**{option: True}):  # each call is observed
            assert run_program(jaxpr, (), [A], SPEC, PAIR)[1] is None


def test_where_it_runs():
    jaxpr, device = program(lambda x: x, A), weft.devices()[0]
    free, bound = jnp.array(A), weft.device_put(A, device)
    assert not place_program(jaxpr, (), [free], SPEC).committed
    assert place_program(jaxpr, (), [bound], SPEC).committed
    assert place_program(jaxpr, (), [free], SPEC._replace(device=device)).committed
    (out,), _ = run_program(jaxpr, (), [free], SPEC._replace(device=device))
    assert out.committed


def test_donated_arguments_are_there_while_results_are_looked_at():
    jaxpr = program(lambda x: lax.log(x), A)
    spec = SPEC._replace(donated=(0,))
    with weft.debug_nans():
        bad, good = jnp.array(-A), jnp.array(A)
        with pytest.raises(FloatingPointError, match="^log: .* in f"):
            run_program(jaxpr, (), [bad], spec)
        run_program(jaxpr, (), [good], spec)
    assert good.is_deleted() and not bad.is_deleted()


def test_a_tracer_has_outlived_its_function():
    leaked = []
    weft.jit(lambda x: leaked.append(x) or x)(A)
    with pytest.raises(UnexpectedTracerError):
        run_program(program(lambda x: x, A), (), leaked, SPEC)


def test_a_failure_of_the_engine_is_seen_and_met_once(monkeypatch):
    tries = []

    def fail(self, *args):
        tries.append(args)
        raise JaxRuntimeError("INTERNAL: no machine")

    monkeypatch.setattr(module.Executable, "__call__", fail)
    x = weft.device_put(np.ones((5, 1, 11), np.float32))  # of no type seen before
    calls = [lambda: x + x, lambda: jnp.sin(x), lambda: lax.neg(x), lambda: jnp.mean(x)]
    calls += [lambda: weft.jit(lambda y: y * 2)(x), lambda: lax.map(lambda y: y + 1, x)]
    for i, call in enumerate(calls):
        with pytest.raises(JaxRuntimeError, match="no machine"):
            call()
        assert len(tries) == i + 1
