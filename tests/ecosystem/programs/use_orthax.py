"""orthax: series of orthogonal polynomials, their derivatives, roots and nodes."""

import jax
import jax.numpy as jnp
import orthax
from orthax import chebyshev, hermite, legendre

x, c = jnp.linspace(-1, 1, 7), jnp.array([1.0, 2.0, 3.0])
y = chebyshev.chebval(x, c)
print(y, chebyshev.chebder(c), legendre.legint(c), legendre.legmul(c, c))
print(jnp.sort(abs(chebyshev.chebroots(c))), *legendre.leggauss(4))
print(hermite.hermvander(x, 3)[::3], chebyshev.chebfit(x, y, 2))
print(jax.grad(lambda c: chebyshev.chebval(x, c).sum())(c))
print(jax.jit(jax.vmap(lambda c: legendre.legval(x, c)))(jnp.stack([c, 2 * c])))
family = orthax.recurrence.Legendre()
print(orthax.orthval(x, c, family), *orthax.orthgauss(4, family))
