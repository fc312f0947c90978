"""Find the public names of a library that its suite leaves unused."""

import re
from pathlib import Path
from types import ModuleType


def find_unused(module: ModuleType, file: str, but: str = "") -> list[str]:
    """Return the public names of a module, except for `but`, that a test file does not use."""
    said = set(re.findall(r"\w+", Path(file).read_text() + " " + but))
    names = [name for name in dir(module) if name[0] != "_"]
    return [n for n in names if n not in said and not isinstance(vars(module).get(n), ModuleType)]
