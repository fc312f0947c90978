"""Programs as text, in files, and to look at.

`parse` reads what `str` prints, `unparse` writes all of a program, `save` and `load` a file of it.
`show` prints less of it, `diff` what is different in another, `draw` makes a picture.
"""

from weft.display.compare import Diff, diff
from weft.display.draw import draw
from weft.display.methods import structurally_equal
from weft.display.show import show
from weft.jaxpr.files import load, save
from weft.jaxpr.reader import parse
from weft.jaxpr.writer import structural_hash, unparse
from weft.util import list_public

__all__ = [
    "Diff", "diff", "draw", "load", "parse", "save", "show", "structural_hash",
    "structurally_equal", "unparse",
]  # fmt: skip
__dir__ = list_public(__name__)
