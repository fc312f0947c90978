"""Newton's method on 10,000 equations and Gauss-Newton on 6,000 residuals, by sparse Jacobians.

`sparse_jacobian` finds from the program which entries a Jacobian has, computes them by a few
products, and `spsolve` solves with them. First the equation of Bratu on the unit square,
div grad u + c exp(u) = 0 with u = 0 at the edges: its solution is followed as c grows to the
turning point near 6.808, beyond which there is none (Mohsen, "A simple solution of the Bratu
problem", Computers and Mathematics with Applications 67 (2014)). Then bundle adjustment: cameras
and points in space are found from the places of the points in the pictures (Triggs et al., "Bundle
adjustment, a modern synthesis", 1999).

usage: python examples/sparse_newton.py [--side 100] [--cameras 10] [--seed 0] [--out examples/out]
"""

import sys
import time

import numpy as np
from common import BLUE, ORANGE, arguments, axes, image, progress, save, verdict

import weft.numpy as jnp
from weft import config, jit, sparse_jacobian
from weft.experimental import sparse
from weft.experimental.sparse.linalg import spsolve

config.update("enable_x64", True)

LARGEST_AT_ONE = 0.07810  # u in the middle of the square where c = 1
NOISE = 1e-3  # of the places in pictures; a picture is about 1 wide


def residuals(u, c):
    """Residuals of Bratu's equation at the inner points of a square grid."""
    n = round(np.sqrt(u.size))
    u = jnp.pad(u.reshape(n, n), 1)
    inner = u[1:-1, 1:-1]
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return ((around - 4 * inner) * (n + 1) ** 2 + c * jnp.exp(inner)).reshape(-1)


def solve_newton(jac, u, c, tolerance=1e-8, most=20):
    """The solution from a start by Newton's method, and the norms of the residuals."""
    sizes = []
    for _ in range(most):
        f = residuals(u, c)
        sizes.append(float(jnp.max(jnp.abs(f))))
        if sizes[-1] < tolerance:
            break
        matrix = jac(u, c)
        u = u - spsolve(matrix.data, matrix.indices, matrix.indptr, f)
    return u, sizes


def project(cameras, points, which, what):
    """Places in pictures: of the point `what[k]` by the camera `which[k]`, for each k."""
    turn, move = cameras[which, :3], cameras[which, 3:]
    x = points[what]
    x = x + jnp.cross(turn, x) + move  # a small rotation
    return x[:, :2] / (x[:, 2:] + 4)


def make_scene(rng, count):
    """Cameras, points, and which cameras see which points."""
    cameras = rng.normal(0, 0.05, (count, 6))
    points = rng.uniform(-1, 1, (60 * count, 3))
    seen = rng.random((count, len(points))) < 5 / count  # by five cameras each
    return cameras, points, *np.nonzero(seen)


def adjust(jac, error, unknowns, steps=12):
    """Unknowns with the least sum of squares, by damped Gauss-Newton, and the sums on the way."""
    square = jit(lambda x: jnp.sum(error(x) ** 2))
    sums, damping = [float(square(unknowns))], 1e-3
    for _ in progress(steps, desc="adjusting"):
        matrix = jac(unknowns)
        normal = (matrix.T @ matrix).sum_duplicates() + damping * sparse.eye(len(unknowns))
        rows = sparse.BCSR.from_bcoo(normal.sum_duplicates())
        change = spsolve(rows.data, rows.indices, rows.indptr, matrix.T @ error(unknowns))
        better = float(square(unknowns - change))
        if better < sums[-1]:
            unknowns, damping = unknowns - change, damping / 10
        else:
            damping *= 10
        sums.append(min(better, sums[-1]))
    return unknowns, sums


def main():
    """Solve both problems, compare with what is known, draw; 0 when the goals are met."""
    args = arguments(__doc__, side=100, cameras=10)
    n = args.side
    jac = sparse_jacobian(residuals, format="bcsr")
    pattern = jac.pattern(jnp.zeros(n * n), 1.0)
    print(f"Bratu: {pattern}")
    u, largest, last = jnp.zeros(n * n), [], []
    strengths = [*np.linspace(0.2, 6.6, 33), *np.linspace(6.65, 6.8, 4)]
    start = time.perf_counter()
    for c in progress(strengths, desc="following"):
        u, last = solve_newton(jac, u, c)
        largest.append(float(jnp.max(u)))
    seconds = time.perf_counter() - start
    at_one = np.interp(1.0, strengths, largest)
    print(f"u at c = 1: {at_one:.5f} ({LARGEST_AT_ONE}); last residuals {last[-3:]}")
    print(f"{len(strengths)} solutions of {n * n} equations in {seconds:.1f} s")

    rng = np.random.default_rng(args.seed)
    cameras, points, which, what = make_scene(rng, args.cameras)
    split = cameras.size
    true = np.concatenate([cameras.reshape(-1), points.reshape(-1)])
    unpack = lambda x: (x[:split].reshape(-1, 6), x[split:].reshape(-1, 3))
    seen = np.asarray(project(*unpack(true), which, what))
    seen = seen + rng.normal(0, NOISE, seen.shape)
    error = lambda x: (project(*unpack(x), which, what) - seen).reshape(-1)
    adjacent = sparse_jacobian(error)
    print(f"bundle adjustment: {adjacent.pattern(true)}")
    begin = jnp.asarray(true + rng.normal(0, 0.03, true.shape))
    _, sums = adjust(adjacent, error, begin)
    freedom = seen.size - len(true) + 7  # the scene as a whole can move, turn and grow
    ratio = sums[-1] / (freedom * NOISE**2)
    print(f"sum of squares {sums[0]:.3g} -> {sums[-1]:.3g}: {ratio:.3f} of what the noise makes")

    figure, (left, middle, right) = axes(1, 3)
    image(left, np.asarray(u).reshape(n, n), f"u at c = {strengths[-1]:.1f}", cmap="viridis")
    middle.plot(strengths, largest, ".-", color=BLUE)
    middle.axvline(6.808, color=ORANGE, linewidth=1)
    middle.set(xlabel="c", ylabel="largest u")
    right.spy(adjacent.pattern(true).to_scipy_sparse(), markersize=0.2, aspect="auto", color=BLUE)
    right.set_title("Jacobian of the pictures", loc="left", fontsize=11)
    save(figure, args.out / "sparse_newton.png")
    reached = abs(at_one - LARGEST_AT_ONE) < 2e-4 and last[-1] < 1e-8 and 0.9 < ratio < 1.1
    return verdict("sparse_newton", reached, "the known solution, and residuals as large as noise")


if __name__ == "__main__":
    sys.exit(main())
