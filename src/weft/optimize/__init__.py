"""Passes that know primitives: algebra, folding of constants, views; and the order of all passes.

They are imported when a program is first compiled.
"""

from weft.util import import_lazily

__getattr__, __dir__ = import_lazily(__name__, {"weft.optimize.passes": ""})
