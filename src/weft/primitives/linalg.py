"""Cholesky factors, triangular and tridiagonal systems, and products X X^T.

Other factorizations are in factorizations.py and eigen.py, closed forms for small matrices in
small.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.element import Apply, Number, sum_over
from weft.core.facts import Cost
from weft.core.form import Form
from weft.core.primitive import Linear, Zero, not_linear
from weft.errors import DtypeError, ShapeError
from weft.mesh.plugins import GPUS
from weft.primitives import layout, matrices
from weft.primitives.dot import Precision, dimension_text, precision_config
from weft.primitives.elementwise import add, add_p, mul, mul_p
from weft.primitives.expr import Expr
from weft.primitives.families import as_number, check_equal_dtypes, zero_tangents
from weft.primitives.lapack import LETTERS, call_lapack, char_option
from weft.primitives.matrices import swap
from weft.primitives.slicing import pad
from weft.primitives.small import is_small, write_cholesky, write_triangular
from weft.xla.hlo import bool_text
from weft.xla.typing import Array, ArrayLike

# --- cholesky -------------------------------------------------------------------------------


class Cholesky(matrices.MatrixPrimitive):
    """The lower triangular L with a positive diagonal such that L L^H = x.

    Shapes: x (..., n, n). Dtypes: float32, float64, complex64, complex128. Reads the lower triangle
    of x; NaN where x is not positive definite. Derivatives are taken in the space of Hermitian
    matrices. Source: LAPACK potrf; derivative: Murray, "Differentiation of the Cholesky
    decomposition" (2016), equation 9.
    """

    name = "cholesky"
    form = Form.CHOLESKY

    def abstract_eval(self, x):
        matrices.check_matrix(self.name, x, square=True)
        return [x]

    def write(self, hlo, outs, x):
        (out,) = outs
        if is_small(out):
            return [write_cholesky(hlo, x)]
        if hlo.platform not in ("cpu", *GPUS):
            y = hlo.op("stablehlo.cholesky", [x], [out], lower="true")[0]
            return [self.completion.write_triangle(hlo, y, "GE")]
        if hlo.platform in GPUS:  # a copy of the transpose is less than what U takes longer than L
            (y,) = self.call_routine(hlo, "potrf", [x], [out], {0: 0}, uplo=char_option("L"))
            return [self.completion.write_triangle(hlo, y, "GE")]
        # The transpose, which costs nothing to pass, is U^H U of the same memory as L.
        x = matrices.lower_swap(hlo, x)
        (y,) = self.call_routine(hlo, "potrf", [x], [out], {0: 0}, uplo=char_option("U"))
        y = matrices.lower_swap(hlo, y)
        return [self.completion.write_triangle(hlo, y, "GE")]

    def jvp(self, primals, tangents):
        (y,) = self.apply(*primals)
        (t,) = tangents
        inner = triangular_solve(y, t, left_side=True, lower=True)
        inner = triangular_solve(y, inner, lower=True, transpose_a=True, conjugate_a=True)
        return [y], [matrices.product(y, halve_triangle(inner))]


def halve_triangle(x: Any) -> Any:
    """The lower triangle of x, half of its diagonal."""
    return mul(add(matrices.lower_part(x), matrices.lower_part(x, -1)), 0.5)


cholesky_p = Cholesky()


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Compute the Cholesky factorization x = L L^H of positive definite matrices.

    Args:
      x: an array of floats or complex numbers of shape (..., n, n).
      symmetrize_input: if True, the default, `(x + x^H) / 2` takes the place of x. If False, only
        the lower triangle of x is read.

    Returns:
      The lower triangular factor L, of the shape and dtype of x. It is NaN where x is not positive
      definite.

    Raises:
      ShapeError: the matrices are not square.

    >>> print(lax.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]])))
    [[2. 0.]
     [1. 2.]]
    """
    matrices.check_matrix("cholesky", typeof(x, "cholesky"), square=True)
    return cholesky_p.apply(matrices.symmetrize(x) if symmetrize_input else x)[0]


class CholeskyUpdate(matrices.MatrixPrimitive):
    """The upper triangular S such that S^T S = r^T r + w w^T; its diagonal has the signs of r's.

    Shapes: r (..., n, n) upper triangular, w (..., n). Dtypes: real. By n Givens rotations, which
    are stable. Source: Golub and Van Loan, "Matrix Computations", section 6.5.4.
    """

    name = "cholesky_update"
    cost = Cost.REDUCTION

    def abstract_eval(self, r, w):
        matrices.check_matrix(self.name, r, True, ("float32", "float64"))
        check_equal_dtypes(self.name, r, w)
        if w.shape != r.shape[:-1]:
            raise ShapeError(
                f"{self.name}: the vector must have the size of the matrix, (..., n) for "
                f"(..., n, n); got {r}, {w}."
            )
        return [ShapedArray(r.shape, r.dtype, r.weak_type and w.weak_type)]

    def write(self, hlo, outs, r, w):
        (out,) = outs
        n = out.shape[-1]
        count = ShapedArray((), np.int32)
        step = lambda *xs: rotate_row(*(Expr(hlo, x) for x in xs))
        going = lambda i, r, w: [hlo.compare("LT", i, hlo.constant(n, count))]
        start = hlo.constant(0, count)
        return [hlo.while_loop([start, r, w], going, step)[1]]

    def jvp(self, primals, tangents):
        """S'^T S + S^T S' is the derivative of the right side."""
        (y,) = self.apply(*primals)
        (r, w), (dr, dw) = primals, tangents
        half = []
        if not isinstance(dr, Zero):
            half.append(matrices.product(swap(r), matrices.upper_part(dr)))
        if not isinstance(dw, Zero):
            n = typeof(w).ndim
            column, row = layout.expand_dims(w, (n,)), layout.expand_dims(dw, (n - 1,))
            half.append(matrices.product(column, row))
        moved = half[0] if len(half) == 1 else add(*half)
        inner = add(moved, swap(moved))
        inner = triangular_solve(y, inner, left_side=True, transpose_a=True)
        inner = triangular_solve(y, inner)
        return [y], [matrices.product(swap(halve_triangle(swap(inner))), y)]


def rotate_row(i: Expr, r: Expr, w: Expr) -> list:
    """Write one step of a Cholesky update: row i of r and w, rotated so that w[i] becomes 0."""
    lead = r.shape[:-2]
    zero, cell = i.like(0), (*lead, 1)
    here, place = [*[zero] * len(lead), i], [*[zero] * len(lead), i, zero]
    one = w.new(i.hlo.constant(1, w.aval.update(shape=cell)))
    old = r.slice_at(place, (*lead, 1, r.shape[-1])).reshape(w.shape)
    a, b = old.slice_at(here, cell), w.slice_at(here, cell)
    # Scale, so that squares do not overflow or underflow. Where b is 0, nothing is rotated.
    scale = abs(a).apply("maximum", abs(b))
    a, b = a / scale, b / scale
    norm = (a * a + b * b).apply("sqrt")
    still = w.slice_at(here, cell).compare("EQ", 0)
    cosine = still.select(one, a / norm).broadcast(w.shape)
    sine = still.select(one.like(0), b / norm).broadcast(w.shape)
    new = cosine * old + sine * w
    w = cosine * w - sine * old
    r = r.update_at(new.reshape((*lead, 1, r.shape[-1])), place)
    return [(i + 1).value, r.value, w.value]


cholesky_update_p = CholeskyUpdate()


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Update a Cholesky factor after a rank-one change of the matrix.

    It costs O(n^2) operations, where a new factorization costs O(n^3).

    Args:
      r_matrix: the upper triangular factor R of R^T R, a float array of shape (..., n, n).
      w_vector: a float array of shape (..., n).

    Returns:
      The upper triangular factor of R^T R + w w^T, of the shape and dtype of `r_matrix`.

    >>> r = lax.linalg.cholesky_update(jnp.eye(2), jnp.array([1.0, 2.0]))
    >>> print(np.asarray(r.T @ r).round(4))
    [[2. 2.]
     [2. 5.]]
    """
    return cholesky_update_p.apply(r_matrix, w_vector)[0]


class SymmetricProduct(layout.LeadingBatch):
    """alpha x x^T + beta c. Shapes: x (..., m, n), c (..., m, m). Dtypes: real floats."""

    name = "symmetric_product"
    cost = Cost.CONTRACTION

    def abstract_eval(self, x, c, *, alpha, beta):
        check_equal_dtypes(self.name, x, c)
        if not dtypes.is_float(x.dtype):
            raise DtypeError(f"{self.name}: operands must be of real float dtype; got {x}, {c}.")
        if x.ndim < 2 or c.shape != (*x.shape[:-1], x.shape[-2]):
            raise ShapeError(
                f"{self.name}: operands must be of shapes (..., m, n) and (..., m, m); "
                f"got {x}, {c}."
            )
        return [ShapedArray(c.shape, c.dtype, x.weak_type and c.weak_type)]

    def lower(self, hlo, x, c, *, alpha, beta):
        last = x.aval.ndim - 1
        batch = tuple(range(last - 1))
        (y,) = hlo.op(
            "stablehlo.dot_general",
            [x, x],
            [c.aval],
            dot_dimension_numbers=dimension_text((((last,), (last,)), (batch, batch))),
            precision_config=precision_config((Precision.HIGHEST, Precision.HIGHEST)),
        )
        parts = [Expr(hlo, v) * k for k, v in ((alpha, y), (beta, c)) if k != 0]
        if not parts:
            return [hlo.constant(0, c.aval)]
        return [(parts[0] + parts[1] if len(parts) == 2 else parts[0]).value]

    def element(self, i, x, c, *, alpha, beta):
        *batch, row, column = i
        scale = lambda v, k: Apply(mul_p, (Number(k, x.dtype), v), {})
        pair = lambda k: (x[(*batch, row, k)], x[(*batch, column, k)])
        product = sum_over([x.shape[-1]], x.dtype, lambda k: Apply(mul_p, pair(k), {}))
        return [Apply(add_p, (scale(product, alpha), scale(c[i], beta)), {})]

    def jvp(self, primals, tangents, *, alpha, beta):
        (y,) = self.apply(*primals, alpha=alpha, beta=beta)
        (x, _), (dx, dc) = primals, tangents
        dots = []
        if not isinstance(dx, Zero) and alpha != 0:
            half = matrices.product(x, swap(dx))
            dots.append(mul(add(half, swap(half)), alpha))
        if not isinstance(dc, Zero) and beta != 0:
            dots.append(mul(dc, beta))
        if not dots:
            return [y], zero_tangents([y])
        return [y], [dots[0] if len(dots) == 1 else add(*dots)]


symmetric_product_p = SymmetricProduct()


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Compute `alpha a a^T + beta c`, a symmetric matrix.

    Args:
      a_matrix: a float array of shape (..., m, n).
      c_matrix: a symmetric float array of shape (..., m, m).
      alpha: the factor of the product, a Python float. The default is 1.
      beta: the factor of `c_matrix`, a Python float. The default is 0.
      symmetrize_output: if True, the upper triangle of the result is a copy of the lower one. The
        default is False.

    Returns:
      An array of shape (..., m, m).

    >>> a = jnp.array([[4.0, 1.0], [2.0, 3.0]])
    >>> print(lax.linalg.symmetric_product(a, jnp.eye(2), alpha=2.0, beta=1.0))
    [[35. 22.]
     [22. 27.]]
    """
    op = "symmetric_product"
    alpha, beta = as_number(op, "alpha", alpha), as_number(op, "beta", beta)
    y = symmetric_product_p.apply(a_matrix, c_matrix, alpha=alpha, beta=beta)[0]
    return add(matrices.lower_part(y), swap(matrices.lower_part(y, -1))) if symmetrize_output else y


# --- triangular systems ---------------------------------------------------------------------


class TriangularSolve(matrices.MatrixPrimitive):
    """The solution x of op(a) x = b, or of x op(a) = b unless `left_side`.

    op(a) is a, a^T, conj(a) or a^H. Shapes: a (..., n, n), b (..., n, k), or (..., k, n) for the
    right side. Dtypes: float, complex; 16-bit floats are computed in float32. Reads the `lower` or
    the upper triangle of a. With `unit_diagonal` the diagonal is not read and counts as ones. A
    zero on the diagonal gives inf or NaN. Source: BLAS trsm.
    """

    name = "triangular_solve"
    form = Form.TRIANGULAR_SOLVE

    def abstract_eval(self, a, b, *, left_side, **params):
        check_equal_dtypes(self.name, a, b)
        matrices.check_matrix(self.name, a, True, (*LETTERS, "float16", "bfloat16"))
        if b.shape[:-2] != a.shape[:-2] or b.ndim < 2 or b.shape[-1 - left_side] != a.shape[-1]:
            wanted = "(..., n, k)" if left_side else "(..., k, n)"
            raise ShapeError(
                f"{self.name}: operands must be of shapes (..., n, n) and {wanted}; got {a}, {b}."
            )
        return [ShapedArray(b.shape, b.dtype, a.weak_type and b.weak_type)]

    def write(self, hlo, outs, a, b, **params):
        (out,) = outs
        if dtypes.itemsize_bits(out.dtype) == 16:
            a, b = (hlo.convert(x, np.dtype(np.float32)) for x in (a, b))
        solve = write_triangular if is_small(a.aval) else self.write_call
        return [hlo.convert(solve(hlo, a, b, **params), out.dtype)]

    def write_call(self, hlo, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        """Write a call of the platform's own solver."""
        conjugate_a = conjugate_a and dtypes.is_complex(a.aval.dtype)
        if conjugate_a and not transpose_a:
            a = Expr(hlo, a).conjugate().value
        if hlo.platform != "cpu":
            kind = "ADJOINT" if conjugate_a else "TRANSPOSE"
            (y,) = hlo.op(
                "stablehlo.triangular_solve",
                [a, b],
                [b.aval],
                left_side=bool_text(left_side),
                lower=bool_text(lower),
                unit_diagonal=bool_text(unit_diagonal),
                transpose_a=f"#stablehlo<transpose {kind if transpose_a else 'NO_TRANSPOSE'}>",
            )
            return y
        # Use the transposes, which are free to pass: op(a^T) is on the other side, and the other
        # triangle of a is read.
        a, b = matrices.lower_swap(hlo, a), matrices.lower_swap(hlo, b)
        (y,) = matrices.call_kernel(
            hlo, "trsm", [a, b], [b.aval], {0: 1}, side=char_option("R" if left_side else "L"),
            uplo=char_option("U" if lower else "L"),
            trans_x=char_option("N" if not transpose_a else "C" if conjugate_a else "T"),
            diag=char_option("U" if unit_diagonal else "N"),
        )  # fmt: skip
        return matrices.lower_swap(hlo, y)

    def jvp(self, primals, tangents, **params):
        """op(a) dx = db - op(da) x, with the part of da that is read."""
        (a, _), (da, db) = primals, tangents
        (x,) = self.apply(*primals, **params)
        moved = db
        if not isinstance(da, Zero):
            left, below = params["left_side"], params["lower"]
            offset = params["unit_diagonal"]
            da = matrices.lower_part(da, -offset) if below else matrices.upper_part(da, offset)
            da = swap(da) if params["transpose_a"] else da
            da = matrices.conjugate(da) if params["conjugate_a"] else da
            moved = matrices.subtract_tangents(
                db, matrices.product(da, x) if left else matrices.product(x, da)
            )
        return [x], self.apply(a, moved, **params)

    def transpose(self, cts, a, b, *, transpose_a, **params):
        """Linear in b; the transpose of op(a) is op of a^T."""
        if isinstance(a, Linear):
            raise not_linear(self.name, (a, b))
        return [None, *self.apply(a, cts[0], transpose_a=not transpose_a, **params)]

    def batch(self, axis, args, dims, *, left_side, **params):
        """Batch right-hand sides as more columns (or rows) of b, where one matrix serves all."""
        (a, b), (i, j) = args, dims
        if i is not None:
            return super().batch(axis, args, dims, left_side=left_side, **params)
        b = layout.move_to_front(b, j)
        shape = typeof(b).shape[1:]
        at = len(shape) - 1 if left_side else len(shape) - 2  # the axis of columns, or rows
        order = (*range(1, at + 1), 0, *range(at + 1, len(shape) + 1))
        merged = (*shape[:at], axis.size * shape[at], *shape[at + 1 :])
        b = layout.reshape(layout.transpose(b, order), merged)
        (x,) = self.apply(a, b, left_side=left_side, **params)
        return [layout.reshape(x, (*shape[:at], axis.size, *shape[at:]))], [at]


triangular_solve_p = TriangularSolve()


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve linear systems with triangular matrices: op(a) x = b, or x op(a) = b.

    Args:
      a: the triangular matrices, of shape (..., n, n).
      b: the right-hand sides, of shape (..., n, k) if `left_side`, else (..., k, n). Single vectors
        are of shape (..., n).
      left_side: if True, solve op(a) x = b. If False, the default, solve x op(a) = b.
      lower: if True, the lower triangle of a is read. If False, the default, the upper one.
      transpose_a: if True, op transposes. The default is False.
      conjugate_a: if True, op conjugates. The default is False.
      unit_diagonal: if True, the diagonal of a is taken to be 1 and is not read. The default is
        False.

    Returns:
      The solutions x, of the shape of b.

    >>> a = jnp.array([[2., 0.], [1., 4.]])
    >>> print(lax.linalg.triangular_solve(a, jnp.array([2., 9.]), left_side=True, lower=True))
    [1. 2.]
    """
    vector = typeof(b, "triangular_solve").ndim == typeof(a, "triangular_solve").ndim - 1
    if vector:
        b = layout.expand_dims(
            b,
            (
                typeof(b, "triangular_solve").ndim
                if left_side
                else typeof(b, "triangular_solve").ndim - 1,
            ),
        )
    x = triangular_solve_p.apply(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a),
        unit_diagonal=bool(unit_diagonal),
    )[0]
    return layout.squeeze(x, (-1 if left_side else -2,)) if vector else x


# --- tridiagonal systems --------------------------------------------------------------------


class TridiagonalSolve(matrices.MatrixPrimitive):
    """The solution x of t x = b; t has the diagonal d, dl[i] at (i, i - 1) and du[i] at (i, i + 1).

    Shapes: dl, d, du (..., n), b (..., n, k); dl[0] and du[n - 1] are not read. NaN where t is
    singular; with `perturb_singular` small pivots are made larger instead. Source: LAPACK gtsv.
    """

    name = "tridiagonal_solve"
    form = Form.FACTORS
    cost = Cost.REDUCTION
    core_rank = 1

    def abstract_eval(self, dl, d, du, b, *, perturb_singular):
        check_equal_dtypes(self.name, dl, d, du, b)
        matrices.check_matrix(self.name, b)
        if not dl.shape == d.shape == du.shape == b.shape[:-1]:
            raise ShapeError(
                f"{self.name}: the diagonals must be of shape (..., n) for a right side of shape "
                f"(..., n, k); got {dl}, {d}, {du}, {b}. Hint: b[..., None] where b is a vector."
            )
        return [ShapedArray(b.shape, b.dtype, all(a.weak_type for a in (dl, d, du, b)))]

    def write(self, hlo, outs, dl, d, du, b, *, perturb_singular):
        (out,), rank = outs, d.aval.ndim - 1
        if perturb_singular:
            name = "tridiagonal_solve_perturbed_ffi"
            return call_lapack(hlo, name, [dl, d, du, b], [out], rank)
        info = ShapedArray(out.shape[:-2], np.int32)
        avals = [dl.aval, d.aval, du.aval, out, info]
        aliases = {i: i for i in range(4)}
        *_, x, failed = call_lapack(hlo, "gtsv", [dl, d, du, b], avals, rank, aliases)
        return self.completion.mark_failures(hlo, failed, [x])

    def jvp(self, primals, tangents, **params):
        """t dx = db - dt x."""
        *diagonals, _ = primals
        (x,) = self.apply(*primals, **params)
        moved = tangents[3]
        for dot, shift in zip(tangents[:3], (-1, 0, 1), strict=True):
            if not isinstance(dot, Zero):
                moved = matrices.subtract_tangents(
                    moved, matrices.scale_rows(dot, shift_elements(x, shift, -2))
                )
        return [x], self.apply(*diagonals, moved, **params)

    def transpose(self, cts, dl, d, du, b, **params):
        """Linear in b; in t^T the outer diagonals have changed places."""
        if any(isinstance(x, Linear) for x in (dl, d, du)):
            raise not_linear(self.name, (dl, d, du, b))
        above, below = shift_elements(du, -1, -1), shift_elements(dl, 1, -1)
        return [None, None, None, *self.apply(above, d, below, cts[0], **params)]


def shift_elements(x: Any, by: int, axis: int) -> Any:
    """x[i + by] at i along an axis, 0 where there is none."""
    n, axis = typeof(x).shape[axis], typeof(x).ndim + axis
    if by == 0 or n == 0:
        return x
    config = [(0, 0, 0)] * typeof(x).ndim
    config[axis] = (1, -1, 0) if by < 0 else (-1, 1, 0)
    return pad(x, layout.literal(0, typeof(x).dtype), config)


tridiagonal_solve_p = TridiagonalSolve()


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solve tridiagonal linear systems by elimination with pivoting.

    Args:
      dl: the lower diagonals, a float array of shape (..., n). dl[i] is left of d[i]; dl[0] is not
        read.
      d: the diagonals, of shape (..., n).
      du: the upper diagonals, of shape (..., n). du[i] is right of d[i]; du[n - 1] is not read.
      b: the right-hand sides, of shape (..., n, k).
      perturb_singular: if True, pivots that are 0 are replaced by tiny numbers. If False, the
        default, the solutions of singular systems are NaN.

    Returns:
      The solutions, of the shape of b.

    >>> one, b = jnp.ones(3), jnp.array([[3.], [5.], [3.]])
    >>> print(lax.linalg.tridiagonal_solve(0 * one, one, one, b).ravel())
    [1. 2. 3.]
    """
    return tridiagonal_solve_p.apply(dl, d, du, b, perturb_singular=bool(perturb_singular))[0]
