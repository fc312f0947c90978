"""The names of `jax.lib`: the version of jaxlib, on which weft stands as JAX does."""

from jaxlib import version

__all__ = ["__version__"]

__version__ = version.__version__
