"""Linear systems given by a function: `linalg`. Arrays that store few of their elements are not."""

from weft.util import import_lazily

__getattr__, __dir__ = import_lazily(__name__, {"weft.scipy.sparse.linalg": ""})
