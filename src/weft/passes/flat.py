"""Programs on rows of few elements, each by itself, as programs on all elements in one row.

XLA:CPU writes a loop over rows and one within over their elements, which is no vector loop where
these are few: exp of 100,000 by 10 takes four times what a million in one row do. It takes any
reshape into its loop, but not past a kernel's call, so one that does nothing gives the results.
"""

from __future__ import annotations

import math
import os
import re

FEW, MANY = 64, 4096  # elements: of a row at most, and of a program at least
# Operations that compute an element of elements at the same place, and what else may be there.
ELEMENTWISE = """
abs add and atan2 bitcast_convert broadcast_in_dim cbrt ceil clamp compare constant convert cosine
count_leading_zeros divide exponential exponential_minus_one floor is_finite log log_plus_one
logistic maximum minimum multiply negate not optimization_barrier or popcnt power reduce_precision
remainder round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic
shift_right_logical sign sine sqrt subtract tan tanh xor
acos acosh asin asinh atan atanh cosh digamma erf erf_inv erfc lgamma sinh return
""".split()  # noqa: SIM905
_OPERATION = re.compile(r'"(?:[a-z]+\.)?(\w+)"\(')
_OTHER = re.compile(r"dense<\[|complex<|<\?|loc\(|broadcast_dimensions = array<i64: ")
_MAIN = re.compile(r"func\.func public @main\((.*)\) -> \(.*\) \{\n")
_END = re.compile(r'"func\.return"\((.*)\) : \((.*)\) -> \(\)\n')
_RESHAPE = '{} = "stablehlo.reshape"({}) : ({}) -> ({})\n'
_KEEP = """{0} = "stablehlo.custom_call"({1}) <{{api_version = 4 : i32, backend_config = {{}}, \
call_target_name = "weft_keep", operand_layouts = [dense<0> : tensor<1xindex>], result_layouts = \
[dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<\
output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]}}> : ({2}) -> ({2})
"""


def flatten_rows(text: str) -> str:
    """A module to compile in place of `text` for one CPU, with kernels; or `text` itself."""
    shapes = {*re.findall(r"tensor<((?:\d+x)+)", text)} if text.count("func.func") == 1 else ()
    if len(shapes) != 1:
        return text
    (rows,) = shapes
    *before, few = map(int, rows[:-1].split("x"))
    size = math.prod(before) * few
    fits = before and few < FEW and size > MANY and size % (os.cpu_count() or 1) == 0
    if not fits or not {*_OPERATION.findall(text)}.issubset(ELEMENTWISE) or _OTHER.search(text):
        return text
    head, end = _MAIN.search(text), _END.search(text)
    if head is None or end is None:
        return text
    flat = f"{size}x"
    body = text[head.end() : end.start()].replace(f"tensor<{rows}", f"tensor<{flat}")
    lines = [text[: head.end()]]
    for x, kind in re.findall(rf"(%arg\d+): (tensor<{rows}\w+>)", head[1]):
        body = re.sub(rf"{x}\b", f"{x}_flat", body)
        lines.append(_RESHAPE.format(f"{x}_flat", x, kind, kind.replace(rows, flat)))
    lines.append(body)
    names, kinds = end[1].split(", "), end[2].split(", ")
    outs = dict(zip(names, names, strict=True))
    for x, kind in dict(zip(names, kinds, strict=True)).items():
        if rows in kind and not x.startswith("%arg"):
            outs[x], kept, taken = f"%rows{x[1:]}", f"%kept{x[1:]}", kind.replace(rows, flat)
            lines.append(_KEEP.format(kept, x, taken))
            lines.append(_RESHAPE.format(outs[x], kept, taken, kind))
    returned = ", ".join(outs[x] for x in names)
    lines.append(f'"func.return"({returned}) : ({end[2]}) -> ()\n')
    return "".join([*lines, text[end.end() :]])
