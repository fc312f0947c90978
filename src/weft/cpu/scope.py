"""The facts of a program for the passes on CPUs: its target, and where operands come from."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var
from weft.cpu.elements import fills_with_number, only_moves
from weft.dtypes import bfloat16

# XLA gives a program of more than 1000 elements, as it counts, to a second thread. It counts some
# operations several times.
MAX_LIGHT_ELEMENTS = 500
MAX_LIGHT_EQNS = 64  # longer programs are not looked at
# Elements of results that one thread completes as quickly as several, such as a triangle of a
# matrix. LAPACK factorizes a matrix of this many elements in a millisecond or two.
MAX_SHORT = 1 << 16
ROW_ELEMENTS = 256  # of an array that the kernel of programs computes at once
# The forms that kernels compute in programs of little else, so that XLA wakes no thread.
CALLED = frozenset(
    (Form.MEMBERS, Form.PRODUCT, Form.SUM, Form.REDUCED_PRODUCT, Form.SUM_OF_NUMBERS)
)
REDUCING = frozenset((Form.SUM, Form.EXTREMUM))  # the forms that the kernel of programs reduces by
HALVES = frozenset(map(np.dtype, (np.float16, bfloat16)))


class Target(NamedTuple):
    """The facilities that a program may use.

    Attributes:
      native: kernels of our own are built, and wanted.
      devices: the program runs on more than one device.
      each_device: the program is written for each device, as the body of a shard_map is; else XLA
        splits it, which it cannot do with the call of a kernel.
      located: operations are named, so that a profile can be read by lines. Clusters of several
        equations are not fused then, since their times could not be told apart.
      donated: the buffers of some arguments may be reused for results.
      folds_nan: XLA may find out, from numbers in the program, that an element is NaN.
      functions: how many equations of the whole program compute functions that have formulas.
      reduces: the whole program has a product of matrices, or a sum.
      loops: the program is the body of a loop, or part of one.
    """

    native: bool
    devices: bool = False
    each_device: bool = False
    located: bool = False
    donated: bool = False
    folds_nan: bool = False
    functions: int = 0
    reduces: bool = False
    loops: bool = False

    @property
    def kernels(self) -> bool:
        """Return True if kernels of our own may be called."""
        return self.native and (self.each_device or not self.devices)


class Scope:
    """A program whose equations are being rewritten.

    Attributes:
      target: what the program may use.
      alone: the program consists of one equation, and is compiled by itself.
      program: the program before it is rewritten. A choice that reads it counts as one that depends
        on more than how its operands are computed.
      moves: the program is compiled by itself, and its few equations only move elements.
      light: the program is compiled by itself, and XLA uses one thread for it if kernels compute
        its products and sums.
      arguments: the variables that are arguments of a compiled function. The inputs of a loop's
        body are not arguments.
      eqns: the equations of the new program so far.
      rewriter: rewrites programs that a formula writes parts by.
      asked: the values that `maker` was called for, and the program if it was read: what a choice
        depends on.
      staged: the memo of replacements that programs of this target share; None until it is asked.
      described: by the id of an equation, the part of keys of this memo that tells of it.
    """

    __slots__ = (
        "_indexed",
        "_makers",
        "_old_makers",
        "_program",
        "alone",
        "arguments",
        "asked",
        "described",
        "eqns",
        "light",
        "moves",
        "rewriter",
        "staged",
        "target",
    )

    def __init__(
        self,
        target: Target,
        arguments: Iterable[Var],
        program: Jaxpr,
        by_itself: bool = False,
        moves: bool = False,
        rewriter: Any = None,
    ):
        self.target = target
        self._program = program
        self.moves = moves
        self.rewriter = rewriter
        self.alone = by_itself and len(program.eqns) == 1
        self.light = target.reduces and by_itself and is_light(program, target)
        self.arguments = frozenset(arguments)
        self.eqns: list[Eqn] = []
        self.asked: list[Atom | Jaxpr] = []
        self.staged: dict[Any, Any] | None = None
        self.described: dict[int, tuple] = {}
        self._makers: dict[Any, Eqn] = {}
        self._old_makers: dict[Any, Eqn] | None = None
        self._indexed = 0

    def maker(self, atom: Atom) -> Eqn | None:
        """Return the equation that computes an operand; None for arguments and literals."""
        self.asked.append(atom)
        return None if type(atom) is Literal else self.makers.get(atom)

    @property
    def makers(self) -> dict[Any, Eqn]:
        """The equation that computes each variable so far."""
        made, eqns = self._makers, self.eqns
        for i in range(self._indexed, len(eqns)):
            eqn = eqns[i]
            for v in eqn.outvars:
                made[v] = eqn
        self._indexed = len(eqns)
        return made

    @property
    def program(self) -> Jaxpr:
        self.asked.append(self._program)
        return self._program

    @property
    def old_makers(self) -> dict[Any, Eqn]:
        """The equation that computes each variable of the program before it is rewritten."""
        program = self.program
        if self._old_makers is None:
            self._old_makers = {v: eqn for eqn in program.eqns for v in eqn.outvars}
        return self._old_makers

    def find_repeated(self, atom: Atom) -> Atom:
        """Return the number that an operand repeats; the operand if it repeats none."""
        return find_repeated(atom, self.maker)

    def is_argument(self, atom: Atom) -> bool:
        """Return True if an operand is an argument of the compiled function, not computed in it."""
        return type(atom) is not Literal and atom in self.arguments


def find_repeated(atom: Atom, maker: Callable[[Any], Eqn | None]) -> Atom:
    """Return the number that a value repeats; the value if it repeats none.

    Args:
      atom: the value.
      maker: gives the equation that computes a value; None if there is none.
    """
    eqn = maker(atom)
    return eqn.invars[0] if eqn is not None and fills_with_number(eqn) else atom


def is_light(jaxpr: Jaxpr, target: Target) -> bool:
    """Return True if a program computes little beside products, sums and moved elements.

    What the kernels of products compute besides does not count.

    XLA then uses one thread for the program if kernels compute the products and sums. Where
    operations are named, this is never so, because reports count the operations of XLA's products.
    """
    if target.devices or target.located or len(jaxpr.eqns) > MAX_LIGHT_EQNS:
        return False
    counts, products, reduces = {}, False, False
    for i, eqn in enumerate(jaxpr.eqns):
        form = eqn.primitive.form
        products = products or form is Form.PRODUCT
        reduces = reduces or form in CALLED
        if form not in (Form.PRODUCT, Form.MEMBERS) and not only_moves(eqn):
            sizes = [v.aval.size for v in eqn.outvars]
            if not eqn.primitive.memoize_type or not {*map(type, sizes)} <= {int}:
                return False
            counts[i] = sum(sizes)
    if products and target.kernels and sum(counts.values()) >= MAX_LIGHT_ELEMENTS:
        for i in importlib.import_module("weft.cpu.epilogues").find_absorbed(jaxpr):
            counts.pop(i, None)
    return reduces and sum(counts.values()) < MAX_LIGHT_ELEMENTS
