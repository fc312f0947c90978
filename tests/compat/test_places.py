"""Names of JAX that libraries use, and private names for public things: each is here, or says why.

tests/golden/library_names.txt: the names that some 150 libraries take from `jax.core`,
`jax.extend`, `jax.interpreters`, modules of `jax.experimental` and private modules, with the
libraries, read from their wheels. A
`-` stands before a name that is not here. tests/golden/private_names.txt: the names that private
modules of JAX have for public things. `python -m tests.compat.test_places` writes the marks again.
"""

import json
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden"
LIBRARIES, PRIVATE = GOLDEN / "library_names.txt", GOLDEN / "private_names.txt"

RESOLVE = """
import importlib, json, sys, types
import jax

def resolve(name):
    first, *rest = name.split(".")
    found = importlib.import_module(first)
    for i, part in enumerate(rest):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            if not isinstance(found, types.ModuleType):
                return f"{name}: absent"
            try:
                found = importlib.import_module(".".join([first, *rest[: i + 1]]))
            except ImportError as other:
                return str(other)
        if type(found).__name__ in ("_Absent", "AbsentModule"):
            return f"{name}: absent"
    return id(found)

names = json.load(sys.stdin)
print(json.dumps({name: resolve(name) for name in names}))
"""


def resolve(names):
    """Look names up under the switch: the identity of what each is, or the error's text."""
    run = [sys.executable, "-W", "ignore", "-m", "weft", "-c", RESOLVE]
    ran = subprocess.run(run, input=json.dumps(names), capture_output=True, text=True, timeout=300)
    assert not ran.returncode, ran.stderr
    return json.loads(ran.stdout)


def read_libraries():
    """Each name with its mark and its libraries."""
    lines = LIBRARIES.read_text().splitlines()
    return {line.split()[0].lstrip("-"): (line[:1] == "-", line.split()[1:]) for line in lines}


def read_private():
    """Each private name with the public one."""
    pairs = {}
    for line in PRIVATE.read_text().splitlines():
        module, public, *names = line.split()
        pairs.update({f"{module}.{n}": f"{public}.{n}" for n in names})
    return pairs


def find_missing(found):
    return {name: what for name, what in found.items() if isinstance(what, str) and what != "ok"}


def test_names_that_libraries_use():
    known = read_libraries()
    missing = find_missing(resolve([*known]))
    wrong = {name for name, (absent, _) in known.items() if absent != (name in missing)}
    assert not wrong, f"{sorted(wrong)} If meant: python -m tests.compat.test_places"
    for text in missing.values():  # says which name it is
        assert text.startswith("jax.") and ("Hint: " in text or text.endswith("absent")), text


def test_private_names_of_public_things():
    pairs = read_private()
    found = resolve([*pairs, *set(pairs.values())])
    wrong = {p: found[p] for p, public in pairs.items() if found[p] != found[public]}
    assert not wrong


if __name__ == "__main__":
    known = read_libraries()
    missing = find_missing(resolve([*known]))
    lines = [" ".join(["-" * (n in missing) + n, *libs]) for n, (_, libs) in known.items()]
    LIBRARIES.write_text("\n".join(lines) + "\n")
