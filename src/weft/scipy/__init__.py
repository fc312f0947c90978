"""SciPy's functions on weft's arrays: `import weft.scipy.signal`, or `weft.scipy.signal` at once.

Each module is imported when it is first asked for.
"""

from weft.util import import_lazily

MODULES = {
    "weft.scipy.cluster": "",
    "weft.scipy.fft": "",
    "weft.scipy.integrate": "",
    "weft.scipy.interpolate": "",
    "weft.scipy.linalg": "",
    "weft.scipy.ndimage": "",
    "weft.scipy.optimize": "",
    "weft.scipy.signal": "",
    "weft.scipy.sparse": "",
    "weft.scipy.spatial": "",
    "weft.scipy.special": "",
    "weft.scipy.stats": "",
}
__getattr__, __dir__ = import_lazily(__name__, MODULES)
