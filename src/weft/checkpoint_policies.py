"""Policies of `checkpoint`: which intermediate values are saved, and which are recomputed.

A policy is called as `policy(primitive, *avals, **params)` for each operation. It returns True (or
`Saveable`, or an `Offloadable`) if the results should be saved. Any such function may be used; the
policies here are hashable, so that programs made with them are cached.

Offloading is not implemented: values to offload are saved where they were computed.
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
    """An answer of a policy that is not a bool."""

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
    """The answer of a policy that a value is saved, and moved to another memory until it is needed.

    Moving is accepted and not done: the value is saved where it was computed.

    Args:
      src: the name of the memory from which the value would be moved.
      dst: the name of the memory to which it would be moved.

    >>> Offloadable("device", "pinned_host").dst
    'pinned_host'
    """

    src: str
    dst: str


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Save every value, as without `checkpoint`.

    Returns:
      True.

    >>> import weft.checkpoint_policies as policies
    >>> f = weft.checkpoint(jnp.sin, policy=policies.everything_saveable)
    >>> print(weft.grad(f)(0.0))
    1.0
    """
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Save only the arguments, as `checkpoint` does without a policy.

    Returns:
      False.

    >>> import weft.checkpoint_policies as policies
    >>> f = weft.checkpoint(jnp.sin, policy=policies.nothing_saveable)
    >>> print(weft.grad(f)(0.0))
    1.0
    """
    return False


def dots_saveable(prim: Any, *_: Any, **__: Any) -> bool:
    """Save the results of matrix products and convolutions, which cost much to compute.

    Args:
      prim: the primitive that made a value.

    Returns:
      True if the results are saved.

    >>> import weft.checkpoint_policies as policies
    >>> f = weft.checkpoint(lambda w, x: jnp.tanh(w @ x).sum(), policy=policies.dots_saveable)
    >>> print(weft.grad(f)(jnp.zeros((1, 2)), jnp.ones(2)))
    [[1. 1.]]
    """
    return isinstance(prim, Bilinear) and prim.cost is Cost.CONTRACTION


def dots_with_no_batch_dims_saveable(prim: Any, *_: Any, **params: Any) -> bool:
    """Save the results of matrix products without batch dimensions.

    Products with weights have none. Products of activations, as in attention, have some; they are
    computed again.

    Args:
      prim: the primitive that made a value.
      **params: its parameters.

    Returns:
      True if the results are saved.

    >>> import weft.checkpoint_policies as policies
    >>> policy = policies.dots_with_no_batch_dims_saveable
    >>> f = weft.checkpoint(lambda w, x: jnp.tanh(w @ x).sum(), policy=policy)
    >>> print(weft.grad(f)(jnp.zeros((1, 2)), jnp.ones(2)))
    [[1. 1.]]
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
    """Return a policy that saves the values that `checkpoint_name` gave one of some names.

    Args:
      *names_which_can_be_saved: the names, strings.

    Returns:
      A policy for `checkpoint`.

    >>> save_only_these_names("hidden")
    save_only_these_names('hidden')
    >>> from weft.ad_checkpoint import checkpoint_name
    >>> f = weft.checkpoint(
    ...     lambda x: jnp.sin(checkpoint_name(jnp.exp(x), "hidden")),
    ...     policy=save_only_these_names("hidden"))
    >>> print(weft.grad(f)(0.0))
    0.5403023
    """
    names = frozenset(names_which_can_be_saved)
    return _ByName("save_only_these_names", names, True, False, False)


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Return a policy that saves the values that have a name, except for some names.

    Args:
      *names_not_to_save: the names, strings.

    Returns:
      A policy for `checkpoint`.

    >>> save_any_names_but_these("hidden")
    save_any_names_but_these('hidden')
    """
    names = frozenset(names_not_to_save)
    return _ByName("save_any_names_but_these", names, False, True, False)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Return a policy that saves every value, named or not, except for those with some names.

    The operand of `checkpoint_name` is a value as well, and has no name: it is saved.

    Args:
      *names_not_to_save: the names, strings.

    Returns:
      A policy for `checkpoint`.

    >>> save_anything_except_these_names("hidden")
    save_anything_except_these_names('hidden')
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
    """Return a policy that saves the values that at least one of two policies saves.

    Args:
      policy_1: a policy.
      policy_2: a policy.

    Returns:
      A policy for `checkpoint`.

    >>> both = save_from_both_policies(dots_saveable, save_only_these_names("hidden"))
    >>> callable(both)
    True
    """
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
    """Return a policy that saves values with some names, and offloads values with others.

    Offloading to another memory is accepted and not done: the values are saved where they were
    computed.

    Args:
      names_which_can_be_saved: a collection of names.
      names_which_can_be_offloaded: a collection of names.
      offload_src: the name of the memory from which values would be moved.
      offload_dst: the name of the memory to which values would be moved.

    Returns:
      A policy for `checkpoint`.

    >>> policy = save_and_offload_only_these_names(
    ...     names_which_can_be_saved=["hidden"], names_which_can_be_offloaded=[],
    ...     offload_src="device", offload_dst="pinned_host")
    >>> print(weft.grad(weft.checkpoint(jnp.sin, policy=policy))(0.0))
    1.0
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
    """Return a policy that offloads the results of matrix products without batch dimensions.

    Offloading to another memory is accepted and not done: the values are saved where they were
    computed.

    Args:
      offload_src: the name of the memory from which values would be moved.
      offload_dst: the name of the memory to which values would be moved.

    Returns:
      A policy for `checkpoint`.

    >>> policy = offload_dot_with_no_batch_dims("device", "pinned_host")
    >>> print(weft.grad(weft.checkpoint(jnp.sin, policy=policy))(0.0))
    1.0
    """
    offload = Offloadable(offload_src, offload_dst)
    return _Offload(dots_with_no_batch_dims_saveable, offload)
