"""Functions of numbers, vectors or axes made into functions of whole arrays.

`vectorize` is `vmap` over the axes that operands broadcast to; ufuncs are in ufunc_objects.py.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from weft.api.functions import check_callable
from weft.api.vmap import vmap
from weft.errors import ShapeError
from weft.numpy.manipulation import expand_dims, squeeze
from weft.numpy.promotion import as_array, axis_of, broadcast_shapes
from weft.primitives.families import check_integer
from weft.pytrees import is_tree_node, tree_map
from weft.util import fun_name
from weft.xla.typing import Array, ArrayLike

Dims = tuple[str, ...]


# --- vectorize ------------------------------------------------------------------------------


def vectorize(
    pyfunc: Callable, *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable:
    """Make a function of numbers a function of arrays that broadcast against each other.

    With a `signature` the function takes arrays of the named axes, and is mapped over all axes
    before them. The function is traced by `vmap`; NumPy calls it in a loop.

    Args:
      pyfunc: function of arrays. Without a `signature` it gets arrays of shape ().
      excluded: positions (ints, not negative) and names of arguments to pass to `pyfunc` unchanged,
        of any type. Empty by default.
      signature: a text such as "(n,m),(m)->(n)": the axes of each argument, in order, and of each
        result. A name stands for one size in all places; a digit stands for itself. None (default)
        for functions of numbers.

    Returns:
      A function that takes arrays, whose leading axes broadcast together, and returns arrays of
      these axes and the axes of the results.

    Raises:
      TypeError: if `excluded` or `signature` is of another type. On a call: if the number of
        arguments or of results differs from the signature.
      ValueError: if `signature` is not such a text, or `excluded` has a negative number.
      ShapeError: on a call, if a named axis has two sizes.

    >>> larger = jnp.vectorize(lambda a, b: jnp.where(a > b, a, b))
    >>> larger(jnp.array([1, 5]), 3)
    Array([3, 5], dtype=int32)

    With axes of the function's own:

    >>> f = jnp.vectorize(jnp.dot, signature="(n,m),(m)->(n)")
    >>> f(jnp.ones((2, 3)), jnp.ones((4, 3))).shape
    (4, 2)

    With an argument that stays a Python value:

    >>> power = jnp.vectorize(lambda x, p: x**2 if p == 2 else x, excluded={1})
    >>> power(jnp.array([1.0, 3.0]), 2)
    Array([1., 9.], dtype=float32)
    """
    op = f"vectorize({fun_name(pyfunc)})"
    if not isinstance(excluded, set | frozenset | list | tuple) or any(
        type(e) not in (int, str) for e in excluded
    ):
        raise TypeError(f"vectorize: excluded must be numbers and names; got {excluded!r}.")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"vectorize: excluded must not be negative; got {set(excluded)!r}.")
    if not isinstance(signature, str | None):
        raise TypeError(f'{op}: signature must be text, as "(n),(n)->()"; got {signature!r}.')
    core = None if signature is None else parse_signature(signature)

    @functools.wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        mapped = [i for i in range(len(args)) if i not in excluded]
        names = [] if core else [k for k in kwargs if k not in excluded]
        arrays = [
            as_array(x, op) for x in (*(args[i] for i in mapped), *(kwargs[k] for k in names))
        ]
        inputs = core[0] if core else [()] * len(arrays)
        if len(inputs) != len(arrays):
            raise TypeError(
                f"{op}: there must be an argument for each part of {signature!r}, {len(inputs)}; "
                f"got {len(arrays)}."
            )

        def call(*values: Any) -> Any:
            every, named = list(args), dict(kwargs)
            for place, x in zip([*mapped, *names], values, strict=True):
                (named if isinstance(place, str) else every)[place] = x
            return check_outputs(op, pyfunc(*every, **named), core[1] if core else None, sizes)

        sizes = find_core_sizes(op, arrays, inputs)
        return map_leading_axes(call, arrays, [len(dims) for dims in inputs])

    return wrapped


def parse_signature(signature: str) -> tuple[list[Dims], list[Dims]]:
    """The names of the axes of each argument, and of each result."""
    part = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
    parts = rf"\s*{part}\s*(?:,\s*{part}\s*)*"
    if not re.fullmatch(f"{parts}->{parts}", signature):
        raise ValueError(
            f"vectorize: signature must name axes as '(n,m),(m)->(n)'; got {signature!r}."
        )
    sides = [re.findall(part, side) for side in signature.split("->")]
    inputs, outputs = ([tuple(re.findall(r"\w+", p)) for p in side] for side in sides)
    return inputs, outputs


def find_core_sizes(op: str, arrays: Sequence[Any], inputs: Sequence[Dims]) -> dict[str, int]:
    """The sizes of the axes that a signature names."""
    sizes: dict[str, int] = {}
    for x, dims in zip(arrays, inputs, strict=True):
        if x.ndim < len(dims):
            raise ShapeError(f"{op}: an argument must have the axes {dims}; got {x.aval}.")
        check_sizes_agree(op, sizes, dims, x.shape[x.ndim - len(dims) :])
    return sizes


def check_sizes_agree(op: str, sizes: dict[str, int], dims: Dims, shape: Sequence[int]) -> None:
    """Note the sizes of named axes; raise where one is of two sizes."""
    for name, n in zip(dims, shape, strict=True):
        want = sizes.setdefault(name, int(name) if name.isdigit() else n)
        if want != n:
            raise ShapeError(f"{op}: axis {name!r} must have one size; got {want} and {n}.")


def check_outputs(op: str, outs: Any, dims: Sequence[Dims] | None, sizes: dict[str, int]) -> Any:
    """Return the results of the function as arrays of the axes in the signature.

    A pytree of a class that has a `shape` is one result.
    """
    if dims is None:
        return outs
    several = isinstance(outs, tuple)
    found = [
        y if is_tree_node(type(y)) and hasattr(y, "shape") else as_array(y, op)
        for y in (outs if several else (outs,))
    ]
    if several != (len(dims) > 1) or len(found) != len(dims):
        raise TypeError(f"{op}: the function must give {len(dims)} results; got {len(found)}.")
    for y, names in zip(found, dims, strict=True):
        if len(y.shape) != len(names):
            got = getattr(y, "aval", y.shape)
            raise ShapeError(f"{op}: a result must have the axes {names}; got {got}.")
        check_sizes_agree(op, sizes, names, y.shape)
    return tuple(found) if several else found[0]


def map_leading_axes(call: Callable, arrays: Sequence[Any], core_ndims: Sequence[int]) -> Any:
    """`call` on arrays, mapped over the axes before their last ones, which broadcast together."""
    leading = [x.shape[: x.ndim - n] for x, n in zip(arrays, core_ndims, strict=True)]
    shape = broadcast_shapes(*leading)
    # an argument is mapped where it has elements of its own; where it has one, that is given
    squeezed = [
        squeeze(x, tuple(i for i, n in enumerate(lead) if n == 1))
        for x, lead in zip(arrays, leading, strict=True)
    ]
    fun = call
    for i in range(1, len(shape) + 1):
        axes = [0 if len(lead) >= i and lead[-i] != 1 else None for lead in leading]
        if any(a is not None for a in axes):
            fun = vmap(fun, in_axes=tuple(axes))
        else:
            fun = add_row_axis(fun)
    return fun(*squeezed)


def add_row_axis(fun: Callable) -> Callable:
    """A function whose results get a first axis of size 1."""
    return lambda *xs: tree_map(lambda y: expand_dims(as_array(y), 0), fun(*xs))


# --- along axes -----------------------------------------------------------------------------


def apply_along_axis(
    func1d: Callable, axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """Apply a function of vectors to every vector along an axis.

    The function is traced once, by `vmap`, and mapped over all other axes.

    Args:
      func1d: function of a vector, `func1d(vector, *args, **kwargs)`.
      axis: the axis of the vectors; negative numbers count from the last.
      arr: array with one axis or more.
      args: further arguments of `func1d`, passed unchanged.
      kwargs: keyword arguments of `func1d`, passed unchanged.

    Returns:
      An array of the shape of `arr`, with the axes of the function's result in place of the axis.

    Raises:
      TypeError: if `func1d` is not callable.
      ShapeError: if the axis does not exist.

    >>> jnp.apply_along_axis(jnp.sum, 0, jnp.ones((2, 3)))
    Array([2., 2., 2.], dtype=float32)
    >>> jnp.apply_along_axis(jnp.diag, -1, jnp.ones((2, 3))).shape
    (2, 3, 3)
    """
    check_callable("apply_along_axis", func1d)
    x = as_array(arr, "apply_along_axis")
    axis = axis_of("apply_along_axis", axis, x.ndim)

    def fun(vector: Any) -> Any:
        return func1d(vector, *args, **kwargs)

    # Leading axes become the first axes of the result; trailing axes follow the axes of `func1d`'s
    # result.
    for _ in range(x.ndim - 1 - axis):
        fun = vmap(fun, in_axes=-1, out_axes=-1)
    for _ in range(axis):
        fun = vmap(fun)
    return fun(x)


def apply_over_axes(func: Callable, a: ArrayLike, axes: int | Sequence[int]) -> Array:
    """Apply a function to an array along several axes, one after the other.

    It calls `func(a, axis)` for each axis in order. If the result has lost the axis, the axis comes
    back with size 1.

    Args:
      func: function of an array and an axis, such as `jnp.sum`.
      a: array of any dtype.
      axes: an axis, or a sequence of them; negative numbers count from the last.

    Returns:
      An array of the rank of `a`.

    Raises:
      TypeError: if `func` is not callable.
      ShapeError: if an axis does not exist, or the function returns an array of another rank.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), (0, 2)).shape
    (1, 3, 1)
    """
    check_callable("apply_over_axes", func)
    x = as_array(a, "apply_over_axes")
    for axis in axes if isinstance(axes, Sequence) else (axes,):
        axis = axis_of("apply_over_axes", check_integer("apply_over_axes", "axes", axis), x.ndim)
        out = as_array(func(x, axis), "apply_over_axes")
        if out.ndim == x.ndim - 1:
            out = expand_dims(out, axis)
        if out.ndim != x.ndim:
            raise ShapeError(
                "apply_over_axes: the function must give as many axes, or one less; "
                f"got {x.aval} and then {out.aval}."
            )
        x = out
    return x
