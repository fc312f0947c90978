"""coix: programs with samples and weights, combined."""

import coix
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

coix.set_backend("coix.numpyro")


def model(x):
    z = numpyro.sample("z", dist.Normal(0.0, 1.0))
    return numpyro.sample("x", dist.Normal(z, 0.5), obs=x)


def guide(x):
    z = numpyro.sample("z", dist.Normal(0.8 * x, 0.4))
    return z, x


program = coix.propose(model, guide)
out, trace, metrics = coix.traced_evaluate(program, seed=jax.random.PRNGKey(0))(jnp.float32(1.2))
print(out, {k: float(v["value"]) for k, v in trace.items() if "value" in v})
print(metrics["log_weight"], metrics["log_density"])
