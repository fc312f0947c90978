"""tatva: finite elements on a mesh of two triangles."""

import jax
import jax.numpy as jnp
from tatva.element import Tri3
from tatva.mesh import Mesh
from tatva.operator import Operator

coords = jnp.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
op = Operator(Mesh(coords, jnp.array([[0, 1, 2], [0, 2, 3]])), Tri3())
u = jnp.arange(4.0)
print(op.integrate(u), op.grad(u).squeeze())
print(jax.grad(lambda u: op.integrate(op.grad(u) ** 2).sum())(u))
