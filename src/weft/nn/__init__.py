"""Functions of neural networks: `from weft import nn`, then `nn.relu(x)`.

The modules here are imported when one of their names is first used.
"""

from weft.util import import_lazily

HOMES = {
    "weft.nn.activations": (
        "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu "
        "log1mexp log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus "
        "sparse_sigmoid squareplus swish tanh"
    ),
    "weft.nn.attention": "dot_product_attention",
    "weft.nn.initializers": "",
    "weft.nn.normalization": "log_softmax logmeanexp logsumexp one_hot softmax standardize",
    "weft.nn.scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
}
__getattr__, __dir__ = import_lazily(__name__, HOMES)
