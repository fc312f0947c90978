"""Clusters: `vq`, assigning observations to the nearest of a number of centres."""

from weft.util import importing_later

__getattr__, __dir__ = importing_later(__name__, {"weft.scipy.cluster.vq": ""})
