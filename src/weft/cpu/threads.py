"""Programs of calls of kernels, which XLA runs in a thread of its own if they take long.

XLA counts no operations for the call of a kernel, and runs a program of less than 1,000 operations
in the thread of the caller. Calls of such a program one after another do not overlap. So where the
calls take longer than it takes to wake a thread, one of them stands in a branch of a conditional.
The other branch has a product of matrices, which XLA counts, and is never taken.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.jaxpr import Eqn, Jaxpr, Var, memo_jaxpr, variables_in
from weft.cpu.calls import CpuCall, read_attributes
from weft.cpu.elements import only_moves
from weft.cpu.kernels import call_native
from weft.cpu.products import KERNELS, MAX_LIGHT_WORK
from weft.cpu.scope import Target
from weft.passes.dce import with_equations

MIN_COUNTED = 1000  # operations of the smallest program that XLA runs in a thread of its own
MAX_SIDE = 16  # rows of the factor of the product that is never computed
PRODUCTS = KERNELS | {"weft_matvec_pair"}
WORK_OF_BYTE = 4  # multiplications that take as long as a byte of another call's result
INDEX = ShapedArray((), np.dtype(np.int32))
FLOATS = frozenset(map(np.dtype, (np.float32, np.float64)))


class ThreadedCall(CpuCall):
    """A call of a kernel that makes XLA run the program in a thread of its own.

    Its last operand is an array that the kernel does not read. A product of it is in the branch
    that is never taken.
    """

    name = "cpu_threaded_call"

    def lower(self, hlo, *values, kernel, outs, attributes, aliases):
        *given, x = values
        params = dict(kernel=kernel, outs=outs, attributes=attributes, aliases=aliases)
        # XLA would leave out a branch that it knows to be never taken
        (index,) = hlo.op("stablehlo.optimization_barrier", [hlo.constant(0, INDEX)], [INDEX])

        def never() -> list:
            side = find_side(x.aval.size)
            factor = ShapedArray((side, x.aval.size // side), x.aval.dtype)
            (rows,) = hlo.op("stablehlo.reshape", [x], [factor])
            numbers = "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]"
            (product,) = hlo.op(
                "stablehlo.dot_general",
                [rows, rows],
                [ShapedArray((side, side), x.aval.dtype)],
                dot_dimension_numbers=f"#stablehlo.dot<{numbers}>",
            )
            return call_native(hlo, "weft_keep", [product], outs, {}, {})

        call = functools.partial(super().lower, hlo, *given, **params)
        return hlo.case(index, [call, never], outs)


threaded_call_p = ThreadedCall()


def thread_program(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Have XLA run a program of calls that take long in a thread of its own."""
    return write_thread(jaxpr) if target.kernels and not target.devices else jaxpr


@memo_jaxpr
def write_thread(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program with a `ThreadedCall`; the program itself if it needs none."""
    consists = all(isinstance(e.primitive, CpuCall) or only_moves(e) for e in jaxpr.eqns)
    if jaxpr.effects or not consists:
        return jaxpr
    calls = [e for e in jaxpr.eqns if isinstance(e.primitive, CpuCall)]
    products = [e for e in calls if e.params["kernel"] in PRODUCTS]
    several = len(calls) > 1 or any(map(has_extras, products))
    if not (products and several and sum(map(count_work, calls)) > MAX_LIGHT_WORK):
        return jaxpr
    for eqn in reversed(calls):
        factors = [v for v in variables_in(eqn.invars) if counts_enough(v)]
        if factors and not eqn.params["aliases"]:
            x = min(factors, key=lambda v: v.aval.size)  # XLA counts least, and reports its count
            call = eqn.replace(primitive=threaded_call_p, invars=[*eqn.invars, x])
            eqns = [call if e is eqn else e for e in jaxpr.eqns]
            return with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns)
    return jaxpr


def has_extras(call: Eqn) -> bool:
    """Return True if a product is called with numbers to scale by, or with an array to add."""
    return any(x for name, x in read_attributes(call).items() if name.endswith("extras"))


def count_work(call: Eqn) -> int:
    """Return how many multiplications of float32 take as long as a call, about."""
    sizes = [a.aval.size for a in (*call.invars[:2], call.outvars[0])]
    if {*map(type, sizes)} != {int}:
        return 0
    out = call.outvars[0].aval
    if call.params["kernel"] not in PRODUCTS:
        return WORK_OF_BYTE * out.nbytes
    stack = math.prod(out.shape[:-2])
    return math.isqrt(math.prod(sizes) // max(stack, 1)) * out.dtype.itemsize // 4


def counts_enough(v: Var) -> bool:
    """Return True if XLA counts enough operations for a product of an array with itself."""
    if v.aval.dtype not in FLOATS or type(v.aval.size) is not int:
        return False
    return 2 * find_side(v.aval.size) * v.aval.size >= MIN_COUNTED


def find_side(size: int) -> int:
    """Return a number of rows, at most MAX_SIDE, that divides `size`; 0 if there is none."""
    return next((n for n in range(MAX_SIDE, 1, -1) if size % n == 0), 0)
