"""Map a mountain range from few heights by a Gaussian process, and say how sure the map is.

The marginal likelihood of the heights goes through `cho_factor` and `cho_solve`, in float64.
`scipy.optimize.minimize` climbs it by its gradient, for three kernels (`lax.switch`) from several
starts, and the best explanation wins (Rasmussen & Williams 2006, chapters 2 and 5). The heights are
those of a real place, at the Jacksboro fault in Tennessee, and ship with Matplotlib. The bar: at
held-out places the error is below 85% of ridge regression's on polynomials, and the likelihood of
the true heights is greater.

usage: python examples/gp.py [--points 400] [--restarts 2] [--seed 0] [--out examples/out]
"""

import sys

import numpy as np
from common import BLUE, ORANGE, arguments, axes, image, progress, save, verdict
from matplotlib.cbook import get_sample_data
from scipy.stats import norm
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import weft
import weft.numpy as jnp
from weft import jit, lax, random, vmap
from weft.scipy.linalg import cho_factor, cho_solve, solve_triangular
from weft.scipy.optimize import minimize

HELD_OUT = 3000
GOAL = 0.85  # of ridge regression's error
KM_PER_DEGREE = 111.2
DEGREE = 12  # of the polynomials
SMALLEST_NOISE = 1e-4  # variance, in units of that of the heights


# --- the process: heights y at places x (points, 2), with hyperparameters as logarithms -----------


def smooth(r2):
    """The squared exponential: every derivative exists."""
    return jnp.exp(-r2 / 2)


def matern(r2):
    """Matérn's with nu = 3/2: one derivative exists."""
    r = jnp.sqrt(3 * r2 + 1e-12)  # the root alone has no derivative at 0
    return (1 + r) * jnp.exp(-r)


def rough(r2):
    """The exponential: continuous, nowhere smooth."""
    return jnp.exp(-jnp.sqrt(r2 + 1e-12))


KERNELS = (smooth, matern, rough)
NAMES = ("squared exponential", "Matérn 3/2", "exponential")


def covariance(kernel, log_params, a, b):
    """Between the heights at places a and b, (len(a), len(b)); `kernel` is a place in `KERNELS`.

    It may be traced, so that one compiled program serves them all.
    """
    log_variance, *log_lengths = log_params[:3]
    a, b = (x / jnp.exp(jnp.stack(log_lengths)) for x in (a, b))
    between = vmap(vmap(lambda p, q: jnp.sum((p - q) ** 2), (None, 0)), (0, None))
    return jnp.exp(log_variance) * lax.switch(kernel, KERNELS, between(a, b))


def factor(kernel, log_params, x):
    """Cholesky's factor of the covariance of measured heights."""
    noise = jnp.exp(log_params[3]) + SMALLEST_NOISE
    return cho_factor(covariance(kernel, log_params, x, x) + noise * jnp.eye(len(x)), lower=True)


def log_likelihood(kernel, log_params, x, y):
    """The log-density of the heights, all others integrated out (equation 2.30)."""
    half, lower = factor(kernel, log_params, x)
    fits = y @ cho_solve((half, lower), y) / 2
    return -fits - jnp.sum(jnp.log(jnp.diag(half))) - len(y) / 2 * jnp.log(2 * jnp.pi)


@jit
def fit(kernel, start, x, y):
    """The hyperparameters of a greatest likelihood near `start`, and that likelihood."""
    cost = lambda log_params: -log_likelihood(kernel, log_params, x, y) / len(y)
    found = minimize(cost, start, method="BFGS", tol=1e-3, options={"maxiter": 30})
    return found.x, -found.fun * len(y)


@jit
def predict(kernel, log_params, x, y, places):
    """Mean and standard deviation of measured heights at `places` (algorithm 2.1)."""
    half, lower = factor(kernel, log_params, x)
    across = covariance(kernel, log_params, x, places)
    mean = across.T @ cho_solve((half, lower), y)
    explained = jnp.sum(solve_triangular(half, across, lower=lower) ** 2, axis=0)
    variance = jnp.exp(log_params[0]) + jnp.exp(log_params[3]) + SMALLEST_NOISE - explained
    return mean, jnp.sqrt(variance)


# --- the place ------------------------------------------------------------------------------------


def load_heights():
    """Heights in metres (north to south, west to east), and each one's (x, y) in kilometres."""
    with get_sample_data("jacksboro_fault_dem.npz") as data:
        heights, dy, latitude = data["elevation"].astype(float), data["dy"], data["ymin"]
        dx = data["dx"] * np.cos(np.radians(latitude))
    rows, columns = np.indices(heights.shape)
    return heights, np.stack([columns * dx, rows * dy], axis=-1) * KM_PER_DEGREE


def best_fit(key, x, y, restarts):
    """(kernel, hyperparameters) of the greatest likelihood, and each kernel's likelihood."""
    fits = []
    keys = random.split(key, len(KERNELS) * restarts)
    bar = progress(len(keys), unit="fit", desc="fitting")
    for i in bar:
        start = jnp.log(jnp.array([1.0, 3.0, 3.0, 0.1])) + random.normal(keys[i], (4,))
        kernel = i % len(KERNELS)
        log_params, likelihood = fit(kernel, start, x, y)
        fits.append((float(likelihood), kernel, log_params))
        bar.set_postfix(log_likelihood=f"{fits[-1][0]:.1f}")
    best = [max(found[0] for found in fits if found[1] == k) for k in range(len(KERNELS))]
    _, kernel, log_params = max(fits, key=lambda found: found[0])
    return kernel, log_params, best


def ridge(x, y, places):
    """Mean and deviation of heights by ridge regression, both chosen by leaving each point out."""
    scaled = (StandardScaler(), PolynomialFeatures(DEGREE), StandardScaler())
    model = make_pipeline(*scaled, RidgeCV(np.logspace(-6, 3, 19))).fit(x, y)
    return model.predict(places), np.sqrt(-model[-1].best_score_)


def figures(name, true, mean, deviation):
    """Print how good predictions in metres are: (root mean square error, log-likelihood)."""
    error = np.sqrt(np.mean((true - mean) ** 2))
    likelihood = norm.logpdf(true, mean, deviation).mean()
    inside = (np.abs(true - mean) < 1.96 * deviation).mean()
    print(
        f"{name}: error {error:.1f} m, log-likelihood {likelihood:.3f} nats a height, "
        f"{inside:.1%} within the 95% band"
    )
    return error, likelihood


def draw(heights, places, measured, predicted, path):
    """The place, the map, how sure it is, and a profile from west to east with its band."""
    figure, ((true, guess), (doubt, profile)) = axes(2, 2, size=(10, 9))
    every = 4  # pixels
    grid, shown = places[::every, ::every], heights[::every, ::every]
    mean, deviation = (a.reshape(shown.shape) for a in predicted(grid.reshape(-1, 2)))
    width, height = places[-1, -1]
    for ax, values, title, cmap, limits in (
        (true, shown, "Heights (m), and where they were measured", "gist_earth", None),
        (guess, mean, "Heights by the process (m)", "gist_earth", None),
        (doubt, deviation, "Its standard deviation (m)", "magma", (0, deviation.max())),
    ):
        low, high = limits or (heights.min() - 200, heights.max())
        image(ax, values, cmap=cmap, vmin=low, vmax=high, extent=(0, width, height, 0))
        ax.set_title(title, fontsize=11)
        ax.set_xlabel(f"{width:.0f} km", fontsize=9)
        figure.colorbar(ax.images[0], ax=ax, shrink=0.8)
    true.plot(*measured.T, ".", color="black", markersize=2)
    row = len(places) // 2
    mean, deviation = predicted(places[row])
    along = places[row, :, 0]
    band = (mean - 1.96 * deviation, mean + 1.96 * deviation)
    profile.fill_between(along, *band, color=BLUE, alpha=0.2, linewidth=0, label="95% band")
    profile.plot(along, mean, color=BLUE, linewidth=2, label="process")
    profile.plot(along, heights[row], color=ORANGE, linewidth=1, label="truth")
    guess.axhline(places[row, 0, 1], color="black", linewidth=1, linestyle="--")
    profile.set(xlabel="km from the west", ylabel="height (m)", title="Along the dashed line")
    profile.legend(frameon=False, ncols=3, loc="upper left", fontsize=9)
    profile.set_ylim(top=1.15 * max(band[1].max(), heights[row].max()))
    save(figure, path)


def main():
    """Measure, fit, predict, draw; 0 when ridge regression is beaten by the bar."""
    args = arguments(__doc__, points=400, restarts=2)
    weft.config.update("enable_x64", True)  # covariances are near singular
    key_places, key_fit = random.split(random.key(args.seed))
    heights, places = load_heights()
    if args.points > heights.size - HELD_OUT:
        sys.exit(f"--points must be at most {heights.size - HELD_OUT}; got {args.points}")
    order = np.asarray(random.permutation(key_places, heights.size))
    known, unknown = order[: args.points], order[-HELD_OUT:]
    x, flat = places.reshape(-1, 2), heights.ravel()
    middle, spread = flat[known].mean(), flat[known].std()
    y = (flat[known] - middle) / spread

    kernel, log_params, likelihoods = best_fit(key_fit, x[known], y, args.restarts)
    for name, likelihood in zip(NAMES, likelihoods, strict=True):
        print(f"{name}: log marginal likelihood {likelihood:.1f}")
    _, east, south, noise = np.exp(log_params)
    print(f"chosen: {NAMES[kernel]}, lengths {east:.1f} and {south:.1f} km, noise {noise:.2g}")

    def predicted(at):
        mean, deviation = predict(kernel, log_params, x[known], y, at)
        return middle + spread * np.asarray(mean), spread * np.asarray(deviation)

    process = figures("Gaussian process", flat[unknown], *predicted(x[unknown]))
    rival = figures("ridge regression", flat[unknown], *ridge(x[known], flat[known], x[unknown]))
    draw(heights, places, x[known], predicted, args.out / "gp.png")
    reached = process[0] < GOAL * rival[0] and process[1] > rival[1]
    return verdict("gp", bool(reached), f"error below {GOAL:.0%} of ridge's, likelihood above it")


if __name__ == "__main__":
    sys.exit(main())
