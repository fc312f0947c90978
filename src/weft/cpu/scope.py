"""What the passes for CPUs know of a program: its target, and where operands come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from weft.core.facts import Cost
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var
from weft.passes.alone import MOVES
from weft.primitives.dynamic_slicing import dynamic_update_slice_p
from weft.primitives.layout import convert_element_type_p

# XLA gives a program of more than 1000 elements, as it counts, to a second thread. It counts some
# operations several times.
MAX_LIGHT_ELEMENTS = 500
MAX_LIGHT_EQNS = 64  # longer programs are not looked at

CHANGES = frozenset((dynamic_update_slice_p, convert_element_type_p))  # moves that change some


class Target(NamedTuple):
    """What a program may use.

    Attributes:
      native: kernels of our own are built, and wanted.
      devices: the program runs on more than one device.
      each_device: the program is written for each device, as the body of a shard_map is; else XLA
        splits it, which it cannot do with the call of a kernel.
      located: operations are named, so that a profile can be read by lines. Clusters of several
        equations are not fused then, since their times could not be told apart.
      donated: the buffers of some arguments may be reused for results.
      functions: how many equations of the whole program compute functions that have formulas.
    """

    native: bool
    devices: bool = False
    each_device: bool = False
    located: bool = False
    donated: bool = False
    functions: int = 0

    @property
    def kernels(self) -> bool:
        """Whether kernels of our own may be called."""
        return self.native and (self.each_device or not self.devices)


class Scope:
    """A program whose equations are being rewritten.

    Attributes:
      target: what the program may use.
      alone: the program consists of one equation, and is compiled by itself.
      program: the program before it is rewritten, if it is compiled by itself; else None.
      arguments: the variables that are arguments of a compiled function. The inputs of a loop's
        body are no arguments.
      rewriter: rewrites programs that a formula writes parts by.
    """

    __slots__ = ("alone", "arguments", "makers", "program", "rewriter", "target")

    def __init__(
        self, target: Target, arguments: Iterable[Var], program: Jaxpr | None, rewriter: Any = None
    ):
        self.target = target
        self.program = program
        self.rewriter = rewriter
        self.alone = program is not None and len(program.eqns) == 1
        self.arguments = frozenset(arguments)
        self.makers: dict[Var, Eqn] = {}

    @property
    def light(self) -> bool:
        """Whether XLA uses one thread for the program if kernels compute its products."""
        return self.program is not None and is_light(self.program, self.target)

    @property
    def moves(self) -> bool:
        """Whether the program is compiled by itself, and its few equations only move elements."""
        eqns = [] if self.program is None else self.program.eqns
        return 0 < len(eqns) <= MAX_LIGHT_EQNS and all(map(only_moves, eqns))

    def add(self, eqn: Eqn) -> None:
        """Note an equation of the new program."""
        for v in eqn.outvars:
            self.makers[v] = eqn

    def maker(self, atom: Atom) -> Eqn | None:
        """Return the equation that computes an operand; None for arguments and literals."""
        return None if type(atom) is Literal else self.makers.get(atom)  # type: ignore[arg-type]

    def is_argument(self, atom: Atom) -> bool:
        """Return True if an operand is an argument of the compiled function, not computed in it."""
        return type(atom) is not Literal and atom in self.arguments


def only_moves(eqn: Eqn) -> bool:
    """Return True if an equation only moves, repeats, joins or converts elements."""
    return eqn.primitive.cost in (Cost.FREE, Cost.JOIN) or eqn.primitive in CHANGES


def is_light(jaxpr: Jaxpr, target: Target) -> bool:
    """Return True if a program computes little beside products of matrices and moved elements.

    XLA then uses one thread for the program if kernels compute the products. Where operations are
    named, this is never so, because reports count the operations of XLA's products.
    """
    if target.devices or target.located or len(jaxpr.eqns) > MAX_LIGHT_EQNS:
        return False
    rest = [eqn for eqn in jaxpr.eqns if eqn.primitive.form is not Form.PRODUCT]
    if len(rest) == len(jaxpr.eqns):
        return False
    rest = [eqn for eqn in rest if eqn.primitive.name not in MOVES]
    sizes = [v.aval.size for eqn in rest for v in eqn.outvars]
    plain = all(eqn.primitive.memoize_type for eqn in rest)  # no programs are held
    return plain and {*map(type, sizes)} <= {int} and sum(sizes) < MAX_LIGHT_ELEMENTS
