"""Which programs are a few cheap operations on each element, or moves, that kernels do.

XLA:CPU gives a program on more than 1,000 elements to another thread, which takes longer to wake
than 100,000 additions take. A kernel, native/programs.cc or transpose.cc, runs where it is
called. Where moved elements lie, views of NumPy say, of arrays of bytes that nobody reads.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.jaxpr import Atom, Eqn, Jaxpr, Literal, Var
from weft.cpu.opcodes import Kind, Operand, Step, encode_program
from weft.dtypes import itemsize_bits
from weft.util import is_below

# Primitives whose opcode has their name (cpu/opcodes.py).
NAMES = (
    *("add", "sub", "mul", "div", "neg", "abs", "sign", "max", "min", "floor", "ceil"),
    *("eq", "ne", "gt", "ge", "lt", "le", "and", "or", "xor", "not", "select_n", "clamp"),
    *("is_finite", "square", "convert_element_type", "round"),
)
COMPARISONS = NAMES[11:17]
CALCULATED = frozenset((*NAMES, "integer_pow"))
# What XLA computes otherwise where there is more of it: products and sums in one, numbers first.
ALONE = {*NAMES[:5], "square", "integer_pow", "convert_element_type"}
SIGNS = {"add": "+", "sub": "+", "mul": "*", "div": "*"}
PARAMETERS = {("y", 2), ("y", -1), ("rounding_method", 1)}  # of which halves go to even numbers
TYPES = frozenset(map(np.dtype, "?bBifd"))
# Operations that only move elements: those that kernels may do (cpu/joins.py), and others.
JOINS = frozenset(("concatenate", "pad", "stack", "tile"))
VIEWS: dict[str, Callable] = {  # where a result's elements lie in the operand
    "broadcast_in_dim": lambda x, shape, broadcast_dimensions, sharding: np.broadcast_to(
        np.expand_dims(x, [*{*range(len(shape))}.difference(broadcast_dimensions)]), shape
    ),
    "reshape": lambda x, new_sizes, **_: x.reshape(new_sizes),
    "rev": lambda x, dimensions: np.flip(x, dimensions),
    "slice": lambda x, start_indices, limit_indices, strides: x[
        (*map(slice, start_indices, limit_indices, strides or [1] * x.ndim), ...)
    ],
    "split": lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis),
    "squeeze": lambda x, dimensions: np.squeeze(x, dimensions),
    "transpose": lambda x, permutation: x.transpose(permutation),
}
MOVES = JOINS.union(VIEWS, ("convert_element_type", "dynamic_update_slice"))
# What LAPACK computes, of which XLA counts no operations, and what XLA counts none of beside that.
CALLED = {
    *("cholesky", "custom_linear_solve", "eig", "eigh", "hessenberg", "householder_product", "lu"),
    *("geqrf", "ormqr", "qr", "schur", "svd", "triangular_solve", "tridiagonal"),
}
KNOWN = CALCULATED | MOVES | CALLED | {"iota", "stop_gradient"}
SHORT = 1 << 16  # elements of matrices that it takes a millisecond or two to factorize
FEWEST, MOST = 1024, 1 << 22  # elements, and bytes of the result, up to where it is as quick
STEPS, SIDE = 8, 32  # operations of one call, and operands; elements of an axis walked along
BLOCK = 1024  # elements of intermediate results, which the nearest cache holds
MAX_ONE_THREAD = 1 << 20  # bytes read and written up to which one thread is as quick as several
PIECE = 1 << 18  # bytes read and written that are worth a thread
# A call of a kernel, with fields as equations have them; `steps` is the number of its operations.
Call = collections.namedtuple("Call", "kernel invars outvars attributes steps")


def do_little(jaxpr: Jaxpr, but: set[str]) -> bool:
    """Whether a program is fewer operations, but for those named, than XLA wakes a thread for."""
    rest = [eqn for eqn in jaxpr.eqns if eqn.primitive.name not in but]
    sizes = [v.aval.size for eqn in rest for v in eqn.outvars]
    alone = all(eqn.primitive.memoize_type for eqn in rest)  # and hold no programs
    return alone and {*map(type, sizes)} <= {int} and sum(sizes) < 500


def plan_calls(jaxpr: Jaxpr) -> Sequence:
    """What a program whose operations are all KNOWN is, as calls; nothing where it is XLA's."""
    eqns, outs = jaxpr.eqns, jaxpr.outvars
    if any(eqn.primitive.name in CALLED for eqn in eqns):
        plan = lambda e: call_group([e], {}) if can_call(e, e.outvars[0].aval.shape) else e
        return [*map(plan, eqns)] if outs and all(map(can_call_beside, eqns)) else []
    sizes = [v.aval.size for v in (*jaxpr.invars, *(v for e in eqns for v in e.outvars))]
    known = outs and all(type(n) is int and n < 1 << 28 for n in sizes)
    if not known or any(type(v) is Literal or v in jaxpr.invars for v in outs):
        return []
    views: dict = {v: (v, 0, np.empty(v.aval.shape, np.int8)) for v in jaxpr.invars}
    rest = [eqn for eqn in eqns if not add_view(eqn, views)]
    large = [eqn for eqn in rest if eqn.outvars[0].aval.shape]
    moves = [call_view(v, *views[v]) for v in dict.fromkeys(outs) if v in views]
    if None in moves or (rest and not (large and are_exact(rest, large[-1].outvars, views))):
        return []
    together = large and {*outs} - views.keys() == {*large[-1].outvars}
    calls = [call_group(g, views) for g in ([large] if together else [[e] for e in large])]
    small = [call_group([eqn], views) for eqn in rest if eqn not in large]
    for call in calls:
        out, steps, each = call.outvars[0].aval, call.steps, len(calls)
        width = max(out.dtype.itemsize, 4 * (len(large) > 1))  # XLA's one loop needs no more
        size = out.size * width * (each if each > 1 else max(steps - 1, 1)) ** 2
        if max(steps, len(call.invars)) > STEPS or out.size < FEWEST or size > MOST:
            return []
    return [*small, *calls, *moves]


def are_exact(eqns: Sequence[Eqn], outs: Sequence[Var], views: Mapping) -> bool:
    """Whether the kernel can do operations, and XLA rounds no product and sum at once."""
    shape, names = outs[0].aval.shape, [e.primitive.name for e in eqns if e.outvars[0].aval.shape]
    signs = "".join(SIGNS.get(name, "?") for name in names if name in ALONE)
    used = [(e, *views[a]) for e in eqns for a in e.invars if type(a) is Var and a in views]
    fits = lambda e, x: x.shape == e.outvars[0].aval.shape and x.flags.c_contiguous
    near = all(fits(e, x) for e, source, _, x in used if source.aval.shape)
    return near and signs in ("", "?", "+", "*", "+*") and all(can_call(e, shape) for e in eqns)


def add_view(eqn: Eqn, views: dict) -> bool:
    """Add where the results of an equation lie, if it moves what does not have to be computed."""
    name, a = eqn.primitive.name, (*eqn.invars, None)[0]
    number = a, 0, np.empty((), np.int8)
    source, start, x = views.get(a, (a, 0, None)) if type(a) is Var else number
    if name not in VIEWS or x is None or (name == "reshape" and not x.flags.c_contiguous):
        return False
    y = VIEWS[name](x, **eqn.params)
    for v, part in zip(eqn.outvars, y if type(y) is list else [y], strict=True):
        views[v] = source, start + part.ctypes.data - x.ctypes.data, part
    return True


def call_view(out: Atom, source: Atom, start: int, view: np.ndarray) -> Call | None:
    """The call for a view where it is as quick as XLA; axes in steps of one size are one."""
    axes = [(1, 0)]
    for n, step in zip(view.shape, view.strides, strict=True):
        if n > 1:
            m = axes.pop()[0] if axes[-1][0] == 1 or axes[-1][1] == n * step else 1
            axes.append((m * n, step))
    sizes, steps = zip(*axes, strict=True)
    bits, size, side = itemsize_bits(out.aval.dtype), out.aval.size, sizes[-1]
    sides = [n for n, step in zip(sizes[:-1], steps, strict=False) if abs(step) == 1]
    least, most = FEWEST // 2, size
    if sides and abs(steps[-1]) > 1:  # a transpose, at which XLA is quick, but for narrow elements
        turns = bits == 16 or (bits == 32 and min(steps) < 0)
        least, most, side = 1 << 15, 1 << 23 if turns else size * (bits == 8), min(side, *sides)
    if bits < 8 or not least <= size <= most or side < SIDE:
        return None
    attributes = {"start": start, "sizes": sizes, "steps": steps}
    return Call("weft_view", [source], [out], attributes, 1)


def call_group(eqns: Sequence[Eqn], views: Mapping) -> Call:
    """The call for operations one after the other, of which the last gives the result."""
    makers = {eqn.outvars[0]: eqn for eqn in eqns}
    given: list[tuple[Atom, int]] = []
    steps: dict[Var, Step] = {}  # in order

    def place(a: Atom) -> Hashable:
        """Add what makes `a`, and return the name of its value."""
        if type(a) is Literal or a not in makers:
            operand = views[a][:2] if type(a) is Var and a in views else (a, 0)
            given.extend([operand] * (operand not in given))
            return given.index(operand)
        if a not in steps:
            name, args = operation_of(makers[a], makers)
            reads = [*map(place, args)]
            steps[a] = Step(name, a, Kind.FULL, a.aval.dtype, reads)
        return a

    out = eqns[-1].outvars[0]
    place(out)
    values = [source for source, _ in given]
    arrays = [v.aval for v in values if v.aval.size != 1]
    operands = [
        Operand(i, Kind.SCALAR if source.aval.size == 1 else Kind.FULL, start)
        for i, (source, start) in enumerate(given)
    ]
    split = split_work(out.aval, arrays)
    attributes = {"program": encode_program(operands, [*steps.values()], *split)}
    return Call("weft_program", values, eqns[-1].outvars, attributes, len(steps))


def split_work(out: ShapedArray, arrays: Sequence[ShapedArray]) -> tuple[int, int]:
    """Return the elements of a block, and the blocks that are worth a thread."""
    moved = out.size * sum(x.dtype.itemsize for x in (out, *arrays))
    pieces = -(-moved // PIECE) if moved > MAX_ONE_THREAD else 1
    return BLOCK, max(1, -(-out.size // (pieces * BLOCK)))


def operation_of(eqn: Eqn, makers: Mapping) -> tuple[str, Sequence[Atom]]:
    """What the kernel does for an equation: also choices by a comparison with a number as one."""
    name, args, dtype = eqn.primitive.name, eqn.invars, eqn.outvars[0].aval.dtype
    if name == "div" and (inverse := inverse_of(args[1])):
        return "mul", [args[0], inverse]
    if name == "integer_pow":
        return "inverse" if eqn.params["y"] == -1 else "square", args
    if name in ("max", "min") and dtype.kind == "f":
        x, y = args if type(args[1]) is Literal else args[::-1]
        if type(y) is Literal and abs(y.val) > 0:
            return "at_most" if name == "min" else "at_least", [x, y]
    test = makers.get(args[0]) if name == "select_n" and type(args[0]) is Var else None
    if test and test.primitive.name in COMPARISONS and dtype.kind == "f":
        x, y = test.invars
        if x.aval.dtype is dtype and not y.aval.shape:
            how = "choose" if args[2].aval.shape else "replace"
            return f"{how}_{test.primitive.name}", [x, y, *args[1:]]
    return name, args


def inverse_of(a: Atom) -> Literal | None:
    """One by a number, with which XLA multiplies in place of a division; None where it may not."""
    dtype = a.aval.dtype
    if type(a) is not Literal or dtype.kind != "f" or not 1e-30 < abs(float(a.val)) < 1e30:
        return None
    return Literal(dtype.type(1) / dtype.type(a.val), a.aval)


def can_call_beside(eqn: Eqn) -> bool:
    """Whether an operation beside LAPACK's is the kernel's, or one of which XLA counts nothing."""
    out = eqn.outvars[0].aval
    if eqn.primitive.name not in CALCULATED:
        return type(out.size) is int
    return can_call(eqn, out.shape) and is_below(out.size, SHORT + 1)


def can_call(eqn: Eqn, shape: tuple) -> bool:
    """Whether the kernel does an operation, and XLA no less than that."""
    name, args, out = eqn.primitive.name, eqn.invars, eqn.outvars[0].aval
    chosen = {(k, v) for k, v in eqn.params.items() if k in ("y", "rounding_method")}
    nothing = name in NAMES[:3] and {a.val for a in args if type(a) is Literal} & {0, 1, -1}
    inverse = name == "div" and not args[-1].aval.shape and not inverse_of(args[-1])
    integers = (name == "div" or eqn.params.get("y") == -1) and out.dtype.kind != "f"
    several = name == "select_n" and (len(args) != 3 or args[0].aval.dtype != bool)
    converts = name == "convert_element_type"
    return (
        name in CALCULATED
        and not (nothing or inverse or integers or several)
        and chosen <= PARAMETERS
        and (out.shape == shape or (converts and not out.shape))
        and {a.aval.shape for a in args} <= {(), out.shape}
        and out.dtype in TYPES
        and {a.aval.dtype for a in args} <= TYPES.union([np.dtype(np.int64)] if converts else ())
    )
