"""First-order stochastic optimizers: triples of functions on pytrees of parameters.

`init(params) -> state`, `update(i, grads, state) -> state` and `get_params(state) -> params` are
pure, and can be transformed. An optimizer is written for one array; `optimizer` lifts it to trees.
Parameters and gradients are real; x is a parameter, g its gradient, i the step from 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import weft.numpy as jnp
from weft import pytrees
from weft.errors import PytreeError
from weft.util import list_public, unzip2

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads",
    "constant", "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum",
    "nesterov", "optimizer", "pack_optimizer_state", "piecewise_constant", "polynomial_decay",
    "rmsprop", "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip
__dir__ = list_public(__name__)

Schedule = Callable[[Any], Any]  # from the step to its size


class Optimizer(NamedTuple):
    """The functions of an optimizer: `init, update, get_params = sgd(0.1)`.

    Args:
      init_fn: a function of the parameters that returns the first state.
      update_fn: a function of the step, the gradients and the state that returns the next state.
      params_fn: a function of the state that returns the parameters.

    >>> opt = sgd(0.5)
    >>> print(opt.params_fn(opt.update_fn(0, 2.0, opt.init_fn(1.0))))
    0.0
    """

    init_fn: Callable[[Any], OptimizerState]
    update_fn: Callable[[Any, Any, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Any]


class OptimizerState(NamedTuple):
    """The state of an optimizer between steps. It is a pytree.

    Attributes:
      packed_state: for each leaf of the parameters, the leaves of its own state.
      tree_def: the structure of the parameters.
      subtree_defs: for each leaf of the parameters, the structure of its state.

    >>> len(sgd(0.5).init_fn({"w": 3.0, "b": 1.0}).packed_state)
    2
    """

    packed_state: tuple[list, ...]
    tree_def: pytrees.PyTreeDef
    subtree_defs: tuple[pytrees.PyTreeDef, ...]


pytrees.register_pytree_with_keys(
    OptimizerState,
    lambda s: (
        ((pytrees.GetAttrKey("packed_state"), s.packed_state),),
        (s.tree_def, s.subtree_defs),
    ),
    lambda trees, children: OptimizerState(*children, *trees),
)

# --- from one array to pytrees ------------------------------------------------------------------


def optimizer(opt_maker: Callable[..., tuple[Callable, Callable, Callable]]) -> Callable:
    """Make an optimizer of pytrees from an optimizer of arrays. A decorator.

    Args:
      opt_maker: a function that returns `init(x) -> s`, `update(i, g, s) -> s` and
        `get_params(s) -> x`, where x and g are arrays, and s is any pytree. An update must keep the
        structure of s.

    Returns:
      A function with the parameters of `opt_maker` that returns an `Optimizer`.

    >>> @optimizer
    ... def sign_descent(step_size):
    ...     return lambda x: x, lambda i, g, x: x - step_size * jnp.sign(g), lambda x: x
    >>> init, update, get_params = sign_descent(0.5)
    >>> state = update(0, {"w": 3.0, "b": -2.0}, init({"w": 1.0, "b": 1.0}))
    >>> print(get_params(state)["b"])
    1.5
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        @functools.wraps(init)
        def tree_init(params: Any) -> OptimizerState:
            xs, tree = pytrees.flatten(params)
            packed, subtrees = unzip2(pytrees.flatten(init(x)) for x in xs)
            return OptimizerState(tuple(packed), tree, tuple(subtrees))

        @functools.wraps(update)
        def tree_update(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            gs, tree = pytrees.flatten(grads)
            if tree != state.tree_def:
                first = next(pytrees.find_mismatches(state.tree_def, tree))
                raise PytreeError(
                    "optimizer update: the gradients must have the structure of the parameters; "
                    f"got {first.between('params', 'grads')}."
                )
            new = [
                pytrees.flatten(update(i, g, s)) for g, s in zip(gs, _substates(state), strict=True)
            ]
            for want, (_, got) in zip(state.subtree_defs, new, strict=True):
                if got != want:
                    raise PytreeError(
                        "optimizer update: the update must keep the structure of the state of an "
                        f"array; got {got} where init gives {want}."
                    )
            return state._replace(packed_state=tuple(xs for xs, _ in new))

        @functools.wraps(get_params)
        def tree_params(state: OptimizerState) -> Any:
            return pytrees.unflatten(state.tree_def, map(get_params, _substates(state)))

        return Optimizer(tree_init, tree_update, tree_params)

    return make


def _substates(state: OptimizerState) -> list:
    """The state of each array."""
    return list(map(pytrees.unflatten, state.subtree_defs, state.packed_state))


class JoinPoint:
    """The root of a tree within a tree. It is a leaf of the outer tree.

    Args:
      subtree: the inner tree.

    >>> JoinPoint((1, 2)).subtree
    (1, 2)
    """

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __repr__(self) -> str:
        return f"JoinPoint({self.subtree!r})"


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Convert the state of an optimizer to plain containers, to be saved.

    Args:
      opt_state: an `OptimizerState`.

    Returns:
      A pytree of the structure of the parameters, with `JoinPoint`s as leaves.

    >>> init, _, _ = momentum(0.1, mass=0.9)
    >>> unpack_optimizer_state(init({"w": 3.0}))
    {'w': JoinPoint((3.0, Array(0., dtype=float32, weak_type=True)))}
    """
    return pytrees.unflatten(opt_state.tree_def, map(JoinPoint, _substates(opt_state)))


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Make the state of an optimizer from the containers that `unpack_optimizer_state` returns.

    Args:
      marked_pytree: a pytree with `JoinPoint`s as leaves.

    Returns:
      An `OptimizerState`.

    >>> init, _, get_params = momentum(0.1, mass=0.9)
    >>> plain = unpack_optimizer_state(init({"w": 3.0}))
    >>> print(get_params(pack_optimizer_state(plain)))
    {'w': 3.0}
    """
    points, tree = pytrees.flatten(marked_pytree)
    for x in points:
        if not isinstance(x, JoinPoint):
            raise PytreeError(
                "pack_optimizer_state: the leaves must be JoinPoints; got a leaf of type "
                f"{type(x).__name__}. Hint: unpack_optimizer_state(state) gives such a tree."
            )
    packed, subtrees = unzip2(pytrees.flatten(x.subtree) for x in points)
    return OptimizerState(tuple(packed), tree, tuple(subtrees))


# --- optimizers ---------------------------------------------------------------------------------


def _make_triple(step_size: float | Schedule, slots: int | Callable, update: Callable) -> tuple:
    """The functions of an optimizer of one array, whose state is x and what `slots` adds.

    Args:
      slots: how many arrays like x, which begin at zero; or a function of x that lists them.
      update: of the step's size, the step, the gradient, x and the slots; gives x and the slots.
    """
    size = make_schedule(step_size)
    begin = slots if callable(slots) else lambda x: [jnp.zeros_like(x) for _ in range(slots)]

    def keep(new: Any, old: Any) -> Any:
        """Floats are not wider than before, whatever the step and its size are."""
        dtype = jnp.result_type(old)
        same = jnp.result_type(new) == dtype or not jnp.issubdtype(dtype, jnp.inexact)
        return new if same else jnp.asarray(new, dtype)

    step = lambda i, g, state: pytrees.tree_map(keep, update(size(i), i, g, *state), state)
    return lambda x: (x, *begin(x)), step, lambda state: state[0]


@optimizer
def sgd(step_size: float | Schedule) -> Any:
    """Make an optimizer by gradient descent: `x - step_size(i) g`.

    Args:
      step_size: the step size: a float, or a function of the step i.

    Returns:
      An `Optimizer` (init, update, get_params). `init(params)` returns the state,
      `update(i, gradients, state)` the next state, and `get_params(state)` the parameters, all
      pytrees.

    >>> from weft import grad, jit
    >>> init, update, get_params = sgd(0.25)
    >>> step = jit(lambda i, s: update(i, grad(lambda x: x**2)(get_params(s)), s))
    >>> state = init(8.0)
    >>> for i in range(3):
    ...     state = step(i, state)
    >>> print(get_params(state))
    1.0
    """
    return _make_triple(step_size, 0, lambda size, i, g, x: (x - size * g,))


@optimizer
def momentum(step_size: float | Schedule, mass: float) -> Any:
    """Make an optimizer by gradient descent with momentum: `v = mass v + g`, `x - step_size(i) v`.

    The velocity v carries past gradients on, which damps oscillations.

    Args:
      step_size: the step size: a float, or a function of the step i.
      mass: the decay of the velocity, a float.

    Returns:
      An `Optimizer` (init, update, get_params). `init(params)` returns the state,
      `update(i, gradients, state)` the next state, and `get_params(state)` the parameters, all
      pytrees.

    >>> init, update, get_params = momentum(0.1, 0.9)
    >>> print(np.asarray(get_params(update(0, 2.0, init(1.0)))).round(4))
    0.8
    """

    def update(size: Any, i: Any, g: Any, x: Any, v: Any) -> tuple:
        v = mass * v + g
        return x - size * v, v

    return _make_triple(step_size, 1, update)


@optimizer
def nesterov(step_size: float | Schedule, mass: float) -> Any:
    """Make an optimizer by Nesterov's momentum: `v = mass v + g`, `x - step_size(i) (mass v + g)`.

    It looks one step ahead. Source: Sutskever et al., On the importance of initialization and
    momentum in deep learning (2013).

    Args:
      step_size: the step size: a float, or a function of the step i.
      mass: the decay of the velocity, a float.

    Returns:
      An `Optimizer` (init, update, get_params). `init(params)` returns the state,
      `update(i, gradients, state)` the next state, and `get_params(state)` the parameters, all
      pytrees.

    >>> init, update, get_params = nesterov(0.1, 0.9)
    >>> print(np.asarray(get_params(update(0, 2.0, init(1.0)))).round(4))
    0.62
    """

    def update(size: Any, i: Any, g: Any, x: Any, v: Any) -> tuple:
        v = mass * v + g
        return x - size * (mass * v + g), v

    return _make_triple(step_size, 1, update)


def _inverse_root(x: Any) -> Any:
    """Return 1 / sqrt(x), and 0 where x is 0: without a gradient, nothing is scaled."""
    positive = x > 0
    return jnp.where(positive, 1 / jnp.sqrt(jnp.where(positive, x, 1)), 0)


@optimizer
def adagrad(step_size: float | Schedule, momentum: float = 0.9) -> Any:
    """Make an Adagrad optimizer, which divides by the root of the sum of all squared gradients.

    Source: Duchi, Hazan, Singer, Adaptive subgradient methods (JMLR 12, 2011), with momentum.

    Args:
      step_size: the step size: a float, or a function of the step i.
      momentum: the decay of the running mean of steps, a float. The default is 0.9.

    Returns:
      An `Optimizer` (init, update, get_params). `init(params)` returns the state,
      `update(i, gradients, state)` the next state, and `get_params(state)` the parameters, all
      pytrees.

    >>> init, update, get_params = adagrad(0.1)
    >>> print(np.asarray(get_params(update(0, 2.0, init(1.0)))).round(4))
    0.99
    """

    def update(size: Any, i: Any, g: Any, x: Any, squares: Any, m: Any) -> tuple:
        squares = squares + jnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - size * m, squares, m

    return _make_triple(step_size, 2, update)


@optimizer
def rmsprop(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """Make an RMSProp optimizer, which divides by the root of a running mean of squared gradients.

    Source: Tieleman and Hinton, Lecture 6.5 (2012).

    Args:
      step_size: the step size: a float, or a function of the step i.
      gamma: the decay of the mean, a float. The default is 0.9.
      eps: a number that is added to the mean under the root. The default is 1e-8.

    Returns:
      An `Optimizer` (init, update, get_params). `init(params)` returns the state,
      `update(i, gradients, state)` the next state, and `get_params(state)` the parameters, all
      pytrees.

    >>> init, update, get_params = rmsprop(0.1)
    >>> print(np.asarray(get_params(update(0, 2.0, init(1.0)))).round(4))
    0.6838
    """

    def update(size: Any, i: Any, g: Any, x: Any, squares: Any) -> tuple:
        squares = squares * gamma + jnp.square(g) * (1 - gamma)
        return x - size * g / jnp.sqrt(squares + eps), squares

    return _make_triple(step_size, 1, update)


@optimizer
def rmsprop_momentum(
    step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Any:
    """Make an RMSProp optimizer with momentum.

    The momentum gathers whole steps, so a change of the step size acts slowly.

    Args:
      step_size: the step size: a float, or a function of the step i.
      gamma: the decay of the mean of squares, a float. The default is 0.9.
      eps: a number that is added to the mean under the root. The default is 1e-8.
      momentum: the decay of the sum of steps, a float. The default is 0.9.

    Returns:
      An `Optimizer` (init, update, get_params). `init(params)` returns the state,
      `update(i, gradients, state)` the next state, and `get_params(state)` the parameters, all
      pytrees.

    >>> init, update, get_params = rmsprop_momentum(0.1)
    >>> print(np.asarray(get_params(update(0, 2.0, init(1.0)))).round(4))
    0.6838
    """

    def update(size: Any, i: Any, g: Any, x: Any, squares: Any, step: Any) -> tuple:
        squares = squares * gamma + jnp.square(g) * (1 - gamma)
        step = momentum * step + size * g / jnp.sqrt(squares + eps)
        return x - step, squares, step

    return _make_triple(step_size, 2, update)


@optimizer
def adam(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Make an Adam optimizer, which divides a mean of gradients by the root of a mean of squares.

    Both means are corrected for their start at 0. Source: Kingma and Ba, Adam (arXiv:1412.6980),
    algorithm 1.

    Args:
      step_size: the step size: a float, or a function of the step i.
      b1: the decay of the mean of gradients, a float. The default is 0.9.
      b2: the decay of the mean of squares, a float. The default is 0.999.
      eps: a number that is added to the divisor. The default is 1e-8.

    Returns:
      An `Optimizer` (init, update, get_params). `init(params)` returns the state,
      `update(i, gradients, state)` the next state, and `get_params(state)` the parameters, all
      pytrees.

    >>> init, update, get_params = adam(0.1)
    >>> print(np.asarray(get_params(update(0, 2.0, init(1.0)))).round(4))
    0.9
    """

    def update(size: Any, i: Any, g: Any, x: Any, m: Any, v: Any) -> tuple:
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        mean = m / (1 - b1 ** (i + 1))  # the means begin at zero
        square = v / (1 - b2 ** (i + 1))
        return x - size * mean / (jnp.sqrt(square) + eps), m, v

    return _make_triple(step_size, 2, update)


@optimizer
def adamax(
    step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> Any:
    """Make an AdaMax optimizer: Adam with the maximum norm, a decaying maximum of gradients.

    Source: Kingma and Ba, Adam (arXiv:1412.6980), algorithm 2.

    Args:
      step_size: the step size: a float, or a function of the step i.
      b1: the decay of the mean of gradients, a float. The default is 0.9.
      b2: the decay of the maximum, a float. The default is 0.999.
      eps: a number that is added to the divisor. The default is 1e-8.

    Returns:
      An `Optimizer` (init, update, get_params). `init(params)` returns the state,
      `update(i, gradients, state)` the next state, and `get_params(state)` the parameters, all
      pytrees.

    >>> init, update, get_params = adamax(0.1)
    >>> print(np.asarray(get_params(update(0, 2.0, init(1.0)))).round(4))
    0.9
    """

    def update(size: Any, i: Any, g: Any, x: Any, m: Any, u: Any) -> tuple:
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        return x - size / (1 - b1 ** (i + 1)) * m / (u + eps), m, u

    return _make_triple(step_size, 2, update)


@optimizer
def sm3(step_size: float | Schedule, momentum: float = 0.9) -> Any:
    """Make an SM3 optimizer: Adagrad with little memory.

    It stores one number for each index of each axis, in place of one for each element. Source: Anil
    et al., Memory-efficient adaptive optimization (arXiv:1901.11150), SM3-II, with momentum.

    Args:
      step_size: the step size: a float, or a function of the step i.
      momentum: the decay of the running mean of steps, a float. The default is 0.9.

    Returns:
      An `Optimizer` (init, update, get_params). `init(params)` returns the state,
      `update(i, gradients, state)` the next state, and `get_params(state)` the parameters, all
      pytrees.

    >>> init, update, get_params = sm3(0.1)
    >>> print(np.asarray(get_params(update(0, 2.0, init(1.0)))).round(4))
    0.99
    """

    def slots(x: Any) -> tuple:
        sizes = jnp.shape(x) or [()]  # a scalar has a bound of its own
        return jnp.zeros_like(x), [jnp.zeros(n, jnp.result_type(x)) for n in sizes]

    def update(size: Any, i: Any, g: Any, x: Any, m: Any, bounds: Any) -> tuple:
        axes = range(jnp.ndim(g))
        spread = (b.reshape([-1 if a == k else 1 for a in axes]) for k, b in enumerate(bounds))
        squares = functools.reduce(jnp.minimum, spread) + jnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        bounds = [
            jnp.max(squares, axis=tuple(a for a in axes if a != k), initial=0)
            for k in range(len(bounds))
        ]
        return x - size * m, m, bounds

    return _make_triple(step_size, slots, update)


# --- step sizes ---------------------------------------------------------------------------------


def make_schedule(scalar_or_schedule: float | Schedule) -> Schedule:
    """Return a schedule: a function of the step, or a constant as such a function.

    Args:
      scalar_or_schedule: a function of the step, which is returned unchanged, or a number.

    Returns:
      A function of the step.

    >>> make_schedule(0.5)(10)
    0.5
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if scalar_or_schedule is None or jnp.ndim(scalar_or_schedule) != 0:
        raise TypeError(
            "make_schedule: a step size must be a scalar or a function of the step; got "
            f"{scalar_or_schedule!r}."
        )
    return constant(scalar_or_schedule)


def constant(step_size: float) -> Schedule:
    """Make a schedule with the same step size for all steps.

    Args:
      step_size: the step size, a float.

    Returns:
      A function of the step.

    >>> constant(0.5)(10)
    0.5
    """
    return lambda i: step_size


def exponential_decay(step_size: float, decay_steps: float, decay_rate: float) -> Schedule:
    """Make a schedule of step sizes `step_size decay_rate^(i / decay_steps)`.

    Args:
      step_size: the first step size, a float.
      decay_steps: the number of steps after which the size is multiplied by `decay_rate`.
      decay_rate: a float.

    Returns:
      A function of the step.

    >>> exponential_decay(0.5, decay_steps=10, decay_rate=0.5)(20)
    0.125
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: float, decay_steps: float, decay_rate: float, staircase: bool = False
) -> Schedule:
    """Make a schedule of step sizes `step_size / (1 + decay_rate i / decay_steps)`.

    Args:
      step_size: the first step size, a float.
      decay_steps: a number of steps.
      decay_rate: a float.
      staircase: if True, the size changes only every `decay_steps` steps. The default is False.

    Returns:
      A function of the step.

    >>> inverse_time_decay(0.5, decay_steps=10, decay_rate=1)(10)
    0.25
    """

    def schedule(i: Any) -> Any:
        time = jnp.floor(i / decay_steps) if staircase else i / decay_steps
        return step_size / (1 + decay_rate * time)

    return schedule


def polynomial_decay(
    step_size: float, decay_steps: float, final_step_size: float, power: float = 1.0
) -> Schedule:
    """Make a schedule from `step_size` to `final_step_size` in `decay_steps` steps.

    The sizes between follow `(1 - i / decay_steps)^power`.

    Args:
      step_size: the first step size, a float.
      decay_steps: the number of steps.
      final_step_size: the step size from then on, a float.
      power: the exponent. The default is 1, a straight line.

    Returns:
      A function of the step.

    >>> print(polynomial_decay(0.5, decay_steps=10, final_step_size=0.25)(5))
    0.375
    """

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Make a schedule of step sizes that are constant between boundaries.

    Args:
      boundaries: the steps after which the size changes, in ascending order.
      values: the step sizes, one more than boundaries.

    Returns:
      A function of the step. It returns `values[k]` after k of the boundaries.

    >>> schedule = piecewise_constant([10, 20], [0.5, 0.25, 0.125])
    >>> print(schedule(10), schedule(11), schedule(100))
    0.5 0.25 0.125
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if boundaries.ndim != 1 or values.shape != (boundaries.size + 1,):
        raise ValueError(
            "piecewise_constant: values must be a sequence of one more than the boundaries; got "
            f"shapes {boundaries.shape} of boundaries, {values.shape} of values."
        )
    return lambda i: values[jnp.sum(i > boundaries)]


# --- gradients ----------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Any:
    """Compute the Euclidean norm of all numbers of a pytree.

    Args:
      tree: a pytree of arrays.

    Returns:
      A scalar.

    >>> print(l2_norm({"w": 3.0, "b": 4.0}))
    5.0
    """
    return jnp.sqrt(sum(jnp.vdot(x, x).real for x in pytrees.leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: float) -> Any:
    """Scale gradients down to a norm if their norm is larger.

    Large gradients would make steps that are too long.

    Args:
      grad_tree: a pytree of arrays.
      max_norm: the largest Euclidean norm, a positive number.

    Returns:
      A pytree of the same structure. All its arrays are scaled by one factor.

    >>> print(clip_grads({"w": 3.0, "b": 4.0}, 1.0)["w"])
    0.6
    """
    norm = l2_norm(grad_tree)
    scale = max_norm / jnp.maximum(norm, max_norm)  # exactly 1 where the norm is not larger
    return pytrees.tree_map(lambda g: g * scale.astype(jnp.result_type(g)), grad_tree)
