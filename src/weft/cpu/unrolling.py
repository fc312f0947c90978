"""The choice whether LLVM unrolls the loops that XLA writes for a program.

To unroll loops, and to compute several vectors in one iteration of a loop, is a quarter to a half
of the time to compile a program. It pays where a loop does little for each element, where an
iteration waits for the one before it, as in a sum, and where a test of the index is left out.
"""

from __future__ import annotations

from weft import dtypes
from weft.core.facts import Cost, Elements, Runs
from weft.core.form import Form
from weft.core.jaxpr import Eqn, Jaxpr, Literal
from weft.core.primitive import Primitive
from weft.cpu.calls import CpuCall
from weft.cpu.elements import is_fused
from weft.cpu.formula import Formula
from weft.cpu.rewriting import running_bodies
from weft.primitives.elementwise import Elementwise
from weft.primitives.slicing import Pad

MIN_ELEMENTS = 16  # of an array that has vectors; LLVM writes no loops for smaller ones
MIN_OPERATIONS = 8  # of a program: shorter ones compile as fast with unrolled loops
# A loop of this many operations for each array that it stores runs as fast without unrolling. One
# of 2 to 5 operations, such as back-substitution, then takes 1.1 to 1.4 times as long.
MIN_LOOP_OPERATIONS = 10
# So does a program that stores up to this many arrays for each function, root or quotient.
MAX_STORED_BY_SLOW = 7
MIN_TERMS = 16  # of a sum along rows that XLA gives to a library, rather than to LLVM
MAX_FEW_ELEMENTS = 256  # of an array that is added up once, and of one added up in a loop
MAX_FEW_IN_LOOP = 8
# Operations that take as long as several sums and products.
SLOW = frozenset(f"stablehlo.{name}" for name in ("divide", "remainder", "rsqrt", "sqrt"))
# Reductions by other operations than sums, reductions in an order, and reductions of windows.
UNROLLED = frozenset(
    (
        Form.ARG_EXTREMUM,
        Form.LOGICAL,
        Form.REDUCED_PRODUCT,
        Form.RUNNING,
        Form.SCATTER,
        Form.SELECT_AND_SCATTER,
        Form.SUM_OF_NUMBERS,
        Form.WINDOWS,
        Form.WINDOW_EXTREMUM,
    )
)


def runs_rolled(jaxpr: Jaxpr) -> bool:
    """Return True if a program runs as fast with loops that are not unrolled, and compiles sooner.

    `jaxpr` is the program after the passes for CPUs.
    """
    work = Work()
    if not work.survey(jaxpr) or work.operations < max(MIN_OPERATIONS, work.few):
        return False
    enough = work.operations >= MIN_LOOP_OPERATIONS * work.stored
    return enough or work.slow * MAX_STORED_BY_SLOW >= work.stored


class Work:
    """The operations that XLA writes loops for, counted.

    Attributes:
      operations: the number of operations on elements of arrays.
      few: the number of operations on arrays of fewer than MIN_ELEMENTS elements.
      slow: the number of these that are functions such as exp, roots or quotients.
      stored: the number of arrays with their results that are stored.
    """

    def __init__(self) -> None:
        self.operations = self.few = self.slow = self.stored = 0

    def survey(self, jaxpr: Jaxpr, looping: bool = False) -> bool:
        """Count the work of a program, and return False if one of its loops needs unrolling."""
        multiplies = any(e.primitive.cost is Cost.CONTRACTION for e in jaxpr.eqns)
        read = {id(a) for a in jaxpr.outvars}
        for eqn in jaxpr.eqns:
            if not is_fused(eqn) and not isinstance(eqn.primitive, Formula):
                read.update(map(id, eqn.invars))
        for eqn in jaxpr.eqns:
            prim = eqn.primitive
            if not prim.memoize_type:
                for body in running_bodies(eqn):
                    if not self.survey(body.jaxpr, looping or body.runs is Runs.LOOP):
                        return False
                continue
            if any(type(v.aval.size) is not int for v in (*eqn.invars, *eqn.outvars)):
                return False
            if isinstance(prim, CpuCall):
                continue
            if needs_unrolling(eqn, looping and not multiplies, looping):
                return False
            computed = isinstance(prim, Elementwise | Formula)
            if not computed:
                continue
            if eqn.outvars[0].aval.size < MIN_ELEMENTS:
                self.few += eqn.outvars[0].aval.size > 1
                continue
            self.operations += 1
            self.slow += is_slow(eqn)
            self.stored += any(id(v) in read for v in eqn.outvars)
        return True


def is_slow(eqn: Eqn) -> bool:
    """Return True if an operation takes as long as several sums."""
    prim = eqn.primitive
    if isinstance(prim, Formula) or prim.cost in (Cost.TRANSCENDENTAL, Cost.ITERATIVE):
        return True
    divisor = eqn.invars[-1]
    return getattr(prim, "operation", "") in SLOW and type(divisor) is not Literal


def needs_unrolling(eqn: Eqn, in_one: bool, looping: bool) -> bool:
    """Return True if the loop of an operation takes longer where LLVM does not unroll it.

    Args:
      eqn: the equation.
      in_one: whether it is in a loop of the program without products of matrices, which XLA
        compiles as one function if no kernels are called in it.
      looping: whether it is in any loop of the program.
    """
    prim = eqn.primitive
    if isinstance(prim, Formula):  # of a function, or of another primitive
        prim = next((s for s in eqn.params["settings"] if isinstance(s, Primitive)), prim)
    if prim.form in UNROLLED or prim.elements is Elements.RANDOM:
        return True
    if any(v.aval.dtype.itemsize < 4 and v.aval.dtype.kind != "b" for v in eqn.outvars):
        return True  # short floats and integers, which were not measured
    if any(dtypes.is_complex(v.aval.dtype) for v in eqn.outvars):
        return True
    if isinstance(prim, Pad):
        return in_one
    if prim.form is not Form.EXTREMUM and prim.cost is not Cost.REDUCTION:
        return False
    operand, out = eqn.invars[0].aval, eqn.outvars[0].aval
    short = operand.size < MIN_TERMS * out.size
    if prim.form is Form.EXTREMUM:
        return looping or short
    few = MAX_FEW_IN_LOOP if looping else MAX_FEW_ELEMENTS
    if operand.size == out.size or operand.size <= few:
        return False
    axes = eqn.params.get("axes")
    by_rows = out.shape[-1:] == operand.shape[-1:] if axes is None else operand.ndim - 1 not in axes
    if by_rows:  # rows are added up, element by element
        return operand.shape[-1] < MIN_ELEMENTS
    return short or in_one
