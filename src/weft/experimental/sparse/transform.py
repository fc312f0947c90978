"""`sparsify`: functions of dense arrays, applied to sparse ones.

`SparseTrace` is an interpreter with values that may be sparse arrays. `RULES` has a function for
each primitive that it supports. An operation of sparse operands with a dense result raises.
Programs within (jit, loops, branches, custom rules) are interpreted in the same way.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes, lax
from weft import numpy as jnp
from weft.api.functions import check_callable
from weft.control.cond import cond_p
from weft.control.loop import while_p
from weft.control.scan import scan_p
from weft.core.aval import ShapedArray, typeof
from weft.core.primitive import Primitive, split_inputs
from weft.core.source import boundary
from weft.core.trace import Trace, Tracer, current, eval_context, run_once
from weft.experimental.sparse import products, shaping
from weft.experimental.sparse.base import CoordinateArray, JAXSparse
from weft.experimental.sparse.entries import bcoo_sum_duplicates, bcoo_todense
from weft.primitives import elementwise as ops
from weft.primitives import layout
from weft.primitives.bits import reduce_precision_p
from weft.primitives.families import Identity
from weft.pytrees import flatten, unflatten
from weft.util import memoize
from weft.xla.typing import Array

MAX_REPEATED = 2**16  # elements; a larger dense array is repeated only where it has to be


class SparseTracer(Tracer):
    """The traced value of a sparse array within `sparsify`. To its function it looks dense.

    Attributes:
      spvalue: the sparse array.

    >>> sparse.sparsify(lambda x: (2 * x).shape)(sparse.BCOO.fromdense(jnp.eye(2)))
    (2, 2)
    """

    __slots__ = ("spvalue",)

    def __init__(self, trace: SparseTrace, *, spvalue: JAXSparse):
        self.owner = trace
        self.spvalue = spvalue
        self.aval = ShapedArray(spvalue.shape, spvalue.dtype)

    def origin(self) -> str:
        return "from a sparse argument of a sparsified function"

    def __repr__(self) -> str:
        return f"SparseTracer<{self.aval}>"


class RepeatedTracer(Tracer):
    """A dense array repeated to a large shape, which a sparse one may be multiplied by: not yet."""

    __slots__ = ("params", "value")

    def __init__(self, trace: SparseTrace, value: Any, params: dict):
        self.owner = trace
        self.value = value
        self.params = params
        self.aval = typeof(value).update(shape=params["shape"])

    def repeat(self, narrow: bool) -> Any:
        """The array; if `narrow`, of size 1 along the axes that it would be repeated along."""
        dims, shape = self.params["broadcast_dimensions"], list(self.params["shape"])
        if narrow:
            shape = [1] * len(shape)
            for d, n in zip(dims, np.shape(self.value), strict=True):
                shape[d] = n
        return lax.broadcast_in_dim(self.value, shape, dims)


class SparseTrace(Trace):
    """Applies primitives to sparse arrays, by the rules of this file."""

    __slots__ = ()

    def unbox(self, x: Any, narrow: bool = False) -> Any:
        """Return the value of a tracer of this trace; other values are returned unchanged."""
        mine = isinstance(x, SparseTracer | RepeatedTracer) and x.owner is self
        return x if not mine else x.spvalue if type(x) is SparseTracer else x.repeat(narrow)

    def process(self, prim: Primitive, args: Any, params: dict) -> list:
        rule = RULES.get(prim)
        narrow = rule in (multiply_rule, divide_rule) and any(type(x) is SparseTracer for x in args)
        try:
            current.trace = self.parent
            values = [self.unbox(x, narrow) for x in args]
            if not any(isinstance(x, JAXSparse) for x in values):
                if rule is broadcast_rule and math.prod(params["shape"]) > MAX_REPEATED:
                    return [RepeatedTracer(self, values[0], params)]
                outs = self.parent.process(prim, values, params)  # type: ignore[union-attr]
            else:
                outs = apply_sparse(prim, values, params)
        finally:
            current.trace = self
        return [SparseTracer(self, spvalue=y) if isinstance(y, JAXSparse) else y for y in outs]


def apply_sparse(prim: Primitive, values: list, params: dict) -> list:
    """Return the results of a primitive, some of whose operands are sparse."""
    if prim in LOOPS:
        return LOOPS[prim](prim, values, params)
    if hasattr(prim, "program"):
        return run_sparse(params[prim.program], values)
    rule = RULES.get(prim)
    if (
        rule is None
        and len(values) == 1
        and keeps_zero(prim, values[0].dtype, tuple(params.items()))
    ):
        rule = apply_elementwise
    if rule is None:
        listed = ", ".join(map(repr, (x for x in values if isinstance(x, JAXSparse))))
        raise NotImplementedError(
            f"{prim.name}: has no rule for sparse arrays, most of whose results would not be zero; "
            f"got {listed}. Hint: sparse.todense(x)."
        )
    if rule is dot_rule:
        found = [x.contract(values, params) for x in values if hasattr(x, "contract")]
        if found and found[0] is not None:
            return [found[0]]
    given = [x.to_bcoo() if hasattr(x, "to_bcoo") else x for x in values]
    outs = rule(prim, *given, **params)
    outs = outs if isinstance(outs, list) else [outs]
    return convert_results(values, outs)


def convert_results(values: Sequence[Any], outs: list) -> list:
    """Results in the class of the sparse ones among the values, where they have one and it fits."""
    kinds = {type(x) for x in values if isinstance(x, JAXSparse)}
    kind = kinds.pop() if len(kinds) == 1 else None
    if not hasattr(kind, "convert_back"):
        return outs
    return [kind.convert_back(y) if isinstance(y, CoordinateArray) else y for y in outs]


def run_sparse(fun: Callable, args: Sequence[Any]) -> list:
    """Return the results of a flat function of dense arrays, some of whose arguments are sparse."""
    trace = SparseTrace(current.trace)
    boxed = [SparseTracer(trace, spvalue=x) if isinstance(x, JAXSparse) else x for x in args]
    return [trace.unbox(y) for y in run_once(trace, fun, boxed)]


def is_sparse(x: Any) -> bool:
    """Return True if `x` is a sparse array."""
    return isinstance(x, JAXSparse)


def sparsify(f: Callable, use_tracer: bool = False) -> Callable[..., Any]:
    """Return a function of dense arrays as one that also takes sparse arrays.

    Operations that map zeros to zeros have sparse results: sums, products, slices,
    transposes, `jnp.sin`. Operations that end in a small result, such as `jnp.sum`, give a dense
    one. Others are errors. `sparse.todense` makes an array dense.

    Args:
      f: a function of pytrees of arrays.
      use_tracer: a choice between two ways of JAX's, which are one here. The default is False.

    Returns:
      A function of pytrees of arrays, dense or sparse.

    >>> mat = sparse.BCOO.fromdense(jnp.eye(3))
    >>> sparse.sparsify(lambda x, v: jnp.sin(2 * x).T @ v)(mat, jnp.ones(3))
    Array([0.9092974, 0.9092974, 0.9092974], dtype=float32)
    """
    check_callable("sparsify", f, wraps=True)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs), is_sparse)
        out_tree: Any = None

        def flat(*leaves: Any) -> list:
            nonlocal out_tree
            args, kwargs = unflatten(tree, leaves)
            outs, out_tree = flatten(f(*args, **kwargs), is_sparse)
            return outs

        outs = run_sparse(flat, leaves)
        return unflatten(out_tree, outs)

    return boundary(wrapped, f)


# --- to dense ---------------------------------------------------------------------------------


class Todense(Identity):
    """out = x, and a sparse x becomes dense: a sparsified function requests it by name."""

    name = "todense"


todense_p = Todense()


def todense(arr: Any) -> Array:
    """Return a sparse array as a dense one. It works within `sparsify` as well.

    Args:
      arr: a sparse array, or a dense one, which is returned unchanged.

    Returns:
      A dense array.

    >>> sparse.todense(sparse.BCOO.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if isinstance(arr, JAXSparse):
        return arr.todense()
    return todense_p.apply(arr)[0] if isinstance(arr, Tracer) else arr


# --- rules ------------------------------------------------------------------------------------

RULES: dict[Primitive, Callable] = {}


def refuse_dense(name: str, why: str, x: Any) -> NotImplementedError:
    """The error for a result that would be dense."""
    return NotImplementedError(
        f"{name}: must keep zeros zero where arrays are sparse{why}; got {x!r}. "
        "Hint: sparse.todense(x)."
    )


def merge_duplicates(mat: CoordinateArray) -> Any:
    """Return a BCOO with one entry at each position, and the same number of stored entries."""
    if mat.unique_indices:
        return mat
    return bcoo_sum_duplicates(mat, nse=mat.nse if products.is_traced(mat) else None)


def apply_linear(prim: Primitive, mat: Any, **params: Any) -> Any:
    """Apply to each entry an operation that is linear in each element."""
    return mat.make(prim.apply(mat.data, **params)[0])


@memoize
def keeps_zero(prim: Primitive, dtype: np.dtype, params: tuple) -> bool:
    """Return True for a function of one element that is 0 at 0: sparse arrays stay sparse."""
    if not isinstance(prim, ops.Elementwise) or len(prim.derivs) != 1:
        return False
    with eval_context():
        return prim.apply(np.zeros((), dtype), **dict(params))[0] == 0


def apply_elementwise(prim: Primitive, mat: Any, **params: Any) -> Any:
    """Apply to each element an operation that keeps 0, after duplicates are added up."""
    mat = merge_duplicates(mat)
    return mat.make(prim.apply(mat.data, **params)[0])


def apply_power(prim: Primitive, x: Any, *more: Any, **params: Any) -> Any:
    """A power of a sparse array, by an exponent above 0 that is known."""
    y = more[0] if more else params["y"]
    if not is_sparse(x) or isinstance(y, Tracer | JAXSparse) or np.any(np.asarray(y) <= 0):
        raise refuse_dense(prim.name, ", and so have a known exponent above 0", y)
    mat = merge_duplicates(x)
    power = jnp.broadcast_to(y, mat.data.shape) if more and np.ndim(y) == 0 else None
    if more and power is None:
        raise refuse_dense(prim.name, ", and so have one exponent", y)
    return mat.make(prim.apply(mat.data, *([power] if more else []), **params)[0])


def apply_extremum(replaces: Callable, prim: Primitive, x: Any, y: Any) -> Any:
    """Return the larger or the smaller of a sparse array and a number.

    `replaces(number, 0)` is True where zeros would become the number.
    """
    mat, other = (x, y) if is_sparse(x) else (y, x)
    single = not isinstance(other, Tracer | JAXSparse) and np.ndim(other) == 0
    if not single or replaces(other, 0):
        raise refuse_dense(prim.name, "", other)
    mat = merge_duplicates(mat)
    return mat.make(prim.apply(mat.data, jnp.full_like(mat.data, other))[0])


def divide_rule(prim: Primitive, x: Any, y: Any, **_: Any) -> Any:
    """x / y; of integers what `lax.div` gives."""
    if is_sparse(y) or not is_sparse(x):
        raise refuse_dense(prim.name, ", and so not be divided by", y)
    if dtypes.is_inexact(x.dtype):
        return products.divide(x, y)
    return x.make(products.combine_dense("div", merge_duplicates(x), y, lax.div, 1))


def subtract_rule(prim: Primitive, x: Any, y: Any) -> Any:
    """x - y."""
    return products.add(x, y.make(-y.data) if is_sparse(y) else -y)


def stack_axis(prim: Primitive, *xs: Any, axis: int) -> Any:
    """Sparse arrays along a new axis."""
    require_sparse(prim, xs)
    shape = (*xs[0].shape[:axis], 1, *xs[0].shape[axis:])
    dims = [i for i in range(len(shape)) if i != axis]
    grown = [shaping.bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=dims) for x in xs]
    return shaping.bcoo_concatenate(grown, dimension=axis)


def join_axis(prim: Primitive, *xs: Any, dimension: int, **_: Any) -> Any:
    """Sparse arrays along an axis."""
    require_sparse(prim, xs)
    return shaping.bcoo_concatenate(xs, dimension=dimension)


def require_sparse(prim: Primitive, xs: Sequence[Any]) -> None:
    """Raise where some operands are dense."""
    dense = [x for x in xs if not is_sparse(x)]
    if dense:
        raise NotImplementedError(
            f"{prim.name}: must be of sparse arrays alone, where one is; got {dense[0]!r:.80}. "
            "Hint: BCOO.fromdense(x, nse=...), or sparse.todense(x) of the others."
        )


def split_axis(prim: Primitive, x: Any, *, sizes: Sequence[int], axis: int) -> list:
    """The parts of a sparse array along an axis."""
    out, start = [], 0
    for n in sizes:
        first, last = [0] * x.ndim, list(x.shape)
        first[axis], last[axis] = start, start + n
        out.append(shaping.bcoo_slice(x, start_indices=first, limit_indices=last))
        start += n
    return out


def tile_axes(prim: Primitive, x: Any, *, reps: Sequence[int], **_: Any) -> Any:
    """A sparse array repeated along its axes."""
    for axis, n in enumerate(reps):
        x = shaping.bcoo_concatenate([x] * n, dimension=axis) if n > 1 else x
    return x


def sum_axes(prim: Primitive, x: Any, *, axes: Sequence[int], **_: Any) -> Any:
    """The sum over axes; that over all is dense."""
    out = shaping.bcoo_reduce_sum(x, axes=axes)
    return bcoo_todense(out) if not out.shape else out


def multiply_rule(prim: Primitive, x: Any, y: Any, **_: Any) -> Any:
    """x * y."""
    return products.multiply(x, y)


def add_rule(prim: Primitive, x: Any, y: Any, **_: Any) -> Any:
    """x + y."""
    return products.add(x, y)


def dot_rule(prim: Primitive, x: Any, y: Any, **params: Any) -> Any:
    """A contraction."""
    return products.bcoo_dot_general(x, y, **params)


def gather_rule(prim: Primitive, x: Any, indices: Any, *, dimension_numbers: Any, **params: Any):
    """Parts at indices."""
    if is_sparse(indices):
        raise refuse_dense(prim.name, ", and its indices be dense", indices)
    return shaping.bcoo_gather(x, indices, dimension_numbers, **params)


def slice_rule(prim: Primitive, x: Any, *starts: Any, slice_sizes: Sequence[int], **_: Any) -> Any:
    """A part from traced indices."""
    return shaping.bcoo_dynamic_slice(x, starts, slice_sizes)


def convert_rule(prim: Primitive, x: Any, *, new_dtype: Any, **_: Any) -> Any:
    """Another dtype; what rounds is done to elements, not to entries."""
    exact = dtypes.is_inexact(np.dtype(new_dtype)) or dtypes.is_integer(x.dtype)
    return products.convert_elements(x if exact else merge_duplicates(x), new_dtype)


def conv_rule(prim: Primitive, x: Any, y: Any, **params: Any) -> Any:
    """A convolution."""
    if not is_sparse(x):
        raise NotImplementedError(
            f"{prim.name}: must be of a sparse array and a kernel; got a sparse kernel {y!r}. "
            "Hint: sparse.todense(kernel)."
        )
    return products.bcoo_conv_general_dilated(x, y, **params)


def pass_params(fun: Callable) -> Callable:
    """Return the rule of a primitive that has the same parameters as the function for BCOOs."""
    return lambda prim, x, **params: fun(x, **params)


broadcast_rule = pass_params(shaping.bcoo_broadcast_in_dim)
LINEAR = (ops.neg_p, ops.real_p, ops.imag_p, ops.conj_p, layout.copy_p, reduce_precision_p)
RULES |= dict.fromkeys(LINEAR, apply_linear)
RULES |= {
    ops.add_p: add_rule,
    ops.sub_p: subtract_rule,
    ops.mul_p: multiply_rule,
    ops.div_p: divide_rule,
    ops.max_p: functools.partial(apply_extremum, operator.gt),
    ops.min_p: functools.partial(apply_extremum, operator.lt),
    lax.integer_pow_p: apply_power,
    lax.pow_p: apply_power,
    layout.convert_element_type_p: convert_rule,
    layout.broadcast_in_dim_p: broadcast_rule,
    layout.reduce_sum_p: sum_axes,
    layout.reshape_p: pass_params(shaping.bcoo_reshape),
    layout.rev_p: pass_params(shaping.bcoo_rev),
    layout.squeeze_p: pass_params(shaping.bcoo_squeeze),
    layout.transpose_p: pass_params(shaping.bcoo_transpose),
    lax.concatenate_p: join_axis,
    lax.slice_p: pass_params(shaping.bcoo_slice),
    lax.split_p: split_axis,
    lax.stack_p: stack_axis,
    lax.tile_p: tile_axes,
    lax.dynamic_slice_p: slice_rule,
    lax.gather_p: gather_rule,
    lax.dot_general_p: dot_rule,
    lax.conv_general_dilated_p: conv_rule,
    todense_p: lambda prim, x, **_: bcoo_todense(x),
}


# --- programs within --------------------------------------------------------------------------


def run_branches(prim: Primitive, values: list, params: dict) -> list:
    """A branch on an index."""
    index, *operands = values
    runs = [
        functools.partial(lambda jaxpr, *xs: run_sparse(jaxpr, xs), body.jaxpr)
        for body in prim.bodies(params)
    ]
    return lax.switch(index, runs, *operands)


def run_while(prim: Primitive, values: list, params: dict) -> list:
    """A loop while a test holds."""
    body, test = prim.bodies(params)
    consts, init, _ = split_inputs(body, [values[i] for i in body.operands])
    fixed = [values[i] for i in test.operands][: len(test.operands) - len(init)]
    return lax.while_loop(
        lambda carry: run_sparse(test.jaxpr, [*fixed, *carry])[0],
        lambda carry: run_sparse(body.jaxpr, [*consts, *carry]),
        list(init),
    )


def run_scan(prim: Primitive, values: list, params: dict) -> list:
    """Run a loop over rows. The rows of a sparse array are the elements of its first batch axis."""
    (body,) = prim.bodies(params)
    consts, init, xs = split_inputs(body, values)

    def step(carry: list, x: list) -> tuple[list, list]:
        outs = run_sparse(body.jaxpr, [*consts, *carry, *x])
        return outs[: len(init)], outs[len(init) :]

    given = {k: params[k] for k in ("length", "reverse", "unroll")}
    carry, ys = lax.scan(step, list(init), list(xs), **given)
    return [*carry, *ys]


LOOPS = {cond_p: run_branches, while_p: run_while, scan_p: run_scan}
