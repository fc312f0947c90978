"""Linear algebra on matrices stacked along leading axes, under the names of `jax.lax.linalg`.

Each operation is defined, with its rules, in the module named here, which is imported when the name
is first used. NumPy's functions are in weft.numpy.linalg.
"""

from weft.util import import_lazily

HOMES = {
    "weft.primitives.linalg": (
        "cholesky cholesky_p cholesky_update cholesky_update_p symmetric_product "
        "symmetric_product_p triangular_solve triangular_solve_p tridiagonal_solve "
        "tridiagonal_solve_p"
    ),
    "weft.primitives.factorizations": (
        "householder_product householder_product_p lu lu_p lu_pivots_to_permutation "
        "lu_pivots_to_permutation_p ormqr ormqr_p qr qr_p"
    ),
    "weft.primitives.polar": "qdwh",
    "weft.primitives.eigen": (
        "EigImplementation EighImplementation SvdAlgorithm eig eig_p eigh eigh_p hessenberg "
        "hessenberg_p schur schur_p svd svd_p tridiagonal tridiagonal_p"
    ),
}
__all__ = [name for names in HOMES.values() for name in names.split()]
__getattr__, __dir__ = import_lazily(__name__, HOMES)
