"""What is on trial, under the names of `jax.experimental`."""

from weft.api.callbacks import io_callback
from weft.util import import_lazily

HOMES = {
    "weft.experimental.checkify": "",
    "weft.experimental.jet": "",
    "weft.experimental.key_reuse": "",
    "weft.experimental.layout": "",
    "weft.experimental.mesh_utils": "",
    "weft.experimental.multihost_utils": "",
    "weft.experimental.ode": "",
    "weft.experimental.optimizers": "",
    "weft.experimental.pjit": "",
    "weft.experimental.rnn": "",
    "weft.experimental.shard_map": "",
    "weft.experimental.stax": "",
}
__all__ = [
    "checkify",
    "io_callback",
    "jet",
    "key_reuse",
    "layout",
    "mesh_utils",
    "multihost_utils",
    "ode",
    "optimizers",
    "pjit",
    "rnn",
    "shard_map",
    "stax",
]
__getattr__, __dir__ = import_lazily(__name__, HOMES)
