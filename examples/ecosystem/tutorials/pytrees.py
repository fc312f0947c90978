"""Working with pytrees: maps, paths, own nodes, and the usual gotchas."""

import collections
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

example_trees = [
    [1, "a", object()],
    (1, (2, 3), ()),
    [1, {"k1": 2, "k2": (3, 4)}, 5],
    {"a": 2, "b": (2, 3)},
    jnp.array([1, 2, 3]),
]
for tree in example_trees:
    print(len(jax.tree.leaves(tree)), jax.tree.structure(tree))

list_of_lists = [[1, 2, 3], [1, 2], [1, 2, 3, 4]]
print(jax.tree.map(lambda x: x * 2, list_of_lists))
print(jax.tree.map(lambda x, y: x + y, list_of_lists, list_of_lists))


def init_mlp_params(layer_widths):
    rng = np.random.default_rng(0)
    return [
        dict(weights=rng.normal(size=(n, m)) * np.sqrt(2 / n), biases=np.ones(m))
        for n, m in zip(layer_widths[:-1], layer_widths[1:])
    ]


params = init_mlp_params([1, 16, 16, 1])
print(jax.tree.map(lambda x: x.shape, params))


def forward(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["weights"] + layer["biases"])
    return x @ last["weights"] + last["biases"]


def loss_fn(params, x, y):
    return jnp.mean((forward(params, x) - y) ** 2)


@jax.jit
def update(params, x, y):
    grads = jax.grad(loss_fn)(params, x, y)
    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, grads)


xs = np.random.default_rng(1).normal(size=(64, 1))
ys = xs**2
for _ in range(200):
    params = update(params, xs, ys)
print(np.round(loss_fn(params, xs, ys), 4))


@jax.tree_util.register_pytree_node_class
class RegisteredSpecial:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def tree_flatten(self):
        return (self.x, self.y), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Config:
    scale: jax.Array
    name: str = dataclasses.field(metadata=dict(static=True), default="config")


class MyOtherContainer(collections.namedtuple("MyOtherContainer", "name a b c")):
    pass


print(jax.tree.leaves([RegisteredSpecial(0, 1), RegisteredSpecial(2, 4)]))
print(jax.jit(lambda c: c.scale * 2)(Config(jnp.ones(2))), jax.tree.leaves(Config(3)))
print(jax.tree.leaves([MyOtherContainer("Alice", 1, 2, 3), MyOtherContainer("Bob", 4, 5, 6)]))

ATuple = collections.namedtuple("ATuple", ("name",))
tree = [1, {"k1": 2, "k2": (3, 4)}, ATuple("foo")]
for path, value in jax.tree_util.tree_flatten_with_path(tree)[0]:
    print(f"Value of tree{jax.tree_util.keystr(path)}: {value}")
print(
    [
        jax.tree_util.keystr(p, simple=True, separator="/")
        for p, _ in jax.tree.leaves_with_path(tree)
    ]
)
print(jax.tree.map_with_path(lambda path, x: len(path), {"a": 1, "b": {"c": 2}}))

shapes = [jnp.zeros((2, 3)), jnp.zeros((3, 4))]
print(jax.tree.map(lambda x: jnp.ones(x.shape), shapes)[0])
print(jax.tree.leaves([None, None, None]), jax.tree.leaves([None], is_leaf=lambda x: x is None))
print(jax.tree.transpose(
    outer_treedef=jax.tree.structure([0] * 3),
    inner_treedef=jax.tree.structure({"obs": 0, "rew": 0}),
    pytree_to_transpose=[dict(obs=1.0, rew=2.0)] * 3,
))  # fmt: skip
print(jax.tree.map(lambda *xs: jnp.stack(xs), *[dict(t=1, obs=3.0), dict(t=2, obs=4.0)]))
print(jax.tree.reduce(lambda a, b: a + b, {"a": 1, "b": (2, 3)}), jax.tree.all([True, False]))
leaves, treedef = jax.tree.flatten({"b": 1, "a": 2})
print(jax.tree.unflatten(treedef, [x * 10 for x in leaves]))
try:
    jax.tree.map(lambda a, b: a, {"a": 1}, {"b": 1})
except ValueError:
    print("ValueError")
