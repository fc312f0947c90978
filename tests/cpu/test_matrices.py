"""cpu/matrices.py: which factorizations are kernels; values are in test_kernels.py, primitives/."""

import numpy as np
import pytest

import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, OVER_MESH, expect, show_prepared
from weft.lax import linalg

SMALL, LARGE = jnp.eye(20), jnp.eye(50)
WITHOUT = pytest.mark.parametrize("target", [NO_KERNELS, OVER_MESH], ids=["no kernels", "mesh"])


def test_small_matrices_are_factorized_by_the_kernel():
    expect(
        show_prepared(linalg.lu, SMALL),
        """
        { lambda ; a:f32[20,20]. let
            b:f32[20,20] c:i32[20] d:i32[20] = cpu_call[kernel=weft_lu] a
          in (b, c, d) }
        """,
    )


def test_the_order_of_rows_of_larger_ones_is_found_by_a_kernel():
    text = show_prepared(linalg.lu, LARGE)
    assert "lower_factors" in text and "weft_permutation" in text and "weft_lu" not in text
    assert "weft_permutation" not in show_prepared(linalg.lu, jnp.eye(300))  # 300 exchanges of 300
    assert "weft_permutation" in show_prepared(linalg.lu, jnp.eye(3))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_small_triangular_systems_are_solved_by_the_kernel(dtype):
    solve = lambda a, b: linalg.triangular_solve(a, b, left_side=True)
    text = show_prepared(solve, SMALL.astype(dtype), SMALL.astype(dtype))
    assert "kernel=weft_trsm" in text
    assert text.count("convert_element_type") == (3 if dtype == "bfloat16" else 0)
    for a, b in ((LARGE, LARGE), (SMALL, jnp.ones((20, 65))), (jnp.eye(4), jnp.eye(4))):
        assert "weft_trsm" not in show_prepared(solve, a, b)


def test_short_results_of_lapack_are_completed_by_kernels():
    for factorize in (linalg.cholesky, linalg.qr, linalg.eigh, linalg.svd, linalg.hessenberg):
        assert "lower_completed" in show_prepared(factorize, LARGE)
        assert "lower_completed" not in show_prepared(factorize, LARGE, target=NO_KERNELS)
    assert "lower_completed" not in show_prepared(linalg.cholesky, jnp.eye(300))


@WITHOUT
def test_without_kernels_lapack_computes_all(target):
    pivots = np.arange(5, dtype=np.int32)
    order = lambda p: linalg.lu_pivots_to_permutation(p, 6)
    assert "weft_permutation" in show_prepared(order, pivots)
    solve = lambda a: linalg.triangular_solve(a, a)
    for fun, x in ((order, pivots), (linalg.lu, SMALL), (linalg.lu, LARGE), (solve, SMALL)):
        text = show_prepared(fun, x, target=target)
        assert "cpu_call" not in text and "formula" not in text


def test_empty_matrices_stay():
    for fun in (linalg.lu, linalg.hessenberg, lambda a: linalg.triangular_solve(a, a)):
        text = show_prepared(fun, jnp.ones((0, 20, 20)))
        assert "cpu_call" not in text and "formula" not in text
