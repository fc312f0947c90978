"""NumPy's interface on weft's arrays: `import weft.numpy as jnp`."""

from weft.numpy import methods as _methods  # noqa: F401
from weft.numpy.choice import *  # noqa: F403
from weft.numpy.creation import *  # noqa: F403
from weft.numpy.cumulative import *  # noqa: F403
from weft.numpy.editing import *  # noqa: F403
from weft.numpy.einsum import *  # noqa: F403
from weft.numpy.elementwise import *  # noqa: F403
from weft.numpy.grids import *  # noqa: F403
from weft.numpy.index_tricks import *  # noqa: F403
from weft.numpy.indexing import *  # noqa: F403
from weft.numpy.manipulation import *  # noqa: F403
from weft.numpy.padding import *  # noqa: F403
from weft.numpy.products import *  # noqa: F403
from weft.numpy.reductions import *  # noqa: F403
from weft.numpy.scalars import *  # noqa: F403
from weft.numpy.searching import *  # noqa: F403
from weft.numpy.sets import *  # noqa: F403
from weft.numpy.sorting import *  # noqa: F403
from weft.numpy.ufuncs import *  # noqa: F403
from weft.numpy.updates import *  # noqa: F403
from weft.xla.array import Array as ndarray  # noqa: F401
