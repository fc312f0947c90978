"""SciPy's functions on weft's arrays: `import weft.scipy.signal`, or `weft.scipy.signal` at once.

Each module is imported when it is first asked for.
"""

from weft.util import importing_later

MODULES = {
    "weft.scipy.fft": "",
    "weft.scipy.signal": "",
}
__getattr__, __dir__ = importing_later(__name__, MODULES)
