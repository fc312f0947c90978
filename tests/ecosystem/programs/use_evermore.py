"""evermore: a binned likelihood with a systematic uncertainty, and its derivatives."""

from typing import NamedTuple

import evermore as evm
import jax
import jax.numpy as jnp
from flax import nnx

jax.config.update("jax_enable_x64", True)


class Params(NamedTuple):
    mu: evm.Parameter
    syst: evm.NormalParameter


hists = {"signal": jnp.array([3.0]), "bkg": jnp.array([10.0])}
params = Params(mu=evm.Parameter(1.0), syst=evm.NormalParameter(0.0))
graphdef, dynamic, static = nnx.split(params, evm.filter.is_dynamic_parameter, ...)


def loss(dynamic):
    params = nnx.merge(graphdef, dynamic, static)
    signal = params.mu.scale()(hists["signal"])
    expected = signal + params.syst.scale_log_asymmetric(up=1.1, down=0.9)(hists["bkg"])
    total = evm.pdf.PoissonContinuous(lamb=expected).log_prob(jnp.array([15.0])).sum()
    return -(total + evm.util.sum_over_leaves(evm.loss.get_log_probs(params)))


print(loss(dynamic), *jax.tree.leaves(nnx.grad(loss)(dynamic)))
