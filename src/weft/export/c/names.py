"""Names in C for functions, arguments and results, made of the names in Python."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Names that C or the libraries of a source give another meaning.
RESERVED = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch
    typedef union unsigned void volatile while bool true false complex I NAN INFINITY
    HUGE_VAL main work workspace weights file class namespace template new delete this
    operator public private fn let mut ref type use impl match move pub self super trait
    memcpy memset j0 j1 jn y0 y1 yn gamma index remainder size_t ptrdiff_t""".split()  # noqa: SIM905
)
MATH = re.compile(r"^c?(a?(sin|cos|tan)h?2?|exp2?|expm1|log(1p|2|10|b)?|pow|sqrt|cbrt|fabs|abs|arg|"
                  r"floor|ceil|round|trunc|fmod|erfc?|hypot|ldexp|nextafter|real|imag|proj|conj|"
                  r"copysign|nearbyint|isfinite|lgamma|tgamma)f?$")  # fmt: skip
INTERNAL = re.compile(r"^([tibcxs]\d+|weft_.*|apply_.*|_.*)$")
NAME = re.compile(r"\b[ti]\d+\b")  # a variable that the exporter has named


def find_names(text: str) -> list[str]:
    """Return the variables in a text of C that the exporter has named."""
    return NAME.findall(text)


def is_variable(text: str) -> bool:
    """Return True for the name of a variable that the exporter has named."""
    return text[:1] in ("t", "i") and text[1:].isdecimal()


def make_identifier(text: str) -> str:
    """Return a name in C that looks like a path in a pytree: `params['w'][0]` is `params_w_0`."""
    name = re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_") or "x"
    if name[0].isdigit():
        name = f"x_{name}"
    if name in RESERVED or MATH.match(name) or INTERNAL.match(name):
        name += "_"
    return name


def make_identifiers(texts: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Return a name for each text. All names are distinct, and none is in `taken`."""
    names: list[str] = []
    for text in texts:
        name, count = make_identifier(text), 1
        while name in names or name in taken:
            count += 1
            name = f"{make_identifier(text)}_{count}"
        names.append(name)
    return names
