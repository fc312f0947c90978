"""Geometry: `transform`, rotations in three dimensions."""

from weft.util import importing_later

__getattr__, __dir__ = importing_later(__name__, {"weft.scipy.spatial.transform": ""})
