"""Users' functions and their arguments: pytrees to flat lists, types, names for errors, checks.

The folders before api/ take and return flat lists.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.api.shape_struct import ShapeDtypeStruct
from weft.api.structures import leaf_paths
from weft.core.aval import ShapedArray, is_masked, is_valid_value, typeof
from weft.core.ref import AbstractRef, is_ref
from weft.core.stage import StagedTracer
from weft.core.trace import current
from weft.errors import DtypeError, Origin, RefError
from weft.pytrees import PyTreeDef, flatten, flatten_with_path, keystr, unflatten
from weft.transforms.batch import BatchTracer
from weft.transforms.jvp import JVPTracer
from weft.util import fun_name, insert_at, name_line
from weft.xla.array import ARRAYS, ArrayImpl, deleted_error

_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
# Types that are values beyond doubt; the rest are looked at.
_PLAIN = frozenset((ArrayImpl, StagedTracer, JVPTracer, BatchTracer, float, int, bool, complex))


class FlatFun:
    """A function of pytrees as a function of flat lists of leaves.

    `out_tree` is known after a call. With `has_aux` so is `aux`, the second of the pair that `fun`
    returns. float0 values hold no data, so programs do not contain them. With `float0`, the leaves
    of that dtype by place, these leaves are not arguments; results of that dtype are not returned,
    but put into `hidden`, by place.
    """

    __slots__ = ("flat_aux", "float0", "fun", "has_aux", "hidden", "in_tree", "op", "out_tree")

    def __init__(
        self,
        fun: Callable,
        in_tree: PyTreeDef,
        op: str,
        has_aux: bool = False,
        float0: dict[int, Any] | None = None,
    ):
        self.fun = fun
        self.in_tree = in_tree
        self.op = op
        self.has_aux = has_aux
        self.float0 = float0
        self.out_tree: Any = None
        self.flat_aux: Any = None
        self.hidden: dict[int, Any] = {}

    def __call__(self, *leaves: Any) -> list:
        if self.float0:
            leaves = tuple(insert_at(leaves, self.float0))
        args, kwargs = unflatten(self.in_tree, leaves)
        out = self.fun(*args, **kwargs)
        if self.has_aux:
            if not isinstance(out, tuple) or len(out) != 2:
                raise TypeError(
                    f"{self.op}: with has_aux=True the function must return a pair (output, aux); "
                    f"got {getattr(out, 'aval', type(out).__name__)}."
                )
            out, aux = out
            aux_leaves, tree = flatten(aux)
            self.flat_aux = tree, [strip_tangent(x) for x in aux_leaves]
        outs, self.out_tree = flatten(out)
        hidden = self.hidden = {}
        if not _PLAIN.issuperset(map(type, outs)):
            for i, x in enumerate(outs):
                if self.float0 is not None and getattr(x, "dtype", None) == dtypes.float0:
                    hidden[i] = x
                elif not is_valid_value(x):
                    raise result_error(self.op, self.fun, out)
                elif is_ref(x):
                    raise RefError(
                        f"{self.op}: a reference must not be returned; got a {x.aval} from "
                        f"{fun_name(self.fun)}. Hint: return r[...], or weft.freeze(r)."
                    )
        return [x for i, x in enumerate(outs) if i not in hidden] if hidden else outs

    @property
    def aux(self) -> Any:
        """The second result of the last call, built where it is asked for: after the trace."""
        return unflatten(*self.flat_aux)

    def result(self, outs: Sequence[Any]) -> Any:
        """The pytree of results from its leaves."""
        return unflatten(self.out_tree, outs)


def flatten_call(
    op: str,
    fun: Callable,
    args: tuple,
    kwargs: dict | None = None,
    has_aux: bool = False,
    structs: bool = False,
) -> tuple[FlatFun, list, list[ShapedArray]]:
    """A function on flat lists, the leaves of the arguments of a call of it, and their types."""
    check_callable(op, fun)
    leaves, in_tree = flatten((args, kwargs or {}))
    avals = avals_of(op, leaves, in_tree, fun, structs)
    return FlatFun(fun, in_tree, op, has_aux), leaves, avals


def strip_tangent(x: Any) -> Any:
    """A value of the function that is being differentiated, without its tangent."""
    return x.primal if isinstance(x, JVPTracer) and x.owner is current.trace else x


def value_error(op: str, kind: str, path: str, x: Any) -> DtypeError:
    """The error for a leaf that is not an array or number."""
    if is_masked(x):
        hint = "x.filled(0), which is without a mask."
    elif isinstance(x, np.ndarray):
        hint = f"convert dtype {x.dtype} to a numeric one first."
    elif dataclasses.is_dataclass(x):
        hint = (
            f"weft.tree_util.register_dataclass({register_arguments(x)}) makes its fields leaves."
        )
    elif kind == "results":
        hint = "return arrays, numbers and pytrees of them."
    elif op == "jit":
        name, _, fun = path.partition(" of ")
        hint = "mark the argument static (static_argnums, static_argnames)."
        if type(x).__hash__ is None:  # a static argument has to be hashed
            hint = "weft.tree_util.register_pytree_node_class, for a class that holds arrays."
        elif name.isidentifier() and fun.isidentifier():
            hint = f"jit({fun}, static_argnames={name!r}), for an argument that can be hashed."
        if name == "self":
            hint = "functools.partial(jit, static_argnums=0), for an object that does not change."
    else:
        hint = "close over it, as in lambda x: f(x, setting)."
    return DtypeError(
        f"{op}: {kind} must be arrays or numbers; got {x!r} of type {type(x).__name__} "
        f"at {path}. Hint: {hint}"
    )


def register_arguments(x: Any) -> str:
    """Return the arguments that register the class of a dataclass: fields of arrays are data."""
    data: list[str] = []
    meta: list[str] = []
    for field in dataclasses.fields(x):
        leaves = flatten(getattr(x, field.name, None))[0]
        is_data = all(is_valid_value(leaf) or dataclasses.is_dataclass(leaf) for leaf in leaves)
        (data if is_data else meta).append(field.name)
    name = type(x).__name__
    return f"{name}, data_fields={data}, meta_fields={meta}" if meta else name


def result_error(op: str, fun: Callable, out: Any) -> DtypeError:
    """The error for a result that is not an array or number, with its place."""
    for path, x in flatten_with_path(out)[0]:
        if not is_valid_value(x):
            where = f"result{keystr(path)} of {fun_name(fun)}"
            return value_error(op, "results", where, x)
    raise AssertionError("every leaf is valid")


def avals_of(
    op: str, leaves: Sequence[Any], tree: PyTreeDef, fun: Callable, structs: bool = False
) -> list[ShapedArray]:
    """The types of argument leaves, or an error that names the argument.

    With `structs`, anything with a shape and a dtype is taken as an array.
    """
    if structs:
        known = lambda x: type(x) is ArrayImpl or is_valid_value(x) or is_masked(x)
        leaves = [x if known(x) else struct_like(x) for x in leaves]
    try:
        avals = []
        for x in leaves:
            if type(x) in ARRAYS and not structs and x.is_deleted():
                raise deleted_error(x)  # with `structs`, types are enough
            avals.append(x.aval if type(x) is ArrayImpl else typeof(x))
        if AbstractRef in map(type, avals):
            check_refs(op, fun, (), leaves, lambda: argument_names(fun, tree))
        return avals
    except DtypeError:
        names = argument_names(fun, tree)
        for name, x in zip(names, leaves, strict=True):
            if not is_valid_value(x):
                raise value_error(op, "arguments", f"{name} of {fun_name(fun)}", x) from None
        raise


def check_refs(
    op: str, fun: Callable, consts: Sequence[Any], leaves: Sequence[Any], names: Callable
) -> None:
    """Raise where a reference is passed twice, or is both passed and closed over."""
    seen = {id(x): -1 for x in consts if is_ref(x)}
    for i, x in enumerate(leaves):
        if is_ref(x):
            first = seen.setdefault(id(x), i)
            if first != i:
                where = f"a value that {fun_name(fun)} closes over"
                where = where if first < 0 else names()[first]
                raise RefError(
                    f"{op}: a reference must be passed once, and not be closed over too; got a "
                    f"{x.aval} as {where} and as {names()[i]}."
                )


def struct_like(x: Any) -> Any:
    """The type of an object that has a shape and a dtype; else the object."""
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        weak, kinds = getattr(x, "weak_type", False), getattr(x, "manual_axis_type", None)
        return ShapeDtypeStruct(x.shape, x.dtype, weak_type=weak, manual_axis_type=kinds)
    return x


def argument_origins(fun: Callable, in_tree: PyTreeDef, op: str = "jit") -> list[Origin]:
    """Name the origin of each leaf of (args, kwargs): "argument `x` of loss at model.py:3"."""
    code = getattr(inspect.unwrap(fun), "__code__", None)
    place = f" at {name_line(code.co_filename, code.co_firstlineno)}" if code else ""
    names = argument_names(fun, in_tree)
    called = fun_name(fun)
    return [Origin(f"argument `{n}` of {called}{place}", called, n, op) for n in names]


def describe_program(fun: Callable, flat: FlatFun) -> tuple:
    """Return the description of a program made of `flat`, which is `fun` on leaves."""
    code = getattr(inspect.unwrap(fun), "__code__", None)
    place = f" at {code.co_filename}:{code.co_firstlineno}" if code else ""
    names, results = argument_names(fun, flat.in_tree), leaf_names("result", flat.out_tree)
    return "jit", f"{fun_name(fun)}{place}", tuple(names), tuple(results)


def argument_names(fun: Callable, in_tree: PyTreeDef) -> list[str]:
    """A name for each leaf of (args, kwargs), by the function's parameters: `params['w'][0]`."""
    args_tree, _ = in_tree.children()
    bound = parameter_names(fun, len(args_tree.children()))
    names = []
    for path in leaf_paths(in_tree):
        which, position, *rest = path
        if which.idx == 0:
            names.append(bound[position.idx] + keystr(tuple(rest)))
        else:
            names.append(str(position.key) + keystr(tuple(rest)))
    return names


def leaf_names(root: str, tree: PyTreeDef) -> list[str]:
    """A name for each leaf of a pytree: `carry['w'][0]`."""
    return [root + keystr(path) for path in leaf_paths(tree)]


def parameter_names(fun: Callable, count: int) -> list[str]:
    """Names for the first `count` positional arguments of a function."""
    names: list[str] = []
    fixed = getattr(fun, "__weft_static__", ())  # positions that jit filled in
    count += len(fixed)
    try:
        for p in inspect.signature(fun).parameters.values():
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
            elif p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(count - len(names))]
    except (TypeError, ValueError):
        pass
    names = names[:count] + [f"args[{i}]" for i in range(len(names), count)]
    return [n for i, n in enumerate(names) if i not in fixed]


def check_callable(op: str, fun: Any, wraps: bool = False) -> None:
    """Raise unless `fun` can be called; `wraps` says that `op` takes only a function."""
    if not callable(fun):
        raise TypeError(
            f"{op}: needs a function; got {fun!r} of type {type(fun).__name__}."
            + (f" Hint: {op}(f)(x), not {op}(f(x))." if wraps and is_valid_value(fun) else "")
        )
    code = getattr(getattr(fun, "func", fun), "__code__", None)
    if code is not None and code.co_flags & _SUSPENDS:
        raise TypeError(
            f"{op}: needs a function that returns its results; got {fun_name(fun)}, whose calls "
            "give a generator or a coroutine. Hint: return in place of yield."
        )


def as_tuple(x: Any) -> tuple:
    """An int or a name as a 1-tuple, a sequence as a tuple, None as ()."""
    if x is None:
        return ()
    if not isinstance(x, int | str | Iterable) or isinstance(x, np.ndarray):
        raise TypeError(f"static and donated arguments: must be integers or names; got {x!r}.")
    return (x,) if isinstance(x, int | str) else tuple(x)
