"""Find the best moves of a small game with mctx: python -m weft mctx_search.py.

A player stands on a line of nine fields and has four moves, left or right. The last field on the
right pays 1, the last on the left 0.3, and either ends the game. Who can reach the right must go
there, and who cannot must go left.
"""

import sys

import jax
import jax.numpy as jnp
import mctx
import numpy as np

FIELDS, MOVES = 9, 4


def step(params, key, action, state):
    """What a move earns, and what follows; without a network, moves are equally likely."""
    place, left = state
    place = jnp.clip(place + 2 * action - 1, 0, FIELDS - 1)
    won = jnp.where(place == FIELDS - 1, 1.0, jnp.where(place == 0, 0.3, 0.0))
    alive = (left > 0) & (won == 0)
    output = mctx.RecurrentFnOutput(
        reward=jnp.where(left > 0, won, 0.0),
        discount=alive.astype(jnp.float32),
        prior_logits=jnp.zeros((len(place), 2)),
        value=jnp.zeros(len(place)),
    )
    return output, (place, jnp.where(alive, left - 1, 0))


def main():
    places = jnp.array([1, 2, 3, 4, 5, 6, 7])
    state = (places, jnp.full(len(places), MOVES))
    root = mctx.RootFnOutput(
        prior_logits=jnp.zeros((len(places), 2)), value=jnp.zeros(len(places)), embedding=state
    )
    search = jax.jit(
        lambda key: mctx.gumbel_muzero_policy(
            params=(), rng_key=key, root=root, recurrent_fn=step, num_simulations=64, max_depth=6
        )
    )
    output = search(jax.random.key(0))
    best = np.where(np.asarray(places) + MOVES >= FIELDS - 1, 1, 0)  # right, if in reach
    right = float((np.asarray(output.action) == best).mean())
    print(f"moves {output.action}, best {best}: {right:.0%} (bar 100%)")
    return right == 1


if __name__ == "__main__":
    sys.exit(not main())
