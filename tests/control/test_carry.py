"""The propagation of marks around a loop: moving, mapped, unknown."""

import numpy as np

import weft
import weft.numpy as jnp
from weft import lax
from weft.control.carry import batch_loop, cut_pieces, follow_carry, jvp_loop, split_loop
from weft.core.primitive import Axis

ONE = np.float32(1)


def chain(x, a, b, c):
    """x -> a -> b -> c, one place further in each turn; d stays."""
    return x, a, b


BODY = weft.make_jaxpr(chain)(ONE, ONE, ONE, ONE).jaxpr


def test_pieces():
    assert cut_pieces("abcde", (2, 0)) == ["ab", "", "cde"]


def test_marks_follow_the_carry_until_no_more_are_marked():
    assert follow_carry([0b0001, 0b0010, 0b0100], [True, False, False, False], 1, 3) == [True] * 4
    assert follow_carry([0b0010, 0b0001, 0], [False] * 3 + [True], 1, 3) == [False] * 3 + [True]


def test_what_moves_unknown_or_mapped_at_the_start_is_so_around_the_loop():
    marks = (False, True, False, False)  # a, and so b and c
    jaxpr, moves, out_moved = jvp_loop(BODY, (1, 3), 1, marks)
    assert moves == (False, True, True, True) and out_moved == [True] * 3
    assert len(jaxpr.invars) == 7 and len(jaxpr.outvars) == 6
    assert split_loop(BODY, 1, 3, marks)[2] == (False, True, True, True)
    _, mapped, out_dims = batch_loop(BODY, 1, 3, Axis(2), (None, 0, None, None))
    assert mapped == (True, True, True) and out_dims == [0, 0, 0]
    _, mapped, out_dims = batch_loop(BODY, 1, 3, Axis(2), (None, None, 1, None))
    assert mapped == (False, True, True) and out_dims == [None, 0, 0]


def test_what_moves_only_where_there_is_no_derivative_does_not_move():
    body = weft.make_jaxpr(lambda w, c: (lax.stop_gradient(w * c), jnp.floor(w)))(ONE, ONE).jaxpr
    _, moves, out_moved = jvp_loop(body, (1, 1), 1, (True, False))
    assert moves == (True, False) and out_moved == [False, False]
