"""tensorly on JAX: decompositions, and the derivative of a reconstruction."""

import jax
import jax.numpy as jnp
import tensorly as tl
from tensorly.decomposition import non_negative_tucker, parafac, tensor_train, tucker

tl.set_backend("jax")
factors = [jax.random.normal(jax.random.key(i), (n, 2)) for i, n in enumerate((4, 5, 6))]
tensor = tl.cp_to_tensor((None, factors))
print(tensor.shape, tl.norm(tensor), tl.unfold(tensor, 1)[:2, :3])
cp = parafac(tensor, rank=2, init="svd", n_iter_max=50)
print(tl.norm(tl.cp_to_tensor(cp) - tensor) < 1e-1)
core, parts = tucker(tensor, rank=[2, 2, 2])
print(core.shape, tl.norm(tl.tucker_to_tensor((core, parts)) - tensor) < 1e-3)
train = tensor_train(tensor, rank=[1, 2, 2, 1])
print([f.shape for f in train], tl.norm(tl.tt_to_tensor(train) - tensor) < 1e-3)
print(non_negative_tucker(jnp.abs(tensor), rank=[2, 2, 2], n_iter_max=5)[0].shape)
print(jax.grad(lambda f: tl.norm(tl.cp_to_tensor((None, [f, *factors[1:]]))))(factors[0]))
print(tl.tenalg.khatri_rao(factors[:2]).sum(axis=0), tl.tenalg.mode_dot(tensor, factors[2].T, 2)[0])
