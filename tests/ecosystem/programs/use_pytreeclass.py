"""pytreeclass: classes that are trees, changed at places."""

import jax
import jax.numpy as jnp
import pytreeclass as tc


@tc.autoinit
class Tree(tc.TreeClass):
    a: float = 1.0
    b: tuple[float, float] = (2.0, 3.0)
    c: jax.Array = jnp.array([4.0, 5.0, 6.0])

    def __call__(self, x):
        return self.a + self.b[0] + self.c + x


tree = Tree()
mask = jax.tree.map(lambda x: x > 5, tree)
tree = tree.at["a"].set(100.0).at["b"][0].set(10.0).at[mask].set(100.0)
print(tree)
print(tc.tree_diagram(tree))
print(tc.tree_summary(tree))
print(jax.jit(jax.grad(lambda tree, x: jnp.sum(tree(x))))(tree, 1.0))
print(tree.at["c"].reduce(lambda a, b: a + jnp.sum(b), initializer=0.0))
frozen = tc.freeze(tree)
print(jax.tree.leaves(frozen), tc.tree_diagram(frozen), tc.is_tree_equal(tree, tc.unfreeze(frozen)))
print(jax.vmap(lambda t, x: t.a * x, in_axes=(None, 0))(tree, jnp.arange(3.0)))
