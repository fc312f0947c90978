"""`sparse_jacobian` and `sparse_hessian`: derivatives that are computed entry by entry.

The pattern follows from the program of the tangents (dependence.py), a coloring of it says which
columns or rows one product computes together (coloring.py), and the products are Jacobian-vector
and vector-Jacobian products, mapped over the colors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse

from weft import dtypes
from weft import numpy as jnp
from weft.api import grad, jacobians
from weft.api.functions import FlatFun, check_callable
from weft.api.jit import jit
from weft.api.make_jaxpr import eval_shape
from weft.control.custom import CustomLinear
from weft.core.aval import ShapedArray, is_valid_value, typeof
from weft.core.facts import Cost
from weft.core.jaxpr import Jaxpr, Var, memo_jaxpr, subjaxprs
from weft.core.source import boundary
from weft.core.stage import stage, stage_closed
from weft.core.trace import Tracer, ensure_compile_time_eval
from weft.errors import DtypeError, ShapeError
from weft.experimental.sparse.bcoo import BCOO
from weft.experimental.sparse.bcsr import BCSR
from weft.passes.dce import dce_jaxpr, drop_dead_code
from weft.primitives.layout import instantiate
from weft.pytrees import flatten, unflatten
from weft.sparsity.coloring import Coloring, list_rows, plan, plan_symmetric
from weft.sparsity.dependence import State, follow, know
from weft.sparsity.pattern import Pattern, read_pattern, tidy
from weft.transforms.jvp import jvp
from weft.util import check_option, fun_name
from weft.xla.array import ArrayImpl

MODES = ("auto", "forward", "reverse", "both")
FORMATS = ("bcoo", "bcsr")
COLORINGS = ("auto", "star", "acyclic")
MAX_FOLDED_BYTES = 1 << 26  # of products of seeds that are computed once, and stay in memory


class SparseDerivative:
    """A function that computes a sparse derivative.

    `sparse_jacobian` and `sparse_hessian` return such functions. They take the arguments of the
    given function. The first call with arguments of some types finds the pattern of entries and
    compiles. Later calls compute only the values. The method `pattern` returns the pattern. Users
    do not construct the class.

    Attributes:
      __wrapped__: the function whose Jacobian is computed; the gradient for `sparse_hessian`.
      __name__: the name of the function.

    >>> jac = weft.sparse_jacobian(lambda x: x**2)
    >>> type(jac).__name__
    'SparseDerivative'
    >>> jac(jnp.array([1.0, 2.0])).todense()
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """

    def __init__(
        self, op: str, fun: Callable, argnums: Any, has_aux: bool, holomorphic: bool,
        find_plan: Callable, format: str,
    ):  # fmt: skip
        check_callable(op, fun, wraps=True)
        grad.check_argnums(op, argnums)
        check_option(op, "format", format, *FORMATS)
        self.__wrapped__ = fun
        self._op = op
        self._argnums = argnums
        self._has_aux = has_aux
        self._holomorphic = holomorphic
        self._find_plan = find_plan
        self._format = format
        compute = lambda *args, **kwargs: self._compute(*args, **kwargs)
        compute.__name__ = f"{op}({fun_name(fun)})"  # users see it as the name of a program
        self._compute_entries = compute
        self._compiled: dict[tuple, Callable] = {}  # by the arguments that are static
        self.__name__ = fun_name(fun)

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        static = find_static(args, kwargs)
        compiled = self._compiled.get(static)
        if compiled is None:
            numbers, names = static
            compiled = jit(self._compute_entries, static_argnums=numbers, static_argnames=names)
            self._compiled[static] = compiled
        return compiled(*args, **kwargs)

    def pattern(self, *args: Any, **kwargs: Any) -> Pattern:
        """Return the `Pattern` for arguments of these types. No values are computed.

        Args:
          args: the arguments of the function: arrays, or `ShapeDtypeStruct`s of them.
          kwargs: the keyword arguments of the function.
        """
        found: list[Pattern] = []
        numbers, names = find_static(args, kwargs)
        static = {name: kwargs.pop(name) for name in names}

        def look(*arrays: Any, **kwargs: Any) -> None:
            left = iter(arrays)
            whole = tuple(a if i in numbers else next(left) for i, a in enumerate(args))
            chosen, _ = self._choose(whole, {**kwargs, **static})
            found.append(Pattern(*self._find_plan(chosen.flat, chosen.avals)))

        eval_shape(look, *[a for i, a in enumerate(args) if i not in numbers], **kwargs)
        return found[0]

    def _choose(self, args: tuple, kwargs: dict) -> tuple[grad.ChosenArguments, list]:
        """Return the chosen arguments with the staged function, and the types of its results."""
        fun = self.__wrapped__
        chosen = grad.choose_arguments(self._op, fun, self._argnums, args, kwargs, self._has_aux)
        for a in chosen.avals:
            check_type(self._op, a, self._holomorphic, f"inputs must be {{}}; got {a} as an input "
                       f"of {fun_name(fun)}", "x.astype({}), or other argnums")  # fmt: skip
        flat, out_avals = stage_function(chosen.flat, chosen.avals)
        for a in out_avals:
            check_type(self._op, a, self._holomorphic, f"results must be {{}}; got {a}")
        return chosen._replace(flat=flat), out_avals

    def _compute(self, *args: Any, **kwargs: Any) -> Any:
        chosen, out_avals = self._choose(args, kwargs)
        flat = chosen.flat
        matrix, plan = self._find_plan(flat, chosen.avals)
        _, derivative, residuals = grad.linearize_leaves(flat, chosen.leaves, chosen.avals)
        data = compute_entries(plan, derivative, residuals, chosen.avals, out_avals)
        rows = split_blocks(matrix, data, chosen.avals, out_avals)
        if self._format == "bcsr":
            rows = [[compress(self._op, block) for block in row] for row in rows]
        result = flat.result([chosen.unflatten(row) for row in rows])
        return (result, flat.aux) if self._has_aux else result

    def __repr__(self) -> str:
        return f"<{self._op} of {fun_name(self.__wrapped__)}>"


def find_static(args: tuple, kwargs: dict) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the positional and the keyword arguments without arrays: settings, functions."""

    def is_static(x: Any) -> bool:
        if type(x) is ArrayImpl or is_valid_value(x):
            return False
        leaves = flatten(x)[0]
        return bool(leaves) and not any(is_valid_value(y) or hasattr(y, "dtype") for y in leaves)

    numbers = tuple(i for i, x in enumerate(args) if is_static(x))
    return numbers, tuple(name for name, x in kwargs.items() if is_static(x))


def sparse_jacobian(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    mode: Literal["auto", "forward", "reverse", "both"] = "auto",
    format: Literal["bcoo", "bcsr"] = "bcoo",
    pattern: Any = None,
    holomorphic: bool = False,
) -> SparseDerivative:
    """Return the function that computes the Jacobian of `fun` as a sparse array.

    It is for functions each of whose results depends on few inputs: a discretized equation, the
    residuals of a fit, a power grid. `jacfwd` computes such a matrix with as many products as it
    has columns; here columns that share no row are computed by one product.

    Which entries may be other than zero follows from the program of `fun` and the shapes of its
    arguments, never from their values, so that no entry is missed. Arrays that `fun` closes over,
    such as indices and masks, count as part of the program.

    Args:
      fun: a function of arrays, or of pytrees of arrays; `jit` must be able to trace it.
      argnums: the positional arguments to differentiate in; an int, or a sequence of ints.
      has_aux: whether `fun` returns a pair of a result and auxiliary data.
      mode: "forward" computes by columns with Jacobian-vector products, "reverse" by rows with
        vector-Jacobian products, "both" takes each for a part of the matrix, as for the form of an
        arrow. "auto" takes what needs the fewest products, and "reverse" if a custom_vjp function
        has no rule for Jacobian-vector products.
      format: "bcoo", for any shapes; "bcsr", for one vector as a function of one vector.
      pattern: the entries to compute, if they are known: a `Pattern`, a matrix of scipy.sparse, a
        BCOO or an array, whose shape is (elements of the results, elements of the inputs). All
        other entries are taken to be zero.
      holomorphic: if True, `fun` is complex-differentiable, and its inputs and results must be
        complex.

    Returns:
      A function of the arguments of `fun`. For a result of shape S and an input of shape T it
      returns a BCOO of shape S + T with its indices in order; pytrees nest as for `jacfwd`, with
      `has_aux` in a pair with the auxiliary data. Its method `pattern(*args)` returns the pattern.

    Raises:
      DtypeError: an input or a result is not of a real floating-point dtype (complex if
        `holomorphic`).
      ShapeError: a given pattern does not have the shape of the Jacobian.

    >>> f = lambda x: x[1:] ** 2 - x[:-1]
    >>> jac = weft.sparse_jacobian(f)
    >>> jac(jnp.array([1.0, 2.0, 3.0]))
    BCOO(float32[2, 3], nse=4)
    >>> jac(jnp.array([1.0, 2.0, 3.0])).todense()
    Array([[-1.,  4.,  0.],
           [ 0., -1.,  6.]], dtype=float32)
    >>> jac.pattern(jnp.ones(1000))
    Pattern((999, 1000), nnz=1998, products=(2, 0))
    """
    check_option("sparse_jacobian", "mode", mode, *MODES)

    def find_plan(flat: FlatFun, avals: Sequence[ShapedArray]) -> tuple:
        matrix, forward = find_pattern(flat, avals, pattern)
        only_reverse = mode == "auto" and not forward
        return matrix, plan(matrix, "reverse" if only_reverse else mode)

    return SparseDerivative(
        "sparse_jacobian", fun, argnums, has_aux, holomorphic, find_plan, format
    )


def sparse_hessian(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    format: Literal["bcoo", "bcsr"] = "bcoo",
    pattern: Any = None,
    holomorphic: bool = False,
    coloring: Literal["auto", "star", "acyclic"] = "auto",
) -> SparseDerivative:
    """Return the function that computes the Hessian of a scalar function as a sparse array.

    Each product is a Hessian-vector product, forward over reverse mode. As the matrix is symmetric,
    an entry may be computed at its place or at the transposed one, which takes fewer products than
    `sparse_jacobian` of the gradient: two for the form of an arrow of any size.

    Args:
      fun: a function of arrays, or pytrees of arrays, that returns a scalar.
      argnums: the positional arguments to differentiate in; an int, or a sequence of ints.
      has_aux: whether `fun` returns a pair of the scalar and auxiliary data.
      format: "bcoo", for any shapes; "bcsr", for one vector.
      pattern: the entries to compute, if they are known, as for `sparse_jacobian`; it must be
        symmetric.
      holomorphic: if True, `fun` is complex-differentiable, and its inputs and its result must be
        complex.
      coloring: "star" reads each entry from a product. "acyclic" may take fewer products: some
        entries are then found by substitution, as sums of others, which adds rounding errors.
        "auto" takes what needs the fewest products, but no sums of more than 32 terms.

    Returns:
      A function of the arguments of `fun`. For an input of shape T it returns a BCOO of shape
      T + T; pytrees nest as for `hessian`. Its method `pattern(*args)` returns the pattern.

    Raises:
      DtypeError: an input is not of a real floating-point dtype (complex if `holomorphic`).
      ShapeError: `fun` does not return a scalar, or a given pattern has another shape.

    >>> f = lambda x: jnp.sum((x[1:] - x[:-1] ** 2) ** 2)
    >>> weft.sparse_hessian(f)(jnp.array([1.0, 2.0, 3.0])).todense()
    Array([[ 4., -4.,  0.],
           [-4., 38., -8.],
           [ 0., -8.,  2.]], dtype=float32)
    >>> weft.sparse_hessian(f).pattern(jnp.ones(1000))
    Pattern((1000, 1000), nnz=2998, products=(3, 0))
    >>> weft.sparse_hessian(f, coloring="acyclic").pattern(jnp.ones(1000))
    Pattern((1000, 1000), nnz=2998, products=(2, 0))
    """
    check_callable("sparse_hessian", fun, wraps=True)
    check_option("sparse_hessian", "coloring", coloring, *COLORINGS)
    gradient = grad.make_grad("sparse_hessian", fun, argnums, has_aux, holomorphic, False)

    def find_plan(flat: FlatFun, avals: Sequence[ShapedArray]) -> tuple:
        matrix, _ = find_pattern(flat, avals, pattern)
        # An entry other than zero is in the pattern at both of its places.
        both = tidy(matrix.multiply(matrix.T))
        return both, plan_symmetric(both, coloring)

    return SparseDerivative(
        "sparse_hessian", gradient, argnums, has_aux, holomorphic, find_plan, format
    )


def stage_function(
    flat: FlatFun, avals: Sequence[ShapedArray]
) -> tuple[FlatFun, list[ShapedArray]]:
    """Return a function as its program, and the types of its results.

    The pattern and the values both follow from the program, so that users' code runs once.
    """
    count = 0

    def fun(*leaves: Any) -> list:
        nonlocal count
        outs = flat(*leaves)
        count = len(outs)
        return [*outs, *flat.flat_aux[1]] if flat.has_aux else outs

    jaxpr, consts = stage_closed(fun, avals)

    def call(*args: Any) -> Any:
        leaves, _ = flatten((args, {}))
        outs = jaxpr(*consts, *leaves)
        result = flat.result(outs[:count])
        return (result, unflatten(flat.flat_aux[0], outs[count:])) if flat.has_aux else result

    call.__name__ = fun_name(flat.fun)
    staged = FlatFun(call, flat.in_tree, flat.op, flat.has_aux)
    return staged, [v.aval for v in jaxpr.outvars[:count]]


def check_type(op: str, aval: ShapedArray, holomorphic: bool, text: str, hint: str = "") -> None:
    """Raise unless a type is a float, or complex if `holomorphic`. `text` has a hole for which."""
    if holomorphic:
        if dtypes.is_complex(aval.dtype):
            return
        must, dtype = "complex with holomorphic=True", "complex"
    elif dtypes.is_float(aval.dtype):
        return
    else:
        must, dtype = "real and floating-point", "float"
    hint = f" Hint: {hint.format(dtype)}." if hint else ""
    if dtypes.is_complex(aval.dtype):
        hint = " Hint: holomorphic=True if the function is complex-differentiable."
    raise DtypeError(f"{op}: {text.format(must)}.{hint}")


# --- patterns -------------------------------------------------------------------------------------


def find_pattern(
    flat: FlatFun, avals: Sequence[ShapedArray], given: Any = None
) -> tuple[scipy.sparse.csr_array, bool]:
    """Return the pattern of the Jacobian of a flat function: which tangents depend on which.

    If a pattern is given, it is checked and returned. The second result is False if the function
    has no forward derivative.
    """
    count = len(avals)

    def push(*both: Any) -> list:
        _, dots = jvp(flat, both[:count], both[count:])
        return [instantiate(t) for t in dots]

    jaxpr, consts = stage(push, [*avals, *[a.to_tangent() for a in avals]])
    jaxpr, _ = dce_jaxpr(jaxpr)
    total, forward = sum(a.size for a in avals), has_forward(jaxpr)
    if given is not None:
        rows = sum(v.aval.size for v in jaxpr.outvars)
        return read_pattern(flat.op, given, (rows, total)), forward
    known = [
        State(v.aval) if isinstance(c, Tracer) else know(v.aval, c)
        for v, c in zip(jaxpr.constvars, consts, strict=True)
    ]
    tangents, start = [], 0
    for a in avals:
        eye = scipy.sparse.eye_array(a.size, total, k=start, dtype=bool, format="csr")
        tangents.append(State(a, eye))
        start += a.size
    with ensure_compile_time_eval():
        outs = follow(jaxpr, known, [*map(State, avals), *tangents])
    empty = lambda a: scipy.sparse.csr_array((a.size, total), dtype=bool)
    parts = [empty(s.aval) if s.depends is None else s.depends for s in outs]
    whole = scipy.sparse.vstack(parts) if parts else scipy.sparse.csr_array((0, total))
    return tidy(whole), forward


@memo_jaxpr
def has_forward(jaxpr: Jaxpr) -> bool:
    """Return False if a program of tangents holds a custom_vjp function without a forward rule."""
    here = (isinstance(e.primitive, CustomLinear) and e.params["jvp"] is None for e in jaxpr.eqns)
    return not any(here) and all(map(has_forward, subjaxprs(jaxpr)))


# --- values ---------------------------------------------------------------------------------------


def compute_entries(
    plan: Coloring,
    derivative: grad.Derivative,
    residuals: Sequence[Any],
    avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
) -> Any:
    """Return the entries of a matrix in the order of its pattern, in the results' widest dtype."""
    push = lambda *tangents: derivative.push(residuals, tangents)
    pull = lambda *cts: derivative.pull(residuals, cts)
    found = []
    sides = (
        (~plan.from_left, plan.columns, plan.column_count, avals, push),
        (plan.from_left, plan.rows, plan.row_count, out_avals, pull),
    )
    for chosen, colors, count, into, product in sides:
        if count:
            make = functools.partial(make_seeds, colors, count, into)
            outs = multiply_seeds(product, make)
            table = jnp.concatenate([jnp.reshape(y, (count, -1)) for y in outs], axis=1)
            at = plan.colors[chosen], plan.places[chosen]
            found.append((np.flatnonzero(chosen), table.at[at].get(mode="promise_in_bounds")))
    if not found:
        return jnp.zeros(0, jnp.result_type(*[a.dtype for a in out_avals] or [float]))
    order = np.argsort(np.concatenate([places for places, _ in found]), kind="stable")
    data = jnp.concatenate([x for _, x in found])
    data = data if len(found) == 1 else data[order]
    for targets, sources, sign in plan.rounds:
        data = data.at[targets].add(sign * data[sources], mode="promise_in_bounds")
    return data


def multiply_seeds(product: Callable, make: Callable[[], list]) -> list:
    """Return the products with all seeds, which `make` returns.

    Convolutions and products of matrices that depend only on seeds and constants, as in a layer
    whose weights are fixed, are the same in each call. They are computed once.
    """
    seeds = make()
    jaxpr, consts = stage_closed(
        lambda *seeds: jacobians.map_rows(product, seeds), list(map(typeof, seeds))
    )
    traced = [isinstance(x, Tracer) for x in consts]
    given = jaxpr.invars[: len(consts)]
    folded = find_fixed(jaxpr, {v for v, t in zip(given, traced, strict=True) if t})
    if not folded or sum(v.aval.nbytes for v in folded) > MAX_FOLDED_BYTES:
        return jaxpr(*consts, *seeds)
    with ensure_compile_time_eval():
        # The traced constants are not read.
        values = [
            jnp.zeros(v.aval.shape, v.aval.dtype) if t else x
            for v, x, t in zip(given, consts, traced, strict=True)
        ]
        values = drop_dead_code(jaxpr.replace(outvars=folded))(*values, *make())
    rest = [e for e in jaxpr.eqns if not any(v in folded for v in e.outvars)]
    late = drop_dead_code(jaxpr.replace(eqns=rest, invars=[*folded, *jaxpr.invars]))
    return late(*values, *consts, *seeds)


def find_fixed(jaxpr: Jaxpr, traced: set[Any]) -> list[Any]:
    """Return the results of contractions that do not depend on inputs in `traced`."""
    fixed = set(jaxpr.invars) - traced
    found: list[Any] = []
    for eqn in jaxpr.eqns:
        prim = eqn.primitive
        known = all(type(a) is not Var or a in fixed for a in eqn.invars)
        if known and prim.effect is None and prim.memoize_type:
            fixed.update(eqn.outvars)
            if prim.cost is Cost.CONTRACTION:
                found += eqn.outvars
    return found


def make_seeds(colors: np.ndarray, count: int, avals: Sequence[ShapedArray]) -> list:
    """Return, for each of some types and each color, the sum of the basis vectors of the color."""
    seeds, start = [], 0
    for a in avals:
        own = colors[start : start + a.size].astype(np.int32).reshape(a.shape)
        numbers = np.arange(count, dtype=np.int32).reshape(count, *[1] * a.ndim)
        seeds.append((jnp.asarray(own) == numbers).astype(a.dtype))
        start += a.size
    return seeds


def split_blocks(
    matrix: scipy.sparse.csr_array,
    data: Any,
    avals: Sequence[ShapedArray],
    out_avals: Sequence[ShapedArray],
) -> list[list[BCOO]]:
    """Return the blocks of a matrix: for each result one for each input."""
    rows, columns = list_rows(matrix), matrix.indices
    blocks, top = [], 0
    for out in out_avals:
        row, left = [], 0
        for a in avals:
            inside = (rows >= top) & (rows < top + out.size)
            inside &= (columns >= left) & (columns < left + a.size)
            at = [
                *np.unravel_index(rows[inside] - top, out.shape or (1,))[: out.ndim],
                *np.unravel_index(columns[inside] - left, a.shape or (1,))[: a.ndim],
            ]
            count = int(np.count_nonzero(inside))
            indices = np.stack(at, axis=1) if at else np.zeros((count, 0))
            values = data if count == len(rows) else data[np.flatnonzero(inside)]
            row.append(
                BCOO(
                    (values.astype(out.dtype), indices.astype(np.int32)),
                    shape=(*out.shape, *a.shape),
                    indices_sorted=True,
                    unique_indices=True,
                )
            )
            left += a.size
        blocks.append(row)
        top += out.size
    return blocks


def compress(op: str, block: BCOO) -> BCSR:
    """Return a matrix by rows."""
    if block.ndim != 2:
        raise ShapeError(
            f'{op}: with format="bcsr" the result and the input must be vectors; got a derivative '
            f'of shape {block.shape}. Hint: format="bcoo".'
        )
    return BCSR.from_bcoo(block)
