"""ragged_all_to_all against a loop over what each copy sends to each."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.errors import ShapeError


def by_loop(operand, output, start, size, at):
    """Return the final contents of each copy."""
    out, copies, each = output.copy(), len(operand), start.shape[1] // len(operand)
    for sender in range(copies):
        for i in range(start.shape[1]):
            a, n, b = start[sender, i], size[sender, i], at[sender, i]
            out[i // each, b : b + n] = operand[sender, a : a + n]
    return out


@pytest.mark.parametrize("each", [1, 2])
def test_slices_arrive_where_they_are_sent(each, rng):
    copies, k = 3, 3 * each
    size = rng.integers(0, 3, (copies, k))
    start = rng.integers(0, 5, (copies, k))
    # the received parts are adjacent, from place 1 on
    into = size.reshape(copies, copies, each).transpose(1, 0, 2).reshape(copies, -1)
    at = (np.cumsum(into, 1) - into + 1).reshape(copies, copies, each).transpose(1, 0, 2)
    at = at.reshape(copies, k)
    x, y = rng.normal(size=(copies, 7, 2)), rng.normal(size=(copies, 14, 2))
    x, y = x.astype(np.float32), y.astype(np.float32)
    f = weft.vmap(lambda *xs: lax.ragged_all_to_all(*xs, into[0], axis_name="i"), axis_name="i")
    np.testing.assert_array_equal(f(x, y, start, size, at), by_loop(x, y, start, size, at))
    total = lambda x, y: f(x, y, start, size, at).sum()
    dx, dy = weft.grad(total, (0, 1))(x, y)
    assert (dx.sum(), dy.sum()) == (2 * size.sum(), y.size - 2 * size.sum())


def test_groups_and_errors():
    zeros, one = np.zeros(2, int), np.ones(2, int)
    f = lambda x: lax.ragged_all_to_all(
        x, jnp.zeros(2), zeros, one, lax.axis_index("i") // 2 * one, one,
        axis_name="i", axis_index_groups=[[0, 2], [1, 3]],
    )  # fmt: skip
    got = weft.jit(weft.vmap(f, axis_name="i"))(np.arange(4.0)[:, None])
    np.testing.assert_array_equal(got, [[0, 2], [1, 3], [0, 2], [1, 3]])
    for sizes, text in [((one, one[:1]), "must have one shape"), ((one[:1],) * 2, "a multiple of")]:
        with pytest.raises(ShapeError, match=f"ragged_all_to_all: .*{text}"):
            weft.vmap(
                lambda x, s=sizes: lax.ragged_all_to_all(x, x, *s, *s, axis_name="i"), axis_name="i"
            )(np.ones((2, 3)))
