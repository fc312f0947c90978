"""`sparsify`: results of functions of dense arrays on sparse ones, against dense ones."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax
from weft.experimental import sparse
from weft.experimental.sparse import BCOO
from weft.primitives.elementwise import Elementwise

M = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 5]], np.float32)
W = np.arange(8, dtype=np.float32).reshape(4, 2)


def double(carry):
    return carry[0] + 1, carry[1] * 2


STAYS_SPARSE = {
    "sin": jnp.sin,
    "sqrt": jnp.sqrt,
    "relu": lambda x: jnp.maximum(x, 0),
    "arithmetic": lambda x: x - 2 * x / 3 + x * x,
    "stack": lambda x: jnp.stack([x, x], 1),
    "concatenate": lambda x: jnp.concatenate([x, x]),
    "tile": lambda x: jnp.tile(x, (2, 1)),
    "split": lambda x: jnp.split(x, 2, 1)[1],
    "expand": lambda x: x[None, :, None],
    "flip": jnp.flip,
    "dot": lambda x: x @ x.T,
    "jit": weft.jit(lambda x: x * 2),
    "cond": lambda x: lax.cond(x.shape[0] > 2, lambda x: x * 2, lambda x: x * 3, x),
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x),
    "while": lambda x: lax.while_loop(lambda c: c[0] < 3, double, (0, x))[1],
    "scan": lambda x: lax.scan(lambda c, v: (c * v, None), x, np.arange(1, 3.0))[0],
    "vmap": weft.vmap(lambda x: x * 2),
    "convolve": lambda x: jnp.convolve(x[0], np.ones(2, np.float32)),
    "round": lambda x: (x / 2).astype(np.int32),
    "checkpoint": weft.checkpoint(lambda x: x * 3),
}  # fmt: skip
BECOMES_DENSE = {
    "sum": jnp.sum,
    "mean": jnp.mean,
    "norm": jnp.linalg.norm,
    "einsum": lambda x: jnp.einsum("ij,jk->ki", x, W),
    "todense": lambda x: jnp.cos(sparse.todense(x)),
}


def test_functions_of_dense_arrays():
    """All of them, of two layouts, in one program."""
    half, every, kept = BCOO.fromdense(M / 2), {**STAYS_SPARSE, **BECOMES_DENSE}, {}

    def run(x):
        found = {name: sparse.sparsify(fun)(x) for name, fun in every.items()}
        kept.update({name: isinstance(y, BCOO) for name, y in found.items()})
        return {name: sparse.todense(y) for name, y in found.items()}

    pair = (half + half, BCOO.fromdense(M, n_dense=1))
    *found, want = weft.jit(
        lambda *xs: (*map(run, xs[:2]), {n: f(xs[2]) for n, f in every.items()})
    )(*pair, M)
    assert kept == {name: name in STAYS_SPARSE for name in every}
    for name, y in want.items():
        for x in found:
            np.testing.assert_allclose(x[name], y, rtol=1e-6, err_msg=name)
            assert x[name].dtype == y.dtype


def test_what_is_zero_at_zero_stays_sparse():
    """All functions of one element: those that are not zero at zero make an array dense."""
    x, stay = M / 8, []
    mat = BCOO.fromdense(x)
    primitives = [getattr(lax, name) for name in dir(lax) if name.endswith("_p")]
    unary = [p for p in primitives if isinstance(p, Elementwise) and len(p.derivs) == 1]
    for prim in unary:
        fun = lambda x, prim=prim: prim.apply(x)[0]
        try:
            want = np.asarray(fun(x))
        except (weft.errors.DtypeError, TypeError):  # not of float32, or with parameters
            continue
        if want[0, 0] == 0:
            found = sparse.sparsify(fun)(mat)
            assert isinstance(found, BCOO)
            np.testing.assert_array_equal(found.todense(), want, err_msg=prim.name)
            stay.append(prim.name)
        else:
            with pytest.raises(NotImplementedError, match=prim.name):
                sparse.sparsify(fun)(mat)
    assert {"sin", "bessel_i1e", "sqrt", "stop_gradient"} <= {*stay} and len(unary) > len(stay)


def test_pytrees_and_other_arguments():
    fun = sparse.sparsify(lambda d, v, scale: {"out": d["x"] @ v * scale, "x": d["x"], "v": v})
    out = fun({"x": BCOO.fromdense(M)}, W, scale=2)
    np.testing.assert_allclose(out["out"], 2 * M @ W)
    assert isinstance(out["x"], BCOO)
    assert out["v"] is W
    seen = []
    sparse.sparsify(lambda x: seen.append(x) or x, use_tracer=True)(out["x"])
    assert isinstance(seen[0], sparse.SparseTracer)
    assert repr(seen[0]) == "SparseTracer<f32[3,4]>"


def test_todense_of_dense_arrays():
    assert sparse.todense(M) is M
    np.testing.assert_array_equal(weft.jit(sparse.todense)(M), M)
    np.testing.assert_array_equal(
        weft.vmap(weft.grad(lambda x: sparse.todense(x).sum()))(M), 0 * M + 1
    )
