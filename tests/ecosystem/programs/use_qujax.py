"""qujax: a circuit as a function, differentiated."""

import jax
import jax.numpy as jnp
import qujax

gates = ["H", "H", "Ry", "CZ", "Rx", "CRz"]
qubits = [[0], [1], [0], [0, 1], [1], [1, 0]]
params = [[], [], [0], [], [1], [2]]
state = qujax.get_params_to_statetensor_func(gates, qubits, params)
expectation = qujax.get_statetensor_to_expectation_func(
    [["Z"], ["X", "X"]], [[0], [0, 1]], jnp.array([1.0, 0.5])
)
x = jnp.array([0.3, 0.7, 0.2])
print(state(x))
energy = lambda x: expectation(state(x))
print(jax.jit(jax.value_and_grad(energy))(x), jax.hessian(energy)(x))
print(jax.vmap(energy)(jnp.stack([x, 2 * x])))
unitary = qujax.get_params_to_unitarytensor_func(gates, qubits, params, 2)
print(unitary(x)[0, 0])
sample = qujax.get_statetensor_to_sampled_expectation_func([["Z"]], [[0]], jnp.ones(1))
print(sample(state(x), jax.random.PRNGKey(0), 50))
