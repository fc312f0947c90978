"""scico: a picture without its noise, by ADMM with total variation."""

import jax
import scico.numpy as snp
from scico import functional, linop, loss, metric, random
from scico.optimize import ADMM, PGM
from scico.optimize.admm import LinearSubproblemSolver

x = snp.zeros((12, 12)).at[3:9, 3:9].set(1.0)
noise, key = random.randn((12, 12), seed=3)
y = x + 0.1 * noise
c = linop.FiniteDifference(input_shape=x.shape, append=0)
solver = ADMM(
    f=loss.SquaredL2Loss(y=y),
    g_list=[0.1 * functional.L21Norm()],
    C_list=[c],
    rho_list=[1.0],
    x0=y,
    maxiter=5,
    subproblem_solver=LinearSubproblemSolver(cg_kwargs={"tol": 1e-4, "maxiter": 20}),
)
print(solver.solve()[4, :6], metric.snr(x, solver.x), metric.snr(x, y))
a = linop.Convolve(h=snp.ones((3, 3)) / 9, input_shape=x.shape, mode="same")
f = loss.SquaredL2Loss(y=a(x), A=a)
print(f(y), jax.grad(f)(y)[3, :4], a.T(a(x))[4, :4])
pgm = PGM(f=f, g=0.01 * functional.L1Norm(), L0=1.0, x0=snp.zeros_like(x), maxiter=5)
print(pgm.solve()[4, :6], linop.operator_norm(a), snp.blockarray([x[0], y]).shape)
