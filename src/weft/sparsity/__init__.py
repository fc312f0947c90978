"""Sparse Jacobians and Hessians that find their own pattern: `sparse_jacobian`, `sparse_hessian`.

See docs/sparse-derivatives.md.
"""

from weft.sparsity.derivatives import SparseDerivative, sparse_hessian, sparse_jacobian
from weft.sparsity.pattern import Pattern
from weft.util import list_public

__all__ = ["Pattern", "SparseDerivative", "sparse_hessian", "sparse_jacobian"]
__dir__ = list_public(__name__)
