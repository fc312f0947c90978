"""Products of matrices, and of stacks of them, as CPUs compute them quickest.

The kernels are in native/dot.cc.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray
from weft.core.jaxpr import Atom, Eqn
from weft.cpu.calls import call_kernel
from weft.cpu.kernels import are_floats
from weft.cpu.rewriting import Reading, Replacement
from weft.cpu.scope import Scope
from weft.cpu.sums import choose_inner_products
from weft.cpu.symmetry import MIN_TERMS, read_symmetric
from weft.primitives.dot import CPU_ALGORITHMS, dot_general_p, product_dtypes
from weft.primitives.elementwise import add, mul
from weft.primitives.layout import Transpose, broadcast_in_dim, convert, reshape, transpose
from weft.primitives.slicing import slice_in_dim

# The kernel computes stacks with at least this many multiplications in all, rows, and columns of a
# product. XLA is as fast or faster below these, and for products of more elements than the maximum.
MIN_STACK_WORK, MIN_ROWS, MIN_COLUMNS, MAX_STACK_ELEMENTS = 1 << 21, 8, 32, 1 << 17
# The kernel computes one product between these numbers of multiplications, with sums of at most
# MAX_TERMS terms. Above MAX_WORK (half of it for float64) or MAX_ELEMENTS of a result, XLA takes
# 60 to 90 % of the kernel's time, unless a side is thin.
MIN_WORK, MAX_WORK, MAX_TERMS = 1 << 18, 3 << 24, 1 << 10
MAX_ELEMENTS, MAX_THIN_SIDE, MAX_THIN_WORK = 1 << 18, 64, 3 << 26
# XLA's product has a fixed cost, which is paid once for a loop. In a loop it takes 75 to 95 %
# of the kernel's time for fewer multiplications than this, if the left factor is row-major.
MIN_LOOP_WORK = 1 << 21
# Left factors stored by columns are read a cache line at a time, and have to stay in one cache.
MAX_TURNED_ELEMENTS = 1 << 18
# The kernel computes the product of a matrix and a vector for this many contiguous elements.
MIN_RUN = 1 << 9
# XLA wakes a thread for a program of more than 1000 elements, and counts the operations of its own
# products. That takes longer than this many multiplications of float32. It counts nothing of the
# call of a kernel, which pays from MIN_LIGHT_WORK on.
MIN_LIGHT_WORK, MAX_LIGHT_WORK = 100, 1 << 18
# XLA:CPU is 2 to 100 times slower for stacks of this many small matrices, of up to this many rows,
# and fewer columns and terms; not for vectors, or for products of 8 columns and more.
MIN_TINY_STACK, MAX_TINY_ROWS, MAX_TINY_SIDE = 16, 64, 7
# The kernel computes one half of a symmetric product of at least these rows (and MIN_TERMS terms),
# which takes 55 to 95 % of the time of the whole. XLA takes less for few rows of many more terms.
MIN_SYMMETRIC_ROWS, MAX_TERMS_PER_ROW = 64, 1 << 10
# Operands of products of a stack of complex matrices and vectors are swapped if each product has
# at most this many elements. For 480 elements that takes 0.65 of the time, for 1280 up to 1.3.
MAX_ASKEW_ELEMENTS = 1 << 10

# The kernels that compute one product.
KERNELS = frozenset(("weft_dot", "weft_dot_symmetric", "weft_matvec"))
INT32 = np.dtype(np.int32)
NARROW_INTEGERS = frozenset(map(np.dtype, "bBhH"))


def choose_product(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Multiply by sums of outer products, by the kernel, or add up in 32 bits."""
    x, y = (a.aval for a in eqn.invars)
    out, numbers = eqn.outvars[0].aval, eqn.params["dimension_numbers"]
    kinds, made, algorithm = product_dtypes(x, y, out, eqn.params)
    if algorithm is not None and algorithm not in CPU_ALGORITHMS:
        return None  # an error, which the lowering raises
    if made in NARROW_INTEGERS:  # XLA takes ten times as long and more for sums of few bits
        wide = {**eqn.params, "preferred_element_type": INT32, "out_sharding": None}
        return lambda x, y: [convert(dot_general_p.apply(x, y, **wide)[0], out.dtype)]
    lhs, rhs = (a.update(dtype=d) for a, d in zip((x, y), kinds, strict=True))
    alone = made == out.dtype and not scope.target.devices
    multiply: Callable | None = None
    if alone and are_tiny(lhs, rhs, out, numbers):
        multiply = functools.partial(add_outer_products, out=out, numbers=numbers)
    elif alone and (half := choose_half(eqn, lhs, rhs, out, scope)):
        return half
    elif inner := choose_inner_products(eqn, scope):
        return inner
    elif alone:
        multiply = choose_multiplication(lhs, rhs, out, eqn.params, scope)
        reads = multiply or scope.target.loops or is_large(lhs, rhs, out)
        if reads and (read := read_transposed(eqn, scope)):
            atoms, numbers = read
            lhs, rhs = (a.aval.update(dtype=d) for a, d in zip(atoms, kinds, strict=True))
            params = {**eqn.params, "dimension_numbers": numbers}
            direct = choose_multiplication(lhs, rhs, out, params, scope)
            if direct:  # else the kernel is worth a transpose
                return Reading(multiply_converted(direct, kinds), atoms)
    if multiply is None:
        return None
    return multiply_converted(multiply, kinds)


def choose_multiplication(
    lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray, params: dict, scope: Scope
) -> Callable[..., Any] | None:
    """Return what multiplies quicker than XLA does; None if nothing does."""
    numbers = params["dimension_numbers"]
    if multiply := choose_product_kernel(lhs, rhs, out, numbers, scope):
        return multiply
    if is_column_product(lhs, rhs, out, numbers) or reads_askew(lhs, rhs, out, numbers):
        return functools.partial(multiply_swapped, out=out, params=params)
    return None


def is_large(x: ShapedArray, y: ShapedArray, out: ShapedArray) -> bool:
    """Return True if a factor is so large that how it is read decides what a product takes."""
    return are_floats(x, y, out) and max(x.size, y.size) >= MIN_WORK


def is_column_product(x: ShapedArray, y: ShapedArray, out: ShapedArray, numbers: Any) -> bool:
    """Return True if a product is of a matrix by columns, on the left, and a vector."""
    (lc, rc), (lb, _) = numbers
    of_vector = not lb and len(rc) == y.ndim > 0
    return of_vector and is_large(x, y, out) and y.size < x.size and is_turned(x, lb, lc)


def reads_askew(x: ShapedArray, y: ShapedArray, out: ShapedArray, numbers: Any) -> bool:
    """Return True if XLA copies the matrices of a product with vectors, but not if swapped.

    XLA transposes matrices on the left whose last axis is not summed, and matrices on the right
    whose last axis is summed. Swapped, products of complex64 take 45 to 80 % of the time, and
    products of float32 50 to 100 % if the axes of the stack are not first.
    """
    if type(x.size) is not int or type(y.size) is not int or 0 in (x.size, y.size):
        return False
    vectors = [len(z.shape) == len(c) + len(b) for z, c, b in zip((x, y), *numbers, strict=True)]
    if vectors.count(True) != 1:
        return False
    side = vectors.index(False)
    matrix, summed, batch = (x, y)[side], numbers[0][side], numbers[1][side]
    if matrix.size == out.size or not summed:
        return False  # there is nothing to add up
    is_summed_last = matrix.ndim - 1 in summed
    if out.dtype.kind == "c":
        stack = math.prod(matrix.shape[a] for a in batch)
        many = stack > 1 and out.size > stack * MAX_ASKEW_ELEMENTS
        return is_summed_last == (side == 1) and not many
    return side == 0 and not is_summed_last and [*batch] != [*range(len(batch))]


def multiply_swapped(x: Any, y: Any, out: ShapedArray, params: dict) -> Any:
    """Return the product of a matrix and a vector, computed with the operands swapped."""
    summed, batch = params["dimension_numbers"]
    swapped = {**params, "dimension_numbers": (summed[::-1], batch[::-1])}
    return reshape(dot_general_p.apply(y, x, **swapped)[0], out.shape)


def multiply_converted(multiply: Callable[..., Any], kinds: Sequence[Any]) -> Callable[..., list]:
    """Return a function that multiplies operands of any dtypes, converted to `kinds`."""
    return lambda x, y: [multiply(*(convert(v, d) for v, d in zip((x, y), kinds, strict=True)))]


def read_transposed(eqn: Eqn, scope: Scope) -> tuple[list[Atom], Any] | None:
    """Return the operands of a product before their transposes, and new dimension numbers.

    The axes of the product keep their order. Returns None if no transpose can be left out so.
    """
    atoms, sides = [], []
    for atom, *axes in zip(eqn.invars, *eqn.params["dimension_numbers"], strict=True):
        maker = scope.maker(atom)
        if maker is not None and isinstance(maker.primitive, Transpose):
            order = maker.params["permutation"]
            free = [order[a] for a in range(len(order)) if not any(a in used for used in axes)]
            if free == sorted(free):
                atom = maker.invars[0]
                axes = [tuple([order[a] for a in used]) for used in axes]
        atoms.append(atom)
        sides.append(axes)
    if atoms == eqn.invars:
        return None
    summed, batch = zip(*sides, strict=True)
    return atoms, (summed, batch)


def are_tiny(x: ShapedArray, y: ShapedArray, out: ShapedArray, numbers: Any) -> bool:
    """Return True if operands are stacks of matrices that are too small for XLA's product."""
    (lc, rc), (lb, _) = numbers
    if len(lc) != 1 or not lb or not x.ndim == y.ndim == len(lb) + 2 or type(out.size) is not int:
        return False
    *batch, m, n = out.shape
    if not x.dtype == y.dtype == out.dtype or x.dtype not in (np.float32, np.float64):
        return False
    small = 1 < n <= MAX_TINY_SIDE and 1 < x.shape[lc[0]] <= MAX_TINY_SIDE
    return small and 1 < m <= MAX_TINY_ROWS and math.prod(batch) >= MIN_TINY_STACK


def add_outer_products(x: Any, y: Any, out: ShapedArray, numbers: Any) -> Any:
    """Return products of matrices as sums of a column times a row."""
    at = len(out.shape) - 2
    total = None
    for i in range(x.shape[numbers[0][0][0]]):
        term = mul(
            *(
                spread_line(z, i, axis[0], batch, at + side, out.shape)
                for side, (z, axis, batch) in enumerate(zip((x, y), *numbers, strict=True))
            )
        )
        total = term if total is None else add(total, term)
    return total


def spread_line(
    x: Any, i: int, axis: int, batch: Sequence[int], free: int, shape: Sequence[int]
) -> Any:
    """Return line i along an axis of matrices, at axis `free` of their products."""
    line = slice_in_dim(x, i, i + 1, 1, axis)
    kept = [a for a in range(x.ndim) if a != axis]
    where = [batch.index(a) if a in batch else free for a in kept]
    order = sorted(range(len(kept)), key=lambda j: where[j])
    line = transpose(reshape(line, [x.shape[a] for a in kept]), order)
    return broadcast_in_dim(line, shape, sorted(where))


def choose_product_kernel(
    lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray, numbers: Any, scope: Scope
) -> Callable[..., Any] | None:
    """Return what multiplies by a kernel; None where XLA is quicker, as for one large product."""
    (lc, rc), (lb, rb) = numbers
    if not scope.target.kernels or not are_floats(lhs, rhs, out):
        return None
    batch, k = (math.prod(lhs.shape[a] for a in axes) for axes in (lb, lc))
    m, n = (x.size // (batch * k) for x in (lhs, rhs))
    products = batch * m * n * k
    wide = m >= MIN_ROWS and min(n, k) >= MIN_COLUMNS and m * n <= MAX_STACK_ELEMENTS
    several = wide and batch > 1 and products >= MIN_STACK_WORK
    one = batch == 1 and pays_alone(m, n, k, out.dtype.itemsize)
    of_vector = batch == 1 == min(m, n)
    computed = products if of_vector else batch * m * max(n, 16) * k  # as tiles compute
    computed = computed * out.dtype.itemsize // 4
    quick = products > MIN_LIGHT_WORK and computed <= MAX_LIGHT_WORK and scope.light
    vector = of_vector and (quick or products >= MIN_WORK)
    if not (several or one or vector or quick):
        return None
    left_turned, right_turned = is_turned(lhs, lb, lc), is_turned(rhs, rb, rc)
    if one and scope.target.loops and not left_turned and products < MIN_LOOP_WORK:
        return None
    if vector:
        turned = right_turned if m == 1 else left_turned
        short = (m * n if turned else k) < MIN_RUN and not quick
        if short:
            return None
    elif left_turned and m * k > MAX_TURNED_ELEMENTS:
        return None
    count = (batch,) if lb else ()

    def multiply(x: Any, y: Any) -> Any:
        left = arrange_matrices(x, lb, lc, (*count, m, k))
        right = arrange_matrices(y, rb, rc, (*count, n, k))
        if vector:
            a, v, given = (right, left, x) if m == 1 else (left, right, y)
            v = given if given.ndim == 1 else reshape(v, (k,))  # no reshapes for `pair_products`
            operands = [reshape(a, a.shape[-2:]), v]
            made = ShapedArray((m * n,), out.dtype)
            (z,) = call_kernel("weft_matvec", operands, [made], {"turned": turned, "extras": ""})
        else:
            made = ShapedArray((*count, m, n), out.dtype)
            how = {"left_turned": left_turned, "right_turned": not right_turned, "extras": ""}
            (z,) = call_kernel("weft_dot", [left, right], [made], how)
        return reshape(z, out.shape)

    return multiply


def choose_half(
    eqn: Eqn, lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray, scope: Scope
) -> Reading | None:
    """Return what multiplies operands by half of the operations, if the product is symmetric."""
    (lc, _), (lb, _) = eqn.params["dimension_numbers"]
    if not scope.target.kernels or not are_floats(lhs, rhs, out) or lhs.size != rhs.size:
        return None
    batch, k = (math.prod(lhs.shape[a] for a in axes) for axes in (lb, lc))
    n = lhs.size // (batch * k)
    least = MIN_LOOP_WORK if scope.target.loops else MIN_WORK
    long = MIN_TERMS <= k <= MAX_TERMS_PER_ROW * n
    if n < MIN_SYMMETRIC_ROWS or not long or batch * n * n * k < least:
        return None
    if (sides := read_symmetric(eqn, scope)) is None:
        return None

    def multiply(*operands: Any) -> list:
        count = (batch,) if lb else ()
        arranged = [
            arrange_matrices(convert(x, lhs.dtype), s.batch, s.summed, (*count, n, k))
            for x, s in zip(operands, sides, strict=True)
        ]
        left, right = [is_turned(s.atom.aval, s.batch, s.summed) for s in sides]
        how = {"left_turned": left, "right_turned": not right, "extras": ""}
        made = ShapedArray((*count, n, n), out.dtype)
        (z,) = call_kernel("weft_dot_symmetric", arranged, [made], how)
        return [reshape(z, out.shape)]

    return Reading(multiply, [s.atom for s in sides])


def pays_alone(m: int, n: int, k: int, itemsize: int) -> bool:
    """Return True if the kernel multiplies one pair of matrices, m by k and k by n, quicker."""
    products = m * n * k
    if min(m, n) <= MAX_THIN_SIDE:
        fits = products <= MAX_THIN_WORK
    else:
        fits = products * itemsize <= 4 * MAX_WORK and m * n <= MAX_ELEMENTS
    return fits and min(m, n) >= MIN_ROWS and k <= MAX_TERMS and products > MIN_WORK


def is_turned(x: ShapedArray, batch: Sequence[int], summed: Sequence[int]) -> bool:
    """Return True if the axes that are summed come before the free ones, as columns do."""
    free = [a for a in range(x.ndim) if a not in (*batch, *summed)]
    return [*batch, *summed, *free] == [*range(x.ndim)]


def arrange_matrices(
    x: Any, batch: Sequence[int], summed: Sequence[int], shape: tuple[int, ...]
) -> Any:
    """Return x as [*batch, free, summed], of the given shape; or, if turned, with both swapped."""
    if is_turned(x.aval, batch, summed):
        return reshape(x, (*shape[:-2], shape[-1], shape[-2]))
    free = [a for a in range(x.ndim) if a not in (*batch, *summed)]
    return reshape(transpose(x, [*batch, *free, *summed]), shape)
