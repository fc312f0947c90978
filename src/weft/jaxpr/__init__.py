"""Programs as text, in files, and for reading.

`parse` reads what `str` prints. `unparse` writes a program completely; `save` and `load` use files.
`show` prints a shorter form, `diff` compares two programs, `draw` makes a picture.
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
