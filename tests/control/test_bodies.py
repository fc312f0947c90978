"""Primitives that hold programs run them as their `bodies` say."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.core.facts import Runs
from weft.core.jaxpr import Literal, bodies_of, held_jaxprs
from weft.watch.nans import step_bodies

X = np.array([1.0, 2.0, 3.0], np.float32)


def custom(x):
    f = weft.custom_jvp(lambda y: jnp.sin(y) * 2)
    f.defjvps(lambda t, ans, y: t)
    return f(x)


def vmapped(x):
    f = weft.custom_batching.custom_vmap(lambda y: jnp.cos(y) + 1)
    f.def_vmap(lambda size, batched, y: (f.fun(y), batched[0]))
    return f(x)


def step(carry, x):
    return carry * x, carry + x


CALLS = {
    "jit": weft.jit(lambda x: jnp.sin(x) + 1),
    "checkpoint": weft.checkpoint(lambda x: jnp.exp(x) * 2),
    "composite": lax.composite(lambda x: x * x, "my.square"),
    "custom_jvp": custom,
    "custom_vmap": vmapped,
    "cond": lambda x: lax.switch(x[0].astype(int), [jnp.sin, jnp.cos, jnp.tan], x),
    "solve": lambda x: lax.custom_linear_solve(lambda y: 2 * y, x, lambda f, b: b / 2),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * X), (0, x)),
    "many whiles": weft.vmap(lambda x: lax.while_loop(lambda c: c < 4, lambda c: c * 2, x)),
    "scan": lambda x: lax.scan(step, x, jnp.ones((3, 3)) * X),
    "reversed scan": lambda x: lax.scan(step, x, jnp.stack([X, X + 1]), reverse=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_running_the_bodies_is_running_the_primitive(name):
    closed = weft.make_jaxpr(CALLS[name])(X)
    jaxpr = closed.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, X], strict=True))
    for eqn in jaxpr.eqns:
        operands = [a.val if type(a) is Literal else values[a] for a in eqn.invars]
        outs = eqn.primitive.apply(*operands, **eqn.params)
        values.update(zip(eqn.outvars, outs, strict=True))
        if not held_jaxprs(eqn):
            continue
        bodies, found = bodies_of(eqn), None
        runs = step_bodies(bodies, operands)
        try:
            while True:
                program, args = runs.send(found)
                found = program(*args)
        except StopIteration:
            pass
        carried = len(bodies[0].carry)
        for i, (x, y) in enumerate(zip(outs, found, strict=True)):
            stacked = bodies[0].runs is Runs.LOOP and i >= carried
            x = x[bodies[0].turns[-1]] if stacked else x
            np.testing.assert_allclose(x, y, rtol=1e-6)


def test_programs_that_run_on_parts_of_operands_are_held_all_the_same():
    for f in (weft.pmap(jnp.sin), lambda x: lax.reduce(x, 0.0, lambda a, b: a * b + a, (1,))):
        held = [e for e in weft.make_jaxpr(f)(X[None]).jaxpr.eqns if held_jaxprs(e)]
        assert [body.runs for e in held for body in bodies_of(e)] == [Runs.UNKNOWN]
