"""The parameters and defaults of all public functions: tests/golden/signatures.txt.

A changed default is a change for users that few tests notice, as most tests set the parameters that
they test. `python tests/test_signatures.py` writes the file again.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from enum import EnumType
from pathlib import Path

import weft

FILE = Path(__file__).parent / "golden" / "signatures.txt"
INNER = "api cache compat control core mesh native parallel passes primitives transforms watch xla"


def public_modules() -> Iterator:
    yield weft
    for found in pkgutil.walk_packages(weft.__path__, "weft."):
        if found.name.split(".")[1] not in INNER.split() and not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            if hasattr(module, "__all__"):
                yield module


def describe(name: str, thing: object) -> Iterator[str]:
    """Yield lines such as `f(x, /, axis=None)`; for a class, also lines of its methods."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    if any(p.default is not p.empty for p in bare):
        text = str(signature.replace(parameters=bare, return_annotation=signature.empty))
        yield name + re.sub(r" at 0x\w+|(?<=<function )\S*?(?=\w+>)", "", text)
    for key in list(vars(thing)) if isinstance(thing, type) else ():
        getattr(thing, key)  # a member that is made when it is first read takes its place
        if inspect.isfunction(vars(thing)[key]) and not key.startswith("_"):
            yield from describe(f"{name}.{key}", vars(thing)[key])


def list_signatures() -> list[str]:
    found = set()
    for module in public_modules():
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, EnumType):
                continue  # its parameters are of Python's release
            if callable(thing) and getattr(thing, "__module__", "weft").startswith("weft"):
                found.update(describe(f"{module.__name__}.{name}", thing))
    return sorted(found)


def test_defaults_of_what_users_call():
    changed = set(list_signatures()) ^ set(FILE.read_text().splitlines())
    assert not changed, "\n".join([*sorted(changed), "If meant: python tests/test_signatures.py"])


if __name__ == "__main__":
    FILE.write_text("\n".join(list_signatures()) + "\n")
