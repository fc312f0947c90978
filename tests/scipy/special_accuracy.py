"""How exact the special functions are, in units in the last place, against golden/special.json.

`python -m tests.scipy.special_accuracy` writes the table of docs/special.md; the tests compare.
"""

import json
from pathlib import Path

import numpy as np

import weft
from weft.scipy import special

ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests/golden/special.json").read_text())
DTYPES = ("float32", "float64")
DOC = ROOT / "docs/special.md"
MARK = "<!-- made by tests/scipy/special_accuracy.py -->\n"


def function(name):
    """The function a golden row is of."""
    name, _, part = name.partition(".")
    fun = getattr(special, name)
    if part in ("0", "1"):
        return lambda *xs: fun(*xs)[int(part)]
    if name == "bessel_jn":
        return lambda z: fun(z, v=2)[2]
    if name == "multigammaln":
        return lambda a: fun(a, 3)
    if name == "polygamma":
        return lambda n, x: fun(n.astype(int), x)
    return fun


def units(name, dtype):
    """The error at each point, in units in the last place of `dtype`; 0 where it is not normal."""
    *xs, want = GOLDEN[name]
    xs, want = [np.array(x, np.float32) for x in xs], np.array(want)
    with weft.enable_x64(dtype == "float64"):
        got = np.asarray(weft.jit(function(name))(*[x.astype(dtype) for x in xs])).astype(float)
    limits = np.finfo(dtype)
    normal = (np.abs(want) > 4 * float(limits.tiny)) & (np.abs(want) < float(limits.max))
    want = np.where(normal, want, 1.0)
    size = np.spacing(np.abs(want).astype(dtype)).astype(float)
    return np.where(normal, np.abs(got - want) / size, 0.0)


def table():
    """The table of the documentation."""
    lines = ["| function | float32 | float64 |", "|---|---|---|"]
    for name in sorted(GOLDEN):
        worst = [units(name, dtype).max() for dtype in DTYPES]
        lines.append(f"| {name} | {worst[0]:.1f} | {worst[1]:.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = DOC.read_text()
    DOC.write_text(text[: text.index(MARK) + len(MARK)] + table())
