"""Flow in a box whose lid moves: Navier and Stokes' equations, pressure by Jacobi's relaxation.

Source: A. Chorin, Math. Comp. 22 (1968), for the projection; grid and steps as in L. Barba's
course "12 steps to Navier-Stokes".
"""

sizes = {"small": (24, 5, 10), "medium": (64, 30, 40), "large": (200, 50, 50)}

DT, RHO, NU = 1e-4, 1.0, 0.1


def make(size, rng):
    n, steps, sweeps = sizes[size]
    return *(0.01 * rng.rand(n, n) for _ in range(3)), steps, sweeps


def source(u, v, d):
    """The right side of Poisson's equation for the pressure, at inner points."""
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * d)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * d)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * d)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * d)
    return RHO * ((ux + vy) / DT - ux**2 - 2 * uy * vx - vy**2)


def relax(p, b, d):
    total = p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1]
    return (total - d * d * b) / 4


def move(u, v, w, slope, d):
    """Velocity `w` after a step: advection by (u, v), a slope of pressure, and viscosity."""
    inner = w[1:-1, 1:-1]
    along = u[1:-1, 1:-1] * (inner - w[1:-1, :-2]) + v[1:-1, 1:-1] * (inner - w[:-2, 1:-1])
    bend = w[1:-1, 2:] + w[1:-1, :-2] + w[2:, 1:-1] + w[:-2, 1:-1] - 4 * inner
    return inner - DT / d * along - DT / (2 * RHO * d) * slope + NU * DT / d**2 * bend


def numpy_form(u, v, p, steps, sweeps):
    u, v, p = u.copy(), v.copy(), p.copy()
    d = 2.0 / (len(u) - 1)
    for _ in range(steps):
        b = source(u, v, d)
        for _ in range(sweeps):
            p[1:-1, 1:-1] = relax(p, b, d)
            p[:, -1] = p[:, -2]
            p[0] = p[1]
            p[:, 0] = p[:, 1]
            p[-1] = 0
        new_u = move(u, v, u, p[1:-1, 2:] - p[1:-1, :-2], d)
        new_v = move(u, v, v, p[2:, 1:-1] - p[:-2, 1:-1], d)
        u[1:-1, 1:-1], v[1:-1, 1:-1] = new_u, new_v
        u[0], u[:, 0], u[:, -1], u[-1] = 0, 0, 0, 1
        v[0], v[-1], v[:, 0], v[:, -1] = 0, 0, 0, 0
    return u, v, p


def jax_form(jax, u, v, p, steps, sweeps):
    d = 2.0 / (len(u) - 1)

    def sweep(p, b):
        p = p.at[1:-1, 1:-1].set(relax(p, b, d))
        p = p.at[:, -1].set(p[:, -2])
        p = p.at[0].set(p[1])
        p = p.at[:, 0].set(p[:, 1])
        return p.at[-1].set(0)

    def step(_, state):
        u, v, p = state
        b = source(u, v, d)
        p = jax.lax.fori_loop(0, sweeps, lambda _, p: sweep(p, b), p)
        new_u = move(u, v, u, p[1:-1, 2:] - p[1:-1, :-2], d)
        new_v = move(u, v, v, p[2:, 1:-1] - p[:-2, 1:-1], d)
        u, v = u.at[1:-1, 1:-1].set(new_u), v.at[1:-1, 1:-1].set(new_v)
        u = u.at[0].set(0).at[:, 0].set(0).at[:, -1].set(0).at[-1].set(1)
        v = v.at[0].set(0).at[-1].set(0).at[:, 0].set(0).at[:, -1].set(0)
        return u, v, p

    return jax.lax.fori_loop(0, steps, step, (u, v, p))
