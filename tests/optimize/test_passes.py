"""The passes that a program goes through, and their order; all passes on random programs."""

import functools

import numpy as np
import pytest

import weft
import weft.passes
from tests.core.toys import cos, f32, make, sin
from tests.passes.random_programs import make_program
from weft import numpy as jnp
from weft.core.facts import Runs
from weft.core.jaxpr import ClosedJaxpr, bodies_of, subjaxprs
from weft.optimize.passes import DEFAULT, PASSES, find_passes, run_passes
from weft.options import config
from weft.passes.check import check_jaxpr
from weft.passes.dce import drop_dead_code, used_inputs


def program(x, y):
    cos(y)
    return sin(x)


def test_the_list_of_passes():
    assert PASSES[-1] is drop_dead_code and set(DEFAULT) <= set(PASSES)
    lean = run_passes(make(program, f32(), f32()))
    assert len(lean.eqns) == 1 and used_inputs(lean) == (True, False)


def test_programs_are_checked_after_every_pass():
    done = []

    def note(jaxpr):
        done.append(jaxpr.memo.get("checked"))
        return jaxpr.replace()

    with config.scope(enable_checks=True):
        out = run_passes(make(program, f32(), f32()), [note, note])
    assert done == [None, True] and out.memo["checked"]


def test_passes_are_chosen_by_name_and_by_function():
    own = lambda jaxpr: jaxpr
    assert find_passes() == DEFAULT and find_passes("all") == PASSES and find_passes("none") == ()
    assert find_passes(["cse_jaxpr", own, drop_dead_code])[1:] == (own, drop_dead_code)
    with config.scope(passes="cse_jaxpr, drop_dead_code"):
        assert [p.__name__ for p in find_passes()] == ["cse_jaxpr", "drop_dead_code"]
    message = "passes: must be functions from jaxpr to jaxpr, or names of fold_constants, "
    with pytest.raises(ValueError, match=message):
        weft.jit(sin, passes="fold")


def test_a_pass_of_the_users_own_is_part_of_jit():
    seen = []

    def double_sines(jaxpr):
        seen.append([e.primitive.name for e in jaxpr.eqns])
        return jaxpr.replace(outvars=[jaxpr.eqns[0].outvars[0]])

    f = lambda x: jnp.sin(x) + 1
    assert weft.jit(f, passes=(double_sines, drop_dead_code))(0.0) == 0.0
    assert weft.jit(f)(0.0) == 1.0 and seen == [["sin", "add"]]


def test_a_program_that_keeps_its_dead_code_runs():
    f = weft.jit(lambda x, y: (jnp.sin(y), x)[1], passes="none")
    assert f(2.0, 3.0) == 2.0 and "sine" in f.lower(2.0, 3.0).as_text()
    with config.scope(passes="default"):
        assert "sine" not in weft.jit(lambda x, y: (jnp.sin(y), x)[1]).lower(2.0, 3.0).as_text()


def test_programs_are_written_after_every_pass(tmp_path):
    with config.scope(dump=str(tmp_path / "new")):
        run_passes(make(program, f32(), f32()), find_passes("all"), "my f")
    names = sorted(f.name for f in (tmp_path / "new").iterdir())
    numbers, steps = zip(*[(n[:4], n[5:]) for n in names], strict=True)
    assert steps[0] == "my_f-traced.txt" and steps[-1] == "my_f-drop_dead_code.txt"
    assert len(steps) == len(PASSES) + 1 and [*map(int, numbers)] == [
        *range(int(numbers[0]), int(numbers[0]) + len(steps))
    ]
    assert "cos" in (tmp_path / "new" / names[0]).read_text()
    assert "cos" not in (tmp_path / "new" / names[-1]).read_text()


# --- the same bits -------------------------------------------------------------------------------


def apply_one_by_one(jaxpr, args):
    """Return a program's results, with each operation computed on its own and loops unrolled.

    XLA rounds only once when it fuses a product and a sum. Such differences do not matter here.
    """
    env = dict(zip(jaxpr.invars, args, strict=True))
    value = lambda a: a.read() if hasattr(a, "val") else env[a]
    for eqn in jaxpr.eqns:
        ins, bodies = [*map(value, eqn.invars)], bodies_of(eqn)
        if not bodies:
            outs = eqn.primitive.apply(*ins, **eqn.params)
        elif bodies[0].runs is Runs.BRANCH:
            held = bodies[int(ins[0])]
            outs = apply_one_by_one(held.jaxpr, [ins[i] for i in held.operands])
        elif bodies[0].runs is Runs.LOOP:
            outs = run_turns(eqn, bodies, ins)
        else:
            outs = apply_one_by_one(bodies[0].jaxpr, [ins[i] for i in bodies[0].operands])
        env.update(zip(eqn.outvars, outs, strict=True))
    return [*map(value, jaxpr.outvars)]


def run_turns(eqn, bodies, ins):
    body, carry = bodies[0], bodies[0].carry
    xs = [ins[i] for i in body.operands]
    ys = []
    for turn in body.turns if body.turns is not None else range(100):
        if body.turns is None:
            state = dict(zip(body.operands[carry.start :], xs[carry.start :], strict=True))
            test = [state.get(i, ins[i]) for i in bodies[1].operands]
            if not apply_one_by_one(bodies[1].jaxpr, test)[0]:
                break
        rows = [x[turn] for x in xs[carry.stop :]]
        outs = apply_one_by_one(body.jaxpr, [*xs[: carry.stop], *rows])
        xs[carry.start : carry.stop] = outs[: len(carry)]
        ys.append(outs[len(carry) :])
    stacked = [jnp.stack(column) for column in zip(*ys, strict=True)]
    return [*xs[carry.start : carry.stop], *stacked]


def bits(outs):
    """Return values by their bits, with a single NaN."""
    return [np.where(np.isnan(x), np.nan, x).tobytes() for x in map(np.asarray, outs)]


def count_equations(jaxpr):
    return len(jaxpr.eqns) + sum(map(count_equations, subjaxprs(jaxpr)))


@pytest.mark.sample(one_in=4)
@pytest.mark.parametrize("seed", range(12))
def test_programs_give_the_same_bits_after_each_pass(seed):
    jaxpr, args = make_program(seed)
    text, wanted = str(jaxpr), bits(apply_one_by_one(jaxpr, args))
    for run_pass in PASSES:
        after = run_pass(jaxpr)
        check_jaxpr(after)
        assert bits(apply_one_by_one(after, args)) == wanted, run_pass.__name__
        assert run_pass(jaxpr) is after  # remembered
    after = run_passes(jaxpr, PASSES)
    assert bits(apply_one_by_one(after, args)) == wanted
    assert count_equations(after) <= count_equations(jaxpr)
    assert str(jaxpr) == text  # unchanged


def test_keys_effects_and_shardings_survive():
    mesh = weft.make_mesh((1,), ("i",), weft.sharding.AxisType.Auto)

    def f(key, x, noisy=False):
        x = weft.lax.with_sharding_constraint(x, weft.NamedSharding(mesh, weft.P("i")))
        local = lambda x: weft.lax.psum(weft.lax.neg(weft.lax.neg(x)) * 1, "i")
        y = weft.shard_map(local, mesh=mesh, in_specs=weft.P("i"), out_specs=weft.P())(x)
        if noisy:
            weft.debug.callback(lambda y: None, y)
        return weft.random.split(key)[0], y

    args = weft.random.key(0), jnp.ones(2)
    key, y = weft.jit(f, passes="all")(*args)
    assert key == weft.random.split(args[0])[0] and y.tolist() == [1, 1]
    before = weft.make_jaxpr(functools.partial(f, noisy=True))(*args).jaxpr
    after = run_passes(before, PASSES)
    assert after.effects == before.effects != frozenset()
    names = [e.primitive.name for e in after.eqns]
    assert {"sharding_constraint", "shard_map", "random_split"} <= {*names}


def test_what_is_compiled_after_all_passes():
    jaxpr, args = make_program(3)
    run = lambda *xs: jaxpr(*xs)
    found = weft.jit(run, passes="all")(*args)
    for x, y in zip(found, weft.jit(run)(*args), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_derivatives_of_high_order_are_shortened():
    """The ninth derivative of tanh has 2,100 operations; 1,300 of them are not needed."""
    f = jnp.tanh
    for _ in range(9):
        f = weft.grad(f)
    jaxpr = weft.make_jaxpr(f)(0.3).jaxpr
    assert len(run_passes(jaxpr).eqns) < 0.5 * len(run_passes(jaxpr, DEFAULT).eqns)
    polynomial = np.polynomial.Polynomial([0, 1])  # in t = tanh x, dt/dx = 1 - t**2
    for _ in range(9):
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([1, 0, -1])
    with weft.enable_x64(True):
        np.testing.assert_allclose(weft.jit(f)(0.3), polynomial(np.tanh(0.3)), rtol=1e-10)
    rows = weft.make_jaxpr(lambda x: [x * 1.0 for _ in range(1001)])(np.ones(3))
    assert len(run_passes(rows).eqns) > 1000  # as programs on arrays are left


@pytest.mark.parametrize("name", [n for n in dir(weft.passes) if n.islower() and n[0] != "_"])
def test_passes_take_closed_programs_and_names_of_arguments(name):
    apply = getattr(weft.passes, name)
    consts = jnp.arange(3.0)
    program = weft.make_jaxpr(lambda x: (jnp.sin(x) + jnp.sin(x), jnp.cos(x))[0] + consts)(1.0)
    found = apply(program)
    assert type(found) is ClosedJaxpr and found.consts == program.consts
    np.testing.assert_allclose(found(2.0)[0], program(2.0)[0], 1e-6)
    named = apply(jaxpr=program.jaxpr)
    assert len(named.eqns) == len(found.eqns)
