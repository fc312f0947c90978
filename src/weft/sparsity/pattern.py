"""`Pattern`: which entries of a matrix may be other than zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from weft.errors import ShapeError
from weft.sparsity import coloring

SIDE = 360  # pixels of the longer side of a picture


class Pattern:
    """The entries of a Jacobian or Hessian that may be other than zero.

    A function of arrays of several axes, or of several arrays, has a matrix all the same: rows are
    the elements of all results, columns the elements of all differentiated inputs, in C order.

    Attributes:
      shape: the numbers of rows and columns.
      nnz: the number of entries.
      rows, columns: the row and the column of each entry, int arrays of shape (nnz,), row by row.
      products: the number of products of the matrix and a vector that compute all entries: from
        the right (forward mode) and from the left (reverse mode).

    >>> weft.sparse_jacobian(lambda x: x[1:] * x[:-1]).pattern(jnp.ones(100))
    Pattern((99, 100), nnz=198, products=(2, 0))
    """

    def __init__(self, matrix: Any, plan: coloring.Coloring):
        self._matrix = matrix
        self._plan = plan

    @property
    def shape(self) -> tuple[int, int]:
        return self._matrix.shape

    @property
    def nnz(self) -> int:
        return int(self._matrix.nnz)

    @property
    def rows(self) -> np.ndarray:
        return coloring.list_rows(self._matrix)

    @property
    def columns(self) -> np.ndarray:
        return self._matrix.indices

    @property
    def products(self) -> tuple[int, int]:
        return self._plan.column_count, self._plan.row_count

    def todense(self) -> np.ndarray:
        """Return the pattern as a NumPy array of bools.

        >>> weft.sparse_jacobian(lambda x: x**2).pattern(jnp.ones(2)).todense()
        array([[ True, False],
               [False,  True]])
        """
        return self._matrix.toarray()

    def to_scipy_sparse(self) -> scipy.sparse.csr_array:
        """Return the pattern as a `scipy.sparse.csr_array` of bools."""
        return self._matrix.copy()

    def draw(self) -> Picture:
        """Return a picture of the pattern, which a notebook shows and `save` writes as SVG.

        >>> picture = weft.sparse_jacobian(jnp.cumsum).pattern(jnp.ones(8)).draw()
        >>> picture.svg.startswith("<svg")
        True
        """
        return Picture(self._matrix)

    def _repr_svg_(self) -> str:
        return self.draw().svg

    def __repr__(self) -> str:
        return f"Pattern({self.shape}, nnz={self.nnz}, products={self.products})"


class Picture:
    """A picture of a pattern: a dark square where there is an entry.

    `svg` is its text. Where a matrix is larger than the picture, a square stands for a block, and
    is the darker the more entries the block has.
    """

    def __init__(self, matrix: Any):
        height, width = matrix.shape
        scale = max(1.0, max(height, width) / SIDE)
        rows = (coloring.list_rows(matrix) / scale).astype(int)
        columns = (matrix.indices / scale).astype(int)
        high, wide = (max(1, int(np.ceil(n / scale))) for n in (height, width))
        blocks = scipy.sparse.coo_array(
            (np.ones(len(rows)), (rows, columns)), shape=(high, wide)
        ).tocsr()
        side = SIDE / max(high, wide)
        lines = []
        for i, j, count in zip(
            coloring.list_rows(blocks), blocks.indices, blocks.data, strict=True
        ):
            shade = 0.35 + 0.65 * min(1.0, count / scale)
            lines.append(
                f'<rect x="{j * side:.2f}" y="{i * side:.2f}" width="{side:.2f}" '
                f'height="{side:.2f}" fill-opacity="{shade:.2f}"/>'
            )
        size = f'width="{wide * side + 2:.0f}" height="{high * side + 2:.0f}"'
        frame = (
            f'<rect width="{wide * side:.2f}" height="{high * side:.2f}" fill="none" '
            'stroke="#888" stroke-width="0.5"/>'
        )
        title = f"<title>{matrix.nnz} entries of {height} x {width}</title>"
        body = "".join([title, frame, '<g fill="#2a6fb0">', *lines, "</g>"])
        self.svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="-1 -1 {wide * side + 2:.0f} '
            f'{high * side + 2:.0f}">{body}</svg>'
        )

    def save(self, path: Any) -> None:
        """Write the picture to a file, as SVG."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Picture({len(self.svg)} characters of SVG)"


def read_pattern(op: str, given: Any, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    """Return the matrix of a pattern that a user gives: a Pattern, or anything of two axes."""
    if isinstance(given, Pattern):
        given = given._matrix
    elif hasattr(given, "to_scipy_sparse"):
        given = given.to_scipy_sparse()
    matrix = given if scipy.sparse.issparse(given) else np.asarray(given)
    if matrix.shape != shape:
        raise ShapeError(
            f"{op}: pattern must have a row for each element of the results and a column for each "
            f"element of the inputs, {shape}; got {tuple(matrix.shape)}."
        )
    found = scipy.sparse.csr_array(matrix).astype(bool)
    return tidy(found)


def tidy(matrix: Any) -> scipy.sparse.csr_array:
    """Return a matrix with its entries in order, each once, none of them False."""
    matrix = scipy.sparse.csr_array(matrix)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
