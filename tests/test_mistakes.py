"""Programs with a user's mistake, and their exact error messages: tests/golden/mistakes.

A case is a title, a program, the user's lines that its traceback shows with the message after them,
and, if the message has the fix as code, the code that the fix replaces: with the fix, the program
runs. `python tests/test_mistakes.py` writes the messages again.
"""

import contextlib
import io
import linecache
import re
import sys
import traceback
import warnings
from pathlib import Path
from statistics import median

import numpy as np

import weft
import weft.numpy as jnp
from weft import grad, jit, lax, nn, random, vmap
from weft.errors import is_own_file
from weft.experimental import checkify

FOLDER = Path(__file__).parent / "golden" / "mistakes"
NAMES = dict(
    weft=weft, jnp=jnp, np=np, grad=grad, jit=jit, vmap=vmap, lax=lax, nn=nn, random=random,
    checkify=checkify,
)  # fmt: skip
MOST_OWN = 4  # frames of ours in a traceback


def run_program(program):
    """The error of a program that is a file `model.py`, or None."""
    lines = [line + "\n" for line in program.splitlines()]
    linecache.cache["model.py"] = (len(program), None, lines, "model.py")
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(program, "model.py", "exec"), {**NAMES, "__name__": "model"})
    except Exception as error:
        return error
    return None


def tell(error):
    """The user's lines of a traceback and its message; and how many frames are ours."""
    rows = traceback.extract_tb(error.__traceback__)[1:]
    lines = [f"{r.filename}:{r.lineno}: {r.line}" for r in rows if r.filename == "model.py"]
    text = f"{type(error).__name__}: {error}"
    text = re.sub("0x[0-9a-f]+", "0x...", "\n".join([*lines, text]))
    return text, sum(is_own_file(r.filename) for r in rows)


def read_cases(file):
    """Titles, programs, messages and pastes."""
    for block in file.read_text().split("=== ")[1:]:
        title, rest = block.split("\n", 1)
        program, told, *pastes = rest.rstrip("\n").split("\n--- ")
        yield title, program, told.removeprefix("\n"), [p.split("\n=>\n") for p in pastes]


def test_mistakes_are_told_as_written():
    wrong, lengths = [], []
    for file in sorted(FOLDER.glob("*.txt")):
        for title, program, told, pastes in read_cases(file):
            error = run_program(program)
            got, own = tell(error) if error else ("no error", 0)
            lengths.append(len(traceback.format_exception(error)) if error else 0)
            # Python 3.13 says itself which keyword is near
            got = re.sub(r"Did you mean '(\w+)'\?", r"Hint: \1=...", got)
            if got != told:
                wrong.append(f"{title}\n{told}\n    is told as\n{got}")
            if own > MOST_OWN:
                wrong.append(f"{title}: {own} frames of the package")
            for before, after in pastes:
                assert before in program, title
                if after not in told:
                    wrong.append(f"{title}: {after!r} is not in the message")
                elif (failed := run_program(program.replace(before, after))) is not None:
                    wrong.append(f"{title}: with the fix {after!r}: {failed!r}")
    assert not wrong, "\n\n".join(wrong)
    assert len(lengths) >= 120
    assert median(lengths) <= 10
    assert weft.jit(lambda x: x + 1)(1.0) == 2.0


if __name__ == "__main__":
    for file in sorted(FOLDER.glob("*.txt")):
        blocks = []
        for title, program, _, pastes in read_cases(file):
            told = tell(run_program(program))[0]
            shown = "".join(f"\n--- {a}\n=>\n{b}" for a, b in pastes)
            blocks.append(f"=== {title}\n{program}\n--- \n{told}{shown}\n")
        file.write_text("\n".join(blocks))
    sys.exit()
