"""Distributions and statistics: `from weft.scipy.stats import norm`, then `norm.logpdf(x)`.

Each distribution is a module (`import weft.scipy.stats.norm` works too), defined by a row of
continuous.py, discrete.py or vectors.py. distribution.py has their common parts: arguments,
location, scale, and values outside of the support. kernels.py has formulas for large numbers that
would cancel.
"""

from weft.scipy.stats import continuous, discrete, vectors  # noqa: F401
from weft.util import import_lazily

HOMES = {
    "weft.scipy.stats.continuous": (
        "beta cauchy chi2 expon gamma gennorm gumbel_l gumbel_r laplace logistic norm pareto t "
        "truncnorm uniform vonmises wrapcauchy"
    ),
    "weft.scipy.stats.discrete": "bernoulli betabinom binom geom nbinom poisson",
    "weft.scipy.stats.vectors": "dirichlet multinomial multivariate_normal",
    "weft.scipy.stats.kde": "gaussian_kde",
    "weft.scipy.stats.summaries": "mode rankdata sem",
}
__getattr__, __dir__ = import_lazily(__name__, HOMES)
