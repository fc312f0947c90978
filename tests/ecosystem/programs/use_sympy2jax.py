"""sympy2jax: expressions of SymPy whose numbers are trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import sympy
import sympy2jax

x = sympy.symbols("x")
module = sympy2jax.SymbolicModule([sympy.cos(1.5 * x) + sympy.exp(-x) / 3, 2 * sympy.sin(x) ** 2])
print(module(x=jnp.linspace(0.0, 1.0, 4)))


@eqx.filter_jit
@eqx.filter_value_and_grad
def loss(module, x):
    return sum(jnp.sum(y**2) for y in module(x=x))


value, slope = loss(module, jnp.linspace(0.0, 1.0, 4))
print(value, jax.tree.leaves(eqx.filter(slope, eqx.is_array)))
for _ in range(10):
    _, slope = loss(module, jnp.linspace(0.0, 1.0, 4))
    module = eqx.apply_updates(module, jax.tree.map(lambda g: -0.05 * g, slope))
print(loss(module, jnp.linspace(0.0, 1.0, 4))[0])
a, b = sympy.symbols("a b")
more = sympy2jax.SymbolicModule(sympy.Max(a, b) + sympy.Abs(a - b) + sympy.sqrt(a))
print(more(a=jnp.array([1.0, 3.0]), b=2.0), jax.jacfwd(lambda a: more(a=a, b=2.0))(jnp.ones(2)))
