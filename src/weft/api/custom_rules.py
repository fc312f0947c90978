"""`custom_jvp` and `custom_vjp`: functions with derivative rules of their own.

This file has pytrees, arguments and checks. control/custom.py has the behaviour of such a call
under transformations. api/custom_gradient.py has functions that use these two.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.closures import Hoisted, find_closed_over, outlive_function, substitute
from weft.api.functions import FlatFun, as_tuple, avals_of, check_callable, value_error
from weft.api.structures import cut_structure, leaf_paths
from weft.control.custom import custom_jvp_p, custom_vjp_p
from weft.core.aval import ShapedArray, is_valid_value, typeof
from weft.core.primitive import Zero
from weft.core.ref import is_ref
from weft.core.source import boundary
from weft.core.trace import current
from weft.errors import PytreeError, RefError, ShapeError
from weft.options import x64_as, x64_cell
from weft.primitives.elementwise import add, stop_gradient_p
from weft.primitives.layout import convert, copy, zeros
from weft.primitives.varying import psum_invariant_p
from weft.pytrees import (
    PyTreeDef,
    find_mismatches,
    flatten,
    flatten_with_path,
    keystr,
    tree_map,
    unflatten,
)
from weft.util import Record, copy_names, find_global_name, fun_name, partition
from weft.xla.array import ArrayImpl, require_alive


def stop_gradient(x: Any) -> Any:
    """Return the values of a pytree as constants for differentiation.

    It is for quantities that a derivative should not go through: targets in reinforcement learning,
    the rounded value in a straight-through estimator, a scale that is only for numerical stability.

    Args:
      x: a pytree of arrays or numbers, of any dtype.

    Returns:
      A pytree of the same values, shapes and dtypes. Its tangents and cotangents are zero in every
      mode and order of differentiation.

    >>> from weft import grad
    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)

    A rounding with the derivative of the identity:

    >>> straight_through = lambda x: x + lax.stop_gradient(jnp.round(x) - x)
    >>> print(straight_through(1.7), weft.grad(straight_through)(1.7))
    2.0 1.0
    """

    def stop(leaf: Any) -> Any:
        kept = type(leaf) is ArrayImpl
        constant = kept or not dtypes.is_inexact(typeof(leaf, "stop_gradient").dtype)
        return require_alive(leaf) if constant else stop_gradient_p.apply(leaf)[0]

    return tree_map(stop, x)


# --- what rules see where zeros are symbolic ----------------------------------------------------


class SymbolicZero(Record):
    """A tangent or cotangent that is known to be zero and was not computed.

    Rules of custom derivatives receive it where they ask for symbolic zeros.

    Args:
      aval: the type of the zero, a `ShapedArray`. Its attributes `shape` and `dtype` are those of
        the zero.

    >>> from weft.custom_derivatives import zero_from_primal
    >>> zero_from_primal(jnp.ones(3), symbolic_zeros=True).shape
    (3,)
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """Return the zero tangent of a value."""
        return SymbolicZero(typeof(val).to_tangent())

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype", "ndim", "size", "weak_type"):
            return getattr(self.aval, name)
        raise AttributeError(f"SymbolicZero: has no attribute {name!r}. Hint: zeros of its shape.")

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


class CustomVJPPrimal(Record):
    """An argument of a forward rule of `custom_vjp` with `symbolic_zeros=True`.

    Args:
      value: the value of the argument.
      perturbed: True if a derivative with respect to it is being computed.

    >>> CustomVJPPrimal(jnp.ones(3), True).perturbed
    True
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value = value
        self.perturbed = perturbed


class GradAccum:
    """An accumulator of the cotangents of a value.

    `accum(x)` adds a cotangent, and `freeze()` returns the sum. This is the base class of
    `ValAccum`, which holds the sum, and of `NullAccum`, which ignores cotangents. A backward rule
    of `custom_vjp` receives accumulators if it is set with `defvjp_with_accums`.

    Args:
      aval: the type of the cotangents, a `ShapedArray`.

    >>> from weft.experimental.hijax import GradAccum, ValAccum
    >>> isinstance(ValAccum(weft.typeof(1.0)), GradAccum)
    True
    """

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def accum(self, x: Any) -> None:
        """Add a cotangent."""
        raise NotImplementedError(f"{type(self).__name__}: must define accum.")

    def freeze(self) -> Any:
        """Return the sum; a `Zero` if nothing was added."""
        return Zero(self.aval)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"


class NullAccum(GradAccum):
    """An accumulator that ignores cotangents, for a value whose cotangent is not needed.

    Args:
      aval: the type of the cotangents, a `ShapedArray`.

    >>> from weft.experimental.hijax import NullAccum
    >>> accum = NullAccum(weft.typeof(1.0))
    >>> accum.accum(2.0)
    >>> accum.freeze()
    Zero(f32[])
    """

    def accum(self, x: Any) -> None:
        """Forget a cotangent."""


class ValAccum(GradAccum):
    """An accumulator that holds the sum of the cotangents of a value.

    Symbolic zeros are not added. If no cotangent was added, `freeze()` returns a `Zero`.

    Args:
      aval: the type of the cotangents, a `ShapedArray`.
      val: the sum to start from, an array of that type. None, the default, is zero.

    >>> from weft.experimental.hijax import ValAccum
    >>> accum = ValAccum(weft.typeof(1.0))
    >>> accum.accum(2.0)
    >>> accum.accum(3.0)
    >>> print(accum.freeze())
    5.0
    """

    def __init__(self, aval: ShapedArray, val: Any = None):
        super().__init__(aval)
        self.val = val

    def accum(self, x: Any) -> None:
        """Add a cotangent."""
        if type(x) not in (Zero, SymbolicZero):
            self.val = x if self.val is None else add(self.val, x)

    def freeze(self) -> Any:
        """Return the sum; a `Zero` if nothing was added."""
        return Zero(self.aval) if self.val is None else self.val


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Return the zero tangents of a pytree.

    Args:
      val: a pytree of arrays.
      symbolic_zeros: if True, the leaves are `SymbolicZero`s. If False, the default, they are
        arrays.

    Returns:
      A pytree of the structure of `val`. The tangents of floats have their dtype, and tangents of
      integers and bools have the dtype float0.

    >>> print(zero_from_primal({"a": jnp.ones(2)}))
    {'a': Array([0., 0.], dtype=float32)}
    """
    zero = SymbolicZero.from_primal_value
    return tree_map(zero if symbolic_zeros else lambda leaf: zeros(zero(leaf).aval), val)


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Return the values of a pytree whose leaves are `CustomVJPPrimal`.

    Args:
      tree: a pytree whose leaves are `CustomVJPPrimal`.

    Returns:
      A pytree of the same structure, with the attribute `value` of each leaf.

    >>> custom_vjp_primal_tree_values([CustomVJPPrimal(1.0, True)])
    [1.0]
    """
    return tree_map(lambda p: p.value, tree, is_leaf=lambda x: type(x) is CustomVJPPrimal)


def as_symbolic(t: Any) -> Any:
    """A (co)tangent as a rule sees it where zeros are symbolic."""
    return SymbolicZero(t.aval) if type(t) is Zero else t


# --- arguments ----------------------------------------------------------------------------------


class ArgumentBinder:
    """Gives all arguments of a call by position, as rules take them, defaults filled in."""

    def __init__(self, fun: Callable):
        self.name = fun_name(fun)
        try:
            self.signature: inspect.Signature | None = inspect.signature(fun)
        except (TypeError, ValueError):  # of C, and does not tell
            self.signature = None
        kinds = {p.kind for p in self.signature.parameters.values()} if self.signature else set()
        ordinary = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}
        # with this many arguments by position there is nothing to do
        self.count = len(self.signature.parameters) if self.signature and ordinary else -1

    def __call__(self, args: tuple, kwargs: dict) -> tuple:
        if not kwargs and (len(args) == self.count or self.signature is None):
            return args
        if self.signature is None:
            raise TypeError(
                f"{self.name}: must have a signature to take arguments by name; "
                f"got {', '.join(kwargs)}. Hint: pass them by position."
            )
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{self.name}{self.signature}: {e}.") from None
        bound.apply_defaults()  # first: what follows a gap is by name until then
        if named := [name for name in kwargs if name in bound.kwargs]:
            raise TypeError(
                f"{self.name}: keyword-only arguments have no place in its rules; "
                f"got {', '.join(named)}. Hint: make them positional."
            )
        return bound.args

    def index(self, name: str) -> int | None:
        """Return the position of an argument; None if no argument has that name."""
        names = list(self.signature.parameters) if self.signature else []
        return names.index(name) if name in names else None


# --- the decorators -----------------------------------------------------------------------------


RULE_SETTERS = {"def_vmap", "defjvp", "defjvps", "defvjp"}


class RuledFunction:
    """A function with rules of its own; it is a method, and is pickled, where the function is."""

    def __init__(self, fun: Callable):
        check_callable(type(self).__name__, fun, wraps=True)
        copy_names(self, fun)
        self.fun = fun
        self.__name__ = fun_name(fun)
        self._positional = ArgumentBinder(fun)

    def __getattr__(self, name: str) -> Any:
        """Return what sets a rule of the function within, such as `def_vmap` of a `custom_vmap`."""
        if name in RULE_SETTERS and hasattr(self.fun, name):
            return getattr(self.fun, name)
        raise AttributeError(f"{type(self).__name__}: has no attribute {name!r}.")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return find_global_name(self) or super().__reduce_ex__(protocol)

    def __get__(self: Any, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__name__})"


class _CustomFunction(RuledFunction):
    """The base of both decorators: the rules, and the arguments without derivatives."""

    jvp: Callable | None = None
    fwd: Callable | None = None
    bwd: Callable | None = None
    symbolic_zeros = False
    vjp_symbolic_zeros = False
    optimize_remat = False
    accumulates = False  # whether bwd adds to accumulators in place of returning cotangents
    _missing: tuple[str, str]  # what a call needs, and the call that sets it

    def __init__(
        self,
        fun: Callable,
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ):
        super().__init__(fun)
        nums = as_tuple(nondiff_argnums)
        if not all(isinstance(i, Integral) for i in nums):
            raise TypeError(f"{type(self).__name__}: nondiff_argnums must be integers; got {nums}.")
        for name in as_tuple(nondiff_argnames):
            place = self._positional.index(name)
            if place is None:
                raise ValueError(
                    f"{type(self).__name__}: nondiff_argnames must name arguments of "
                    f"{self.__name__}; got {name!r}."
                )
            nums += (place,)
        self.nondiff_argnums = tuple(sorted(set(nums)))

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Set the rule of forward mode, and return it, so that this can be used as a decorator.

        Args:
          jvp: a function `jvp(*nondiff_args, primals, tangents)`. `primals` and `tangents` are
            tuples with one entry for each argument that is differentiated. It returns a pair
            `(output, output_tangent)`, two pytrees of one structure, and must be linear in the
            tangents.
          symbolic_zeros: if True, the rule gets a `SymbolicZero` for each tangent that is zero. By
            default it gets arrays of zeros.

        Returns:
          The function `jvp`.

        Raises:
          TypeError: `jvp` is not a function.

        >>> square = weft.custom_jvp(lambda x: x * x)
        >>> _ = square.defjvp(lambda primals, ts: (primals[0] ** 2, 2 * primals[0] * ts[0]))
        >>> print(weft.grad(square)(3.0))
        6.0
        """
        check_callable("defjvp", jvp)
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defvjp(
        self,
        fwd: Callable,
        bwd: Callable,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules of reverse mode.

        Args:
          fwd: a function of all arguments of the function, in their order. It returns a pair
            `(output, residuals)`; the residuals are any pytree of arrays.
          bwd: a function `bwd(*nondiff_args, residuals, ct)`, where `ct` is a cotangent like the
            output. It returns a tuple with a cotangent for each argument that is differentiated. A
            cotangent has the structure and shapes of its argument, or is None for zero.
          symbolic_zeros: if True, fwd gets a `CustomVJPPrimal` for each array of an argument that
            is differentiated, and bwd a `SymbolicZero` for each cotangent that is zero. By default
            they get arrays.
          optimize_remat: if True, `checkpoint` calls the function instead of fwd where it needs no
            residuals. It is for a fwd that XLA cannot simplify, such as one that calls a kernel.

        Returns:
          None.

        Raises:
          TypeError: `fwd` or `bwd` is not a function.

        >>> square = weft.custom_vjp(lambda x: x * x)
        >>> square.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))
        >>> print(weft.grad(square)(3.0))
        6.0
        """
        check_callable("defvjp", fwd)
        check_callable("defvjp", bwd)
        self.fwd, self.bwd, self.accumulates = fwd, bwd, False
        self.vjp_symbolic_zeros, self.optimize_remat = symbolic_zeros, optimize_remat

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None and self.fwd is None:
            name, (what, setter) = self.__name__, self._missing
            raise AttributeError(
                f"{type(self).__name__}: the {what} of {name} must be set before a call. "
                f"Hint: {name}.{setter}."
            )
        whole = self._positional(args, kwargs)
        nondiff = {i: whole[i] for i in self._nondiff(len(whole))}
        others = tuple(x for i, x in enumerate(whole) if i not in nondiff)
        leaves, in_tree = flatten((others, {}))
        call = _Call(self, len(whole), nondiff, in_tree, leaves)
        outs = call.bind(leaves)
        return unflatten(call.out_tree, outs)

    def _nondiff(self, count: int) -> list[int]:
        """The positions without a derivative among `count` arguments."""
        for i in self.nondiff_argnums:
            if not -count <= i < count:
                raise ValueError(
                    f"{type(self).__name__}: nondiff_argnums must be positions of arguments of "
                    f"{self.__name__}, called with {count}; got {i}."
                )
        return sorted({i % count for i in self.nondiff_argnums})


class custom_jvp(_CustomFunction):
    """A function with a hand-written derivative in forward mode.

    Use it where the derivative that follows from the operations is wrong, unstable or slow: at a
    removable singularity, for an approximation, around a callback. Reverse mode follows from the
    rule by transposition. If `defvjp` is called too, as for `custom_vjp`, reverse mode uses its
    rules instead.

    The rule is set by `defjvp`: it takes `(*nondiff_args, primals, tangents)`, tuples with one
    entry for each other argument, and returns `(output, output_tangent)`. It must be linear in the
    tangents. `defjvps` sets a rule for each argument. Higher derivatives differentiate the rule.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays. Keyword arguments are
        passed to the rule by position.
      nondiff_argnums: an int or a sequence of ints, the positions of arguments that are not
        differentiated, such as functions and options. They need not be arrays; the rule gets them
        first, unchanged. By default there are none.
      nondiff_argnames: the names of such arguments, a str or a sequence of strs.

    Returns:
      A callable with the signature of `fun`, and the methods `defjvp`, `defjvps` and `defvjp`.

    Raises:
      AttributeError: the function is called before its rule is set.
      TypeError: `nondiff_argnums` are not integers.
      ValueError: `nondiff_argnames` names an argument that `fun` does not have.

    >>> from weft import grad
    >>> @custom_jvp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return f(x), 10.0 * t
    >>> print(grad(f)(1.0))
    10.0

    The derivative of log(1 + exp(x)) would be nan for large x, as inf / inf:

    >>> @weft.custom_jvp
    ... def softplus(x):
    ...     return jnp.log(1 + jnp.exp(x))
    >>> softplus.defjvps(lambda t, out, x: t * (1 - 1 / (1 + jnp.exp(x))))
    >>> print(weft.grad(softplus)(100.0))
    1.0

    An argument that is a function is not differentiated:

    >>> from functools import partial
    >>> @partial(weft.custom_jvp, nondiff_argnums=0)
    ... def apply(f, x):
    ...     return f(x)
    >>> @apply.defjvp
    ... def apply_jvp(f, primals, tangents):
    ...     return f(*primals), tangents[0]
    >>> print(weft.grad(lambda x: apply(jnp.exp, x))(2.0))
    1.0
    """

    _missing = ("derivative rule", "defjvp(rule)")

    def defjvps(self, *jvps: Callable | None) -> None:
        """Set the rule of forward mode argument by argument.

        The tangent of the output is the sum of the results of the rules. The function must have no
        `nondiff_argnums`.

        Args:
          *jvps: a function `rule(t, out, *primals)` for each argument, where `t` is the tangent of
            the argument and `out` the output. It returns the part of the output's tangent that
            comes from the argument. None stands for a rule that returns zero.

        Returns:
          None.

        Raises:
          TypeError: the function has `nondiff_argnums`; a rule is not a function or None.
          ValueError: on differentiation, if there is not one rule for each argument.

        >>> product = weft.custom_jvp(lambda x, y: x * y)
        >>> product.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: x * t)
        >>> print(weft.grad(product, argnums=(0, 1))(2.0, 3.0)[1])
        2.0
        """
        if self.nondiff_argnums:
            raise TypeError(
                f"defjvps: the function must have no nondiff_argnums; got {self.nondiff_argnums}. "
                "Hint: use defjvp."
            )
        for rule in jvps:
            if rule is not None:
                check_callable("defjvps", rule)

        def jvp(primals: tuple, tangents: tuple) -> tuple:
            if len(jvps) != len(primals):
                raise ValueError(
                    f"defjvps: there must be one rule for each argument of {self.__name__}; "
                    f"got {len(jvps)} for {len(primals)}. Hint: None for an argument without one."
                )
            out = self(*primals)
            dots = [
                rule(t, out, *primals)
                for rule, t in zip(jvps, tangents, strict=True)
                if rule is not None
            ]
            if not dots:
                return out, tree_map(zero_from_primal, out)
            return out, functools.reduce(lambda a, b: tree_map(add_tangents, a, b), dots)

        self.defjvp(jvp)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents of one value."""
    return x if typeof(x).dtype == dtypes.float0 else add(x, y)


class custom_vjp(_CustomFunction):
    """A function with a hand-written pullback, for reverse mode.

    Use it to clip or change gradients, to save other residuals than weft would, for implicit
    differentiation, or around code that weft cannot differentiate.

    The rules are set by `defvjp(fwd, bwd)`. `fwd` takes the function's arguments and returns
    `(output, residuals)`. `bwd` takes `(*nondiff_args, residuals, ct)` and returns a tuple with a
    cotangent, or None for zero, for each argument that is not in `nondiff_argnums`. Forward mode
    raises TypeError, unless `defjvp` was called too, as for `custom_jvp`.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays. Keyword arguments are
        passed to the rules by position.
      nondiff_argnums: an int or a sequence of ints, the positions of arguments that are not
        differentiated, such as functions and options. They need not be arrays. `fwd` gets them in
        their places, `bwd` first, unchanged; it returns no cotangents of them. Arrays that are
        traced should be ordinary arguments, with None as their cotangent. By default there are
        none.
      nondiff_argnames: the names of such arguments, a str or a sequence of strs.

    Returns:
      A callable with the signature of `fun`, and the methods `defvjp`, `defjvp`, `defremat` and
      `defvjp_with_accums`.

    Raises:
      AttributeError: the function is called before its rules are set.
      TypeError: `nondiff_argnums` are not integers.
      ValueError: `nondiff_argnames` names an argument that `fun` does not have.
      PytreeError, ShapeError: on differentiation, if `bwd` returns a cotangent of another structure
        or shape than its argument.

    >>> from weft import grad
    >>> @custom_vjp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 10.0,))
    >>> print(grad(f)(1.0))
    10.0

    Clip the gradient that flows through a value. The bound is a Python number, which is not
    differentiated, so `bwd` gets it first:

    >>> from functools import partial
    >>> @partial(weft.custom_vjp, nondiff_argnums=1)
    ... def clip_gradient(x, bound):
    ...     return x
    >>> def fwd(x, bound):
    ...     return x, None
    >>> def bwd(bound, residuals, ct):
    ...     return (jnp.clip(ct, -bound, bound),)
    >>> clip_gradient.defvjp(fwd, bwd)
    >>> print(weft.grad(lambda x: 5.0 * clip_gradient(x, 1.0))(2.0))
    1.0
    """

    _missing = ("pullback", "defvjp(fwd, bwd)")

    def defremat(self, fwd: Callable, rem: Callable, bwd: Callable) -> None:
        """Set rules of reverse mode that save little: what bwd needs is computed when it is needed.

        Args:
          fwd: takes the function's arguments and returns `(output, saved)`.
          rem: takes `(saved, *args)` and returns `(output, residuals)`; called by the pullback.
          bwd: takes `(*nondiff_args, residuals, ct)`, as in `defvjp`.

        >>> from weft import grad
        >>> f = custom_vjp(jnp.sin)
        >>> f.defremat(
        ...     lambda x: (jnp.sin(x), ()),
        ...     lambda saved, x: (jnp.sin(x), jnp.cos(x)),
        ...     lambda cos, ct: (cos * ct,))
        >>> print(grad(f)(0.0))
        1.0
        """
        for rule in (fwd, rem, bwd):
            check_callable("defremat", rule)
        nondiff = len(self.nondiff_argnums)

        def save(*args: Any) -> tuple:
            out, saved = fwd(*args)
            fixed = {i % len(args) for i in self.nondiff_argnums}
            return out, (saved, [None if i in fixed else x for i, x in enumerate(args)])

        def pull(*given: Any) -> tuple:
            (saved, args), ct = given[nondiff:]
            static = iter(given[:nondiff])
            fixed = {i % len(args) for i in self.nondiff_argnums}
            whole = [next(static) if i in fixed else x for i, x in enumerate(args)]
            return bwd(*given[:nondiff], rem(saved, *whole)[1], ct)

        self.defvjp(save, pull)

    def defvjp_with_accums(
        self,
        fwd: Callable,
        bwd: Callable,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules of reverse mode; bwd adds cotangents to accumulators of the arguments.

        Args:
          fwd: as in `defvjp`.
          bwd: takes `(*nondiff_args, residuals, ct, *accums)`, where `accums` has a pytree for each
            other argument with a `ValAccum` for each leaf, whose `accum(x)` adds x to its
            cotangent. What it returns is ignored.
          symbolic_zeros, optimize_remat: as in `defvjp`.
        """
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat)
        self.accumulates = True


def name_like(fun: Callable, like: Callable) -> Callable:
    """A function under the name of another, for the printed program."""
    out = functools.partial(fun)
    out.__name__ = fun_name(like)  # type: ignore[attr-defined]
    return out


# --- one call -----------------------------------------------------------------------------------


class _Call:
    """A call: its function and rules on flat lists, and the structures that they find."""

    def __init__(
        self, owner: _CustomFunction, count: int, nondiff: dict, in_tree: PyTreeDef, leaves: list
    ):
        self.owner = owner
        self.name = owner.__name__
        self.count = count  # of all arguments; those without a derivative are `nondiff`
        self.nondiff = nondiff
        self.in_tree = in_tree
        given = self.call_chosen if self.nondiff else owner.fun
        self.in_avals = avals_of(self.name, leaves, in_tree, given)
        self.flat = FlatFun(given, in_tree, self.name)
        self.x64 = x64_cell.value
        self.out_tree: PyTreeDef | None = None
        self.out_avals: Sequence[ShapedArray] | None = None  # known once the function ran

    def call_chosen(self, *others: Any) -> Any:
        """The function of the arguments that have a derivative."""
        return self.owner.fun(*self.merge_arguments(others))

    def merge_arguments(self, others: Sequence[Any]) -> list:
        """All arguments, from those that have a derivative."""
        rest = iter(others)
        return [self.nondiff[i] if i in self.nondiff else next(rest) for i in range(self.count)]

    def bind(self, leaves: list) -> list:
        """Apply the primitive; what the function closes over leads, then what the rules do.

        A reference that both close over is an operand once, among those of the rules. The leaves
        are not kept, for programs hold this object.
        """
        owner, nondiff = self.owner, list(self.nondiff.values())
        self.closed = find_closed_over(owner.bwd, nondiff)
        self.count_bwd = len(self.closed)
        seen = {*map(id, self.closed)}
        self.closed += [x for x in find_closed_over(owner.jvp, owner.fwd) if id(x) not in seen]
        consts = find_closed_over(owner.fun, nondiff)
        by_rules = {id(x) for x in self.closed if is_ref(x)}
        consts, self.shared = partition([id(x) in by_rules for x in consts], consts)
        params = {
            "name": self.name,
            "call_jaxpr": Hoisted(self.call, consts) if consts else self.call,
            "jvp": None if owner.jvp is None else name_like(self.jvp, owner.jvp),
            "num_consts": len(consts),
        }
        operands = (*consts, *self.closed, *leaves)
        if owner.fwd is None:
            return custom_jvp_p.apply(*operands, symbolic_zeros=owner.symbolic_zeros, **params)
        return custom_vjp_p.apply(
            *operands,
            fwd=name_like(self.fwd, owner.fwd),
            symbolic_zeros=owner.vjp_symbolic_zeros,
            optimize_remat=owner.optimize_remat,
            **params,
        )

    def call(self, *values: Any) -> list:
        """The function's results."""
        given = dict(zip(map(id, self.closed), values, strict=False))
        shared = [given[id(x)] for x in self.shared]
        outs = substitute(self.flat, self.shared, shared, values[len(self.closed) :])
        self.out_tree, self.out_avals = self.flat.out_tree, [typeof(x) for x in outs]
        return outs

    def jvp(self, primals: Sequence, tangents: Sequence) -> tuple[list, list]:
        """Results and tangents by the forward rule."""
        n = len(self.closed)
        symbolic = self.owner.symbolic_zeros

        def rule(*leaves: Any) -> tuple[list, list]:
            given = unflatten(self.in_tree, leaves)[0]
            moves = [as_symbolic(t) if symbolic else t for t in tangents[n:]]
            dots = unflatten(self.in_tree, moves)[0]
            pair = self.owner.jvp(*self.nondiff.values(), given, dots)  # type: ignore[misc]
            return self.check_pair(pair)

        if not symbolic:
            tangents = [zeros(t.aval) if type(t) is Zero else t for t in tangents]
        with x64_as(self.x64):
            return substitute(rule, self.closed, primals[:n], primals[n:])

    def fwd(self, primals: Sequence, perturbed: Sequence[bool]) -> tuple[list, list, Callable]:
        """Results, residuals and the pullback by the rules of reverse mode.

        Of the values that rules close over, residuals are those that bwd uses.
        """
        n, k = len(self.closed), self.count_bwd
        trees: list = []

        def rule(*leaves: Any) -> tuple[list, list]:
            if self.owner.vjp_symbolic_zeros:
                leaves = tuple(map(CustomVJPPrimal, leaves, perturbed[n:]))
            given = self.merge_arguments(unflatten(self.in_tree, leaves)[0])
            pair = self.owner.fwd(*given)  # type: ignore[misc]
            outs, residuals, res_tree = self.check_fwd(pair)
            self.check_residual_refs(residuals, leaves)
            trees.append(res_tree)
            return outs, residuals

        def pull(held: Sequence, cts: Sequence) -> list:
            res_tree, ct_tree = trees[0], self.out_tree

            def back(*leaves: Any) -> list:
                residuals = unflatten(res_tree, leaves)
                ct = unflatten(ct_tree, self.show_cts(cts))
                accums: list[ValAccum] = []
                given = (*self.nondiff.values(), residuals, ct)
                if self.owner.accumulates:
                    accums = [ValAccum(a.to_tangent()) for a in self.in_avals]
                    given += tuple(unflatten(self.in_tree, accums)[0])
                grads = self.owner.bwd(*given)  # type: ignore[misc]
                if self.owner.accumulates:
                    grads = unflatten(self.in_tree, [x.val for x in accums])[0]
                return self.check_bwd(grads)

            for r in filter(is_ref, held):
                outlive_function(r)
            with x64_as(self.x64):
                grads = substitute(back, self.closed[:k], held[:k], held[k:])
            return [*still, *grads]

        closed = list(primals[:n])
        still = [Zero(typeof(x).to_tangent()) for x in closed]
        with x64_as(self.x64):
            outs, residuals = substitute(rule, self.closed, closed, primals[n:])
        return outs, [*closed[:k], *residuals], pull

    def show_cts(self, cts: Sequence) -> list:
        """Cotangents of the results as bwd takes them: arrays, also where they are numbers."""
        if self.owner.vjp_symbolic_zeros:
            return [*map(as_symbolic, cts)]
        cts = [zeros(t.aval) if type(t) is Zero else t for t in cts]
        return [copy(t) if isinstance(t, float | complex | np.inexact) else t for t in cts]

    # -- checks ------------------------------------------------------------------------------------

    def check_pair(self, pair: Any) -> tuple[list, list]:
        """Outputs and tangents of the forward rule, flat, with structures and types that fit."""
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"custom_jvp: the rule of {self.name} must return a pair (output, tangent); "
                f"got {pair!r}."
            )
        outs = self.check_outputs("custom_jvp: the rule", pair[0])
        dots, tree = flatten(pair[1])
        if tree != self.out_tree:
            raise PytreeError(
                f"custom_jvp: the rule of {self.name} must return an output and a tangent of one "
                f"structure; got {self.out_tree} and {tree}."
            )
        return outs, [self.check_tangent(i, x, t) for i, (x, t) in enumerate(zip(outs, dots))]

    def check_tangent(self, i: int, out: Any, t: Any) -> Any:
        """A tangent whose type fits its output."""
        want = typeof(out).to_tangent()
        if type(t) is SymbolicZero or want.dtype == dtypes.float0:
            return Zero(want)
        got = typeof(t)
        if got.shape != want.shape or (got.dtype != want.dtype and not got.weak_type):
            raise ShapeError(
                f"custom_jvp: a tangent from the rule of {self.name} must have the type of its "
                f"output; got {got} for an output {typeof(out)}{self.output_path(i)}."
            )
        axes = more_varying(got, want)
        if axes:
            raise ValueError(
                f"custom_jvp: a tangent from the rule of {self.name} must not differ between "
                f"devices where its output does not; got {got} for an output {typeof(out)}"
                f"{self.output_path(i)}. Hint: lax.psum(t, {axes[0]!r}), if the output is a psum."
            )
        return t if got.dtype == want.dtype else convert(t, want.dtype)

    def check_fwd(self, pair: Any) -> tuple[list, list, PyTreeDef]:
        """Outputs and residuals, flat, and the structure of the residuals."""
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"custom_vjp: fwd of {self.name} must return a pair (output, residuals); "
                f"got {type(pair).__name__}."
            )
        outs = self.check_outputs("custom_vjp: fwd", pair[0])
        residuals, tree = flatten(pair[1])
        for path, x in flatten_with_path(pair[1])[0]:
            if not is_valid_value(x):
                where = f"residuals{keystr(path)} of {self.name}"
                raise value_error("custom_vjp", "residuals", where, x)
        return outs, residuals, tree

    def check_residual_refs(self, residuals: Sequence, leaves: Sequence) -> None:
        """Raise an error for a residual that is a reference which fwd made: fwd ends it."""
        for x in filter(is_ref, residuals):
            home = getattr(x, "owner", None) or x.trace
            given = any(x is y for y in (*leaves, *self.closed))
            if home is current.trace and home.parent is not None and not given:
                raise RefError(
                    f"custom_vjp: residuals of {self.name} must hold no reference that fwd made; "
                    f"got a {typeof(x)}. Hint: return r[...], and make a reference of it in bwd."
                )

    def check_outputs(self, who: str, out: Any) -> list:
        """The outputs of a rule, flat; they must be like the function's where those are known."""
        outs, tree = flatten(out)
        want, avals = self.flat.out_tree, self.out_avals
        if want is not None and tree != want:
            raise PytreeError(
                f"{who} of {self.name} must return an output of the function's structure; "
                f"got {tree} where the function gives {want}."
            )
        self.out_tree = tree
        types: Sequence = avals or [None] * len(outs)
        for i, (x, a) in enumerate(zip(outs, types, strict=True)):
            if not is_valid_value(x):
                raise value_error(
                    who, "results", f"the output{self.output_path(i)} of {self.name}", x
                )
            b = typeof(x)
            if a is not None and (a.shape != b.shape or a.dtype != b.dtype):
                raise ShapeError(
                    f"{who} of {self.name} must return an output of the function's type; "
                    f"got {b} where the function gives {a}{self.output_path(i)}."
                )
        return outs

    def output_path(self, i: int) -> str:
        """The place of an output leaf, for errors; empty where the output is one array."""
        name = keystr(leaf_paths(self.out_tree)[i])
        return f" at output{name}" if name else ""

    def argument_path(self, i: int) -> str:
        """The place of an argument's leaf, for errors: `argument 0['w']`."""
        _, position, *rest = leaf_paths(self.in_tree)[i]
        return f"argument {position.idx}{keystr(tuple(rest))}"

    def check_bwd(self, grads: Any) -> list:
        """Cotangents of the arguments, flat, with structures and types that fit."""
        trees = self.in_tree.children()[0].children()
        if not isinstance(grads, tuple | list) or len(grads) != len(trees):
            got = f"{len(grads)}" if isinstance(grads, tuple | list) else type(grads).__name__
            raise PytreeError(
                f"custom_vjp: bwd of {self.name} must return a tuple with one cotangent for each "
                f"of {len(trees)} arguments; got {got}."
            )
        out: list = []
        avals = enumerate(self.in_avals)
        for i, (g, tree) in enumerate(zip(grads, trees, strict=True)):
            for x, count in self.split_ct(g, tree, i):
                out += [self.check_ct(x, *next(avals)) for _ in range(count)]
        return out

    def split_ct(self, ct: Any, tree: PyTreeDef, position: int) -> list[tuple[Any, int]]:
        """The leaves of a cotangent, each with how many it is for: a prefix; None is for zeros."""
        leaves, given = flatten(ct)
        if given == tree:
            return [(x, 1) for x in leaves]
        leaves, given = flatten(ct, lambda x: x is None)
        below = cut_structure(given, tree)
        if below is None:
            apart = next(find_mismatches(tree, flatten(ct)[1])).between(
                f"argument {position}", "its cotangent"
            )
            raise PytreeError(
                f"custom_vjp: bwd of {self.name} must return a cotangent of the argument's "
                f"structure; got {apart}."
            )
        return [(x, b.num_leaves) for x, b in zip(leaves, below, strict=True)]

    def check_ct(self, ct: Any, i: int, aval: ShapedArray) -> Any:
        """A cotangent whose type fits its argument's."""
        want = aval.to_tangent()
        if type(ct) is SymbolicZero or want.dtype == dtypes.float0:
            return Zero(want)
        # as with JAX, zeros reach the rule of what made the argument, which may note them
        ct = zeros(want) if ct is None else ct
        got = typeof(ct)
        if (
            got.shape != want.shape
            or (got.dtype.kind == "V" and got.dtype != want.dtype)  # narrow floats are such too
            or (got.dtype.kind == "c" and want.dtype.kind != "c")
        ):
            raise ShapeError(
                f"custom_vjp: bwd of {self.name} must return a cotangent of the argument's type; "
                f"got {got} for {self.argument_path(i)}, which is {aval}."
            )
        if axes := more_varying(got, want):
            # devices that share an argument have each given their part
            (ct,) = psum_invariant_p.apply(ct, axes=axes)
        if want.varying is not None:
            ct = want.varying.cast(current.trace, ct)
        return ct if got.dtype == want.dtype else convert(ct, want.dtype)


def more_varying(got: ShapedArray, want: ShapedArray) -> tuple:
    """Return the mesh axes along which values of type `got` vary, and values of `want` do not."""
    fixed = () if want.varying is None else want.varying.names
    return () if got.varying is None else tuple(n for n in got.varying.names if n not in fixed)
