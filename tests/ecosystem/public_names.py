"""Which public names of a library its suite leaves unused."""

import re
from pathlib import Path
from types import ModuleType


def find_unused(module: ModuleType, file: str, but: str = "") -> list[str]:
    """The public names of a module that a file of tests never says, other than those of `but`."""
    said = set(re.findall(r"\w+", Path(file).read_text() + " " + but))
    names = [name for name in dir(module) if name[0] != "_"]
    return [n for n in names if n not in said and not isinstance(vars(module).get(n), ModuleType)]
