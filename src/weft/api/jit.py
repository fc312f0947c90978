"""The public `jit`: from a call with pytrees, static and donated arguments to a program that runs.

A call is split into static and other arguments (arguments.py), staged (programs.py), built and run
(run/programs.py); the stages as values are stages.py's.
"""

from __future__ import annotations

import copyreg
import enum
import functools
import importlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from weft.api.arguments import (
    Marked,
    find_donated,
    fix_static,
    mark_arguments,
    name_static,
    unhashable_error,
)
from weft.api.cache_misses import Call, count_trace, explain_call
from weft.api.functions import avals_of, check_callable, check_refs
from weft.api.mutable import MUTABLE, OpenCall, open_call
from weft.api.programs import StagedProgram, forget_programs, is_live, programs_of, stage_program
from weft.api.shape_struct import ShapeDtypeStruct
from weft.api.shardings import request_shardings
from weft.api.stages import Lowered, Traced
from weft.control.compiler_options import BACKEND, FINITE
from weft.control.jit import jit_p
from weft.core.aval import ShapedArray
from weft.core.source import boundary
from weft.core.trace import Tracer, current
from weft.errors import DeletedError, JaxRuntimeError, check_hashable
from weft.mesh.blocks import free_kept_blocks
from weft.mesh.client import devices_of
from weft.optimize.passes import find_passes
from weft.options import config, trace_context
from weft.parallel.constraint import constrain_values
from weft.passes.merge import find_staged
from weft.pytrees import flatten
from weft.run.fastpath import CompiledCall, compiled_call, forget_executables, is_unhashable_static
from weft.run.pipeline import JitSpec
from weft.util import CACHES, copy_names, find_global_name, fun_name
from weft.watch.captures import check_captures
from weft.watch.key_reuse import check_keys
from weft.xla.array import ArrayImpl
from weft.xla.compile import forget_loaded
from weft.xla.hlo import PATTERNS

__all__ = ["clear_caches", "jit"]

DEEPEST = 150  # each takes 40 KB of the stack, which has 8 MB


class _Nesting(threading.local):
    """The number of jitted functions of this thread that are being traced within one another."""

    depth = 0


nesting = _Nesting()


def reduce_jitted(call: Any) -> Any:
    """Pickle a jitted function: as the global that it is, else as function and options."""
    if not hasattr(call, "trace"):
        raise TypeError(
            "pickle: an operation that weft has compiled is of this process alone; got one. "
            "Hint: pickle the function that was jitted."
        )
    return find_global_name(call) or (JitFunction.make_callable, (call.trace.__self__,))


copyreg.pickle(CompiledCall, reduce_jitted)


class JitFunction:
    """The options and the programs of a jitted function."""

    def __init__(
        self,
        fun: Callable,
        spec: JitSpec,
        static: Marked = Marked(),
        donate: Marked = Marked(),
        op: str = "jit",  # its name in errors
        shardings: Any = None,  # those requested of arguments and results
        inline: bool = False,  # whether a function that is traced has the operations, not a call
    ) -> None:
        self.fun, self.spec, self.static, self.donate = fun, spec, static, donate
        self.op, self.shardings, self.inline = op, shardings, inline
        self.programs = programs_of(fun)
        self.forget: Callable[[], None] = lambda: None
        flags = spec.compiler_options  # which calls in traced functions keep
        self.options = {"compiler_options": flags} if flags else {}

    def __reduce__(self) -> tuple:
        given = self.fun, self.spec, self.static, self.donate, self.op, self.shardings, self.inline
        return type(self), given

    @boundary
    def miss(self, *args: Any, **kwargs: Any) -> tuple:
        """A call that the C++ path has no executable for: stage it, then build, run, hand over."""
        nesting.depth += 1
        try:
            if nesting.depth > DEEPEST:
                raise RecursionError(
                    f"{self.op}: functions must be within one another {DEEPEST} deep at most; got "
                    f"more at {fun_name(self.fun)}. Hint: a recursion must end while it is traced."
                )
            if config.disable_jit:
                return self.fun(*args, **kwargs), None, False
            if MUTABLE and (opened := self.open(args, kwargs)) is not None:
                call, jitted = opened
                return call.finish(jitted.make_callable()(*call.args)), None, False
            return *current.trace.call_jitted(self, args, kwargs), False
        finally:
            nesting.depth -= 1

    def run_call(self, args: tuple, kwargs: dict) -> tuple:
        """The result of a call where operations compute, and how C++ may run the next one."""
        program, leaves = self.find_program(args, kwargs)
        if program.stateful:
            check_refs(self.op, self.fun, program.consts, leaves, program.argument_names)
        elif program.spec.in_shardings:
            self.shardings.check_bound(leaves, program.spec.in_shardings)
        outs, fast = program.run(leaves)
        return program.result(outs), fast

    def bind_call(self, args: tuple, kwargs: dict) -> Any:
        """The result of a call under any other trace: a call of the program, or its operations."""
        program, leaves = self.find_program(args, kwargs)
        spec = program.spec
        if program.stateful:
            check_refs(self.op, self.fun, program.consts, leaves, program.argument_names)
        given = (*program.consts, *constrain_values(leaves, spec.in_shardings))
        if self.inline:
            outs = program.jaxpr(*given)
        else:
            outs = jit_p.apply(*given, name=spec.name, jaxpr=program.jaxpr, **self.options)
        return program.result(constrain_values(outs, spec.out_shardings))

    def open(self, args: tuple, kwargs: dict) -> tuple[OpenCall, JitFunction] | None:
        """A call that mutable objects are passed to, as one of arrays; None without objects."""
        static, dynamic, fun, named = fix_static(self.fun, self.static, args, kwargs)
        call = open_call(fun, dynamic, named)
        if call is None:
            return None
        shardings = self.shardings and self.shardings.open(dynamic, call.key[1])
        key = ("objects", static, call.key, self.spec, shardings)
        jitted = self.programs.get(key)
        if jitted is None:
            made = JitFunction(call.fun, self.spec, op=self.op, shardings=shardings)
            jitted = self.programs.add(key, made)
        return call, jitted

    def find_program(
        self, args: tuple, kwargs: dict, structs: bool = False
    ) -> tuple[StagedProgram, list]:
        """Return the staged program for a call, and the leaves to pass it.

        With `structs`, values with a shape and a dtype count as arrays.
        """
        static, dynamic, fun, named = (), args, self.fun, kwargs
        if any(self.static):
            static, dynamic, fun, named = fix_static(fun, self.static, args, kwargs)
        leaves, in_tree = flatten((dynamic, named))
        avals = avals_of(self.op, leaves, in_tree, fun, structs)
        donated: tuple[int, ...] = ()
        if any(self.donate):
            donated = find_donated(self.donate, self.static, len(args), in_tree)
        options = self.spec, self.shardings
        key: Call | None = Call(in_tree, tuple(avals), static, donated, options, trace_context())
        try:
            program = self.programs.get(key)
        except TypeError:
            if self.op == "jit":
                raise unhashable_error(self.op, self.spec.name, static) from None
            program = key = None  # checkpoint takes such arguments, and stages each call of them
        if program is None or not all(map(is_live, program.consts)):
            if config.explain_cache_misses and key is not None:
                earlier = [k for k in list(self.programs) if type(k) is Call]
                explain_call(self.fun, fun, key, earlier, program is not None)
            if config.hints:
                count_trace(self.fun, fun, key, self.programs)
            running, call = self.programs.running, (threading.get_ident(), key)
            if key is not None and call in running:
                raise RecursionError(
                    f"{self.op}: {self.spec.name} must not call itself with arguments of the same "
                    f"types, for its program would have no end; got ({', '.join(map(str, avals))})."
                    " Hint: lax.while_loop, or lax.fori_loop."
                )
            running.add(call)
            try:
                program = stage_program(
                    fun, in_tree, avals, donated, self.spec, self.op, self.shardings
                )
            finally:
                running.discard(call)
            checked = config.check_tracer_leaks
            leaking = checked and any(isinstance(c, Tracer) for c in program.consts)
            if key is not None and not leaking:
                self.programs.add(key, program)
        shared = find_staged(program.jaxpr)
        if shared is not program.jaxpr:  # the program was kept
            program = program._replace(jaxpr=shared)
        if config.debug_globals:
            named = name_static(self.fun, static)
            check_captures(self.spec.name, self.fun, named, program.jaxpr.memo)
        return program, program.select_visible(leaves) if program.hidden else leaves

    # -- the attributes of the jitted function -------------------------------------------------

    @boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Stage at the types of these arguments: arrays, ShapeDtypeStructs or avals."""
        if MUTABLE and (opened := self.open(args, kwargs)) is not None:
            return opened[1].trace(*opened[0].args)
        program, leaves = self.find_program(args, kwargs, structs=True)
        if config.debug_key_reuse:
            check_keys(program.jaxpr)
        leaves = [ShapeDtypeStruct.of(x) if isinstance(x, ShapedArray) else x for x in leaves]
        return Traced(program, program.place(leaves))

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Stage and write StableHLO at the types of these arguments."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, computing nothing."""
        return self.trace(*args, **kwargs).out_info

    def plan(self, *args: Any, **kwargs: Any) -> Any:
        """Compile for arguments of these types, and say how the program fits the limit `memory`."""
        return self.lower(*args, **kwargs).compile().memory_plan()

    def clear_cache(self) -> None:
        """Forget the programs and executables of this function."""
        self.forget()
        self.programs.clear()

    def make_engine(self, miss: Callable[..., tuple], key: Any) -> Any:
        """Return a C++ callable of the function that calls `miss` if it has no executable."""
        return compiled_call(self.spec.name, miss, self.fun, *self.static, key)

    def make_callable(self) -> Any:
        """The C++ callable of the function, with these attributes."""
        fun, static = self.fun, self.static
        # jits of one function with equal options share their executables, also on the C++ path
        key = (static, self.donate, self.spec, self.shardings, self.inline)
        call = self.make_engine(self.miss, key)
        self.forget = call._clear_cache
        call.trace = self.trace  # also if the function is wrapped below, for pickle
        if any(self.donate):
            call = delete_donated(call)
        if any(static):
            call = name_unhashable(call, self)
        copy_names(call, fun)
        call.__dict__.pop("__weft_programs__", None)

        call.trace, call.lower, call.eval_shape = self.trace, self.lower, self.eval_shape
        call.clear_cache = self.clear_cache
        if self.spec.memory is not None:
            call.plan = self.plan
        return call


class Inline(enum.Enum):
    """The time at which a jitted function becomes part of a program that calls it.

    `jit` takes a member as `inline`.

    Attributes:
      JAX_EARLY: while the calling program is traced. Its jaxpr has the operations and no call.
      JAX_LATE, XLA_EARLY, XLA_LATE, AUTO: the jaxpr has a call. weft's compiler inlines it before
        XLA compiles the program.

    >>> double = weft.jit(lambda x: 2 * x, inline=weft.Inline.JAX_EARLY)
    >>> print(weft.make_jaxpr(double)(1.0).eqns[0].primitive)
    mul
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


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
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    passes: Any = None,
    sizes: Any = None,
    buckets: Any = None,
    memory: str | int | None = None,
) -> Any:
    """Return a function that XLA compiles.

    The first call with arguments of some types traces the function: it runs once with tracers,
    which stand for arrays of known shape and dtype, and its operations become one program. XLA
    compiles the program. Later calls with arguments of the same types run the program without any
    Python code of the function.

    The function should be pure: a `print` or a change of a global variable happens only while it
    is traced, and a global variable that it reads is read only then. Python control flow (`if`,
    `while`, `range`) may depend on static arguments and on shapes, not on the values of arrays; for
    those use `lax.cond`, `lax.while_loop`, `lax.fori_loop` or `jnp.where`.

    A call compiles again if any of these is new: the structure of the arguments, the shape or dtype
    of an array (a Python number counts as a weakly typed scalar), the value of a static argument,
    or an option that programs depend on, such as `enable_x64`. The value of an array never does.
    `weft.explain_cache_misses` logs the reason of each compilation, and `weft.no_tracing` forbids
    it. The programs belong to `fun`, so jit a function once and not in a loop over new lambdas.

    Args:
      fun: a function of pytrees of arrays and numbers that returns a pytree of arrays. Without it,
        `jit(...)` returns a decorator.
      static_argnums: an int or a sequence of ints, the positions of static arguments. A static
        argument stays a Python value while the function is traced. It must be hashable, and each
        value that differs by `==` compiles a program of its own. By default no argument is static.
      static_argnames: a str or a sequence of strs, the names of static arguments. If only one of
        `static_argnums` and `static_argnames` is given, the other is inferred from the signature,
        so that the argument is static however it is passed.
      donate_argnums: an int or a sequence of ints, the positions of donated arguments. The memory
        of their arrays may be reused for results of the same shape and dtype. A donated array is
        deleted by the call, and any later use of it is an error. By default no argument is donated.
      donate_argnames: the names of donated arguments, as `static_argnames`.
      keep_unused: if True, arguments that the function does not use are passed to the compiled
        program all the same. By default they are dropped.
      device: the device to run on. By default the function runs where its arguments are.
      backend: the name of a platform, such as "cpu". The function runs on its first device, unless
        `device` is given.
      inline: True, or `Inline.JAX_EARLY`, makes the operations of the function part of the program
        of a traced function that calls it. By default that program has a call.
      compiler_options: a dict of XLA flags for the function and its derivatives. No other jitted
        function may call a function that has any. The key "backend" says what compiles it: "xla",
        or "c" for a C compiler of the system (docs/programs-in-c.md), which is faster for loops
        over few numbers. With "c", "finite_math" may be True, as in `export.to_c`. Other jitted
        functions may call a function that has only these two keys.
      in_shardings: the shardings of the positional arguments: a pytree prefix of them of shardings,
        or of PartitionSpecs over the mesh that `set_mesh` has put in scope. None, the default,
        keeps the sharding of each argument.
      out_shardings: the shardings of the results, a pytree prefix of them. None, the default,
        leaves them to the compiler.
      passes: a sequence of names of `weft.passes.PASSES` and of functions from jaxpr to jaxpr. It
        replaces `config.passes`. If jitted functions are nested, the outer one decides.
      sizes: the shapes of the positional arguments, with names for the sizes that vary, as
        `sizes="(n, d), (n,)"`. A pytree prefix of the arguments of texts as of
        `export.symbolic_shape`, where `_` and `...` are sizes that stay; None for arguments
        whose sizes stay; or one text with a shape in brackets for each argument. `fun` is traced
        once. A call rounds each size up to its bucket and pads the arguments, and the program of
        the buckets computes what `fun` computes without padding.
      buckets: the sizes in memory: a sequence of ints, a function from a size to its bucket, or a
        dict of these by name. By default they are 8, 16, 32, 64, 96, 128, 192, and so on.
      memory: the bytes that a call may use for arguments, results and temporaries together: an int,
        or a text such as "2GB" or "512MiB". A program that needs more is changed: parts of it are
        computed in slices along an axis, or values are computed again for the backward pass. It
        holds for the outermost jitted function: one that is traced, differentiated or mapped within
        another has no limit of its own. By default there is none.

    Returns:
      A function with the signature and the results of `fun`. Its attributes are `.trace(*args)` and
      `.lower(*args)`, which stage without running; `.eval_shape(*args)`, which returns the types of
      the results; `.clear_cache()`, which forgets the programs; and `.__wrapped__`, which is `fun`.
      With `memory` there is `.plan(*args)`, which says how the program fits.

    Raises:
      TypeError: `fun` is not a function.
      ValueError: an argument is both static and donated; `static_argnums` names an argument that
        `fun` does not have; a call passes a static argument that cannot be hashed; `memory` is no
        number of bytes, or no form of the program that was found is within it; the backend of
        `compiler_options` is unknown.
      NotImplementedError: the backend is "c", and C cannot compute an operation of the program.
      RuntimeError: the backend is "c", and no C compiler is installed.
      DtypeError: an argument that is not static, or a result, is not an array or a number.
      TracerBoolConversionError: Python control flow depends on the value of an array.
      ShapeError: an operation cannot be computed on padded arrays, or sizes do not fit `sizes`.
      InconclusiveDimensionOperation: Python control flow depends on a size that varies.

    >>> jit(lambda x: x * 2 + 1)(jnp.arange(3))
    Array([1, 3, 5], dtype=int32)

    The Python code runs once for each set of types. The third call has a new shape:

    >>> @weft.jit
    ... def f(x):
    ...     print("traced with", x.shape)
    ...     return x + 1
    >>> _ = f(jnp.ones(2))
    traced with (2,)
    >>> _ = f(jnp.zeros(2))
    >>> _ = f(jnp.ones(3))
    traced with (3,)

    Python code may use the value of a static argument:

    >>> @weft.jit(static_argnames="n")
    ... def power(x, n):
    ...     y = 1
    ...     for _ in range(n):
    ...         y = y * x
    ...     return y
    >>> print(power(jnp.float32(2.0), 3), power(jnp.float32(2.0), n=4))
    8.0 16.0

    The result of an update may take over the memory of the argument:

    >>> step = weft.jit(lambda state, g: state - 0.1 * g, donate_argnums=0)
    >>> state = jnp.ones(2)
    >>> new = step(state, jnp.ones(2))
    >>> state.is_deleted()
    True

    One program serves all lengths up to 8, the next one those up to 16:

    >>> spread = weft.jit(lambda x: (x.mean(), x.std()), sizes="n")
    >>> print(*spread(jnp.arange(3.0)), *spread(jnp.arange(5.0)))
    1.0 0.8164966 2.0 1.4142135
    """
    if fun is None:
        return functools.partial(jit, **{k: x for k, x in locals().items() if k != "fun"})
    check_callable("jit", fun, wraps=True)
    if backend is not None and device is None:
        device = devices_of(backend, "jit: backend")[0]
    static = mark_arguments(fun, static_argnums, static_argnames, "static_argnums")
    donate = mark_arguments(fun, donate_argnums, donate_argnames, "donate_argnums")
    if both := set(static.nums) & set(donate.nums):
        raise ValueError(f"jit: an argument must not be both static and donated; got {both}.")
    settings = tuple(sorted((compiler_options or {}).items()))
    if not {BACKEND, FINITE}.isdisjoint(compiler_options or ()):
        settings = replace_backend(settings)
    check_hashable("jit", keep_unused=keep_unused, compiler_options=settings, inline=inline)
    how = {"device": device, "passes": None if passes is None else find_passes(passes)}
    if memory is not None:
        limits = importlib.import_module("weft.footprint.limit")
        size = limits.parse_memory("jit", memory)
        how["memory"] = limits.MemoryLimit(size, size)
    spec = JitSpec(fun_name(fun), (), keep_unused, settings, **how)
    shardings = request_shardings("jit", in_shardings, out_shardings)
    early = inline is Inline.JAX_EARLY if isinstance(inline, Inline) else bool(inline)
    if sizes is not None or buckets is not None:
        if sizes is None or shardings is not None:
            raise ValueError(
                "jit: sizes must be given with buckets, and without in_shardings and "
                f"out_shardings; got sizes={sizes!r}."
            )
        plain = JitFunction(fun, spec, static, Marked(), "jit", None, early)
        padding = importlib.import_module("weft.padding.call")
        return padding.PaddedFunction(plain, sizes, buckets, static, donate)
    return JitFunction(fun, spec, static, donate, "jit", shardings, early).make_callable()


def replace_backend(settings: tuple) -> tuple:
    """Return compiler options with the pass that compiles in place of the name of a backend."""
    options = dict(settings)
    name, finite = options.pop(BACKEND, "xla"), options.pop(FINITE, False)
    if name not in ("xla", "c"):
        raise ValueError(
            f"jit: the backend of compiler_options must be 'xla' or 'c'; got {name!r}. Hint: "
            "jit(f, backend=...) says on which platform to run."
        )
    if finite not in (True, False) or (finite and name == "xla"):
        raise ValueError(
            "jit: finite_math of compiler_options must be True or False, with the backend 'c'; got "
            f"{finite!r} with the backend {name!r}."
        )
    if name == "xla":
        return tuple(options.items())
    calls = importlib.import_module("weft.export.c.calls")
    in_c = calls.compile_finite_in_c if finite else calls.compile_in_c
    return tuple(sorted({**options, BACKEND: in_c}.items()))


def clear_caches() -> None:
    """Forget every program and executable that is cached in memory; later calls trace again.

    The function is for programs that meet very many types of arguments, and for measurements of
    the time that compilation takes. It takes no parameters. The memory of arrays that died, which
    is cached for the next results, is given back to the system. Executables cached on disk stay. On
    Linux weft calls it before executables take up the memory maps that a process may have, which
    some 10,000 do.

    Returns:
      None.

    >>> @weft.jit
    ... def f(x):
    ...     print("traced")
    ...     return x + 1
    >>> _ = f(1.0)
    traced
    >>> weft.clear_caches()
    >>> _ = f(1.0)
    traced
    """
    forget_programs()
    forget_executables()
    forget_loaded()
    PATTERNS.clear()
    for cache in CACHES.values():
        cache.clear()
    free_kept_blocks()


def delete_donated(call: Callable) -> Callable:
    """Return a jitted function that marks its donated arguments as deleted.

    XLA's own error for such an array would only say that a buffer is invalid.
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


def name_unhashable(call: Callable, jitted: JitFunction) -> Callable:
    """Return a jitted function whose error names a static argument that cannot be hashed."""

    def with_static(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except ValueError as error:
            if not is_unhashable_static(error):
                flatten((args, kwargs))  # raises an error that names the dict, if that is the cause
                raise
            static = fix_static(jitted.fun, jitted.static, args, kwargs).static
            raise unhashable_error(jitted.op, jitted.spec.name, static) from None

    return with_static
