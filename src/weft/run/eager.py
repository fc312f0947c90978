"""Eager operations: the bottom trace, and the compiled kernel of each primitive.

A kernel is a C++ callable for a primitive with parameters. It finds the executable for the types of
its arguments itself, and calls this file on a miss. It returns a list of results, or a single
result as such, since making a list takes as long as a Python call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Jaxpr
from weft.core.primitive import Primitive
from weft.core.source import trim_traceback
from weft.core.trace import Trace, install_bottom
from weft.errors import unhashable_error
from weft.mesh.transfers import is_own_transfer, move_explicitly
from weft.pytrees import flatten
from weft.run.fastpath import compiled_call
from weft.run.pipeline import JitSpec
from weft.run.programs import eqn_jaxpr, holder_jaxpr, run_jaxpr, run_program
from weft.util import keep_cache
from weft.xla.array import array_from_host


class Kernels(dict):
    """The kernel of a primitive, and of (primitive, *params): made where there is none yet."""

    def __missing__(self, key: Any) -> Callable[..., Any]:
        prim, *params = key if type(key) is tuple else (key,)
        kernel = self[key] = new_kernel(prim, dict(params))
        return kernel


KERNELS = keep_cache("kernels", Kernels())


class EvalTrace(Trace):
    """Computes. The parent of every other trace, at the end."""

    __slots__ = ()
    compiles_rules = True

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        if prim.impl is not None:
            outs = prim.impl(*args, **params)
            if type(outs) is list:
                return outs
            return list(outs) if prim.multiple_results else [outs]  # of a library's primitive
        try:
            kernel = KERNELS[(prim, *params.items()) if params else prim]
        except TypeError:
            raise unhashable_error(prim.name, params) from None
        try:
            out = kernel(*args)
            return out if type(out) is list else [out]
        except Exception as error:
            if is_own_transfer(error, args):
                return as_list(move_explicitly(kernel, *args))
            trim_traceback(error)
            raise

    def apply_program(self, program: Any, args: list) -> list:
        out = program.call(*args)
        return out if type(out) is list else [out]

    def call_jitted(self, function: Any, args: tuple, kwargs: dict) -> tuple:
        return function.run_call(args, kwargs)

    def run_compiled(
        self, prim: Primitive, args: Sequence[Any], params: dict, home: Jaxpr | None = None
    ) -> list:
        """Apply a primitive by its compiled kernel, also if it has an `impl`.

        If the parameters hold a program, `home`, the kernel is cached on it and dies with it.
        """
        if home is None:
            return as_list(kernel_of(prim, params)(*args))
        key = ("kernel", prim, *[v for v in params.values() if v is not home])
        kernel = home.memo.get(key)
        if kernel is None:
            kernel = home.memo[key] = new_kernel(prim, params)
        return as_list(kernel(*args))

    def run_jaxpr(
        self, jaxpr: Jaxpr, args: Sequence[Any], name: str, compiler_options: tuple = ()
    ) -> list:
        """Apply a closed jaxpr to concrete values, as one compiled program."""
        return run_jaxpr(jaxpr, args, name, compiler_options)

    def run_holder(
        self,
        prim: Primitive,
        args: Sequence[Any],
        params: dict,
        home: Jaxpr,
        name: str = "",
        donated: tuple[int, ...] = (),
        compiler_options: tuple = (),
    ) -> list:
        """Apply a primitive that holds programs to concrete values, as one compiled program.

        The program is cached on `home`, one of the programs that the parameters hold.
        """
        program = holder_jaxpr(prim, args, params, home)
        return run_jaxpr(program, args, name or prim.name, compiler_options, donated)

    def make_constant(self, x: Any, aval: ShapedArray) -> Any:
        """A number or NumPy's array as an array of type `aval`, whatever `enable_x64` is."""
        return array_from_host(np.array(x, aval.dtype), aval.weak_type)


def kernel_of(prim: Primitive, params: dict) -> Callable[..., Any]:
    """The kernel of `prim` with these parameters."""
    return KERNELS[(prim, *params.items()) if params else prim]


def new_kernel(prim: Primitive, params: dict) -> Callable[..., Any]:
    """The C++ callable that applies `prim` with these parameters to concrete values."""
    return compile_at_types(prim.name, lambda avals: eqn_jaxpr(prim, params, avals))


def compile_program(jaxpr: Jaxpr, name: str) -> Callable[..., Any]:
    """The C++ callable that applies a closed jaxpr to concrete values of its types."""
    return compile_at_types(name, lambda avals: jaxpr)


def compile_at_types(name: str, program_at: Callable[[tuple], Jaxpr]) -> Callable[..., Any]:
    """Return the C++ callable that runs the closed jaxpr for the types of its arguments."""
    spec = JitSpec(name, keep_unused=True)  # as each argument is used
    kept: dict[tuple, Jaxpr] = {}  # by types, programs that C++ cannot run

    def miss(*args: Any) -> tuple:
        avals = tuple([typeof(x, name) for x in args])
        jaxpr = kept.get(avals)
        if jaxpr is None:
            jaxpr = program_at(avals)
        outs, fast = run_program(jaxpr, (), args, spec, results_tree(len(jaxpr.outvars)))
        if fast is None:
            kept[avals] = jaxpr
        return outs[0] if len(outs) == 1 else outs, fast, False

    return compiled_call(name, miss)


def as_list(out: Any) -> list:
    """The results of a kernel as a list."""
    return out if type(out) is list else [out]


@functools.cache
def results_tree(count: int) -> Any:
    """The structure of what a kernel gives of `count` results."""
    return flatten(0 if count == 1 else [0] * count)[1]


EVAL = EvalTrace(None)
EVAL.depth = 0
install_bottom(EVAL)
