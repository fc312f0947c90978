"""jaxkd: nearest neighbours by a tree."""

import jax
import jaxkd as jk

points = jax.random.normal(jax.random.key(0), (300, 3))
queries = jax.random.normal(jax.random.key(1), (20, 3))
tree = jk.build_tree(points)
print(jk.count_neighbors(tree, queries, r=0.5))
neighbours, distances = jax.jit(jk.query_neighbors, static_argnames="k")(tree, queries, k=4)
print(neighbours, distances)
print(jk.extras.query_neighbors_pairwise(points, queries, k=4)[1].sum(), distances.sum())
print(jax.grad(lambda q: jk.build_and_query(points, q, k=3)[1].sum())(queries)[:3])
