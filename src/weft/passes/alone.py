"""Which programs are a few cheap operations on each element, that one kernel does.

XLA:CPU gives a program on more than 1,000 elements to another thread, which takes longer to wake
than 100,000 additions take. A kernel, native/elementwise.cc, runs where it is called.
"""

from __future__ import annotations

import numpy as np

from weft.core.jaxpr import Eqn, Jaxpr, Literal, Var
from weft.util import is_below

NAMES = (  # in the order of the kernel
    *("add", "sub", "mul", "div", "neg", "abs", "sign", "max", "min", "floor", "ceil"),
    *("eq", "ne", "gt", "ge", "lt", "le", "and", "or", "xor", "not", "select_n", "clamp"),
    *("is_finite", "square", "convert_element_type", "round", "inverse"),
)
CODES = {name: code for code, name in enumerate(NAMES)} | {"integer_pow": NAMES.index("square")}
# What XLA computes otherwise where there is more of it: products and sums in one, numbers first.
ALONE = {*NAMES[:5], "square", "integer_pow", "convert_element_type"}
PARAMETERS = {("y", 2), ("y", -1), ("rounding_method", 1)}  # of which halves go to even numbers
DTYPES = {np.dtype(name) for name in ("?", "u1", "i1", "i4", "f4", "f8")}
LONG = {np.dtype(np.int64)}  # which the kernel only converts
# Operations that only move elements: those that kernels may do (primitives/joining.py), and others.
JOINS = frozenset(("concatenate", "pad", "stack", "tile", "transpose"))
MOVES = JOINS.union((
    "broadcast_in_dim", "convert_element_type", "dynamic_update_slice", "reshape", "rev", "slice",
    "squeeze",
))  # fmt: skip
# What LAPACK computes, of which XLA counts no operations, and what XLA counts none of beside that.
CALLED = {
    *("cholesky", "custom_linear_solve", "eig", "eigh", "hessenberg", "householder_product", "lu"),
    *("geqrf", "ormqr", "qr", "schur", "svd", "triangular_solve", "tridiagonal"),
}
KNOWN = CODES.keys() | MOVES | CALLED | {"iota", "stop_gradient"}
SHORT = 1 << 16  # elements of matrices that it takes a millisecond or two to factorize
FEWEST, MOST = 1024, 1 << 22  # elements, and bytes of the result, up to where it is as quick


def do_little(jaxpr: Jaxpr, but: set[str]) -> bool:
    """Whether a program is fewer operations, but for those named, than XLA wakes a thread for."""
    rest = [eqn for eqn in jaxpr.eqns if eqn.primitive.name not in but]
    sizes = [v.aval.size for eqn in rest for v in eqn.outvars]
    alone = all(eqn.primitive.memoize_type for eqn in rest)  # and hold no programs
    return alone and {*map(type, sizes)} <= {int} and sum(sizes) < 500


def is_cheap(jaxpr: Jaxpr) -> bool:
    """Whether the kernel is to do what is of CODES in a program whose operations are all KNOWN."""
    if not jaxpr.outvars:
        return False
    out, eqns = jaxpr.outvars[-1].aval, jaxpr.eqns
    if any(eqn.primitive.name in CALLED for eqn in eqns):
        return all(map(can_call_beside, eqns))
    large = [eqn.primitive.name for eqn in eqns if eqn.outvars[0].aval.shape]  # no scalars
    size, count = out.size, len(large)
    width = max(out.dtype.itemsize, 4 * (count > 1))  # of which XLA's one loop needs no more
    if type(size) is not int or size < FEWEST or size * width * count**2 > MOST:
        return False
    made = {eqn.outvars[0] for eqn in eqns}
    fits = count == 1 or not ALONE.intersection(large)
    fits = fits and all(type(v) is Var and v in made for v in jaxpr.outvars)
    return fits and all(can_call(eqn, out.shape) for eqn in eqns)


def can_call_beside(eqn: Eqn) -> bool:
    """Whether an operation beside LAPACK's is the kernel's, or one of which XLA counts nothing."""
    out = eqn.outvars[0].aval
    if eqn.primitive.name not in CODES:
        return type(out.size) is int
    return can_call(eqn, out.shape) and is_below(out.size, SHORT + 1)


def can_call(eqn: Eqn, shape: tuple) -> bool:
    """Whether the kernel does an operation, and XLA no less than that."""
    name, args, out = eqn.primitive.name, eqn.invars, eqn.outvars[0].aval
    chosen = {(k, v) for k, v in eqn.params.items() if k in ("y", "rounding_method")}
    nothing = name in NAMES[:3] and {a.val for a in args if type(a) is Literal} & {0, 1, -1}
    inverse = name == "div" and (not args[-1].aval.shape or out.dtype.kind != "f")
    several = name == "select_n" and (len(args) > 3 or args[0].aval.dtype != bool)
    converts = name == "convert_element_type"
    return (
        name in CODES
        and not (nothing or inverse or several)
        and chosen <= PARAMETERS
        and (out.shape == shape or (converts and not out.shape))
        and {a.aval.shape for a in args} <= {(), out.shape}
        and out.dtype in DTYPES
        and {a.aval.dtype for a in args} <= (DTYPES | LONG if converts else DTYPES)
    )
