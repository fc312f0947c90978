"""Functions of neural networks: `from weft import nn`, then `nn.relu(x)`.

Activations and normalizations are imported at once; attention, one-hot codes and scaled products
when they are first asked for.
"""

from weft.nn.activations import *  # noqa: F403
from weft.util import import_lazily

LATER = {
    "weft.nn.initializers": "",
    "weft.nn.attention": "dot_product_attention",
    "weft.nn.normalization": ("log_softmax logmeanexp logsumexp one_hot softmax standardize"),
    "weft.nn.scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
}
__getattr__, __dir__ = import_lazily(__name__, LATER)
