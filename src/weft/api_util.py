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
    """Return the type of an array or a number.

    Args:
      x: an array, a number, an object with a shape and a dtype such as a `ShapeDtypeStruct`, or a
        type.

    Returns:
      A `ShapedArray`. A type is returned unchanged.

    Raises:
      TypeError: `x` has no type of an array.

    >>> from weft import api_util
    >>> api_util.shaped_abstractify(np.zeros((2, 3), np.float32))
    ShapedArray(float32[2,3])
    """
    return x if isinstance(x, ShapedArray) else typeof(x)


# --- functions of lists ---------------------------------------------------------------------------


class StoreException(Exception):
    """The error that an auxiliary result does not exist yet.

    Auxiliary results exist once the transformed function has been called.

    >>> from weft.extend import linear_util as lu
    >>> def add_type(x):
    ...     y = yield (x,), {}
    ...     yield y, type(y)
    >>> f, out_type = lu.transformation_with_aux(add_type, lu.wrap_init(abs))
    >>> try:
    ...     out_type()
    ... except lu.StoreException:
    ...     print("not yet")
    not yet
    """


class WrappedFun:
    """A function that transformations of `linear_util` can be applied to.

    `wrap_init` makes one from a Python function; use it rather than this class. The transformations
    return a `WrappedFun` again. `call_wrapped(*args, **kwargs)` calls the function with all its
    transformations. Two objects are equal, and have equal hashes, if the same function was
    transformed in the same way. This makes them keys of caches.

    Args:
      f: the function that `wrap_init` was called with. It identifies the object and is printed.
      fun: the function that `call_wrapped` calls.
      debug_info: a `DebugInfo` that describes `f`, or None.
      around: the transformations and their static arguments, a tuple. They are compared by `==`.

    >>> from weft.extend import linear_util as lu
    >>> f = lu.wrap_init(abs)
    >>> f
    WrappedFun(<built-in function abs>)
    >>> f.call_wrapped(-2)
    2
    >>> f == lu.wrap_init(abs)
    True
    """

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
    """Make a function ready for transformations.

    Args:
      f: a function.
      params: keyword arguments that every call passes to `f`, a dict. The default passes none.
      debug_info: a `DebugInfo` that describes `f`, or None.

    Returns:
      A `WrappedFun`.

    >>> from weft.extend import linear_util as lu
    >>> cube = lu.wrap_init(pow, {"exp": 3})
    >>> cube.call_wrapped(2)
    8
    """
    wrapped = functools.partial(f, **params) if params else f
    return WrappedFun(f, wrapped, debug_info, tuple((params or {}).items()))


def decorate(transform: Callable, gen: Callable) -> Callable:
    """The result of a transformation that is used as a decorator: it is pickled by its name."""

    @functools.wraps(gen)
    def decorated(*given: Any, **options: Any) -> Any:
        return transform(gen, *given, **options)

    return decorated


def transformation2(gen: Callable, *given: Any) -> Any:
    """Apply a transformation that is written as a function of a function.

    It does the same as `transformation`, without a generator.

    Args:
      gen: a function of the function to transform, the static arguments and the arguments of the
        transformed function. It returns the result of the transformed function.
      *given: the `WrappedFun` to transform, and then the static arguments. If nothing is passed, a
        decorator is returned: a function of a `WrappedFun` and static arguments.

    Returns:
      A `WrappedFun`, or the decorator.

    >>> from weft.extend import linear_util as lu
    >>> @lu.transformation2
    ... def scale_input(f, scale, x):
    ...     return f(x * scale) + 1
    >>> f = scale_input(lu.wrap_init(lambda x: x * x), 10)
    >>> f.call_wrapped(2)
    401
    """
    if not given:
        return decorate(transformation2, gen)
    fun, *static = given
    wrapped = functools.partial(gen, fun.call_wrapped, *static)
    return WrappedFun(fun.f, wrapped, fun.debug_info, (*fun.key[1:], gen, *static))


def transformation_with_aux2(gen: Callable, *given: Any, **options: Any) -> Any:
    """Apply a transformation that is written as a function and has an auxiliary result.

    It does the same as `transformation2`. The function also receives a store for the auxiliary
    result.

    Args:
      gen: a function of the function to transform, the store, the static arguments and the
        arguments of the transformed function. It calls `store.store(value)` once in each call.
      *given: the `WrappedFun` to transform, and then the static arguments. If nothing is passed, a
        decorator is returned: a function of a `WrappedFun` and static arguments.
      **options: ignored. They exist for calls that are written for JAX.

    Returns:
      A pair of a `WrappedFun` and a function without arguments, or the decorator. The function
      returns the auxiliary result of the last call.

    Raises:
      StoreException: the auxiliary result is read before the first call.

    >>> from weft.extend import linear_util as lu
    >>> @lu.transformation_with_aux2
    ... def add_type(f, store, x):
    ...     y = f(x)
    ...     store.store(type(y))
    ...     return y
    >>> f, out_type = add_type(lu.wrap_init(abs))
    >>> f.call_wrapped(-2.5), out_type()
    (2.5, <class 'float'>)
    """
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
    """Apply a transformation that is written as a generator.

    The generator yields twice. The first value is `(args, kwargs)`, the arguments for the function.
    The result of the function is sent to it, and its second value is the result of the transformed
    function.

    Args:
      gen: a generator function of the static arguments and the arguments of the transformed
        function.
      *given: the `WrappedFun` to transform, and then the static arguments. If nothing is passed, a
        decorator is returned: a function of a `WrappedFun` and static arguments.

    Returns:
      A `WrappedFun`, or the decorator.

    >>> from weft.extend import linear_util as lu
    >>> @lu.transformation
    ... def scale_input(scale, x):
    ...     y = yield (x * scale,), {}
    ...     yield y + 1
    >>> f = scale_input(lu.wrap_init(lambda x: x * x), 10)
    >>> f.call_wrapped(2)
    401
    """
    if not given:
        return decorate(transformation, gen)
    return transformation2(_run, given[0], gen, *given[1:])


def transformation_with_aux(gen: Callable, *given: Any, **options: Any) -> Any:
    """Apply a transformation that is written as a generator and has an auxiliary result.

    It does the same as `transformation`. The second value that the generator yields is a pair: the
    result of the transformed function, and the auxiliary result.

    Args:
      gen: a generator function of the static arguments and the arguments of the transformed
        function.
      *given: the `WrappedFun` to transform, and then the static arguments. If nothing is passed, a
        decorator is returned: a function of a `WrappedFun` and static arguments.
      **options: ignored. They exist for calls that are written for JAX.

    Returns:
      A pair of a `WrappedFun` and a function without arguments, or the decorator. The function
      returns the auxiliary result of the last call.

    Raises:
      StoreException: the auxiliary result is read before the first call.

    >>> from weft.extend import linear_util as lu
    >>> @lu.transformation_with_aux
    ... def add_type(x):
    ...     y = yield (x,), {}
    ...     yield y, type(y)
    >>> f, out_type = add_type(lu.wrap_init(abs))
    >>> f.call_wrapped(-2.5), out_type()
    (2.5, <class 'float'>)
    """
    if not given:
        return decorate(transformation_with_aux, gen)
    return transformation_with_aux2(_run_with_aux, given[0], gen, *given[1:])


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple[bool, Any]:
    """Return the auxiliary result of the transformation that was run, of two.

    It is for a function that is called through one of two transformations.

    Args:
      aux1: the function that returns the auxiliary result of the first transformation.
      aux2: the function that returns the auxiliary result of the second transformation.

    Returns:
      A pair: True if the first transformation was run, else False; and the auxiliary result.

    Raises:
      StoreException: neither transformation was run.

    >>> from weft.extend import linear_util as lu
    >>> @lu.transformation_with_aux2
    ... def add_type(f, store, x):
    ...     y = f(x)
    ...     store.store(type(y))
    ...     return y
    >>> f, f_type = add_type(lu.wrap_init(abs))
    >>> g, g_type = add_type(lu.wrap_init(abs))
    >>> _ = g.call_wrapped(-2)
    >>> lu.merge_linear_aux(f_type, g_type)
    (False, <class 'int'>)
    """
    try:
        return True, aux1()
    except StoreException:
        return False, aux2()


# --- of pytrees -----------------------------------------------------------------------------------


def debug_info(
    traced_for: str, fun: Callable, args: Sequence[Any], kwargs: dict[str, Any], **options: Any
) -> DebugInfo:
    """Return the debug information of a function that is about to be traced.

    Args:
      traced_for: the name of the transformation.
      fun: the function.
      args: its positional arguments. They are not used; calls that are written for JAX pass them.
      kwargs: its keyword arguments, not used either.
      **options: further options of JAX, which are ignored.

    Returns:
      A `DebugInfo` with the two names.

    >>> from weft import api_util
    >>> api_util.debug_info("jit", abs, (1,), {}).func_src_info
    'abs'
    """
    return DebugInfo(traced_for, fun_name(fun))


@transformation_with_aux2
def flatten_fun(f: Callable, store: Store, in_tree: Any, *leaves: Any) -> list:
    """Make a function of pytrees a function of flat lists.

    Call it as `flatten_fun(f, in_tree)`.

    Args:
      f: a `WrappedFun`, from `linear_util.wrap_init`.
      store: holds the structure of the result. The decorator passes it.
      in_tree: the structure of `(args, kwargs)`.
      *leaves: the leaves of `(args, kwargs)`, the arguments of the transformed function.

    Returns:
      A pair: a `WrappedFun` from leaves to the list of the leaves of the result, and a function
      that returns the structure of the result after the call.

    >>> from weft import api_util, tree_util
    >>> from weft.extend import linear_util as lu
    >>> leaves, in_tree = tree_util.tree_flatten((({"a": 2, "b": 3},), {"c": 4}))
    >>> add = lu.wrap_init(lambda x, c: [x["a"] + c, x["b"] + c])
    >>> flat, out_tree = api_util.flatten_fun(add, in_tree)
    >>> flat.call_wrapped(*leaves)
    [6, 7]
    >>> out_tree()
    PyTreeDef([*, *])
    """
    args, kwargs = unflatten(in_tree, leaves)
    outs, out_tree = flatten(f(*args, **kwargs))
    store.store(out_tree)
    return outs


@transformation_with_aux2
def flatten_fun_nokwargs(f: Callable, store: Store, in_tree: Any, *leaves: Any) -> list:
    """Make a function of pytrees, without keyword arguments, a function of flat lists.

    Call it as `flatten_fun_nokwargs(f, in_tree)`.

    Args:
      f: a `WrappedFun`, from `linear_util.wrap_init`.
      store: holds the structure of the result. The decorator passes it.
      in_tree: the structure of the tuple of arguments.
      *leaves: the leaves of the arguments, which the transformed function takes.

    Returns:
      A pair: a `WrappedFun` from leaves to the list of the leaves of the result, and a function
      that returns the structure of the result after the call.

    >>> from weft import api_util, tree_util
    >>> from weft.extend import linear_util as lu
    >>> leaves, in_tree = tree_util.tree_flatten(({"a": 2, "b": 3},))
    >>> product = lu.wrap_init(lambda x: x["a"] * x["b"])
    >>> flat, out_tree = api_util.flatten_fun_nokwargs(product, in_tree)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([6], PyTreeDef(*))
    """
    outs, out_tree = flatten(f(*unflatten(in_tree, leaves)))
    store.store(out_tree)
    return outs


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Sequence[int] | None,
    argnames: str | Sequence[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return positions and names of the same arguments.

    Args:
      sig: the signature of the function.
      argnums: positions of arguments, an int or several; None if only names are given.
      argnames: names of arguments, a str or several; None if only positions are given.

    Returns:
      A pair of tuples, the positions and the names. What is None is found by the signature; if
      both are given, both are returned unchanged.

    >>> import inspect
    >>> from weft import api_util
    >>> sig = inspect.signature(lambda x, y, z: x)
    >>> api_util.infer_argnums_and_argnames(sig, None, "y")
    ((1,), ('y',))
    >>> api_util.infer_argnums_and_argnames(sig, (0, 2), None)
    ((0, 2), ('x', 'z'))
    """
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
    """Fix all arguments of a function but some.

    Args:
      f: a `WrappedFun`, from `linear_util.wrap_init`.
      dyn_argnums: the positions of the arguments that stay arguments, an int or several. Negative
        positions count from the end.
      args: all arguments.
      require_static_args_hashable: ignored; the fixed arguments need no hash.
      **options: further options of JAX, which are ignored.

    Returns:
      A pair: a `WrappedFun` of the arguments at `dyn_argnums`, and the list of these arguments.

    >>> from weft import api_util
    >>> from weft.extend import linear_util as lu
    >>> f, dynamic = api_util.argnums_partial(lu.wrap_init(pow), 1, (2, 5))
    >>> dynamic, f.call_wrapped(3)
    ([5], 8)
    """
    dynamic = {dyn_argnums} if isinstance(dyn_argnums, int) else {*dyn_argnums}
    mask = [i in {n % len(args) for n in dynamic} for i in range(len(args))]
    fixed = [x for x, m in zip(args, mask, strict=True) if not m]
    put_back = lambda fun, *xs, **kwargs: fun(*merge(mask, fixed, xs), **kwargs)
    return transformation2(put_back, f), [x for x, m in zip(args, mask, strict=True) if m]


def flatten_axes(
    name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list:
    """Repeat each leaf of a prefix of a pytree for every leaf below it.

    Args:
      name: the name of the caller, for errors.
      treedef: the structure of the pytree.
      axis_tree: a prefix of the pytree, whose leaves are axes or other values. None is a leaf.
      kws: ignored; JAX says in its errors with it that the pytree has keyword arguments.
      tupled_args: ignored, likewise.

    Returns:
      A list with one entry for each leaf of the pytree.

    Raises:
      PytreeError: `axis_tree` is not a prefix of the pytree.

    >>> from weft import api_util, tree_util
    >>> tree = tree_util.tree_structure(({"a": 1, "b": 2}, 3))
    >>> api_util.flatten_axes("my_map", tree, (0, None))
    [0, 0, None]
    """
    names = ("axis_tree", "treedef")
    return broadcast_to_structure(axis_tree, treedef, is_none, op=name, names=names)


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """Return the positions of donated arguments among those that are not static.

    Args:
      donate_argnums: the positions of donated arguments, among all arguments.
      static_argnums: the positions of static arguments. They must not be donated.

    Returns:
      A tuple of positions, in ascending order.

    >>> from weft import api_util
    >>> api_util.rebase_donate_argnums((2, 3), (0, 1))
    (0, 1)
    """
    return tuple(i - sum(s < i for s in static_argnums) for i in sorted(donate_argnums))


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """Return for each leaf of the arguments whether it is donated.

    Args:
      donate_argnums: the positions of donated arguments.
      donate_argnames: the names of donated keyword arguments.
      in_tree: the structure of `(args, kwargs)`, or of `args` if `kws` is False.
      kws: True if `in_tree` includes keyword arguments, which is the default.

    Returns:
      A tuple of bools.

    >>> from weft import api_util, tree_util
    >>> tree = tree_util.tree_structure((([1, 2], 3), {"c": 4}))
    >>> api_util.donation_vector((0,), ("c",), tree)
    (True, True, False, True)
    """
    args, kwargs = in_tree.children() if kws else (in_tree, structure({}))
    marks = [i in donate_argnums for i in range(len(args.children()))]
    marks += [name in donate_argnames for name in kwargs.node_data()[1]]
    parts = zip(marks, [*args.children(), *kwargs.children()], strict=True)
    return tuple(donated for donated, part in parts for _ in range(part.num_leaves))


def safe_zip(*xs: Any) -> list[tuple]:
    """Pair the entries of sequences of the same length.

    Args:
      *xs: iterables.

    Returns:
      A list of tuples, as of `zip`.

    Raises:
      ValueError: the lengths differ.

    >>> from weft import api_util
    >>> api_util.safe_zip([1, 2], "ab")
    [(1, 'a'), (2, 'b')]
    """
    return list(zip(*xs, strict=True))


def safe_map(f: Callable, *xs: Any) -> list:
    """Apply a function to the entries of sequences of the same length.

    Args:
      f: a function with as many arguments as there are sequences.
      *xs: iterables.

    Returns:
      A list of the results.

    Raises:
      ValueError: the lengths differ.

    >>> from weft import api_util
    >>> api_util.safe_map(max, [1, 5], [4, 2])
    [4, 5]
    """
    return [f(*row) for row in zip(*map(list, xs), strict=True)]
