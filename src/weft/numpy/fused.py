"""One compiled program for a function made of several operations, when it is called eagerly.

So it is under transformations that are not jitted: there the function is a call of the program, of
which they make others. Else it runs operation by operation, as written.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from weft.api.arguments import Marked, fix_static
from weft.api.functions import FlatFun
from weft.core.aval import ShapedArray, typeof
from weft.core.source import trim_traceback
from weft.core.stage import stage_closed
from weft.core.trace import Tracer, current, eval_context
from weft.errors import DtypeError, TracerError
from weft.options import bounds_cell, config, trace_context
from weft.pytrees import flatten, unflatten
from weft.run.eager import EVAL, HOT, MOST
from weft.run.fastpath import compiled_call, is_unhashable_static
from weft.run.pipeline import JitSpec
from weft.run.programs import run_program
from weft.run.rules import RuleTrace, as_operation
from weft.xla.array import SMALL, ArrayImpl, require_alive


class NotForKernel(Exception):
    """A compiled kernel does not take a call: the function is to be called as it is written.

    `__cause__` is the error that says why.
    """


def kernel_for(
    fun: Callable,
    name: str,
    static: Sequence[str] = (),
    donated: tuple[int, ...] = (),
    copied: int = SMALL,
) -> Callable:
    """A C++ callable that runs `fun` on concrete values as one program per types and statics.

    Arguments that `static` names are Python values; the rest are pytrees of arrays. It raises
    NotForKernel where one of these is no array or number, or where `fun` needs to know its value.
    Leaves that `donated` counts must be arrays that nobody else holds. An operand that is the
    result is given back itself if it has more than `copied` bytes.
    """
    marked = mark_static(fun, static)
    spec = JitSpec(name, donated)
    kept: dict[tuple, tuple] = {}  # the programs that C++ cannot run

    def miss(*args: Any, **kwargs: Any) -> tuple:
        if config.disable_jit:
            return fun(*args, **kwargs), None, False
        key, leaves, flat = read_call(fun, name, marked, args, kwargs)
        program = kept.get(key) or stage_call(flat, key[1])
        jaxpr, consts, out_tree = program
        given = dict(zip(jaxpr.invars, (*consts, *leaves))) if not jaxpr.eqns else {}
        if given and all([v in given and v.aval.nbytes > copied for v in jaxpr.outvars]):  # noqa: C419
            kept[key] = program  # copies of large arrays would cost more than coming here
            outs = [require_alive(given[v]) for v in jaxpr.outvars]
            return unflatten(out_tree, outs), None, False
        outs, fast = run_program(jaxpr, consts, leaves, spec, out_tree, inner=False)
        if fast is None:
            kept[key] = program
        return unflatten(out_tree, outs), fast, False

    return compiled_call(name, miss, fun, *marked)


def mark_static(fun: Callable, static: Sequence[str]) -> Marked:
    """Arguments by name, and those of them that have one by position."""
    code = inspect.unwrap(fun).__code__
    parameters = code.co_varnames[: code.co_argcount]
    return Marked(tuple([i for i, n in enumerate(parameters) if n in static]), tuple(static))


def read_call(fun: Callable, name: str, marked: Marked, args: tuple, kwargs: dict) -> tuple:
    """(key, leaves, flat function) of a call; the key has the types of the leaves second."""
    fixed, dynamic, call, named = fix_static(fun, marked, args, kwargs)
    # In the order in which the engine flattens the call: by position, then by name.
    leaves, tree = flatten((dynamic, named))
    try:
        avals = tuple([typeof(x) for x in leaves])
    except DtypeError as error:
        raise NotForKernel(str(error)) from error
    if not all(map(fits, leaves, avals)):
        raise NotForKernel(f"{name}: integers must fit their type.")
    return (tree, avals, fixed, trace_context()), leaves, FlatFun(call, tree, name)


def stage_call(flat: FlatFun, avals: Sequence[ShapedArray]) -> tuple:
    """The program of a function at types: a closed jaxpr, its consts, the tree of results."""
    try:
        return *stage_closed(flat, avals, flat.op), flat.out_tree
    except (DtypeError, TracerError) as error:
        raise NotForKernel(str(error)) from error


def fits(x: Any, aval: ShapedArray) -> bool:
    """Whether a value can be passed as one of this type, as Python's large integers cannot."""
    return type(x) is not int or x.bit_length() < 8 * aval.dtype.itemsize


def fused(
    fun: Callable | None = None, *, static: Sequence[str] = (), name: str | None = None
) -> Any:
    """A decorator: an eager call of the function runs as one compiled program.

    `static` names the arguments that are no arrays. Calls that the kernel does not take (a shape
    given as a list, an object with `__jax_array__`, a value that decides what is computed) run as
    written.
    """
    if fun is None:
        return functools.partial(fused, static=static, name=name)
    kernel = kernel_for(fun, name or fun.__name__, static)
    call_traced = traced_call(fun, name or fun.__name__, static, kernel)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            try:
                if current.trace is EVAL:
                    return kernel(*args, **kwargs)
                if isinstance(current.trace, RuleTrace):
                    out = call_traced(args, kwargs)
                    if out is not NotForKernel:
                        return out
            except NotForKernel:
                pass
            except ValueError as error:
                if not is_unhashable_static(error):
                    raise
            return fun(*args, **kwargs)
        except Exception as error:
            trim_traceback(error)
            raise

    call.kernel = kernel  # type: ignore[attr-defined]
    return call


def run_of_arrays(fun: Callable, count: int, static: Sequence[str] = ()) -> Callable:
    """`fun`: an eager call of `count` Arrays, then of `static`, is one program, with its checks."""
    kernel, kinds = kernel_for(fun, fun.__name__, static), {ArrayImpl}
    most, names = count + len(static), frozenset(static)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        now = current.trace is EVAL and bounds_cell.value != "all" and names.issuperset(kwargs)
        if now and count <= len(args) <= most and kinds.issuperset(map(type, args[:count])):
            try:
                return kernel(*args, **kwargs)
            except Exception:  # again, for the error of the call as it is
                pass
        return fun(*args, **kwargs)

    return call


_MET: dict[Any, dict[Any, int]] = {}


def is_hot(kind: Any, call: Any) -> bool:
    """Whether a call, of some kind, is met for the HOT-th time: it is to have its own program.

    In a loop each of many may be met a few times: they share one, which takes more arguments.
    """
    if len(_MET) >= 256:
        _MET.clear()
    met = _MET.setdefault(kind, {})
    if len(met) >= 256:
        met.clear()
    count = met[call] = met.get(call, 0) + 1
    return count >= HOT


def traced_call(fun: Callable, name: str, static: Sequence[str], kernel: Callable) -> Callable:
    """As `kernel`, for a transformation around: its program, as one operation on the tracers.

    It gives NotForKernel for what is to run as written.
    """
    marked = mark_static(fun, static)
    fixed = {*marked.nums, *marked.names}
    kept: dict[tuple, tuple] = {}  # the operation, what it takes first, and the tree of results

    def call(args: tuple, kwargs: dict) -> Any:
        key, given = [trace_context()], []
        for where, x in (*enumerate(args), *sorted(kwargs.items())):
            if where in fixed:
                key += where, type(x), x
            else:
                key += where, describe_argument(x)
                given.append(x)
        try:
            program = kept.get(tuple(key))
        except TypeError:  # an argument without a hash
            return NotForKernel
        if program is None:
            program = () if config.disable_jit else write_operation(args, kwargs)
            if len(kept) >= MOST:
                del kept[next(iter(kept))]
            kept[tuple(key)] = program
        if not program:
            return NotForKernel
        leaves = flatten(given)[0]
        if not any([isinstance(x, Tracer) for x in leaves]):  # noqa: C419
            with eval_context():
                return kernel(*args, **kwargs)
        prim, params, consts, tree = program
        return unflatten(tree, current.trace.process(prim, [*consts, *leaves], params))

    def write_operation(args: tuple, kwargs: dict) -> tuple:
        """What is kept of a call; () if it is to run as written, where errors have their names."""
        key, _, flat = read_call(fun, name, marked, args, kwargs)
        try:
            jaxpr, consts, tree = stage_call(flat, key[1])
        except Exception:
            return ()
        whole = *as_operation(jaxpr, name), consts, tree
        return whole if jaxpr.eqns and not jaxpr.effects else ()

    return call


def describe_argument(x: Any) -> Any:
    """What a program depends on of an argument: types of arrays and numbers, or what else it is."""
    kind = type(x)
    if kind is ArrayImpl or isinstance(x, Tracer):
        return x.aval
    if kind in (float, complex, bool) or (kind is int and x.bit_length() < 32):
        return kind
    if kind is list or kind is tuple:
        return (kind, *map(describe_argument, x))
    return (x.dtype, x.shape) if kind is ndarray else (kind, x)
