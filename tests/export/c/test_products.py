"""Products of matrices as calls of the blocked function, under the sanitizers."""

import ctypes.util

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.export.c.sanitized import run_sanitized
from weft import export
from weft.export.c import products

# einsum, and shapes that have rests of two rows, four terms, 64 terms and 512 columns
PRODUCTS = [
    ("ik,kj->ij", (5, 70), (70, 9)),
    ("ki,kj->ij", (6, 3), (6, 9)),
    ("ik,jk->ij", (4, 5), (12, 5)),
    ("k,kj->j", (7,), (7, 8)),
    ("bik,bkj->bij", (2, 3, 5), (2, 5, 8)),
    ("bki,bjk->bij", (2, 5, 3), (2, 8, 5)),
    ("ibk,kbj->bij", (3, 2, 5), (5, 2, 8)),
    ("itk,tkj->ij", (3, 2, 2), (2, 2, 520)),
]


def test_products_agree_with_numpy(monkeypatch):
    monkeypatch.setattr(products, "MIN_PRODUCTS", 1)
    rng = np.random.default_rng(0)
    pairs = [[rng.normal(size=shape) for shape in shapes] for _, *shapes in PRODUCTS]
    fun = lambda pairs: [jnp.einsum(p, *xs) for (p, *_), xs in zip(PRODUCTS, pairs, strict=True)]
    calls = []
    for dtype in (np.float32, np.float64):
        with weft.enable_x64(dtype is np.float64):
            args = weft.tree.map(lambda x, dtype=dtype: x.astype(dtype), pairs)
            calls.append((export.to_c(fun, name=f"products_{dtype.__name__}")(args), (args,)))
    for (program, (args,)), outs in zip(calls, run_sanitized(calls), strict=True):
        assert program.source.count("apply_product_") == len(PRODUCTS) + 1
        tol = 1e-4 if args[0][0].dtype == np.float32 else 1e-12
        for (p, *_), xs, got in zip(PRODUCTS, args, outs, strict=True):
            np.testing.assert_allclose(got, np.einsum(p, *xs), tol, tol, err_msg=p)


def test_small_products_and_those_of_integers_are_sums():
    source = lambda *xs: export.to_c(lambda a, b: a @ b)(*xs).source
    assert "apply_product" not in source(np.ones((4, 4), "f"), np.ones((4, 4), "f"))
    assert "apply_product" not in source(np.ones((40, 40), "i"), np.ones((40, 40), "i"))
    assert "apply_product" in source(np.ones((40, 40), "f"), np.ones((40, 40), "f"))


@pytest.mark.skipif(not ctypes.util.find_library("openblas"), reason="needs a BLAS for C")
def test_a_blas_by_a_flag():
    a, b = np.random.default_rng(0).normal(size=(2, 40, 40)).astype(np.float32)
    fun = lambda a, b: (a @ b, a.T @ b, a @ b.T)
    call = export.to_c(fun)(a, b).build(flags=["-O1", "-DWEFT_CBLAS", "-lopenblas"])
    for got, want in zip(call(a, b), fun(a, b), strict=True):
        np.testing.assert_allclose(got, want, 1e-4, 1e-4)
