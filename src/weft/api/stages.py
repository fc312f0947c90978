"""The stages of a compilation as values: Traced, Lowered, Compiled.

`jit(f).trace(x)`, `.lower()`, `.compile()`; the values of the steps that a call of `jit(f)`
takes at once, see api/jit.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from jaxlib import _jax

from weft.api.functions import avals_of
from weft.api.programs import Giving, StagedProgram
from weft.api.shape_struct import ShapeDtypeStruct
from weft.control.compiler_options import BACKEND
from weft.core.aval import HasAval, ShapedArray, typeof
from weft.core.jaxpr import ClosedJaxpr
from weft.core.trace import Tracer
from weft.errors import ShapeError
from weft.mesh.client import default_device, platform_of
from weft.mesh.plugins import PLATFORMS
from weft.options import config
from weft.primitives.hlo_work import correct_flops
from weft.primitives.lapack_work import count_library_flops
from weft.pytrees import flatten, unflatten
from weft.run.pipeline import LoweredProgram, lower_program
from weft.run.programs import find_executable
from weft.util import Record, insert_at
from weft.xla.compile import Executable, write_hlo
from weft.xla.hlo import strip_locations
from weft.xla.layouts import Format, Layout
from weft.xla.locating import write_places
from weft.xla.placement import Placement

KERNEL = '"weft_'  # how the targets of weft's kernels begin in the text of a program

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]

CompilerOptions = dict[str, Any]


@runtime_checkable
class Wrapped(Protocol):
    """The protocol of a function that `jit` returned: it can be called, traced and lowered.

    Attributes:
      trace: a method that returns the function as a `Traced` program for the types of arguments.
      lower: a method that returns it as a `Lowered` program.

    >>> isinstance(weft.jit(jnp.sin), weft.stages.Wrapped)
    True
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Stage at the types of these arguments."""

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Stage and write StableHLO at the types of these arguments."""


class ArgInfo(HasAval, Record):
    """The type of an argument of a staged program.

    Attributes:
      aval: the type, a `ShapedArray`.
      donated: True if the results may use the buffer of the argument.
      shape: the shape of the type.
      dtype: the dtype of the type.

    >>> weft.jit(jnp.sin).lower(1.0).args_info[0][0].donated
    False
    """

    __slots__ = ("aval", "donated")

    def __init__(self, aval: ShapedArray, donated: bool):
        self.aval = aval
        self.donated = donated


class _Stage:
    """The base of every stage: facts about the call that it is made for."""

    def __init__(self, program: StagedProgram, placement: Placement):
        self._program = program._replace(fun=Giving(program.fun()))
        self._placement = placement
        self.in_tree = program.in_tree
        self.out_tree = program.out_tree

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, as (args, kwargs)."""
        return unflatten(self.in_tree, self._program.in_avals)

    @property
    def args_info(self) -> Any:
        """An ArgInfo for each argument, as (args, kwargs)."""
        donated = set(self._program.donated)
        infos = [ArgInfo(a, i in donated) for i, a in enumerate(self._program.in_avals)]
        return unflatten(self.in_tree, infos)

    @property
    def out_info(self) -> Any:
        """A ShapeDtypeStruct for each result."""
        structs = [ShapeDtypeStruct.of(a) for a in self._program.out_avals]
        return unflatten(self.out_tree, structs)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The flat arguments whose buffers are given away."""
        return self._program.donated

    def __repr__(self) -> str:
        program = self._program
        takes, gives = (", ".join(map(str, x)) for x in (program.in_avals, program.out_avals))
        return f"{type(self).__name__}({program.spec.name}: ({takes}) -> ({gives}))"


class Traced(_Stage):
    """A function that was traced at given types: `jit(f).trace(*args)`.

    Attributes:
      jaxpr: the program, a `ClosedJaxpr`.
      lower: a method that returns the `Lowered` program.
      fun_name: the name of the function.
      out_info: the types of the results.

    >>> print(weft.jit(jnp.sin).trace(1.0).jaxpr)
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program, with its consts."""
        return self._program.closed

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self._program.spec.name

    @property
    def effects(self) -> frozenset:
        """Return the effects of the program."""
        return self._program.jaxpr.effects

    @property
    def out_avals(self) -> Any:
        """The types of the results."""
        return unflatten(self.out_tree, self._program.out_avals)

    def closure_convert(self) -> tuple[list, Callable]:
        """`(consts, fun)`: the arrays that the function closes over, and it with them as argument.

        `fun(consts, *args, **kwargs)` gives the results of the program that was traced.

        >>> c = jnp.arange(2.0)
        >>> consts, fun = weft.jit(lambda x: x * c).trace(1.0).closure_convert()
        >>> fun([c + 1], 2.0)
        Array([2., 4.], dtype=float32)
        """
        program = self._program

        def converted(consts: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            leaves, tree = flatten((args, kwargs))
            if tree != self.in_tree or len(consts) != len(program.consts):
                raise TypeError(
                    f"{self.fun_name}: must be called with {len(program.consts)} consts and "
                    f"arguments of the structure {self.in_tree}; got {len(consts)} and {tree}."
                )
            outs = program.jaxpr(*consts, *program.select_visible(leaves))
            return unflatten(self.out_tree, insert_at(outs, program.hidden_results))

        converted.__name__ = self.fun_name
        return list(program.consts), converted

    def with_consts_as_arg(self) -> tuple[list, Traced]:
        """`(consts, traced)`: as `closure_convert`, with the function traced at these types."""
        consts, fun = self.closure_convert()
        program, n = self._program, len(consts)
        spec, move = program.spec, lambda places: {i + n: x for i, x in places.items()}
        spec = spec._replace(
            donated=tuple(i + n for i in spec.donated),
            in_shardings=(*[None] * n, *spec.in_shardings) if spec.in_shardings else (),
        )
        args, kwargs = self.in_avals
        traced = program._replace(
            fun=lambda: fun,
            in_tree=flatten(((consts, *args), kwargs))[1],
            in_avals=[*map(typeof, consts), *program.in_avals],
            donated=tuple(i + n for i in program.donated),
            hidden=move(program.hidden),
            open_jaxpr=program.jaxpr,
            consts=(),
            spec=spec,
        )
        return consts, Traced(traced, self._placement)

    @property
    def lojax(self) -> Traced:
        """The program on arrays only: itself, since programs here hold no other types."""
        return self

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Write the program as StableHLO.

        `lowering_platforms` holds the platform that the program is for: "cpu", "cuda", "rocm" or
        "tpu". Without it, that is the platform of the devices. A program for another platform can
        be read and not compiled; `weft.export` saves one, also for several platforms.

        Raises:
          ValueError: the platforms are several, or not known.
        """
        program, placement = self._program, self._placement
        if lowering_platforms is not None:
            placement = for_platform(placement, tuple(lowering_platforms))
        plain, consts = program.discharged() if program.stateful else (program, program.consts)
        lowered = lower_program(plain.jaxpr, consts, plain.spec, placement)
        return Lowered(program, placement, lowered)


def for_platform(placement: Placement, names: tuple[str, ...]) -> Placement:
    """Return the placement of a program for one of the known platforms."""
    if len(names) != 1 or names[0] not in PLATFORMS:
        raise ValueError(
            f"lower: lowering_platforms must be one of {', '.join(PLATFORMS)}, in a sequence; got "
            f"{names}. Hint: weft.export.export(f, platforms=...) writes for several."
        )
    if not placement.platform and platform_of(placement.devices[0]) == names[0]:
        return placement
    return placement._replace(platform=names[0])


def lower_without_kernels(program: StagedProgram, placement: Placement) -> Lowered:
    """Lower a program to the operations that weft's kernels replace."""
    with config.scope(native=False):
        return Traced(program, placement).lower()


def count_work(client: Any, module: Any) -> dict:
    """Return XLA's analysis of a module, with the operations that books count."""
    return correct_costs(_jax.hlo_module_cost_analysis(client, module), module.to_string())


def correct_costs(costs: dict, text: str) -> dict:
    """Correct XLA's analysis of a module by its text.

    The operations of LAPACK's routines are added. Complex products of matrices and Fourier
    transforms count as in books.
    """
    more = count_library_flops(text) + correct_flops(text)
    return {**costs, "flops": max(costs.get("flops", 0.0), 0.0) + more} if more else costs


class Lowered(_Stage):
    """A program in StableHLO that is not compiled yet: `jit(f).lower(*args)`.

    Attributes:
      as_text: a method that returns the StableHLO as text.
      compile: a method that returns the `Compiled` program.
      args_info: the types of the arguments, a pytree of `ArgInfo`.
      out_info: the types of the results.

    >>> "stablehlo.sine" in weft.jit(jnp.sin).lower(1.0).as_text()
    True
    """

    def __init__(self, program: StagedProgram, placement: Placement, lowered: LoweredProgram):
        super().__init__(program, placement)
        self._lowered = lowered

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text; `dialect` 'stablehlo' (the default) or 'hlo'.

        With `debug_info`, operations have their scopes and the user's line, as locations of MLIR.
        """
        if dialect in (None, "stablehlo") and debug_info:
            with config.scope(locate_operations=True):
                located = Traced(self._program, self._placement).lower()._lowered.module
            return write_places(located.text, located.origins, self._program.spec.name)
        if dialect in (None, "stablehlo"):
            return strip_locations(self._lowered.module.text)
        if dialect == "hlo" and debug_info:
            return write_hlo(self.as_text(debug_info=True)).get_hlo_module().to_string()
        if dialect == "hlo":
            return self.compiler_ir(dialect).as_hlo_text()
        raise ValueError(f"as_text: dialect must be 'stablehlo' or 'hlo'; got {dialect!r}.")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module: as text, or as XLA's object if `dialect` is 'hlo'."""
        return write_hlo(self.as_text()) if dialect == "hlo" else self.as_text(dialect)

    def cost_analysis(self) -> dict:
        """Return XLA's estimate of floating-point operations and bytes, of the program as written.

        What weft's kernels compute is counted as the operations that they replace, and calls of
        LAPACK by the counts of its working notes; a loop counts as one turn. The estimate of the
        compiled program, which the compiler has changed, is `.compile()`'s.
        """
        placement, lowered = self._placement, self
        if KERNEL in self._lowered.module.text:
            lowered = lower_without_kernels(self._program, placement)
        client = (default_device() if placement.platform else placement.devices[0]).client
        return count_work(client, lowered.compiler_ir("hlo").get_hlo_module())

    def compile(self, compiler_options: dict | None = None) -> Compiled:
        """Compile for the devices of the arguments, else the mesh in scope or the default device.

        One over an abstract mesh has none, and raises ValueError.
        """
        program = self._program
        if compiler_options:
            if BACKEND in compiler_options:
                raise ValueError(
                    "compile: a backend must be chosen before a program is lowered; got "
                    f"{compiler_options}. Hint: jit(f, compiler_options={compiler_options})."
                )
            settings = tuple(sorted(compiler_options.items()))
            program = program._replace(spec=program.spec._replace(compiler_options=settings))
        plain, consts = program.discharged() if program.stateful else (program, program.consts)
        run = find_executable(plain.jaxpr, consts, plain.spec, self._placement, self._lowered)
        return Compiled(program, run)


class Compiled(_Stage):
    """A compiled program: `jit(f).lower(*args).compile()`.

    It is called with arguments of the types that it was compiled for, and never compiles again.

    Attributes:
      as_text: a method that returns the optimized program as text.
      cost_analysis: a method that returns XLA's estimates of the work, a dict.
      memory_analysis: a method that returns the bytes of arguments, results and temporaries.
      input_shardings, output_shardings: the shardings of arguments and results.

    >>> compiled = weft.jit(lambda x: x + 1).lower(1.0).compile()
    >>> print(compiled(2.0))
    3.0
    """

    def __init__(self, program: StagedProgram, run: Executable):
        super().__init__(program, run.placement)
        self._run = run

    def __deepcopy__(self, memo: dict) -> Compiled:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            "pickle: a compiled program is of this process alone; got one of "
            f"{self._program.spec.name}. Hint: pickle the lowered one, and compile it again, which "
            "the cache on disk makes quick."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        program = self._program
        name = program.spec.name
        leaves, tree = flatten((args, kwargs))
        if tree != self.in_tree:
            raise TypeError(
                f"{name}: a compiled function must be called with the structure it was compiled "
                f"for; got {tree} where {self.in_tree} was."
            )
        if any(isinstance(x, Tracer) for x in leaves):
            raise TypeError(
                f"{name}: a compiled function must be called with arrays; got a tracer. "
                "Hint: call the jitted function, which can be transformed."
            )
        avals = avals_of(name, leaves, tree, self._program.fun())
        for i, (got, want) in enumerate(zip(avals, program.in_avals, strict=True)):
            if got.strong() is not want.strong():
                raise ShapeError(
                    f"{name}: a compiled function must be called with the types it was compiled "
                    f"for; got {got} where argument {i} was {want}. Hint: call the jitted "
                    "function, which compiles for each new type."
                )
        leaves = program.select_visible(leaves)
        if program.stateful:
            return program.result(program.run(leaves)[0])
        if config.debug == "off":
            return program.result(self._run(*leaves))
        return program.result(program.run(leaves, self._placement)[0])

    call = __call__

    def as_text(self) -> str:
        """The optimized HLO."""
        return self._run.loaded.get_hlo_text()

    def cost_analysis(self) -> dict:
        """Return XLA's estimate of floating-point operations and bytes.

        XLA cannot analyze weft's kernels. For a program that calls them it is the estimate of the
        program with the operations that the kernels replace.
        """
        if KERNEL in self.as_text():
            return lower_without_kernels(self._program, self._placement).cost_analysis()
        found = dict(self._run.loaded.cost_analysis())
        return correct_costs(found, self.as_text())

    def memory_analysis(self) -> Any:
        """Bytes of arguments, results, temporaries and code."""
        return self._run.loaded.get_compiled_memory_stats()

    def memory_plan(self) -> Any:
        """Return how the program fits the limit `memory` of `jit`; None if it has none."""
        program = self._program
        plain, consts = program.discharged() if program.stateful else (program, program.consts)
        memory = plain.spec.memory
        if memory is None:
            return None
        return memory.report(plain.jaxpr, plain.spec, len(consts), self._run)

    @property
    def out_info(self) -> Any:
        """A ShapeDtypeStruct for each result, with its sharding."""
        pairs = zip(self._program.out_avals, flatten(self.output_shardings)[0], strict=True)
        return unflatten(
            self.out_tree, [ShapeDtypeStruct.of(a).update(sharding=s) for a, s in pairs]
        )

    @property
    def input_shardings(self) -> tuple:
        """Return the shardings of the arguments as (args, kwargs); None for unused ones."""
        return self._inputs(lambda sharding, layout: sharding, None)

    @property
    def output_shardings(self) -> Any:
        """Return the shardings of the results."""
        return self._outputs(lambda sharding, layout: sharding)

    @property
    def input_formats(self) -> tuple:
        """Return the layouts and shardings of the arguments, as (args, kwargs)."""
        return self._inputs(lambda sharding, layout: Format(layout, sharding), Format())

    @property
    def output_formats(self) -> Any:
        """Return the layouts and shardings of the results."""
        return self._outputs(lambda sharding, layout: Format(layout, sharding))

    def _inputs(self, of: Callable, unused: Any) -> tuple:
        """Return the sharding and the layout of each argument that the executable takes."""
        program, run = self._program, self._run
        count = len(program.in_avals)
        places = run.argument_shardings(count - len(program.hidden))
        for i in sorted(program.hidden):
            places.insert(i, None)
        every = run.loaded.get_parameter_layouts()  # what the program closes over comes first
        taken = sum(s is not None for s in places)
        layouts = map(Layout.from_pjrt_layout, every[len(every) - taken :])
        found = [unused if s is None else of(s, next(layouts)) for s in places]
        return unflatten(self.in_tree, found)

    def _outputs(self, of: Callable) -> Any:
        """Return the sharding and the layout of each result."""
        hidden = dict.fromkeys(self._program.hidden_results)
        layouts = map(Layout.from_pjrt_layout, self._run.loaded.get_output_layouts())
        places = insert_at(
            self._run.out_shardings, dict.fromkeys(hidden, self._run.placement.whole)
        )
        found = [of(s, x) for s, x in zip(places, insert_at(layouts, hidden), strict=True)]
        return unflatten(self.out_tree, found)

    def runtime_executable(self) -> Any:
        """XLA's object."""
        return self._run.loaded
