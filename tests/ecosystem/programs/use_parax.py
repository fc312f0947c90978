"""parax: parameters that are constrained, derived and tagged."""

import jax
import jax.numpy as jnp
import parax as prx

bounded = prx.Constrained(prx.constraints.Interval(0.0, 10.0), value=8.0)
print(bounded.raw_value, bounded.bounds, jnp.sin(prx.Tagged(1.0, metadata={"a"})) + 2 * bounded)
tree = {"a": 1.0, "b": {"x": 2.0, "y": prx.Derived(jnp.log, 3.0)}}
print(jax.tree.leaves(prx.unwrap(prx.Apply(jnp.exp, tree))))
