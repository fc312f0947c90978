"""Programs of programs.py and of test_compose_control.py under transformations, as text.

A letter is a transformation, and a word is read from the right: GV is the gradient of a mapped
function. tests/golden/programs has the text of each program, and digests of the texts under every
word, after the passes, and after lowering; none of these is run. The programs themselves run step
by step, eagerly and compiled. `python -m tests.transforms.test_texts` writes the file anew; with
the name of a program it prints all of its texts, to compare with older ones.
"""

import collections
import re
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.cpu.prepared import leave_out_groups
from tests.primitives.test_rules import read_blocks
from tests.transforms import programs, test_compose, test_compose_control
from weft.core.stage import close_jaxpr
from weft.experimental import checkify
from weft.passes import PASSES

FILE = Path(__file__).parents[1] / "golden/programs.txt"
OTHERS = {**test_compose.PROGRAMS, **test_compose_control.PROGRAMS}
PROGRAMS = {**programs.PROGRAMS, **{f"composed {name}": f for name, (f, _) in OTHERS.items()}}
KEPT = read_blocks(FILE)


def cotangent(y):
    return y if jnp.issubdtype(y.dtype, jnp.inexact) else np.zeros(y.shape, weft.dtypes.float0)


def pull(f):
    def gradient(x):
        outs, back = weft.vjp(f, x)
        return back(weft.tree.map(cotangent, outs))[0]

    return gradient


LETTERS = {
    "J": lambda f: lambda x: weft.jvp(f, (x,), (x,)),
    "G": pull,
    "L": lambda f: lambda x: weft.linearize(f, x)[1](x),
    "V": weft.vmap,
    "C": weft.jit,
    "R": weft.checkpoint,
    "K": lambda f: checkify.checkify(f, checkify.all_checks),
}
WORDS = "J G L V K GV VG JG GG GR RG KV".split()  # noqa: SIM905
FEW = ["J", "G", "VG", "JG", "K"]


def write(make: Callable, *args: Any) -> str:
    """Return a text or the text of a refusal, without addresses and lines."""
    try:
        text = str(make(*args))
    except Exception as error:
        if not is_refusal(error):
            raise
        text = f"{type(error).__name__}: {error}"
    return re.sub("0x[0-9a-f]{6,}", "0x", re.sub(r"programs.py:\d+", "programs.py", text))


def is_refusal(error: Exception) -> bool:
    """Return True if a `raise` made this error; others come from faults inside weft."""
    *_, frame = traceback.extract_tb(error.__traceback__)
    return frame.line is not None and frame.line.startswith("raise ")


def texts_of(name: str) -> Iterator[tuple[str, str]]:
    f = PROGRAMS[name]
    x = weft.ShapeDtypeStruct((3,), np.float32)
    yield "", write(weft.make_jaxpr(f), x)
    for word in FEW if name.startswith("composed") else WORDS:
        g, wide = f, weft.ShapeDtypeStruct((2,) * word.count("V") + (3,), np.float32)
        for letter in reversed(word):
            g = LETTERS[letter](g)
        yield word, write(weft.make_jaxpr(g), wide)
    for each in PASSES:
        yield (
            each.__name__,
            write(lambda each: each(close_jaxpr(weft.make_jaxpr(f)(x).jaxpr)), each),
        )
    for what, g in (("lowered", f), ("G lowered", pull(f))):
        with leave_out_groups():
            text = write(lambda g: weft.jit(g, passes="all").lower(x).as_text(), g)
        yield what, text


def describe(name: str) -> list[str]:
    """The program; the digests under words and passes; errors, each once with what meets it."""
    (_, plain), *rest = texts_of(name)
    lines = plain.splitlines()
    digests, errors = [], collections.defaultdict(list)
    for what, text in rest:
        if re.match(r"\w*(Error|Exception|Warning)\b", text):
            errors[text].append(what)
        else:
            digests.append(f"{what} {zlib.crc32(text.encode()):08x}")
    return [*lines, ", ".join(digests), *(f"{', '.join(w)}: {e}" for e, w in errors.items())]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_transformations_write(name):
    assert describe(name) == KEPT[name], "if meant: python -m tests.transforms.test_texts"


REPEATED = "solved rooted branch_in_branch checkpoint_in_scan".split()  # noqa: SIM905


@pytest.mark.parametrize("name", [f"composed {name}" for name in REPEATED])
def test_texts_do_not_depend_on_what_was_traced_before(name):
    """Calls that are met again are written from memory, and Python specializes its bytecode."""
    for _ in range(3):
        describe(name)
    assert describe(name) == KEPT[name]


# Programs that run on one device; of those alike one, and of operations that rows run none.
NOT_RUN = (
    "asserts",
    "associative",
    "constrained",
    "exchanged",
    "explicit",
    "keys",
    "named",
    "options",
)
RUN = [
    name
    for name in programs.PROGRAMS
    if "parts" not in name and name not in programs.KEPT and name not in NOT_RUN
]


@pytest.fixture(scope="module")
def compiled():
    return weft.jit(lambda x: {name: weft.tree.leaves(PROGRAMS[name](x)) for name in RUN})(X)


X = np.float32([0.7, -0.4, 1.2])


@pytest.mark.sample(one_in=12)
@pytest.mark.parametrize("name", RUN)
def test_programs_give_the_same_eagerly_and_compiled(name, compiled):
    with weft.disable_jit():
        steps = weft.tree.leaves(PROGRAMS[name](jnp.asarray(X)))
    for outs in (weft.tree.leaves(PROGRAMS[name](jnp.asarray(X))), steps):
        for got, want in zip(outs, compiled[name], strict=True):
            if want.dtype != weft.dtypes.float0:
                assert weft.typeof(got).strong() == weft.typeof(want).strong()
                got, want = (weft.random.key_data(y) if is_key(y) else y for y in (got, want))
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def is_key(x):
    return jnp.issubdtype(weft.typeof(x).dtype, weft.dtypes.prng_key)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        shown = [text for name in sys.argv[1:] for text in texts_of(name)]
        print(*[f"--- {what}\n{text}" for what, text in shown], sep="\n")
    else:
        blocks = ["\n".join([f"== {name}", *describe(name), ""]) for name in PROGRAMS]
        FILE.write_text("".join(blocks))
