"""`to_c` and `CProgram`: a function of arrays as a program in C that needs libc and libm only."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from weft.api.functions import argument_names, check_callable, leaf_names
from weft.api.jit import jit
from weft.api.programs import StagedProgram
from weft.core.aval import ShapedArray, words_of
from weft.core.jaxpr import Jaxpr
from weft.core.stage import stage
from weft.export.c.compiler import CFunction, compile_library
from weft.export.c.expand import expand
from weft.export.c.files import write_files, write_header
from weft.export.c.names import make_identifier, make_identifiers
from weft.export.c.sizes import Limits, list_variables
from weft.export.c.source import Parameter, Signature, Source, write_source
from weft.export.c.wasm import WasmFunction, compile_wasm
from weft.export.c.web import write_web
from weft.optimize.passes import run_passes
from weft.optimize.simplify import simplify_algebra
from weft.passes.cse import cse_jaxpr
from weft.passes.dce import drop_dead_code
from weft.passes.hoist import hoist_invariants
from weft.primitives.constant import write_consts
from weft.util import insert_at, wraps
from weft.xla.lower import make_physical

BEFORE = (simplify_algebra, cse_jaxpr, hoist_invariants, drop_dead_code)
AFTER = (cse_jaxpr, drop_dead_code)


@dataclasses.dataclass(frozen=True)
class Report:
    """The sizes of a program in C.

    Attributes:
      source_bytes: the size of the source.
      constant_bytes: the arrays that are part of the program.
      workspace_bytes: the memory that a caller passes for intermediate results; symbolic where
        sizes are.
      operations: about how many operations on numbers a call does; those in a `while` count once,
        and symbolic sizes as 64.
    """

    source_bytes: int
    constant_bytes: int
    workspace_bytes: Any
    operations: int

    def __str__(self) -> str:
        return (
            f"source {self.source_bytes} bytes, constants {self.constant_bytes} bytes, workspace "
            f"{self.workspace_bytes} bytes, about {self.operations} operations a call"
        )


class CProgram:
    """A program in C99, which `to_c` writes.

    The source has one function. It calls only libc and libm, allocates nothing and changes only the
    memory that it is passed, so threads may call it at the same time.

    Attributes:
      name: the name of the function.
      source: the text of the source.
      header: the text of its header, with the shapes of arguments and results, and the size of the
        memory that a caller passes.

    >>> program = weft.export.to_c(lambda x: 3 * x)(np.float32([1, 2]))
    >>> "float" in program.header
    True
    """

    def __init__(self, source: Source, program: StagedProgram):
        self._source, self._program = source, program
        self.name: str = source.name
        self.source: str = source.text
        self.header: str = write_header(source)

    def __repr__(self) -> str:
        listed = [f"{p.name}: {p.aval}" for p in self._source.parameters]
        results = [f"{r.name}: {r.aval}" for r in self._source.results]
        return f"CProgram({self.name}: ({', '.join(listed)}) -> ({', '.join(results)}))"

    def report(self) -> Report:
        """Return the sizes of the program: of the source, of its constants and of its memory."""
        s = self._source
        return Report(len(s.text), s.constants, s.workspace, s.operations)

    def save(self, folder: str | pathlib.Path) -> pathlib.Path:
        """Write the source, its header, an example of a call and what builds it to a folder.

        Args:
          folder: the path of the folder; it is made if it is not there.

        Returns:
          The folder's path. It has `NAME.c`, `NAME.h`, `main.c` (a program that calls the function
          once), `CMakeLists.txt`, `NAME.hpp` (a call from C++), `NAME.rs` (a call from Rust), and
          `NAME.weights` where weights are in a file.
        """
        return write_files(self._source, self.header, pathlib.Path(folder))

    @overload
    def build(
        self, target: None = None, *, compiler: str | None = None, flags: Sequence[str] = ()
    ) -> CFunction: ...

    @overload
    def build(self, target: Literal["wasm32"], *, flags: Sequence[str] = ()) -> WasmFunction: ...

    def build(
        self, target: str | None = None, *, compiler: str | None = None, flags: Sequence[str] = ()
    ) -> CFunction | WasmFunction:
        """Compile the program, and return a function that calls it.

        Args:
          target: None compiles for this machine, "wasm32" to WebAssembly, by zig. The latter is
            called by wasmtime (`pip install weft[c]`).
          compiler: the command of a compiler for this machine; None takes gcc, clang,
            cc or zig, the first on PATH, or `ziglang`, if it is installed.
          flags: more flags, after `-std=c99 -O3`. `-ffast-math` or `-march=native` makes programs
            faster, and changes how results are rounded. `-DWEFT_CBLAS` and `-lopenblas`, or another
            library that has `cblas.h`, let a BLAS compute products of matrices.

        Returns:
          A function that takes the arguments of the function in Python, and gives the same pytree
          with NumPy arrays. Static arguments are part of the program, and are not passed.

        Raises:
          RuntimeError: no compiler is found, or it rejects the source or the flags.
          ValueError: `target` is not None or "wasm32".

        >>> triple = weft.export.to_c(lambda x: 3 * x)(np.float32([1, 2])).build()
        >>> triple(np.float32([5, 6]))
        array([15., 18.], dtype=float32)
        """
        program = self._program
        restore = lambda outs: insert_at(outs, program.hidden_results)
        how = (program.in_tree, program.out_tree), program.select_visible, restore
        if target == "wasm32":
            return WasmFunction(self._source, compile_wasm(self._source, self.header, flags), *how)
        if target is not None:
            raise ValueError(
                f"build: target must be None, for this machine, or 'wasm32'; got {target!r}."
            )
        library = compile_library(self._source, self.header, compiler, flags)
        return CFunction(self._source, library, *how)

    def to_web(self, folder: str | pathlib.Path) -> pathlib.Path:
        """Write the program as WebAssembly, JavaScript that calls it, and a page.

        Args:
          folder: the path of the folder; it is made if it is not there.

        Returns:
          The folder's path. It has `model.wasm`, `model.js` (a module with `load()`, which gives a
          function of typed arrays and numbers), and `index.html`, which calls it once.

        Raises:
          RuntimeError: zig is not installed.
        """
        module = compile_wasm(self._source, self.header)
        return write_web(self._source, module, pathlib.Path(folder))


def to_c(
    fun: Callable,
    *,
    name: str | None = None,
    weights: Literal["source", "file"] = "source",
    finite_math: bool = False,
) -> Callable[..., CProgram]:
    """Return a function that takes the types of arguments, and returns `fun` as a C program.

    The program computes the same as `jit(fun)`, without Python and XLA. Derivatives, loops, random
    numbers and steps of optimizers can be exported, too. Results agree up to rounding, because sums
    may be added in another order.

    Args:
      fun: a function of arrays, which may be jitted. It must not call Python (`pure_callback`), use
        several devices, or take references.
      name: the name of the function in C; by default the name of `fun`.
      weights: where the arrays are that `fun` closes over: in the "source", as `static const`
        arrays, or in a "file" beside it, whose bytes a caller reads or maps, and passes.
      finite_math: True promises that no argument and no intermediate result is NaN or infinite, and
        that the signs of zeros do not matter. Products by zeros of small constant matrices are left
        out then, which by default C must compute, since 0 * x is NaN for infinite x. If an argument
        breaks the promise, a NaN may be missing in results. Infinities that `fun` itself holds are
        allowed, such as a mask of -inf: values that depend on them are computed as by default.

    Returns:
      A function of arguments, arrays or `ShapeDtypeStruct`s, that gives a `CProgram`. Symbolic
      sizes of `ShapeDtypeStruct`s become arguments of the function in C.

    Raises:
      NotImplementedError: an operation cannot be computed by C; the message names its line.

    >>> def step(params, x):
    ...     return {"w": params["w"] - 0.1 * x, "loss": jnp.sum(params["w"] * x)}
    >>> program = weft.export.to_c(step)({"w": np.float32([1, 2])}, np.float32([3, 4]))
    >>> program
    CProgram(step: (params_w: f32[2], x: f32[2]) -> (result_loss: f32[], result_w: f32[2]))
    >>> print(program.report())  # doctest: +ELLIPSIS
    source ... bytes, constants 0 bytes, workspace 0 bytes, about ... operations a call

    A filter whose transition has zeros, with and without the products by them:

    >>> turn = np.float32([[1, 0.1], [0, 1]])
    >>> for promise in (False, True):
    ...     program = weft.export.to_c(lambda x: turn @ x, finite_math=promise)(np.float32([1, 2]))
    ...     print(program.report().operations)
    6
    2
    """
    check_callable("to_c", fun, True)
    if weights not in ("source", "file"):
        raise ValueError(f"to_c: weights must be 'source' or 'file'; got {weights!r}.")
    jitted = fun if callable(getattr(fun, "trace", None)) else jit(fun)

    @wraps(fun)
    def of_types(*args: Any, **kwargs: Any) -> CProgram:
        program = jitted.trace(*args, **kwargs)._program
        apart = weights == "file"
        source = write_program(program, name or program.spec.name, apart, finite_math)
        return CProgram(source, program)

    del of_types.__wrapped__
    return of_types


def write_program(
    program: StagedProgram, name: str, apart: bool = False, finite: bool = False
) -> Source:
    """Return the source of a staged program: see `write_source`."""
    if program.stateful:
        raise ValueError(
            f"to_c: {program.spec.name} must be a program of arrays; got a reference. Hint: pass "
            "r[...], and return its new value."
        )
    jaxpr, given = prepare(program)
    if any(a.physical is not a for a in program.jaxpr.out_avals):
        raise ValueError(
            f"to_c: results of {program.spec.name} must be arrays of numbers; got random keys. "
            "Hint: return random.key_data(key)."
        )
    paths = program.select_visible(argument_names(program.fun(), program.in_tree))
    hidden = program.hidden_results
    variables = list_variables([*given, *jaxpr.out_avals])
    taken = [make_identifier(name), *map(make_identifier, variables)]
    if len(set(taken)) < len(taken):
        raise ValueError(
            f"to_c: sizes must have names that are different in C; got {', '.join(variables)} in "
            f"{taken[0]}."
        )
    names = make_identifiers(paths, taken)
    outs = [p for k, p in enumerate(leaf_names("result", program.out_tree)) if k not in hidden]
    results = make_identifiers(outs, [*taken, *names])
    parameters = [
        Parameter(n, p, a, not a.shape and Parameter(n, p, a).kind.by_value)
        for n, p, a in zip(names, paths, given, strict=True)
    ]
    listed = [Parameter(n, p, a) for n, p, a in zip(results, outs, jaxpr.out_avals, strict=True)]
    limits = Limits(variables, [*given, *jaxpr.out_avals])
    return write_source(jaxpr, Signature(taken[0], parameters, listed, limits), apart, finite)


def prepare(program: StagedProgram) -> tuple[Jaxpr, Sequence[ShapedArray]]:
    """Return the expanded program, and the types of its arguments."""
    jaxpr, consts = make_physical(program.jaxpr, program.consts)
    return prepare_jaxpr(jaxpr, [np.asarray(words_of(c)) for c in consts])


def prepare_jaxpr(jaxpr: Jaxpr, held: Sequence[Any]) -> tuple[Jaxpr, Sequence[ShapedArray]]:
    """Return an expanded program without the arguments that are `held`, and their types."""
    jaxpr = run_passes(jaxpr, BEFORE)
    avals = [a.strong() for a in jaxpr.in_avals[len(held) :]]
    expanded = write_consts(*stage(lambda *xs: expand(jaxpr, [*held, *xs]), avals))
    return run_passes(expanded, AFTER), avals
