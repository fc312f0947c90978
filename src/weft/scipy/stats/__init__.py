"""Distributions and statistics: `from weft.scipy.stats import norm`, then `norm.logpdf(x)`.

Each distribution is a module, imported when it is first asked for. What all of their functions
share (arguments, location and scale, what lies outside of the support) is families.py; where large
numbers would cancel is kernels.py.
"""

from weft.util import importing_later

DISTRIBUTIONS = (
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l "
    "gumbel_r laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t "
    "truncnorm uniform vonmises wrapcauchy"
)
LATER = {
    **{f"weft.scipy.stats.{name}": "" for name in DISTRIBUTIONS.split()},
    "weft.scipy.stats.kde": "gaussian_kde",
    "weft.scipy.stats.summaries": "mode rankdata sem",
}
__getattr__, __dir__ = importing_later(__name__, LATER)
