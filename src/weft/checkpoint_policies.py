"""Policies of `checkpoint`: which intermediate values to save, and which to compute again.

A policy is called as `policy(primitive, *avals, **params)` for each operation, and its answer is
true (or `Saveable`, or an `Offloadable`) where the results are to be saved. Any such function will
do; those here are hashable, so that programs made with them are cached.

Offloading is not done: what is to be offloaded is saved where it was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from weft.control.remat import name_p
from weft.core.facts import Cost
from weft.primitives.dot import Bilinear, dot_general_p
from weft.util import list_public

__all__ = [
    "checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable",
    "dots_with_no_batch_dims_saveable", "everything_saveable", "nothing_saveable",
    "offload_dot_with_no_batch_dims", "save_and_offload_only_these_names",
    "save_any_names_but_these", "save_anything_except_these_names", "save_from_both_policies",
    "save_only_these_names",
]  # fmt: skip
__dir__ = list_public(__name__)

Policy = Callable[..., Any]


class _Answer:
    """An answer of a policy that is no bool."""

    def __init__(self, name: str, saves: bool):
        self.name = name
        self.saves = saves

    def __bool__(self) -> bool:
        return self.saves

    def __repr__(self) -> str:
        return self.name


Saveable = _Answer("Saveable", True)
Recompute = _Answer("Recompute", False)


class Offloadable(NamedTuple):
    """The answer "save, and move from memory `src` to memory `dst` until it is needed"."""

    src: str
    dst: str


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Save every value, as without `checkpoint`."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Save nothing but the arguments, as `checkpoint` does without a policy."""
    return False


def dots_saveable(prim: Any, *_: Any, **__: Any) -> bool:
    """Save the results of matrix products and convolutions, which cost much to compute."""
    return isinstance(prim, Bilinear) and prim.cost is Cost.CONTRACTION


def dots_with_no_batch_dims_saveable(prim: Any, *_: Any, **params: Any) -> bool:
    """Save the results of matrix products without batch dimensions.

    Those are the products with weights; products of activations, as in attention, have one.
    """
    return prim is dot_general_p and not any(params["dimension_numbers"][1])


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


@dataclass(frozen=True, repr=False)
class _ByName:
    """A policy that goes by `checkpoint_name`: it saves or spares the names it holds."""

    rule: str
    names: frozenset
    named: bool  # the answer for a value with one of the names
    others: bool  # for a value with another name
    unnamed: bool  # for any other value

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        if prim is not name_p:
            return self.unnamed
        return self.named if params["name"] in self.names else self.others

    def __repr__(self) -> str:
        return f"{self.rule}({', '.join(map(repr, sorted(self.names)))})"


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Save the values that `checkpoint_name` gave one of these names.

    >>> save_only_these_names("hidden")
    save_only_these_names('hidden')
    """
    names = frozenset(names_which_can_be_saved)
    return _ByName("save_only_these_names", names, True, False, False)


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Save the values that have a name, and none of these."""
    names = frozenset(names_not_to_save)
    return _ByName("save_any_names_but_these", names, False, True, False)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Save every value, named or not, but those with one of these names.

    The operand of `checkpoint_name` is a value too, and has no name: it is saved.
    """
    names = frozenset(names_not_to_save)
    return _ByName("save_anything_except_these_names", names, False, True, True)


@dataclass(frozen=True, repr=False)
class _Either:
    """A policy that saves what one of two does."""

    first: Policy
    second: Policy

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> Any:
        return self.first(prim, *avals, **params) or self.second(prim, *avals, **params)

    def __repr__(self) -> str:
        return f"save_from_both_policies({policy_name(self.first)}, {policy_name(self.second)})"


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Save what either policy saves."""
    return _Either(policy_1, policy_2)


def policy_name(policy: Policy) -> str:
    """A policy in a text."""
    return getattr(policy, "__name__", None) or repr(policy)


@dataclass(frozen=True, repr=False)
class _Offload:
    """A policy that offloads what another would save."""

    policy: Policy
    offload: Offloadable

    def __call__(self, prim: Any, *avals: Any, **params: Any) -> Any:
        return self.offload if self.policy(prim, *avals, **params) else Recompute

    def __repr__(self) -> str:
        return f"offloading({policy_name(self.policy)}, {self.offload})"


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Collection[str],
    names_which_can_be_offloaded: Collection[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Save the values with one of the first names, offload those with one of the second.

    Offloading from `offload_src` to `offload_dst` saves them where they are: here memory is one.
    """
    both = set(names_which_can_be_saved) & set(names_which_can_be_offloaded)
    if both:
        raise ValueError(
            "save_and_offload_only_these_names: a name must be saved or offloaded, not both; "
            f"got {', '.join(sorted(both))}."
        )
    saved = save_only_these_names(*names_which_can_be_saved)
    moved = save_only_these_names(*names_which_can_be_offloaded)
    return _Either(saved, _Offload(moved, Offloadable(offload_src, offload_dst)))


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Offload the results of matrix products without batch dimensions.

    Offloading from `offload_src` to `offload_dst` saves them where they are: here memory is one.
    """
    offload = Offloadable(offload_src, offload_dst)
    return _Offload(dots_with_no_batch_dims_saveable, offload)
