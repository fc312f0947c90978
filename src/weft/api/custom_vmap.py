"""`weft.custom_batching`: functions with a batching rule of their own.

Pytrees, arguments and checks are here; what a transformation does with such a call is
control/mapped.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.api.bodies import stage_body
from weft.api.closures import find_closed_over, substitute
from weft.api.custom_rules import RuledFunction
from weft.api.functions import avals_of, check_callable, leaf_names, value_error
from weft.api.scan import map as sequential_map
from weft.control.mapped import custom_vmap_p
from weft.core.aval import ShapedArray, is_valid_value, typeof
from weft.core.jaxpr import Var
from weft.core.source import boundary
from weft.errors import PytreeError, ShapeError
from weft.options import x64_as, x64_cell
from weft.primitives.constant import Held
from weft.primitives.layout import convert
from weft.pytrees import PyTreeDef, flatten, tree_map, unflatten
from weft.transforms.batch import unmapped_aval
from weft.util import fun_name, merge, partition


class custom_vmap(RuledFunction):
    """A function with a hand-written rule for `vmap`.

    Use it where a batch has a better algorithm than the one that follows from the operations, such
    as a library call for a whole batch.

    The rule is set by `def_vmap(rule)`, and is called as `rule(axis_size, in_batched, *args)`.
    `axis_size` is the size of the mapped axis, an int. `in_batched` is a list like the arguments
    with a bool for each array, which says if it is mapped. The mapped arrays have the mapped axis
    first. The rule returns `(out, out_batched)`: the result of the function for all elements, and
    a pytree of bools like it. Derivatives go through the function, or through the rule where the
    function is mapped.

    Args:
      fun: a function of pytrees of arrays that returns a pytree of arrays. Keyword arguments are
        passed to the rule by position.

    Returns:
      A callable with the signature of `fun` and the method `def_vmap`.

    Raises:
      AttributeError: the function is called before its rule is set.

    >>> from weft import vmap
    >>> @custom_vmap
    ... def f(x):
    ...     return x + 1
    >>> @f.def_vmap
    ... def f_rule(axis_size, in_batched, x):
    ...     return x + 10, in_batched[0]
    >>> print(f(1), vmap(f)(jnp.arange(3)))
    2 [10 11 12]
    """

    vmap_rule: Callable | None = None

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Set the batching rule, and return it, so that this can be used as a decorator.

        Args:
          vmap_rule: a function `rule(axis_size, in_batched, *args)` that returns `(out,
            out_batched)`, as described for `custom_vmap`.

        Returns:
          The function `vmap_rule`.

        Raises:
          TypeError: `vmap_rule` is not a function.

        >>> double = weft.custom_batching.custom_vmap(lambda x: 2 * x)
        >>> _ = double.def_vmap(lambda n, batched, x: (2 * x, batched[0]))
        >>> print(weft.vmap(double)(jnp.arange(3)))
        [0 2 4]
        """
        check_callable("def_vmap", vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            raise AttributeError(
                f"custom_vmap: the batching rule of {self.__name__} must be set before a call. "
                f"Hint: {self.__name__}.def_vmap(rule)."
            )
        args = self._positional(args, kwargs)
        leaves, args_tree = flatten(args)
        avals = avals_of("custom_vmap", leaves, flatten((args, {}))[1], self.fun)
        call, consts, out_tree, _ = stage_body("custom_vmap", self.fun, args_tree, avals)
        tracers = find_closed_over(self.vmap_rule)
        n = len(consts)
        rule = FlatRule(
            self.vmap_rule, self.__name__, args_tree, out_tree, tuple(call.out_avals), n,
            Held(tracers) if tracers else None, x64_cell.value,
        )  # fmt: skip
        if tracers:  # operands that the function itself does not use
            unused = [Var(x.aval) for x in tracers]
            call = call.replace(invars=[*call.invars[:n], *unused, *call.invars[n:]])
        outs = custom_vmap_p.apply(*consts, *tracers, *leaves, call=call, rule=rule, primal=None)
        return unflatten(out_tree, outs)


@dataclass(frozen=True)
class FlatRule:
    """A batching rule on flat lists; equal for equal calls, so that these share a program."""

    rule: Callable
    name: str
    args_tree: PyTreeDef
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    num_consts: int
    held: Held | None  # the tracers that the rule closes over
    x64: bool  # `enable_x64` where the call was

    @property
    def __name__(self) -> str:
        return fun_name(self.rule)

    def __call__(self, size: int, in_batched: Sequence[bool], *operands: Any) -> tuple[list, list]:
        tracers = self.held.value if self.held else []
        n = self.num_consts + len(tracers)
        if any(in_batched[:n]):
            raise TypeError(
                f"custom_vmap: {self.name} and its rule must not close over values that are "
                "mapped. Hint: pass them as arguments."
            )
        flags = list(unflatten(self.args_tree, in_batched[n:]))

        def run(*leaves: Any) -> tuple[list, list]:
            pair = self.rule(size, flags, *unflatten(self.args_tree, leaves))
            return self.check_results(pair, size, any(in_batched))

        with x64_as(self.x64):
            outs, batched = substitute(run, tracers, operands[self.num_consts : n], operands[n:])
        return outs, batched

    def check_results(self, pair: Any, size: int, mapped: bool) -> tuple[list, list]:
        """The results of the rule, flat, with structures and types that fit the function's.

        A derivative calls the rule with no mapped operand. Many rules say there too that their
        result is mapped; `mapped` is False then, and the shape of a result decides.
        """
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"custom_vmap: the rule of {self.name} must return a pair (out, out_batched); "
                f"got {type(pair).__name__}."
            )
        (outs, tree), (flags, flag_tree) = flatten(pair[0]), flatten(pair[1])
        if tree != self.out_tree:
            raise PytreeError(
                f"custom_vmap: the rule of {self.name} must return an output of the function's "
                f"structure; got {tree} where the function gives {self.out_tree}."
            )
        if flag_tree != tree:
            raise PytreeError(
                f"custom_vmap: the rule of {self.name} must return out_batched of the output's "
                f"structure; got {flag_tree} for {tree}."
            )
        names = leaf_names("out", tree)
        if not mapped:
            flags = [b and np.ndim(x) > a.ndim for b, x, a in zip(flags, outs, self.out_avals)]
        fitted = map(self.check_result, outs, flags, self.out_avals, names, [size] * len(outs))
        return [*fitted], [bool(b) for b in flags]

    def check_result(self, x: Any, batched: bool, aval: ShapedArray, name: str, size: int) -> Any:
        """A result of the rule, of the type that the function's result has when it is mapped."""
        if not is_valid_value(x):
            raise value_error("custom_vmap", "results", f"{name} of the rule of {self.name}", x)
        want = unmapped_aval(aval, size, 0) if batched else aval
        got = typeof(x)
        if got.shape != want.shape or (got.dtype != want.dtype and not got.weak_type):
            kind = "mapped" if batched else "unmapped"
            raise ShapeError(
                f"custom_vmap: the rule of {self.name} must return what the function gives, "
                f"mapped over {size}; got {got} for {name}, which is {kind} and must be {want}."
            )
        return x if got.dtype == want.dtype else convert(x, want.dtype)


def sequential_vmap(f: Callable) -> custom_vmap:
    """Return a function that `vmap` maps as a loop, one element after another.

    It is for functions that need much memory, or that must be called with single elements. The
    loop is `lax.map`.

    Args:
      f: a function of pytrees of arrays that returns a pytree of arrays.

    Returns:
      A function with the results of `f`, a `custom_vmap`.

    Raises:
      TypeError: `f` is not a function.

    >>> from weft import vmap
    >>> print(vmap(sequential_vmap(lambda x: x + 1))(jnp.arange(3)))
    [1 2 3]
    """
    made = custom_vmap(f)

    def rule(axis_size: int, in_batched: list, *args: Any) -> tuple[Any, Any]:
        leaves, tree = flatten(args)
        flags = flatten(in_batched)[0]
        if not any(flags):  # a derivative whose tangents are mapped, and not its values
            out = f(*args)
            return out, tree_map(lambda _: False, out)
        fixed, mapped = partition(flags, leaves)
        one = lambda elements: made(*unflatten(tree, merge(flags, fixed, elements)))
        out = sequential_map(one, mapped)
        return out, tree_map(lambda _: True, out)

    made.def_vmap(rule)
    return made
