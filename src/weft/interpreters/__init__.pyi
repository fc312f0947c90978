"""Written by tools/make_stubs.py; do not edit."""

from weft.interpreters import ad as ad
from weft.interpreters import batching as batching
from weft.interpreters import mlir as mlir
from weft.interpreters import partial_eval as partial_eval
from weft.interpreters import pxla as pxla
from weft.interpreters import xla as xla
