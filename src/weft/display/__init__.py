"""Programs and values to look at: short text, HTML, differences, drawings.

It needs only core/ and passes/. Modules are imported when they are first used, because a program
that runs without a person needs none of them.
"""

from weft.util import import_lazily

MODULES = ("page", "printing", "show", "values")
__getattr__, __dir__ = import_lazily(__name__, {f"weft.display.{name}": "" for name in MODULES})
