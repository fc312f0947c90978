"""A library's trace under the switch: rules that name all parameters of JAX's primitives."""

import subprocess
import sys

PROGRAM = """
import jax, jax.numpy as jnp
from jax import core, lax
from jax.extend.core import jaxpr_as_fun, set_current_trace, take_current_trace
from jax.extend.core.primitives import jit_p, while_p

class Counting(core.Trace):
    def __init__(self, below):
        super().__init__()
        self.below, self.seen = below, []

    def process_primitive(self, prim, tracers, params):
        values = [x.value if isinstance(x, Counted) else x for x in map(self.full_raise, tracers)]
        self.seen.append(prim.name)
        with set_current_trace(self.below):
            rule = RULES.get(prim, lambda *xs, **params: prim.bind(*xs, **params))
            outs = rule(*values, **params)
        wrap = lambda x: Counted(self, x)
        return [*map(wrap, outs)] if prim.multiple_results else wrap(outs)

class Counted(core.Tracer):
    def __init__(self, trace, value):
        self._trace, self.value = trace, value

    @property
    def aval(self):
        return jax.typeof(self.value)

def while_rule(*xs, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr):
    return [jnp.float32(7)]

def run(fun, x):
    with take_current_trace() as below:
        trace = Counting(below)
        with set_current_trace(trace):
            out = fun(Counted(trace, x))
    return float(out.value), trace.seen

names = []
look = lambda x: names.append(type(x).__module__.split(".")[0]) or x * x
jax.vmap(jax.grad(look))(jnp.ones(2)), jax.jit(look)(1.0)
assert names == ["jax", "jax"], names
RULES = {}
print(run(jax.jit(lambda x: jnp.sin(x)), 0.0))  # its default rule binds jit with what it was given
RULES = {
    jit_p: lambda *xs, jaxpr, inline, **_: jaxpr_as_fun(jaxpr)(*xs) if not inline else None,
    while_p: while_rule,
}
print(run(jax.jit(lambda x: jnp.cos(x)), 0.0))
print(run(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + 1, x), 0.0))
"""


def test_rules_of_a_library_get_the_parameters_of_jax():
    command = [sys.executable, "-W", "ignore", "-m", "weft", "-c", PROGRAM]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.stdout.split("\n")[:3] == ["(0.0, ['jit'])", "(1.0, ['jit'])", "(7.0, ['while'])"], (
        ran.stderr
    )
