"""Python functions called from compiled programs: `pure_callback`, `io_callback`.

The primitives and their rules are primitives/effects.py's; calls for debugging are in
debug/printing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.functions import avals_of, check_callable, struct_like
from weft.core.aval import ShapedArray, is_valid_value, typeof
from weft.primitives.effects import (
    VMAP_METHODS,
    io_callback_p,
    ordered_io_callback_p,
    pure_callback_p,
)
from weft.primitives.layout import random_unwrap_p
from weft.pytrees import PyTreeDef, flatten, flatten_with_path, keystr, unflatten
from weft.util import check_option, fun_name
from weft.xla.array import array_of_type, put


class FlatCallback:
    """A function of pytrees as a program calls it: given arrays, leaves out, which are checked."""

    __slots__ = ("callback_func", "in_tree", "op", "out_tree")

    def __init__(self, op: str, callback_func: Callable, in_tree: PyTreeDef, out_tree: PyTreeDef):
        self.op = op
        self.callback_func = callback_func
        self.in_tree = in_tree
        self.out_tree = out_tree

    def __call__(self, result_avals: Sequence[ShapedArray], *leaves: Any) -> list[np.ndarray]:
        args, kwargs = unflatten(self.in_tree, map(put, leaves))
        out = self.callback_func(*args, **kwargs)
        outs, tree = flatten(out)
        if len(outs) != self.out_tree.num_leaves:  # a list or a named tuple may stand for a tuple
            raise TypeError(
                f"{self.op}: {fun_name(self.callback_func)} must return the structure of "
                f"result_shape_dtypes; got {tree} where {self.out_tree} was."
            )
        names = [keystr(path) for path, _ in flatten_with_path(out)[0]] if len(outs) > 1 else [""]
        return [
            check_result(self.op, f"result{name} of {fun_name(self.callback_func)}", x, aval)
            for x, aval, name in zip(outs, result_avals, names, strict=False)
        ]

    @property
    def __name__(self) -> str:
        return fun_name(self.callback_func)


class KeyCallback:
    """A flat callback some of whose operands are random keys, of these dtypes, given as words."""

    __slots__ = ("callback", "key_dtypes")

    def __init__(self, callback: Callable, key_dtypes: Sequence[Any]):
        self.callback = callback
        self.key_dtypes = key_dtypes

    def __call__(self, result_avals: Sequence[ShapedArray], *args: Any) -> list[np.ndarray]:
        return self.callback(
            result_avals,
            *[
                x if d is None else array_of_type(ShapedArray(x.shape[:-1], d), put(x))
                for x, d in zip(args, self.key_dtypes, strict=True)
            ],
        )

    @property
    def __name__(self) -> str:
        return self.callback.__name__


def pass_words(callback: Callable, leaves: list[Any]) -> tuple[Callable, list[Any]]:
    """A flat callback and its operands, with words for random keys: so programs pass them."""
    kinds = [typeof(x).dtype for x in leaves]
    key_dtypes = [d if dtypes.is_extended(d) else None for d in kinds]
    if not any(key_dtypes):
        return callback, leaves
    words = [random_unwrap_p.apply(x)[0] if d else x for x, d in zip(leaves, key_dtypes)]
    return KeyCallback(callback, key_dtypes), words


def pure_callback(
    callback: Callable,
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function that has no side effects, also from a compiled program.

    It is for functions that weft does not have, for example SciPy's. Each time the program runs,
    `callback(*args, **kwargs)` is called with arrays, in the thread that called the program. The
    callback may be called more often than the program says, or never if its results are not used;
    use `io_callback` for side effects. An error that it raises is raised by the call of the
    program. It has no derivative; use `custom_jvp` or `custom_vjp` around the call to define one.

    Args:
      callback: a function of pytrees of arrays. It returns NumPy arrays, or arrays or numbers, as
        `result_shape_dtypes` says.
      result_shape_dtypes: a pytree of arrays or ShapeDtypeStructs, the types of the results.
      *args: the positional arguments of the callback, pytrees of arrays.
      sharding: is accepted for compatibility with JAX; PJRT chooses where the callback runs.
      vmap_method: says how `vmap` calls the callback. "sequential" calls it for each element.
        "expand_dims" calls it once; mapped arguments have the mapped axis first, and others a first
        axis of size 1. "broadcast_all" calls it once; all arguments have the mapped axis first.
        "sequential_unrolled" and "legacy_vectorized" are accepted as in JAX. With None, the
        default, `vmap` raises an error.
      **kwargs: the keyword arguments of the callback, pytrees of arrays.

    Returns:
      The results of the callback as arrays, a pytree like `result_shape_dtypes`.

    Raises:
      MissingRule: under `vmap` without a `vmap_method`.
      TypeError: `result_shape_dtypes` holds something else than types; the callback returns an
        array of another shape or dtype.
      ValueError: the arguments are differentiated; `vmap_method` is not one of the above.

    >>> struct = weft.ShapeDtypeStruct((3,), np.float32)
    >>> f = weft.jit(lambda x: weft.pure_callback(np.sort, struct, x))
    >>> f(np.float32([3, 1, 2]))
    Array([1., 2., 3.], dtype=float32)

    A function that maps over the axes in front may be called once for a batch:

    >>> def sine(x):
    ...     struct = weft.ShapeDtypeStruct(x.shape, x.dtype)
    ...     return weft.pure_callback(np.sin, struct, x, vmap_method="expand_dims")
    >>> print(weft.vmap(sine)(jnp.zeros(2)))
    [0. 0.]
    """
    check_option("pure_callback", "vmap_method", vmap_method, *VMAP_METHODS, None)
    return call_flat(
        "pure_callback",
        callback,
        result_shape_dtypes,
        (args, kwargs),
        pure_callback_p.apply,
        {"sharding": sharding, "vmap_method": vmap_method},
    )


def io_callback(
    callback: Callable,
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function for its side effects, also from a compiled program.

    It is for logging, reading data, and other exchange with the world. Unlike with `pure_callback`,
    the function is called exactly once each time the program reaches the call, also if its results
    are not used; under `vmap` it is called once for each element. A call without floating-point
    results is allowed in a function that is differentiated, and has no part in the derivative.

    Args:
      callback: a function of pytrees of arrays.
      result_shape_dtypes: a pytree of arrays or ShapeDtypeStructs, the types of the results; None
        for a callback that returns None.
      *args: the positional arguments of the callback, pytrees of arrays.
      sharding: is accepted for compatibility with JAX; PJRT chooses where the callback runs.
      ordered: if True, the ordered calls of a program are made in the order of the program text.
        Such a call must not be mapped. By default the order is not fixed.
      **kwargs: the keyword arguments of the callback, pytrees of arrays.

    Returns:
      The results of the callback as arrays, a pytree like `result_shape_dtypes`.

    Raises:
      TypeError: `result_shape_dtypes` holds something else than types; the callback returns
        something of another structure, shape or dtype.
      ValueError: an ordered call is mapped by `vmap`; the arguments of a call with floating-point
        results are differentiated.

    >>> seen = []
    >>> @weft.jit
    ... def f(x):
    ...     io_callback(lambda v: seen.append(float(v)), None, x, ordered=True)
    ...     return x + 1
    >>> f(f(1.0)), seen
    (Array(3., dtype=float32, weak_type=True), [1.0, 2.0])
    """
    prim = ordered_io_callback_p if ordered else io_callback_p
    given = {"sharding": sharding}
    return call_flat(
        "io_callback", callback, result_shape_dtypes, (args, kwargs), prim.apply, given
    )


def call_flat(
    op: str, callback: Callable, shapes: Any, call: tuple, bind: Callable, params: dict
) -> Any:
    """Bind a primitive to the leaves of a call of a function whose results have given types."""
    check_callable(op, callback)
    leaves, in_tree = flatten(call)
    avals_of(op, leaves, in_tree, callback)
    result_avals, out_tree = result_types(op, shapes)
    flat, leaves = pass_words(FlatCallback(op, callback, in_tree, out_tree), leaves)
    outs = bind(*leaves, callback=flat, result_avals=result_avals, **params)
    return unflatten(out_tree, outs)


def result_types(op: str, shapes: Any) -> tuple[tuple[ShapedArray, ...], PyTreeDef]:
    """The types that a pytree of arrays and structs names, and its structure."""
    found = []
    leaves, tree = flatten_with_path(shapes)
    for path, x in leaves:
        struct = struct_like(x)
        if not is_valid_value(struct) and not hasattr(struct, "aval"):
            raise TypeError(
                f"{op}: result_shape_dtypes must be a pytree of arrays or ShapeDtypeStructs; got "
                f"{x!r} at result_shape_dtypes{keystr(path)}. "
                "Hint: weft.ShapeDtypeStruct(shape, dtype)."
            )
        if dtypes.is_extended(typeof(struct).dtype):
            raise TypeError(
                f"{op}: result_shape_dtypes must be of numbers, not of random keys; got {struct}. "
                "Hint: return random.key_data(key), and random.wrap_key_data(words) after the call."
            )
        found.append(typeof(struct).strong())
    return tuple(found), tree


def effects_barrier() -> None:
    """Wait until the side effects of programs that were called are done.

    It returns at once: a program with callbacks runs to its end in its call. The function exists
    for programs written for JAX, where callbacks may run later. It takes no parameters.

    Returns:
      None.

    >>> weft.debug.callback(lambda x: print("x is", x), 3)
    x is 3
    >>> weft.effects_barrier()
    """


def check_result(op: str, where: str, x: Any, aval: ShapedArray) -> np.ndarray:
    """Return a result as jaxlib takes it, or raise an error that names it.

    A Python number may have any dtype of its kind: a float may stand for a float16, an int for an
    int8.
    """
    got = typeof(x, op)
    dtype = got.dtype
    if type(x) is dtypes.scalar_type_of(aval.dtype):
        dtype = aval.dtype
    if got.shape != aval.shape or dtype != aval.dtype:
        raise TypeError(
            f"{op}: the callback must return what result_shape_dtypes says; got {got} for {where}, "
            f"which is {aval.strong()}."
        )
    try:
        return dtypes.cast_on_host(x, aval.dtype)
    except OverflowError:
        raise OverflowError(f"{op}: {where} must fit {aval.dtype}; got {x}.") from None
