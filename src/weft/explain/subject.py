"""The subject of a report: a function at given arguments, staged, lowered and compiled.

There are two programs. The first is compiled exactly as a call of the user's function compiles it.
The second is compiled with named operations, so that the equation of each instruction can be found
(xla/locating.py). Costs are read from the second.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from weft.api.arguments import fix_static
from weft.api.cache_misses import Call, differences
from weft.api.devices import block_until_ready
from weft.api.functions import check_callable
from weft.api.jit import JitFunction, jit
from weft.api.stages import Compiled, Lowered, Traced
from weft.core.trace import Tracer
from weft.errors import TracerError
from weft.explain.modules import CompiledModule
from weft.explain.origins import Attribution
from weft.explain.padding import PaddedSubject, open_padded
from weft.explain.profiles import time_call
from weft.options import config
from weft.padding.call import PaddedFunction
from weft.pytrees import flatten, unflatten
from weft.watch import events
from weft.xla.array import ArrayImpl
from weft.xla.diskcache import default_directory


def name_operations() -> contextlib.AbstractContextManager[None]:
    """Return a context manager: programs compiled inside it have named operations."""
    return config.scope(locate_operations=True, explain_cache_misses=False)


class Phase(NamedTuple):
    """A stage of compiling or running a program: its name, its seconds, and a note."""

    name: str
    seconds: float
    note: str = ""


class Stages(NamedTuple):
    """A program at each stage of compilation, and the time of each stage."""

    traced: Traced
    lowered: Lowered
    compiled: Compiled
    phases: tuple[Phase, Phase, Phase]


class Subject:
    """A function and its arguments, to be explained. The function is jitted if it is not yet."""

    def __init__(self, fun: Callable, args: tuple, kwargs: dict, op: str = "explain"):
        check_callable(op, fun, wraps=True)
        if isinstance(fun, types.MethodType) and hasattr(fun, "trace"):  # of a jitted function
            fun, args = fun.__func__, (fun.__self__, *args)
        self.padded: PaddedSubject | None = None
        if isinstance(fun, PaddedFunction):
            self.padded = open_padded(fun, args, kwargs)
            if self.padded is None:
                fun = fun.plain
            else:
                fun, args, kwargs = self.padded.jitted, self.padded.args, {}
        owner = getattr(getattr(fun, "trace", None), "__self__", None)
        self.jitted = fun if isinstance(owner, JitFunction) else jit(fun)
        self.function: JitFunction = self.jitted.trace.__self__
        self.args, self.kwargs = args, kwargs
        for x in flatten((args, kwargs))[0]:
            if isinstance(x, Tracer):
                raise TracerError(
                    f"{op}: must be called with values; got a traced {x.aval}. "
                    "Hint: call it outside of jit, grad and vmap, on the function that they make."
                )
        self.name = self.function.spec.name

    @functools.cached_property
    def stages(self) -> Stages:
        """Return the stages of the user's own program."""
        return self.make_stages()

    @functools.cached_property
    def located(self) -> Stages:
        """Return the stages of the program whose operations are named."""
        with name_operations():
            return self.make_stages()

    @functools.cached_property
    def module(self) -> CompiledModule:
        return CompiledModule(self.located.compiled.runtime_executable())

    @functools.cached_property
    def attribution(self) -> Attribution:
        lowered = self.located.lowered._lowered
        return Attribution(self.module, lowered.module.origins, lowered.prepared)

    @property
    def platform(self) -> str:
        """Return the platform that the program runs on."""
        return self.stages.compiled._placement.devices[0].platform

    def make_stages(self) -> Stages:
        """Trace, lower and compile the program. Stages that are cached are not repeated."""
        happened: list[str] = []
        listen = lambda event, *_, **__: happened.append(event)
        before = list(self.function.programs)
        events.register_event_listener(listen)
        events.register_event_duration_secs_listener(listen)
        try:
            traced, t = time_call(lambda: self.jitted.trace(*self.args, **self.kwargs))
            is_new = events.TRACE in happened
            why = self.retrace_reason(before) if is_new else "kept since an earlier call"
            lowered, low = time_call(traced.lower)
            size = f"{len(lowered._lowered.module.text.splitlines())} lines of StableHLO"
            happened.clear()
            compiled, c = time_call(lowered.compile)
        finally:
            events.unregister_event_listener(listen)
            events.unregister_event_duration_listener(listen)
        note = cache_note(happened, bool(before) and is_new)
        phases = Phase("tracing", t, why), Phase("lowering", low, size), Phase("compiling", c, note)
        return Stages(traced, lowered, compiled, phases)

    def retrace_reason(self, before: Sequence[Any]) -> str:
        """Return the differences from earlier calls of the function, if there were any."""
        calls = [k for k in self.function.programs if type(k) is Call]
        if not calls or calls[-1] in before:
            return ""
        # programs with named operations, made for explain, do not count
        earlier = [k for k in before if type(k) is Call and k.context == calls[-1].context]
        if not earlier:
            return "the first time"
        fun = self.function.fun
        rest = fix_static(fun, self.function.static, self.args, self.kwargs)[2]
        return f"again: {differences(fun, rest, calls[-1], earlier)}"

    def call(self) -> Any:
        """Call the function, and wait for its results. Donated arguments are copied first."""
        args, kwargs = self.args, self.kwargs
        if self.stages.traced.donate_argnums:
            leaves, tree = flatten((args, kwargs))
            args, kwargs = unflatten(
                tree, [x.copy() if isinstance(x, ArrayImpl) else x for x in leaves]
            )
        return block_until_ready(self.jitted(*args, **kwargs))

    def parameter_names(self) -> list[str]:
        """Name each parameter of the compiled program."""
        lowered = self.located.lowered._lowered
        names = compress(self.located.traced._program.argument_names(), lowered.kept)
        number = ["the number of the run"] * bool(lowered.module.host_calls)
        return [*number, *["closed over"] * len(lowered.consts), *names]

    def host_bytes(self) -> int:
        """Return the bytes of NumPy arguments, which every call copies to the device."""
        leaves = flatten((self.args, self.kwargs))[0]
        return sum(x.nbytes for x in leaves if isinstance(x, np.ndarray | np.generic))


def cache_note(happened: Sequence[str], is_retrace: bool) -> str:
    """Name the source of an executable and, if it was compiled, the reason."""
    if events.COMPILE not in happened:
        return "kept in memory since an earlier call"
    if events.CACHE_HIT in happened:
        disk = events.CACHE_RETRIEVAL in happened
        return "loaded from the disk cache" if disk else "found in memory, as an equal program"
    if not config.enable_compilation_cache:
        return "compiled: the disk cache is off (enable_compilation_cache)"
    if config.compilation_cache_dir is None and default_directory() is None:
        return "compiled: the disk cache is off (WEFT_CACHE_DIR)"
    why = "it was traced for other arguments" if is_retrace else "it is new"
    return (
        f"compiled: this program is not in the disk cache; {why}, or the cache has it of another "
        "machine, jaxlib or XLA_FLAGS"
    )
