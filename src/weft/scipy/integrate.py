"""Integrals of samples, as `scipy.integrate` has them. `trapezoid` is NumPy's."""

from weft.numpy.calculus import trapezoid

__all__ = ["trapezoid"]
