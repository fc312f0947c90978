"""Activations: elementwise functions between the layers of a network, and `glu`.

Where two pieces meet, the derivative is the one that is documented: of relu at 0, it is 0. What
reduces an axis (softmax and its like) is normalization.py.
"""

from __future__ import annotations

import math
from typing import Any

import weft.numpy as jnp
from weft.errors import ShapeError
from weft.numpy.fused import fused
from weft.numpy.promotion import as_array, as_inexact, axis_of
from weft.primitives.slicing import split
from weft.primitives.special.functions import erfc
from weft.primitives.transcendental import logistic
from weft.scipy.special import elementary

tanh = jnp.tanh


@fused
def identity(x: Any) -> Any:
    """x as it is."""
    return as_array(x, "identity")


@fused
def relu(x: Any) -> Any:
    """max(x, 0). Its derivative at 0 is 0.

    >>> from weft import grad, nn
    >>> print(nn.relu(-2.0), nn.relu(3.0), grad(nn.relu)(0.0))
    0.0 3.0 0.0
    """
    x = as_array(x, "relu")
    return jnp.where(x <= 0, 0, x)


@fused
def relu6(x: Any) -> Any:
    """min(max(x, 0), 6). Its derivatives at 0 and 6 are 0."""
    x = as_array(x, "relu6")
    return jnp.where(x <= 0, 0.0, jnp.where(x >= 6, 6.0, x))


@fused
def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """x where it is at least 0, else negative_slope * x."""
    x = as_array(x, "leaky_relu")
    return jnp.where(x >= 0, x, negative_slope * x)


@fused
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return logistic(as_inexact("sigmoid", x))


@fused
def softplus(x: Any) -> Any:
    """log(1 + exp(x)), a smooth relu."""
    x = as_array(x, "softplus")
    return jnp.logaddexp(x, 0.0)


@fused
def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)), exact where that is near 0 or 1."""
    return -softplus(-as_inexact("log_sigmoid", x))


@fused
def silu(x: Any) -> Any:
    """x * sigmoid(x); also called swish."""
    x = as_inexact("silu", x)
    return x * logistic(x)


swish = silu


@fused
def mish(x: Any) -> Any:
    """x * tanh(softplus(x))."""
    x = as_array(x, "mish")
    return x * jnp.tanh(softplus(x))


@fused
def soft_sign(x: Any) -> Any:
    """x / (1 + |x|)."""
    x = as_array(x, "soft_sign")
    return x / (jnp.abs(x) + 1)


@fused
def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    x = as_array(x, "elu")
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0, x)))


@fused
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """x where it is positive, else alpha * (exp(x / alpha) - 1): its derivative is continuous."""
    x = as_array(x, "celu")
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0, x) / alpha))


@fused
def selu(x: Any) -> Any:
    """1.0507 * elu(x, 1.6733), which keeps mean 0 and variance 1 (Klambauer et al. 2017)."""
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


@fused(static=("approximate",))
def gelu(x: Any, approximate: bool = True) -> Any:
    """x times the normal probability of less than x.

    The probability is that of the error function or, with `approximate`, of the formula of
    Hendrycks and Gimpel (2016) with tanh, which is off by up to 5e-4.
    """
    x = as_inexact("gelu", x)
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + jnp.tanh(inner))
    return 0.5 * x * erfc(-x * math.sqrt(0.5))


@fused
def hard_tanh(x: Any) -> Any:
    """x brought into [-1, 1]."""
    x = as_array(x, "hard_tanh")
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@fused
def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6."""
    x = as_array(x, "hard_sigmoid")
    return relu6(x + 3.0) / 6


@fused
def hard_silu(x: Any) -> Any:
    """x * hard_sigmoid(x); also called hard swish."""
    x = as_array(x, "hard_silu")
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@fused
def squareplus(x: Any, b: Any = 4) -> Any:
    """(x + sqrt(x**2 + b)) / 2, a smooth relu."""
    x = as_array(x, "squareplus")
    return 0.5 * (x + jnp.sqrt(x * x + b))


@fused
def sparse_plus(x: Any) -> Any:
    """0 for x <= -1, x for x >= 1, and (x + 1)**2 / 4 between them."""
    x = as_array(x, "sparse_plus")
    between = 0.25 * jnp.square(x + 1.0)
    return jnp.where(x <= -1, 0.0, jnp.where(x >= 1, x, between))


@fused
def sparse_sigmoid(x: Any) -> Any:
    """The derivative of sparse_plus: (x + 1) / 2 brought into [0, 1]."""
    x = as_array(x, "sparse_sigmoid")
    return 0.5 * jnp.clip(x + 1.0, 0.0, 2.0)


@fused
def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x >= 0, exact at both ends."""
    return elementary.log1mexp(as_inexact("log1mexp", x))


@fused(static=("axis",))
def glu(x: Any, axis: int = -1) -> Any:
    """The first half of x along `axis` times the sigmoid of the second (Dauphin et al. 2017)."""
    x = as_inexact("glu", x)
    at = axis_of("glu", axis, x.ndim)
    n = x.shape[at]
    if n % 2:
        raise ShapeError(f"glu: the size of axis {axis} must be even; got {x.aval}.")
    first, second = split(x, (n // 2, n // 2), at)
    return first * logistic(second)
