"""NumPy's interface on weft's arrays: `import weft.numpy as jnp`."""

from importlib import import_module as _import_module

from weft.numpy import methods as _methods  # noqa: F401
from weft.numpy import ufunc_methods as _ufunc_methods  # noqa: F401
from weft.numpy.choice import *  # noqa: F403
from weft.numpy.creation import *  # noqa: F403
from weft.numpy.cumulative import *  # noqa: F403
from weft.numpy.editing import *  # noqa: F403
from weft.numpy.elementwise import *  # noqa: F403
from weft.numpy.indexing import *  # noqa: F403
from weft.numpy.manipulation import *  # noqa: F403
from weft.numpy.products import *  # noqa: F403
from weft.numpy.reductions import *  # noqa: F403
from weft.numpy.scalars import *  # noqa: F403
from weft.numpy.searching import *  # noqa: F403
from weft.numpy.sorting import *  # noqa: F403
from weft.numpy.ufuncs import *  # noqa: F403
from weft.numpy.updates import *  # noqa: F403
from weft.util import importing_later
from weft.xla.array import Array as ndarray  # noqa: F401

# Modules that few programs use, imported when one of their names is asked for.
LATER = {
    "weft.numpy.array_api": ("__array_api_version__ __array_namespace_info__"),
    "weft.numpy.calculus": ("diff ediff1d gradient interp trapezoid unwrap"),
    "weft.numpy.contraction": ("einsum einsum_path"),
    "weft.numpy.convolution": ("convolve correlate"),
    "weft.numpy.fft": "",
    "weft.numpy.functional": ("apply_along_axis apply_over_axes vectorize"),
    "weft.numpy.grids": (
        "c_ diag diag_indices diag_indices_from diagflat eye fill_diagonal "
        "fromfunction identity indices mask_indices meshgrid mgrid ogrid r_ tri tril "
        "tril_indices tril_indices_from triu triu_indices triu_indices_from vander"
    ),
    "weft.numpy.histograms": ("bincount histogram histogram2d histogram_bin_edges histogramdd"),
    "weft.numpy.index_tricks": ("index_exp ix_ ravel_multi_index s_ unravel_index"),
    "weft.numpy.linalg": "",
    "weft.numpy.packing": ("packbits unpackbits"),
    "weft.numpy.padding": ("pad"),
    "weft.numpy.polynomials": (
        "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots"
    ),
    "weft.numpy.sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts "
        "unique_inverse unique_values"
    ),
    "weft.numpy.windows": ("bartlett blackman hamming hanning i0 kaiser"),
    "weft.numpy.statistics": (
        "corrcoef cov median nanmedian nanpercentile nanquantile percentile quantile"
    ),
    "weft.numpy.ufunc_objects": ("frompyfunc ufunc"),
}
_found_later, __dir__ = importing_later(__name__, LATER)


def __getattr__(name: str) -> object:
    """A name of a module that is imported now, or an error that says what to use instead."""
    try:
        return _found_later(name)
    except AttributeError as error:
        if name.startswith("_"):
            raise
        hint = _import_module("weft.numpy.absent").hint(name)
        raise AttributeError(f"{error}.{hint}") from None
