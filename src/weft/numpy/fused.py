"""One compiled program for a function made of several operations, when it is called eagerly.

Under a transformation the same function runs operation by operation, as written.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from weft.api.arguments import Marked, fix_static
from weft.api.functions import FlatFun
from weft.core.aval import ShapedArray, typeof
from weft.core.source import trim_traceback
from weft.core.stage import stage_closed
from weft.core.trace import current
from weft.errors import DtypeError, TracerError
from weft.options import config, trace_context
from weft.pytrees import flatten, unflatten
from weft.xla.array import SMALL, require_alive
from weft.xla.building import JitSpec
from weft.xla.eager import EVAL
from weft.xla.fastpath import compiled_call, is_unhashable_static
from weft.xla.run import run_program


class NotForKernel(Exception):
    """A compiled kernel does not take a call: the function is to be called as it is written.

    `__cause__` is the error that says why.
    """


def kernel_for(
    fun: Callable, name: str, static: Sequence[str] = (), donated: tuple[int, ...] = ()
) -> Callable:
    """A C++ callable that runs `fun` on concrete values as one program per types and statics.

    Arguments that `static` names are Python values; the rest are pytrees of arrays. It raises
    NotForKernel where one of these is no array or number, or where `fun` needs to know its value.
    Leaves that `donated` counts must be arrays that nobody else holds.
    """
    code = inspect.unwrap(fun).__code__
    parameters = code.co_varnames[: code.co_argcount]
    marked = Marked(tuple([i for i, n in enumerate(parameters) if n in static]), tuple(static))
    spec = JitSpec(name, donated)
    kept: dict[tuple, tuple] = {}  # the programs that C++ cannot run

    def miss(*args: Any, **kwargs: Any) -> tuple:
        if config.disable_jit:
            return fun(*args, **kwargs), None, False
        fixed, dynamic, call, named = fix_static(fun, marked, args, kwargs)
        # In the order in which the engine flattens the call: by position, then by name.
        leaves, tree = flatten((dynamic, named))
        try:
            avals = tuple([typeof(x) for x in leaves])
        except DtypeError as error:
            raise NotForKernel(str(error)) from error
        if not all(map(fits, leaves, avals)):
            raise NotForKernel(f"{name}: integers must fit their type.")
        key = (tree, avals, fixed, trace_context())
        program = kept.get(key)
        if program is None:
            flat = FlatFun(call, tree, name)
            try:
                program = (*stage_closed(flat, avals, name), flat.out_tree)
            except (DtypeError, TracerError) as error:
                raise NotForKernel(str(error)) from error
        jaxpr, consts, out_tree = program
        given = dict(zip(jaxpr.invars, (*consts, *leaves))) if not jaxpr.eqns else {}
        if given and all([v in given and v.aval.nbytes > SMALL for v in jaxpr.outvars]):  # noqa: C419
            kept[key] = program  # large arrays given back: copies would cost more than coming here
            outs = [require_alive(given[v]) for v in jaxpr.outvars]
            return unflatten(out_tree, outs), None, False
        outs, fast = run_program(jaxpr, consts, leaves, spec, out_tree, inner=False)
        if fast is None:
            kept[key] = program
        return unflatten(out_tree, outs), fast, False

    return compiled_call(name, miss, fun, *marked)


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

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if current.trace is EVAL:
                try:
                    return kernel(*args, **kwargs)
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
