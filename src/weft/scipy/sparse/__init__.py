"""Linear systems given by a function: `linalg`. Arrays that store few of their elements are not."""

from weft.util import importing_later

__getattr__, __dir__ = importing_later(__name__, {"weft.scipy.sparse.linalg": ""})
