"""weft.lax.linalg: every name of the inventory's, with the signatures users know."""

import inspect

import weft
from weft import lax

NAMES = """
EigImplementation EighImplementation SvdAlgorithm cholesky cholesky_p cholesky_update
cholesky_update_p eig eig_p eigh eigh_p hessenberg hessenberg_p householder_product
householder_product_p lu lu_p lu_pivots_to_permutation lu_pivots_to_permutation_p ormqr ormqr_p
qdwh qr qr_p schur schur_p svd svd_p symmetric_product symmetric_product_p triangular_solve
triangular_solve_p tridiagonal tridiagonal_p tridiagonal_solve tridiagonal_solve_p
""".split()  # noqa: SIM905

SIGNATURES = {
    "cholesky": "x *symmetrize_input",
    "cholesky_update": "r_matrix w_vector",
    "eig": "x *compute_left_eigenvectors *compute_right_eigenvectors *enable_eigvec_derivs "
    "*implementation *use_magma",
    "eigh": "x *lower *symmetrize_input *sort_eigenvalues *subset_by_index *implementation",
    "hessenberg": "a",
    "householder_product": "a taus",
    "lu": "x",
    "lu_pivots_to_permutation": "pivots permutation_size",
    "ormqr": "a taus c *left *transpose",
    "qdwh": "x *is_hermitian *max_iterations *eps *dynamic_shape",
    "qr": "x *pivoting *full_matrices *use_magma",
    "schur": "x *compute_schur_vectors *sort_eig_vals *select_callable",
    "svd": "x *full_matrices *compute_uv *subset_by_index *algorithm",
    "symmetric_product": "a_matrix c_matrix *alpha *beta *symmetrize_output",
    "triangular_solve": "a b *left_side *lower *transpose_a *conjugate_a *unit_diagonal",
    "tridiagonal": "a *lower",
    "tridiagonal_solve": "dl d du b *perturb_singular",
}


def test_the_names_are_there():
    assert sorted(lax.linalg.__all__) == sorted(NAMES)
    for name in NAMES:
        assert getattr(lax.linalg, name) is not None
        if name.endswith("_p"):
            assert getattr(lax.linalg, name).name == name.removesuffix("_p")
    assert weft.lax.linalg is lax.linalg


def test_the_signatures():
    for name, text in SIGNATURES.items():
        parameters = inspect.signature(getattr(lax.linalg, name)).parameters.values()
        shown = [("*" if p.kind is p.KEYWORD_ONLY else "") + p.name for p in parameters]
        assert " ".join(shown) == text, name
