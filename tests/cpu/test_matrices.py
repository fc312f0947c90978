"""cpu/matrices.py: which factorizations are kernels; values are in test_kernels.py, primitives/."""

import numpy as np
import pytest

import weft.numpy as jnp
from tests.cpu.prepared import NO_KERNELS, OVER_MESH, expect, show_prepared
from weft.lax import linalg

SMALL, LARGE = jnp.eye(20), jnp.eye(50)
WITHOUT = pytest.mark.parametrize("target", [NO_KERNELS, OVER_MESH], ids=["no kernels", "mesh"])
KERNELS = {
    "weft_cholesky": lambda a: linalg.cholesky(a, symmetrize_input=False),
    "weft_lu": linalg.lu,
    "weft_qr": linalg.qr,
    "weft_trsm": lambda a: linalg.triangular_solve(a, a[..., :50], left_side=True),
}


def test_factors_and_pivots_are_the_results_of_one_call():
    expect(
        show_prepared(linalg.lu, SMALL),
        """
        { lambda ; a:f32[20,20]. let
            b:f32[20,20] c:i32[20] d:i32[20] = cpu_call[kernel=weft_lu] a
          in (b, c, d) }
        """,
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_factorize_real_matrices_of_every_size(kernel):
    fun = KERNELS[kernel]
    for x in (jnp.ones((3, 6, 6)), SMALL, LARGE, jnp.eye(300)):
        assert f"kernel={kernel}" in show_prepared(fun, x)
    assert kernel not in show_prepared(fun, LARGE.astype(complex))
    tiny = show_prepared(fun, jnp.eye(4))  # is written out, where there is such a form
    assert (kernel in tiny) == (kernel == "weft_qr")


def test_cholesky_symmetrizes_in_the_kernel():
    expect(
        show_prepared(linalg.cholesky, jnp.ones((3, 20, 20))),
        """
        { lambda ; a:f32[3,20,20]. let
            b:f32[3,20,20] = cpu_call[kernel=weft_cholesky symmetrize=True] a
          in (b,) }
        """,
    )
    computed = show_prepared(lambda x: linalg.cholesky(x @ x.T), SMALL)
    assert "symmetrize=True" in computed and "transpose" not in computed.split("symmetrize")[1]
    t = lambda x: jnp.swapaxes(x, -1, -2)
    others = [
        lambda x: (x - t(x)) * 0.5,
        lambda x: (x + t(x)) * 0.25,
        lambda x: (x + t(x + 1)) * 0.5,
        lambda x: (x + x) * 0.5,
        lambda x: x + t(x),
    ]
    for fun in others:
        program = lambda x, fun=fun: linalg.cholesky(fun(x), symmetrize_input=False)
        assert "symmetrize=False" in show_prepared(program, SMALL)


def test_lapack_computes_what_it_is_quicker_at():
    assert "weft_qr" not in show_prepared(linalg.qr, jnp.zeros((800, 800)))
    assert "weft_qr" in show_prepared(linalg.qr, jnp.zeros((3000, 100)))
    solve = lambda a, b: linalg.triangular_solve(a, b)
    large = jnp.eye(200)
    assert "weft_trsm" not in show_prepared(solve, large, large)
    assert "weft_trsm" in show_prepared(solve, large, large[:60])


def test_lapack_exchanges_columns():
    text = show_prepared(lambda a: linalg.qr(a, pivoting=True), LARGE)
    assert "lower_completed" in text and "weft_qr" not in text


def test_the_order_of_rows_is_found_by_a_kernel_for_lapack_too():
    text = show_prepared(linalg.lu, LARGE.astype(complex))
    assert "lower_factors" in text and "weft_permutation" in text and "weft_lu" not in text
    large = jnp.eye(300).astype(complex)
    assert "weft_permutation" not in show_prepared(linalg.lu, large)  # 300 exchanges of 300
    assert "weft_permutation" in show_prepared(linalg.lu, jnp.eye(3))


def test_systems_of_16_bit_floats_are_solved_in_float32():
    text = show_prepared(KERNELS["weft_trsm"], SMALL.astype("bfloat16"))
    assert "kernel=weft_trsm" in text and text.count("convert_element_type") == 3


def test_short_results_of_lapack_are_completed_by_kernels():
    for factorize in (linalg.cholesky, linalg.qr, linalg.eigh, linalg.svd, linalg.hessenberg):
        x = LARGE.astype(complex)
        assert "lower_completed" in show_prepared(factorize, x)
        assert "lower_completed" not in show_prepared(factorize, x, target=NO_KERNELS)
    assert "lower_completed" not in show_prepared(linalg.cholesky, jnp.eye(300).astype(complex))


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
