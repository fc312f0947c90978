"""Written by tools/make_stubs.py; do not edit."""

from weft.scipy.spatial import transform as transform
