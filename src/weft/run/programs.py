"""Running programs on values: compile each once for the placement of its values, and observe it.

Jitted functions, compiled kernels and single operations run by `run_program`. pipeline.py builds
programs. fastpath.py has the C++ callables that call this file on a cache miss and run the program
from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import run
from weft.core.aval import typeof
from weft.core.jaxpr import Eqn, Jaxpr, Var
from weft.core.primitive import Primitive
from weft.core.trace import Tracer, leak_message
from weft.errors import JaxRuntimeError, UnexpectedTracerError
from weft.mesh.transfers import is_own_transfer, move_explicitly
from weft.options import config
from weft.run.pipeline import JitSpec, LoweredProgram, lower_program
from weft.xla.array import ArrayImpl
from weft.xla.compile import Executable, FastPath
from weft.xla.placement import Placement, on_device, placement_of, shardings_in, wide_sharding

_ARRAYS = frozenset((ArrayImpl,))


def run_program(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    args: Sequence[Any],
    spec: JitSpec,
    out_tree: Any = None,
    *,
    placement: Placement | None = None,
    names: Callable[[], Sequence[str]] = tuple,
    inner: bool = True,
) -> tuple[list, FastPath | None]:
    """The results of a closed jaxpr that takes `consts` and then `args`, and how C++ may run it.

    Args:
      out_tree: the structure of the results of a C++ callable that may call the executable itself
        from now on. It may not while an option such as `debug_nans` has results checked.
      placement: where to run, by default where the operands are.
      names: gives the names of the arguments, for errors.
      inner: whether the lines of equations are the user's; else they are weft's.
    """
    if not _ARRAYS.issuperset(map(type, (*consts, *args))):
        for x in (*consts, *args):
            if isinstance(x, Tracer):
                raise UnexpectedTracerError(leak_message(x))
    if config.no_execution:
        raise RuntimeError(f"{spec.name}: must not be run under no_execution; got a call.")
    if placement is None:
        placement = place_program(jaxpr, consts, args, spec, names)
    if config.debug == "off":  # as nearly always
        execute = find_executable(jaxpr, consts, spec, placement)
        try:
            outs = execute(*args)
        except JaxRuntimeError as error:
            if not is_own_transfer(error, args):
                raise
            outs = move_explicitly(execute, *args)
        return outs, None if out_tree is None else execute.fastpath(out_tree, len(args))
    # donated buffers could not be read again
    execute = find_executable(jaxpr, consts, spec._replace(donated=()), placement)
    observer, given = run.observer.make_observer(), (*consts, *args)
    outs = observer.observe(lambda: execute(*args), spec.name, jaxpr, given, names, inner)
    for i in spec.donated:
        if type(args[i]) is ArrayImpl:
            args[i].delete()
    return outs, None


def find_executable(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    spec: JitSpec,
    placement: Placement,
    lowered: LoweredProgram | None = None,
) -> Executable:
    """The executable of a program, which is kept with the jaxpr; `lowered` is its text if known."""
    key = ("executable", placement, spec, len(consts))
    execute = jaxpr.memo.get(key)
    if execute is None:
        lowered = lowered or lower_program(jaxpr, consts, spec, placement, True)
        execute = lowered.compile(spec.compiler_options)
        if spec.memory is not None:

            def build(memory: Any) -> Executable:
                other = lower_program(jaxpr, consts, spec._replace(memory=memory), placement)
                return other.compile(spec.compiler_options)

            execute = spec.memory.confirm(jaxpr, spec, len(consts), execute, build)
        jaxpr.memo[key] = execute
    return execute


def place_program(
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    args: Sequence[Any],
    spec: JitSpec,
    names: Callable[[], Sequence[str]] = tuple,
) -> Placement:
    """Return the placement of a program, given its operands and its shardings."""
    op = "array" if names is tuple else "jit"
    if spec.device is not None:
        return on_device(spec.device, True)
    named = shardings_in(jaxpr)
    if not consts and not spec.in_shardings and not spec.out_shardings:
        return placement_of(args, named, op, names)
    places = spec.in_shardings or (None,) * len(args)
    over = [*filter(None, (*places, *spec.out_shardings)), *named]
    free = [x for x, s in zip(args, places, strict=True) if s is None]
    consts = [c for c in consts if wide_sharding(c) is not None]
    label = lambda: [
        *["a value that it closes over"] * len(consts),
        *[n for n, s in zip(names(), places) if s is None],
    ]
    found = placement_of([*consts, *free], over, op, tuple if op == "array" else label)
    if not found.partitioned:
        return found
    rest = iter(found.arguments[len(consts) :])
    return found._replace(arguments=tuple([next(rest) if s is None else s for s in places]))


def run_jaxpr(
    jaxpr: Jaxpr,
    args: Sequence[Any],
    name: str,
    compiler_options: tuple = (),
    donated: tuple[int, ...] = (),
) -> list:
    """Apply a closed jaxpr to concrete values, as one compiled program."""
    key = ("spec", name, compiler_options, donated)
    spec = jaxpr.memo.get(key)
    if spec is None:
        spec = jaxpr.memo[key] = JitSpec(name, donated, compiler_options=compiler_options)
    placement = placement_of(args, shardings_in(jaxpr))
    return run_program(jaxpr, (), args, spec, placement=placement)[0]


def holder_jaxpr(prim: Primitive, args: Sequence[Any], params: dict, home: Jaxpr) -> Jaxpr:
    """The program that is one application of a primitive that holds programs, at these types.

    It is kept on `home`, one of those that `params` hold, and dies with it.
    """
    avals = tuple([typeof(x, prim.name) for x in args])
    key = ("compiled", prim, avals, *params.items())
    program = home.memo.get(key)
    if program is None:
        program = home.memo[key] = eqn_jaxpr(prim, params, avals)
    return program


def eqn_jaxpr(prim: Primitive, params: dict, in_avals: tuple) -> Jaxpr:
    """The program that is one equation."""
    invars = [Var(a) for a in in_avals]
    outvars = [Var(a) for a in prim.type_of(in_avals, params)]
    return Jaxpr((), invars, outvars, [Eqn(prim, invars, params, outvars)])
