"""NumPy's interface on weft's arrays: `import weft.numpy as jnp`."""

from weft.numpy import methods as _methods  # noqa: F401
from weft.numpy.manipulation import *  # noqa: F403
from weft.numpy.ufuncs import *  # noqa: F403
