"""Clusters: `vq`, assigning observations to the nearest of a number of centres."""

from weft.util import import_lazily

__getattr__, __dir__ = import_lazily(__name__, {"weft.scipy.cluster.vq": ""})
