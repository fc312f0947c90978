"""Every kernel in C++ with calls that do not fit: each is refused, or answered; no process ends.

A row of CALLS says which operands and results a handler takes together. Calls are drawn from it
and then damaged: sizes, axes, dtypes, attributes and the numbers of operands are changed. A handler
must accept exactly the calls that the table describes. `make test-sanitized` runs this file with
the sanitizers of GCC, which see what a call reads or writes beyond its operands and results.
"""

import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
import weft.ffi
from tests.cpu.frames import (
    DTYPES,
    PACKED,
    Buffer,
    Machine,
    load_handlers,
    make_buffer,
    numpy_dtype,
)
from tests.cpu.instructions import NAMED, OPCODES, OPERANDS
from tests.settings import ALL
from weft import dtypes
from weft.cpu import kernels
from weft.cpu.opcodes import DTYPES as CODED
from weft.cpu.opcodes import FULL, PER_ROW, SCALAR, SHARED_ROW, Operand, Step, encode_program
from weft.dtypes import short_name
from weft.errors import JaxRuntimeError
from weft.primitives.fft import is_smooth

pytestmark = pytest.mark.skipif(bool(kernels.load_kernels()), reason="the kernels are not built")

HANDLES = load_handlers()
F32 = np.dtype(np.float32)
INTEGERS = "i8 i16 i32 i64 u8 u16 u32 u64"
# Classes of dtypes. Types of one signature that are written alike have one dtype.
CLASSES = {
    "A": " ".join(sorted({*DTYPES} - PACKED)),
    "B": "bool i8 u8",
    "C": "c64 c128",
    "D": "i32 i64 f32 f64",
    "F": "f32 f64",
    "H": "f16 bf16",
    "I": "i32 i64",
    "K": "i32 i64 u32 u64 f32 f64",
    "M": f"bool {INTEGERS} f32 f64",
    "N": "f32 f64 c64 c128",
    "O": f"bool {INTEGERS} f16 bf16 f32 f64 c64 c128",
    "P": "u8 i32 i64",
    "R": "f16 bf16 f32 f64",
    "S": "i32 i64 f32 f64 c64 c128",
    "T": " ".join(sorted({*DTYPES} - PACKED - {"c64", "c128"})),
    "U": "i32 i64 u32 u64",
    "V": f"bool {INTEGERS.replace('u32 ', '')}",
    "W": f"bool {INTEGERS} f16 bf16 f32 f64",
    "X": "i32 i64 u32 u64 f32 f64 c64 c128",
}
Sizes = dict[str, Any]


class Call(NamedTuple):
    """Calls of one handler.

    Attributes:
      signatures: texts, with | between them; a call has the operands and results of one of them.
        `F[*b,n,n+1]` has axes of these sizes after any axes b. `F{n}` has n elements of any shape,
        and `F{n?}` n or none.
      attributes: from sizes and a generator, the attributes of a call.
      holds: from sizes and attributes, True if such a call is answered.
      fit: changes the sizes that are drawn, so that more calls are answered.
    """

    signatures: str
    attributes: Callable[[Any, np.random.Generator], dict] = lambda s, rng: {}
    holds: Callable[[Any, Any], bool] = lambda s, a: True
    fit: Callable[[Any], dict] = lambda s: {}


class Names(dict):
    """Sizes by name, also as attributes."""

    __getattr__ = dict.__getitem__


def given(**attributes: Any) -> Callable[[Any, Any], dict]:
    return lambda s, rng: attributes


def windows(*names: str, **more: Any) -> Callable[[Any, np.random.Generator], dict]:
    """Draw the attributes of windows of two axes."""
    draw = lambda n, rng: tuple(map(int, rng.integers(-2 if n == "low" else 1, 4, 2)))
    return lambda s, rng: {**{n: draw(n, rng) for n in names}, **more}


def draw_view(s: Names, rng: np.random.Generator) -> dict:
    divisors = [d for d in range(1, s.k + 1) if s.k % d == 0] or [1]
    rows = int(rng.choice(divisors))
    sizes, steps = (rows, s.k // rows), tuple(map(int, rng.integers(-3, 4, 2)))
    low = sum(min(0, (n - 1) * d) for n, d in zip(sizes, steps, strict=True))
    return {"start": -low, "sizes": sizes, "steps": steps}


def is_view(s: Names, a: Names) -> bool:
    moves = [(n - 1) * d for n, d in zip(a.sizes, a.steps, strict=True)]
    ends = [a.start + sum(f(0, m) for m in moves) for f in (min, max)]
    return min(a.sizes) > 0 and math.prod(a.sizes) == s.k and 0 <= ends[0] <= ends[1] < s.n


def fits_pairs(s: Names, batch: int, heads: int, queries: int, keys: int) -> bool:
    shared = (batch, s.b), (heads, s.h), (queries, s.t)
    return all(m in (1, n) for m, n in shared) and keys == s.s


def are_parts(s: Names, a: Names) -> bool:
    ends = [x + n for x, n in zip(a.starts, a.sizes, strict=True)]
    return sum(a.sizes) == s.n and ends[0] <= s.x and ends[1] <= s.y


def is_frame(s: Names, a: Names) -> bool:
    return a.low[0] + s.y <= s.i and a.low[1] + s.x <= s.j


def add_program(kind: Any, name: str, count: int) -> list[int]:
    reads = ["x", "y"][:count]
    operands = [Operand(x, FULL) for x in reads]
    return encode_program(operands, [Step(NAMED[name], "z", kind, F32, reads)], 16, 4)


Q, KV = "f32[b,t,h,d]", "f32[b,s,k,d]"
MEANS, LOGS = "f32{b*t*h*d}", "f32{b*t*h}"
DEPTH = lambda s, a: s.k > 0
SHORT = lambda s, a: s.n < 2**31
HALF = lambda s: s.n // 2 + 1
# The further operands of products of matrices, and their types for results of some last axes. An
# addend may be repeated along each.
EXTRAS = {
    "": "",
    "left add weight": "F[] F[*c,{0}] F[]",
    "right subtract": "F[] F[*c,{0}]",
    "left right scale subtract_from": "F[] F[] F[] F[*c,{0}]",
}


def fits_addend(s: Names, a: Any) -> bool:
    rows = all(s[x] in (1, s[n]) for x, n in zip("ij", ("m", "n"), strict=True) if x in s)
    return s.k > 0 and rows and ("*c" not in s or s["*c"] in (s["*b"], (1,) * len(s["*b"])))


def fit_addend(s: Names) -> dict:
    leading = s["*b"] if s.k % 2 else (1,) * len(s["*b"])
    return {"*c": leading, "i": s.m if s.m % 3 else 1, "j": s.n if s.n % 3 else 1}


# The first word of a key is the handler's name.
CALLS = {
    "attention": Call(
        f"{Q} {KV} {KV} -> {MEANS} {LOGS} | {Q} {KV} {KV} {MEANS} {LOGS} {MEANS} {LOGS} -> "
        "f32{b*t*h*d?} f32{b*s*k*d?} f32{b*s*k*d?}",
        lambda s, rng: {
            "scale": np.float32(0.5),
            "left": int(rng.integers(-2, 99)),
            "right": int(rng.integers(-2, 99)),
        },
        lambda s, a: 0 not in s.values() and s.h % s.k == 0,
        lambda s: {"h": s.k * (1 + s.h % 3)},
    ),
    "cholesky": Call("F[*b,n,n] -> F[*b,n,n]", given(symmetrize=False)),
    "cholesky: symmetrized": Call("F[*b,n,n] -> F[*b,n,n]", given(symmetrize=True)),
    **{
        f"cholesky_pullback: {product} {solve} {symmetric}": Call(
            "F[*b,n,n] F[*b,n,n] -> F[*b,n,n]",
            given(product=product, solve=solve, lower=solve, symmetric=symmetric),
            lambda s, a: not a.symmetric or (a.product and a.solve and a.lower),
        )
        for product, solve, symmetric in [
            (True, True, False),
            (True, False, False),
            (False, True, False),
            (True, True, True),
        ]
    },
    **{
        f"compare: {direction} {answer}": Call(
            f"M[r,n,l] M[r,n,l] -> {out} | M[] M[r,n,l] -> {out} | M[r,n,l] M[] -> {out}",
            given(direction=direction, answer=answer),
        )
        for direction, answer, out in [
            ("EQ", "any", "bool[r,l]"),
            ("LE", "all", "bool[r,l]"),
            ("GT", "count", "i32[r,l]"),
        ]
    },
    "concatenate": Call(
        "A[r,x,l] A[r,y,l] -> A[r,n,l]",
        lambda s, rng: {"starts": (s.x - s.x // 2, 0), "sizes": (s.x // 2, s.y)},
        are_parts,
        lambda s: {"n": s.x // 2 + s.y},
    ),
    "conv": Call(
        "F[b,y,x,c] F[p,q,c,o] -> F[b,i,j,o]",
        windows("stride", "dilation", "low", is_derivative=False),
        lambda s, a: 1 <= s.p * s.q <= 682,
    ),
    "conv: derivative": Call(
        "F[b,y,x,c] F[b,i,j,o] -> F[p,q,c,o]",
        windows("stride", "dilation", "low", is_derivative=True),
        lambda s, a: 1 <= s.p * s.q <= 682,
    ),
    "coo_dot": Call("X[e] X[c,l] I[e,2] -> X[r,l]", given(transpose=False)),
    "coo_dot: transpose": Call("X[e] X[c,l] I[e,2] -> X[r,l]", given(transpose=True)),
    "coo_sample": Call("X[r,l] X[c,l] I[e,2] -> X[e]"),
    "csr_dot": Call("X[e] X[c,l] I[e] I[r+1] -> X[r,l]"),
    "cumulative": Call("S[r,n,l] -> S[r,n,l]", given(kind="cumsum", reverse=False)),
    "cumulative: products": Call("D[r,n,l] -> D[r,n,l]", given(kind="cumprod", reverse=True)),
    "cumulative: largest": Call("D[r,n,l] -> D[r,n,l]", given(kind="cummax", reverse=False)),
    "depthwise": Call(
        "F[n,c,y,x] F[n,c,i,j] -> F[c,p,q]", windows("steps", "dilations", "low", last=False)
    ),
    "depthwise: last": Call(
        "F[n,y,x,c] F[n,i,j,c] -> F[c,p,q]", windows("steps", "dilations", "low", last=True)
    ),
    **{
        f"dot: {x} {y} {names}": Call(
            f"F[*b,{'k,m' if x else 'm,k'}] F[*b,{'n,k' if y else 'k,n'}] "
            f"{more.format('i,j')} -> F[*b,m,n]",
            given(left_turned=x, right_turned=y, extras=names),
            fits_addend,
            fit_addend,
        )
        for x in (False, True)
        for y in (False, True)
        for names, more in EXTRAS.items()
    },
    **{
        f"dot_symmetric: {x} {y} {names}": Call(
            f"F[*b,{'k,n' if x else 'n,k'}] F[*b,{'n,k' if y else 'k,n'}] "
            f"{more.format('i,j')} -> F[*b,n,n]",
            given(left_turned=x, right_turned=y, extras=names),
            lambda s, a: fits_addend(Names(s, m=s.n), a),
            lambda s: fit_addend(Names(s, m=s.n)),
        )
        for x in (False, True)
        for y in (False, True)
        for names, more in EXTRAS.items()
    },
    **{
        f"extremum: {largest} {skips}": Call(
            "R[r,n,l] -> R[r,l] | V[r,n,1] -> V[r,1] | M[r,n,l] -> u32[r,l] | H[r,n,l] -> u32[r,l]",
            given(largest=largest, skips_nan=skips),
            lambda s, a: 0 < s.n < 2**32,
        )
        for largest, skips in [(False, False), (True, True)]
    },
    "find_places": Call("bool[r,n] -> i32[r,k]", holds=SHORT),
    "keep": Call("A1[*b] A2[*c] -> A1[*b] A2[*c] | A[*b] -> A[*b]"),
    "lu": Call(
        "F[*b,m,n] -> F[*b,m,n] i32[*b,min(m,n)] i32[*b,m]", holds=lambda s, a: s.m > 0 < s.n
    ),
    "masked_attention": Call(
        "f32[b,t,h,d] f32[b,s,h,d] f32[b,s,h,d] f32[] f32[u,v,w,x] bool[i,j,k,s] f32[] -> "
        "f32{b*t*h*d} f32{2*b*t*h?} | "
        "f32[b,t,h,d] f32[b,s,h,d] f32[b,s,h,d] f32[] f32[u,v,w,x] bool[i,j,k,s] f32[] "
        "f32{b*t*h*d} f32{2*b*t*h} f32{b*t*h*d} -> f32{b*t*h*d?} f32{b*s*h*d?} f32{b*s*h*d?}",
        holds=lambda s, a: (
            0 not in (s.b, s.t, s.h, s.d, s.s)
            and fits_pairs(s, s.i, s.j, s.k, s.s)
            and (0 in (s.u, s.v, s.w, s.x) or fits_pairs(s, s.u, s.v, s.w, s.x))
        ),
        fit=lambda s: {
            "i": s.b,
            "j": 1,
            "k": s.t if s.k % 2 else 1,
            "u": s.b if s.u % 3 else 0,
            "v": 1,
            "w": s.t if s.w % 2 else 1,
            "x": s.s,
        },
    ),
    **{
        f"matvec: {turned} {names}": Call(
            f"F[{'k,m' if turned else 'm,k'}] F[k] {more.format('i').replace('*c,', '')} -> F[m]",
            given(turned=turned, extras=names),
            fits_addend,
            lambda s: {"i": s.m if s.m % 3 else 1},
        )
        for turned in (False, True)
        for names, more in EXTRAS.items()
    },
    **{
        f"matvec_pair: {chained} {names}": Call(
            f"F[m,k] F[k] F[{'k' if chained else 'm'}] {more} -> F[m] F[k]",
            given(chained=chained, extras=names, turned_extras=turned),
            lambda s, a: s.k > 0 and s.get("i", 1) in (1, s.m) and s.get("j", 1) in (1, s.k),
            lambda s: {"i": s.m if s.m % 3 else 1, "j": s.k if s.k % 3 else 1},
        )
        for chained in (False, True)
        for names, turned, more in [
            ("", "", ""),
            ("scale", "", "F[]"),
            ("add weight", "scale subtract_from", "F[i] F[] F[] F[j]"),
        ]
    },
    **{
        f"fft: {inverse}": Call(
            "c64[r,n] f32[n,2] -> c64[r,n] | f32[r,n] f32[n,2] -> c64[r,n] | "
            "c128[r,n] f64[n,2] -> c128[r,n] | f64[r,n] f64[n,2] -> c128[r,n] | "
            "c64[r,n] f32[n,2] -> c64[r,h] | f32[r,n] f32[n,2] -> c64[r,h] | "
            "c128[r,n] f64[n,2] -> c128[r,h] | f64[r,n] f64[n,2] -> c128[r,h] | "
            "c64[r,h] f32[n,2] -> f32[r,n] | c128[r,h] f64[n,2] -> f64[r,n]",
            given(inverse=inverse),
            lambda s, a: (
                0 < s.n <= 1 << 13 and is_smooth(s.n, 7) and s.get("h", HALF(s)) == HALF(s)
            ),
            lambda s: {"h": HALF(s)},
        )
        for inverse in (False, True)
    },
    "members": Call("W[n] W[m] -> bool[n]"),
    "or_nan": Call(
        "N[*b] i32[*b] -> N[*b] | N[*b,n] i32[*b] -> N[*b,n] | N[*b,m,n] i32[*b] -> N[*b,m,n]"
    ),
    "pad": Call(
        "A[y,x] A[] -> A[i,j]",
        given(low=(1, 2)),
        is_frame,
        lambda s: {"i": s.y + s.i % 3 + 1, "j": s.x + s.j % 3 + 2},
    ),
    "partition": Call("O[*b,n] i32[*b,k] -> O[*b,n]", given(want_places=False), SHORT),
    "partition: places": Call("O[*b,n] i32[*b,k] -> i32[*b,n]", given(want_places=True), SHORT),
    "permutation": Call("i32[*b,k] -> i32[*b,n]", holds=SHORT),
    "program": Call(
        "f32{x} f32{y} -> f32{n}",
        given(program=add_program(FULL, "add", 2)),
        lambda s, a: s.x >= s.n <= s.y,
        lambda s: {"x": s.n + s.x % 3, "y": s.n + s.y % 2},
    ),
    "program: function": Call(
        "f32{x} -> f32{n}",
        given(program=add_program(FULL, "sin", 1)),
        lambda s, a: s.x >= s.n,
        lambda s: {"x": s.n + s.x % 3},
    ),
    "program: rows": Call(
        "f32{x} -> f32{n} | H{x} -> f32{n}",
        given(program=add_program(PER_ROW, "reduce_sum", 1)),
        lambda s, a: s.x >= 16 * s.n,
        lambda s: {"x": 16 * s.n + s.x % 3},
    ),
    "qr": Call(
        "F[*b,m,n] -> F[*b,m,min(m,n)] F[*b,min(m,n),n] | F[*b,m,n] -> F[*b,m,m] F[*b,m,n]",
        holds=lambda s, a: s.m > 0 < s.n,
    ),
    "resample": Call(
        "F[r,n,l] F[m,t] i32[m] -> F[r,m,l]",
        holds=lambda s, a: 1 <= s.t <= s.n,
        fit=lambda s: {"t": max(1, s.n and s.t % (s.n + 1))},
    ),
    **{
        f"scatter: {kind}": Call(
            " | ".join(
                f"K[p,n{x}] {at} K{{p*c{x.replace(',', '*')}}} -> K[p,n{x}]"
                for x in ("", ",l", ",l,k", ",l,k,j")
                for at in ("I[c]", "I[p,c]")
            ),
            given(kind=kind, axis=1),
        )
        for kind in ("scatter", "scatter-add", "scatter-min")
    },
    "roll": Call(
        "A[m,n,l] -> A[m,n,l]",
        lambda s, rng: {"starts": (s.m // 2, s.n // 3, max(0, s.l - 1))},
        lambda s, a: all(0 <= at < n for at, n in zip(a.starts, (s.m, s.n, s.l), strict=False)),
    ),
    "scatter: count": Call(
        " | ".join(f"U[n{x}] P{{c}} U{{{n}}} -> U[n{x}]" for x in ("", ",1", ",1,1") for n in "c1"),
        given(kind="count", axis=0),
    ),
    "select_scatter": Call(
        "F[p,i,j] F[p,y,x] -> F[p,y,x]",
        windows("widths", "steps", "low", least=False),
        lambda s, a: s.y * s.x < 2**31,
    ),
    "sort": Call(
        "O[*b,n] -> O[*b,n] | O[*b,n] A[*b,n] -> O[*b,n] A[*b,n] | "
        "O[*b,n] A1[*b,n] A2[*b,n] -> O[*b,n] A1[*b,n] A2[*b,n]",
        given(num_keys=1),
        lambda s, a: s.n < 2**32,
    ),
    "sort: two keys": Call(
        "O1[*b,n] O2[*b,n] -> O1[*b,n] O2[*b,n]", given(num_keys=2), lambda s, a: s.n < 2**32
    ),
    "sum": Call(
        "F[r,n,l] -> F[r,l] | F[r,n,l] F[r,n,l] -> F[r,l] | H[r,n,l] -> f32[r,l] | "
        "B[r,n,l] -> i32[r,l] | B[r,n,l] -> u32[r,l] | C[r,n,l] -> C[r,l] | "
        "i32[r,n,l] -> i32[r,l] | u32[r,n,l] -> u32[r,l]",
        given(what=0),
    ),
    "sum: finite": Call("F[r,n,l] -> F[r,l]", given(what=1)),
    "sum: count": Call("F[r,n,l] -> F[r,l]", given(what=2)),
    "sum: product": Call("N[r,n,1] -> N[r,1]", given(what=3)),
    "top_k": Call(
        "T[r,n] -> T[r,k] i32[r,k]",
        holds=lambda s, a: s.k <= s.n < 2**31,
        fit=lambda s: {"k": s.k % (s.n + 1)},
    ),
    "triangle": Call(
        "N[*b,m,n] -> N[*b,m,n]",
        lambda s, rng: {"rows": s.m, "columns": s.n, "upper": bool(rng.integers(2))},
        lambda s, a: (s.m, s.n) == (a.rows, a.columns),
    ),
    **{
        f"trsm: {left}": Call(
            f"F[*b,n,n] F[*b,{b}] -> F[*b,{b}]",
            given(left=left, lower=left, transpose=False, unit=not left),
        )
        for left, b in [(True, "n,k"), (False, "k,n")]
    },
    "view": Call("A{n} -> A{k}", draw_view, is_view, lambda s: {"k": s.k % (s.n // 4 + 1)}),
}


# --- signatures ------------------------------------------------------------------------------


class Type(NamedTuple):
    """The type of an operand or a result in a signature."""

    dtype: str  # a dtype or a class
    leading: str  # the name of any axes before the others, or an empty string
    axes: tuple[str, ...]
    count: str | None  # of elements, where the shape is any
    optional: bool = False


def read_signature(text: str) -> tuple[list[Type], list[Type]]:
    def read(word: str) -> Type:
        dtype, shape = re.fullmatch(r"(\w+)([\[{].*)[\]}]", word).groups()
        if shape[0] == "{":
            return Type(dtype, "", (), shape[1:].rstrip("?"), word.endswith("?}"))
        first, *rest = re.findall(r"(?:min\(.*\)|[^,])+", shape[1:]) or [""]
        if first.startswith("*"):
            return Type(dtype, first, tuple(rest), None)
        return Type(dtype, "", tuple(filter(None, (first, *rest))), None)

    operands, results = text.split("->")
    return [read(w) for w in operands.split()], [read(w) for w in results.split()]


def dtypes_of(name: str) -> list[str]:
    return [name] if name in DTYPES else CLASSES[name[0]].split()


def evaluate(text: str, sizes: Mapping[str, Any]) -> int:
    return eval(text, {"min": min}, dict(sizes))


def match(signature: str, operands: Sequence[Buffer], results: Sequence[Buffer]) -> Names | None:
    """Return the sizes that buffers have by a signature; None if they do not fit it."""
    types = read_signature(signature)
    if [*map(len, types)] != [len(operands), len(results)]:
        return None
    sizes, bound, computed = Names(), {}, []

    def bind(name: str, value: Any) -> bool:
        if not re.fullmatch(r"\*?[a-z]", name):
            computed.append((name, value))
            return True
        return sizes.setdefault(name, value) == value

    for t, buffer in zip([*types[0], *types[1]], [*operands, *results], strict=True):
        if buffer.dtype not in dtypes_of(t.dtype):
            return None
        if bound.setdefault(t.dtype, buffer.dtype) != buffer.dtype:
            return None
        if t.count is not None:
            count = math.prod(buffer.shape)
            if not (t.optional and count == 0) and not bind(t.count, count):
                return None
            continue
        last = len(buffer.shape) - len(t.axes)
        if last < 0 or (last and not t.leading):
            return None
        pairs = [*zip(t.axes, buffer.shape[last:], strict=True)]
        if t.leading:
            pairs.append((t.leading, buffer.shape[:last]))
        if not all(bind(*pair) for pair in pairs):
            return None
    return sizes if all(evaluate(text, sizes) == value for text, value in computed) else None


# --- drawing calls ---------------------------------------------------------------------------

SMALL = [1, 2, 3, 4, 5, 8, 16, 17, 31, 33]
LARGE = [0, 64, 100, 300, 700]
EXTREME = [0, 1, -1, 2, 7, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 8, 2**63 - 1, -(2**63)]
MAX_ELEMENTS = 1 << 15


class Given(NamedTuple):
    """A call to make."""

    operands: list[Buffer]
    results: list[Buffer]
    attributes: dict[str, Any]

    def __str__(self) -> str:
        return f"{[*map(str, self.operands)]} -> {[*map(str, self.results)]} {self.attributes}"


def draw_buffer(rng: np.random.Generator, dtype: str, shape: Sequence[int]) -> Buffer:
    """Draw elements: numbers that may be places, and some that are far outside."""
    kind, count = numpy_dtype(dtype), math.prod(shape)
    value: Any = rng.integers(-1, 20, count)
    odd = rng.uniform(size=count) < 0.1
    if dtypes.is_integer(kind):
        value = np.where(odd, dtypes.iinfo(kind).max, value.astype(kind))
    elif dtypes.is_inexact(kind):
        value = np.where(odd, rng.choice([np.nan, np.inf, -0.0]), value / 2)
    return make_buffer(dtype, shape, value.astype(kind))


def draw_shape(rng: np.random.Generator, t: Type, sizes: Names) -> tuple[int, ...]:
    if t.count is not None:
        return (0 if t.optional and rng.integers(2) else evaluate(t.count, sizes),)
    return (*(sizes[t.leading] if t.leading else ()), *(evaluate(a, sizes) for a in t.axes))


def draw_call(rng: np.random.Generator, call: Call) -> Given:
    signature = str(rng.choice(call.signatures.split("|")))
    types = read_signature(signature)
    names = sorted({*re.findall(r"\*?\b[a-z]\b", " ".join(w[1:] for w in signature.split()))})
    while True:
        sizes = Names({n: int(rng.choice(SMALL if rng.uniform() < 0.93 else LARGE)) for n in names})
        sizes.update(
            {n: tuple(map(int, rng.integers(0, 3, rng.integers(3)))) for n in names if n[0] == "*"}
        )
        sizes.update(call.fit(sizes))
        shapes = [[draw_shape(rng, t, sizes) for t in side] for side in types]
        if all(math.prod(s) <= MAX_ELEMENTS for side in shapes for s in side):
            break
    kinds = {t.dtype: str(rng.choice(dtypes_of(t.dtype))) for side in types for t in side}
    operands = [
        draw_buffer(rng, kinds[t.dtype], s) for t, s in zip(types[0], shapes[0], strict=True)
    ]
    results = [make_buffer(kinds[t.dtype], s) for t, s in zip(types[1], shapes[1], strict=True)]
    return Given(operands, results, call.attributes(sizes, rng))


# --- damages ---------------------------------------------------------------------------------


def redraw(rng: np.random.Generator, x: Buffer, dtype: str, shape: Sequence[int]) -> Buffer:
    """Return a buffer in place of another; none of its elements where it is too large."""
    shape = tuple(shape)
    if math.prod(shape) > 4 * MAX_ELEMENTS:
        return x
    return draw_buffer(rng, dtype, shape)


def change_size(rng: np.random.Generator, x: Buffer) -> Buffer:
    if not x.shape:
        return x
    shape, k = [*x.shape], int(rng.integers(len(x.shape)))
    shape[k] = int(rng.choice([0, shape[k] + 1, max(0, shape[k] - 1), 2 * shape[k], 1, 3]))
    return redraw(rng, x, x.dtype, shape)


def change_rank(rng: np.random.Generator, x: Buffer) -> Buffer:
    shape, k = [*x.shape], int(rng.integers(len(x.shape) + 1))
    if rng.integers(2) or not shape:
        shape.insert(k, int(rng.choice([0, 1, 2])))
    else:
        del shape[min(k, len(shape) - 1)]
    return redraw(rng, x, x.dtype, shape)


def change_dtype(rng: np.random.Generator, x: Buffer) -> Buffer:
    return redraw(rng, x, str(rng.choice([*DTYPES])), x.shape)


def empty_hugely(rng: np.random.Generator, x: Buffer) -> Buffer:
    """No elements, of sizes whose product overflows."""
    shape = [2**40, 2**40, *x.shape[2:]][: len(x.shape)]
    if shape:
        shape[int(rng.integers(len(shape)))] = 0
    return redraw(rng, x, x.dtype, shape)


DAMAGES = [change_size, change_size, change_rank, change_dtype, empty_hugely]


def damage_buffers(rng: np.random.Generator, call: Given) -> Given:
    """Change one operand or result, or how many there are."""
    sides = [[*call.operands], [*call.results]]
    side = sides[rng.integers(2)] or sides[0]
    k = int(rng.integers(len(side)))
    way = rng.integers(10)
    if way == 0:
        del side[k]
    elif way == 1:
        side.insert(k, side[k])
    elif way == 2:
        sides[0].reverse()
    else:
        side[k] = DAMAGES[rng.integers(len(DAMAGES))](rng, side[k])
    return Given(*sides, call.attributes)


def damage_attributes(rng: np.random.Generator, call: Given) -> Given:
    """Change the value of an attribute, so that it keeps its type."""
    if not call.attributes:
        return call
    name = str(rng.choice(sorted(call.attributes)))
    value = call.attributes[name]
    extreme = int(rng.choice(np.array(EXTREME, object)))
    if isinstance(value, bool):
        value = not value
    elif isinstance(value, np.float32):
        value = np.float32(rng.choice([np.nan, np.inf, -1e30, 0]))
    elif isinstance(value, int):
        value = extreme
    elif isinstance(value, str):
        value = str(
            rng.choice(["", "EQ", "count", "scatter-max", "cummin", "all", "add", "x" * 99])
        )
    else:
        value = [*value]
        k = int(rng.integers(len(value) + 1))
        if rng.integers(3) and value:
            value[k % len(value)] = extreme if rng.integers(2) else int(rng.integers(0, 99))
        else:
            value = value[:k] if rng.integers(2) else value + [extreme] * k
        value = np.array(value, np.int64)
    return call._replace(attributes={**call.attributes, name: value})


def retype_attributes(rng: np.random.Generator, call: Given) -> Given:
    """Leave out an attribute, add another, or give one of another type."""
    attributes, way = {**call.attributes}, rng.integers(3)
    if not attributes or way == 0:
        attributes["other"] = 1
        return call._replace(attributes=attributes)
    name = str(rng.choice(sorted(attributes)))
    value = attributes.pop(name)
    if way == 1:
        others = [np.int32(1), 1.5, "text", np.zeros(2, np.int32), True, 3, np.ones(2)]
        same = lambda x: (
            isinstance(x, str) == isinstance(value, str)
            and (np.asarray(x).dtype == np.asarray(value).dtype and np.ndim(x) == np.ndim(value))
        )
        attributes[name] = [x for x in others if not same(x)][rng.integers(5)]
    return call._replace(attributes=attributes)


def is_answered(call: Call, given: Given) -> bool:
    """Return True if the table says that a handler takes such a call."""
    if any(math.prod(n for n in x.shape if n) > 2**48 for x in [*given.operands, *given.results]):
        return False
    for signature in call.signatures.split("|"):
        sizes = match(signature, given.operands, given.results)
        if sizes is not None and call.holds(sizes, Names(given.attributes)):
            return True
    return False


# --- tests -----------------------------------------------------------------------------------


def make_call(name: str, given: Given) -> bool:
    """Call a handler; False if it refuses the call, in the words of all errors."""
    handler = handler_of(name)
    error = Machine().call(HANDLES[handler], *given)
    if error:
        assert re.fullmatch(rf"{handler}: .*\bmust\b.*; got .* -> .*", error, re.S), error
    return not error


def handler_of(name: str) -> str:
    return "weft_" + name.partition(":")[0]


def share_buffers(given: Given) -> Given:
    """Return the call with results in the buffers of operands of their types."""
    results = [*given.results]
    for x in given.operands:
        for i, y in enumerate(given.results):
            if results[i] is y and (x.dtype, x.shape) == (y.dtype, y.shape):
                results[i] = x
                break
    return given._replace(results=results)


def test_every_handler_has_a_row():
    assert {*map(handler_of, CALLS)} == {*kernels.HANDLERS}


@pytest.mark.parametrize("name", CALLS)
def test_handlers_answer_exactly_the_calls_that_fit(name):
    rng, call = np.random.default_rng(zlib.crc32(name.encode())), CALLS[name]
    answered = 0
    for _ in range(1000 if ALL else 10):
        given = draw_call(rng, call)
        fits = is_answered(call, given)
        assert make_call(name, given) == fits, given
        answered += fits
        for _ in range(2):
            damaged = damage_buffers(rng, given)
            assert make_call(name, damaged) == is_answered(call, damaged), damaged
        assert not make_call(name, retype_attributes(rng, given))
        make_call(name, damage_attributes(rng, given))
        make_call(name, damage_attributes(rng, damage_attributes(rng, given)))
        make_call(name, share_buffers(given))
    assert answered > 3


@pytest.mark.parametrize("name", [n for n in CALLS if not n.startswith("program")])
def test_numbers_at_the_end_of_their_range(name):
    """Each number of the attributes of a call in turn is each of EXTREME."""
    rng, call = np.random.default_rng(1), CALLS[name]
    given = next(g for g in (draw_call(rng, call) for _ in range(1000)) if is_answered(call, g))
    for key, value in given.attributes.items():
        for k in range(np.size(value) if np.asarray(value).dtype == np.int64 else 0):
            for number in EXTREME:
                changed = np.array(value)
                changed[k if changed.ndim else ()] = number
                changed = changed if changed.ndim else int(changed)
                make_call(name, given._replace(attributes={**given.attributes, key: changed}))


def draw_program(rng: np.random.Generator) -> Given:
    """Draw a program of steps that often fit together, and arrays that often are large enough."""
    pick = lambda values: values[rng.integers(len(values))]
    row, rows = pick([1, 3, 16, 17, 40, 256]), int(rng.integers(1, 6))
    numbers = {short_name(dtype): number for dtype, number in CODED.items()}
    operands, code, slots = [], [row, pick([1, 2, 9]), int(rng.integers(1, 4))], {}
    for k in range(code[2]):
        kind, start = pick([FULL, FULL, FULL, SHARED_ROW, SCALAR]), int(rng.integers(0, 3))
        size = {SCALAR: 1, SHARED_ROW: row}.get(kind, row * rows) + start - (rng.integers(30) == 0)
        slots[k] = kind, pick(["f32"] * 20 + [*numbers])
        operands.append(draw_buffer(rng, slots[k][1], (max(0, size),)))
        code += int(kind), start
    for _ in range(rng.integers(1, 5)):
        name, slot = (
            pick([*OPERANDS, *["add", "exp", "reduce_sum", "spread"] * 20]),
            pick([*range(16)]),
        )
        dtype = slots[pick([*slots])][1]
        alike = [i for i in slots if slots[i][1] == dtype]
        reads = [pick(alike) for _ in range(OPERANDS[name])]
        if name == "convert_element_type":
            dtype = pick([*numbers])
        elif name in ("eq", "ne", "gt", "ge", "lt", "le", "is_finite"):
            dtype = "bool"
        of_rows = name.startswith("reduce") or {slots[i][0] for i in reads} == {PER_ROW}
        kind = pick([FULL, PER_ROW] + [PER_ROW if of_rows and name != "spread" else FULL] * 20)
        code += OPCODES[name], int(kind), numbers[dtype], slot, *reads
        slots[slot] = kind, dtype
    kind, dtype = slots[slot]
    out = make_buffer(dtype, (rows if kind == PER_ROW else row * rows,))
    return Given(operands, [out], {"program": np.array(code, np.int64)})


def test_programs_of_steps_at_random():
    rng = np.random.default_rng(1)
    answered = [make_call("program", draw_program(rng)) for _ in range(100_000 if ALL else 400)]
    assert 0.1 < np.mean(answered) < 0.9


def test_kept_arrays_are_copied_to_buffers_of_their_own():
    operands = [make_buffer("f32", (3,), np.float32([1, 2, 3])), make_buffer("u8", (0, 2))]
    results = [make_buffer(x.dtype, x.shape) for x in operands]
    assert make_call("keep", Given(operands, results, {}))
    np.testing.assert_array_equal(results[0].data.view(np.float32), [1, 2, 3])


def test_an_error_names_the_call():
    struct = weft.ShapeDtypeStruct((1,), F32)
    scatter = weft.jit(
        lambda *xs: weft.ffi.ffi_call("weft_scatter", struct)(*xs, kind="scatter", axis=0)
    )
    with pytest.raises(JaxRuntimeError) as found:
        scatter(np.ones(10**6, F32), np.zeros(4, np.int32), np.ones(4, F32))
    message = (
        "weft_scatter: axis must be one of the operand, the result like it, and updates of its "
        'dtype; got f32[1000000], i32[4], f32[4] -> f32[1] with axis=0, kind="scatter"'
    )
    assert message in str(found.value)


@pytest.mark.sample(one_in=20)
@pytest.mark.parametrize("name", CALLS)
def test_xla_reports_the_errors(name):
    """A call by `ffi_call` with one result more than the handler has."""
    given, handler = draw_call(np.random.default_rng(1), CALLS[name]), handler_of(name)
    results = [*given.results, make_buffer("f32", ())]
    structs = [weft.ShapeDtypeStruct(x.shape, numpy_dtype(x.dtype)) for x in results]
    operands = [x.data.view(numpy_dtype(x.dtype)).reshape(x.shape) for x in given.operands]
    message = rf"{handler}: .*\bmust\b.*; got .* -> "
    with weft.enable_x64(True), pytest.raises(JaxRuntimeError, match=message):
        weft.ffi.ffi_call(handler, structs)(*operands, **given.attributes)
