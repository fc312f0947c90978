"""Rejection: drawing again what was not taken, in one loop for a whole array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft.api.while_loop import while_loop
from weft.random.keys import Words, fold_words, split_pair

__all__ = []

TURNS = 1000  # of a distribution that rejects one in two, 60 leave one number of 2**60


def draw_until_taken(key: Words, draw: Callable, *xs: Any, done: Any = None) -> Any:
    """For each row of the parameters `xs`, of shape (n,), a number that is taken.

    `draw(key, *xs)` gives numbers and whether they are; where `done` holds any will do. What is
    rejected at first is gathered and drawn again in an array a quarter as large. Compiled code
    cannot be interrupted: what is not taken in TURNS turns, as of a NaN, is NaN.
    """
    size = xs[0].size
    some = size if size < 1024 else size // 4
    first, rest = split_pair(key)
    values, taken = draw(first, *xs)
    if done is not None:
        taken = taken | done

    def again(carry: tuple) -> tuple:
        turn, values, taken = carry
        sub = Words(fold_words(rest, turn), rest.dtype)
        if some == size:
            new, good = draw(sub, *xs)
            return turn + 1, jnp.where(taken, values, new), taken | good
        places = jnp.nonzero(~taken, size=some, fill_value=size)[0]
        new, good = draw(sub, *(jnp.take(x, places, mode="clip") for x in xs))
        places = jnp.where(good, places, size)
        values = values.at[places].set(new, mode="drop")
        return turn + 1, values, taken.at[places].set(True, mode="drop")

    start = (jnp.zeros((), np.uint32), values, taken)
    more = lambda carry: ~jnp.all(carry[2]) & (carry[0] < TURNS)
    _, values, taken = while_loop(more, again, start)
    return jnp.where(taken, values, jnp.nan)
