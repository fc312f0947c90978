"""Windows written into arrays, as CPUs compute them quickest.

XLA:CPU copies an argument, and then writes the window into the copy. Where the window is computed
from other places of the array, as in a stencil, XLA copies each slice that is read, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import dtypes
from weft.core.aval import typeof
from weft.core.jaxpr import Atom, Eqn, Literal
from weft.cpu.calls import call_kernel
from weft.cpu.elements import is_fused
from weft.cpu.rewriting import Replacement
from weft.cpu.scope import Scope
from weft.primitives.dynamic_slicing import DynamicSlice, DynamicUpdateSlice
from weft.primitives.elementwise import select
from weft.primitives.layout import Reshape, Squeeze, fill
from weft.primitives.slicing import Slice, pad, padding_mask
from weft.primitives.tokens import optimization_barrier

MAX_SMALL_BYTES = 1 << 15  # of an array; XLA compiles a loop on so few as one function
MIN_KEPT_BYTES = 1 << 11  # of a window; computing or copying a smaller one again takes little
MAX_STEPS = 256  # equations that are looked at


def choose_update(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Select each element by its index, or materialize the window before it is written.

    Selecting reads and writes an array once, if the operand must not change. A materialized window
    lets a loop update its carry in place. A window that reads no other elements needs neither: a
    barrier makes later updates read the array that it is written into.
    """
    x, update, *starts = eqn.invars
    size, inner, bits = x.aval.size, update.aval.size, dtypes.itemsize_bits(x.aval.dtype)
    if not scope.target.kernels or {type(size), type(inner)} != {int} or bits < 8:
        return None
    small = size * bits <= 8 * MAX_SMALL_BYTES
    if not reads_elsewhere(eqn, scope):
        if inner * bits < 8 * MIN_KEPT_BYTES or not is_computed_again(eqn, scope):
            return None
        return lambda *xs: optimization_barrier(eqn.primitive.apply(*xs))
    stays = scope.is_argument(find_buffer(x, scope)) and not scope.target.donated
    static = size <= 2 * inner < 2 * size and all(type(i) is Literal for i in starts)
    if static and (stays or small or not is_carried(x, scope)):
        return choose_by_place(eqn, not small)
    if stays or small or inner * bits < 8 * MIN_KEPT_BYTES:
        return None
    return lambda x, update, *starts: eqn.primitive.apply(x, keep(update), *starts)


def keep(x: Any) -> Any:
    """Return an array that XLA computes by itself, and once."""
    return call_kernel("weft_keep", [x], [typeof(x)], aliases={0: 0})[0]


def choose_by_place(eqn: Eqn, large: bool) -> Replacement:
    """Choose elements of the window or of the array; a large result is computed by itself."""
    x, update, *starts = eqn.invars
    sizes: list[Any] = [*zip(starts, x.aval.shape, update.aval.shape, strict=True)]
    corner = clamp_places(eqn)
    config = [(i, n - m - i, 0) for i, (_, n, m) in zip(corner, sizes, strict=True)]

    def choose(x: Any, window: Any, *starts: Any) -> list:
        placed = pad(window, fill((), 0, window.dtype), config)
        y = select(padding_mask(typeof(window), config), x, placed)
        return [keep(y) if large else y]

    return choose


def clamp_places(eqn: Eqn) -> list[int]:
    """Return the position of a window at a known place, which is moved inside of the array."""
    x, window, *starts = eqn.invars
    sizes: Any = zip(starts, x.aval.shape, window.aval.shape, strict=True)
    return [min(max(int(i.read()), 0), n - m) for i, n, m in sizes]


def is_carried(x: Atom, scope: Scope) -> bool:
    """Return True if an array is what a loop carries, perhaps with windows written before."""
    return scope.maker(find_base(x, scope.maker)) is None


def find_base(x: Atom, maker: Callable) -> Atom:
    """Return the array that windows were written into, or that has another shape."""
    kinds = DynamicUpdateSlice, Reshape, Squeeze
    while (made := maker(x)) is not None and isinstance(made.primitive, kinds):
        x = made.invars[0]
    return x


def find_buffer(x: Atom, scope: Scope) -> Atom:
    """Return the array that an array is, or has the elements of under another shape."""
    while (maker := scope.maker(x)) is not None and isinstance(maker.primitive, Reshape | Squeeze):
        x = maker.invars[0]
    return x


def reads_elsewhere(eqn: Eqn, scope: Scope) -> bool:
    """Return True if XLA would compute a window in a loop that reads other places of the array."""
    x, update, *starts = eqn.invars
    buffer = find_buffer(x, scope)
    fused = follow_operands(update, scope.maker, is_fused)
    reads = [e for e in fused if buffer in [find_buffer(a, scope) for a in e.invars]]
    return not all(reads_window(e, update.aval.shape, starts) for e in reads)


def is_computed_again(eqn: Eqn, scope: Scope) -> bool:
    """Return True if XLA would compute a window again, in a later update of an array it reads.

    So it does in Yee's scheme: the magnetic field changes by differences of the electric field,
    which has just changed by differences of the magnetic field. XLA puts those into the loop that
    writes the magnetic field, and copies each slice that they read.
    """
    maker = lambda a: None if type(a) is Literal else scope.old_makers.get(a)
    written = scope.old_makers[eqn.outvars[0]]
    reads = follow_operands(written.invars[1], maker, is_fused)
    for later in filter(is_update, scope.program.eqns if is_carried(eqn.invars[0], scope) else ()):
        x, update, *starts = later.invars
        base = find_base(x, maker)
        moved = [e for e in reads if base in e.invars]
        if all(reads_window(e, update.aval.shape, starts) for e in moved):
            continue
        if written in follow_operands(update, maker, lambda e: is_fused(e) or is_update(e)):
            return later is not written
    return False


def is_update(eqn: Eqn) -> bool:
    return isinstance(eqn.primitive, DynamicUpdateSlice)


def follow_operands(x: Atom, maker: Callable, passes: Callable) -> list[Eqn]:
    """Return the equations that make a value, back to those that do not pass."""
    todo, found = [x], dict[Eqn, None]()
    while todo and len(found) < MAX_STEPS:
        made = maker(todo.pop())
        if made is not None and made not in found and passes(made):
            found[made] = None
            todo += made.invars
    return list(found)


def reads_window(eqn: Eqn, shape: tuple[int, ...], starts: Sequence[Atom]) -> bool:
    """Return True if an equation takes just the elements of a window of its first operand."""
    if isinstance(eqn.primitive, Slice) and eqn.params["strides"] is None:
        places = [*eqn.params["start_indices"]]
    elif isinstance(eqn.primitive, DynamicSlice):
        places = [i.val if type(i) is Literal else i for i in eqn.invars[1:]]
    else:
        return False
    same = places == [i.val if type(i) is Literal else i for i in starts]
    return same and eqn.outvars[0].aval.shape == shape
