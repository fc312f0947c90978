"""cuthbert: a Kalman filter, in sequence and by a parallel scan, and a smoother."""

import jax
import jax.numpy as jnp
from cuthbert import filter, smoother
from cuthbert.gaussian import kalman

ys = jnp.sin(jnp.arange(10.0))[:, None]


def run(decay, parallel=False):
    move = lambda t: (decay * jnp.eye(1), jnp.zeros(1), 0.5 * jnp.eye(1))
    see = lambda t: (jnp.eye(1), jnp.zeros(1), jnp.eye(1), ys[t - 1])
    model = kalman.build_filter(jnp.zeros(1), jnp.eye(1), move, see)
    times = jnp.arange(1, 11)
    states = filter(model, times, model.init_prepare(), parallel=parallel)
    return states, smoother(kalman.build_smoother(move), states, times)


for parallel in (False, True):
    states, smooth = run(0.9, parallel)
    print(states.mean[:, 0], states.log_normalizing_constant[-1], smooth.mean[:, 0])
print(jax.grad(lambda a: run(a)[0].log_normalizing_constant[-1])(0.9))
