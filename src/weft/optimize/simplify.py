"""Algebraic identities that are exact in floating point, for NaN and zeros of either sign too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.form import Form
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var, memo_jaxpr
from weft.core.primitive import Primitive
from weft.passes.rewrite import rewrite_equations
from weft.primitives import elementwise as ops
from weft.primitives import layout
from weft.primitives.transcendental import integer_pow_p

Maker = Callable[[Any], Eqn | None]  # the equation that makes a variable, if it is in sight
# An identity: what an equation may be replaced by, or that its result is an operand.
Identity = Callable[[Eqn, Maker], Eqn | Atom | None]


@memo_jaxpr
def simplify_algebra(jaxpr: Jaxpr) -> Jaxpr:
    """Return a program without operations that give an operand: `x * 1`, `-(-x)`.

    The pass also removes `select(p, x, x)`. Transposes, reshapes, broadcasts and reversals in a row
    become one, or none. Conversions to a dtype that holds every value and back are removed.
    Products of transposed operands become products of the operands. Equations that nothing reads
    afterwards stay in the program; `drop_dead_code` removes them.

    Args:
      jaxpr: a `Jaxpr`.
    Returns:
      An equivalent `Jaxpr`; `jaxpr` itself if nothing changes.

    >>> from weft.passes import simplify_algebra
    >>> from weft.passes import drop_dead_code
    >>> jaxpr = weft.make_jaxpr(lambda x: -(-x) * 1.0)(1.0).jaxpr
    >>> print(drop_dead_code(simplify_algebra(jaxpr)))
    { lambda ; a:f32[]. let  in (a,) }
    """
    makers: dict[Var, Eqn] = {}
    maker: Maker = lambda a: makers.get(a) if type(a) is not Literal else None

    def rewrite(eqn: Eqn) -> Eqn | Sequence[Atom] | None:
        prim = eqn.primitive
        find = find_product if prim.form is Form.PRODUCT else IDENTITIES.get(prim)
        made = None if find is None else find(eqn, maker)
        if made is not None and not isinstance(made, Eqn):
            if made.aval is eqn.outvars[0].aval:
                return [made]
            made = None
        kept = made or eqn
        makers.update(dict.fromkeys(kept.outvars, kept))
        return made

    return rewrite_equations(jaxpr, simplify_algebra, rewrite)


def is_number(a: Atom, value: float, negative: bool = False) -> bool:
    """Return True if an atom is this number; for zeros, `negative` is the sign."""
    if type(a) is not Literal or not np.all(a.val == value):
        return False
    return value != 0 or bool(np.signbit(np.asarray(a.val).real)) == negative


def drop_neutral(value: float, sides: Sequence[int], negative: bool = False) -> Identity:
    """The operations with a number that leaves the other operand unchanged, on some `sides`."""

    def find(eqn: Eqn, maker: Maker) -> Atom | None:
        for side in sides:
            a = eqn.invars[side]
            sign = negative and dtypes.is_inexact(a.aval.dtype)
            if is_number(a, value, sign) and not dtypes.is_complex(a.aval.dtype):
                return eqn.invars[1 - side]
        return None

    return find


def drop_twice(eqn: Eqn, maker: Maker) -> Atom | None:
    """f(f(x)) is x."""
    inner = maker(eqn.invars[0])
    is_same = inner is not None and inner.primitive is eqn.primitive and inner.params == eqn.params
    return inner.invars[0] if is_same else None  # type: ignore[union-attr]


def drop_equal(first: int) -> Identity:
    """Return the rule for operations whose operands from `first` on are equal."""

    def find(eqn: Eqn, maker: Maker) -> Atom | None:
        kept = eqn.invars[first]
        is_var = type(kept) is not Literal
        return kept if is_var and all(a is kept for a in eqn.invars[first:]) else None

    return find


def find_transpose(eqn: Eqn, maker: Maker) -> Eqn | Atom | None:
    order, x = eqn.params["permutation"], eqn.invars[0]
    if tuple(order) == tuple(range(len(order))):
        return x
    inner = maker(x)
    if inner is None or inner.primitive is not eqn.primitive:
        return None
    both = tuple([inner.params["permutation"][i] for i in order])
    x = inner.invars[0]
    if both == tuple(range(len(both))):
        return x
    return eqn.replace(invars=[x], params={**eqn.params, "permutation": both})


def find_reshape(eqn: Eqn, maker: Maker) -> Eqn | Atom | None:
    x = eqn.invars[0]
    plain = {"dimensions": None, "sharding": None}
    if any(eqn.params[k] is not v for k, v in plain.items()):
        return None
    inner = maker(x)
    is_pair = inner is not None and inner.primitive is eqn.primitive
    if is_pair and all(inner.params[k] is v for k, v in plain.items()):  # type: ignore[union-attr]
        x = inner.invars[0]  # type: ignore[union-attr]
        return x if x.aval is eqn.outvars[0].aval else eqn.replace(invars=[x])
    return x if x.aval is eqn.outvars[0].aval else None


def find_broadcast(eqn: Eqn, maker: Maker) -> Eqn | Atom | None:
    x, dims = eqn.invars[0], eqn.params["broadcast_dimensions"]
    if eqn.params["sharding"] is not None:
        return None
    if tuple(dims) == tuple(range(len(eqn.params["shape"]))) and x.aval is eqn.outvars[0].aval:
        return x
    inner = maker(x)
    if inner is None or inner.primitive is not eqn.primitive or inner.params["sharding"]:
        return None
    both = tuple([dims[i] for i in inner.params["broadcast_dimensions"]])
    return eqn.replace(invars=inner.invars, params={**eqn.params, "broadcast_dimensions": both})


def find_conversion(eqn: Eqn, maker: Maker) -> Atom | None:
    """A conversion to the type of the operand, or back from a type that holds all its values."""
    x = eqn.invars[0]
    if x.aval is eqn.outvars[0].aval:
        return x
    inner = maker(x)
    if inner is None or inner.primitive is not eqn.primitive:
        return None
    narrow, wide = inner.invars[0].aval.dtype, x.aval.dtype
    is_kept = not dtypes.is_extended(narrow) and narrow != wide and np.can_cast(narrow, wide)
    return inner.invars[0] if is_kept else None


def find_product(eqn: Eqn, maker: Maker) -> Eqn | None:
    """Return a product of transposes as a product of the arrays, if free axes keep their order."""
    contract, batch = eqn.params["dimension_numbers"]
    operands = list(eqn.invars)
    dims = [*zip(contract, batch, strict=True)]
    for side, x in enumerate(operands):
        inner = maker(x)
        if inner is None or IDENTITIES.get(inner.primitive) is not find_transpose:
            continue
        order = inner.params["permutation"]
        summed, mapped = ([order[i] for i in axes] for axes in dims[side])
        free = [a for a in order if a not in (*summed, *mapped)]
        if free == sorted(free):
            operands[side] = inner.invars[0]
            dims[side] = (tuple(summed), tuple(mapped))
    if operands == eqn.invars:
        return None
    numbers = tuple(zip(*dims, strict=True))
    return eqn.replace(invars=operands, params={**eqn.params, "dimension_numbers": numbers})


IDENTITIES: dict[Primitive, Identity] = {
    ops.mul_p: drop_neutral(1, (0, 1)),
    ops.div_p: drop_neutral(1, (1,)),
    ops.sub_p: drop_neutral(0, (1,)),
    ops.add_p: drop_neutral(0, (0, 1), negative=True),  # 0.0 would turn -0.0 into itself
    ops.neg_p: drop_twice,
    ops.not_p: drop_twice,
    ops.conj_p: drop_twice,
    layout.rev_p: drop_twice,
    ops.and_p: drop_equal(0),
    ops.or_p: drop_equal(0),
    ops.max_p: drop_equal(0),
    ops.min_p: drop_equal(0),
    ops.select_n_p: drop_equal(1),
    integer_pow_p: lambda eqn, maker: eqn.invars[0] if eqn.params["y"] == 1 else None,
    layout.transpose_p: find_transpose,
    layout.reshape_p: find_reshape,
    layout.broadcast_in_dim_p: find_broadcast,
    layout.convert_element_type_p: find_conversion,
}
