"""Arrays that store few of their elements, under the names of `jax.experimental.sparse`.

`BCOO` is the general one; `BCSR` is quickest in products; `sparsify` applies functions of dense
arrays. See docs/sparse.md.
"""

from weft.util import import_lazily

HOMES = {
    "base": ("CuSparseEfficiencyWarning JAXSparse SparseEfficiencyError SparseEfficiencyWarning"),
    "entries": (
        "bcoo_eliminate_zeros bcoo_extract bcoo_sort_indices bcoo_sum_duplicates bcoo_todense "
        "bcoo_update_layout"
    ),
    "shaping": (
        "bcoo_broadcast_in_dim bcoo_concatenate bcoo_dynamic_slice bcoo_gather bcoo_reduce_sum "
        "bcoo_reshape bcoo_rev bcoo_slice bcoo_squeeze bcoo_transpose"
    ),
    "products": (
        "bcoo_conv_general_dilated bcoo_dot_general bcoo_dot_general_sampled bcoo_multiply_dense "
        "bcoo_multiply_sparse"
    ),
    "transform": "SparseTracer sparsify todense todense_p",
    "bcoo": "BCOO bcoo_fromdense",
    "bcsr": (
        "BCSR bcsr_broadcast_in_dim bcsr_concatenate bcsr_dot_general bcsr_extract bcsr_fromdense "
        "bcsr_sum_duplicates bcsr_todense"
    ),
    "coo": (
        "COO CSC CSR coo_fromdense coo_matmat coo_matvec coo_todense csr_fromdense csr_matmat "
        "csr_matvec csr_todense"
    ),
    "derivatives": "grad jacfwd jacobian jacrev value_and_grad",
    "creation": "empty eye random_bcoo",
    "named": (
        "bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p "
        "bcoo_sort_indices_p bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p "
        "bcoo_transpose_p bcsr_dot_general_p bcsr_extract_p bcsr_fromdense_p bcsr_todense_p "
        "coo_fromdense_p coo_matmat_p coo_matvec_p coo_todense_p csr_fromdense_p csr_matmat_p "
        "csr_matvec_p csr_todense_p"
    ),
}
__getattr__, __dir__ = import_lazily(
    __name__,
    {f"{__name__}.linalg": ""} | {f"{__name__}.{module}": names for module, names in HOMES.items()},
)
