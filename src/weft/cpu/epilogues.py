"""The pass that scales and adds arrays in the calls of kernels of products, as BLAS does.

XLA fuses nothing with the call of a kernel, so `alpha * A` before a product, and `... + beta * C`
after it, are loops of their own. The kernels (native/extras.h) scale an operand as they read it,
and scale and add while elements of the result are in the nearest cache. Results are rounded as the
program says: a scale never moves from an operand to the result, which could overflow elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.core.aval import ShapedArray
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, memo_jaxpr, origin_of, variables_in
from weft.cpu.calls import CpuCall, kernel_equation, read_attributes
from weft.cpu.cheap_programs import inverse_of
from weft.cpu.elements import is_fused
from weft.cpu.kernels import are_floats
from weft.cpu.opcodes import is_instruction
from weft.cpu.products import KERNELS
from weft.cpu.rewriting import replace_bodies
from weft.cpu.scope import Target
from weft.passes.dce import with_equations
from weft.primitives import elementwise as ops
from weft.primitives.layout import BroadcastInDim, Reshape, reshape_p


class Extras(NamedTuple):
    """Operands of a kernel besides those that it multiplies.

    Attributes:
      names: what each of them is, as native/extras.h lists them.
      atoms: the operands.
      shapes: the shapes that they are passed in.
      taken: the numbers of the equations that the call computes.
    """

    names: list[str]
    atoms: list[Atom]
    shapes: list[tuple[int, ...]]
    taken: list[int]

    def append(self, name: str, atom: Atom, shape: tuple[int, ...] = ()) -> None:
        self.names.append(name)
        self.atoms.append(atom)
        self.shapes.append(shape)


def fuse_epilogues(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Return a program whose kernels of products also scale and add, if that saves a loop of XLA's.

    A profile shows operations one by one, so nothing is fused if operations are named.
    """
    return fuse_into_calls(jaxpr) if target.kernels and not target.located else jaxpr


@memo_jaxpr
def fuse_into_calls(jaxpr: Jaxpr) -> Jaxpr:
    """Fuse the calls of a program, and of its bodies."""
    eqns = [
        e if e.primitive.memoize_type else replace_bodies(e, lambda b: fuse_into_calls(b.jaxpr))
        for e in jaxpr.eqns
    ]
    numbers = [i for i, eqn in enumerate(eqns) if is_call(eqn)]
    if numbers:
        eqns = Products(jaxpr, eqns, numbers).fuse()
    return with_equations(jaxpr, jaxpr.invars, jaxpr.outvars, eqns)


def is_call(eqn: Eqn) -> bool:
    """Return True if an equation is the call of a kernel that multiplies."""
    return isinstance(eqn.primitive, CpuCall) and eqn.params["kernel"] in KERNELS


def find_absorbed(jaxpr: Jaxpr) -> set[int]:
    """Return the numbers of the equations that become part of calls, if kernels multiply."""
    numbers = [
        i
        for i, eqn in enumerate(jaxpr.eqns)
        if eqn.primitive.form is Form.PRODUCT and are_floats(*(a.aval for a in eqn.invars))
    ]
    products = Products(jaxpr, jaxpr.eqns, numbers)
    products.find()
    return products.taken


class Products:
    """The equations of a program, some of which are products.

    Attributes:
      eqns: the equations.
      numbers: the numbers of the products.
      makers: the number of the equation that computes a variable.
      readers: the numbers of the equations that read a variable, one for each operand; -1 for the
        caller.
      taken: the numbers of equations that are now part of a call.
      calls: by the number of an equation, the equations in its place.
    """

    def __init__(self, jaxpr: Jaxpr, eqns: Sequence[Eqn], numbers: Sequence[int]):
        self.eqns, self.numbers = eqns, numbers
        self.makers: dict[Any, int] = {v: i for i, e in enumerate(eqns) for v in e.outvars}
        self.readers: dict[Any, list[int]] = {}
        for i, eqn in enumerate(eqns):
            for v in variables_in(eqn.invars):
                self.readers.setdefault(v, []).append(i)
        for v in variables_in(jaxpr.outvars):
            self.readers.setdefault(v, []).append(-1)
        self.taken: set[int] = set()
        self.calls: dict[int, list[Eqn]] = {}

    def fuse(self) -> list[Eqn]:
        """Return the equations, with the calls where the last equations that they compute stood."""
        found = self.find()
        if not found:
            return [*self.eqns]
        for i, fused in found.items():
            self.write(i, *fused)
        return [
            made
            for i, eqn in enumerate(self.eqns)
            for made in self.calls.get(i, () if i in self.taken else (eqn,))
        ]

    def find(self) -> dict[int, tuple[list[Atom], Extras, Var, Extras]]:
        """Return for each product its operands, what these are scaled by, its result and epilogue.

        Products with which nothing else is computed are left out.
        """
        found = {}
        scaled = [self.find_scaled_operands(self.eqns[i]) for i in self.numbers]
        for i, (operands, scales) in zip(self.numbers, scaled, strict=True):
            out, end = self.find_epilogue(self.eqns[i].outvars[0])
            self.taken.update(end.taken)
            if scales.names or end.names:
                found[i] = operands, scales, out, end
        return found

    def write(self, i: int, operands: list[Atom], scales: Extras, out: Var, end: Extras) -> None:
        """Write the call that computes a product, its scales and its epilogue."""
        names, atoms = scales.names + end.names, scales.atoms + end.atoms
        eqn = self.eqns[i]
        shapes = [a.aval.shape for a in eqn.invars] + scales.shapes + end.shapes
        made: list[Eqn] = []
        invars = [
            a if a.aval.shape == shape else self.reshape(a, shape, None, made)
            for a, shape in zip(operands + atoms, shapes, strict=True)
        ]
        (product,) = eqn.outvars
        same = out.aval.shape == product.aval.shape
        given = {**read_attributes(eqn), "extras": " ".join(names)}
        made.append(
            kernel_equation(eqn.params["kernel"], invars, [out if same else product], given)
        )
        if not same:
            self.reshape(product, out.aval.shape, out, made)
        for call in made:
            call.source, call.origin = eqn.source, origin_of(eqn)
        self.taken.add(i)
        self.calls[max((i, *end.taken))] = made

    def reshape(self, atom: Atom, shape: tuple, out: Var | None, made: list[Eqn]) -> Var:
        """Append the equation that gives an array another shape, and return its result."""
        out = out or Var(ShapedArray(shape, atom.aval.dtype))
        params = dict(new_sizes=shape, dimensions=None, sharding=None)
        made.append(Eqn(reshape_p, [atom], params, [out]))
        return out

    def find_scaled_operands(self, eqn: Eqn) -> tuple[list[Atom], Extras]:
        """Return the operands of a product before they are multiplied by numbers, and these."""
        found = Extras([], [], [], [])
        operands = [*eqn.invars]
        for side, name in enumerate(("left", "right")):
            atom, passed = operands[side], []
            while (m := self.sole_maker(atom)) is not None:
                maker = self.eqns[m]
                passed.append(m)
                if isinstance(maker.primitive, Reshape):
                    atom = maker.invars[0]
                    continue
                scaled = self.split_product(maker)
                if scaled and self.is_stored(scaled[0]):
                    operands[side] = scaled[0]
                    found.append(name, scaled[1])
                    found.taken.extend(passed)
                    self.taken.update(passed)
                break
        return operands, found

    def find_epilogue(self, out: Var) -> tuple[Var, Extras]:
        """Return the variable that a call computes in place of a product, and the operands for it.

        There are none if a loop of XLA's reads the variable: the loop computes as much, with less
        memory traffic.
        """
        found, v = Extras([], [], [], []), out
        while (i := self.sole_reader(v)) is not None:
            eqn = self.eqns[i]
            if not isinstance(eqn.primitive, Reshape) and not self.extend(found, eqn, v, out):
                break
            found.taken.append(i)
            v = eqn.outvars[0]
        loops = [r for r in self.readers.get(v, ()) if r >= 0 and r not in self.taken]
        if not found.names or any(is_fused(self.eqns[r]) for r in loops):
            return out, Extras([], [], [], [])
        return v, found

    def extend(self, found: Extras, eqn: Eqn, v: Var, product: Var) -> bool:
        """Add to an epilogue what an equation computes from its result so far, `v`, if it can."""
        if not found.names and (scaled := self.split_product(eqn)) and scaled[0] is v:
            found.append("scale", scaled[1])
            return True
        subtracts = is_instruction(eqn.primitive, ops.sub_p)
        adds = subtracts or is_instruction(eqn.primitive, ops.add_p)
        if not adds or found.names not in ([], ["scale"]):
            return False
        x, y = eqn.invars
        other, name = (y, "add") if x is v else (x, "add")
        if subtracts:
            name = "subtract" if x is v else "subtract_from"
        weight, m = None, self.sole_maker(other)
        scaled = self.split_product(self.eqns[m]) if m is not None else None
        if scaled and self.is_stored(scaled[0]):
            other, weight = scaled
        source, sizes = self.find_repeated(other, v.aval.shape)
        shape = group_sizes(sizes, v.aval.shape, product.aval.shape)
        loop = source is other and not self.is_stored(other) and self.sole_maker(other) is not None
        if shape is None or loop:
            return False
        found.append(name, source, shape)
        if weight is not None:
            assert m is not None
            found.append("weight", weight)
            found.taken.append(m)
        return True

    def sole_reader(self, v: Var) -> int | None:
        """Return the number of the only equation that reads a variable, by one operand."""
        readers = self.readers.get(v, ())
        return readers[0] if len(readers) == 1 and readers[0] not in (-1, *self.taken) else None

    def sole_maker(self, atom: Atom) -> int | None:
        """Return the number of the equation that computes an operand which is read once."""
        if type(atom) is Literal or len(self.readers[atom]) > 1:
            return None
        m = self.makers.get(atom)
        return None if m in self.taken else m

    def maker(self, atom: Atom) -> Eqn | None:
        """Return the equation that computes an operand; None if that is now part of a call."""
        m = None if type(atom) is Literal else self.makers.get(atom)
        return None if m is None or m in self.taken else self.eqns[m]

    def is_stored(self, atom: Atom) -> bool:
        """Return True if an array is in memory, not computed by a loop that XLA writes."""
        while (maker := self.maker(atom)) is not None:
            if not isinstance(maker.primitive, Reshape):
                return not is_fused(maker)
            atom = maker.invars[0]
        return True

    def split_product(self, eqn: Eqn) -> tuple[Any, Atom] | None:
        """Return the array and the number that an equation multiplies; None for other equations."""
        if eqn.primitive.form is Form.QUOTIENT:  # XLA multiplies by the inverse of a literal, too
            inverse = inverse_of(self.find_number(eqn.invars[1]) or eqn.invars[1])
            return (eqn.invars[0], inverse) if inverse else None
        if not is_instruction(eqn.primitive, ops.mul_p):
            return None
        x, y = eqn.invars
        if (number := self.find_number(x)) is not None:
            return y, number
        number = self.find_number(y)
        return None if number is None else (x, number)

    def find_number(self, atom: Atom) -> Atom | None:
        """Return the number that an operand repeats; None if its elements may differ."""
        if not atom.aval.shape:
            return atom
        source, _ = self.find_repeated(atom, atom.aval.shape)
        return source if source.aval.size == 1 and source is not atom else None

    def find_repeated(self, atom: Atom, shape: tuple) -> tuple[Atom, tuple[int, ...]]:
        """Return the array that an operand repeats, and its shape with an axis for each of `shape`.

        An operand that repeats nothing is returned itself.
        """
        if not atom.aval.shape:
            return atom, (1,) * len(shape)
        maker = self.maker(atom)
        if maker is None or not isinstance(maker.primitive, BroadcastInDim):
            return atom, shape
        (source,) = maker.invars
        sizes = [1] * len(shape)
        axes = maker.params["broadcast_dimensions"]
        for axis, size in zip(axes, source.aval.shape, strict=True):
            sizes[axis] = size
        return source, tuple(sizes)


def group_sizes(
    sizes: tuple[int, ...], shape: tuple[int, ...], product: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Return the sizes of an array that is repeated to `shape`, in the shape of a product.

    The elements of `shape` and of the product are the same. Sizes are 1 along axes that the array
    is repeated along. Returns None if it is repeated along a part of an axis of the product.
    """
    if sizes == shape:
        return product
    rest, grouped = [pair for pair in zip(sizes, shape, strict=True) if pair[1] != 1], []
    for size in product:
        count = kept = 1
        while count < size and rest:
            one, whole = rest.pop(0)
            count, kept = count * whole, kept * one
        if count != size or kept not in (1, size):
            return None
        grouped.append(kept)
    return tuple(grouped)
