"""Rejection sampling: draw rejected samples again, in one loop for a whole array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import weft.numpy as jnp
from weft.api.cond import cond
from weft.api.while_loop import while_loop
from weft.random.keys import Words, fold_words, split_pair
from weft.util import SymbolicSize, is_below

__all__ = []

MIN_GATHERED = 1024  # elements; rejected samples of smaller arrays are drawn again in place
TURNS = 1000  # iterations at most. If one sample in two is rejected, 60 leave one in 2**60


def draw_until_taken(key: Words, draw: Callable, *xs: Any, done: Any = None) -> Any:
    """Draw an accepted sample for each element of the parameters `xs`, of shape (n,).

    `draw(key, *xs)` returns samples, and a mask of the accepted ones. Where `done` is True, any
    sample is accepted. Samples that are rejected at first are gathered and drawn again, in an array
    a quarter as large. Compiled code cannot be interrupted, so a sample that is still rejected
    after TURNS iterations is NaN; this happens if a parameter is NaN.
    """
    size = xs[0].size
    if not isinstance(size, SymbolicSize):
        return draw_in_turns(key, draw, xs, done, size < MIN_GATHERED)
    small, large = (partial(draw_in_turns, key, draw, xs, done, s) for s in (True, False))
    if is_below(size, MIN_GATHERED):
        return small()
    return cond(jnp.asarray(size) < MIN_GATHERED, small, large)


def draw_in_turns(key: Words, draw: Callable, xs: Sequence[Any], done: Any, small: bool) -> Any:
    """`draw_until_taken`; if not `small`, rejected samples are gathered."""
    size = xs[0].size
    some = size if small else size // 4
    first, rest = split_pair(key)
    values, taken = draw(first, *xs)
    if done is not None:
        taken = taken | done

    def again(carry: tuple) -> tuple:
        turn, values, taken = carry
        sub = Words(fold_words(rest, turn), rest.dtype)
        if small:
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
