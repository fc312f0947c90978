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
    """Return the number of weights of an LSTM: the length of the vector that `lstm` takes.

    Args:
      input_size: the number of features of an element of a sequence, an int.
      hidden_size: the number of features of the state, an int.
      num_layers: the number of layers, an int.
      bidirectional: if True, each layer runs in both directions, with weights for each direction.

    Returns:
      An int.

    >>> get_num_params_in_lstm(input_size=2, hidden_size=4, num_layers=1, bidirectional=False)
    128
    >>> get_num_params_in_lstm(input_size=2, hidden_size=4, num_layers=1, bidirectional=True)
    256
    """
    sizes = list_shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum(math.prod(shape) for _, _, shape in sizes)


def init_lstm_weight(
    rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Any:
    """Sample initial weights for `lstm` from a uniform distribution.

    The bounds are -1/sqrt(hidden_size) and 1/sqrt(hidden_size), for matrices and biases alike.

    Args:
      rng: a key, as from `random.key`.
      input_size: the number of features of an element of a sequence, an int.
      hidden_size: the number of features of the state, an int.
      num_layers: the number of layers, an int.
      bidirectional: if True, each layer runs in both directions, with weights for each direction.

    Returns:
      A float32 vector of `get_num_params_in_lstm(...)` elements.

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
    """Split the vector of all weights of an LSTM into matrices and biases.

    A pseudo-layer is a layer in one direction. Layer n is pseudo-layer n or, if `bidirectional`,
    pseudo-layers 2n (forward) and 2n + 1 (backward). The rows of each matrix and bias are the rows
    for the gates i, f, g and o, in this order.

    Args:
      weights: the weights, a float vector of `get_num_params_in_lstm(...)` elements.
      input_size: the number of features of an element of a sequence, an int.
      hidden_size: the number of features of the state, an int.
      num_layers: the number of layers, an int.
      bidirectional: if True, each layer runs in both directions, with weights for each direction.

    Returns:
      A tuple of four dicts, `(W_ih, W_hh, b_ih, b_hh)`, whose keys are the numbers of the
      pseudo-layers. An array of `W_ih` has the shape (4 * hidden_size, features of the layer's
      input), one of `W_hh` (4 * hidden_size, hidden_size), and a bias (4 * hidden_size,).

    Raises:
      ShapeError: `weights` is not a vector of that many elements.

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
    """Exchange the last two gates, g and o, in the vector of all weights of an LSTM.

    It converts weights of libraries whose gates are in the order i, f, o, g, and back.

    Args:
      weights: the weights, a float vector of `get_num_params_in_lstm(...)` elements.
      input_size: the number of features of an element of a sequence, an int.
      hidden_size: the number of features of the state, an int.
      num_layers: the number of layers, an int.
      bidirectional: if True, each layer runs in both directions, with weights for each direction.

    Returns:
      A vector of the shape and dtype of `weights`.

    Raises:
      ShapeError: `weights` is not a vector of that many elements.

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
      y: the last layer's h, (batch, time, directions * hidden_size), zero after each one's end. Its
        dtype, and that of h_n and c_n, is the one that x, h_0, c_0 and weights are promoted to.
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
    """Run an LSTM, and return residuals for its cotangents: the forward rule of `lstm`.

    `lstm` has its derivatives without this function. It is here for code that calls JAX's rule.

    Args:
      x: the sequences, a float array of shape (batch, time, input_size).
      h_0, c_0: the initial states, float arrays of shape (pseudo-layers, batch, hidden_size).
      w: the weights, a float vector, as from `init_lstm_weight`.
      seq_lengths: the length of each sequence, an integer array of shape (batch,).
      settings: the other arguments of `lstm`, by position: input_size, hidden_size, num_layers,
        dropout, bidirectional and optionally precision.

    Returns:
      The results `(y, h_n, c_n)` of `lstm`, and the residuals.

    >>> w, x, state = jnp.ones(128), jnp.ones((3, 5, 2)), jnp.zeros((1, 3, 4))
    >>> sizes = 2, 4, 1, 0.0, False
    >>> (y, h, c), residuals = lstm_fwd(x, state, state, w, jnp.array([5, 2, 0]), *sizes)
    >>> y.shape, h.shape, c.shape
    ((3, 5, 4), (1, 3, 4), (1, 3, 4))
    """
    return vjp(lambda *given: lstm(*given, seq_lengths, *settings), x, h_0, c_0, w)


def lstm_bwd(
    input_size: int, hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
    precision: Any, residuals: Any, gradients: Any,
) -> tuple:  # fmt: skip
    """Compute the cotangents of the arguments of `lstm`: its backward rule.

    Args:
      input_size, hidden_size, num_layers: ignored; the residuals hold them.
      dropout, bidirectional, precision: ignored; the residuals hold them.
      residuals: the residuals that `lstm_fwd` returned.
      gradients: the cotangents of `(y, h_n, c_n)`, a sequence of three arrays of their shapes.

    Returns:
      A tuple: the cotangents of x, h_0, c_0 and w, of the shapes of these arguments, and None for
      seq_lengths.

    >>> w, x, state = jnp.ones(128), jnp.ones((3, 5, 2)), jnp.zeros((1, 3, 4))
    >>> sizes = 2, 4, 1, 0.0, False
    >>> outs, residuals = lstm_fwd(x, state, state, w, jnp.array([5, 2, 0]), *sizes)
    >>> dx, dh_0, dc_0, dw, _ = lstm_bwd(*sizes, None, residuals, outs)
    >>> dx.shape, dh_0.shape, dc_0.shape, dw.shape
    ((3, 5, 2), (1, 3, 4), (1, 3, 4), (128,))
    """
    return (*residuals(tuple(gradients)), None)


def rnn_abstract_eval(
    x_aval: Any, h_0_aval: Any, c_0_aval: Any, w_aval: Any, seq_lengths_aval: Any, *settings: Any
) -> tuple:
    """Return the types of the results of `lstm`, from the types of its arguments.

    Args:
      x_aval: the type of the sequences, a `ShapedArray`, as from `weft.typeof`.
      h_0_aval, c_0_aval: the types of the initial states.
      w_aval: the type of the weights.
      seq_lengths_aval: the type of the lengths.
      settings: the other arguments of `lstm`, by position: input_size, hidden_size, num_layers,
        dropout and bidirectional. A sixth, which JAX has for cuDNN, has no effect.

    Returns:
      A tuple of three `ShapedArray`s, the types of y, h_n and c_n.

    Raises:
      ShapeError: the types of the arguments do not fit each other.

    >>> x, state, w = map(jnp.zeros, [(3, 5, 2), (1, 3, 4), (128,)])
    >>> types = map(weft.typeof, (x, state, state, w, jnp.array([5, 2, 0])))
    >>> print(*rnn_abstract_eval(*types, 2, 4, 1, 0.0, False))
    f32[3,5,4] f32[1,3,4] f32[1,3,4]
    """
    given = (x_aval, h_0_aval, c_0_aval, w_aval, seq_lengths_aval)
    shapes = eval_shape(lambda *xs: lstm(*xs, *settings[:5]), *map(ShapeDtypeStruct.of, given))
    return tuple(map(typeof, shapes))


def rnn_bwd_abstract_eval(
    dy_aval: Any, dhn_aval: Any, dcn_aval: Any, x_aval: Any, h0_aval: Any, c0_aval: Any,
    w_aval: Any, *others: Any,
) -> tuple:  # fmt: skip
    """Return the types of the cotangents of x, h_0, c_0 and w, which are the types of these.

    Args:
      dy_aval, dhn_aval, dcn_aval: ignored; the types of the cotangents of y, h_n and c_n.
      x_aval: the type of the sequences.
      h0_aval, c0_aval: the types of the initial states.
      w_aval: the type of the weights.
      others: ignored; further arguments of JAX's rule.

    Returns:
      The tuple `(x_aval, h0_aval, c0_aval, w_aval)`.

    >>> y, state, x, w = map(jnp.zeros, [(3, 5, 4), (1, 3, 4), (3, 5, 2), (128,)])
    >>> types = map(weft.typeof, (y, state, state, x, state, state, w))
    >>> print(*rnn_bwd_abstract_eval(*types))
    f32[3,5,2] f32[1,3,4] f32[1,3,4] f32[128]
    """
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
    """Run an LSTM over a batch of sequences, as `lstm` does, with weights as matrices and biases.

    Args:
      x: the sequences, a float array of shape (batch, time, input_size).
      h_0, c_0: the initial states, float arrays of shape (pseudo-layers, batch, hidden_size).
      W_ih, W_hh, b_ih, b_hh: the weights of each pseudo-layer: four dicts, as from
        `unpack_lstm_weights`.
      seq_lengths: the length of each sequence, an integer array of shape (batch,). Elements of `x`
        after the end of a sequence are ignored.
      input_size: the number of features of an element of a sequence, an int.
      hidden_size: the number of features of the state, an int.
      num_layers: the number of layers, an int.
      dropout: must be 0.
      bidirectional: if True, each layer runs in both directions, with weights for each direction.

    Returns:
      A tuple `(y, h_n, c_n)`. `y`, of shape (batch, time, directions * hidden_size), holds h of the
      last layer, and zeros after the end of a sequence. `h_n` and `c_n`, of the shape of `h_0`, are
      the final states. The final state of a backward layer is at the start of the sequence. All
      have the dtype that x, the initial states and the weights are promoted to.

    Raises:
      NotImplementedError: `dropout` is not 0.
      ShapeError: the shapes of the arguments do not fit the sizes.

    >>> x, state = jnp.ones((3, 5, 2)), jnp.zeros((1, 3, 4))
    >>> weights = unpack_lstm_weights(jnp.ones(128), 2, 4, 1, False)
    >>> y, h, c = lstm_ref(x, state, state, *weights, jnp.array([5, 2, 0]), 2, 4, 1, 0.0, False)
    >>> y.shape, h.shape
    ((3, 5, 4), (1, 3, 4))
    """
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
    weights = [w for part in unpacked for w in part.values()]
    dtype = jnp.result_type(x, h_0, c_0, *weights, 0.0)
    h_0, c_0 = h_0.astype(dtype), c_0.astype(dtype)
    y, ends = jnp.moveaxis(x, 1, 0), []  # time in front
    live = jnp.arange(x.shape[1])[:, None, None] < lengths[None, :, None]
    for layer in range(num_layers):
        outs = []
        for i in range(layer * directions, (layer + 1) * directions):
            W_ih, W_hh, b_ih, b_hh = (jnp.asarray(part[i], dtype) for part in unpacked)
            own = W_ih, W_hh, b_ih + b_hh
            backward = i % directions == 1
            end, h = run_direction(y, live, h_0[i], c_0[i], *own, backward, precision)
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
