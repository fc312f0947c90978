"""The accuracy of special functions, in units in the last place, against golden/special.json.

`python -m tests.scipy.special_accuracy` writes the table of docs/special.md; the tests compare.
"""

import functools
import json
import re
from pathlib import Path

import numpy as np

import weft
from weft.scipy import special

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests/golden/special.json").read_text())
DTYPES = ("float32", "float64")
DOC = ROOT / "docs/special.md"
MARK = "<!-- made by tests/scipy/special_accuracy.py -->\n"


SIZE = 256  # points that each program takes: compiling is what costs


def values(name, *xs):
    """Return the values of a golden row's function at any number of points."""
    name, _, part = name.partition(".")
    count = len(xs[0])
    every = [np.resize(x, -(-count // SIZE) * SIZE) for x in xs]
    parts = [
        program(name)(*[x[k : k + SIZE] for x in every]) for k in range(0, len(every[0]), SIZE)
    ]
    several = isinstance(parts[0], tuple)
    outs = zip(*parts, strict=True) if several else [parts]
    outs = [np.concatenate(out)[:count] for out in outs]
    return outs[int(part)] if part in ("0", "1") else outs if several else outs[0]


@functools.cache
def program(name):
    """The function, compiled once for each dtype and number of arguments."""
    fun = getattr(special, name)
    if name == "bessel_jn":
        return weft.jit(lambda z: fun(z, v=2)[2])
    if name == "multigammaln":
        return weft.jit(lambda a: fun(a, 3))
    if name == "polygamma":
        return weft.jit(lambda n, x: fun(n.astype(int), x))
    return weft.jit(lambda *xs: fun(*xs))


def units(name, dtype):
    """The error at each point, in units in the last place of `dtype`; 0 where it is not normal."""
    *xs, want = GOLDEN[name]
    xs, want = [np.array(x, np.float32) for x in xs], np.array(want)
    with weft.enable_x64(dtype == "float64"):
        got = values(name, *[x.astype(dtype) for x in xs]).astype(float)
    limits = np.finfo(dtype)
    normal = (np.abs(want) > 4 * float(limits.tiny)) & (np.abs(want) < float(limits.max))
    want = np.where(normal, want, 1.0)
    size = np.spacing(np.abs(want).astype(dtype)).astype(float)
    return np.where(normal, np.abs(got - want) / size, 0.0)


@functools.cache
def documented():
    """The figures of the table of the documentation, by function and dtype."""
    rows = re.findall(r"^\| ([\w.]+) \| ([\d.]+) \| ([\d.]+) \|$", DOC.read_text(), re.MULTILINE)
    return {name: dict(zip(DTYPES, map(float, units), strict=True)) for name, *units in rows}


def worst(name, dtype):
    """Return the largest error at any point, of a program with kernels and of one without."""
    found = []
    for native in (True, False):
        with weft.config.scope(native=native):
            found.append(units(name, dtype).max())
    return max(found)


def table():
    """The table of the documentation."""
    lines = ["| function | float32 | float64 |", "|---|---|---|"]
    for name in sorted(GOLDEN):
        single, double = (worst(name, dtype) for dtype in DTYPES)
        lines.append(f"| {name} | {single:.1f} | {double:.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = DOC.read_text()
    DOC.write_text(text[: text.index(MARK) + len(MARK)] + table())
