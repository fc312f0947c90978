"""SciPy's special functions, each with derivatives: `from weft.scipy import special`.

The modules here are imported when one of their names is first used. docs/special.md says how exact
each function is.
"""

from weft.util import import_lazily

HOMES = {
    "weft.scipy.special.bessel": ("bessel_jn i0 i0e i1 i1e"),
    "weft.scipy.special.elementary": (
        "boxcox boxcox1p entr expit kl_div logit rel_entr xlog1py xlogy"
    ),
    "weft.scipy.special.gamma_family": (
        "bernoulli beta betainc betaln comb digamma factorial gamma gammainc gammaincc gammaln "
        "gammasgn loggamma multigammaln poch polygamma zeta"
    ),
    "weft.scipy.special.hypergeometric": ("hyp1f1 hyp2f1"),
    "weft.scipy.special.integrals": ("exp1 expi expn fresnel sici spence"),
    "weft.scipy.special.legendre": ("lpmn lpmn_values sph_harm_y"),
    "weft.scipy.special.normal": (
        "dawsn erf erfc erfcinv erfcx erfinv log_ndtr ndtr ndtri owens_t wofz"
    ),
    "weft.scipy.special.sums": ("log_softmax logsumexp softmax"),
}
__getattr__, __dir__ = import_lazily(__name__, HOMES)
