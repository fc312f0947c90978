"""Derivatives in what sparse arrays store, against those in all elements of dense ones."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.experimental import sparse
from weft.experimental.sparse import BCOO

M = np.array([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 4, 5]], np.float32)
V = np.arange(4, dtype=np.float32)
GRAD = 2 * (M @ V)[:, None] * V * (M != 0)


def loss(x, v):
    return jnp.sum((x @ v) ** 2)


@pytest.mark.sample(one_in=6)
@pytest.mark.parametrize("cls", [BCOO, sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC])
def test_gradients(cls):
    x = cls.fromdense(M)
    found, other = weft.jit(sparse.grad(loss, argnums=(0, 1)))(x, V)
    assert type(found) is cls
    np.testing.assert_allclose(found.todense(), GRAD)
    np.testing.assert_allclose(other, 2 * M.T @ (M @ V))
    jac = sparse.jacrev(lambda x: x @ V)(x)
    assert jac.shape == (3, 3, 4)
    np.testing.assert_allclose(jac.todense(), np.eye(3)[:, :, None] * np.where(M != 0, V, 0))


def test_pytrees_and_results():
    x = BCOO.fromdense(M)
    fun = lambda d, v: (loss(d["x"], v), v)
    (value, aux), grads = sparse.value_and_grad(fun, has_aux=True)({"x": x}, V)
    np.testing.assert_allclose([value, *aux], [np.sum((M @ V) ** 2), *V])
    np.testing.assert_allclose(grads["x"].todense(), GRAD)
    grads, aux = sparse.grad(fun, has_aux=True)({"x": x}, V)
    np.testing.assert_allclose(grads["x"].todense(), GRAD)
    jac = sparse.jacfwd(lambda x, v: {"y": x @ v}, argnums=(0, 1))(x, V)["y"]
    np.testing.assert_allclose(jac[0].todense()[0], np.where(M != 0, V, 0) * [[1], [0], [0]])
    np.testing.assert_allclose(jac[1], M)
    with pytest.raises(TypeError, match="sparse.grad: .* must return dense arrays; got BCOO"):
        sparse.grad(lambda x: x * 2)(x)


def test_second_derivatives_and_batches():
    x = BCOO.fromdense(M)
    columns = np.asarray(x.indices)[:, 1]
    same = np.asarray(x.indices)[:, :1] == np.asarray(x.indices)[:, 0]
    hessian = weft.hessian(lambda d: loss(x.make(d), V))(x.data)
    np.testing.assert_allclose(hessian, 2 * same * np.outer(V[columns], V[columns]))
    many = BCOO.fromdense(np.stack([M, 2 * M]), n_batch=1)
    found = weft.vmap(sparse.grad(loss), in_axes=(0, None))(many, V)
    np.testing.assert_allclose(found.todense(), np.stack([GRAD, 2 * GRAD]))
