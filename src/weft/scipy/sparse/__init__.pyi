"""Written by tools/make_stubs.py; do not edit."""

from weft.scipy.sparse import linalg as linalg
