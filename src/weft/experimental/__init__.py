"""What is on trial, under the names of `jax.experimental`."""

from weft.callbacks import io_callback
from weft.util import importing_later

__all__ = ["checkify", "io_callback", "optimizers"]
__getattr__, __dir__ = importing_later(
    __name__, {"weft.experimental.checkify": "", "weft.experimental.optimizers": ""}
)
