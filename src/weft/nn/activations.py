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
from weft.core.aval import typeof
from weft.errors import ShapeError
from weft.numpy.promotion import as_array, as_inexact, as_operand, axis_of, promote_operands
from weft.numpy.reductions import compute_widely
from weft.primitives.elementwise import convert
from weft.primitives.slicing import split
from weft.primitives.special.functions import gelu_p
from weft.primitives.transcendental import logistic
from weft.run.operation import operation
from weft.scipy.special import elementary
from weft.util import name_function
from weft.xla.typing import Array, ArrayLike

tanh = jnp.tanh

# --- without parameters ---------------------------------------------------------------------


def as_counted(x: Any) -> Any:
    """x, or truth values as 0 and 1."""
    return x.astype(int) if dtypes.is_bool(x.dtype) else x


def define_activation(name: str, apply: Callable, doc: str, floats: bool = False) -> Callable:
    """A function of one array under its public name; `floats`: of integers made floats first."""

    def fun(x: ArrayLike) -> Array:
        return apply(as_inexact(name, x) if floats else as_array(x, name))

    return operation(name_function(fun, name, doc))


identity = define_activation(
    "identity",
    lambda x: x,
    """Return x unchanged.

    It stands for the activation of a layer that has none, such as the last layer of a regression.

    Args:
      x: an array or a scalar of any dtype.

    Returns:
      An array with the shape, the dtype and the elements of x.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.identity(jnp.array([-1.0, 2.0])))
    [-1.  2.]
    """,
)
relu = define_activation(
    "relu",
    lambda x: jnp.where(as_counted(x) <= 0, 0, as_counted(x)),
    """Compute the rectified linear unit elementwise: max(x, 0).

    The usual activation between layers: cheap, and it does not saturate for positive x. The
    derivative is 1 for x > 0 and 0 for x < 0. At the kink x = 0 the derivative is 0.

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape and dtype of x. Integers stay integers; booleans become integers.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.relu(jnp.array([-2.0, 0.0, 3.0])))
    [0. 0. 3.]
    >>> print(weft.grad(nn.relu)(0.0), weft.grad(nn.relu)(3.0))
    0.0 1.0
    """,
)
relu6 = define_activation(
    "relu6",
    lambda x: jnp.where(x <= 0, 0.0, jnp.where(x >= 6, 6.0, x)),
    """Compute the rectified linear unit with a ceiling, elementwise: min(max(x, 0), 6).

    The ceiling bounds the activations, which helps where they are stored in few bits. The
    derivative is 1 for 0 < x < 6 and 0 elsewhere. At the kinks x = 0 and x = 6 it is 0.

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.relu6(jnp.array([-2.0, 3.0, 8.0])))
    [0. 3. 6.]
    """,
    floats=True,
)
sigmoid = define_activation(
    "sigmoid",
    logistic,
    """Compute the logistic sigmoid elementwise: 1 / (1 + exp(-x)).

    It maps real numbers to (0, 1), so the output of a network may be read as a probability. It does
    not overflow for large |x|. For the logarithm of it, use `log_sigmoid`, which stays exact where
    the sigmoid rounds to 0 or 1.

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.sigmoid(jnp.array([-100.0, 0.0, 100.0])))
    [0.  0.5 1. ]
    """,
    floats=True,
)
softplus = define_activation(
    "softplus",
    lambda x: jnp.logaddexp(x, 0.0),
    """Compute log(1 + exp(x)) elementwise: a smooth form of `relu`.

    It maps real numbers to positive ones, for a scale or a rate. It does not overflow: for large x
    the result is x. Its derivative is `sigmoid`.

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.softplus(jnp.array([-100.0, 0.0, 100.0])))
    [  0.          0.6931472 100.       ]
    """,
    floats=True,
)
log_sigmoid = define_activation(
    "log_sigmoid",
    lambda x: -softplus(-x),
    """Compute log(sigmoid(x)) elementwise: -log(1 + exp(-x)).

    It is for the logarithm of a probability, as in binary cross-entropy. It stays exact where
    `sigmoid` rounds to 0 or 1: the result is close to x for very negative x, where log(sigmoid(x))
    would be -inf.

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.log_sigmoid(jnp.array([-200.0, 0.0])))
    [-200.          -0.6931472]
    >>> print(jnp.log(nn.sigmoid(jnp.array([-200.0]))))
    [-inf]
    """,
    floats=True,
)
silu = define_activation(
    "silu",
    lambda x: x * logistic(x),
    """Compute x * sigmoid(x) elementwise: the sigmoid linear unit, also called swish.

    A smooth activation that is close to `relu` for large |x| and slightly negative for x < 0.
    `swish` is another name of this function. Source: Hendrycks and Gimpel (2016).

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(np.asarray(nn.silu(jnp.array([-1.0, 0.0, 1.0]))).round(4))
    [-0.2689  0.      0.7311]
    """,
    floats=True,
)
swish = silu
mish = define_activation(
    "mish",
    lambda x: x * jnp.tanh(softplus(x)),
    """Compute x * tanh(softplus(x)) elementwise.

    A smooth activation that is close to `relu` for large |x| and slightly negative for x < 0.
    Source: Misra (2019).

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(np.asarray(nn.mish(jnp.array([-1.0, 0.0, 1.0]))).round(4))
    [-0.3034  0.      0.8651]
    """,
    floats=True,
)


@custom_jvp
def divide_by_size(x: Any) -> Any:
    """x / (1 + |x|), whose derivative by the rule of quotients would cancel."""
    return x / add_one_to_size(x)


@divide_by_size.defjvp
def differentiate_by_size(primals: tuple, tangents: tuple) -> tuple:
    """The derivative is 1 / (1 + |x|)**2."""
    (x,), (t,) = primals, tangents
    share = as_strong_as(1 / add_one_to_size(x), x)
    return divide_by_size(x), t * share * share


def add_one_to_size(x: Any) -> Any:
    """Return 1 + |x|; a weak x of 32 bits keeps its dtype if 64-bit types are on."""
    return as_strong_as(jnp.abs(x) + 1, x)


def as_strong_as(y: Any, x: Any) -> Any:
    """Return y converted to the dtype of x, and weakly typed if x is."""
    aval = typeof(x)
    return convert(y, aval.dtype, aval.weak_type)


soft_sign = define_activation(
    "soft_sign",
    divide_by_size,
    """Compute x / (1 + |x|) elementwise.

    It maps real numbers to (-1, 1) like `tanh`, but approaches the ends more slowly. The derivative
    is 1 / (1 + |x|)**2; at x = 0 it is 1.

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.soft_sign(jnp.array([-3.0, 0.0, 1.0])))
    [-0.75  0.    0.5 ]
    """,
    floats=True,
)
selu = define_activation(
    "selu",
    lambda x: 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717),
    """Compute the scaled exponential linear unit elementwise: 1.0507 * elu(x, 1.6733).

    The two constants are chosen so that, with weights from `initializers.lecun_normal`, deep
    networks keep activations of mean 0 and variance 1 without normalization layers. The derivative
    jumps at x = 0 from 1.0507 on the right to 1.7581 on the left; at 0 it is the latter. Source:
    Klambauer et al. (2017).

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(np.asarray(nn.selu(jnp.array([-1.0, 0.0, 1.0]))).round(4))
    [-1.1113  0.      1.0507]
    """,
    floats=True,
)
hard_tanh = define_activation(
    "hard_tanh",
    lambda x: jnp.where(x > 1, 1, jnp.where(x < -1, -1, x)) if x.dtype != bool else as_counted(x),
    """Clip x to [-1, 1] elementwise: a piecewise linear form of `tanh`.

    The derivative is 1 inside the interval and 0 outside. At the kinks x = -1 and x = 1 it is 1.

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape and dtype of x. Integers stay integers; booleans become integers.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.hard_tanh(jnp.array([-3.0, 0.5, 3.0])))
    [-1.   0.5  1. ]
    """,
)
hard_sigmoid = define_activation(
    "hard_sigmoid",
    lambda x: relu6(x + 3.0) / 6,
    """Compute a piecewise linear form of `sigmoid` elementwise: relu6(x + 3) / 6.

    The result is 0 for x <= -3, 1 for x >= 3, and x / 6 + 1 / 2 between them. The derivative is 1 /
    6 between the kinks, and 0 outside and at the kinks.

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.hard_sigmoid(jnp.array([-4.0, 0.0, 4.0])))
    [0.  0.5 1. ]
    """,
    floats=True,
)
hard_silu = define_activation(
    "hard_silu",
    lambda x: x * hard_sigmoid(x),
    """Compute x * hard_sigmoid(x) elementwise: a cheap form of `silu`, also called hard swish.

    The result is 0 for x <= -3, x for x >= 3, and a parabola between them. `hard_swish` is another
    name of this function. Source: Howard et al. (2019).

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.hard_silu(jnp.array([-4.0, 1.0, 4.0])))
    [-0.         0.6666667  4.       ]
    """,
    floats=True,
)
hard_swish = hard_silu
sparse_plus = define_activation(
    "sparse_plus",
    lambda x: jnp.where(
        x <= -1, 0.0, jnp.where(x >= 1, x, 0.25 * jnp.square(jnp.where(x >= 1, 0, x) + 1.0))
    ),
    """Compute 0 for x <= -1, x for x >= 1, and (x + 1)**2 / 4 between them, elementwise.

    It is a form of `softplus` with results that are exactly 0 for x <= -1. The derivative is
    continuous; it is `sparse_sigmoid`.

    Args:
      x: an array or a scalar, usually of a float dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0])))
    [0.   0.25 2.  ]
    """,
    floats=True,
)
sparse_sigmoid = define_activation(
    "sparse_sigmoid",
    lambda x: 0.5 * jnp.clip(x + 1.0, 0.0, 2.0),
    """Compute (x + 1) / 2 clipped to [0, 1], elementwise: the derivative of `sparse_plus`.

    It is a piecewise linear form of `sigmoid` that reaches 0 at x = -1 and 1 at x = 1. The
    derivative is 1 / 2 between the kinks and 0 outside. At a kink it is the mean of both sides, 1 /
    4.

    Args:
      x: an array or a scalar of a real dtype.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is complex, or is not an array or a number.

    >>> print(nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 2.0])))
    [0.  0.5 1. ]
    """,
    floats=True,
)
log1mexp = define_activation(
    "log1mexp",
    elementary.log1mexp,
    """Compute log(1 - exp(-x)) elementwise, for x >= 0.

    It turns the logarithm of a probability, -x, into the logarithm of the complementary
    probability. It is accurate for small and for large x, where 1 - exp(-x) would round to 0 or 1.
    The result is -inf at x = 0 and NaN for x < 0.

    Args:
      x: an array or a scalar, usually of a float dtype, not negative.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(np.asarray(nn.log1mexp(jnp.array([0.0, 1e-10]))).round(4))
    [    -inf -23.0258]
    """,
    floats=True,
)

# --- with parameters ------------------------------------------------------------------------


@operation
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Compute x where x >= 0 and negative_slope * x elsewhere, elementwise.

    Unlike `relu`, a unit with a negative input still has a gradient. At the kink x = 0 the
    derivative is 1.

    Args:
      x: an array or a scalar, usually of a float dtype.
      negative_slope: the slope for x < 0, a scalar or an array that broadcasts with x. By default
        0.01. Derivatives with respect to it are supported, so it may be a trained parameter.

    Returns:
      An array of the broadcast shape. It has the dtype of x; integers and booleans become the
      default float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.leaky_relu(jnp.array([-2.0, 0.0, 3.0]), 0.1))
    [-0.2  0.   3. ]
    """
    x = as_inexact("leaky_relu", x)
    return jnp.where(x >= 0, x, as_operand("leaky_relu", negative_slope) * x)


@operation
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Compute the exponential linear unit: x where x > 0, alpha * (exp(x) - 1) elsewhere.

    It is computed elementwise. Negative results bring the mean of the activations closer to 0 than
    `relu` does. The derivative at x = 0 is alpha; it is continuous for alpha = 1 only. `celu` is
    continuous for every alpha. Source: Clevert, Unterthiner and Hochreiter (2015).

    Args:
      x: an array or a scalar, usually of a float dtype.
      alpha: the limit of the result is -alpha for very negative x; a scalar or an array that
        broadcasts with x. By default 1.

    Returns:
      An array of the broadcast shape. It has the dtype of x; integers and booleans become the
      default float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.elu(jnp.array([-100.0, 0.0, 2.0])))
    [-1.  0.  2.]
    >>> print(nn.elu(-100.0, alpha=0.5))
    -0.5
    """
    x = as_inexact("elu", x)
    return jnp.where(x > 0, x, as_operand("elu", alpha) * jnp.expm1(jnp.where(x > 0, 0, x)))


@operation
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Compute the continuous ELU: x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere.

    It is computed elementwise. The derivative is continuous for every alpha: it is 1 at x = 0. For
    alpha = 1 the function is `elu`. Source: Barron (2017).

    Args:
      x: an array or a scalar, usually of a float dtype.
      alpha: the limit of the result is -alpha for very negative x; a positive scalar or an array
        that broadcasts with x. By default 1.

    Returns:
      An array of the broadcast shape. It has the dtype of x; integers and booleans become the
      default float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.celu(jnp.array([-100.0, 0.0, 2.0]), alpha=2.0))
    [-2.  0.  2.]
    >>> print(weft.grad(nn.celu)(0.0, 2.0), weft.grad(nn.elu)(0.0, 2.0))
    1.0 2.0
    """
    x, alpha = as_inexact("celu", x), as_operand("celu", alpha)
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0, x) / alpha))


@operation
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Compute (x + sqrt(x**2 + b)) / 2 elementwise: a smooth form of `relu` without exp.

    It maps real numbers to positive ones. It does not overflow for large |x|, and does not lose
    digits to cancellation for negative x. Source: Barron (2021).

    Args:
      x: an array or a scalar, usually of a float dtype.
      b: the curvature near x = 0; a scalar or an array that broadcasts with x, not negative. By
        default 4: then the result at 0 is 1. With b = 0 the function is `relu`; its derivative
        at x = 0 is NaN then.

    Returns:
      An array of the broadcast shape, of the float dtype to which x and b promote.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(np.asarray(nn.squareplus(jnp.array([-3.0, 0.0, 3.0]))).round(4))
    [0.3028 1.     3.3028]
    """
    x, b = promote_operands("squareplus", as_inexact("squareplus", x), b, inexact=True)
    return compute_widely(add_root, x, as_array(b, "squareplus"))


def add_root(x: Any, b: Any) -> Any:
    """(x + r) / 2 for r = sqrt(x**2 + b), or b / (r - x) / 2 where the sum would cancel."""
    far = jnp.abs(x) >= 1  # there x is taken out of the root and the sum, which may overflow
    outer, inner = jnp.where(far, x, 1), jnp.where(far, 0, x)
    factor = jnp.sqrt(1 + b / jnp.square(outer))
    positive = jnp.where(x < 0, -outer, outer)
    root = jnp.where(far, positive * factor, jnp.sqrt(jnp.square(inner) + b))
    below = jnp.where(x < 0, x, -1)
    above = jnp.where(far, outer * (0.5 * (1 + factor)), 0.5 * (inner + root))
    return jnp.where(x < 0, 0.5 * b / (root - below), above)


@operation(static=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Compute the Gaussian error linear unit elementwise: x * P(Z <= x) for a standard normal Z.

    A smooth activation that is close to `relu` for large |x|; it is the usual one of transformers.

    Args:
      x: an array or a scalar, usually of a float dtype.
      approximate: if True, the default, the probability is approximated as (1 + tanh(sqrt(2 / pi) *
        (x + 0.044715 * x**3))) / 2, with an error of the result of up to 5e-4. It is computed as a
        logistic function, which does not cancel in the lower tail: JAX's is 0 below -5.1 in
        float32. If False, the error function is used, which is exact to 2 units in the last place
        in the tail, too. Static under `jit`.

    Returns:
      An array of the shape of x. It has the dtype of x; integers and booleans become the default
      float.

    Raises:
      DtypeError: x is not an array or a number; a list, for example.

    Source: Hendrycks and Gimpel (2016).

    >>> x = jnp.array([-2.0, 0.0, 2.0])
    >>> print(np.asarray(nn.gelu(x)).round(4))
    [-0.0454  0.      1.9546]
    >>> print(np.asarray(nn.gelu(x, approximate=False)).round(4))
    [-0.0455  0.      1.9545]
    """
    x = as_inexact("gelu", x)
    if approximate:
        # (1 + tanh(u)) / 2 = logistic(2 u), and the sum would cancel
        return x * logistic(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))
    return gelu_p.apply(x)[0]


@operation(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Compute the gated linear unit: the first half of x times the sigmoid of the second half.

    x is split into two equal parts along `axis`: values and gates. A layer that ends in it has
    twice as many outputs as features. Source: Dauphin et al. (2017).

    Args:
      x: an array of a float dtype with at least one axis. Its size along `axis` must be even.
      axis: the axis to split, an integer. By default the last. Static under `jit`.

    Returns:
      An array with the shape of x, except that the size of `axis` is halved. The dtype is that of
      x; integers and booleans become the default float.

    Raises:
      ShapeError: the size of the axis is odd, or x has no such axis.
      DtypeError: x is not an array or a number; a list, for example.

    >>> print(nn.glu(jnp.array([1.0, 2.0, 0.0, 100.0])))
    [0.5 2. ]
    """
    x = as_inexact("glu", x)
    at = axis_of("glu", axis, x.ndim)
    n = x.shape[at]
    if n % 2:
        raise ShapeError(f"glu: the size of axis {axis} must be even; got {x.aval}.")
    first, second = split(x, (n // 2, n // 2), at)
    return first * logistic(second)
