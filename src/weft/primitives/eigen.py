"""Decompositions by eigenvalues and singular values, and the reductions on the way to them.

LU, QR and Cholesky factors are elsewhere (factorizations.py, linalg.py).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.form import Form
from weft.core.jaxpr import Eqn
from weft.errors import MissingRule, ShapeError
from weft.primitives import elementwise, families, layout
from weft.primitives.expr import Expr
from weft.primitives.factorizations import lu, lu_solve
from weft.primitives.lapack import char_option
from weft.primitives.matrices import (
    MatrixPrimitive,
    adjoint,
    check_matrix,
    conjugate,
    diagonal,
    imaginary_diagonal,
    mask_diagonal,
    pair_elements,
    product,
    scale_columns,
    slice_columns,
    slice_rows,
    symmetrize,
    type_like,
)
from weft.primitives.reduction import argmax, reduce_max, reduce_max_p
from weft.primitives.slicing import concatenate, slice_in_dim
from weft.util import min_size, warn_user
from weft.xla.typing import Array, ArrayLike


class EigImplementation(enum.Enum):
    """The library that computes eigenvalues of general matrices.

    Attributes:
      LAPACK: LAPACK, on the CPU. It is the one that CPUs have.
      CUSOLVER, MAGMA: libraries of GPUs.

    >>> lapack = lax.linalg.EigImplementation.LAPACK
    >>> w, *_ = lax.linalg.eig(jnp.array([[2.0]]), implementation=lapack)
    >>> print(w)
    [2.+0.j]
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """The algorithm that computes eigenvalues of Hermitian matrices.

    Attributes:
      QR: LAPACK's algorithm. It is the one that CPUs have.
      JACOBI, QDWH: algorithms of other platforms.

    >>> qr = lax.linalg.EighImplementation.QR
    >>> v, w = lax.linalg.eigh(jnp.array([[2.0]]), implementation=qr)
    >>> print(w)
    [2.]
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """The algorithm that computes singular values.

    Attributes:
      DEFAULT: the choice of the platform, on CPUs divide and conquer.
      QR: LAPACK's QR algorithm, which is slower on CPUs.
      DIVIDE_AND_CONQUER: LAPACK's algorithm of that name.
      JACOBI, POLAR: algorithms of other platforms.

    >>> qr = lax.linalg.SvdAlgorithm.QR
    >>> print(lax.linalg.svd(jnp.array([[2.0]]), compute_uv=False, algorithm=qr))
    [2.]
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"

    def __str__(self) -> str:
        return f"SvdAlgorithm.{self.name}"


def check_choice(op: str, choice: Any, kind: type, *known: Any) -> None:
    """Raise unless the implementation chosen is one that this platform has."""
    if choice is not None and choice not in known:
        if not isinstance(choice, kind):
            raise TypeError(f"{op}: the choice must be a {kind.__name__} or None; got {choice!r}.")
        raise NotImplementedError(
            f"{op}: on CPU the choice must be one of {', '.join(map(str, known))}; got {choice}."
        )


# Values of a decomposition that differ by less, in units of eps times the largest, are equal.
# LAPACK tells equal ones apart by 5 to 30 such units (3 to 200 rows, all four dtypes).
EQUAL_UNITS = 32


def invert_where(x: Any, kept: Any) -> Any:
    """1 / x where `kept`, else 0; safe to differentiate where x is 0 there."""
    one = layout.full_like(x, 1)
    return elementwise.select(
        kept, elementwise.div(one, elementwise.select(kept, x, one)), layout.full_like(x, 0)
    )


def bound_rounding(w: Any) -> Any:
    """Return the largest size of a rounding error in matrices made from the values w.

    w has shape (..., n), and the result (..., n, n).
    """
    size = elementwise.abs(w)
    shape = (*typeof(w).shape, typeof(w).shape[-1])
    largest = reduce_max(size, (typeof(w).ndim - 1,))
    unit = EQUAL_UNITS * float(dtypes.finfo(typeof(size).dtype).eps)
    return layout.broadcast_in_dim(elementwise.mul(largest, unit), shape, range(len(shape) - 2))


def invert_gaps(w: Any) -> Any:
    """Return 1 / (w[j] - w[i]), and 0 where the two values are equal, as on the diagonal.

    Vectors of equal values may be rotated by any angle. A function of only the space that they span
    does not depend on that angle, so any finite number gives the right derivative.
    """
    gap = elementwise.sub(*pair_elements(w))
    return invert_where(gap, elementwise.gt(elementwise.abs(gap), bound_rounding(w)))


# --- Hermitian ------------------------------------------------------------------------------


class Eigh(MatrixPrimitive):
    """x = V diag(w) V^H for Hermitian x: unitary V, real w ascending; the results are V, w.

    Shapes: x (..., n, n), V (..., n, k), w (..., k): k = n, or the eigenvalues `subset_by_index`
    [start, stop) only. Reads the `lower` triangle of x, or the upper one. NaN where it does not
    converge. Where V is not used, `dce` leaves it out of the results, by `compute_vectors` False.
    Derivatives are those in the space of Hermitian matrices. Eigenvectors of equal eigenvalues do
    not turn into each other. Source: LAPACK syevd; derivative: Giles (2008), section 3.1.
    """

    name = "eigh"
    form = Form.FACTORS
    multiple_results = True

    def abstract_eval(self, x, *, subset_by_index, compute_vectors=True, **params):
        check_matrix(self.name, x, square=True)
        n = subset_size(self.name, subset_by_index, x.shape[-1])
        values = type_like(x, (*x.shape[:-2], n), dtypes.real_dtype(x.dtype))
        return [*[type_like(x, (*x.shape[:-1], n))] * compute_vectors, values]

    def write(self, hlo, outs, x, *, lower, subset_by_index, compute_vectors=True, **params):
        batch, n = x.aval.shape[:-2], x.aval.shape[-1]
        values = ShapedArray((*batch, n), dtypes.real_dtype(x.aval.dtype))
        options = {
            "mode": char_option("V" if compute_vectors else "N"),
            "uplo": char_option("L" if lower else "U"),
        }
        made = self.call_routine(hlo, "syevd", [x], [x.aval, values], {0: 0}, **options)
        start, stop = subset_by_index or (0, n)
        return [Expr(hlo, y).slice_axis(start, stop).value for y in made[-len(outs) :]]

    def dce(self, eqn, live):
        return eqn if live[0] else leave_out(eqn, live, compute_vectors=False)

    def jvp(self, primals, tangents, *, subset_by_index, compute_vectors=True, **params):
        """With M = V^H dx V: dw = diag(M), dV = V (M / (w[j] - w[i])), 0 for equal values."""
        (x,), (t,) = primals, tangents
        v, w = self.apply(x, subset_by_index=None, **params)
        inner = product(adjoint(v), t, v)
        dw = diagonal(inner)
        turn = layout.convert(invert_gaps(w), typeof(inner).dtype)
        dv = product(v, elementwise.mul(inner, turn))
        dw = elementwise.real(dw) if dtypes.is_complex(typeof(dw).dtype) else dw
        outs, dots = [v, w], [dv, dw]
        if subset_by_index is not None:
            outs, dots = (
                [slice_in_dim(y, *subset_by_index, axis=-1) for y in ys] for ys in (outs, dots)
            )
        return (outs, dots) if compute_vectors else (outs[1:], dots[1:])


def leave_out(eqn: Eqn, live: Sequence[bool], **params: Any) -> Eqn:
    """Return the equation with other parameters and without its dead results."""
    outvars = [v for v, used in zip(eqn.outvars, live, strict=True) if used]
    return eqn.replace(outvars=outvars, params={**eqn.params, **params})


def subset_size(op: str, subset: Any, n: int) -> int:
    """Return how many of n values a subset [start, stop) has."""
    if subset is None:
        return n
    start, stop = subset
    if not 0 <= start < stop <= n:
        raise ShapeError(
            f"{op}: subset_by_index must be (start, stop) with 0 <= start < stop <= {n}; "
            f"got {subset}."
        )
    return stop - start


def subset_param(subset: Any) -> tuple[int, int] | None:
    """A subset as a parameter."""
    if subset is None:
        return None
    (pair,) = families.index_pairs("eigh", "subset_by_index", (subset,))
    return pair


eigh_p = Eigh()


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Compute eigenvectors and eigenvalues of Hermitian matrices.

    Args:
      x: an array of floats or complex numbers of shape (..., n, n).
      lower: if True, the default, the lower triangle of x is read where `symmetrize_input` is
        False. If False, the upper one.
      symmetrize_input: if True, the default, `(x + x^H) / 2` takes the place of x.
      sort_eigenvalues: if True, the default, the eigenvalues ascend.
      subset_by_index: a pair (start, stop). Only the eigenvalues of these indices are computed.
        None, the default, computes all.
      implementation: an `EighImplementation`. None, the default, is the choice of the platform.

    Returns:
      A pair (V, w): the eigenvectors, which are the columns of V, of shape (..., n, k), and the
      real eigenvalues, of shape (..., k). `jnp.linalg.eigh` returns them in the other order. The
      result is NaN where the algorithm does not converge. Derivatives at equal eigenvalues are
      those of vectors that do not turn into each other, as `jnp.linalg.eigh` says.

    Raises:
      ShapeError: the matrices are not square.

    >>> v, w = lax.linalg.eigh(jnp.array([[2., 1.], [1., 2.]]))
    >>> print(w)
    [1. 3.]
    """
    check_matrix("eigh", typeof(x, "eigh"), square=True)
    check_choice("eigh", implementation, EighImplementation, EighImplementation.QR)
    v, w = eigh_p.apply(
        symmetrize(x) if symmetrize_input else x,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=subset_param(subset_by_index),
        algorithm=implementation,
    )
    return v, w


class Tridiagonal(MatrixPrimitive):
    """x = Q T Q^H for Hermitian x: T real and tridiagonal, with diagonals d and e.

    The results: T and the reflections that Q is made of in one matrix, d (..., n), e (..., n - 1),
    and taus (..., n - 1). Reads the `lower` triangle of x, or the upper one. Source: LAPACK sytrd.
    """

    name = "tridiagonal"
    form = Form.FACTORS
    no_derivative = "lax.linalg.eigh, which has one"
    multiple_results = True

    def abstract_eval(self, x, *, lower):
        check_matrix(self.name, x, square=True)
        *batch, n = x.shape[:-1]
        part, below = dtypes.real_dtype(x.dtype), (*batch, max(n - 1, 0))
        return [x, type_like(x, (*batch, n), part), type_like(x, below, part), type_like(x, below)]

    def write(self, hlo, outs, x, *, lower):
        uplo = char_option("L" if lower else "U")
        return self.call_routine(hlo, "sytrd", [x], outs, {0: 0}, uplo=uplo)


tridiagonal_p = Tridiagonal()


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Reduce Hermitian matrices to tridiagonal form T = Q^H a Q.

    It has no derivative.

    Args:
      a: an array of floats or complex numbers of shape (..., n, n).
      lower: if True, the default, the lower triangle of a is read. If False, the upper one.

    Returns:
      A tuple (reflections, d, e, taus). d and e are the diagonal of T, of shape (..., n), and the
      one beside it, of shape (..., n - 1). Q is a product of Householder reflections: they are
      below the subdiagonal of `reflections`, or above the superdiagonal if not `lower`, and their
      factors are `taus`, of shape (..., n - 1), as LAPACK's sytrd returns them.

    >>> _, d, e, _ = lax.linalg.tridiagonal(jnp.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> print(d, e)
    [4. 3.] [1.]
    """
    reflections, d, e, taus = tridiagonal_p.apply(a, lower=bool(lower))
    return reflections, d, e, taus


# --- general --------------------------------------------------------------------------------


class Eig(MatrixPrimitive):
    """w, and left or right eigenvectors if chosen: L^H x = diag(w) L^H, x V = V diag(w).

    Shapes: x (..., n, n); w (..., n), L and V (..., n, n), complex. Vectors have norm 1 and a real
    largest component. NaN where the iteration does not converge. Derivatives assume distinct
    eigenvalues; derivatives of eigenvectors require `enable_eigvec_derivs`. Source: LAPACK geev;
    derivative: Giles (2008), section 3.1, with vectors of constant scale.
    """

    name = "eig"
    form = Form.FACTORS
    multiple_results = True

    def abstract_eval(self, x, *, compute_left_eigenvectors, compute_right_eigenvectors, **params):
        check_matrix(self.name, x, square=True)
        kind = dtypes.complex_dtype(x.dtype)
        vectors = [type_like(x, x.shape, kind)] * (
            compute_left_eigenvectors + compute_right_eigenvectors
        )
        return [type_like(x, x.shape[:-1], kind), *vectors]

    def write(self, hlo, outs, x, *, compute_left_eigenvectors, compute_right_eigenvectors, **_):
        values, real_x = outs[0].strong(), not dtypes.is_complex(x.aval.dtype)
        part = values.update(dtype=dtypes.real_dtype(values.dtype))
        vectors = ShapedArray(x.aval.shape, values.dtype)
        size = find_size_out_of_range(Expr(hlo, x))
        scaled = multiply_parts(
            Expr(hlo, x), (1 / size).broadcast(x.aval.shape, range(values.ndim - 1))
        )
        *w, left, right = self.call_routine(
            hlo,
            "geev",
            [scaled.value],
            [*([part, part] if real_x else [values]), vectors, vectors],
            compute_left=char_option("V" if compute_left_eigenvectors else "N"),
            compute_right=char_option("V" if compute_right_eigenvectors else "N"),
        )
        if real_x:
            w = hlo.op("stablehlo.complex", w, [values])
        sizes = size.broadcast(values.shape, range(values.ndim - 1))
        w = [multiply_parts(Expr(hlo, w[0]), sizes).value]
        return [*w, *[left] * compute_left_eigenvectors, *[right] * compute_right_eigenvectors]

    def dce(self, eqn, live):
        names = [f"compute_{side}_eigenvectors" for side in ("left", "right")]
        names = [name for name in names if eqn.params[name]]
        kept = dict(zip(names, live[1:], strict=True))
        return eqn if all(live[1:]) else leave_out(eqn, [True, *live[1:]], **kept)

    def jvp(self, primals, tangents, *, enable_eigvec_derivs, **params):
        (x,), (t,) = primals, tangents
        left, right = (params[f"compute_{side}_eigenvectors"] for side in ("left", "right"))
        if (left or right) and not enable_eigvec_derivs:
            raise MissingRule(
                "eig: derivatives of eigenvectors must be asked for, as they suppose distinct "
                "eigenvalues and the scale that LAPACK gives vectors; got a tangent. Hint: "
                "lax.linalg.eig(x, enable_eigvec_derivs=True)."
            )
        # Second derivatives of values need first derivatives of vectors. The scale of vectors
        # cancels.
        params = {**params, "enable_eigvec_derivs": True, "compute_right_eigenvectors": True}
        w, *vectors = self.apply(x, **params)
        t = layout.convert(t, typeof(w).dtype)
        v = vectors[-1]
        inner = solve_general(v, product(t, v))
        dots = [diagonal(inner)]
        if left:
            u = vectors[0]
            dots.append(vector_tangent(u, conjugate(w), solve_general(u, product(adjoint(t), u))))
        if right:
            dots.append(vector_tangent(v, w, inner))
        return [w, *vectors[: left + right]], dots


def find_size_out_of_range(x: Expr) -> Expr:
    """Return the largest entry of each matrix if LAPACK's geev would scale the matrix, else 1.

    OpenBLAS 0.3 returns wrong eigenvalues of matrices that it scales: of float32 beyond 1e12 and
    below 1e-12, of float64 beyond 1e138 and below 1e-138.
    """
    axes = (len(x.shape) - 2, len(x.shape) - 1)
    sizes = abs(x.part("real"))
    if dtypes.is_complex(x.dtype):
        sizes = sizes.apply("maximum", abs(x.part("imag")))
    (largest,) = reduce_max_p.lower(x.hlo, sizes.value, axes=axes)
    size = x.new(largest)
    end = 1e130 if size.dtype == np.float64 else 1e10
    small, large = (size > 0) & (size < 1 / end), (size > end) & (size < math.inf)
    return (small | large).select(size, 1.0)


def multiply_parts(x: Expr, factor: Expr) -> Expr:
    """Return a real or complex x times a real factor."""
    real = x.part("real") * factor
    if not dtypes.is_complex(x.dtype):
        return real
    return real.make("complex", x.aval, x.part("imag") * factor)


def solve_general(a: Any, b: Any) -> Any:
    """a^-1 b."""
    factors, _, permutation = lu(a)
    return lu_solve(factors, permutation, b)


def vector_tangent(v: Any, w: Any, inner: Any) -> Any:
    """Return the tangents of eigenvectors of x, where `inner` is V^-1 dx V."""
    dv = product(v, elementwise.mul(inner, invert_gaps(w)))
    axis = typeof(v).ndim - 2
    length = layout.reduce_sum(elementwise.real(elementwise.mul(conjugate(v), dv)), (axis,))
    place = argmax(elementwise.abs(v), axis, np.int32)
    numbers = layout.broadcasted_iota(np.int32, typeof(v).shape, axis)
    largest = elementwise.eq(
        numbers, layout.broadcast_in_dim(place, typeof(v).shape, (*range(axis), axis + 1))
    )
    there, rate = (
        layout.reduce_sum(elementwise.select(largest, y, layout.full_like(y, 0)), (axis,))
        for y in (elementwise.real(v), elementwise.imag(dv))
    )
    return elementwise.sub(
        dv, scale_columns(v, elementwise.complex(length, elementwise.div(rate, there)))
    )


eig_p = Eig()


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list:
    """Compute eigenvalues and eigenvectors of general matrices.

    The derivatives of the eigenvalues suppose that they are distinct. Those of the eigenvectors
    also depend on the scale of the vectors, so they need `enable_eigvec_derivs`.

    Args:
      x: an array of floats or complex numbers of shape (..., n, n).
      compute_left_eigenvectors: if True, the default, the result has the left eigenvectors.
      compute_right_eigenvectors: if True, the default, the result has the right eigenvectors.
      enable_eigvec_derivs: if True, eigenvectors can be differentiated. The default is False.
      implementation: an `EigImplementation`. None, the default, is the choice of the platform.
      use_magma: an older way to choose an implementation on GPUs.

    Returns:
      A list: the eigenvalues, of shape (..., n), and the chosen eigenvectors, of shape (..., n, n):
      the left ones first. All are complex. The vectors are columns of norm 1 whose largest
      component is real. The result is NaN where the algorithm does not converge.

    >>> w, left, right = lax.linalg.eig(jnp.array([[0., 1.], [-1., 0.]]))
    >>> print(w)
    [0.+1.j 0.-1.j]
    """
    if use_magma is not None:
        text = "eig: use_magma is deprecated; use implementation=EigImplementation.MAGMA."
        warn_user(text, DeprecationWarning)
        implementation = EigImplementation.MAGMA if use_magma else implementation
    check_choice("eig", implementation, EigImplementation, EigImplementation.LAPACK)
    return eig_p.apply(
        x,
        compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=implementation,
    )


class Hessenberg(MatrixPrimitive):
    """x = Q H Q^H with zeros below H's subdiagonal: H and Q's reflections in one matrix, and taus.

    Shapes: x (..., n, n), taus (..., n - 1). Source: LAPACK gehrd.
    """

    name = "hessenberg"
    form = Form.FACTORS
    multiple_results = True

    def abstract_eval(self, x):
        check_matrix(self.name, x, square=True)
        return [x, type_like(x, (*x.shape[:-2], max(x.shape[-1] - 1, 0)))]

    def write(self, hlo, outs, x):
        bounds = {"low": "1 : i32", "high": f"{x.aval.shape[-1]} : i32"}
        return self.call_routine(hlo, "gehrd", [x], outs, {0: 0}, **bounds)


hessenberg_p = Hessenberg()


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Reduce general matrices to Hessenberg form H = Q^H a Q.

    A Hessenberg matrix is 0 below its first subdiagonal. It has no derivative.

    Args:
      a: an array of floats or complex numbers of shape (..., n, n).

    Returns:
      A pair (h, taus). The upper part of h, with the subdiagonal, is H. Below it are the
      Householder reflections whose product is Q. Their factors are `taus`, of shape (..., n - 1),
      as LAPACK's gehrd returns them.

    >>> h, taus = lax.linalg.hessenberg(jnp.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> print(h, taus)
    [[4. 1.]
     [2. 3.]] [0.]
    """
    reduced, taus = hessenberg_p.apply(a)
    return reduced, taus


class Schur(MatrixPrimitive):
    """x = Z T Z^H: Z unitary, T upper triangular, for real x except for 2 x 2 blocks; T, then Z.

    Shapes: x, T, Z (..., n, n). NaN where it does not converge. Source: LAPACK gees.
    """

    name = "schur"
    form = Form.FACTORS
    no_derivative = "lax.linalg.eig, which has one"
    multiple_results = True

    def abstract_eval(self, x, *, compute_schur_vectors, sort_eig_vals, select_callable):
        check_matrix(self.name, x, square=True)
        if sort_eig_vals or select_callable is not None:
            raise NotImplementedError(
                f"{self.name}: eigenvalues come in LAPACK's order; "
                f"got sort_eig_vals={sort_eig_vals}, select_callable={select_callable}."
            )
        return [x] * (1 + compute_schur_vectors)

    def write(self, hlo, outs, x, *, compute_schur_vectors, **params):
        aval, batch = x.aval, x.aval.shape[:-2]
        count, values = ShapedArray(batch, np.int32), ShapedArray(aval.shape[:-1], aval.dtype)
        results = [aval, aval, *[values] * (1 if dtypes.is_complex(aval.dtype) else 2), count]
        mode = char_option("V" if compute_schur_vectors else "N")
        ys = self.call_routine(hlo, "gees", [x], results, {0: 0}, mode=mode, sort=char_option("N"))
        return ys[: len(outs)]

    def dce(self, eqn, live):
        return eqn if live[-1] else leave_out(eqn, live, compute_schur_vectors=False)


schur_p = Schur()


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> tuple:
    """Compute the Schur form x = Z T Z^H of general matrices.

    T is upper triangular, with the eigenvalues on its diagonal. For real x, a pair of complex
    eigenvalues is a block of 2 x 2. It has no derivative.

    Args:
      x: an array of floats or complex numbers of shape (..., n, n).
      compute_schur_vectors: if True, the default, the result has Z.
      sort_eig_vals: it must be False, the default.
      select_callable: it must be None, the default.

    Returns:
      A tuple (T, Z), or (T,) without the vectors, of shapes (..., n, n). The eigenvalues are in
      LAPACK's order.

    Raises:
      NotImplementedError: sorting is asked for.

    >>> t, z = lax.linalg.schur(jnp.array([[4.0, 1.0], [2.0, 3.0]]))
    >>> print(np.asarray(t).round(4))
    [[ 5. -1.]
     [ 0.  2.]]
    """
    return tuple(
        schur_p.apply(
            x,
            compute_schur_vectors=bool(compute_schur_vectors),
            sort_eig_vals=bool(sort_eig_vals),
            select_callable=select_callable,
        )
    )


# --- singular values ------------------------------------------------------------------------


class Svd(MatrixPrimitive):
    """x = U diag(s) V^H: s descending, and U and V^H where `compute_uv`; the results are s, U, V^H.

    Shapes: x (..., m, n), s (..., k), U (..., m, k), V^H (..., k, n) for k = min(m, n); with
    `full_matrices` U is (..., m, m) and V^H (..., n, n); with `subset_by_index` [start, stop) only
    those values. NaN where it does not converge. The derivative rotates vectors of equal singular
    values only as far as the derivative of U V^H requires, and the additional columns of
    `full_matrices` only as the others require. Source: LAPACK gesdd, gesvd; derivative: Giles
    (2008), section 3.2.
    """

    name = "svd"
    form = Form.FACTORS
    multiple_results = True

    def abstract_eval(self, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
        check_matrix(self.name, x)
        *batch, m, n = x.shape
        k = subset_size(self.name, subset_by_index, min_size(m, n))
        s = type_like(x, (*batch, k), dtypes.real_dtype(x.dtype))
        if not compute_uv:
            return [s]
        left, right = (m, n) if full_matrices else (k, k)
        return [s, type_like(x, (*batch, m, left)), type_like(x, (*batch, right, n))]

    def write(self, hlo, outs, x, *, full_matrices, compute_uv, subset_by_index, algorithm):
        *batch, m, n = x.aval.shape
        k = min_size(m, n)
        left, right = (m, n) if full_matrices and compute_uv else (k, k)
        kind = x.aval.dtype
        values = ShapedArray((*batch, k), dtypes.real_dtype(kind))
        vectors = [ShapedArray((*batch, *shape), kind) for shape in ((m, left), (right, n))]
        _, *found = self.call_routine(
            hlo,
            "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd",
            [x],
            [x.aval, values, *vectors],
            {0: 0},
            mode=char_option("N" if not compute_uv else "A" if full_matrices else "S"),
        )
        found = found[: len(outs)]
        return found if subset_by_index is None else lower_subset(hlo, found, *subset_by_index)

    def dce(self, eqn, live):
        lean = len(live) == 1 or any(live[1:])
        return eqn if lean else leave_out(eqn, live, compute_uv=False)

    def jvp(self, primals, tangents, *, full_matrices, compute_uv, subset_by_index, algorithm):
        (x,), (t,) = primals, tangents
        wide = full_matrices and compute_uv
        s, u, vh = self.apply(
            x, full_matrices=wide, compute_uv=True, subset_by_index=None, algorithm=algorithm
        )
        ds, du, dvh = singular_tangents(s, u, vh, t)
        outs, dots = [s, u, vh], [ds, du, dvh]
        if subset_by_index is not None:
            outs, dots = (cut_values(ys, *subset_by_index) for ys in (outs, dots))
        return (outs, dots) if compute_uv else (outs[:1], dots[:1])


def lower_subset(hlo: Any, outs: Sequence[Any], start: int, stop: int) -> list:
    """Write some singular values of [s, U, V^H], or of [s], and their vectors."""
    parts = [Expr(hlo, y).slice_axis(start, stop) for y in outs[:2]]
    if len(outs) > 1:
        parts.append(Expr(hlo, outs[2]).slice_axis(start, stop, -2))
    return [x.value for x in parts]


def singular_tangents(s: Any, u: Any, vh: Any, t: Any) -> list:
    """Return the tangents of singular values and vectors."""
    k, kind = typeof(s).shape[-1], typeof(u).dtype
    more_u, more_v = slice_columns(u, k, None), adjoint(slice_rows(vh, k, None))
    u, v = slice_columns(u, 0, k), adjoint(slice_rows(vh, 0, k))
    right, left = product(t, v), product(adjoint(t), u)
    inner = product(adjoint(u), right)
    ds = diagonal(elementwise.real(inner) if dtypes.is_complex(kind) else inner)
    # U and V turn by the sum of two parts, and by their difference: the first part is common to
    # both, and unknown where two values are equal; the second is how U turns against V
    other, total = adjoint(inner), elementwise.add(*pair_elements(s))
    apart = elementwise.bitwise_and(
        elementwise.gt(total, bound_rounding(s)),
        elementwise.bitwise_not(mask_diagonal(typeof(total).shape)),
    )
    turn, against = (layout.convert(x, kind) for x in (invert_gaps(s), invert_where(total, apart)))
    common = elementwise.mul(elementwise.mul(elementwise.add(inner, other), 0.5), turn)
    differ = elementwise.mul(elementwise.mul(elementwise.sub(inner, other), 0.5), against)
    in_u, in_v = elementwise.add(common, differ), elementwise.sub(common, differ)
    inverse = layout.convert(invert_where(s, elementwise.ne(s, layout.full_like(s, 0))), kind)
    if dtypes.is_complex(kind):  # the phase that both may turn by is given to U
        in_u = elementwise.add(in_u, scale_columns(imaginary_diagonal(inner), inverse))
    du, dv = product(u, in_u), product(v, in_v)
    if typeof(u).shape[-2] > k:
        du = elementwise.add(du, scale_columns(elementwise.sub(right, product(u, inner)), inverse))
    if typeof(v).shape[-2] > k:
        dv = elementwise.add(
            dv, scale_columns(elementwise.sub(left, product(v, adjoint(inner))), inverse)
        )
    du, dv = follow_columns(u, du, more_u), follow_columns(v, dv, more_v)
    return [ds, du, adjoint(dv)]


def follow_columns(u: Any, du: Any, more: Any) -> Any:
    """du, and how `more` columns of a unitary matrix move to stay orthogonal to u."""
    if not typeof(more).shape[-1]:
        return du
    moved = elementwise.neg(product(u, adjoint(du), more))
    return concatenate([du, moved], typeof(u).ndim - 1)


def cut_values(ys: Sequence[Any], start: int, stop: int) -> list:
    """Some singular values of [s, U, V^H], and their vectors."""
    s, u, vh = ys
    s = slice_in_dim(s, start, stop, axis=-1)
    return [s, slice_columns(u, start, stop), slice_rows(vh, start, stop)]


svd_p = Svd()


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Compute the singular value decomposition x = U diag(s) V^H.

    Args:
      x: an array of floats or complex numbers of shape (..., m, n). k is min(m, n) below.
      full_matrices: if True, the default, U and V^H are square. If False, they have k columns and
        rows.
      compute_uv: if True, the default, the result has U and V^H. Derivatives of s need no vectors.
      subset_by_index: a pair (start, stop). Only the singular values of these indices are computed.
        None, the default, computes all. It needs `full_matrices=False`.
      algorithm: an `SvdAlgorithm`. None, the default, is the choice of the platform.

    Returns:
      A tuple (U, s, V^H), or s without the vectors. The singular values s descend, and have the
      shape (..., k). The result is NaN where the algorithm does not converge. Derivatives at equal
      singular values are those that `jnp.linalg.svd` describes.

    Raises:
      ValueError: a subset is asked for together with full matrices.

    >>> u, s, vh = lax.linalg.svd(jnp.array([[3., 0.], [0., -2.]]))
    >>> print(s)
    [3. 2.]
    """
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError(
            "svd: full_matrices must be False where a subset is asked for; "
            f"got subset_by_index={subset_by_index}. Hint: full_matrices=False."
        )
    on_cpu = (SvdAlgorithm.DEFAULT, SvdAlgorithm.DIVIDE_AND_CONQUER, SvdAlgorithm.QR)
    check_choice("svd", algorithm, SvdAlgorithm, *on_cpu)
    outs = svd_p.apply(
        x,
        full_matrices=bool(full_matrices),
        compute_uv=bool(compute_uv),
        subset_by_index=subset_param(subset_by_index),
        algorithm=algorithm,
    )
    if not compute_uv:
        return outs[0]
    s, u, vh = outs
    return u, s, vh
