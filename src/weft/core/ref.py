"""References: `Ref`, a name for an array that a program may change, and its type `AbstractRef`.

In a staged program a reference is a variable of that type; everywhere else it is a `Ref`, which
holds a value. The operations are primitives/refs.py's, indexing is numpy/refs.py's.
"""

from __future__ import annotations

from typing import Any, ClassVar

from weft.core.aval import AbstractValue, HasAval, ShapedArray, typeof
from weft.core.primitive import Effect
from weft.core.trace import Trace, Tracer, current, pin_type, walk_up
from weft.errors import DeletedError, RefError


class AbstractRef(AbstractValue):
    """The type of a reference. `typeof` of a reference returns it.

    Equal types are one object. It prints as `Ref{f32[3]}`.

    Args:
      inner_aval: the type of the array, a `ShapedArray`.
      memory_space: accepted for compatibility. None is the default.
      kind: None, or "no_grad_no_remat" for values that are not differentiated.

    >>> print(weft.ref.AbstractRef(weft.typeof(jnp.ones(3))))
    Ref{f32[3]}
    """

    __slots__ = (
        "__weakref__", "dtype", "inner_aval", "kind", "ndim", "physical", "shape", "sharded",
        "size", "varying", "weak_type",
    )  # fmt: skip
    inner_aval: ShapedArray
    kind: str | None
    physical: ShapedArray
    getitem: ClassVar[Any]  # numpy/methods.py gives what tracers of this type do
    setitem: ClassVar[Any]
    part: ClassVar[Any]  # `x.at[index]`

    def __new__(
        cls, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None
    ) -> AbstractRef:
        found = _INTERNED.get((inner_aval, kind))
        if found is None:
            found = object.__new__(cls)
            found.inner_aval = inner_aval
            found.kind = kind
            found.physical = inner_aval.physical  # not itself: programs with one are not physical
            for name in ("dtype", "ndim", "shape", "sharded", "size", "varying", "weak_type"):
                setattr(found, name, getattr(inner_aval, name))
            found = _INTERNED.setdefault((inner_aval, kind), found)
        return found

    def __reduce__(self) -> tuple:
        return AbstractRef, (self.inner_aval, None, self.kind)

    def update(self, **changes: Any) -> AbstractRef:
        """The type of references to arrays of the same type except for the given fields."""
        inner = changes.pop("inner_aval", self.inner_aval)
        kind = changes.pop("kind", self.kind)
        return AbstractRef(inner.update(**changes), kind=kind)

    def strong(self) -> AbstractRef:
        """The same type, not weak."""
        return AbstractRef(self.inner_aval.strong(), kind=self.kind)

    def to_tangent(self) -> AbstractRef:
        """The type of a reference to a tangent."""
        return AbstractRef(self.inner_aval.to_tangent(), kind=self.kind)

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """`Ref{float32[3,4]}`; with `short_dtypes=True`, `Ref{f32[3,4]}`."""
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    __repr__ = str_short

    def __str__(self) -> str:
        return self.str_short(True)


_INTERNED: dict[tuple[ShapedArray, str | None], AbstractRef] = {}


class StateEffect(Effect):
    """The effect of an operation on the reference that is its first operand."""

    def __init__(self, name: str, writes: bool):
        self.name = name  # type: ignore[misc]
        self.writes = writes


READ, WRITE = StateEffect("Read", False), StateEffect("Write", True)
ACCUM, MAKE = StateEffect("Accum", True), StateEffect("Make", False)


class RefKind(type):
    """A traced value of a reference is an instance of `Ref`, as one of an array is of `Array`."""

    def __instancecheck__(cls, x: Any) -> bool:
        return is_ref(x)


class Ref(HasAval, metaclass=RefKind):
    """A reference to an array, which a program may change in place. `new_ref` makes it.

    `r[i]` reads, and `r[i] = v` and `r[i] += v` write, with NumPy's indices. `r[...]` is the whole
    array. A reference may be passed to functions that are transformed, and they may close over it,
    but they must not return it. Its type is written `Ref{f32[3]}`.

    Args:
      value: the array that it holds first.
      kind: None, or "no_grad_no_remat" for values that are not differentiated.

    >>> r = weft.new_ref(jnp.zeros(3))
    >>> r[0] = 5.0
    >>> print(r[...])
    [5. 0. 0.]
    """

    __slots__ = ("__weakref__", "_value", "aval", "owned", "trace")

    aval: Any
    trace: Trace  # where it was made, under which its value has a meaning
    owned: bool  # whether nobody else holds the array
    made: ClassVar[bool] = False  # whether this process has made one, so that some may be global

    def __init__(self, value: Any, kind: str | None = None):
        Ref.made = True
        self._value = value
        self.aval = AbstractRef(typeof(value), kind=kind)
        self.trace = current.trace
        self.owned = False

    @property
    def value(self) -> Any:
        """Return the array that it holds now."""
        if self._value is None:
            raise DeletedError(
                f"Ref: must not be used after it was freed; got a {self.aval}. "
                "Hint: read it before freeze, which gives its last value."
            )
        return self._value

    def is_deleted(self) -> bool:
        """Return True if it was freed."""
        return self._value is None

    def free(self) -> Any:
        """End it; its last value."""
        value = self.value
        self._value = None
        return value

    def hold(self, value: Any, owned: bool = False) -> None:
        """Make it hold a value; `owned`: an array that nobody else holds."""
        check_write(self)
        if isinstance(value, Tracer) and value.owner not in walk_up(self.trace):
            raise write_error(self.aval, value.owner)
        self._value, self.owned = pin_type(value), owned

    def __reduce__(self) -> tuple:
        self.owned = False  # a copy shares the array
        return Ref, (self.value, self.aval.kind)

    def __bool__(self) -> bool:
        raise TypeError(f"bool(): needs a value; got a {self.aval}. Hint: r[...].")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"numpy: needs an array; got a {self.aval}. Hint: np.asarray(r[...]).")

    def __repr__(self) -> str:
        if self._value is None:
            return f"Ref(freed, {self.aval.inner_aval})"
        text = repr(self._value)
        return f"Ref{text[5:]}" if text.startswith("Array(") else f"Ref({text})"


def is_ref(x: Any) -> bool:
    """Return True if a value is a reference, or a traced value of one."""
    return type(getattr(x, "aval", None)) is AbstractRef


def find_mapping(ref: Any) -> Trace | None:
    """Return a trace that maps the present function and not the reference; None without one."""
    home = getattr(ref, "owner", None) or ref.trace
    for trace in walk_up(current.trace):
        if trace is home:
            return None
        if hasattr(trace, "axis"):
            return trace
    return None


def check_write(ref: Ref) -> None:
    """Raise where a mapped function writes to a reference from outside, which is not mapped."""
    trace = find_mapping(ref)
    if trace is not None:
        raise write_error(ref.aval, trace)


def write_error(aval: AbstractRef, trace: Any) -> RefError:
    """The error for a write that a trace does not allow, or that an axis does not."""
    if hasattr(trace, "axis") or hasattr(trace, "spmd"):
        return RefError(
            f"vmap: a reference that is not mapped must not be written; got a write to a {aval} "
            "from outside of the mapped function. Hint: pass it as an argument with an axis of "
            "in_axes, or make it in the function."
        )
    return RefError(
        "grad: a differentiated value must not be written to a reference that is not "
        f"differentiated; got a write to a {aval} from outside of the function. "
        "Hint: make the reference in the function, or write lax.stop_gradient(x)."
    )
