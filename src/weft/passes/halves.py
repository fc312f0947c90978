"""Programs for CPUs as their compiler is given them: with roundings to bfloat16 written out.

XLA:CPU computes in float32 and rounds by a function of 8 elements, by as many of which the whole
loop then goes. By operations on bits it takes half the time, and compiles 1 ms longer for each.
Results are the same, but for the bits of NaN: what XLA does not round is not rounded here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from pathlib import Path

MANY = 1 << 16  # elements from which on that pays
MOST = 64  # roundings up to which
# Operations whose results have no more digits than their operands, those whose NaN may have bits
# that would be carried into others, and those that are rounded.
EXACT = frozenset(
    ("abs", "ceil", "clamp", "floor", "maximum", "minimum", "negate", "select", "sign")
)
ODD = frozenset(("convert", "log", "log_plus_one"))
KNOWN = EXACT.union((
    *("add", "cosine", "divide", "exponential", "exponential_minus_one", "log", "log_plus_one"),
    *("logistic", "multiply", "power", "rsqrt", "sine", "sqrt", "subtract", "tanh"),
))  # fmt: skip
CHEAP = EXACT.union(("add", "convert", "divide", "multiply", "subtract"))  # computed again
# What XLA rounds where a conversion follows; of all else that takes the result in float32.
MOVED = frozenset(("broadcast_in_dim", "constant", "convert", "reshape", "slice", "transpose"))
LINE = re.compile(
    r'(%\d+) = "stablehlo\.(\w+)"\(([^"]*?)\)( <{.*}>)? : \((.*)\) -> '
    r"\(tensor<((?:\d+x)+)(bf16|f32)>\)( loc\(.*\))?$"
)
PRECISION = "<{exponent_bits = 8 : i32, mantissa_bits = 7 : i32}>"


def write_roundings(text: str) -> str:
    """A module that rounds large arrays by operations on bits, which are in halves.mlir."""
    shapes: dict[str, None] = {}
    parts = re.split(r"^(?=func\.func)", text, flags=re.MULTILINE)  # names are of one function
    made = "".join([round_function(part, shapes) for part in parts])
    if not 0 < made.count("@bf16.") <= MOST:
        return text
    rounding = Path(__file__).with_suffix(".mlir").read_text()
    more = [rounding.replace("SHAPE", x[:-1]).replace("tensor<", "tensor<" + x) for x in shapes]
    body, *end = made.rpartition("}")
    return "".join([body, *more, *end])


def round_function(text: str, shapes: dict[str, None]) -> str:
    """The text of a function likewise; the shapes of what it rounds are added to `shapes`."""
    lines = [(line, match_large(line)) for line in text.split("\n")]
    left, again = find_left(lines)
    if again:
        return text
    made = list[str]()
    wide, moved = set[str](), set[str]()  # results that are rounded here, and those of MOVED
    for line, found in lines:
        if found is None or (found[1] in left and found[3] not in wide):
            made.append(line)
            continue
        name, op, given, attrs, took, shape, kind, place = found.groups("")
        n, names, types = name[1:], given.split(", "), took.split(", ")
        full, half = f"tensor<{shape}f32>", f"tensor<{shape}bf16>"
        if op == "convert" and kind == "f32" and given in wide:
            made.append(f'{name} = "stablehlo.reshape"(%w{given[1:]}) : ({full}) -> ({full})')
            continue
        if op in MOVED:
            moved.add(name)
        if op in KNOWN and kind == "bf16" and not attrs and took.count("bf") == types.count(half):
            for i in [i for i, t in enumerate(types) if t == half]:
                x, names[i], types[i] = names[i], f"%x{i}_{n}", full
                made.append(f'{names[i]} = "stablehlo.convert"({x}) : ({half}) -> ({full})')
                if x not in wide and x not in moved and x[:2] != "%a":
                    x, names[i] = names[i], f"%y{i}_{n}"
                    reduce = f'"stablehlo.reduce_precision"({x}) {PRECISION}'
                    made.append(f"{names[i]} = {reduce} : ({full}) -> ({full})")
            given, took = ", ".join(names), ", ".join(types)
            made.append(f'%w{n} = "stablehlo.{op}"({given}) : ({took}) -> ({full}){place}')
            wide.add(name)
            given = f"%w{n}"
        elif op != "convert" or took != full or kind != "bf16":
            made.append(line)
            continue
        how = "cut" if op in EXACT else "any" if op in ODD else "round"
        call = f'"func.call"({given}) <{{callee = @bf16.{how}_{shape[:-1]}}}>'
        made.append(f"{name} = {call} : ({full}) -> ({half}){place}")
        shapes[shape] = None
    return "\n".join(made)


def match_large(line: str) -> re.Match | None:
    """The parts of a line that makes a large array of bfloat16 or float32."""
    found = LINE.match(line)
    return found if found and prod(map(int, found[6].split("x")[:-1])) >= MANY else None


def find_left(lines: Sequence[tuple[str, re.Match | None]]) -> tuple[set[str], set[str]]:
    """What reductions alone read, and the operands of what these read: XLA has a library for all.

    And what is cheap, and read both by loops and by other things: where that is of so many
    operations, XLA computes it again in each loop, from the beginning on. And what functions are
    given and give: how that is read is not seen here.
    """
    only: dict[str, bool] = {}
    cheap, near, far, rounded, crossing = (set[str]() for _ in range(5))
    private = " private @" in lines[0][0]
    for line, found in reversed(lines):
        name, _, rest = line.partition(" = ")
        op, reads = found[2] if found else "", re.findall(r"%\w+", rest or line)
        into = rest.startswith('"stablehlo.reduce"(')
        into = only.get(name, False) if op in KNOWN or op == "convert" else into
        only.update((x, only.get(x, True) and into) for x in reads)
        if op in CHEAP:
            cheap.add(name)
        if op in KNOWN and found and found[7] == "bf16":
            rounded.add(name)
        if '"func.call"(' in line or ('"func.return"(' in line and private):
            crossing.update(reads)
        if op in KNOWN or (op in MOVED and name in near):
            near.update(reads)
        if op not in KNOWN and (op not in MOVED or name in far or name not in near):
            far.update(reads)
    return {name for name, into in only.items() if into}, cheap & near & far | rounded & crossing
