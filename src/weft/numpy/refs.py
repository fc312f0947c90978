"""Reading and writing references by index: `r[i]`, `r[i] = v`, and the functions of `weft.ref`.

The operations of a staged program are primitives/refs.py's. Where nothing is staged, the array
that a reference holds is read as any array is (indexing.py), and replaced by a changed copy
(updates.py), which takes over its memory where nobody else holds it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from weft import dtypes
from weft.core.aval import HasAval, ShapedArray, typeof
from weft.core.primitive import Axis
from weft.core.ref import AbstractRef, Ref, check_write, is_ref
from weft.core.source import boundary
from weft.core.stage import StageTrace, holds_here
from weft.core.trace import Tracer, current
from weft.errors import DtypeError, RefError
from weft.numpy import indexing, updates
from weft.numpy.creation import asarray
from weft.numpy.index_plans import Key, Sliding, expand_key, plan_index, split_index, static_key
from weft.numpy.promotion import NUMBERS
from weft.primitives import refs
from weft.primitives.elementwise import stop_gradient_p
from weft.primitives.layout import broadcast_in_dim, convert, literal, zeros
from weft.pytrees import register_pytree_node
from weft.transforms.batch import batch, bring_to_front
from weft.xla.array import ARRAYS


class Part(refs.Whole):
    """An index of some of the elements of an array."""

    __slots__ = ()

    def batch(self, prim: refs.StateOperation, axis: Axis, args: Sequence, dims: Sequence) -> tuple:
        ref, *operands = args
        whole = refs.load_ref(ref)
        apply = lambda *xs: flatten_pair(prim.run_on_value(*xs, index=self))
        outs, out_dims = batch(apply, [whole, *operands], dims, axis)
        if prim.effect.writes:  # type: ignore[attr-defined]
            new = bring_to_front(outs.pop(), out_dims.pop(), axis.size)
            refs.store_ref(ref, refs.place_axis(new, dims[0]))
        return outs, out_dims


class Places(Part):
    """An index of NumPy's: its key (index_plans.py). Its arrays are operands."""

    __slots__ = ("key",)

    def __init__(self, key: Key):
        self.key = key

    def __eq__(self, other: Any) -> bool:
        return type(other) is Places and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple:
        return Places, (self.key,)

    def shape_of(self, aval: ShapedArray) -> tuple[int, ...]:
        return plan_index(aval, self.key).shape

    def read(self, x: Any, arrays: Sequence[Any]) -> Any:
        return indexing.read(x, plan_index(typeof(x), self.key), arrays)

    def write(self, x: Any, value: Any, arrays: Sequence[Any], adds: bool) -> Any:
        op = "add" if adds else "set"
        plan = plan_index(typeof(x), self.key)
        return updates.write(x, op, plan, arrays, value, indexing.PLAIN)

    def text(self, aval: ShapedArray, names: Sequence[str]) -> str:
        given = iter(names)
        return ",".join([entry_text(e, given) for e in expand_key(aval, self.key)])


class Nested(Part):
    """An index of part of a part: `r[1:3][0]`. Each step takes this many of the arrays."""

    __slots__ = ("counts", "steps")

    def __init__(self, steps: tuple[refs.Whole, ...], counts: tuple[int, ...]):
        self.steps = steps
        self.counts = counts

    def __eq__(self, other: Any) -> bool:
        return type(other) is Nested and self.steps == other.steps

    def __hash__(self) -> int:
        return hash(self.steps)

    def __reduce__(self) -> tuple:
        return Nested, (self.steps, self.counts)

    def shape_of(self, aval: ShapedArray) -> tuple[int, ...]:
        for step in self.steps:
            aval = ShapedArray(step.shape_of(aval), aval.dtype)
        return aval.shape

    def split_arrays(self, arrays: Sequence[Any]) -> list[Sequence[Any]]:
        """Return the arrays of each step."""
        ends = list(itertools.accumulate(self.counts))
        return [arrays[end - n : end] for end, n in zip(ends, self.counts, strict=True)]

    def read(self, x: Any, arrays: Sequence[Any]) -> Any:
        for step, own in zip(self.steps, self.split_arrays(arrays), strict=True):
            x = step.read(x, own)
        return x

    def write(self, x: Any, value: Any, arrays: Sequence[Any], adds: bool) -> Any:
        given = self.split_arrays(arrays)
        parts = [x]
        for step, own in zip(self.steps[:-1], given[:-1], strict=True):
            parts.append(step.read(parts[-1], own))
        if adds:  # to zeros, so that an element that is named twice is added to twice
            parts[1:] = [zeros(typeof(part)) for part in parts[1:]]
        for part, step, own in reversed([*zip(parts, self.steps, given, strict=True)]):
            value = step.write(part, value, own, adds)
        return value

    def text(self, aval: ShapedArray, names: Sequence[str]) -> str:
        texts = []
        for step, own in zip(self.steps, self.split_arrays(names), strict=True):
            texts.append(step.text(aval, own))
            aval = ShapedArray(step.shape_of(aval), aval.dtype)
        return "][".join(texts)


def flatten_pair(pair: tuple[list, Any]) -> list:
    """Results, and then what a reference holds afterwards, if that is new."""
    outs, new = pair
    return outs if new is None else [*outs, new]


def entry_text(entry: Any, names: Iterator[str]) -> str:
    """Return the text of an entry of a key, as in brackets."""
    if entry is None or type(entry) is int:
        return str(entry)
    if entry is Ellipsis:
        return "..."
    if type(entry) is tuple:
        start, stop, step = ("" if b is None else str(b) for b in entry)
        return f"{start}:{stop}" + (f":{step}" if step else "")
    if type(entry) is Sliding:
        name = next(names)
        span = (entry.count - 1) * entry.step + 1
        return f"{name}:{name}+{span}" + (f":{entry.step}" if entry.step > 1 else "")
    return next(names)


# --- parts of references ----------------------------------------------------------------------


class RefView(HasAval):
    """Part of a reference, to be read and written as a reference is: what `r.at[index]` gives.

    What is written to it is written to the reference. It may be passed to functions that are
    transformed, where it counts as the reference: `jit(f)(r.at[1])`.

    >>> r = weft.new_ref(jnp.zeros((2, 2)))
    >>> row = r.at[1]
    >>> row[0] += 3.0
    >>> print(row[...], r[...].tolist())
    [3. 0.] [[0.0, 0.0], [3.0, 0.0]]
    """

    __slots__ = ("arrays", "aval", "index", "ref")

    ref: Any
    index: refs.Whole
    arrays: Sequence[Any]

    def __init__(self, ref: Any, index: refs.Whole, arrays: Sequence[Any]):
        self.ref = ref
        self.index = index
        self.arrays = arrays
        inner = ref.aval.inner_aval
        part = ShapedArray(index.shape_of(inner), inner.dtype, inner.weak_type)
        self.aval = AbstractRef(part, kind=ref.aval.kind)

    @property
    def at(self) -> Any:
        """Parts of the part: `v.at[index]`."""
        return updates.At(self)

    def __getitem__(self, index: Any) -> Any:
        return get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        set(self, index, value)

    def __repr__(self) -> str:
        names = [f"<{typeof(x)}>" for x in self.arrays]
        return f"{self.ref!r}.at[{self.index.text(self.ref.aval.inner_aval, names)}]"


def view_part(ref: Any, index: Any) -> Any:
    """Return the part of a reference, or of a part of one, at an index: `ref.at[index]`."""
    found, arrays = split_places(ref.aval.inner_aval, index)
    return RefView(*join_index(ref, found, arrays))


def join_index(
    ref: Any, index: refs.Whole, arrays: Sequence[Any]
) -> tuple[Any, refs.Whole, Sequence[Any]]:
    """Return the reference itself, with the index in it, where `ref` may be part of one."""
    if type(ref) is not RefView:
        return ref, index, arrays
    arrays = [*ref.arrays, *arrays]
    if index is refs.WHOLE:
        return ref.ref, ref.index, arrays
    if ref.index is refs.WHOLE:
        return ref.ref, index, arrays
    outer = ref.index
    steps, counts = (outer.steps, outer.counts) if type(outer) is Nested else ((outer,), ())
    counts = counts or (len(ref.arrays),)
    return ref.ref, Nested((*steps, index), (*counts, len(arrays) - sum(counts))), arrays


def flatten_view(view: RefView) -> tuple:
    """Return the reference with the arrays of the index, and the static data of a part."""
    return (view.ref, *view.arrays), (view.index, view.ref.aval.shape)


def unflatten_view(static: tuple, children: Sequence[Any]) -> Any:
    """Return a part of a reference, which is not mapped."""
    index, shape = static
    ref, *arrays = children
    if not is_ref(ref):
        return (ref, *arrays)  # types or names, in the structure of a call
    if ref.aval.shape != shape:
        raise RefError(
            "vmap: part of a reference must not be mapped or split; got one of a reference of "
            f"shape {shape}, of which {ref.aval} is given. Hint: pass the reference, or close over "
            "the part."
        )
    return RefView(ref, index, arrays)


register_pytree_node(RefView, flatten_view, unflatten_view)


# --- one operation ----------------------------------------------------------------------------

DONATING = indexing.PLAIN._replace(donates=True)


def require_ref(op: str, ref: Any) -> AbstractRef:
    """The type of a reference; raises where `ref` is none."""
    if is_ref(ref):
        return ref.aval
    raise DtypeError(f"{op}: needs a reference; got {typeof(ref, op)}. Hint: r = weft.new_ref(x).")


def split_places(inner: ShapedArray, index: Any) -> tuple[refs.Whole, Sequence[Any]]:
    """Return an index as a parameter, and its arrays; raise if it is known to be out of bounds."""
    if index is Ellipsis or (type(index) is tuple and not index):
        return refs.WHOLE, ()
    key = static_key(index)
    arrays: Sequence[Any] = ()
    if key is None:
        key, arrays = split_index(inner, index)
    indexing.check_plan(inner, key, arrays, indexing.PLAIN)
    return Places(key), arrays


def cast_value(op: str, aval: AbstractRef, value: Any) -> Any:
    """Return the value to write, in the dtype of the reference."""
    value = value if type(value) in NUMBERS or isinstance(value, Tracer) else asarray(value)
    v, inner = typeof(value), aval.inner_aval
    if is_ref(value):
        raise DtypeError(f"{op}: needs an array; got {v}. Hint: r[...] reads a reference.")
    if v.dtype == inner.dtype:
        return value
    kinds = ((inner.dtype, inner.weak_type), (v.dtype, v.weak_type))
    if not v.weak_type or dtypes.promote(kinds, op)[0] != inner.dtype:
        raise DtypeError(
            f"{op}: what is written must be of the dtype of the reference; got {v} for a {aval}. "
            f"Hint: value.astype(jnp.{inner.dtype.name})."
        )
    return literal(value, inner.dtype) if type(value) in NUMBERS else convert(value, inner.dtype)


def stop_in_ref(value: Any, kind: str | None) -> Any:
    """Return a value to be held by a reference: not differentiated where its kind says so."""
    if kind is None or not isinstance(value, Tracer):
        return value
    return stop_gradient_p.apply(value)[0] if dtypes.is_inexact(value.dtype) else value


def shape_value(op: str, value: Any, shape: tuple[int, ...]) -> Any:
    """Return the value to write, broadcast to the shape of the elements it replaces."""
    if typeof(value).shape == shape:
        return value
    value = updates.broadcast_values(op, value, shape)
    return value if typeof(value).shape == shape else broadcast_in_dim(value, shape, ())


@boundary
def get(ref: Any, idx: Any = None) -> Any:
    """Read elements of a reference: `ref[idx]`.

    Args:
      ref: a `Ref`.
      idx: an index as in `ref[idx]`. None, the default, reads the whole array.

    Returns:
      An array.

    >>> r = weft.new_ref(jnp.arange(4))
    >>> get(r, slice(1, 3))
    Array([1, 2], dtype=int32)
    """
    aval = require_ref("get", ref)
    idx = Ellipsis if idx is None else idx
    if holds_here(ref):
        value = ref.value
        found = value if idx is Ellipsis else indexing.getitem(value, idx)
        ref.owned = ref.owned and found is not value
        return found
    ref, index, arrays = join_index(ref, *split_places(aval.inner_aval, idx))
    return refs.get_p.apply(ref, *arrays, index=index)[0]


def write_ref(op: str, ref: Any, idx: Any, value: Any) -> list:
    """Write to a reference by an operation, "set", "add" or "swap"; return its result."""
    aval = require_ref(op, ref)
    idx = Ellipsis if idx is None else idx
    value = stop_in_ref(cast_value(op, aval, value), aval.kind)
    if holds_here(ref):
        check_write(ref)
        old = [get(ref, idx)] if op == "swap" else []
        how = DONATING if ref.owned else indexing.PLAIN
        kind = "add" if op == "add" else "set"
        new = updates.update_places(ref.value, idx, kind, value, how, None)
        ref.hold(new, type(new) in ARRAYS)
        return old
    index, arrays = split_places(aval.inner_aval, idx)
    value = shape_value(op, value, index.shape_of(aval.inner_aval))
    ref, index, arrays = join_index(ref, index, arrays)
    prim = refs.addupdate_p if op == "add" else refs.swap_p
    return prim.apply(ref, value, *arrays, index=index)


@boundary
def set(ref: Any, idx: Any, value: Any) -> None:
    """Write elements of a reference: `ref[idx] = value`.

    Args:
      ref: a `Ref`.
      idx: an index as in `ref[idx]`.
      value: an array of the dtype of the reference, or a number. It broadcasts with `ref[idx]`.

    Returns:
      None.

    >>> r = weft.new_ref(jnp.zeros(3))
    >>> set(r, 0, 5.0)
    >>> r
    Ref([5., 0., 0.], dtype=float32)
    """
    write_ref("set", ref, idx, value)


@boundary
def swap(ref: Any, idx: Any, value: Any) -> Any:
    """Write elements of a reference, and return their old values.

    Args:
      ref: a `Ref`.
      idx: an index as in `ref[idx]`.
      value: an array of the dtype of the reference, or a number. It broadcasts with `ref[idx]`.

    Returns:
      An array, the elements before the write.

    >>> r = weft.new_ref(jnp.zeros(3))
    >>> swap(r, 0, 5.0)
    Array(0., dtype=float32)
    """
    return write_ref("swap", ref, idx, value)[0]


@boundary
def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add to elements of a reference: `ref[idx] += x`.

    Args:
      ref: a `Ref`.
      idx: an index as in `ref[idx]`. An element that is named twice is added to twice.
      x: an array or a number that broadcasts with `ref[idx]`.

    Returns:
      None.

    >>> r = weft.new_ref(jnp.zeros(3))
    >>> addupdate(r, jnp.array([1, 1]), 1.0)
    >>> r
    Ref([0., 2., 0.], dtype=float32)
    """
    write_ref("add", ref, idx, x)


def add_to_index(self: Ref, x: Any, idx: Any = ...) -> None:
    """Add to what the reference holds at an index, by default to all: see `ref.addupdate`."""
    addupdate(self, idx, x)


def sharding_in(self: Ref) -> Any:
    """Return the sharding of the array that the reference holds."""
    return self.value.sharding


def format_in(self: Ref) -> Any:
    """Return the format of the array that the reference holds: its layout and its sharding."""
    return self.value.format


def is_committed(self: Ref) -> bool:
    """Return True if the array that the reference holds is bound to its devices."""
    return self.value.committed


def find_buffer(self: Ref) -> int:
    """Return the address of the array that the reference holds, until it is written."""
    return self.value.unsafe_buffer_pointer()


# --- from making to freeing -------------------------------------------------------------------


@boundary
def new_ref(
    init_val: Any, *, memory_space: Any = None, kind: str | None = None, pin: bool = False
) -> Any:
    """Return a reference to an array that a program may change in place.

    `r[i]` reads, and `r[i] = v` and `r[i] += v` write. References are for state that many functions
    update, such as counters and caches. They go through every transformation: as an argument, as a
    value that a function closes over, or made within it. A function must not return one.

    Args:
      init_val: an array or a number, the first value. The array itself stays unchanged.
      memory_space: accepted for compatibility; it has no effect.
      kind: None, the default, or "no_grad_no_remat". With the latter, written values are not
        differentiated, so that a differentiated function may write to a reference from outside.
      pin: accepted for compatibility; it has no effect. The default is False.

    Returns:
      A `Ref`.

    Raises:
      ValueError: `kind` is neither of the two.

    >>> r = new_ref(jnp.arange(3))
    >>> r[1] += 10
    >>> r
    Ref([ 0, 11,  2], dtype=int32)
    """
    if is_ref(init_val):
        raise DtypeError(f"new_ref: needs an array; got {init_val.aval}. Hint: new_ref(r[...]).")
    if kind not in (None, "no_grad_no_remat"):
        raise ValueError(f"new_ref: kind must be None or 'no_grad_no_remat'; got {kind!r}.")
    typeof(init_val, "new_ref")
    if type(current.trace) is not StageTrace and not isinstance(init_val, Tracer):
        init_val = asarray(init_val)
    init_val = stop_in_ref(init_val, kind)
    return refs.new_ref_p.apply(init_val, kind=kind, memory_space=memory_space)[0]


@boundary
def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Any:
    """Return a reference to an array that is yet to be written.

    Args:
      ty: an array, or a `ShapeDtypeStruct`, with the shape and the dtype.
      memory_space: accepted for compatibility; it has no effect.
      pin: accepted for compatibility; it has no effect. The default is False.

    Returns:
      A `Ref`. It holds zeros. In JAX its contents are undefined.

    >>> r = empty_ref(weft.ShapeDtypeStruct((2,), np.float32))
    >>> r[...] = 1.0
    >>> r
    Ref([1., 1.], dtype=float32)
    """
    if not hasattr(ty, "shape") or getattr(getattr(ty, "dtype", None), "kind", "O") in "OSU":
        raise TypeError(f"empty_ref: ty must have a shape and a dtype of numbers; got {ty!r}.")
    kinds = getattr(ty, "manual_axis_type", None)
    aval = ShapedArray(ty.shape, ty.dtype, manual_axis_type=kinds)
    return refs.empty_ref_p.apply(memory_space=memory_space, ty=aval)[0]


@boundary
def freeze(ref: Any) -> Any:
    """Return the array that a reference holds, and end the life of the reference.

    Args:
      ref: a `Ref` that was made in the same function. It must not be used afterwards. For a
        reference from outside of a traced function, read `ref[...]` instead.

    Returns:
      An array.

    Raises:
      DtypeError: the argument is not a reference.

    >>> r = new_ref(jnp.zeros(2))
    >>> r[0] = 1.0
    >>> freeze(r)
    Array([1., 0.], dtype=float32)
    """
    return end_ref("freeze", ref, refs.freeze_p)[0]


@boundary
def free_ref(ref: Any) -> None:
    """End the life of a reference whose value is not needed.

    Args:
      ref: a `Ref`. It must not be used afterwards.

    Returns:
      None.

    >>> r = new_ref(jnp.zeros(2))
    >>> free_ref(r)
    >>> r
    Ref(freed, f32[2])
    """
    end_ref("free_ref", ref, refs.free_ref_p)


def end_ref(op: str, ref: Any, prim: Any) -> list:
    """Bind what ends a reference, where it was made."""
    aval = require_ref(op, ref)
    if type(ref) is RefView:
        raise RefError(f"{op}: needs a whole reference; got part of one, {ref!r}. Hint: v[...].")
    if holds_here(ref) and ref.trace is current.trace:
        return [ref.free()]
    trace = current.trace
    if type(ref) is Ref or ref.owner is not trace or ref.variable in getattr(trace, "args", ()):
        raise RefError(
            f"{op}: a reference must be freed where it was made; got a {aval} from outside of a "
            "traced function. Hint: r[...] to read it."
        )
    return prim.apply(ref)
