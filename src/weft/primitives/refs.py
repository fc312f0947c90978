"""Operations on references: `new_ref`, `get`, `swap`, `addupdate`, `freeze`, `free_ref`.

What is read or written is the parameter `index`, an object that knows how (`Whole` here, indices of
NumPy's in numpy/refs.py); its arrays are the last operands. Programs with these operations are
lowered after passes/discharge.py has made values of the references.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Axis, Effect, Primitive, Zero, join_varying
from weft.core.ref import ACCUM, MAKE, READ, WRITE, AbstractRef, Ref, is_ref, write_error
from weft.core.stage import StageTrace, holds_here
from weft.core.trace import current
from weft.errors import DtypeError, RefError, ShapeError
from weft.passes.discharge import ENDED
from weft.primitives.constant import stage_whole
from weft.primitives.elementwise import add
from weft.primitives.layout import batched_at_front, convert, instantiate, transpose, zeros
from weft.primitives.reshard import lay_as


class Whole:
    """The index `r[...]`: the entire array."""

    def shape_of(self, aval: ShapedArray) -> tuple[int, ...]:
        """Return the shape of the part that is read."""
        return aval.shape

    def read(self, x: Any, arrays: Sequence[Any]) -> Any:
        """The part of an array that is read."""
        return x

    def write(self, x: Any, value: Any, arrays: Sequence[Any], adds: bool) -> Any:
        """An array with a value written, or added, where this index says."""
        if adds:
            return add(x, value)
        inner = typeof(x)
        if typeof(value).weak_type is not inner.weak_type:  # the reference keeps its type
            value = convert(value, inner.dtype, inner.weak_type)
        return lay_as(value, inner.sharded)

    def text(self, aval: ShapedArray, names: Sequence[str]) -> str:
        """Return its text, for an array of a type, with the names of its own arrays."""
        return "..."

    def batch(self, prim: StateOperation, axis: Axis, args: Sequence, dims: Sequence) -> tuple:
        """The batch rule. `args` are the reference and, for a write, the value."""
        ref, *values = args
        if dims[0] is not None:
            values = [
                place_axis(batched_at_front(v, d, axis.size), dims[0])
                for v, d in zip(values, dims[1:], strict=True)
            ]
        outs = prim.apply(ref, *values, index=self)
        return outs, [dims[0]] * len(outs)


def place_axis(x: Any, dim: int) -> Any:
    """An array with its first axis moved to `dim`."""
    order = [*range(1, dim + 1), 0, *range(dim + 1, typeof(x).ndim)]
    return transpose(x, order) if dim else x


WHOLE = Whole()


class StateOperation(Primitive):
    """A family: operations that read or write the reference that is their first operand.

    They are linear in the reference and in the value written.
    """

    memoize_type = False
    effect: Effect
    values = 0  # the number of operands between the reference and the arrays of the index

    def apply(self, ref, *operands, **params):
        if not holds_here(ref):
            return super().apply(ref, *operands, **params)
        outs, new = self.run_on_value(ref.value, *operands, **params)
        if new is not None:
            ref.hold(new)
        return outs

    def impl(self, ref, *operands, **params):
        if holds_here(ref):
            return self.apply(ref, *operands, **params)
        raise RefError(
            f"{self.name}: a reference must not be used after the function that made it has "
            f"returned; got a leaked {ref.aval}. Hint: return r[...] from the function."
        )

    def check(self, ref: Any, values: Sequence[Any], index: Any) -> ShapedArray:
        """The type of the part that is read or written; raises where operands do not fit."""
        if type(ref) is not AbstractRef:
            raise DtypeError(
                f"{self.name}: needs a reference; got {ref}. Hint: r = weft.new_ref(x)."
            )
        inner = ref.inner_aval
        part = inner.update(shape=index.shape_of(inner), weak_type=inner.weak_type)
        for v in values:
            if v.shape != part.shape or v.dtype != part.dtype:
                raise ShapeError(
                    f"{self.name}: what is written must have the type of what it replaces; got "
                    f"{v} for {part} of a {ref}."
                )
            if join_varying((v, inner)) is not inner.varying:
                raise ShapeError(
                    f"{self.name}: what differs between devices must be written to a reference "
                    f"that does; got {v} for a {ref}. Hint: lax.pvary(x, axes) when it is made."
                )
        return part

    def abstract_eval(self, ref, *operands, index):
        n = self.values
        part = self.check(ref, operands[:n], index)
        if ref.inner_aval.sharded is not None:
            read = lambda x, *arrays: [index.read(x, arrays)]
            (found,) = stage_whole(read, [ref.inner_aval, *operands[n:]]).out_avals
            part = part.update(sharded=found.sharded)
        return self.results(part.update(varying=join_varying((part, *operands[n:]))))

    def results(self, part: ShapedArray) -> list[ShapedArray]:
        """Return the types of the results, given the type of the part."""
        raise NotImplementedError

    def run_on_value(self, x: Any, *operands: Any, index: Any) -> tuple[list, Any]:
        """Return the results, and the array afterwards, if the reference holds `x`."""
        raise NotImplementedError

    def jvp(self, primals, tangents, *, index):
        n = 1 + self.values
        if type(tangents[0]) is Zero and any(type(t) is not Zero for t in tangents[1:n]):
            raise write_error(typeof(primals[0]), current.trace)
        outs = self.apply(*primals, index=index)
        if type(tangents[0]) is Zero:
            return outs, [Zero(typeof(y).to_tangent()) for y in outs]
        dots = [tangents[0], *map(instantiate, tangents[1:n]), *primals[n:]]
        return outs, self.apply(*dots, index=index)

    def batch(self, axis, args, dims, *, index):
        if dims[0] is None and self.effect.writes:  # type: ignore[attr-defined]
            raise write_error(typeof(args[0]), axis)
        return index.batch(self, axis, args, dims)


class GetRef(StateOperation):
    """r[index]. Shapes: as NumPy indexes."""

    name = "get"
    effect = READ

    def results(self, part):
        return [part]

    def run_on_value(self, x, *arrays, index):
        return [index.read(x, arrays)], None


class SwapRef(StateOperation):
    """r[index], which becomes `value` afterwards. Shapes: value as r[index]."""

    name = "swap"
    effect = WRITE
    values = 1

    def results(self, part):
        return [part]

    def run_on_value(self, x, value, *arrays, index):
        return [index.read(x, arrays)], index.write(x, value, arrays, False)


class AddUpdateRef(StateOperation):
    """r[index] += value; an element that the index repeats is added repeatedly. No results."""

    name = "addupdate"
    effect = ACCUM
    values = 1
    multiple_results = True

    def results(self, part):
        return []

    def run_on_value(self, x, value, *arrays, index):
        return [], index.write(x, value, arrays, True)


get_p, swap_p, addupdate_p = GetRef(), SwapRef(), AddUpdateRef()


class MakeRef(Primitive):
    """A family: what makes a reference, or ends one."""

    memoize_type = False
    effect = MAKE

    def run_on_value(self, *args: Any, **params: Any) -> tuple[list, Any]:
        """The results, and the array afterwards, as of `StateOperation`."""
        raise NotImplementedError

    def batch(self, axis, args, dims, **params):
        outs = self.apply(*args, **params)
        return outs, list(dims[:1]) * len(outs)

    def jvp(self, primals, tangents, **params):
        dots = self.apply(*map(instantiate, tangents), **params)
        return self.apply(*primals, **params), dots


class NewRef(MakeRef):
    """A reference that holds x."""

    name = "new_ref"

    def abstract_eval(self, x, *, kind, memory_space):
        return [AbstractRef(x, kind=kind)]

    def impl(self, x, *, kind, memory_space):
        return [Ref(x, kind)]

    def apply(self, x, **params):
        staging = type(current.trace) is StageTrace
        return super().apply(x, **params) if staging else self.impl(x, **params)

    def run_on_value(self, x: Any, **params: Any) -> tuple[list, Any]:
        return [x], None


class EmptyRef(MakeRef):
    """A reference to an array of type `ty` that is yet to be written: here zeros."""

    name = "empty_ref"

    def abstract_eval(self, *, memory_space, ty):
        return [AbstractRef(ty)]

    def impl(self, *, memory_space, ty):
        return [Ref(zeros(ty))]

    def apply(self, **params):
        staging = type(current.trace) is StageTrace
        return super().apply(**params) if staging else self.impl(**params)

    def run_on_value(self, *, memory_space: Any, ty: ShapedArray) -> tuple[list, Any]:
        return [zeros(ty)], None


class FreezeRef(MakeRef):
    """Return the array that r holds at the end."""

    name = "freeze"

    def abstract_eval(self, ref):
        return [ref.inner_aval]

    def impl(self, ref):
        return [ref.free()]

    def run_on_value(self, x: Any) -> tuple[list, Any]:
        return [x], ENDED


class FreeRef(MakeRef):
    """The end of r. No results."""

    name = "free_ref"
    multiple_results = True

    def abstract_eval(self, ref):
        return []

    def impl(self, ref):
        ref.free()
        return []

    def run_on_value(self, x: Any) -> tuple[list, Any]:
        return [], ENDED


new_ref_p, empty_ref_p, freeze_p, free_ref_p = NewRef(), EmptyRef(), FreezeRef(), FreeRef()


def load_ref(ref: Any) -> Any:
    """All that a reference holds, under the current trace."""
    return get_p.apply(ref, index=WHOLE)[0]


def store_ref(ref: Any, value: Any) -> None:
    """Have a reference hold a value, under the current trace."""
    swap_p.apply(ref, value, index=WHOLE)


def add_to_ref(ref: Any, x: Any) -> Any:
    """Add a value to what a reference holds; the value where `ref` is not a reference."""
    if not is_ref(ref):
        return x
    inner, aval = ref.aval.inner_aval, typeof(x)
    if inner.shape != aval.shape or inner.dtype != aval.dtype:
        raise ShapeError(
            f"with_refs: a reference must have the type of the cotangent; got {ref.aval} for "
            f"{aval}. Hint: weft.new_ref(jnp.zeros_like(x))."
        )
    addupdate_p.apply(ref, x, index=WHOLE)
    return None
