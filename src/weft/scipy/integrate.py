"""Integrals of samples, as `scipy.integrate` has them. `trapezoid` is NumPy's."""

from weft.numpy.calculus import trapezoid
from weft.util import list_public

__all__ = ["trapezoid"]
__dir__ = list_public(__name__)
