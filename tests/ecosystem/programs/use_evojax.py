"""evojax: neuroevolution of a policy for a cart and its pole."""

import jax.numpy as jnp
import numpy as np
from evojax.algo import PGPE, SimpleGA
from evojax.policy import MLPPolicy
from evojax.sim_mgr import SimManager
from evojax.task.cartpole import CartPoleSwingUp

train, test = (CartPoleSwingUp(test=t, max_steps=20) for t in (False, True))
policy = MLPPolicy(input_dim=train.obs_shape[0], hidden_dims=[8], output_dim=train.act_shape[0])
for make in (PGPE, SimpleGA):
    solver = make(pop_size=8, param_size=policy.num_params, seed=1)
    manager = SimManager(
        n_repeats=1,
        test_n_repeats=1,
        pop_size=8,
        n_evaluations=4,
        policy_net=policy,
        train_vec_task=train,
        valid_vec_task=test,
        seed=0,
    )
    for _ in range(2):
        scores, _ = manager.eval_params(params=solver.ask(), test=False)
        solver.tell(fitness=scores)
        print(np.array(scores))
    print(jnp.sum(solver.best_params))
