"""`custom_jvp` and `custom_vjp`: functions that bring their own derivative.

Pytrees, arguments and checks are here; what a transformation does with such a call is
control/custom.py.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from weft import dtypes
from weft.control.custom import custom_jvp_p, custom_vjp_p, stop_gradient_p
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Zero
from weft.core.source import boundary
from weft.errors import PytreeError, ShapeError
from weft.flat import FlatFun, as_tuple, avals_of, check_callable
from weft.primitives.layout import instantiate, zeros
from weft.pytrees import PyTreeDef, flatten, tree_map, unflatten
from weft.util import fun_name

__all__ = ["custom_jvp", "custom_vjp", "stop_gradient"]


def stop_gradient(x: Any) -> Any:
    """A pytree of values as it is, with derivatives of zero.

    >>> from weft import grad
    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return tree_map(stop_one, x)


def stop_one(x: Any) -> Any:
    """A leaf whose derivative is zero; what has none is as it was."""
    return stop_gradient_p.bind(x)[0] if dtypes.is_inexact(typeof(x).dtype) else x


class _CustomFunction:
    """What both decorators share: the function, and which arguments have no derivative."""

    def __init__(
        self,
        fun: Callable,
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ):
        check_callable(type(self).__name__, fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.__name__ = fun_name(fun)
        try:
            self._signature: inspect.Signature | None = inspect.signature(fun)
        except (TypeError, ValueError):
            self._signature = None
        nums = as_tuple(nondiff_argnums)
        if nondiff_argnames:
            if self._signature is None:
                raise ValueError(f"{self.__name__}: nondiff_argnames needs a signature; got none.")
            order = list(self._signature.parameters)
            nums += tuple(order.index(n) for n in as_tuple(nondiff_argnames))
        self.nondiff_argnums = tuple(sorted(set(nums)))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _positional(self, args: tuple, kwargs: dict) -> tuple:
        """All arguments by position, defaults filled in."""
        if self._signature is None:
            return args
        bound = self._signature.bind(*args, **kwargs)
        if bound.kwargs:
            raise TypeError(
                f"{self.__name__}: keyword-only arguments have no derivative; "
                f"got {', '.join(bound.kwargs)}. Hint: make them positional."
            )
        bound.apply_defaults()
        return bound.args

    def _split(self, args: tuple) -> tuple[list, tuple, Callable]:
        """Arguments without a derivative, the others, and the function of those."""
        fixed = {i % len(args): args[i % len(args)] for i in self.nondiff_argnums}
        others = tuple(x for i, x in enumerate(args) if i not in fixed)

        def fun(*given: Any) -> Any:
            rest = iter(given)
            return self.fun(*[fixed[i] if i in fixed else next(rest) for i in range(len(args))])

        fun.__name__ = self.__name__
        return [fixed[i] for i in sorted(fixed)], others, fun if fixed else self.fun


class custom_jvp(_CustomFunction):
    """A function with a hand-written forward derivative, from which reverse mode follows.

    Args:
      fun: the function.
      nondiff_argnums: arguments the rule takes first, as they are.

    The rule given to `defjvp` takes `(*nondiff_args, primals, tangents)`, tuples with one entry for
    each other argument, and returns `(output, output tangent)`; it must be linear in the tangents.

    >>> import weft.numpy as jnp
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
    """

    jvp: Callable | None = None
    symbolic_zeros = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Set the derivative rule; returns it, so that it can be used as a decorator."""
        check_callable("defjvp", jvp)
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Set the rule argument by argument: `jvps[k](t, out, *primals)`; None for zero."""
        if self.nondiff_argnums:
            raise TypeError(
                f"defjvps: the function must have no nondiff_argnums; got {self.nondiff_argnums}. "
                "Hint: use defjvp."
            )

        def jvp(primals: tuple, tangents: tuple) -> tuple:
            out = self(*primals)
            dots = [
                rule(t, out, *primals)
                for rule, t in zip(jvps, tangents, strict=True)
                if rule is not None
            ]
            zero = tree_map(lambda x: zeros(typeof(x).to_tangent()), out)
            return out, functools.reduce(
                lambda a, b: tree_map(lambda x, y: x + y, a, b), dots
            ) if dots else zero

        self.defjvp(jvp)

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise AttributeError(
                f"custom_jvp: the derivative rule of {self.__name__} must be set before a call. "
                f"Hint: {self.__name__}.defjvp(rule)."
            )
        nondiff, others, fun = self._split(self._positional(args, kwargs))
        leaves, in_tree = flatten((others, {}))
        flat = FlatFun(fun, in_tree, self.__name__)
        avals_of(self.__name__, leaves, in_tree, fun)
        rule = self.jvp
        trees: list = []  # of the rule's result, where the rule ran instead of the function

        def flat_jvp(*values: Any) -> list:
            half = len(values) // 2
            primals = unflatten(in_tree, values[:half])[0]
            tangents = unflatten(in_tree, values[half:])[0]
            pair = rule(*nondiff, primals, tangents)
            return checked_pair(self.__name__, pair, flat.out_tree, trees)

        outs = custom_jvp_p.bind(
            *leaves,
            name=self.__name__,
            call_jaxpr=flat,
            jvp=flat_jvp,
            num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
        )
        return unflatten(trees[-1] if trees else flat.out_tree, outs)


def checked_pair(name: str, pair: Any, out_tree: PyTreeDef | None, trees: list) -> list:
    """Outputs and tangents of a rule, flat, with structures and types that fit."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(
            f"custom_jvp: the rule of {name} must return a pair (output, tangent); got {pair!r}."
        )
    outs, tree = flatten(pair[0])
    dots, dot_tree = flatten(pair[1])
    if tree != dot_tree:
        raise PytreeError(
            f"custom_jvp: the rule of {name} must return an output and a tangent of one "
            f"structure; got {tree} and {dot_tree}."
        )
    if out_tree is not None and tree != out_tree:
        raise PytreeError(
            f"custom_jvp: the rule of {name} must return an output of the function's structure; "
            f"got {tree} where the function gives {out_tree}."
        )
    checked = []
    for x, t in zip(outs, dots, strict=True):
        want = typeof(x).to_tangent()
        got = typeof(t)
        if got.shape != want.shape or (got.dtype != want.dtype and not got.weak_type):
            raise ShapeError(
                f"custom_jvp: a tangent from the rule of {name} must have the type of its output; "
                f"got {got} for an output {typeof(x)}."
            )
        checked.append(zeros(want) if want.dtype == dtypes.float0 else t)
    trees.append(tree)
    return [*outs, *checked]


class custom_vjp(_CustomFunction):
    """A function with a hand-written pullback, for reverse mode.

    Args:
      fun: the function.
      nondiff_argnums: arguments that have no derivative; `bwd` takes them first.

    `defvjp(fwd, bwd)`: fwd takes the function's arguments and returns `(output, residuals)`; bwd
    takes `(*nondiff_args, residuals, ct)` and returns a tuple with a cotangent (or None, for zero)
    for each other argument.

    >>> import weft.numpy as jnp
    >>> from weft import grad
    >>> @custom_vjp
    ... def f(x):
    ...     return jnp.sin(x)
    >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 10.0,))
    >>> print(grad(f)(1.0))
    10.0
    """

    fwd: Callable | None = None
    bwd: Callable | None = None

    def defvjp(
        self,
        fwd: Callable,
        bwd: Callable,
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the forward pass that leaves residuals, and the pullback."""
        check_callable("defvjp", fwd)
        check_callable("defvjp", bwd)
        self.fwd, self.bwd = fwd, bwd

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"custom_vjp: the pullback of {self.__name__} must be set before a call. "
                f"Hint: {self.__name__}.defvjp(fwd, bwd)."
            )
        whole = self._positional(args, kwargs)
        nondiff, others, fun = self._split(whole)
        leaves, in_tree = flatten((others, {}))
        flat = FlatFun(fun, in_tree, self.__name__)
        in_avals = avals_of(self.__name__, leaves, in_tree, fun)
        rule = _Pullback(self, whole, nondiff, in_tree, in_avals, flat)
        outs = custom_vjp_p.bind(
            *leaves,
            name=self.__name__,
            call_jaxpr=flat,
            fwd=rule.flat_fwd,
            bwd=rule.flat_bwd,
            num_consts=0,
            symbolic_zeros=False,
        )
        return unflatten(rule.out_tree or flat.out_tree, outs)


class _Pullback:
    """The rules of one call, flat; the structure of residuals is known once fwd has run."""

    def __init__(
        self,
        owner: custom_vjp,
        whole: tuple,
        nondiff: list,
        in_tree: PyTreeDef,
        in_avals: Sequence[ShapedArray],
        flat: FlatFun,
    ):
        self.owner = owner
        self.whole = whole
        self.nondiff = nondiff
        self.in_tree = in_tree
        self.in_avals = in_avals
        self.flat = flat
        self.out_tree: Any = None
        self.res_tree: Any = None

    def flat_fwd(self, *values: Any) -> tuple[list, list]:
        """Outputs and residuals."""
        name = self.owner.__name__
        given = iter(unflatten(self.in_tree, values)[0])
        fixed = {i % len(self.whole) for i in self.owner.nondiff_argnums}
        args = [x if i in fixed else next(given) for i, x in enumerate(self.whole)]
        pair = self.owner.fwd(*args)  # type: ignore[misc]
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"custom_vjp: fwd of {name} must return a pair (output, residuals); "
                f"got {type(pair).__name__}."
            )
        outs, self.out_tree = flatten(pair[0])
        residuals, self.res_tree = flatten(pair[1])
        if self.flat.out_tree is not None and self.out_tree != self.flat.out_tree:
            raise PytreeError(
                f"custom_vjp: fwd of {name} must return an output of the function's structure; "
                f"got {self.out_tree} where the function gives {self.flat.out_tree}."
            )
        return outs, residuals

    def flat_bwd(self, *values: Any) -> list:
        """Cotangents of the primals."""
        name = self.owner.__name__
        n = self.res_tree.num_leaves
        residuals = unflatten(self.res_tree, values[:n])
        ct = unflatten(self.out_tree, values[n:])
        grads = self.owner.bwd(*self.nondiff, residuals, ct)  # type: ignore[misc]
        others = self.in_tree.children()[0].children()
        if not isinstance(grads, tuple | list) or len(grads) != len(others):
            got = f"{len(grads)}" if isinstance(grads, tuple | list) else type(grads).__name__
            raise PytreeError(
                f"custom_vjp: bwd of {name} must return a tuple with one cotangent for each of "
                f"{len(others)} arguments; got {got}."
            )
        out: list = []
        avals = iter(self.in_avals)
        for i, (g, tree) in enumerate(zip(grads, others, strict=True)):
            for x, shown in self.parts(g, tree, i):
                if x is None:
                    out += [zeros(next(avals).to_tangent()) for _ in range(shown)]
                else:
                    out.append(self.checked(x, next(avals), i))
        return out

    def parts(self, ct: Any, tree: PyTreeDef, position: int) -> list[tuple[Any, int]]:
        """The leaves of a cotangent; None, which stands for zeros, with how many it stands for."""
        leaves, given = flatten(ct)
        if given == tree:
            return [(x, 1) for x in leaves]
        leaves, given = flatten(ct, lambda x: x is None)
        try:
            below = given.flatten_up_to(unflatten(tree, range(tree.num_leaves)))
        except (TypeError, ValueError):
            below = None
        if below is None or any(
            x is not None and not isinstance(b, int) for x, b in zip(leaves, below, strict=True)
        ):
            raise PytreeError(
                f"custom_vjp: bwd of {self.owner.__name__} must return a cotangent of the "
                f"argument's structure; got {flatten(ct)[1]} for argument {position}, which is "
                f"{tree}."
            )
        return [(x, flatten(b)[1].num_leaves) for x, b in zip(leaves, below, strict=True)]

    def checked(self, ct: Any, aval: ShapedArray, position: int) -> Any:
        """A cotangent whose type fits its primal."""
        want = aval.to_tangent()
        if want.dtype == dtypes.float0:
            return instantiate(Zero(want))
        got = typeof(ct)
        if got.shape != want.shape:
            raise ShapeError(
                f"custom_vjp: bwd of {self.owner.__name__} must return a cotangent of the "
                f"argument's type; got {got} for argument {position}, which is {aval}."
            )
        return ct
