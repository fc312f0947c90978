"""Python functions that a running program calls: the lookup of the function, and its errors.

jaxlib knows a callback only by its index in the program. The token that the program passes
identifies the run. So an executable holds no Python function and may be stored on disk, and a
function lives as long as the `Executable` that refers to it. primitives/effects.py has the
primitives with callbacks.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax

from weft.errors import JaxRuntimeError
from weft.options import config
from weft.util import memoize
from weft.xla.array import put


class Run:
    """One run of a program: the functions that it calls, and the first error among them."""

    __slots__ = ("error", "functions")

    def __init__(self, functions: Sequence[Callable]):
        self.functions = functions
        self.error: BaseException | None = None


_RUNS: list[Run | None] = []  # by number
_FREE: list[int] = []  # numbers that no run has
_growing = threading.Lock()


def begin_run(functions: Sequence[Callable]) -> tuple[int, Run]:
    """A new run and its number."""
    run = Run(functions)
    try:
        number = _FREE.pop()
    except IndexError:
        with _growing:
            number = len(_RUNS)
            _RUNS.append(None)
    _RUNS[number] = run
    return number, run


def end_run(number: int) -> None:
    """Let go of a run that is over."""
    _RUNS[number] = None
    _FREE.append(number)


@functools.cache
def make_entry(index: int) -> Callable:
    """Return the function that XLA calls for function `index` of a running program.

    XLA passes arrays of NumPy and takes arrays back, or it passes a context and the buffers of
    operands and results. The target of the call says which (`Builder.host_target`).
    """

    def call(first: Any, *args: Any) -> tuple | None:
        on_buffers = type(first) is not np.ndarray
        number = np.asarray(args[0]) if on_buffers else first
        run = _RUNS[int(number)]
        try:
            function = run.functions[index]  # type: ignore[union-attr]
            if on_buffers:
                call_on_buffers(function, args)
                return None
            outs = function(*args)
            return () if outs is None else (number, *outs)
        except BaseException as error:
            if run is not None and run.error is None:
                run.error = error
            raise

    return call


def call_on_buffers(function: Callable, buffers: Sequence[Any]) -> None:
    """Call a function with copies of operands, and write its results where XLA reads them.

    The first operand and the first result are the number of the run. The operands are copied
    because the function may keep them, and XLA reuses their memory.
    """
    results = [b for b in buffers if b.writeable]
    count = len(buffers) - len(results)
    outs = function(*[put(np.asarray(b)) for b in buffers[1:count]]) or ()
    for result, y in zip(results, (buffers[0], *outs), strict=True):
        place, given = np.asarray(result), np.asarray(y)
        if place.shape != given.shape:  # `copyto` would broadcast
            raise TypeError(
                f"callback: a result must have the shape declared; got {given.shape} for "
                f"{place.shape}."
            )
        np.copyto(place, given)


@memoize
def put_run_number(number: int, sharding: Any) -> Any:
    """The number of a run, on a device."""
    return put(np.int32(number), sharding)


def execute_with_callbacks(
    loaded: Any,
    functions: Sequence[Callable],
    buffers: Sequence[Any],
    handlers: Sequence[Any],
    sharding: Any,
) -> list:
    """Run a program that calls `functions`, to its end; an error of one of them is raised itself.

    A program whose operands are there already calls them in this thread, unless it has branches
    that jaxlib runs side by side.
    """
    _jax.batched_block_until_ready(buffers)
    number, run = begin_run(functions)
    try:
        results = loaded.execute_sharded(
            [put_run_number(number, sharding), *buffers], with_tokens=True
        )
        results.consume_token().block_until_ready()
        return results.consume_with_handlers(handlers)
    except JaxRuntimeError as failure:
        error = run.error
        if error is None:
            # Ctrl-C that came while no Python ran is raised before `call` can catch it
            if "KeyboardInterrupt" not in str(failure):
                raise
            error = KeyboardInterrupt()
    finally:
        run.error = None  # it refers to this frame
        end_run(number)
    raise wrap_error(error)


def wrap_error(error: BaseException) -> BaseException:
    """Return the error to raise for an error of a callback: itself, or JAX's if asked for."""
    if not config.wrap_callback_errors or not isinstance(error, Exception):
        return error
    traceback = importlib.import_module("traceback")  # takes 3 ms of the import of weft otherwise
    text = "".join(traceback.format_exception(error)).strip()
    return JaxRuntimeError(f"INTERNAL: CpuCallback error calling callback: {text}")


@functools.cache
def mlir_context() -> Any:
    """Return the MLIR context that the modules of this process share.

    It is for parsing the text of programs with the MLIR bindings of jaxlib. It has the dialects
    that programs are written in. All calls return the same object.

    Returns:
      A context of `jaxlib.mlir.ir`.

    >>> from weft.extend import mlir
    >>> text = weft.jit(jnp.sin).lower(1.0).as_text()
    >>> module = mlir.ir.Module.parse(text, mlir.make_ir_context())
    >>> "stablehlo.sine" in str(module)
    True
    """
    from jaxlib.mlir import ir  # 7 ms, which only programs with callbacks need

    context = ir.Context()
    load_dialects(context)
    return context


def load_dialects(context: Any) -> None:
    """Have a context of MLIR know the dialects that programs are written in."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    for dialect in (_stablehlo, _chlo, _sdy):
        dialect.register_dialect(context)
    context.load_all_available_dialects()


def parse_module(text: str) -> Any:
    """The module that a text is."""
    from jaxlib.mlir import ir

    return ir.Module.parse(text, mlir_context())
