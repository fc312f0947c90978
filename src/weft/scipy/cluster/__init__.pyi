"""Written by tools/make_stubs.py; do not edit."""

from weft.scipy.cluster import vq as vq
