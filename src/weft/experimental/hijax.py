"""User-defined types of values, and primitives, that consist of arrays: `jax.experimental.hijax`.

Programs treat a value whose class has a `HiType` as a pytree of the arrays that the type lowers it
to. A primitive defines its computation, and optionally its derivative and batching rule; programs
contain its computation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.api.custom_rules import GradAccum, NullAccum, ValAccum, custom_jvp, custom_vjp
from weft.api.custom_vmap import custom_vmap
from weft.api.mutable import MUTABLE, TYPES, apply_on_objects, cur_qdd, typeof
from weft.core.aval import AbstractValue, ShapedArray
from weft.core.primitive import Axis, Effect, Zero
from weft.core.ref import AbstractRef
from weft.numpy.manipulation import moveaxis
from weft.primitives.families import is_linear as is_undefined_primal
from weft.primitives.layout import instantiate as instantiate_zeros
from weft.pytrees import register_pytree_node, tree_map
from weft.util import list_public

__all__ = [
    "AbstractRef", "AbstractValue", "AvalMutableQDD", "AvalQDD", "GradAccum", "HiPrim",
    "HiPrimitive", "HiType", "MutableHiType", "NullAccum", "ShapedArray", "VJPHiPrimitive",
    "ValAccum", "Zero", "aval_method", "aval_property",
    "control_flow_allowed_effects", "cur_qdd", "instantiate_zeros", "is_undefined_primal",
    "register_hitype",
]  # fmt: skip
__dir__ = list_public(__name__)


class HiType(AbstractValue):
    """The type of values that are made of arrays.

    A user writes a subclass, with the three methods below, and registers it with `register_hitype`.
    The values may then be arguments and results of transformed functions. Types must be hashable,
    and equal for equal types, as instances of a frozen dataclass are. Tangents are values of the
    same class.

    `lo_ty()` returns the types of the arrays, `lower_val(value)` the arrays of a value, and
    `raise_val(*arrays)` the value that is made of arrays.

    >>> import dataclasses
    >>> @dataclasses.dataclass
    ... class Pair:
    ...     a: weft.Array
    ...     b: weft.Array
    >>> @dataclasses.dataclass(frozen=True)
    ... class PairType(HiType):
    ...     def lo_ty(self):
    ...         return [ShapedArray((), np.float32), ShapedArray((), np.float32)]
    ...     def lower_val(self, pair):
    ...         return [pair.a, pair.b]
    ...     def raise_val(self, a, b):
    ...         return Pair(a, b)
    >>> register_hitype(Pair, lambda pair: PairType())
    >>> swapped = weft.jit(lambda pair: Pair(pair.b, pair.a))(Pair(1.0, 2.0))
    >>> print(swapped.a, swapped.b)
    2.0 1.0
    """

    def lo_ty(self) -> list[ShapedArray]:
        """The types of the arrays."""
        raise NotImplementedError(f"{type(self).__name__}: must define lo_ty.")

    def lower_val(self, hi_val: Any) -> list:
        """The arrays that a value is made of."""
        raise NotImplementedError(f"{type(self).__name__}: must define lower_val.")

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value that is made of arrays."""
        raise NotImplementedError(f"{type(self).__name__}: must define raise_val.")


class MutableHiType(HiType):
    """The type of objects whose state programs may change.

    A user writes a subclass, with the four methods below, and registers it with `register_hitype`.
    Types must be hashable, and equal for equal types, as instances of a frozen dataclass are.

    An object's class defines `cur_qdd()`: the facts about its state that are known while a function
    is traced, hashable, such as types and structure. Given these, `lo_ty_qdd(qdd)` are the types of
    its arrays, `read_loval(qdd, x)` are the arrays, `new_from_loval(qdd, *arrays)` makes an object
    from arrays, and `update_from_loval(qdd, x, *arrays)` stores arrays in an object. Every read or
    write of the state is a `HiPrimitive`.

    An object may be passed to a function under `jit`, which may change its structure. Any function
    may close over it and write it, as it may write a reference.

    >>> import dataclasses
    >>> class Counter:
    ...     def __init__(self, n):
    ...         self.n = n
    ...     def cur_qdd(self):
    ...         return weft.typeof(self.n)
    >>> @dataclasses.dataclass(frozen=True)
    ... class CounterType(MutableHiType):
    ...     def lo_ty_qdd(self, qdd):
    ...         return [qdd]
    ...     def read_loval(self, qdd, counter):
    ...         return [counter.n]
    ...     def new_from_loval(self, qdd, n):
    ...         return Counter(n)
    ...     def update_from_loval(self, qdd, counter, n):
    ...         counter.n = n
    >>> class Add(HiPrimitive):
    ...     def to_lojax(self, counter, n):
    ...         counter.n = counter.n + n
    ...         return counter.n
    >>> register_hitype(Counter, lambda counter: CounterType())
    >>> counter, add_p = Counter(jnp.float32(1)), Add("add")
    >>> print(weft.jit(lambda counter: add_p.bind(counter, 2.0))(counter))
    3.0
    >>> print(counter.n)
    3.0
    """

    has_qdd = True

    def lo_ty_qdd(self, qdd: Any) -> list[ShapedArray]:
        """The types of the arrays of such a state."""
        raise NotImplementedError(f"{type(self).__name__}: must define lo_ty_qdd.")

    def read_loval(self, qdd: Any, x: Any) -> list:
        """The arrays that an object holds."""
        raise NotImplementedError(f"{type(self).__name__}: must define read_loval.")

    def new_from_loval(self, qdd: Any, *lo_vals: Any) -> Any:
        """An object that holds the arrays."""
        raise NotImplementedError(f"{type(self).__name__}: must define new_from_loval.")

    def update_from_loval(self, qdd: Any, x: Any, *lo_vals: Any) -> None:
        """Have an object hold the arrays."""
        raise NotImplementedError(f"{type(self).__name__}: must define update_from_loval.")


class AvalQDD(NamedTuple):
    """The type of a new mutable object, with the known facts about its state.

    The `abstract_eval` of a `HiPrimitive` that makes a mutable object returns it.

    Args:
      aval: the type of the object, a `MutableHiType`.
      qdd: the facts about its state that are known while a function is traced: the result of
        `cur_qdd()` of the object.

    >>> made = AvalQDD(MutableHiType(), weft.typeof(jnp.zeros(2)))
    >>> print(made.qdd)
    f32[2]
    """

    aval: Any
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """The type of a mutable object, and a mutable cell for the known facts about its state.

    It is here for code that is written for JAX. No function of weft makes one or reads one.

    Args:
      aval: the type of the object, a `MutableHiType`.
      mutable_qdd: the cell, an object of any class.

    >>> AvalMutableQDD(MutableHiType(), ["facts"]).mutable_qdd
    ['facts']
    """

    aval: Any
    mutable_qdd: Any


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Register a class of values, so that they can be arguments, results and carries of programs.

    Values of a class that defines `cur_qdd` are leaves of pytrees. A value of any other class is a
    node of a pytree, whose children are the arrays of the value.

    Args:
      val_cls: the class of the values.
      typeof_fn: a function from a value to its type: a `HiType`, or a `MutableHiType` if the class
        defines `cur_qdd`.

    Returns:
      None. `weft.typeof` of a value is then the result of `typeof_fn`.

    >>> import dataclasses
    >>> class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    >>> @dataclasses.dataclass(frozen=True)
    ... class BoxType(HiType):
    ...     def lo_ty(self):
    ...         return [ShapedArray((), np.float32)]
    ...     def lower_val(self, box):
    ...         return [box.x]
    ...     def raise_val(self, x):
    ...         return Box(x)
    >>> register_hitype(Box, lambda box: BoxType())
    >>> weft.typeof(Box(3.0))
    BoxType()
    >>> print(weft.jit(lambda box: Box(box.x + 1))(Box(3.0)).x)
    4.0
    """
    TYPES[val_cls] = typeof_fn
    if hasattr(val_cls, "cur_qdd"):
        MUTABLE[val_cls] = typeof_fn
        return

    def take_apart(value: Any) -> tuple[Sequence, HiType]:
        try:
            hi_type = typeof_fn(value)
        except AttributeError:  # of what stands in for arrays
            hi_type = value.__hi_type__
        return tuple(hi_type.lower_val(value)), hi_type

    def put_together(hi_type: HiType, arrays: Sequence) -> Any:
        value = hi_type.raise_val(*arrays)
        with contextlib.suppress(AttributeError):  # one with slots
            object.__setattr__(value, "__hi_type__", hi_type)
        return value

    register_pytree_node(val_cls, take_apart, put_together)


class aval_method(NamedTuple):
    """A mark for a method of a type that values of the type should have.

    It is here for code that is written for JAX, where a traced value finds the method in its type.
    A function of weft receives values of the user's class, which have the methods of that class.

    Args:
      fun: the method, a function of the value and further arguments.

    >>> aval_method(len).fun
    <built-in function len>
    """

    fun: Callable


class aval_property(NamedTuple):
    """A mark for a property of a type that values of the type should have.

    It is here for code that is written for JAX, where a traced value finds the property in its
    type. A function of weft receives values of the user's class, which have the properties of that
    class.

    Args:
      fget: the function from a value to the property.

    >>> aval_property(len).fget
    <built-in function len>
    """

    fget: Callable


class EffectTypes:
    """A set of classes of effects."""

    def __init__(self) -> None:
        self.types: set[type] = set()

    def add_type(self, effect_type: type) -> None:
        """Add a class."""
        self.types.add(effect_type)

    def contains(self, effect: Any) -> bool:
        """Return True if an effect, or a class of effects, is of one of the classes."""
        kind = effect if isinstance(effect, type) else type(effect)
        return issubclass(kind, tuple(self.types))


control_flow_allowed_effects = EffectTypes()  # loops and branches take all effects here
control_flow_allowed_effects.add_type(Effect)


class VJPHiPrimitive:
    """A primitive for arguments of given types: what its methods say. Calling one applies it.

    `expand(*args)` computes it. A class may also define `jvp(primals, tangents)`; or
    `vjp_fwd(nonzero, *args)`, giving the result and residuals, with `vjp_bwd_retval(residuals,
    ct)`, giving the cotangents of the arguments; and `batch(axis, args, dims)`, giving the result
    and its mapped axis. What is not defined follows from `expand`.

    >>> class Cube(VJPHiPrimitive):
    ...     def expand(self, x):
    ...         return jnp.power(x, 3)
    ...     def jvp(self, primals, tangents):
    ...         (x,), (t,) = primals, tangents
    ...         return self(x), 30.0 * t  # not true, to show whose derivative it is
    >>> weft.value_and_grad(Cube())(2.0)
    (Array(8., dtype=float32, weak_type=True), Array(30., dtype=float32, weak_type=True))
    """

    in_avals: Sequence[Any]
    out_aval: Any

    def expand(self, *args: Any) -> Any:
        """Compute the primitive."""
        raise NotImplementedError(f"{type(self).__name__}: must define expand.")

    def jvp(self, primals: Sequence, tangents: Sequence) -> tuple[Any, Any]:
        """The result and its tangent."""
        raise NotImplementedError

    def vjp_fwd(self, nzs_in: Sequence[bool], /, *args: Any) -> tuple[Any, Any]:
        """The result and residuals, where the arguments marked are differentiated."""
        raise NotImplementedError

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> tuple:
        """The cotangents of the arguments."""
        raise NotImplementedError

    def batch(self, axis_data: Axis, args: Sequence, dims: Sequence) -> tuple[Any, Any]:
        """The result of mapped arguments, and its mapped axis."""
        raise NotImplementedError

    def defines(self, method: str) -> bool:
        """Return True if the class has a method of its own."""
        return getattr(type(self), method) is not getattr(VJPHiPrimitive, method)

    def __call__(self, *args: Any) -> Any:
        fun: Any = lambda *xs: self.expand(*xs)
        if self.defines("batch"):
            fun = custom_vmap(fun)
            fun.def_vmap(self.map_first)
        if self.defines("jvp"):
            fun = custom_jvp(fun)
            fun.defjvp(lambda primals, tangents: self.jvp(primals, tangents))
        elif self.defines("vjp_fwd"):
            fun = custom_vjp(fun)
            nonzero = [True] * len(args)
            fun.defvjp(
                lambda *xs: self.vjp_fwd(nonzero, *xs),
                lambda res, ct: tuple(self.vjp_bwd_retval(res, ct)),
            )
        return fun(*args)

    def map_first(self, size: int, mapped: Sequence, *args: Any) -> tuple[Any, Any]:
        """Return the result for arguments that may be mapped along their first axis."""
        dims = tree_map(lambda m: 0 if m else None, tuple(mapped))
        out, dim = self.batch(Axis(size), args, dims)
        if dim is None:
            return out, tree_map(lambda y: False, out)
        return tree_map(lambda y: moveaxis(y, dim, 0), out), tree_map(lambda y: True, out)


HiPrim = VJPHiPrimitive  # its name in JAX 0.12


class HiPrimitive:
    """A primitive with a name and parameters, on arrays and values of registered classes.

    A user writes a subclass. `to_lojax(*args, **params)` computes the result, and
    `bind(*args, **params)` applies the primitive. The class may define
    `jvp(primals, tangents, **params)`, which returns the result and its tangent. Without it, the
    derivative follows from `to_lojax`.

    On mutable objects, `bind` runs `to_lojax`. A primitive that makes such an object defines
    `abstract_eval(*types, **params)`, whose first result is then an `AvalQDD` or a `MutableHiType`.

    Args:
      name: the name of the primitive, for error messages.

    >>> class Scale(HiPrimitive):
    ...     def to_lojax(self, x, *, by):
    ...         return x * by
    ...     def jvp(self, primals, tangents, *, by):
    ...         return self.bind(*primals, by=by), self.bind(*tangents, by=by)
    >>> scale_p = Scale("scale")
    >>> print(scale_p.bind(3.0, by=2.0), weft.grad(lambda x: scale_p.bind(x, by=2.0))(3.0))
    6.0 2.0
    """

    multiple_results = False

    def __init__(self, name: str):
        self.name = name

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        """Compute the primitive."""
        raise NotImplementedError(f"{self.name}: must define to_lojax.")

    def jvp(self, primals: Sequence, tangents: Sequence, **params: Any) -> tuple[Any, Any]:
        """The result and its tangent."""
        raise NotImplementedError

    def makes_object(self, args: Sequence, params: dict[str, Any]) -> bool:
        """Return True if the result is an object of a mutable type."""
        rule = getattr(self, "abstract_eval", None)
        if rule is None:
            return False
        return isinstance(rule(*map(typeof, args), **params)[0], AvalQDD | MutableHiType)

    def bind(self, *args: Any, **params: Any) -> Any:
        """The primitive of these arguments."""
        if any(type(x) in MUTABLE for x in args) or self.makes_object(args, params):
            return apply_on_objects(self.to_lojax, args, params)
        fun: Any = lambda *xs: self.to_lojax(*xs, **params)
        if type(self).jvp is not HiPrimitive.jvp:
            fun = custom_jvp(fun)
            fun.defjvp(lambda primals, tangents: self.jvp(primals, tangents, **params))
        return fun(*args)
