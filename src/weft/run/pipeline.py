"""Compile a closed jaxpr: passes, lowering to text, compiling.

The text is lower.py's, compiling and calling an executable are compile.py's; what runs programs on
values, and keeps the executables, is run.py.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft import cpu, dtypes, optimize, watch
from weft.control.compiler_options import split_options
from weft.core.aval import ShapedArray, check_extent, typeof
from weft.core.jaxpr import Atom, Jaxpr, Literal, Var
from weft.errors import InconclusiveDimensionOperation
from weft.mesh.client import platform_of
from weft.mesh.sharding import NamedSharding
from weft.mesh.typed import sharding_of, with_every_entry
from weft.options import config
from weft.passes.dce import used_inputs
from weft.passes.inline import rename_atoms
from weft.passes.physical import has_extended
from weft.primitives.constant import write_consts
from weft.run.known import find_known
from weft.util import partition, select_masked
from weft.watch import events
from weft.watch.progress import run_reporting
from weft.xla.compile import NO_FLAGS, Executable, compile_text
from weft.xla.foreign import ForeignExecutable
from weft.xla.locating import keep_located
from weft.xla.lower import Module, lower_module, make_physical
from weft.xla.placement import Placement, explicit_mesh, wide_sharding

NO_TEXT = Module("", (), (), ())
SMALL = 4096  # bytes of a const that is written into the text


class JitSpec(NamedTuple):
    """The options of `jit` that decide how a program is compiled, and not its jaxpr."""

    name: str
    donated: tuple[int, ...] = ()  # indices of arguments whose buffers may hold results
    keep_unused: bool = False
    compiler_options: tuple = ()
    in_shardings: tuple = ()  # of the arguments, None where it follows from them; () for all
    out_shardings: tuple = ()  # of the results, likewise
    device: Any = None  # where to run, instead of where the arguments are
    passes: tuple | None = None  # from jaxpr to jaxpr; None for the configured passes
    memory: Any = None  # a MemoryLimit of footprint/limit.py


class LoweredProgram(NamedTuple):
    """A program ready to compile: its text, and the inputs of the lowering."""

    module: Module
    jaxpr: Jaxpr  # has the parameters of the text
    placement: Placement
    kept: list[bool]  # marks of the arguments that it takes
    consts: list  # the values that are passed before them
    staged: Jaxpr  # before the passes
    prepared: Jaxpr  # the lowered program, which the platform derives from `jaxpr`
    described: str | None = None  # what its executable can be found by without the text
    loaded: Any = None  # the executable that was found so; there is no text then

    def compile(self, settings: Sequence[tuple[str, Any]] = ()) -> Executable:
        """Return the executable. `settings` are XLA flags.

        Over a mesh, the compiler chooses the shardings of parameters and results that have none
        yet; they are read from the executable.
        """
        module, jaxpr, placement, kept, consts, staged, prepared, described, loaded = self
        passed = consts, None if all(kept) else kept, module.host_calls
        if loaded is not None:
            return Executable(loaded, jaxpr, placement, *passed)
        calls = len(module.host_calls)
        make_executable: Callable[..., Executable] = Executable
        if module.foreign_calls:
            make_executable = functools.partial(ForeignExecutable, module.foreign_calls)
        before = [placement.whole] if calls else []  # the number of the run
        given = [*before, *module.parameters], module.results
        free = [s is None for s in given[0]], [s is None for s in given[1]]
        platform = placement.platform or platform_of(placement.devices[0])
        flags = NO_FLAGS
        if platform == "cpu":
            flags = cpu.flags.choose_flags(prepared, placement.partitioned)
        given_flags = split_options(tuple(settings))[1] if settings else ()
        loaded, how = compile_text(
            module.text, placement, given_flags, calls, free, flags, described
        )
        if how == "compiled" and config.hints:
            watch.key_reuse.hint_reuse(staged)
        if module.origins:
            keep_located(loaded, module.origins)
        if not placement.partitioned:
            return make_executable(loaded, jaxpr, placement, *passed)
        # None for one device, and for no values None or one sharding
        whole = [placement.whole._to_xla_hlo_sharding(0)]
        taken = loaded.get_parameter_shardings() or whole * len(given[0])
        made = loaded.get_output_shardings() or whole * len(jaxpr.outvars)

        def choose(
            given: Sequence[Any], found: Sequence[Any], avals: Sequence[Any], like: Sequence = ()
        ) -> list:
            return [
                name_sharding(got, aval.physical.ndim, placement.whole, like) if s is None else s
                for s, got, aval in zip(given, found, avals, strict=True)
            ]

        bound = [(s, a) for s, a in zip(module.parameters, jaxpr.in_avals, strict=True) if s]
        shardings = (
            choose(module.parameters, taken[len(before) :], jaxpr.in_avals),
            choose(module.results, made[: len(jaxpr.outvars)], jaxpr.out_avals, bound),
        )
        return make_executable(loaded, jaxpr, placement, *passed, shardings)


def name_sharding(got: Any, ndim: int, whole: Any, like: Sequence[tuple[Any, Any]]) -> Any:
    """Return the sharding that the compiler chose for a value of rank `ndim`.

    It is one of those in `like`, pairs of the sharding and the type of an operand, if an equivalent
    one exists: so its spec has the length that a user gave it. Over explicit axes of a mesh it has
    an entry for each axis. `whole` is the sharding of a value that all devices of the program have.
    """
    named = whole.of_engine(got, ndim)
    if not isinstance(named, NamedSharding):
        return named
    if named.mesh.explicit_axes:
        return with_every_entry(named, ndim)
    kind = lambda s: (getattr(s, "mesh", None), s.memory_kind)
    for s, aval in like:
        if aval.physical.ndim == ndim and kind(s) == kind(named) and says_the_same(s, named):
            return s
    return named


def says_the_same(sharding: NamedSharding, other: NamedSharding) -> bool:
    """Return True if specs over one mesh differ only in entries of None at their ends."""
    ndim = max(len(sharding.spec), len(other.spec))
    return all(sharding.spec.axes(i) == other.spec.axes(i) for i in range(ndim))


def lower_program(
    jaxpr: Jaxpr, consts: Sequence[Any], spec: JitSpec, placement: Placement, find: bool = False
) -> LoweredProgram:
    """The StableHLO of a closed jaxpr whose first parameters are `consts`.

    If `find`, a program that is known on disk is not lowered: it has its executable in `loaded`.

    Small consts become constants of the text, which the compiler can fold; large ones are passed.
    Arguments that the program does not use are left out.
    """
    start = time.perf_counter()
    check_sizes(jaxpr, spec.name)
    staged, jaxpr = jaxpr, optimize.passes.run_passes(jaxpr, spec.passes, spec.name)
    if spec.memory is not None:
        jaxpr = spec.memory.fit(staged, spec, len(consts), placement.partitioned) or jaxpr
    options = spec.compiler_options
    if options and (backend := split_options(options)[0]) is not None:
        jaxpr, consts = write_small(jaxpr, consts)
        jaxpr = apply_backend(backend, jaxpr, placement)
    used = [True] * len(jaxpr.invars) if spec.keep_unused else used_inputs(jaxpr)
    n = len(consts)
    written, passed, taken = {}, [], []  # variables: of consts in the text, and of parameters
    for var, const, is_used in zip(jaxpr.invars, consts, used, strict=False):
        if not is_small(const):
            passed.append(const)
            taken.append(var)
        elif is_used:
            written[var] = const
    kept = list(used[n:])
    if n or not all(kept):
        taken += [v for v, k in zip(jaxpr.invars[n:], kept, strict=True) if k]
        jaxpr = jaxpr.replace(constvars=written, invars=taken)
    # among the parameters that are left
    donated = [len(passed) + sum(kept[:i]) for i in spec.donated if kept[i]] if spec.donated else ()
    parameters: list = []
    results: Sequence[Any] = spec.out_shardings
    if placement.partitioned:
        places = zip(placement.arguments, kept, strict=True)
        parameters = [*map(wide_sharding, passed), *[s for s, k in places if k]]
        mesh = explicit_mesh(placement)
        if mesh is not None:
            parameters = add_explicit_shardings(parameters, jaxpr.in_avals, mesh)
            results = results or [None] * len(jaxpr.outvars)
            results = add_explicit_shardings(results, jaxpr.out_avals, mesh)
    values: Sequence[Any] = [*written.values()]
    prepared = jaxpr
    if values:
        prepared, values = write_numbers(prepared, values)
    if has_extended(prepared):
        prepared, values = make_physical(prepared, values)
    described = loaded = None
    if find and spec.memory is None:
        settings = donated, options
        described, loaded = find_known(prepared, values, placement, spec.name, *settings)
    if loaded is not None:
        known = NO_TEXT, jaxpr, placement, kept, passed, staged, prepared, described, loaded
        return LoweredProgram(*known)
    prepared = prepare_for_platform(prepared, placement, bool(donated), spec.name)
    given = spec.name, placement, parameters, results, donated, values
    if config.progress:
        module = run_reporting(f"lowering {spec.name}", lower_module, prepared, *given)
    else:
        module = lower_module(prepared, *given)
    seconds = time.perf_counter() - start
    events.record_work(events.LOWER, seconds, fun_name=f"jit({spec.name})")
    return LoweredProgram(module, jaxpr, placement, kept, passed, staged, prepared, described)


def check_sizes(jaxpr: Jaxpr, name: str) -> None:
    """Raise if an argument or a result has a symbolic size, or more bytes than can be addressed."""
    for v in (*jaxpr.invars, *jaxpr.outvars):
        if type(v.aval.size) is not int:
            raise InconclusiveDimensionOperation(
                f"{name}: must have known sizes to be compiled; got {v.aval}. Hint: "
                f"weft.export.export(weft.jit({name})), or weft.eval_shape."
            )
        if v.aval.size >= 2**53:  # of 16 bytes or fewer: no processor has more than 57 address bits
            check_extent(v.aval.shape, v.aval.dtype, 57)


def write_small(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[Jaxpr, Sequence[Any]]:
    """Return a program with small consts as constants of its own, and the other consts.

    A backend can then compute with the numbers: it may leave out products by zeros.
    """
    is_written = [is_small(x) and typeof(x).physical is typeof(x) for x in consts]
    others, written = partition(is_written, jaxpr.invars[: len(consts)])
    rest, held = partition(is_written, consts)
    invars = [*others, *jaxpr.invars[len(consts) :]]
    return write_consts(jaxpr.replace(constvars=written, invars=invars), held), rest


def apply_backend(backend: Callable, jaxpr: Jaxpr, placement: Placement) -> Jaxpr:
    """Return the program that calls `jaxpr` as a backend other than XLA has compiled it."""
    platform = placement.platform or platform_of(placement.devices[0])
    if platform != "cpu" or placement.partitioned:
        count = len(placement.devices)
        raise NotImplementedError(
            "jit: compiler_options={'backend': 'c'} must be on one device of the CPU; got "
            f"{count} of {platform}."
        )
    return backend(jaxpr)


def add_explicit_shardings(
    shardings: Sequence[Any], avals: Sequence[ShapedArray], mesh: Any
) -> list[Any]:
    """Return shardings with the sharding of the type in place of None.

    The compiler has no choice along explicit axes.
    """
    whole = mesh.are_all_axes_explicit
    return [
        sharding_of(a, mesh)
        if s is None and (whole or (a.sharded is not None and a.sharded.unreduced))
        else s
        for s, a in zip(shardings, avals, strict=True)
    ]


def write_numbers(jaxpr: Jaxpr, consts: Sequence[Any]) -> tuple[Jaxpr, Sequence[Any]]:
    """Return a program with literals in place of consts that are numbers, and the other consts."""
    new: dict[Var, Atom] = {}
    for var, const in zip(jaxpr.constvars, consts, strict=True):
        aval = var.aval
        if aval.shape == () and aval.physical is aval:
            new[var] = Literal(dtypes.cast_on_host(const, aval.dtype)[()], aval)
    if not new:
        return jaxpr, consts
    left = [v not in new for v in jaxpr.constvars]
    eqns = [e.replace(invars=rename_atoms(e.invars, new)) for e in jaxpr.eqns]
    outvars = rename_atoms(jaxpr.outvars, new)
    constvars = select_masked(jaxpr.constvars, left)
    jaxpr = jaxpr.replace(constvars=constvars, eqns=eqns, outvars=outvars)
    return jaxpr, select_masked(consts, left)


def prepare_for_platform(jaxpr: Jaxpr, placement: Placement, donated: bool, name: str) -> Jaxpr:
    """Return the program that the compiler of a platform is given in place of `jaxpr`."""
    platform = placement.platform or platform_of(placement.devices[0])
    if platform != "cpu":
        return jaxpr
    kernels, located = cpu.kernels.are_kernels_wanted(), config.locate_operations
    target = cpu.scope.Target(kernels, placement.partitioned, located=located, donated=donated)
    return cpu.passes.prepare_jaxpr(jaxpr, target, name)


def is_small(const: Any) -> bool:
    """Return True if a const is better written into the text than passed."""
    aval = typeof(const)
    return aval.nbytes <= SMALL and wide_sharding(const) is None
