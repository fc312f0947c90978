"""Names that users of PyTorch, NumPy and older versions look for, and what to write here.

Imported when a name is not found. `suggest_name` makes a hint of a row; docs/guide/pytorch.md has
the table for readers.
"""

from __future__ import annotations

# Groups of names, and the code that stands for each of them. `x` is the array.
INSTEAD = {
    # making arrays
    "tensor as_tensor from_numpy FloatTensor LongTensor Tensor": "jnp.asarray(x)",
    "randn": "random.normal(key, shape)",
    "randn_like": "random.normal(key, x.shape)",
    "rand": "random.uniform(key, shape)",
    "rand_like": "random.uniform(key, x.shape)",
    "randperm": "random.permutation(key, n)",
    "multinomial": "random.categorical(key, logits)",
    "seed manual_seed": "random.key(seed)",
    "new_zeros": "jnp.zeros(shape, x.dtype)",
    "new_ones": "jnp.ones(shape, x.dtype)",
    "new_full": "jnp.full(shape, value, x.dtype)",
    # types, devices, memory
    "to": "x.astype(dtype), or weft.device_put(x, device)",
    "type type_as": "x.astype(dtype)",
    "float": "x.astype(jnp.float32)",
    "double": "x.astype(jnp.float64)",
    "half": "x.astype(jnp.float16)",
    "bfloat16": "x.astype(jnp.bfloat16)",
    "long int": "x.astype(int)",
    "bool": "x.astype(bool)",
    "numpy": "np.asarray(x)",
    "cpu": "weft.device_get(x)",
    "cuda": "weft.device_put(x, device)",
    "contiguous": "x: arrays have no strides",
    # shapes
    "size_": "x.shape",
    "dim": "x.ndim",
    "numel nelement": "x.size",
    "t": "x.T",
    "permute": "jnp.transpose(x, axes)",
    "movedim": "jnp.moveaxis(x, source, destination)",
    "unsqueeze": "x[None]",
    "view_as reshape_as": "x.reshape(y.shape)",
    "expand": "jnp.broadcast_to(x, shape)",
    "expand_as": "jnp.broadcast_to(x, y.shape)",
    "cat": "jnp.concatenate(xs, axis)",
    "append": "jnp.append(x, value)",
    "chunk": "jnp.split(x, n, axis)",
    "repeat_interleave": "jnp.repeat(x, n, axis)",
    # computing
    "mm bmm mv": "x @ y",
    "clamp": "jnp.clip(x, low, high)",
    "norm": "jnp.linalg.norm(x)",
    "topk": "lax.top_k(x, k)",
    "softplus_": "nn.softplus(x)",
    "masked_fill": "jnp.where(mask, value, x)",
    "masked_select": "x[mask], outside jit",
    "index_select": "jnp.take(x, indices, axis)",
    "index_add scatter_add": "x.at[indices].add(values)",
    "index_copy scatter": "x.at[indices].set(values)",
    "gather": "jnp.take_along_axis(x, indices, axis)",
    "mse_loss MSELoss": "jnp.mean((x - y) ** 2)",
    "cross_entropy CrossEntropyLoss nll_loss": "-jnp.mean(jnp.sum(labels * "
    "nn.log_softmax(logits), -1)), with labels from nn.one_hot",
    # derivatives and programs
    "backward autograd": "weft.grad(loss)(params)",
    "detach": "lax.stop_gradient(x)",
    "requires_grad requires_grad_ retain_grad": "weft.grad(f, argnums), of any function",
    "no_grad inference_mode enable_grad set_grad_enabled": "nothing: only weft.grad traces",
    "compile": "weft.jit(f)",
    "tree_map": "weft.tree.map",
    # layers and optimizers
    "Linear": "x @ w + b, or example_libraries.stax.Dense",
    "Embedding": "table[indices]",
    "Module Parameter ModuleList Sequential": "a function of (params, x), with params a dict of "
    "arrays, or the library Flax",
    "ReLU": "nn.relu(x)",
    "GELU": "nn.gelu(x)",
    "Dropout dropout": "x * random.bernoulli(key, keep, x.shape) / keep",
    "optim Adam AdamW SGD": "the library Optax, or example_libraries.optimizers",
    "DataLoader": "torch.utils.data.DataLoader, and jnp.asarray of its batches",
}  # fmt: skip
ROWS = {name: instead for names, instead in INSTEAD.items() for name in names.split()}

# Keyword arguments of PyTorch, and those of NumPy.
KEYWORDS = {
    "dim": "axis", "dims": "axis", "keepdim": "keepdims", "size": "shape", "low": "minval",
    "high": "maxval",
}  # fmt: skip


def find_instead(name: str, is_method: bool = False) -> str:
    """Return what to write for a name that is not here; an empty text if it is not known."""
    if name in ROWS:
        return ROWS[name]
    if is_method and name.endswith("_"):
        return f"x = x.{name[:-1]}(...): arrays do not change"
    return ""
