"""The names of `jax.api_util`: functions of pytrees as functions of flat lists."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from weft.compat.linear_util import Store, WrappedFun, transformation2, transformation_with_aux2
from weft.core.aval import typeof
from weft.display.methods import DebugInfo
from weft.pytrees import broadcast_prefix, flatten, unflatten
from weft.util import fun_name, list_public, merge

__all__ = [
    "DebugInfo", "argnums_partial", "debug_info", "flatten_axes", "flatten_fun",
    "flatten_fun_nokwargs", "infer_argnums_and_argnames",
    "rebase_donate_argnums", "safe_map", "safe_zip", "shaped_abstractify",
]  # fmt: skip
__dir__ = list_public(__name__)

shaped_abstractify = typeof


def debug_info(
    traced_for: str, fun: Callable, args: Sequence[Any], kwargs: dict[str, Any], **options: Any
) -> DebugInfo:
    """What to remember of a function; `options` are taken so that calls carry over from JAX."""
    return DebugInfo(traced_for, fun_name(fun))


@transformation_with_aux2
def flatten_fun(f: Callable, store: Store, in_tree: Any, *leaves: Any) -> list:
    """`f` on the leaves of `(args, kwargs)`; also a thunk of its result's structure."""
    args, kwargs = unflatten(in_tree, leaves)
    outs, out_tree = flatten(f(*args, **kwargs))
    store.store(out_tree)
    return outs


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable, store: Store, in_tree: Any, *leaves: Any) -> list:
    """`f` on the leaves of its arguments; also a thunk of its result's structure."""
    outs, out_tree = flatten(f(*unflatten(in_tree, leaves)))
    store.store(out_tree)
    return outs


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Sequence[int] | None,
    argnames: str | Sequence[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Arguments given by position or by name, as both."""
    nums = () if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = (
        () if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    )
    known = [name for name, p in sig.parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    if argnums is None:
        nums = tuple(i for i, name in enumerate(known) if name in names)
    elif argnames is None:
        names = tuple(known[i] for i in nums if -len(known) <= i < len(known))
    return nums, names


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any], **options: Any
) -> tuple[WrappedFun, list]:
    """`f` as a function of some of its arguments, and those; the others are as given."""
    dynamic = {dyn_argnums} if isinstance(dyn_argnums, int) else {*dyn_argnums}
    mask = [i in {n % len(args) for n in dynamic} for i in range(len(args))]
    fixed = [x for x, m in zip(args, mask, strict=True) if not m]
    put_back = lambda fun, *xs, **kwargs: fun(*merge(mask, fixed, xs), **kwargs)
    return transformation2(put_back, f), [x for x, m in zip(args, mask, strict=True) if m]


def flatten_axes(
    name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list:
    """The leaves of a prefix of a tree, each as often as the tree has leaves below it."""
    full = treedef.unflatten([object()] * treedef.num_leaves)
    return broadcast_prefix(axis_tree, full, is_leaf=lambda x: x is None)


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """The places of donated arguments among those that are not static."""
    return tuple(i - sum(s < i for s in static_argnums) for i in sorted(donate_argnums))


def safe_zip(*xs: Any) -> list[tuple]:
    """`zip` of sequences of one length."""
    return list(zip(*xs, strict=True))


def safe_map(f: Callable, *xs: Any) -> list:
    """`map` over sequences of one length."""
    return [f(*row) for row in zip(*map(list, xs), strict=True)]
