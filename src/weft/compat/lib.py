"""The names of `jax.lib`: the version of jaxlib, on which weft stands as JAX does."""

from jaxlib import version, xla_client

__all__ = ["__version__"]

__version__ = version.__version__
jaxlib_extension_version = xla_client._version  # grows with what jaxlib has
