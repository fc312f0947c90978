"""`lstm` and its weights, under the names and in the layout of `jax.experimental.rnn`.

A plain scan, on any device, with the derivatives of any program. The equations are from
Hochreiter and Schmidhuber's LSTM with a forget gate and two biases (Gers et al. 2000), as cuDNN
and PyTorch have them:

    i, f, g, o = W_ih x + b_ih + W_hh h + b_hh
    c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)

A bidirectional layer is two pseudo-layers, forward and backward, each with its own weights. One
vector holds all weights: W_ih and W_hh of pseudo-layer after pseudo-layer, then b_ih and b_hh.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from weft import lax, nn, random
from weft import numpy as jnp
from weft.api.grad import vjp
from weft.api.make_jaxpr import eval_shape
from weft.api.shape_struct import ShapeDtypeStruct
from weft.core.aval import typeof
from weft.core.source import boundary
from weft.errors import ShapeError
from weft.numpy.promotion import as_array
from weft.util import list_public

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_bwd", "lstm_fwd", "lstm_ref",
    "rnn_abstract_eval", "rnn_bwd_abstract_eval", "swap_lstm_gates", "unpack_lstm_weights",
]  # fmt: skip
__dir__ = list_public(__name__)


def list_shapes(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator:
    """List the weights in their order: (which, pseudo-layer, shape)."""
    directions = 2 if bidirectional else 1
    gates, count = 4 * hidden_size, directions * num_layers
    for layer in range(count):
        width = input_size if layer < directions else directions * hidden_size
        yield "W_ih", layer, (gates, width)
        yield "W_hh", layer, (gates, hidden_size)
    for layer in range(count):
        yield "b_ih", layer, (gates,)
        yield "b_hh", layer, (gates,)


def get_num_params_in_lstm(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> int:
    """Return the number of weights of an LSTM.

    >>> get_num_params_in_lstm(input_size=2, hidden_size=4, num_layers=1, bidirectional=False)
    128
    """
    sizes = list_shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum(math.prod(shape) for _, _, shape in sizes)


def init_lstm_weight(
    rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Any:
    """Random weights, uniform between -1/sqrt(hidden_size) and 1/sqrt(hidden_size): a vector.

    >>> init_lstm_weight(random.key(0), 2, 4, 1, False).shape
    (128,)
    """
    k = math.sqrt(1.0 / hidden_size)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return random.uniform(rng, (count,), np.float32, -k, k)


@boundary
def unpack_lstm_weights(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict, dict, dict, dict]:
    """A vector of weights as `(W_ih, W_hh, b_ih, b_hh)`, each a dict by pseudo-layer.

    >>> W_ih, W_hh, b_ih, b_hh = unpack_lstm_weights(jnp.zeros(128), 2, 4, 1, False)
    >>> W_ih[0].shape, W_hh[0].shape, b_ih[0].shape
    ((16, 2), (16, 4), (16,))
    """
    weights = as_array(weights, "unpack_lstm_weights")
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    if weights.shape != (count,):
        raise ShapeError(
            f"unpack_lstm_weights: weights must be a vector of {count} elements; "
            f"got {weights.aval}. Hint: init_lstm_weight makes one."
        )
    found: dict[str, dict] = {"W_ih": {}, "W_hh": {}, "b_ih": {}, "b_hh": {}}
    start = 0
    for which, layer, shape in list_shapes(input_size, hidden_size, num_layers, bidirectional):
        size = math.prod(shape)
        found[which][layer] = weights[start : start + size].reshape(shape)
        start += size
    return found["W_ih"], found["W_hh"], found["b_ih"], found["b_hh"]


@boundary
def swap_lstm_gates(
    weights: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Any:
    """A vector of weights with the last two gates, g and o, in the other order.

    For weights of libraries whose gates are i, f, o, g.

    >>> swap_lstm_gates(jnp.arange(16.0), 1, 1, 1, False)
    Array([ 0.,  1.,  3.,  2.,  4.,  5.,  7.,  6.,  8.,  9., 11., 10., 12.,
           13., 15., 14.], dtype=float32)
    """
    sizes = input_size, hidden_size, num_layers, bidirectional
    unpacked = dict(zip(("W_ih", "W_hh", "b_ih", "b_hh"), unpack_lstm_weights(weights, *sizes)))
    parts = []
    for which, layer, _ in list_shapes(*sizes):
        i, f, g, o = jnp.split(unpacked[which][layer], 4)
        parts += [x.ravel() for x in (i, f, o, g)]
    return jnp.concatenate(parts)


@boundary
def lstm(
    x: Any,
    h_0: Any,
    c_0: Any,
    weights: Any,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Any, Any, Any]:
    """Run an LSTM over a batch of sequences: `(y, h_n, c_n)`.

    Args:
      x: the sequences, (batch, time, input_size).
      h_0, c_0: the states to begin with, (pseudo-layers, batch, hidden_size).
      weights: a vector, as of `init_lstm_weight`.
      seq_lengths: how much of each sequence counts, (batch,). What comes after is not looked at.
      input_size, hidden_size, num_layers, bidirectional: as the weights were made for.
      dropout: must be 0.
      precision: of the products of matrices.

    Returns:
      y: the last layer's h, (batch, time, directions * hidden_size), zero after each one's end.
      h_n, c_n: the states at the ends, shaped as h_0; of backward layers, at the beginnings.

    >>> weights = init_lstm_weight(random.key(0), 2, 4, 1, False)
    >>> x, state = jnp.ones((3, 5, 2)), jnp.zeros((1, 3, 4))
    >>> y, h, c = lstm(x, state, state, weights, jnp.array([5, 2, 0]), 2, 4, 1, 0.0, False)
    >>> y.shape, h.shape
    ((3, 5, 4), (1, 3, 4))
    """
    sizes = input_size, hidden_size, num_layers, bidirectional
    unpacked = unpack_lstm_weights(weights, *sizes)
    return run_layers(x, h_0, c_0, unpacked, seq_lengths, sizes, dropout, precision)


def lstm_fwd(x: Any, h_0: Any, c_0: Any, w: Any, seq_lengths: Any, *settings: Any) -> tuple:
    """Return the results of `lstm`, and residuals for `lstm_bwd`."""
    return vjp(lambda *given: lstm(*given, seq_lengths, *settings), x, h_0, c_0, w)


def lstm_bwd(
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
    precision: Any, residuals: Any, gradients: Any,
) -> tuple:  # fmt: skip
    """The cotangents of x, h_0, c_0 and w, and None for seq_lengths."""
    return (*residuals(tuple(gradients)), None)


def rnn_abstract_eval(
    x_aval: Any, h_0_aval: Any, c_0_aval: Any, w_aval: Any, seq_lengths_aval: Any, *settings: Any
) -> tuple:
    """Return the types of `lstm`'s results; the last of `settings`, for cuDNN, has no effect."""
    given = (x_aval, h_0_aval, c_0_aval, w_aval, seq_lengths_aval)
    shapes = eval_shape(lambda *xs: lstm(*xs, *settings[:5]), *map(ShapeDtypeStruct.of, given))
    return tuple(map(typeof, shapes))


def rnn_bwd_abstract_eval(
    dy_aval: Any, dhn_aval: Any, dcn_aval: Any, x_aval: Any, h0_aval: Any, c0_aval: Any,
    w_aval: Any, *others: Any,
) -> tuple:  # fmt: skip
    """The types of the cotangents of x, h_0, c_0 and w."""
    return x_aval, h0_aval, c0_aval, w_aval


@boundary
def lstm_ref(
    x: Any,
    h_0: Any,
    c_0: Any,
    W_ih: dict,
    W_hh: dict,
    b_ih: dict,
    b_hh: dict,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Any, Any, Any]:
    """Do as `lstm` does, with unpacked weights."""
    sizes = input_size, hidden_size, num_layers, bidirectional
    return run_layers(x, h_0, c_0, (W_ih, W_hh, b_ih, b_hh), seq_lengths, sizes, dropout, None)


def run_layers(
    x: Any, h_0: Any, c_0: Any, unpacked: tuple[dict, dict, dict, dict], seq_lengths: Any,
    sizes: tuple[int, int, int, bool], dropout: float, precision: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Layer upon layer."""
    if dropout:
        raise NotImplementedError(
            f"lstm: dropout must be 0; got {dropout!r}. Hint: drop elements of x, between calls of "
            "one layer each."
        )
    W_ih, W_hh, b_ih, b_hh = unpacked
    input_size, hidden_size, num_layers, bidirectional = sizes
    x, h_0, c_0, lengths = (as_array(v, "lstm") for v in (x, h_0, c_0, seq_lengths))
    directions = 2 if bidirectional else 1
    batch = x.shape[0] if x.ndim else 0
    if x.ndim != 3 or x.shape[2] != input_size:
        raise ShapeError(f"lstm: x must be (batch, time, {input_size}); got {x.aval}.")
    for name, state in (("h_0", h_0), ("c_0", c_0)):
        if state.shape != (directions * num_layers, batch, hidden_size):
            raise ShapeError(
                f"lstm: {name} must be {(directions * num_layers, batch, hidden_size)}, for each "
                f"pseudo-layer and sequence; got {state.aval}."
            )
    if lengths.shape != (batch,):
        raise ShapeError(f"lstm: seq_lengths must be {(batch,)}; got {lengths.aval}.")
    y, ends = jnp.moveaxis(x, 1, 0), []  # time in front
    live = jnp.arange(x.shape[1])[:, None, None] < lengths[None, :, None]
    for layer in range(num_layers):
        outs = []
        for i in range(layer * directions, (layer + 1) * directions):
            weights = W_ih[i], W_hh[i], b_ih[i] + b_hh[i]
            backward = i % directions == 1
            end, h = run_direction(y, live, h_0[i], c_0[i], *weights, backward, precision)
            ends.append(end)
            outs.append(h)
        y = jnp.concatenate(outs, 2)
    h_n, c_n = (jnp.stack(states) for states in zip(*ends, strict=True))
    return jnp.moveaxis(y, 0, 1), h_n, c_n


def run_direction(
    x: Any, live: Any, h_0: Any, c_0: Any, W_ih: Any, W_hh: Any, bias: Any, backward: bool,
    precision: Any,
) -> tuple[tuple, Any]:  # fmt: skip
    """Run one pseudo-layer. Return its final state, and h at all times, 0 where not `live`."""
    product = functools.partial(jnp.matmul, precision=precision)
    inputs = product(x, W_ih.T) + bias[None, None]  # of all times at once

    def step(state: tuple, at: tuple) -> tuple[tuple, Any]:
        h, c = state
        given, alive = at
        i, f, g, o = jnp.split(given + product(h, W_hh.T), 4, 1)
        new_c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        new_h = nn.sigmoid(o) * jnp.tanh(new_c)
        # after the end nothing changes; a backward walk begins at the end
        return (jnp.where(alive, new_h, h), jnp.where(alive, new_c, c)), jnp.where(alive, new_h, 0)

    return lax.scan(step, (h_0, c_0), (inputs, live), reverse=backward)
