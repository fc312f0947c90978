"""Stax: neural networks of layers that are pairs of functions.

A layer is `(init, apply)`: `init(rng, input_shape) -> (output_shape, params)` and
`apply(params, inputs, rng=...) -> outputs`. The size of a batch may be -1 in shapes, for any.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import weft.numpy as jnp
from weft import lax, random
from weft.errors import ShapeError
from weft.nn import activations
from weft.nn.initializers import glorot_normal as glorot
from weft.nn.initializers import normal as randn
from weft.nn.initializers import ones, zeros
from weft.nn.normalization import log_softmax as logsoftmax
from weft.nn.normalization import softmax, standardize
from weft.util import list_public, name_function

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "glorot", "logsoftmax",
    "parallel", "randn", "serial", "shape_dependent",
]  # fmt: skip
__dir__ = list_public(__name__)

Layer = tuple[Callable, Callable]
Initializer = Callable[[Any, Sequence[int]], Any]
Padding = str | Sequence[tuple[int, int]]

# --- layers with parameters ---------------------------------------------------------------------


def Dense(out_dim: int, W_init: Initializer = glorot(), b_init: Initializer = randn()) -> Layer:
    """Make a layer that computes `x W + b`.

    Args:
      out_dim: the size of the last axis of the outputs, an int.
      W_init: an initializer of W, of shape (n, out_dim). The default is Glorot's.
      b_init: an initializer of b, of shape (out_dim,). The default draws small normal numbers.

    Returns:
      A layer (init, apply) from (..., n) to (..., out_dim). The parameters are (W, b).

    >>> init, apply = Dense(4)
    >>> shape, (W, b) = init(random.PRNGKey(0), (-1, 3))
    >>> shape, W.shape, b.shape
    ((-1, 4), (3, 4), (4,))
    """

    def init(rng: Any, input_shape: Sequence[int]) -> tuple:
        if not input_shape:
            raise ShapeError("Dense: inputs must have an axis to act on; got shape ().")
        W_key, b_key = random.split(rng)
        W = W_init(W_key, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (W, b_init(b_key, (out_dim,)))

    def apply(params: tuple, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        out = jnp.dot(inputs, W)
        return out + jnp.expand_dims(b, range(out.ndim - 1))

    return init, apply


def _define_convolution(name: str, convolve: Callable, shape_of: Callable, doc: str) -> Callable:
    """A constructor of layers, by a function that convolves and the one for its shapes."""

    def make(
        dimension_numbers: tuple[str, str, str],
        out_chan: int,
        filter_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Padding = "VALID",
        W_init: Initializer | None = None,
        b_init: Initializer = randn(1e-6),
    ) -> Layer:
        lhs_spec, rhs_spec, out_spec = dimension_numbers
        if len(filter_shape) != len(rhs_spec) - 2:
            raise ShapeError(
                f"Conv: filter_shape must have a size for each spatial axis of {rhs_spec!r}; "
                f"got {tuple(filter_shape)}."
            )
        strides = strides or (1,) * len(filter_shape)
        W_init = W_init or glorot(rhs_spec.index("I"), rhs_spec.index("O"))

        def init(rng: Any, input_shape: Sequence[int]) -> tuple:
            sizes = iter(filter_shape)
            channels = {"O": out_chan, "I": input_shape[lhs_spec.index("C")]}
            kernel = tuple(channels[c] if c in channels else next(sizes) for c in rhs_spec)
            shape = shape_of(input_shape, kernel, strides, padding, dimension_numbers)
            bias = tuple(out_chan if c == "C" else 1 for c in out_spec)
            W_key, b_key = random.split(rng)
            return tuple(map(int, shape)), (W_init(W_key, kernel), b_init(b_key, bias))

        def apply(params: tuple, inputs: Any, **kwargs: Any) -> Any:
            W, b = params
            return convolve(inputs, W, strides, padding, dimension_numbers=dimension_numbers) + b

        return init, apply

    return name_function(make, name, doc)


CONVOLUTION = """
    Args:
      dimension_numbers: three strings, the order of the axes of the inputs, the filter and the
        outputs, such as ("NHWC", "HWIO", "NHWC").
      out_chan: the number of channels of the outputs.
      filter_shape: the size of the filter along each spatial axis.
      strides: the stride along each spatial axis. None, the default, is 1.
      padding: "VALID", the default, "SAME", or a pair of ints for each spatial axis.
      W_init: an initializer of the filter. None, the default, is Glorot's.
      b_init: an initializer of the bias. The default draws small normal numbers.

    Returns:
      A layer (init, apply). The parameters are (W, b).
"""

GeneralConv = _define_convolution(
    "GeneralConv",
    lax.conv_general_dilated,
    lax.conv_general_shape_tuple,
    f"""Make a layer that convolves its inputs with a filter, and adds a bias.
{CONVOLUTION}
    >>> init, apply = GeneralConv(("NCHW", "OIHW", "NCHW"), 8, (3, 3), padding="SAME")
    >>> shape, (W, b) = init(random.PRNGKey(0), (-1, 1, 28, 28))
    >>> shape, W.shape, b.shape
    ((-1, 8, 28, 28), (8, 1, 3, 3), (1, 8, 1, 1))
    """,
)
GeneralConvTranspose = _define_convolution(
    "GeneralConvTranspose",
    lax.conv_transpose,
    lax.conv_transpose_shape_tuple,
    f"""Make a layer of a transposed convolution: strides make the outputs larger.
{CONVOLUTION}
    >>> numbers = ("NCHW", "OIHW", "NCHW")
    >>> init, apply = GeneralConvTranspose(numbers, 8, (3, 3), strides=(2, 2), padding="SAME")
    >>> init(random.PRNGKey(0), (-1, 1, 14, 14))[0]
    (-1, 8, 28, 28)
    """,
)
Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Initializer = zeros,
    gamma_init: Initializer = ones,
) -> Layer:
    """Make a layer that normalizes its inputs over each batch, and scales and shifts them.

    The results have mean 0 and variance 1 over `axis`, times gamma, plus beta. There are no running
    means: at the end of training a single example is a batch of its own.

    Args:
      axis: the axes of the means, an int or a sequence of ints. The default is (0, 1, 2).
      epsilon: a number that is added to the variance. The default is 1e-5.
      center: if False, there is no beta. The default is True.
      scale: if False, there is no gamma. The default is True.
      beta_init: an initializer of beta. The default is zeros.
      gamma_init: an initializer of gamma. The default is ones.

    Returns:
      A layer (init, apply). The parameters are (beta, gamma), of the sizes of the other axes, with
      `()` for a missing one.

    >>> init, apply = BatchNorm(axis=0)
    >>> _, params = init(random.PRNGKey(0), (-1, 1))
    >>> print(np.asarray(apply(params, jnp.array([[1.0], [3.0]]))).round(3).ravel())
    [-1.  1.]
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Sequence[int]) -> tuple:
        kept = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        beta_key, gamma_key = random.split(rng)
        beta = beta_init(beta_key, kept) if center else ()
        return tuple(input_shape), (beta, gamma_init(gamma_key, kept) if scale else ())

    def apply(params: tuple, inputs: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        out = standardize(inputs, axes, epsilon=epsilon)
        if scale:
            out = jnp.expand_dims(gamma, axes) * out
        return out + jnp.expand_dims(beta, axes) if center else out

    return init, apply


# --- layers without -----------------------------------------------------------------------------


def elementwise(fun: Callable, **fun_kwargs: Any) -> Layer:
    """Make a layer that applies a function to its inputs.

    Args:
      fun: a function of an array that keeps its shape.
      **fun_kwargs: keyword arguments of the function.

    Returns:
      A layer (init, apply) without parameters.

    >>> init, apply = elementwise(jnp.clip, min=0, max=6)
    >>> print(apply((), jnp.array([-1.0, 7.0])))
    [0. 6.]
    """
    return _same_shape, lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs)


def _same_shape(rng: Any, input_shape: Sequence[int]) -> tuple:
    return input_shape, ()


Tanh = elementwise(jnp.tanh)
Relu = elementwise(activations.relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(logsoftmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(activations.softplus)
Sigmoid = elementwise(activations.sigmoid)
Elu = elementwise(activations.elu)
LeakyRelu = elementwise(activations.leaky_relu)
Selu = elementwise(activations.selu)
Gelu = elementwise(activations.gelu)
Identity = elementwise(lambda x: x)


def _define_pooling(name: str, reducer: Callable, start: float, mean: bool, doc: str) -> Callable:
    """A constructor of layers that reduce windows."""

    def pool(
        window_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: str = "VALID",
        spec: str | None = None,
    ) -> Layer:
        rank = len(window_shape)
        axes = [i for i, c in enumerate(spec or f"N{'x' * rank}C") if c not in "NC"]
        sizes = dict(zip(axes, window_shape, strict=True))
        steps = dict(zip(axes, strides or (1,) * rank, strict=True))
        window = tuple(sizes.get(i, 1) for i in range(rank + 2))
        stride = tuple(steps.get(i, 1) for i in range(rank + 2))

        def init(rng: Any, input_shape: Sequence[int]) -> tuple:
            pads = lax.padtype_to_pads(input_shape, window, stride, padding)
            shape = lax.reduce_window_shape_tuple(input_shape, window, stride, pads)
            return tuple(shape[i] if i in sizes else n for i, n in enumerate(input_shape)), ()

        def apply(params: tuple, inputs: Any, **kwargs: Any) -> Any:
            reduced = lambda x: lax.reduce_window(x, start, reducer, window, stride, padding)
            out = reduced(inputs)
            if not mean:
                return out
            counted = [n if i in sizes else 1 for i, n in enumerate(inputs.shape)]
            return out / reduced(jnp.ones(counted, inputs.dtype))

        return init, apply

    text, _, result = doc.partition("\n")
    about = f"""Make a layer that computes {text} of the inputs.

    Args:
      window_shape: the size of the window along each spatial axis.
      strides: the distance of windows along each spatial axis. None, the default, is 1.
      padding: "VALID", the default, or "SAME".
      spec: the order of the axes, such as "NHWC": N is the batch, C the channels. None, the
        default, is N first and C last.

    Returns:
      A layer (init, apply) without parameters.

    >>> init, apply = {name}((2,), strides=(2,))
    >>> print(apply((), jnp.array([1.0, 3.0, 5.0, 5.0]).reshape(1, 4, 1)).ravel())
    {result}
    """
    return name_function(pool, name, about)


MaxPool = _define_pooling(
    "MaxPool", lax.max, -math.inf, False, "the maximum of each window\n[3. 5.]"
)
SumPool = _define_pooling("SumPool", lax.add, 0.0, False, "the sum of each window\n[ 4. 10.]")
AvgPool = _define_pooling(
    "AvgPool", lax.add, 0.0, True, "the mean of each window, without its padding,\n[2. 5.]"
)


def _flatten_shape(rng: Any, input_shape: Sequence[int]) -> tuple:
    return (input_shape[0], math.prod(input_shape[1:])), ()


Flatten = _flatten_shape, lambda params, inputs, **kwargs: jnp.reshape(inputs, (len(inputs), -1))


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Make a layer that sets elements to 0 at random and scales the others up.

    Args:
      rate: the probability of keeping an element, a float. Kept elements are divided by it.
      mode: "train", the default. In any other mode the layer does nothing.

    Returns:
      A layer (init, apply). `apply` needs the keyword `rng`, a random key.

    >>> _, apply = Dropout(0.5, mode="test")
    >>> print(apply((), jnp.ones(2)))
    [1. 1.]
    """

    if isinstance(rate, int | float) and not 0 < rate <= 1:
        raise ValueError(
            f"Dropout: rate must be in (0, 1], the probability to keep an element; got {rate}."
        )

    def apply(params: tuple, inputs: Any, **kwargs: Any) -> Any:
        if mode != "train":
            return inputs
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout: apply must be given a key; got none. "
                "Hint: apply(params, inputs, rng=key)."
            )
        keep = random.bernoulli(rng, rate, jnp.shape(inputs))
        return jnp.where(keep, inputs / rate, 0)

    return _same_shape, apply


# --- layers of layers ---------------------------------------------------------------------------


def FanOut(num: int) -> Layer:
    """Make a layer that repeats its inputs, for layers side by side.

    Args:
      num: the number of copies, an int.

    Returns:
      A layer (init, apply).

    >>> init, apply = FanOut(2)
    >>> len(apply((), jnp.ones(2)))
    2
    """
    return (
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


FanInSum = (
    lambda rng, input_shapes: (input_shapes[0], ()),
    lambda params, inputs, **kwargs: sum(inputs),
)


def FanInConcat(axis: int = -1) -> Layer:
    """Make a layer that joins several inputs along an axis.

    Args:
      axis: the axis, an int. The default is -1.

    Returns:
      A layer (init, apply).

    >>> init, apply = FanInConcat()
    >>> print(apply((), (jnp.ones(2), jnp.zeros(1))))
    [1. 1. 0.]
    """

    def init(rng: Any, input_shapes: Sequence[Sequence[int]]) -> tuple:
        ranks = {len(s) for s in input_shapes}
        if len(ranks) != 1:
            raise ShapeError(
                f"FanInConcat: inputs must have as many axes each; got shapes "
                f"{tuple(input_shapes)}."
            )
        shape = list(input_shapes[0])
        shape[axis] = sum(s[axis] for s in input_shapes)
        return tuple(shape), ()

    return init, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def serial(*layers: Layer) -> Layer:
    """Make a layer of layers that are applied one after another.

    Args:
      *layers: layers (init, apply).

    Returns:
      A layer (init, apply). Its parameters are a list of theirs.

    >>> init, apply = serial(Dense(8), Relu, Dense(2), LogSoftmax)
    >>> shape, params = init(random.PRNGKey(0), (-1, 4))
    >>> shape, apply(params, jnp.ones((3, 4))).shape
    ((-1, 2), (3, 2))
    """

    def init(rng: Any, input_shape: Sequence[int]) -> tuple:
        params = []
        for layer_init, _ in layers:
            rng, key = random.split(rng)
            input_shape, given = layer_init(key, input_shape)
            params.append(given)
        return input_shape, params

    def apply(params: Sequence, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, layer_apply), given, key in zip(layers, params, keys, strict=True):
            inputs = layer_apply(given, inputs, rng=key, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Make a layer of layers side by side.

    Args:
      *layers: layers (init, apply).

    Returns:
      A layer (init, apply) from a sequence of inputs to a sequence of outputs, one for each layer.
      Its parameters are a list of theirs.

    >>> init, apply = serial(FanOut(2), parallel(Dense(4), Identity), FanInConcat())
    >>> init(random.PRNGKey(0), (-1, 3))[0]
    (-1, 7)
    """

    def init(rng: Any, input_shapes: Sequence) -> tuple:
        if len(input_shapes) != len(layers):
            raise ShapeError(
                f"parallel: there must be one input for each of {len(layers)} layers; got shapes "
                f"{tuple(input_shapes)}. Hint: serial(FanOut({len(layers)}), parallel(...))."
            )
        keys = random.split(rng, len(layers))
        made = [f(key, s) for (f, _), key, s in zip(layers, keys, input_shapes, strict=True)]
        return tuple(shape for shape, _ in made), tuple(params for _, params in made)

    def apply(params: Sequence, inputs: Sequence, **kwargs: Any) -> list:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        rows = zip(layers, params, inputs, keys, strict=True)
        return [f(given, x, rng=key, **kwargs) for (_, f), given, x, key in rows]

    return init, apply


def _keys(rng: Any, count: int) -> Sequence:
    return [None] * count if rng is None else random.split(rng, count)


def shape_dependent(make_layer: Callable[[Sequence[int]], Layer]) -> Layer:
    """Make a layer by a function of the shape of its inputs.

    Args:
      make_layer: a function of a shape that returns a layer.

    Returns:
      A layer (init, apply).

    >>> halved = shape_dependent(lambda shape: Dense(shape[-1] // 2))
    >>> halved[0](random.PRNGKey(0), (-1, 8))[0]
    (-1, 4)
    """
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )
