"""cpu/matrices.py: which factorizations are kernels; values are in test_kernels.py, primitives/."""

import numpy as np
import pytest

import weft
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


def sum_of_logs(x):
    return jnp.log(jnp.diagonal(linalg.cholesky(x), axis1=-2, axis2=-1)).sum()


def multiply_factor(x):
    return (linalg.cholesky(x, symmetrize_input=False) @ jnp.sin(x)).sum()


def solve_in_two_steps(x):
    low = linalg.cholesky(x * 1.5 + jnp.eye(x.shape[0]))
    return (linalg.triangular_solve(low, linalg.cholesky(x), left_side=True, lower=True) ** 2).sum()


def sum_whole_factors(x):
    return jnp.tanh(
        weft.vmap(jnp.linalg.cholesky)(x[None] * jnp.arange(2.0, 5)[:, None, None])
    ).sum()


PULLBACK = 'custom_call_target="weft_cholesky_pullback"'  # in the text of XLA
PULLED = {sum_of_logs: 1, multiply_factor: 1, solve_in_two_steps: 2, sum_whole_factors: 1}


def make_definite(n):
    x = np.random.default_rng(n).normal(size=(n, n))
    return x @ x.T / n + 2 * np.eye(n)


@pytest.mark.parametrize("fun", PULLED)
def test_one_kernel_computes_the_cotangent_of_a_factored_matrix(fun):
    x = make_definite(40)
    for inner in (fun, weft.checkpoint(fun)):
        text = weft.jit(weft.grad(inner)).lower(x.astype(np.float32)).compile().as_text()
        assert text.count(PULLBACK) == PULLED[fun]
    with weft.enable_x64(True):
        change = np.random.default_rng(0).normal(size=x.shape)
        change += change.T
        slope = (fun(x + 1e-5 * change) - fun(x - 1e-5 * change)) / 2e-5
        np.testing.assert_allclose((weft.jit(weft.grad(fun))(x) * change).sum(), slope, rtol=1e-6)


def test_cotangents_of_factors_that_kernels_do_not_compute_stay():
    kernel = "weft_cholesky_pullback"
    grad = weft.grad(sum_of_logs)
    batch = weft.vmap(grad)
    assert kernel in show_prepared(batch, jnp.stack([LARGE] * 3))
    assert kernel not in show_prepared(grad, SMALL)
    assert kernel not in show_prepared(grad, LARGE, target=NO_KERNELS)
    pull = lambda low, ct: weft.vjp(linalg.cholesky, low @ low.T)[1](ct)[0]
    assert kernel in show_prepared(pull, LARGE, LARGE)

    def solve(a, b, half=0.5, part=jnp.tril, numbers="ki,kj->ij"):
        low = linalg.cholesky(a)
        product = jnp.einsum(numbers, low, b, precision="highest") * half
        inner = linalg.triangular_solve(low, part(product, -1) + jnp.tril(product), lower=True)
        return linalg.triangular_solve(low, inner, left_side=True, lower=True, transpose_a=True)

    others = [
        lambda a, b: solve(a, b, half=0.25),
        lambda a, b: solve(a, b, part=jnp.triu),
        lambda a, b: solve(a, b, numbers="ik,kj->ij"),
    ]
    for fun in others:
        assert kernel not in show_prepared(fun, LARGE, LARGE)


def test_a_cotangent_that_is_symmetrized_is_computed_as_symmetric():
    """The kernel takes fewer products for the symmetric part, if nothing else is read."""

    def show(fun):
        pull = lambda x, ct: weft.vjp(KERNELS["weft_cholesky"], x)[1](ct)[0]
        return show_prepared(lambda x, ct: fun(pull(x, ct)), LARGE, LARGE)

    def halve_sum(ct):
        half = ct * 0.5
        return half + half.T

    assert "symmetric=True" in show(halve_sum)
    assert "symmetric=True" in show_prepared(weft.grad(sum_of_logs), LARGE)
    assert "symmetric=True" in show_prepared(weft.vmap(weft.grad(sum_of_logs)), LARGE[None])
    others = [
        lambda ct: ct,
        lambda ct: ct + ct.T,
        lambda ct: ct * 0.25 + (ct * 0.25).T,
        lambda ct: ct * 0.5 + ct * 0.5,
        lambda ct: (halve_sum(ct), ct),
        lambda ct: halve_sum(ct) @ ct,
    ]
    for fun in others:
        assert "symmetric=False" in show(fun)


def test_masks_between_the_parts_stay():
    """With sizes that vary, two calls compute the parts; elements in the padding are zeros."""
    x = make_definite(45).astype(np.float32)
    grad = weft.jit(weft.grad(sum_of_logs), sizes="(n, n)")
    np.testing.assert_allclose(grad(x), np.linalg.inv(x) / 2, atol=1e-5)
    assert grad.lower(x).compile().as_text().count(PULLBACK) == 2


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
