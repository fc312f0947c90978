"""pymanopt with JAX's derivatives: eigenvectors by optimization on manifolds."""

import jax.numpy as jnp
import numpy as np
import pymanopt

matrix = np.random.default_rng(0).normal(size=(6, 6))
matrix = 0.5 * (matrix + matrix.T)
sphere = pymanopt.manifolds.Sphere(6)


@pymanopt.function.jax(sphere)
def cost(point):
    return -point @ jnp.asarray(matrix) @ point


for optimizer in (
    pymanopt.optimizers.SteepestDescent(verbosity=0),
    pymanopt.optimizers.TrustRegions(verbosity=0),
    pymanopt.optimizers.ConjugateGradient(verbosity=0),
):
    start = np.ones(6) / np.sqrt(6)
    result = optimizer.run(pymanopt.Problem(sphere, cost), initial_point=start)
    print(round(float(result.cost), 3))
print(np.linalg.eigvalsh(matrix)[-1].round(3))
stiefel = pymanopt.manifolds.Stiefel(6, 2)


@pymanopt.function.jax(stiefel)
def subspace(point):
    return -jnp.trace(point.T @ jnp.asarray(matrix) @ point)


start = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 2)))[0]
problem = pymanopt.Problem(stiefel, subspace)
print(problem.riemannian_gradient(start), problem.riemannian_hessian(start, start[::-1]))
