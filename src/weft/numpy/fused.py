"""One compiled program for a function made of several operations, when it is called eagerly.

Under a transformation the same function runs operation by operation, as written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft.api.functions import FlatFun
from weft.core.source import trim_traceback
from weft.core.stage import stage_closed
from weft.core.trace import current
from weft.errors import KeyReuseError
from weft.options import config, trace_context
from weft.pytrees import flatten, unflatten
from weft.watch.key_reuse import followed
from weft.watch.nans import check_program, watch
from weft.xla.building import JitSpec, build
from weft.xla.eager import EVAL
from weft.xla.fastpath import compiled_call
from weft.xla.placement import placement_of
from weft.xla.run import check_concrete


def kernel_for(fun: Callable, name: str, static: Sequence[str] = ()) -> Callable:
    """A C++ callable that runs `fun` on concrete values as one program per types and statics.

    Arguments that `static` names are Python values; the rest are pytrees of arrays. It raises for
    arguments that it cannot take; then calling `fun` says why in the best words.
    """
    code = fun.__code__
    parameters = code.co_varnames[: code.co_argcount]
    spec = JitSpec(name)

    def miss(*args: Any, **kwargs: Any) -> tuple:
        if config.disable_jit:
            return fun(*args, **kwargs), None, False
        named = {n: x for n, x in kwargs.items() if n in static}
        others = {n: x for n, x in kwargs.items() if n not in static}
        dynamic = [x for i, x in enumerate(args) if i not in numbers]
        # In the order in which the engine flattens the call: by position, then by name.
        leaves, tree = flatten((tuple(dynamic), others))

        def call(*dynamic: Any, **others: Any) -> Any:
            rest = iter(dynamic)
            every = [x if i in numbers else next(rest) for i, x in enumerate(args)]
            return fun(*every, **named, **others)

        avals, place = [check_concrete(x) for x in leaves], placement_of(leaves)
        watched, keys = watch(), config.debug_key_reuse
        fixed = tuple(
            [(n, type(x), x) for n, x in (*enumerate(args), *named.items()) if n in chosen]
        )
        key = (tree, tuple(avals), place, fixed, trace_context())
        made = kept.get(key)
        if made is None:
            flat = FlatFun(call, tree, name)
            jaxpr, consts = stage_closed(flat, avals, name)
            made = jaxpr, consts, build(jaxpr, consts, spec, place), flat.out_tree
        jaxpr, consts, run, out_tree = made
        every = (*consts, *leaves)
        outs = followed(jaxpr, every, lambda: run(*leaves), False) if keys else run(*leaves)
        fast = None if watched or keys else run.fastpath(out_tree, len(leaves))
        if fast is None:
            kept[key] = made
        if watched:
            check_program(watched, name, jaxpr, every, outs)
        return unflatten(out_tree, outs), fast, False

    # the programs that C++ cannot run, for a call waits or results are looked at
    kept: dict[tuple, tuple] = {}
    numbers = tuple(i for i, n in enumerate(parameters) if n in static)
    chosen = {*numbers, *static}
    return compiled_call(name, miss, fun, numbers, tuple(static))


def fused(
    fun: Callable | None = None, *, static: Sequence[str] = (), name: str | None = None
) -> Any:
    """A decorator: an eager call of the function runs as one compiled program.

    `static` names the arguments that are no arrays. Calls the kernel cannot take (a shape given as
    a list, an object with `__jax_array__`, a mistake) run as written, which raises the error there
    is to raise.
    """
    if fun is None:
        return functools.partial(fused, static=static, name=name)
    kernel = kernel_for(fun, name or fun.__name__, static)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current.trace is EVAL:
            try:
                return kernel(*args, **kwargs)
            except KeyReuseError as error:
                error.__traceback__ = trim_traceback(error.__traceback__)
                raise
            except Exception:
                pass
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            error.__traceback__ = trim_traceback(error.__traceback__)
            raise

    call.kernel = kernel  # type: ignore[attr-defined]
    return call
