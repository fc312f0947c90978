"""Contractions: `dot_general`, the products made of it, and the precisions that they take.

Convolution, the other product, is in conv.py and takes the same precisions. `matmul`, `einsum` and
the promotion of their operands are numpy/'s.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.element import Apply, Number, Operand, reduce_over, sum_over
from weft.core.facts import Cost
from weft.core.form import Form
from weft.core.primitive import Axes, Linear, Primitive, Zero
from weft.errors import DtypeError, ShapeError
from weft.mesh.typed import check_terms, resolve_sharding, typed_as
from weft.options import config
from weft.primitives import layout
from weft.primitives.elementwise import (
    add,
    and_p,
    bitwise_and,
    convolve_terms,
    le,
    lt,
    mul_p,
    or_p,
    select,
    sub,
)
from weft.primitives.families import check_parameter, index_tuple, shift_axes
from weft.primitives.reshard import (
    compute_freely,
    insert_axis,
    read_spec,
    sharding_of_cotangent,
    show_spec,
)
from weft.util import inverse_permutation, memoize
from weft.xla.typing import Array, ArrayLike, DTypeLike

# --- precision ------------------------------------------------------------------------------


class Precision(enum.Enum):
    """The precision of a product of floats, where the hardware has a choice.

    GPUs and TPUs multiply float32 faster with shorter mantissas. On CPUs all members compute with
    full precision. Functions such as `jnp.dot` and `lax.conv` take a member as `precision`; the
    option `default_matmul_precision` sets it for a whole program.

    Attributes:
      DEFAULT: the fastest choice of the platform.
      HIGH: more exact, such as three passes of bfloat16 on a TPU.
      HIGHEST: the full precision of the operands.

    >>> print(jnp.dot(jnp.ones(3), jnp.ones(3), precision=lax.Precision.HIGHEST))
    3.0
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: Any) -> Precision | None:
        return _PRECISIONS.get(value)

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


_PRECISIONS: dict[str | None, Precision] = {
    **dict.fromkeys(("highest", "float32"), Precision.HIGHEST),
    **dict.fromkeys(("high", "bfloat16_3x", "tensorfloat32"), Precision.HIGH),
    **dict.fromkeys(("default", "bfloat16", "fastest", None), Precision.DEFAULT),
}


class DotAlgorithm(NamedTuple):
    """The algorithm of a product: the types of its inputs and its sums, and the number of terms.

    `lax.dot_general` takes it as `precision`. `DotAlgorithmPreset` has the usual algorithms by
    name. An algorithm that the device does not support raises an error at compilation.

    Args:
      lhs_precision_type: the dtype to which the left operand is rounded, or "tf32".
      rhs_precision_type: the dtype to which the right operand is rounded, or "tf32".
      accumulation_type: the dtype of the sums.
      lhs_component_count: the number of terms into which each element of the left operand is split.
        The default is 1.
      rhs_component_count: the same for the right operand.
      num_primitive_operations: the number of products of terms that are added up. The default is 1.
      allow_imprecise_accumulation: if True, the sums may be less exact than `accumulation_type`.
        The default is False.

    >>> lax.DotAlgorithm("bfloat16", "bfloat16", "float32").lhs_component_count
    1
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


def _define_algorithm(kind: str, accumulate: str, operations: int = 1, fast: bool = False) -> Any:
    return DotAlgorithm(kind, kind, accumulate, 1, 1, operations, fast)


class DotAlgorithmPreset(enum.Enum):
    """The usual algorithms of products, by name. Each value is a `DotAlgorithm`.

    A name says the type of the operands, the type of the sums, and the number of passes. For
    example BF16_BF16_F32_X3 rounds both operands to bfloat16, splits them so that three products
    are added up, and adds in float32. An algorithm that the device does not have is an error at
    compilation.

    Attributes:
      DEFAULT: the platform chooses. Its value is None.
      ANY_F8_ANY_F8_F32: operands of any 8-bit float, sums in float32.
      ANY_F8_ANY_F8_F32_FAST_ACCUM: the same, with sums that may be less exact.
      ANY_F8_ANY_F8_ANY: operands of any 8-bit float, sums in the dtype of the result.
      ANY_F8_ANY_F8_ANY_FAST_ACCUM: the same, with sums that may be less exact.
      F16_F16_F16, F16_F16_F32: float16, sums in float16 or float32.
      BF16_BF16_BF16, BF16_BF16_F32: bfloat16, sums in bfloat16 or float32.
      BF16_BF16_F32_X3, BF16_BF16_F32_X6, BF16_BF16_F32_X9: several products of bfloat16.
      TF32_TF32_F32, TF32_TF32_F32_X3: the 19-bit floats of GPUs, in one product or three.
      F32_F32_F32: float32.
      F64_F64_F64: float64.

    >>> lax.DotAlgorithmPreset.BF16_BF16_F32_X3.value.num_primitive_operations
    3
    >>> print(lax.dot(jnp.ones(3), jnp.ones(3), precision=lax.DotAlgorithmPreset.F32_F32_F32))
    3.0
    """

    DEFAULT = None
    ANY_F8_ANY_F8_F32 = _define_algorithm("any", "float32")
    ANY_F8_ANY_F8_F32_FAST_ACCUM = _define_algorithm("any", "float32", fast=True)
    ANY_F8_ANY_F8_ANY = _define_algorithm("any", "any")
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = _define_algorithm("any", "any", fast=True)
    F16_F16_F16 = _define_algorithm("float16", "float16")
    F16_F16_F32 = _define_algorithm("float16", "float32")
    BF16_BF16_BF16 = _define_algorithm("bfloat16", "bfloat16")
    BF16_BF16_F32 = _define_algorithm("bfloat16", "float32")
    BF16_BF16_F32_X3 = _define_algorithm("bfloat16", "float32", 3)
    BF16_BF16_F32_X6 = _define_algorithm("bfloat16", "float32", 6)
    BF16_BF16_F32_X9 = _define_algorithm("bfloat16", "float32", 9)
    TF32_TF32_F32 = _define_algorithm("tf32", "float32")
    TF32_TF32_F32_X3 = _define_algorithm("tf32", "float32", 3)
    F32_F32_F32 = _define_algorithm("float32", "float32")
    F64_F64_F64 = _define_algorithm("float64", "float64")

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name


_BF16, _F32 = np.dtype("bfloat16"), np.dtype("float32")
_PRESETS = DotAlgorithmPreset.__members__
# The algorithms that XLA:CPU supports. Another one would only be rejected during compilation.
CPU_ALGORITHMS = (
    _define_algorithm("float16", "float16"),
    *(_define_algorithm("bfloat16", "float32", passes) for passes in (1, 3, 6)),
    _define_algorithm("float32", "float32"),
    _define_algorithm("float64", "float64"),
)

PrecisionLike: TypeAlias = (
    str
    | Precision
    | tuple[str, str]
    | tuple[Precision, Precision]
    | DotAlgorithm
    | DotAlgorithmPreset
    | None
)
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


def canonical_precision(op: str, precision: Any) -> Any:
    """A precision as primitives hold it: None, a pair of Precision, or an algorithm.

    None asks `config.default_matmul_precision`.
    """
    if precision is None:
        precision = config.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        return precision
    if isinstance(precision, str) and precision in _PRESETS and precision not in _PRECISIONS:
        return _PRESETS[precision]
    pair = precision if isinstance(precision, tuple | list) else (precision, precision)
    try:
        lhs, rhs = map(Precision, pair)
    except (TypeError, ValueError):
        raise ValueError(
            f"{op}: precision must be a Precision, one of {', '.join(filter(None, _PRECISIONS))}, "
            f"a pair of those, a DotAlgorithm, or the name of a DotAlgorithmPreset; "
            f"got {precision!r}."
        ) from None
    return lhs, rhs


@functools.cache
def precision_config(precision: Any) -> str:
    """The StableHLO attribute for the precision of each operand."""
    pair = precision if type(precision) is tuple else (Precision.DEFAULT, Precision.DEFAULT)
    return f"[{', '.join(f'#stablehlo<precision {p.name}>' for p in pair)}]"


def swap_precision(precision: Any) -> Any:
    """The precision of the product with its operands exchanged."""
    return precision[::-1] if type(precision) is tuple else precision


def common_dtype(op: str, lhs: ShapedArray, rhs: ShapedArray) -> tuple[np.dtype, bool]:
    """Return the common dtype of two operands, and True if it is weak.

    Derivatives of products with a wider `preferred_element_type` mix dtypes, so operands are
    promoted whatever the option for promotion says. A narrow float, which is not promoted
    elsewhere, takes the other operand's dtype; of two narrow floats the dtype with the larger range
    is used.
    """
    if lhs.dtype == rhs.dtype:
        return lhs.dtype, lhs.weak_type and rhs.weak_type
    kinds = lhs.dtype, rhs.dtype
    if all(map(dtypes.is_float, kinds)) and 1 in {d.itemsize for d in kinds}:
        return max(kinds, key=lambda d: (d.itemsize, dtypes.finfo(d).max)), False
    with config.scope(numpy_dtype_promotion="standard"):
        return dtypes.promote(((lhs.dtype, lhs.weak_type), (rhs.dtype, rhs.weak_type)), op)


def product_dtype(op: str, lhs: ShapedArray, rhs: ShapedArray, preferred: Any) -> tuple:
    """(dtype, weak) of the operands brought together, and (dtype, weak) of their product."""
    both = common_dtype(op, lhs, rhs)
    if preferred is None:
        return both, both
    given = both[0]
    if dtypes.is_integer(given) and dtypes.is_integer(preferred):
        fits = dtypes.itemsize_bits(preferred) >= dtypes.itemsize_bits(given)
    else:
        fits = not (dtypes.is_complex(given) and not dtypes.is_complex(preferred))
    if not fits:
        raise DtypeError(
            f"{op}: preferred_element_type must hold what the operands' dtype does; "
            f"got {preferred} for {lhs}, {rhs}."
        )
    return both, (preferred, both[1])


def add_products(
    op: str, lhs: Operand, rhs: Operand, preferred: Any, sizes: Sequence[int], read: Callable
) -> Any:
    """Return, for an `element` rule, the sum of the products of the pairs `read(*places)`.

    Products are computed in the promoted dtype of the operands, or in the dtype of the sum if that
    is wider. For bools, the product is `and`, and the sum is `or`.
    """
    (dtype, _), (made, _) = product_dtype(op, lhs.aval, rhs.aval, preferred)
    wide = made if made.itemsize >= dtype.itemsize else dtype

    def convert(x: Any, old: np.dtype, new: np.dtype) -> Any:
        params = {"new_dtype": new, "weak_type": False}
        return x if old == new else Apply(layout.convert_element_type_p, (x,), params)

    def multiply(*places: Any) -> Any:
        pair = zip(read(*places), (lhs, rhs), strict=True)
        times = and_p if dtypes.is_bool(wide) else mul_p
        return Apply(times, tuple([convert(v, x.dtype, wide) for v, x in pair]), {})

    if dtypes.is_bool(wide):
        return reduce_over(or_p, Number(False, wide), sizes, multiply)
    return convert(sum_over(sizes, wide, multiply), wide, made)


# --- dot_general ----------------------------------------------------------------------------


class Bilinear(Primitive):
    """A family: linear in each of two operands, d f(x, y) = f(dx, y) + f(x, dy).

    Operands after those are indices, which do not move. A member writes `transpose`, for one
    operand at a time, and the rest of its rules.
    """

    def jvp(self, primals, tangents, **params):
        (out,) = self.apply(*primals, **params)
        (x, y, *rest), (tx, ty, *_) = primals, tangents
        target = typeof(out).to_tangent()
        dots: list = []
        if not isinstance(tx, Zero) and target.dtype != dtypes.float0:
            dots += self.apply(tx, y, *rest, **params)
        if not isinstance(ty, Zero) and target.dtype != dtypes.float0:
            dots += self.apply(x, ty, *rest, **params)
        if not dots:
            return [out], [Zero(target)]
        return [out], [dots[0] if len(dots) == 1 else add(*dots)]

    def series(self, k, xs, ys, **params):
        terms, rest = xs[:2], [x[0] for x in xs[2:]]
        return [convolve_terms(lambda x, y: self.apply(x, y, *rest, **params)[0], k, *terms)]


class DotGeneral(Bilinear):
    """out[b, i, j] = sum over k of lhs[b, i, k] * rhs[b, k, j], axes in any order.

    Shapes: `dimension_numbers` is ((lhs contracting, rhs contracting), (lhs batch, rhs batch)); the
    result has the batch axes, then the free axes of lhs, then the free axes of rhs. Dtypes: any,
    promoted to a common one; `preferred_element_type` is the dtype of the accumulator and the
    result. An empty sum is 0; for bools, the product is `and`, and the sum is `or`. Source:
    StableHLO, dot_general.
    """

    name = "dot_general"
    cost = Cost.CONTRACTION
    form = Form.PRODUCT

    def abstract_eval(self, lhs, rhs, *, dimension_numbers, preferred_element_type, **params):
        (lc, rc), (lb, rb) = dimension_numbers
        for side, x, contracting, batch in (("lhs", lhs, lc, lb), ("rhs", rhs, rc, rb)):
            axes = (*contracting, *batch)
            if len(set(axes)) != len(axes) or not all(0 <= a < x.ndim for a in axes):
                raise ShapeError(
                    f"{self.name}: the contracting and batch axes of {side} must be distinct axes "
                    f"of it; got contracting {contracting} and batch {batch} for {x}."
                )
        for kind, ls, rs in (("contracting", lc, rc), ("batch", lb, rb)):
            if [lhs.shape[a] for a in ls] != [rhs.shape[a] for a in rs]:
                raise ShapeError(
                    f"{self.name}: {kind} axes must have equal sizes in lhs and rhs; "
                    f"got axes {ls} of {lhs} and {rs} of {rhs}."
                )
        _, (dtype, weak) = product_dtype(self.name, lhs, rhs, preferred_element_type)
        shape = [lhs.shape[a] for a in lb]
        shape += [n for i, n in enumerate(lhs.shape) if i not in lc and i not in lb]
        shape += [n for i, n in enumerate(rhs.shape) if i not in rc and i not in rb]
        out = typed_as(ShapedArray(shape, dtype, weak), params.get("out_sharding"))
        check_terms(self.name, out, (lhs, lc), (rhs, rc))
        return [out]

    def label_axes(self, avals, outs, *, dimension_numbers, **params):
        (lc, rc), (lb, rb) = dimension_numbers
        rows = []
        for side, (aval, contracted, batch) in enumerate(zip(avals, (lc, rc), (lb, rb))):
            row = [(side, i) for i in range(aval.ndim)]
            for kind, axes in (("sum", contracted), ("batch", batch)):
                for k, i in enumerate(axes):
                    row[i] = (kind, k)
            rows.append(row)
        free = [label for row in rows for label in row if type(label[0]) is int]
        return Axes(rows, [[*[("batch", k) for k in range(len(lb))], *free]], contracts=True)

    def element(self, i, lhs, rhs, *, dimension_numbers, preferred_element_type, **params):
        (lc, rc), (lb, rb) = dimension_numbers
        free = [a for a in range(lhs.ndim) if a not in (*lc, *lb)]
        others = [a for a in range(rhs.ndim) if a not in (*rc, *rb)]
        batch, split = i[: len(lb)], len(lb) + len(free)

        def read(*k: Any) -> tuple:
            at = dict(zip((*lb, *free, *lc), (*i[:split], *k), strict=True))
            to = dict(zip((*rb, *others, *rc), (*batch, *i[split:], *k), strict=True))
            return lhs[[at[a] for a in range(lhs.ndim)]], rhs[[to[a] for a in range(rhs.ndim)]]

        sizes = [lhs.shape[a] for a in lc]
        return [add_products(self.name, lhs, rhs, preferred_element_type, sizes, read)]

    def lower(self, hlo, lhs, rhs, **params):
        (out,) = self.type_of((lhs.aval, rhs.aval), params)
        precision, numbers = params["precision"], params["dimension_numbers"]
        attrs = {
            "dot_dimension_numbers": dimension_text(numbers),
            "precision_config": precision_config(precision),
        }
        kinds, made, algorithm = product_dtypes(lhs.aval, rhs.aval, out, params)
        if algorithm is not None:
            check_algorithm(hlo.platform, algorithm, precision)
            attrs["algorithm"] = algorithm_text(algorithm, *kinds)
        lhs, rhs = (hlo.convert(x, d) for x, d in zip((lhs, rhs), kinds, strict=True))
        (y,) = hlo.op("stablehlo.dot_general", [lhs, rhs], [ShapedArray(out.shape, made)], **attrs)
        return [hlo.convert(y, out.dtype)]

    def transpose(self, cts, lhs, rhs, *, dimension_numbers, precision, **params):
        (ct,) = cts
        left = isinstance(lhs, Linear)
        x, other = (lhs, rhs) if left else (rhs, lhs)
        numbers, ct_first, permutation = plan_transpose(
            dimension_numbers, left, x.aval.ndim, typeof(other).ndim
        )
        axes = None if permutation is None else inverse_permutation(permutation)
        params["out_sharding"] = sharding_of_cotangent(x.aval, (ct, other), axes)
        (g,) = self.apply(
            *((ct, other) if ct_first else (other, ct)),
            dimension_numbers=numbers,
            precision=precision if left == ct_first else swap_precision(precision),
            **params,
        )
        if permutation is not None:
            g = layout.transpose(g, permutation)
        g = layout.convert(g, x.aval.dtype)
        return [g, None] if left else [None, g]

    def batch(self, axis, args, dims, *, dimension_numbers, **params):
        """An axis mapped in both operands is one more batch axis, in one of them a free axis."""
        (lc, rc), (lb, rb) = dimension_numbers
        i, j = dims
        if i is not None:
            lc, lb = shift_axes(lc, i), shift_axes(lb, i)
        if j is not None:
            rc, rb = shift_axes(rc, j), shift_axes(rb, j)
        if i is None:
            out = typeof(args[0]).ndim - len(lc) + j - sum(a < j for a in (*rc, *rb))
        elif j is None:
            out = len(lb) + i - sum(a < i for a in (*lc, *lb))
        else:
            out, lb, rb = 0, (i, *lb), (j, *rb)
        x, d = (args[1], j) if i is None else (args[0], i)
        params["out_sharding"] = insert_axis(params.get("out_sharding"), out, x, d, axis.spmd)
        return self.apply(*args, dimension_numbers=((lc, rc), (lb, rb)), **params), [out]

    def pretty_params(self, params):
        shown = show_spec({k: v for k, v in params.items() if v is not None}, "out_sharding")
        numbers = params["dimension_numbers"]
        shown["dimension_numbers"] = tuple(tuple(list(a) for a in pair) for pair in numbers)
        if isinstance(params["precision"], DotAlgorithmPreset):
            shown["precision"] = params["precision"].name
        return shown

    def read_params(self, params, avals, out_avals):
        precision = params.get("precision")
        precision = _PRESETS.get(str(precision), precision)
        hidden = {"preferred_element_type": None, "out_sharding": None}
        params = read_spec(params, "out_sharding", (*avals, *out_avals))
        return {**hidden, **params, "precision": precision}


dot_general_p = DotGeneral()


def sum_of_products(lhs: Any, rhs: Any, *, dimension_numbers: Any, **params: Any) -> Any:
    """The sum of the products of the elements of two stacks, along a first axis, without each.

    The stacked axis is one more contracting axis.
    """
    (lc, rc), (lb, rb) = (
        tuple(tuple(a + 1 for a in axes) for axes in sides) for sides in dimension_numbers
    )
    numbers = (((0, *lc), (0, *rc)), (lb, rb))
    return dot_general_p.apply(lhs, rhs, dimension_numbers=numbers, **params)[0]


@memoize
def plan_transpose(
    numbers: tuple, left: bool, rank: int, other_rank: int
) -> tuple[tuple, bool, tuple[int, ...] | None]:
    """Return the cotangent of an operand: the product of a cotangent and the other operand.

    `left` says that the operand, of rank `rank`, is the left one. The result is the dimension
    numbers, True if the cotangent comes first, and the permutation of the product's axes. If some
    order needs no permutation, it is chosen.
    """
    (xc, oc), (xb, ob) = numbers if left else (numbers[0][::-1], numbers[1][::-1])
    nb = len(xb)
    lhs_rank = rank if left else other_rank
    split = lhs_rank - len(xc)  # where the free axes of the right operand begin in the result
    out_rank = rank + other_rank - nb - 2 * len(xc)
    ct_axes = tuple(range(split, out_rank) if left else range(nb, split))
    lead = tuple(range(nb))
    free = tuple(i for i in range(other_rank) if i not in oc and i not in ob)
    kept = [i for i in range(rank) if i not in xc and i not in xb]
    summed = [xc[oc.index(a)] for a in sorted(oc)]
    if [*xb, *summed, *kept] == list(range(rank)) and summed and kept:
        return ((free, ct_axes), (ob, lead)), False, None
    order = [*xb, *kept, *summed]
    permutation = inverse_permutation(order)
    same = permutation == tuple(range(rank))
    return ((ct_axes, free), (lead, ob)), True, None if same else permutation


@memoize
def dimension_text(numbers: tuple) -> str:
    """Dimension numbers as StableHLO writes them."""
    (lc, rc), (lb, rb) = numbers
    lists = {
        "lhs_batching_dimensions": lb,
        "rhs_batching_dimensions": rb,
        "lhs_contracting_dimensions": lc,
        "rhs_contracting_dimensions": rc,
    }
    return f"#stablehlo.dot<{', '.join(f'{k} = {list(v)}' for k, v in lists.items() if v)}>"


def product_dtypes(
    lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray, params: dict
) -> tuple[Sequence[np.dtype], np.dtype, DotAlgorithm | None]:
    """Return the dtypes and the algorithm of a product.

    They are the dtypes of both operands, the dtype of the result before it is converted to `out`'s,
    and the algorithm, or None if the caller asks for no algorithm.
    """
    (dtype, _), _ = product_dtype(dot_general_p.name, lhs, rhs, params["preferred_element_type"])
    kinds: Sequence[np.dtype] = (dtype, dtype)
    if dtype.itemsize == 1 and dtypes.is_float(dtype):
        kinds = lhs.dtype, rhs.dtype  # neither of them holds the other
    if dtypes.is_integer(dtype) and dtype in dtypes.PACKED:  # XLA lacks some of such products
        return [dtypes.whole_byte_dtype(dtype)] * 2, dtypes.whole_byte_dtype(out.dtype), None
    precision = params["precision"]
    algorithm = precision.value if isinstance(precision, DotAlgorithmPreset) else precision
    if not isinstance(algorithm, DotAlgorithm) or not dtypes.is_float(dtype):
        return kinds, out.dtype, None
    kinds, made = algorithm_dtypes(algorithm, lhs.dtype, rhs.dtype, out.dtype)
    return kinds, made, algorithm


def check_algorithm(platform: str, algorithm: DotAlgorithm, name: Any) -> None:
    """Raise ValueError where the platform lacks an algorithm, which compiling would say worse."""
    if platform == "cpu" and algorithm not in CPU_ALGORITHMS:
        raise ValueError(
            f"dot_general: precision must be an algorithm that the platform has; got {name} on "
            'CPU. Hint: precision="F32_F32_F32"'
        )


def algorithm_dtypes(algorithm: DotAlgorithm, lhs: Any, rhs: Any, out: Any) -> tuple:
    """The dtypes that an algorithm takes its operands in, and the one that it gives."""
    kinds = []
    for kind, dtype in zip(algorithm[:2], (lhs, rhs), strict=True):
        if kind == "any":
            kinds.append(dtype)
        elif kind == "tf32" or (
            np.dtype(kind) == _BF16 and (dtype == _F32 or algorithm.num_primitive_operations > 1)
        ):  # operands that are rounded to these are stored as float32
            kinds.append(_F32)
        else:
            kinds.append(np.dtype(kind))
    accumulate = algorithm.accumulation_type
    kept = kinds[0] == kinds[1] == out or accumulate == "any" or np.dtype(accumulate) == out
    return kinds, out if kept else np.dtype(accumulate)


def algorithm_text(algorithm: DotAlgorithm, lhs: np.dtype, rhs: np.dtype) -> str:
    """The StableHLO attribute of an algorithm on operands of these dtypes."""
    types = [
        kind if kind == "tf32" else dtypes.hlo_name(given if kind == "any" else np.dtype(kind))
        for kind, given in zip(algorithm[:3], (lhs, rhs, lhs), strict=True)
    ]
    values = [*types, *algorithm[3:6], str(algorithm[6]).lower()]
    listed = (f"{k} = {v}" for k, v in zip(DotAlgorithm._fields, values, strict=True))
    return f"#stablehlo.dot_algorithm<{', '.join(listed)}>"


def read_dimensions(op: str, given: Any) -> tuple:
    """((lhs contracting, rhs contracting), (lhs batch, rhs batch)) as tuples."""

    def read(pairs: Any) -> tuple:
        (lc, rc), (lb, rb) = pairs
        lc, rc, lb, rb = [index_tuple(axes, op, "dimension_numbers") for axes in (lc, rc, lb, rb)]
        return (lc, rc), (lb, rb)

    what = "((lhs contracting, rhs contracting), (lhs batch, rhs batch)), sequences of axes"
    return check_parameter(op, "dimension_numbers", given, what, read)


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Multiply two arrays and sum over contracting axes, for each position along batch axes.

    It is the general form of all products of matrices; `jnp.einsum` is written with it.

    Args:
      lhs: an array.
      rhs: an array.
      dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)), four
        sequences of axes. Contracting axes are summed over. Batch axes are kept, and are in both
        operands.
      precision: a `Precision`, such as "highest", for both operands or a pair; a
        `DotAlgorithmPreset`; or None for `default_matmul_precision`.
      preferred_element_type: the dtype of the result and of the sums. By default
        it is the dtype of the operands.
      out_sharding: the sharding of the result over explicit axes of a mesh. By default it is
        sharded as the free axes of the operands.

    Returns:
      An array with the batch axes first, then the other axes of `lhs`, then the other axes of
      `rhs`.

    Raises:
      ShapeError: the sizes of contracting or batch axes differ.

    >>> lax.dot_general(np.ones((3, 4)), np.ones((4, 5)), (([1], [0]), ([], []))).shape
    (3, 5)
    >>> x, y = jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))
    >>> lax.dot_general(x, y, (([2], [1]), ([0], [0]))).shape
    (5, 2, 4)
    """
    if preferred_element_type is not None:
        preferred_element_type = dtypes.check_user_dtype(preferred_element_type, "dot_general")
    numbers = read_dimensions("dot_general", dimension_numbers)
    rank = typeof(lhs).ndim + typeof(rhs).ndim - 2 * len(numbers[0][0]) - len(numbers[1][0])
    return dot_general_p.apply(
        lhs,
        rhs,
        dimension_numbers=numbers,
        precision=canonical_precision("dot_general", precision),
        preferred_element_type=preferred_element_type,
        out_sharding=resolve_sharding("dot_general", out_sharding, rank, lhs, rhs),
    )[0]


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply vectors and matrices.

    Two vectors give a scalar, a matrix and a vector a vector, two matrices a matrix. With
    `dimension_numbers` it is `dot_general`.

    Args:
      lhs: an array of rank 1 or 2.
      rhs: an array of rank 1 or 2.
      dimension_numbers: as for `dot_general`. By default the last axis of `lhs` is multiplied with
        the first axis of `rhs`.
      precision: the precision of the products, as for `dot_general`. None is the default.
      preferred_element_type: the dtype of the result. By default it is the dtype of the operands.
      out_sharding: the sharding of the result over explicit axes of a mesh. By default it follows
        from the operands.

    Returns:
      An array of rank `lhs.ndim + rhs.ndim - 2`.

    Raises:
      ShapeError: the sizes of the axes that are multiplied differ; an operand is not of rank 1 or
        2.

    >>> lax.dot(jnp.ones((2, 3)), jnp.ones((3, 4))).shape
    (2, 4)
    >>> x = jnp.full(3, 100, np.int8)
    >>> print(lax.dot(x, x, preferred_element_type=np.int32))
    30000
    """
    if dimension_numbers is None:
        x, y = typeof(lhs, "dot"), typeof(rhs, "dot")
        if x.ndim not in (1, 2) or y.ndim not in (1, 2):
            raise ShapeError(
                "dot: operands must be vectors or matrices, or dimension_numbers given; "
                f"got {x}, {y}."
            )
        dimension_numbers = ((x.ndim - 1,), (0,)), ((), ())
    return dot_general(
        lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding
    )


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Multiply matrices that are stacked along leading axes.

    Args:
      lhs: an array of shape (batch axes, n, k).
      rhs: an array of shape (batch axes, k, m) with the same batch axes. Unlike in `jnp.matmul` the
        batch axes are not broadcast.
      precision: the precision of the products, as for `dot_general`. None is the default.

    Returns:
      An array of shape (batch axes, n, m).

    Raises:
      ShapeError: the batch axes or the sizes k differ.

    >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    x, y = typeof(lhs, "batch_matmul"), typeof(rhs, "batch_matmul")
    if x.ndim != y.ndim or x.ndim < 2:
        raise ShapeError(
            f"batch_matmul: operands must have equal ranks of at least 2; got {x}, {y}."
        )
    stack = tuple(range(x.ndim - 2))
    return dot_general(lhs, rhs, (((x.ndim - 1,), (x.ndim - 2,)), (stack, stack)), precision)


# --- ragged_dot -----------------------------------------------------------------------------


class RaggedDotDimensionNumbers(NamedTuple):
    """The axes of a `lax.ragged_dot_general`.

    Args:
      dot_dimension_numbers: the axes of a `lax.dot_general`:
        `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`.
      lhs_ragged_dimensions: the axis of `lhs` that falls into groups, a sequence of one int.
      rhs_group_dimensions: the axis of `rhs` that holds one slice for each group, a sequence of one
        int. It is empty if the ragged axis is contracted or a batch axis.

    >>> axes = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    >>> lhs, rhs, sizes = jnp.ones((5, 2)), jnp.ones((3, 2, 4)), jnp.array([2, 2, 1])
    >>> lax.ragged_dot_general(lhs, rhs, sizes, axes).shape
    (5, 4)
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply groups of rows, each with a matrix of its own.

    It is for mixtures of experts: the rows are sorted by expert. Here it costs g products of all
    rows of `lhs`.

    Args:
      lhs: an array of shape (m, k). The first `group_sizes[0]` rows are the first group, and so on.
      rhs: an array of shape (g, k, n), a matrix for each group.
      group_sizes: an integer array of shape (g,). Rows after the last group give 0.
      precision: the precision of the products, as for `dot_general`. None is the default.
      preferred_element_type: the dtype of the result. By default it is the dtype of the operands.
      group_offset: must be None; it is accepted for compatibility with JAX.
      out_sharding: the sharding of the result over explicit axes of a mesh.

    Returns:
      An array of shape (m, n).

    >>> x = jnp.ones((3, 2))
    >>> matrices = jnp.array([1.0, 10.0]).reshape(2, 1, 1) * jnp.ones((2, 2, 1))
    >>> print(lax.ragged_dot(x, matrices, jnp.array([1, 2])).ravel())
    [ 2. 20. 20.]
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    how = numbers, precision, preferred_element_type, group_offset, out_sharding
    return ragged_dot_general(lhs, rhs, group_sizes, *how)


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply as `dot_general` does, where an axis of `lhs` falls into consecutive groups.

    The group of a row decides which slice of `rhs` it is multiplied by. Mixtures of experts use
    this: rows are sorted by expert, and each expert has its own matrix.

    There are three modes, by the kind of the ragged axis. If it is free, each group is multiplied
    by its own slice of `rhs` along the group axis. If it is contracted, each group is summed by
    itself, and the result has an axis of groups in front. If it is a batch axis, groups make no
    difference.

    Args:
      lhs: an array of floats, integers or complex numbers.
      rhs: an array of such.
      group_sizes: an integer array of shape (g,), the sizes of the groups in order. It may have
        more axes in front, (..., g): the batch axes of `lhs`, and the axes of its kind before the
        ragged one.
      ragged_dot_dimension_numbers: a `RaggedDotDimensionNumbers`, which names the axes.
      precision: a `Precision`, a name or an algorithm, as in `dot_general`. None is the default.
      preferred_element_type: the dtype of the result. None takes it from the operands.
      group_offset: it must be None, the default.
      out_sharding: the sharding of the result over explicit axes of a mesh. None derives it.

    Returns:
      An array. It has the axes of `dot_general` without the group axis of `rhs`, or with an axis
      of size g in front if the ragged axis is contracted. Rows beyond the last group are zero.

    >>> axes = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    >>> lhs, rhs = jnp.ones((3, 2)), jnp.array([[[1.0], [1.0]], [[5.0], [5.0]]])
    >>> print(lax.ragged_dot_general(lhs, rhs, jnp.array([1, 2]), axes))
    [[ 2.]
     [10.]
     [10.]]
    """
    op = "ragged_dot_general"
    if out_sharding is not None:
        how = ragged_dot_dimension_numbers, precision, preferred_element_type, group_offset
        return compute_freely(op, out_sharding, ragged_dot_general, lhs, rhs, group_sizes, *how)
    name = "ragged_dot_dimension_numbers"
    pairs, ragged, group = check_parameter(
        op,
        name,
        ragged_dot_dimension_numbers,
        "a RaggedDotDimensionNumbers",
        lambda ns: (ns[0], *[index_tuple(axes, op, name) for axes in (ns[1], ns[2])]),
    )
    (lc, rc), (lb, rb) = read_dimensions(op, pairs)
    x, y, sizes = typeof(lhs), typeof(rhs), typeof(group_sizes)
    if len(ragged) != 1 or ragged[0] not in range(x.ndim) or not sizes.ndim:
        raise ShapeError(
            f"{op}: one axis of lhs must be ragged, and group_sizes have an axis; got axes "
            f"{ragged} of {x}, {sizes}."
        )
    (ragged,) = ragged
    if ragged in lb:
        return dot_general(lhs, rhs, ((lc, rc), (lb, rb)), precision, preferred_element_type)
    kind = lc if ragged in lc else [a for a in range(x.ndim) if a not in lc and a not in lb]
    outer = [*lb, *kind[: list(kind).index(ragged)]]
    if not dtypes.is_integer(sizes.dtype) or sizes.shape[:-1] not in (
        (),
        tuple(x.shape[a] for a in outer),
    ):
        raise ShapeError(
            "ragged_dot_general: group_sizes must be integers of shape (groups,), or with the axes "
            f"{outer} of lhs before that; got {sizes} for {x}."
        )
    if group_offset is not None or len(group) != (ragged not in lc):
        raise ShapeError(
            "ragged_dot_general: group_offset must be None, and rhs have one group axis where the "
            f"ragged axis of lhs is free, else none; got {group_offset}, {group}."
        )
    if any(y.shape[a] != sizes.shape[-1] for a in group):
        raise ShapeError(
            f"ragged_dot_general: rhs must have a slice for each group; got {y} for {sizes}."
        )
    lhs = split_groups(lhs, group_sizes, ragged, outer if sizes.ndim > 1 else [])
    lc, lb = [a + 1 for a in lc], [a + 1 for a in lb]
    numbers = (((0, *lc), (*group, *rc)) if group else (lc, rc)), (lb, rb)
    out = dot_general(lhs, rhs, numbers, precision, preferred_element_type)
    return out if group else layout.move_to_front(out, len(lb))


def split_groups(x: Any, sizes: Any, ragged: int, outer: Sequence[int]) -> Any:
    """A stack of copies of `x`, each with all but one group along axis `ragged` set to 0.

    `sizes` is (*outer, groups), its axes but the last being axes `outer` of `x`.
    """
    if dtypes.itemsize_bits(typeof(sizes).dtype) < 32:  # which may not hold the sums of sizes
        sizes = layout.convert(sizes, np.dtype(np.int32))
    aval, groups = typeof(sizes), typeof(sizes).shape[-1]
    before = le(*(layout.broadcasted_iota(aval.dtype, (groups, groups), axis) for axis in (0, 1)))
    ends = dot(
        sizes,
        layout.convert(before, aval.dtype),
        dimension_numbers=(((len(outer),), (0,)), ((), ())),
    )
    shape = (groups, *typeof(x).shape)
    order = sorted(range(len(outer)), key=lambda k: outer[k])

    def spread(bounds: Any) -> Any:
        bounds = layout.transpose(bounds, (len(outer), *order))
        return layout.broadcast_in_dim(bounds, shape, (0, *(outer[k] + 1 for k in order)))

    place = layout.broadcasted_iota(aval.dtype, shape, ragged + 1)
    mine = bitwise_and(le(spread(sub(ends, sizes)), place), lt(place, spread(ends)))
    copies = layout.broadcast_in_dim(x, shape, tuple(range(1, len(shape))))
    return select(mine, copies, layout.zeros(typeof(copies)))
