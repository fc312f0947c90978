"""SciPy's functions on weft's arrays: `import weft.scipy.signal`, or `weft.scipy.signal` at once.

Each module is imported when it is first used.
"""

from weft.util import import_lazily

MODULES = (
    "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats"
)
__getattr__, __dir__ = import_lazily(__name__, {f"{__name__}.{m}": "" for m in MODULES.split()})
