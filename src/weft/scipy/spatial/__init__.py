"""Geometry: `transform`, rotations in three dimensions."""

from weft.util import import_lazily

__getattr__, __dir__ = import_lazily(__name__, {"weft.scipy.spatial.transform": ""})
