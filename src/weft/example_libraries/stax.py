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
    """`x W + b`: (..., n) to (..., out_dim); the parameters are W (n, out_dim) and b.

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


GeneralConv = _define_convolution(
    "GeneralConv",
    lax.conv_general_dilated,
    lax.conv_general_shape_tuple,
    """A convolution whose inputs, filter and outputs have the axes that three strings name.

    `W_init` and `b_init` make the filter and the bias, by default Glorot's and normal numbers.

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
    "As `GeneralConv`, a transposed convolution: strides make the outputs larger.",
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
    """Inputs of mean 0 and variance 1 over `axis` of each batch, times gamma, plus beta.

    The parameters are (beta, gamma), of the other axes; `()` for one that `center` or `scale` says
    is not there. There are no running means: a single example is its own batch.
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
    """The layer that applies `fun(inputs, **fun_kwargs)`, which keeps shapes.

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

    return name_function(pool, name, doc)


MaxPool = _define_pooling("MaxPool", lax.max, -math.inf, False, "The largest of each window.")
SumPool = _define_pooling("SumPool", lax.add, 0.0, False, "The sum of each window.")
AvgPool = _define_pooling(
    "AvgPool", lax.add, 0.0, True, "The mean of each window, without its padding."
)


def _flatten_shape(rng: Any, input_shape: Sequence[int]) -> tuple:
    return (input_shape[0], math.prod(input_shape[1:])), ()


Flatten = _flatten_shape, lambda params, inputs, **kwargs: jnp.reshape(inputs, (len(inputs), -1))


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Elements kept with probability `rate` and divided by it, the others 0; needs `rng=`.

    In any other mode than "train" it does nothing.

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
    """The inputs, `num` times."""
    return (
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


FanInSum = (
    lambda rng, input_shapes: (input_shapes[0], ()),
    lambda params, inputs, **kwargs: sum(inputs),
)


def FanInConcat(axis: int = -1) -> Layer:
    """Many inputs as one, put together along an axis."""

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
    """Layers one after another; the parameters are a list of theirs.

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
    """Layers side by side: each has its own of a sequence of inputs, and of outputs.

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
    """The layer that `make_layer` makes for the shape of the inputs, once that is known.

    >>> halved = shape_dependent(lambda shape: Dense(shape[-1] // 2))
    >>> halved[0](random.PRNGKey(0), (-1, 8))[0]
    (-1, 4)
    """
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )
