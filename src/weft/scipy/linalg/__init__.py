"""Linear algebra by SciPy's names: `weft.scipy.linalg`.

The modules here are imported when one of their names is first used. Arguments `overwrite_a`,
`check_finite`, `debug`, `turbo` and the like are taken as in SciPy and change nothing.
"""

from weft.util import import_lazily

HOMES = {
    "weft.scipy.linalg.factorizations": (
        "cho_factor cho_solve cholesky det eigh eigh_tridiagonal hessenberg inv lu lu_factor "
        "lu_solve qr qr_multiply schur solve solve_triangular svd"
    ),
    "weft.scipy.linalg.functions": "expm expm_frechet funm polar rsf2csf solve_sylvester sqrtm",
    "weft.scipy.linalg.matrices": (
        "block_diag circulant companion convolution_matrix dft fiedler fiedler_companion hadamard "
        "hankel helmert hilbert invhilbert invpascal leslie pascal toeplitz"
    ),
}
__getattr__, __dir__ = import_lazily(__name__, HOMES)
