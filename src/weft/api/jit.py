"""The public `jit`: from a call with pytrees, static and donated arguments to a staged program.

Staging and compiling are control/jit.py; the stages as values are stages.py.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import threading
import time
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from weft import dtypes
from weft.api.cache_misses import Call, explain_call
from weft.api.functions import (
    FlatFun,
    argument_origins,
    as_tuple,
    avals_of,
    check_callable,
    insert_static,
    leaf_names,
    static_arguments,
)
from weft.api.shardings import fit_shardings, make_prefix
from weft.api.stages import Lowered, Program, Traced
from weft.control.jit import jit_p
from weft.core.aval import is_valid_value, typeof
from weft.core.jaxpr import ClosedJaxpr, Jaxpr
from weft.core.primitive import forget_types
from weft.core.source import boundary
from weft.core.stage import close_jaxpr
from weft.core.trace import Tracer, current
from weft.errors import DeletedError, JaxRuntimeError
from weft.mesh.client import devices_of
from weft.options import config, trace_context
from weft.parallel.constraint import constrain_values
from weft.primitives.layout import zeros
from weft.pytrees import PyTreeDef, flatten, unflatten
from weft.util import Logger, fun_name, insert_at
from weft.watch import events
from weft.watch.key_reuse import check_keys, followed
from weft.watch.leaks import stage_function
from weft.watch.nans import Watch, check_program, watch
from weft.xla.array import ArrayImpl, put
from weft.xla.building import JitSpec, build
from weft.xla.eager import EVAL, forget_kernels
from weft.xla.fastpath import compiled_call, forget_executables
from weft.xla.placement import bound_to
from weft.xla.run import check_concrete

__all__ = ["clear_caches", "jit"]

logger = Logger("weft.trace")

MOST_PROGRAMS = 4096  # of one function; then the oldest goes
_listing = threading.RLock()  # other threads must not add programs while all are listed


class Programs(dict):
    """The programs of one function, by how it is called. A copy of it is a plain empty dict."""

    __slots__ = ("__weakref__", "owner")
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__
    every: ClassVar[weakref.WeakSet[Programs]] = weakref.WeakSet()

    def __init__(self, owner: Callable | None = None):
        self.owner = None if owner is None else weakref.ref(owner)
        with _listing:
            Programs.every.add(self)

    def __reduce__(self) -> tuple:
        return dict, ()

    def add(self, key: Any, program: Any) -> Any:
        """Keep a program."""
        while len(self) >= MOST_PROGRAMS:
            self.pop(next(iter(self)), None)
        self[key] = program
        return program


def programs_of(fun: Callable) -> Programs:
    """The programs of a function, shared by every jit of it.

    They are kept on the function: a dict that is weak in its keys would never let go of a function
    that one of its own programs refers to.
    """
    if type(fun) is not types.FunctionType:
        return Programs()
    found = fun.__dict__.get("__weft_programs__")
    if type(found) is Programs and found.owner is not None and found.owner() is fun:
        return found
    # none yet, or another function's: functools.wraps copies attributes
    found = fun.__dict__["__weft_programs__"] = Programs(fun)
    return found


class JitFunction:
    """What stands behind a jitted function: its options and its programs."""

    op = "jit"  # as errors name it
    moves = False  # whether arguments are brought where `in_shardings` says, though bound elsewhere

    def __init__(
        self,
        fun: Callable,
        static_argnums: Sequence[int],
        static_argnames: Sequence[str],
        donate_argnums: Sequence[int],
        donate_argnames: Sequence[str],
        spec: JitSpec,
        device: Any,
        inline: bool,
    ):
        self.fun = fun
        self.static_argnums = static_argnums
        self.static_argnames = static_argnames
        self.donate_argnums = donate_argnums
        self.donate_argnames = donate_argnames
        self.spec = spec
        self.device = device
        self.inline = inline
        self.programs = programs_of(fun)

    @boundary
    def miss(self, *args: Any, **kwargs: Any) -> tuple:
        """A call that the C++ path has no executable for."""
        if config.disable_jit:
            return self.fun(*args, **kwargs), None, False
        if self.inline and current.trace is not EVAL:
            return self.fun(*args, **kwargs), None, False
        program, leaves = self.program(args, kwargs)
        if current.trace is not EVAL:
            leaves = constrain_values(leaves, program.spec.in_shardings)
            outs = jit_p.bind(*program.consts, *leaves, name=self.spec.name, jaxpr=program.jaxpr)
            outs = constrain_values(outs, program.spec.out_shardings)
            return program.result(outs), None, False
        for x in (*program.consts, *leaves):
            check_concrete(x)
        if program.spec.in_shardings and not self.moves:
            check_bound(self.op, leaves, program.spec.in_shardings)
        placement = program.placement(leaves, self.device)
        watched = watch()
        # what is given away cannot be looked at again
        spec = program.spec._replace(donated=()) if watched else program.spec
        key = ("program", placement, spec, len(program.consts))
        run = program.jaxpr.memo.get(key)
        if run is None:
            run = build(program.jaxpr, program.consts, spec, placement)
            program.jaxpr.memo[key] = run
        if config.debug_key_reuse:
            every = (*program.consts, *leaves)
            outs = followed(program.jaxpr, every, lambda: run(*leaves))
        else:
            outs = run(*leaves)
        if watched:
            self.check_results(watched, program, leaves, outs, args, kwargs)
        if watched or config.debug_key_reuse:
            return program.result(outs), None, False
        if program.hides:  # what has a type the engine lacks stays with Python
            return program.result(outs), None, False
        return program.result(outs), run.fastpath(program.out_tree, len(leaves)), False

    def check_results(
        self, watched: Watch, program: Program, leaves: list, outs: list, args: tuple, kwargs: dict
    ) -> None:
        """Raise where a result has what `debug_nans` or `debug_infs` looks for."""

        def names() -> list[str]:
            _, dynamic, fun, named = self.split(args, kwargs)
            origins = argument_origins(fun, flatten((dynamic, named))[1])
            return [n for i, n in enumerate(origins) if i not in program.hidden]

        every = (*program.consts, *leaves)
        check_program(watched, self.spec.name, program.jaxpr, every, outs, names)
        for i in program.spec.donated:
            if type(leaves[i]) is ArrayImpl:
                leaves[i].delete()

    def program(self, args: tuple, kwargs: dict, structs: bool = False) -> tuple[Program, list]:
        """The staged program for a call, and the leaves to pass it."""
        static, dynamic, fun, kwargs = self.split(args, kwargs)
        leaves, in_tree = flatten((dynamic, kwargs))
        avals = avals_of(self.op, leaves, in_tree, fun, structs)
        donated = self.donated(args, kwargs, in_tree)
        key = Call(in_tree, tuple(avals), static, donated, self.spec, trace_context())
        try:
            program = self.programs.get(key)
        except TypeError:
            raise self.unhashable(static) from None
        if program is None or not all(is_live(c) for c in program.consts):
            if config.explain_cache_misses:
                earlier = [k for k in list(self.programs) if type(k) is Call]
                explain_call(self.fun, fun, key, earlier, program is not None)
            program = self.stage(fun, in_tree, avals, donated)
            if not (
                config.check_tracer_leaks and any(isinstance(c, Tracer) for c in program.consts)
            ):
                self.programs.add(key, program)
        return program, program.visible(leaves)

    def split(self, args: tuple, kwargs: dict) -> tuple[tuple, tuple, Callable, dict]:
        """Set static arguments apart: (static, the other args, a function of those, kwargs)."""
        if not self.static_argnums and not self.static_argnames:
            return (), args, self.fun, kwargs
        fixed = static_arguments(self.static_argnums, args)
        named = {k: kwargs[k] for k in sorted(kwargs) if k in self.static_argnames}
        dynamic = tuple(x for i, x in enumerate(args) if i not in fixed)
        static = (
            tuple((i, type(x), x) for i, x in fixed.items()),
            tuple((k, type(x), x) for k, x in named.items()),
        )

        @functools.wraps(self.fun)
        def fun(*others: Any, **more: Any) -> Any:
            return self.fun(*insert_static(fixed, others, len(args)), **named, **more)

        fun.__weft_static__ = tuple(fixed)  # type: ignore[attr-defined]
        remaining = {k: v for k, v in kwargs.items() if k not in named}
        return static, dynamic, fun, remaining

    def donated(self, args: tuple, kwargs: dict, in_tree: PyTreeDef) -> tuple[int, ...]:
        """The flat indices of donated leaves."""
        if not self.donate_argnums and not self.donate_argnames:
            return ()
        count = len(args)
        nums = {i + count if i < 0 else i for i in self.donate_argnums}
        positions = [i for i in range(count) if i not in self.static_positions(count)]
        marks, marked = unflatten(in_tree, range(in_tree.num_leaves))
        out: list[int] = []
        for i, subtree in zip(positions, marks, strict=True):
            if i in nums:
                out += flatten(subtree)[0]
        for k, subtree in marked.items():
            if k in self.donate_argnames:
                out += flatten(subtree)[0]
        return tuple(out)

    def static_positions(self, count: int) -> set[int]:
        """The positions of static arguments among `count`."""
        return {i + count if i < 0 else i for i in self.static_argnums}

    def stage(self, fun: Callable, in_tree: PyTreeDef, avals: list, donated: tuple) -> Program:
        """Run the function on tracers."""
        start = time.perf_counter()
        hidden = {i: zeros(a) for i, a in enumerate(avals) if a.dtype == dtypes.float0}
        flat = FlatFun(fun, in_tree, self.op, float0=hidden)

        def names() -> list[str]:
            origins = argument_origins(fun, in_tree)
            return [n for i, n in enumerate(origins) if i not in hidden]

        shown = [a for i, a in enumerate(avals) if i not in hidden]
        jaxpr, consts = stage_function(flat, shown, self.spec.name, names)
        # a NumPy array is taken as it is now
        consts = [put(c) if isinstance(c, np.ndarray) else c for c in consts]
        seconds = time.perf_counter() - start
        events.record_work(events.TRACE, seconds, fun_name=self.spec.name)
        if config.log_compiles:
            types = ", ".join(map(str, avals))
            logger.warning("traced %s for (%s) in %.1f ms", self.spec.name, types, seconds * 1e3)
        closed = ClosedJaxpr(jaxpr, consts)
        gone = [i - sum(h < i for h in hidden) for i in donated if i not in hidden]
        tree, program = flat.out_tree, close_jaxpr(jaxpr)
        spec = self.spec._replace(donated=tuple(gone), asked=())
        if self.spec.asked:
            ins, outs = self.shardings(fun, avals, flat, program)
            shown = [s for i, s in enumerate(ins) if i not in hidden]
            made = [s for i, s in enumerate(outs) if i not in flat.hidden]
            spec = spec._replace(in_shardings=tuple(shown), out_shardings=tuple(made))
        outside = (frozenset(hidden), flat.hidden)
        return Program(program, closed, consts, avals, tree, spec, donated, *outside)

    def shardings(
        self, fun: Callable, avals: list, flat: FlatFun, program: Jaxpr
    ) -> tuple[tuple, tuple]:
        """Those asked for, of all arguments and all results, flat; () where nothing is asked."""
        given, wanted = self.spec.asked
        in_tree, out_tree = flat.in_tree, flat.out_tree
        out_avals = insert_at(program.out_avals, {i: typeof(x) for i, x in flat.hidden.items()})
        args, kwargs = unflatten(in_tree, range(in_tree.num_leaves))
        names = lambda: argument_origins(fun, in_tree)[:count]
        count = len(flatten(args)[0])
        of_args = fit_shardings(
            self.op, "in_shardings", given, flatten(args)[1], avals[:count], names
        )
        rest = (None,) * (len(avals) - count) if of_args else ()
        results = lambda: leaf_names("the result", out_tree)
        return (*of_args, *rest), fit_shardings(
            self.op, "out_shardings", wanted, out_tree, out_avals, results
        )

    def unhashable(self, static: tuple) -> Exception:
        """The error for a static argument that cannot be a key."""
        for where, kind, x in (*static[0], *static[1]):
            try:
                hash(x)
            except TypeError:
                what = f"argument {where}" if isinstance(where, int) else f"argument `{where}`"
                path, part = unhashable_part(x)
                inside = f", where {path} is of type {type(part).__name__}" if path else ""
                return ValueError(
                    f"{self.op}: static arguments must be hashable; got {kind.__name__} as {what} "
                    f"of {self.spec.name}{inside}. Hint: {hashable_hint(part)}"
                )
        return TypeError(f"{self.op}: a part of the call to {self.spec.name} is not hashable.")

    # -- the attributes of the jitted function -------------------------------------------------

    @boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Stage at the types of these arguments (arrays or ShapeDtypeStructs)."""
        program, leaves = self.program(args, kwargs, structs=True)
        if config.debug_key_reuse:
            check_keys(program.jaxpr)
        _, dynamic, _, named = self.split(args, kwargs)
        placement = program.placement(leaves, self.device)
        return Traced(program, flatten((dynamic, named))[1], self.fun, placement)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Stage and write StableHLO at the types of these arguments."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, computing nothing."""
        return self.trace(*args, **kwargs).out_info


def check_bound(op: str, leaves: Sequence[Any], shardings: Sequence[Any]) -> None:
    """Raise where an argument is bound to places that are not those asked for."""
    for x, s in zip(leaves, shardings, strict=True):
        bound = None if s is None else bound_to(x)
        if bound is not None and bound is not s and not bound.is_equivalent_to(s, x.ndim):
            raise ValueError(
                f"{op}: in_shardings must be how arguments lie that are bound to devices; got "
                f"{s} for {typeof(x)} with {bound}. Hint: weft.device_put(x, sharding) first, or "
                "leave in_shardings out."
            )


def is_live(x: Any) -> bool:
    """Whether a value that a program closed over can still be passed to it."""
    return not isinstance(x, Tracer) or x.owner.live


def jit(
    fun: Callable | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Any:
    """Compile a function with XLA: the first call for each set of argument types traces it.

    The function must be pure, and its Python control flow depend on static arguments and on shapes
    only; results are as without jit. Calls with types seen before run at C++ speed.

    Args:
      fun: takes and returns pytrees of arrays. Without it, `jit(...)` is a decorator.
      static_argnums, static_argnames: arguments that are Python values, hashable; each new value
        traces again. Given one of the two, the other is inferred from the signature.
      donate_argnums, donate_argnames: arguments whose buffers the results may take over. They must
        not be used afterwards.
      keep_unused: pass arguments to the compiled program even where it does not use them.
      device: where to run, instead of where the arguments are.
      inline: in a traced function, write the operations there, not a call.
      compiler_options: XLA flags for this function.
      in_shardings: how the positional arguments lie on devices: a pytree prefix of them, of
        shardings, or specs over the mesh that `set_mesh` put into scope. None leaves it to the
        arguments: what they are bound to is where the function runs, over all devices of a mesh.
      out_shardings: how the results are to lie, likewise; None leaves it to the compiler.

    Returns:
      A function with `.trace`, `.lower`, `.eval_shape`, `.clear_cache` and `.__wrapped__`.

    >>> import weft.numpy as jnp
    >>> jit(lambda x: x * 2 + 1)(jnp.arange(3))
    Array([1, 3, 5], dtype=int32)
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            device=device,
            backend=backend,
            inline=inline,
            compiler_options=compiler_options,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
        )
    check_callable("jit", fun, wraps=True)
    if backend is not None and device is None:
        device = devices_of(backend, "jit: backend")[0]
    static = resolve(fun, static_argnums, static_argnames, "static_argnums")
    donate = resolve(fun, donate_argnums, donate_argnames, "donate_argnums")
    both = set(static[0]) & set(donate[0])
    if both:
        raise ValueError(f"jit: an argument must not be both static and donated; got {both}.")
    spec = JitSpec(
        fun_name(fun),
        keep_unused=keep_unused,
        compiler_options=tuple(sorted((compiler_options or {}).items())),
        asked=asked_shardings(in_shardings, out_shardings),
    )
    return jitted(fun, static, donate, spec, device, inline)


def asked_shardings(in_shardings: Any, out_shardings: Any) -> tuple:
    """What a user asks of arguments and results, as keys; () for nothing."""
    if in_shardings is None and out_shardings is None:
        return ()
    if isinstance(in_shardings, list):
        in_shardings = tuple(in_shardings)
    return (
        make_prefix("jit", "in_shardings", in_shardings),
        make_prefix("jit", "out_shardings", out_shardings),
    )


def jitted(
    fun: Callable, static: tuple, donate: tuple, spec: JitSpec, device: Any, inline: bool
) -> Any:
    """The C++ callable with the attributes of a jitted function."""
    return callable_of(JitFunction(fun, *static, *donate, spec, device, inline))


def callable_of(made: JitFunction) -> Any:
    """The C++ callable of a jitted function."""
    fun, spec, device, inline = made.fun, made.spec, made.device, made.inline
    static = made.static_argnums, made.static_argnames
    donate = made.donate_argnums, made.donate_argnames
    # jits of one function with equal options share their executables, also on the C++ path
    key = (static, donate, spec, device, inline)
    call = compiled_call(spec.name, made.miss, fun, static[0], static[1], key)
    forget = call._clear_cache
    if donate[0] or donate[1]:
        call = letting_go(call)
    if static[0] or static[1]:
        call = naming_unhashable(call, made)
    functools.update_wrapper(call, fun)
    call.__dict__.pop("__weft_programs__", None)

    def clear_cache() -> None:
        """Forget the programs and executables of this function."""
        forget()
        made.programs.clear()

    call.trace = made.trace
    call.lower = made.lower
    call.eval_shape = made.eval_shape
    call.clear_cache = clear_cache
    return call


def clear_caches() -> None:
    """Forget every program and executable that is kept in memory; later calls trace again."""
    with _listing:
        every = list(Programs.every)
    for programs in every:
        programs.clear()
    forget_executables()
    forget_kernels()
    forget_types()


def letting_go(call: Callable) -> Callable:
    """A jitted function that donates, and marks what it took as deleted.

    The engine alone would say of such an array only that a buffer is invalid.
    """

    def donating(*args: Any, **kwargs: Any) -> Any:
        try:
            out = call(*args, **kwargs)
        except (ValueError, JaxRuntimeError) as error:
            twice = donated_twice(flatten((args, kwargs))[0])
            if twice is not None and "donated in the same call" in str(error):
                raise twice from None
            raise
        for x in flatten((args, kwargs))[0]:
            if type(x) is ArrayImpl and x.is_deleted():
                x.delete()
        return out

    return donating


def donated_twice(leaves: Sequence[Any]) -> DeletedError | None:
    """The error for a call that both donates an array and passes it once more."""
    arrays = [x for x in leaves if type(x) is ArrayImpl]
    twice = next((x for i, x in enumerate(arrays) if any(x is y for y in arrays[:i])), None)
    if twice is None:
        return None
    return DeletedError(
        f"jit: a donated array must be passed once in a call; got an {twice.aval} twice. "
        "Hint: pass x.copy() for one of the two."
    )


def naming_unhashable(call: Callable, made: JitFunction) -> Callable:
    """A jitted function with static arguments, whose error says which cannot be hashed."""

    def with_static(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except ValueError as error:
            if str(error).startswith("Non-hashable static arguments"):
                raise made.unhashable(made.split(args, kwargs)[0]) from None
            raise

    return with_static


def unhashable_part(x: Any, path: str = "") -> tuple[str, Any]:
    """The innermost part of a value that cannot be hashed, after the way there: `[0].rate`."""
    if isinstance(x, tuple):
        names = getattr(type(x), "_fields", None)
        parts = [(f".{names[i]}" if names else f"[{i}]", part) for i, part in enumerate(x)]
    elif dataclasses.is_dataclass(x) and type(x).__hash__ is not None:
        parts = [(f".{f.name}", getattr(x, f.name, None)) for f in dataclasses.fields(x)]
    else:
        parts = []
    for step, part in parts:
        try:
            hash(part)
        except TypeError:
            return unhashable_part(part, path + step)
    return path, x


def hashable_hint(x: Any) -> str:
    """What to pass as a static argument, or as a part of one, instead of `x`."""
    if isinstance(x, list):
        return "pass a tuple for a list."
    if isinstance(x, set):
        return "pass a frozenset for a set."
    if isinstance(x, dict):
        return "pass tuple(sorted(x.items())) for a dict, or a frozen dataclass."
    if is_valid_value(x):
        return "pass an array as an argument that is not static, or tuple(x.tolist())."
    return "pass a frozen dataclass for an object with settings."


def resolve(
    fun: Callable, argnums: Any, argnames: Any, what: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of marked arguments, each completed from the other by the signature."""
    nums, names = as_tuple(argnums), as_tuple(argnames)
    if any(not isinstance(i, int) for i in nums):
        raise TypeError(f"jit: {what} must be integers; got {nums}.")
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return nums, names
    positional = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    any_args = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    any_kwargs = any(p.kind is p.VAR_KEYWORD for p in parameters)
    count = len(positional)
    if not any_args and any(not -count <= i < count for i in nums):
        raise ValueError(
            f"jit: {what} must be positions of arguments of {fun_name(fun)}, which takes {count}; "
            f"got {nums}."
        )
    known = {p.name for p in parameters}
    unknown = [n for n in names if n not in known]
    if unknown and not any_kwargs:
        raise ValueError(
            f"jit: {what.replace('nums', 'names')} must name arguments of {fun_name(fun)}; "
            f"got {', '.join(unknown)}."
        )
    if argnames is None:
        names = tuple(positional[i] for i in nums if -count <= i < count)
    elif argnums is None:
        nums = tuple(positional.index(n) for n in names if n in positional)
    return nums, names
