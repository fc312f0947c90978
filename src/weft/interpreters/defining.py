"""Primitives and rules in JAX's form: `Primitive(name)`, and registries of rules by primitive.

Both are views: such a primitive is one of weft's, and `registry[prim] = rule` sets its method. What
differs is that JAX's rules have one result, not a list of one, where `multiple_results` is False.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core import primitive
from weft.core.aval import ShapedArray
from weft.errors import MissingRule
from weft.run.rules import forget_rules

# How each rule of a primitive is given.
_GIVEN_BY = {
    "abstract_eval": "{0}.def_abstract_eval(rule)",
    "lower": "mlir.register_lowering({0}, rule)",
    "jvp": "ad.primitive_jvps[{0}] = rule",
    "transpose": "ad.primitive_transposes[{0}] = rule",
    "batch": "batching.primitive_batchers[{0}] = rule",
}


LIST_HINT = ", in a list, as multiple_results is True"


def list_results(prim: primitive.Primitive, out: Any) -> list:
    """The results of a rule as a list."""
    return list(out) if prim.multiple_results else [out]


def unlist_results(prim: primitive.Primitive, outs: list) -> Any:
    """A list of results as a rule gives them."""
    return list(outs) if prim.multiple_results else outs[0]


def list_pair(prim: primitive.Primitive, rule: Callable) -> Callable:
    """Return the method for a rule that returns two values or sequences, such as jvp and batch."""

    def method(*args: Any, **params: Any) -> tuple[list, list]:
        args = tuple(tuple(x) if isinstance(x, list) else x for x in args)
        first, second = rule(*args, **params)
        return list_results(prim, first), list_results(prim, second)

    return method


def unlist_pair(prim: primitive.Primitive, method: Callable) -> Callable:
    """The inverse of `list_pair`."""

    def rule(*args: Any, **params: Any) -> tuple[Any, Any]:
        first, second = method(*args, **params)
        return unlist_results(prim, first), unlist_results(prim, second)

    return rule


class Primitive(primitive.Primitive):
    """An operation that is defined by setting its rules one by one, as in JAX.

    It is for operations of your own: the type rule, the derivatives, the batching rule and the
    lowering are each set when they are needed, by methods and by the tables of `weft.interpreters`.
    `bind(*values, **params)` applies the operation. It returns one value, or a list if the
    attribute `multiple_results` is True. Without `def_impl`, an application outside `jit` runs the
    lowering.

    Args:
      name: the name that jaxprs and errors print.

    Raises:
      MissingRule: an application needs a rule that is not set. `bind` and the transformations raise
        it.

    >>> from weft.extend.core import Primitive
    >>> double_p = Primitive("double")
    >>> _ = double_p.def_impl(lambda x: x + x)
    >>> double_p.bind(2)
    4
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> weft.make_jaxpr(double_p.bind)(2)
    { lambda ; a:i32[]. let b:i32[] = double a in (b,) }
    """

    memoize_type = False  # a rule may be set again

    def __init_subclass__(cls) -> None:
        """A class may have the type rule as a method, which gives (avals, effects) as in JAX."""
        super().__init_subclass__()
        rule = vars(cls).get("abstract_eval")
        if rule is None:
            return

        def abstract_eval(self: Primitive, *avals: ShapedArray, **params: Any) -> list[ShapedArray]:
            out, effects = rule(self, *avals, **params)
            self.effect = next(iter(effects), self.effect)
            return list_results(self, out)

        cls.abstract_eval = abstract_eval  # type: ignore[method-assign]

    def __init__(self, name: str):
        self.name = name  # type: ignore[misc]

    def def_impl(self, impl: Callable) -> Callable:
        """Set how to compute the results: `impl(*values, **params)`."""
        self.impl = impl  # type: ignore[method-assign]
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable:
        """Set the type rule: `rule(*avals, **params)` gives the aval (or avals) of the results."""

        def abstract_eval(*avals: ShapedArray, **params: Any) -> list[ShapedArray]:
            out = rule(*avals, **params)
            outs = out if self.multiple_results else [out]
            if not isinstance(outs, list | tuple) or not all(hasattr(a, "str_short") for a in outs):
                must = "a sequence of types" if self.multiple_results else "the type of the result"
                raise TypeError(
                    f"{self.name}: its abstract_eval rule must return {must}; got {out!r}. "
                    f"Hint: weft.core.ShapedArray(shape, dtype){LIST_HINT * self.multiple_results}."
                )
            return list(outs)

        self.abstract_eval = abstract_eval  # type: ignore[method-assign]
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., tuple[Any, Any]]) -> Callable:
        """Set a type rule that gives (avals, effects); an effect that is there once stays."""

        def typed(*avals: ShapedArray, **params: Any) -> Any:
            out, effects = rule(*avals, **params)
            self.effect = next(iter(effects), self.effect)
            return out

        self.def_abstract_eval(typed)
        return rule

    def missing(self, rule: str) -> MissingRule:
        return MissingRule(
            f"{self.name}: has no `{rule}` rule; define {_GIVEN_BY[rule].format(self.name + '_p')}."
        )


class Rules:
    """The rules of one kind, by primitive; each is kept on its primitive, as a method of it.

    `make_method(prim, rule)` makes the method of a rule, `read_rule(prim, method)` a rule of the
    method of a primitive that was not given one here.
    """

    def __init__(self, method: str, make_method: Callable, read_rule: Callable):
        self.method = method
        self.make_method = make_method
        self.read_rule = read_rule

    def __setitem__(self, prim: primitive.Primitive, rule: Callable) -> None:
        made = self.make_method(prim, rule)
        made.rule = rule
        setattr(prim, self.method, made)
        forget_rules()  # drops programs compiled from old rules

    def __getitem__(self, prim: primitive.Primitive) -> Callable:
        if prim not in self:
            raise KeyError(prim)
        method = getattr(prim, self.method)
        return getattr(method, "rule", None) or self.read_rule(prim, method)

    def __delitem__(self, prim: primitive.Primitive) -> None:
        if self.method not in vars(prim):
            raise KeyError(prim)
        delattr(prim, self.method)
        forget_rules()

    def __contains__(self, prim: primitive.Primitive) -> bool:
        none = getattr(primitive.Primitive, self.method)
        return self.method in vars(prim) or getattr(type(prim), self.method) is not none

    def get(self, prim: primitive.Primitive, default: Any = None) -> Any:
        """The rule of a primitive, or `default` where it has none."""
        try:
            return self[prim]
        except KeyError:
            return default
