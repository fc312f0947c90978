"""Activations: elementwise functions between the layers of a network, and `glu`.

Where two pieces meet, the derivative is the one that is documented: of relu at 0, it is 0. What
reduces an axis (softmax and its like) is normalization.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import weft.numpy as jnp
from weft import dtypes
from weft.api.custom_rules import custom_jvp
from weft.errors import ShapeError
from weft.numpy.promotion import as_array, as_inexact, as_operand, axis_of, promote_operands
from weft.numpy.reductions import compute_widely
from weft.primitives.slicing import split
from weft.primitives.special.functions import gelu_p
from weft.primitives.transcendental import logistic
from weft.run.operation import operation
from weft.scipy.special import elementary
from weft.util import name_function
from weft.xla.typing import Array, ArrayLike

tanh = jnp.tanh

# --- of x alone -----------------------------------------------------------------------------


def as_counted(x: Any) -> Any:
    """x, or truth values as 0 and 1."""
    return x.astype(int) if dtypes.is_bool(x.dtype) else x


def define_activation(name: str, apply: Callable, doc: str, floats: bool = False) -> Callable:
    """A function of one array under its public name; `floats`: of integers made floats first."""

    def fun(x: ArrayLike) -> Array:
        return apply(as_inexact(name, x) if floats else as_array(x, name))

    return operation(name_function(fun, name, doc))


identity = define_activation("identity", lambda x: x, "x as it is.")
relu = define_activation(
    "relu",
    lambda x: jnp.where(as_counted(x) <= 0, 0, as_counted(x)),
    """max(x, 0). Its derivative at 0 is 0.

    >>> from weft import grad
    >>> print(nn.relu(-2.0), nn.relu(3.0), grad(nn.relu)(0.0))
    0.0 3.0 0.0
    """,
)
relu6 = define_activation(
    "relu6",
    lambda x: jnp.where(x <= 0, 0.0, jnp.where(x >= 6, 6.0, x)),
    "min(max(x, 0), 6). Its derivatives at 0 and 6 are 0.",
    floats=True,
)
sigmoid = define_activation("sigmoid", logistic, "1 / (1 + exp(-x)).", floats=True)
softplus = define_activation(
    "softplus", lambda x: jnp.logaddexp(x, 0.0), "log(1 + exp(x)), a smooth relu.", floats=True
)
log_sigmoid = define_activation(
    "log_sigmoid",
    lambda x: -softplus(-x),
    "log(sigmoid(x)), exact where that is near 0 or 1.",
    floats=True,
)
silu = define_activation(
    "silu", lambda x: x * logistic(x), "x * sigmoid(x); also called swish.", floats=True
)
swish = silu
mish = define_activation(
    "mish", lambda x: x * jnp.tanh(softplus(x)), "x * tanh(softplus(x)).", floats=True
)


@custom_jvp
def divide_by_size(x: Any) -> Any:
    """x / (1 + |x|), whose derivative by the rule of quotients would cancel."""
    return x / (jnp.abs(x) + 1).astype(x.dtype)


@divide_by_size.defjvp
def differentiate_by_size(primals: tuple, tangents: tuple) -> tuple:
    """The derivative is 1 / (1 + |x|)**2."""
    (x,), (t,) = primals, tangents
    share = 1 / (jnp.abs(x) + 1).astype(x.dtype)
    return divide_by_size(x), t * share * share


soft_sign = define_activation("soft_sign", divide_by_size, "x / (1 + |x|).", floats=True)
selu = define_activation(
    "selu",
    lambda x: 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717),
    "1.0507 * elu(x, 1.6733), which keeps mean 0 and variance 1 (Klambauer et al. 2017).",
    floats=True,
)
hard_tanh = define_activation(
    "hard_tanh",
    lambda x: jnp.where(x > 1, 1, jnp.where(x < -1, -1, x)) if x.dtype != bool else as_counted(x),
    "x brought into [-1, 1].",
)
hard_sigmoid = define_activation(
    "hard_sigmoid", lambda x: relu6(x + 3.0) / 6, "relu6(x + 3) / 6.", floats=True
)
hard_silu = define_activation(
    "hard_silu",
    lambda x: x * hard_sigmoid(x),
    "x * hard_sigmoid(x); also called hard swish.",
    floats=True,
)
hard_swish = hard_silu
sparse_plus = define_activation(
    "sparse_plus",
    lambda x: jnp.where(
        x <= -1, 0.0, jnp.where(x >= 1, x, 0.25 * jnp.square(jnp.where(x >= 1, 0, x) + 1.0))
    ),
    "0 for x <= -1, x for x >= 1, and (x + 1)**2 / 4 between them.",
    floats=True,
)
sparse_sigmoid = define_activation(
    "sparse_sigmoid",
    lambda x: 0.5 * jnp.clip(x + 1.0, 0.0, 2.0),
    "The derivative of sparse_plus: (x + 1) / 2 brought into [0, 1].",
    floats=True,
)
log1mexp = define_activation(
    "log1mexp", elementary.log1mexp, "log(1 - exp(-x)) for x >= 0, exact at both ends.", floats=True
)

# --- with parameters ------------------------------------------------------------------------


@operation
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x where it is at least 0, else negative_slope * x."""
    x = as_inexact("leaky_relu", x)
    return jnp.where(x >= 0, x, as_operand("leaky_relu", negative_slope) * x)


@operation
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    x = as_inexact("elu", x)
    return jnp.where(x > 0, x, as_operand("elu", alpha) * jnp.expm1(jnp.where(x > 0, 0, x)))


@operation
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where it is positive, else alpha * (exp(x / alpha) - 1): its derivative is continuous."""
    x, alpha = as_inexact("celu", x), as_operand("celu", alpha)
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0, x) / alpha))


@operation
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x**2 + b)) / 2, a smooth relu."""
    x, b = promote_operands("squareplus", as_inexact("squareplus", x), b, inexact=True)
    return compute_widely(add_root, x, as_array(b))


def add_root(x: Any, b: Any) -> Any:
    """(x + r) / 2 for r = sqrt(x**2 + b), or b / (r - x) / 2 where the sum would cancel."""
    far = jnp.abs(x) >= 1  # there x is taken out of the root, as its square may overflow
    outer, inner = jnp.where(far, x, 1), jnp.where(far, 0, x)
    root = jnp.where(
        far, jnp.abs(outer) * jnp.sqrt(1 + b / jnp.square(outer)), jnp.sqrt(jnp.square(inner) + b)
    )
    below = jnp.where(x < 0, x, -1)
    return jnp.where(x < 0, 0.5 * b / (root - below), 0.5 * (x + root))


@operation(static=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the normal probability of less than x.

    The probability is that of the error function or, with `approximate`, of the formula of
    Hendrycks and Gimpel (2016) with tanh, which is off by up to 5e-4.
    """
    x = as_inexact("gelu", x)
    if approximate:
        # 2 logistic(2 u) would not cancel as 1 + tanh(u) does, but takes twice the time
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + jnp.tanh(inner))
    return gelu_p.apply(x)[0]


@operation(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of x along `axis` times the sigmoid of the second (Dauphin et al. 2017)."""
    x = as_inexact("glu", x)
    at = axis_of("glu", axis, x.ndim)
    n = x.shape[at]
    if n % 2:
        raise ShapeError(f"glu: the size of axis {axis} must be even; got {x.aval}.")
    first, second = split(x, (n // 2, n // 2), at)
    return first * logistic(second)
