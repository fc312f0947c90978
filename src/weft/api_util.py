"""Functions of pytrees as functions of flat lists, as libraries make them: `jax.api_util`.

What is put around a function of a list (`weft.extend.linear_util`) is a generator: it yields the
arguments for the function as `(args, kwargs)`, is sent the result, and yields its own. With an
auxiliary result it yields a pair, whose second a thunk gives after the call. The functions whose
name ends in 2 take the function in place of yielding.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from weft.api.structures import broadcast_to_structure
from weft.core.aval import ShapedArray, typeof
from weft.display.methods import DebugInfo
from weft.pytrees import flatten, is_none, structure, unflatten
from weft.util import fun_name, list_public, merge

__all__ = [
    "DebugInfo", "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun",
    "flatten_fun_nokwargs", "infer_argnums_and_argnames",
    "rebase_donate_argnums", "safe_map", "safe_zip", "shaped_abstractify",
]  # fmt: skip
__dir__ = list_public(__name__)


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of an array or number, or of what stands for one; a type is its own."""
    return x if isinstance(x, ShapedArray) else typeof(x)


# --- functions of lists ---------------------------------------------------------------------------


class StoreException(Exception):
    """An auxiliary result was asked for before the function was called."""


class WrappedFun:
    """A function, and the one that it was made of: `call_wrapped` calls it."""

    def __init__(self, f: Callable, fun: Callable, debug_info: Any = None, around: tuple = ()):
        self.f = f
        self.call_wrapped = fun
        self.debug_info = debug_info
        self.key = (f, *around)  # includes the wrappers: equal for functions wrapped alike
        self.__name__ = getattr(f, "__name__", type(f).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call_wrapped(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"WrappedFun({self.f!r})"


class Store:
    """Holds the auxiliary result of the last call."""

    def __init__(self) -> None:
        self.values: list = []

    def store(self, value: Any) -> None:
        """Keep a value."""
        self.values[:] = [value]

    def __call__(self) -> Any:
        if not self.values:
            raise StoreException("linear_util: an auxiliary result is there after the call alone.")
        return self.values[0]


def wrap_init(f: Callable, params: dict | None = None, *, debug_info: Any = None) -> WrappedFun:
    """A function as one to transform; `params` are keyword arguments of it."""
    wrapped = functools.partial(f, **params) if params else f
    return WrappedFun(f, wrapped, debug_info, tuple((params or {}).items()))


def decorate(transform: Callable, gen: Callable) -> Callable:
    """The result of a transformation that is used as a decorator: it is pickled by its name."""

    @functools.wraps(gen)
    def decorated(*given: Any, **options: Any) -> Any:
        return transform(gen, *given, **options)

    return decorated


def transformation2(gen: Callable, *given: Any) -> Any:
    """`gen(f, *static, *args)` in place of `fun`: from `(gen, fun, *static)`, or a decorator."""
    if not given:
        return decorate(transformation2, gen)
    fun, *static = given
    wrapped = functools.partial(gen, fun.call_wrapped, *static)
    return WrappedFun(fun.f, wrapped, fun.debug_info, (*fun.key[1:], gen, *static))


def transformation_with_aux2(gen: Callable, *given: Any, **options: Any) -> Any:
    """Do as `transformation2` does, for `gen(f, store, *static, *args)`; also return a thunk."""
    if not given:
        return decorate(transformation_with_aux2, gen)
    fun, *static = given
    store = Store()
    return transformation2(gen, fun, store, *static), store


def _run(fun: Callable, gen: Callable, *args: Any, **kwargs: Any) -> Any:
    steps = gen(*args, **kwargs)
    inner, options = next(steps)
    return steps.send(fun(*inner, **options))


def _run_with_aux(fun: Callable, store: Store, gen: Callable, *args: Any, **kwargs: Any) -> Any:
    out, aux = _run(fun, gen, *args, **kwargs)
    store.store(aux)
    return out


def transformation(gen: Callable, *given: Any) -> Any:
    """Apply the generator `gen(*static, *args)` to `fun`, or return a decorator."""
    if not given:
        return decorate(transformation, gen)
    return transformation2(_run, given[0], gen, *given[1:])


def transformation_with_aux(gen: Callable, *given: Any, **options: Any) -> Any:
    """Do as `transformation` does, for a generator that yields a pair; also return a thunk."""
    if not given:
        return decorate(transformation_with_aux, gen)
    return transformation_with_aux2(_run_with_aux, given[0], gen, *given[1:])


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple[bool, Any]:
    """Return True if the first of two functions was run. Also return the auxiliary result."""
    try:
        return True, aux1()
    except StoreException:
        return False, aux2()


# --- of pytrees -----------------------------------------------------------------------------------


def debug_info(
    traced_for: str, fun: Callable, args: Sequence[Any], kwargs: dict[str, Any], **options: Any
) -> DebugInfo:
    """Return the debug information of a function; `options` are accepted as in JAX."""
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
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
    **options: Any,
) -> tuple[WrappedFun, list]:
    """Return `f` as a function of some of its arguments, and these; the others are fixed."""
    dynamic = {dyn_argnums} if isinstance(dyn_argnums, int) else {*dyn_argnums}
    mask = [i in {n % len(args) for n in dynamic} for i in range(len(args))]
    fixed = [x for x, m in zip(args, mask, strict=True) if not m]
    put_back = lambda fun, *xs, **kwargs: fun(*merge(mask, fixed, xs), **kwargs)
    return transformation2(put_back, f), [x for x, m in zip(args, mask, strict=True) if m]


def flatten_axes(
    name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list:
    """The leaves of a prefix of a tree, each as often as the tree has leaves below it."""
    names = ("axis_tree", "treedef")
    return broadcast_to_structure(axis_tree, treedef, is_none, op=name, names=names)


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """The places of donated arguments among those that are not static."""
    return tuple(i - sum(s < i for s in static_argnums) for i in sorted(donate_argnums))


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """Return which leaves of `(args, kwargs)`, or of `args` without `kws`, are donated."""
    args, kwargs = in_tree.children() if kws else (in_tree, structure({}))
    marks = [i in donate_argnums for i in range(len(args.children()))]
    marks += [name in donate_argnames for name in kwargs.node_data()[1]]
    parts = zip(marks, [*args.children(), *kwargs.children()], strict=True)
    return tuple(donated for donated, part in parts for _ in range(part.num_leaves))


def safe_zip(*xs: Any) -> list[tuple]:
    """`zip` of sequences of one length."""
    return list(zip(*xs, strict=True))


def safe_map(f: Callable, *xs: Any) -> list:
    """`map` over sequences of one length."""
    return [f(*row) for row in zip(*map(list, xs), strict=True)]
