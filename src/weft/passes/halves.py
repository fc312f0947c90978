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
# Roundings up to which. In long programs XLA fuses such chains again for each product that reads
# them: twelve layers of a transformer took ten times as long to compile.
MOST = 64
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
    summed, made = find_summed(lines), list[str]()
    wide, moved = set[str](), set[str]()  # results that are rounded here, and those of MOVED
    for line, found in lines:
        if found is None or (found[1] in summed and found[3] not in wide):
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


def find_summed(lines: Sequence[tuple[str, re.Match | None]]) -> set[str]:
    """What only reductions read, or the operands of what these read: XLA has a library for all."""
    only: dict[str, bool] = {}
    for line, found in reversed(lines):
        name, _, rest = line.partition(" = ")
        known = found is not None and (found[2] in KNOWN or found[2] == "convert")
        into = only.get(name, False) if known else rest.startswith('"stablehlo.reduce"(')
        only.update((x, only.get(x, True) and into) for x in re.findall(r"%\w+", rest or line))
    return {name for name, into in only.items() if into}
