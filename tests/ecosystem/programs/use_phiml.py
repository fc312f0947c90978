"""phiml on JAX: tensors with names, solved, jitted and differentiated."""

from phiml import math
from phiml.math import batch, spatial

math.use("jax")
x = math.linspace(0.0, 1.0, spatial(x=8))
y = math.sin(x) * math.wrap([1.0, 2.0], batch("b"))
print(y.numpy("b,x"), math.sum(y, "x").numpy("b"))
loss = lambda x, w: math.l2_loss(math.cos(x) * w)
value, slope = math.gradient(loss, "x,w")(x, math.tensor(2.0))
print(value.numpy(), slope[0].numpy("x"), slope[1].numpy())
step = math.jit_compile(lambda u: math.laplace(u, padding=math.extrapolation.PERIODIC) * 0.1 + u)
u = math.random_normal(spatial(x=6, y=5)) * 0 + math.range(spatial(x=6))
for _ in range(3):
    u = step(u)
print(u.numpy("x,y"))


@math.jit_compile_linear
def operator(u):
    return 2 * u - 0.5 * math.laplace(u, padding=math.extrapolation.ZERO)


solve = math.Solve("CG", 1e-5, x0=u * 0)
print(math.solve_linear(operator, u, solve).numpy("x,y"))
print(math.fft(u).numpy("x,y").real[:2], math.vec_length(math.vec(x=x, y=x)).numpy("x"))
print(math.minimize(lambda x: math.l2_loss(x - 1), math.Solve("L-BFGS-B", 0, 1e-3, x0=x)).numpy())
