"""Programs as text, in files, and to look at.

`parse` reads what `str` prints, `unparse` writes all of a program, `save` and `load` a file of it.
"""

from weft.display.methods import structurally_equal
from weft.jaxpr.files import load, save
from weft.jaxpr.reader import parse
from weft.jaxpr.writer import structural_hash, unparse
from weft.util import list_public

__all__ = ["load", "parse", "save", "structural_hash", "structurally_equal", "unparse"]
__dir__ = list_public(__name__)
