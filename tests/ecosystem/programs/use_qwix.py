"""qwix: a network of flax, quantized after training and in training."""

import jax
import jax.numpy as jnp
import qwix
from flax import linen as nn


class MLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4, use_bias=False)(nn.relu(nn.Dense(16, use_bias=False)(x)))


model, x = MLP(), jax.random.uniform(jax.random.key(0), (8, 16))
params = model.init(jax.random.key(1), x)["params"]
print(model.apply({"params": params}, x)[0])
rules = [qwix.QuantizationRule(module_path=".*", weight_qtype=jnp.int8, act_qtype=jnp.int8)]
quantized = qwix.quantize_model(model, qwix.PtqProvider(rules))
shapes = jax.eval_shape(quantized.init, jax.random.key(1), x)["params"]
small = qwix.quantize_params(params, shapes)
print(jax.jit(quantized.apply)({"params": small}, x)[0])
trained = qwix.quantize_model(model, qwix.QtProvider([qwix.QtRule(module_path=".*")]))
qat = qwix.quantize_model(
    model, qwix.QtProvider([qwix.QtRule(weight_qtype="int8", act_qtype="int8")])
)
for m in (trained, qat):
    slope = jax.jit(jax.grad(lambda p, m=m: jnp.sum(m.apply({"params": p}, x) ** 2)))(params)
    print(jax.tree.map(jnp.sum, slope))
