"""The text that each rule writes for the rows in cases_*.py; no program is run.

A row is called, lowered for each platform, differentiated and transposed in each set of operands
and mapped along each axis. So is its primitive with a changed number among its parameters, or with
longer axes. For each row, tests/golden/rules has the number of texts and digests of them, and some
texts for its first dtype. `python -m tests.primitives.test_rules` writes the files anew; with the
name of a row it prints all of its texts, to compare with older ones.
"""

import collections
import contextlib
import functools
import importlib
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.primitives.cases import SHORT, Case
from tests.primitives.test_conformance import batch_dims
from tests.primitives.test_errors import find_equation, other_values
from weft import dtypes
from weft.core.aval import ShapedArray, typeof
from weft.core.jaxpr import Literal
from weft.core.primitive import Axis, Linear, Zero
from weft.core.stage import stage
from weft.cpu import kernels
from weft.mesh.typed import Sharded
from weft.options import config
from weft.primitives.varying import Varying
from weft.sharding import AbstractMesh, AxisType, use_abstract_mesh
from weft.transforms.batch import batch
from weft.transforms.jvp import jvp
from weft.transforms.linearize import linearize
from weft.transforms.transpose import backward
from weft.xla.hlo import Builder
from weft.xla.lower import lower_jaxpr

FOLDER = Path(__file__).parents[1] / "golden/rules"
PLATFORMS = ("cpu", "cuda", "tpu")
SHORT_TEXT = 12  # lines
MOST_CHANGED = 8  # of the ways to change a parameter of a row


def write(fun: Callable, avals: Sequence[ShapedArray]) -> str:
    """A program as text, or why there is none."""
    try:
        return str(stage(fun, avals)[0])
    except Exception as error:
        return tell(error)


def tell(error: Exception) -> str:
    """Return the text of an error; for errors of others, only "no rule"."""
    return f"{type(error).__name__}: {error}" if "; got " in str(error) else "no rule"


def lower(fun: Callable, avals: Sequence[ShapedArray], platform: str) -> str:
    try:
        jaxpr, consts = stage(fun, avals)
        hlo = Builder((), platform)
        body = lambda *xs: lower_jaxpr(hlo, jaxpr, xs, consts)
        hlo.function("main", jaxpr.in_avals, body, "public")
        return hlo.module("m")
    except Exception as error:
        return tell(error)


def differentiate(fun: Callable, avals: Sequence[ShapedArray], moved: Sequence[bool]) -> Iterator:
    """The jvp where some operands move, and the gradient for cotangents that are the results."""
    given = [a.to_tangent() for a, m in zip(avals, moved, strict=True) if m]

    def forward(*args: Any) -> list:
        tangents = iter(args[len(avals) :])
        ts = [next(tangents) if m else Zero(a.to_tangent()) for a, m in zip(avals, moved)]
        outs, dots = jvp(fun, args[: len(avals)], ts)
        return [*outs, *(t for t in dots if type(t) is not Zero)]

    def gradient(*args: Any) -> list:
        outs, linear, residuals, out_moved = linearize(fun, args, moved)
        cts = [y for y, m in zip(outs, out_moved, strict=True) if m]
        grads = backward(linear, residuals, [Linear(v.aval) for v in linear.invars], cts)
        return [g for g in grads if type(g) is not Zero]

    which = [i for i, m in enumerate(moved) if m]
    yield f"jvp {which}", write(forward, [*avals, *given])
    yield f"vjp {which}", write(gradient, avals)


def transpose(fun: Callable, avals: Sequence[ShapedArray], moved: Sequence[bool]) -> str:
    """The transpose in all operands that move; where these are not linear together, it says so."""
    jaxpr, consts = stage(fun, avals)

    def pull(*values: Any) -> list:
        args, cts = values[: len(avals)], values[len(avals) :]
        args = [Linear(a) if m else x for a, m, x in zip(avals, moved, args, strict=True)]
        grads = backward(jaxpr, consts, args, cts)
        return [g for g in grads if g is not None and type(g) is not Zero]

    return write(pull, [*avals, *jaxpr.out_avals])


def map_along(fun: Callable, avals: Sequence[ShapedArray], dims: Sequence[int | None]) -> str:
    wide = [
        a if d is None else a.update(shape=(*a.shape[:d], 4, *a.shape[d:]))
        for a, d in zip(avals, dims, strict=True)
    ]
    found: list = []

    def mapped(*args: Any) -> list:
        outs, found[:] = batch(fun, args, dims, Axis(4))
        return outs

    return f"{write(mapped, wide)} at {found}"


def each_call(case: Case) -> Iterator[tuple[str, Callable, list[ShapedArray]]]:
    """Yield the row at each dtype, then variants of its primitive only."""
    for name in case.dtypes.split():
        with config.scope(enable_x64=name in ("f64", "i64", "u64", "c128")):
            yield name, case.apply, [typeof(x) for x in case.arrays(SHORT[name])]
    avals = [typeof(x) for x in case.arrays(SHORT[case.dtypes.split()[0]])]
    if (eqn := find_equation(stage(case.apply, avals)[0], case.prim)) is None:
        return
    avals = [typeof(v.val) if isinstance(v, Literal) else v.aval for v in eqn.invars]
    for name, params, types in different(eqn.params, avals, zlib.crc32(case.id.encode())):
        with contextlib.suppress(Exception):
            case.prim.abstract_eval(*types, **params)
            yield name, functools.partial(case.prim.apply, **params), types


def different(params: dict, avals: list[ShapedArray], seed: int) -> Iterator[tuple]:
    changed = [(k, i, x) for k, v in params.items() for i, x in enumerate(other_values(v))]
    step = -(-len(changed) // MOST_CHANGED)
    for key, i, new in changed[seed % step :: step] if step else ():
        yield f"{key} {i}", {**params, key: new}, avals
    for n in (40, 1000):
        yield f"{n} times", params, [a.update(shape=tuple(n * d for d in a.shape)) for a in avals]


MESH = AbstractMesh((2, 3), ("X", "Y"), AxisType.Explicit)


def over_mesh(case: Case) -> Iterator[tuple[str, str]]:
    """Yield the types of results for operands over a mesh, one split along an axis or all alike."""
    avals = [typeof(x) for x in case.arrays(SHORT[case.dtypes.split()[0]])]
    lies: dict[tuple, list] = {}
    for i, aval in enumerate(avals):
        for axis, size in enumerate(aval.shape):
            for name, parts in MESH.shape.items():
                if size % parts == 0 and size:
                    entries = [()] * aval.ndim
                    entries[axis] = (name,)
                    lies.setdefault((axis, name), []).append((i, Sharded.of(MESH, entries)))
        for kind in ("unreduced", "reduced"):
            whole = Sharded.of(MESH, [()] * aval.ndim, **{kind: "X"})
            lies.setdefault((kind,), []).append((i, whole))
        lies.setdefault(("varies",), []).append((i, Varying.of("Z")))
    for (where, *_), places in lies.items():
        key = "varying" if where == "varies" else "sharded"
        laid = [places, *([place] for place in places if len(places) == 2)]
        for some in laid:
            types = [
                a.update(**{key: dict(some)[i]}) if i in dict(some) else a
                for i, a in enumerate(avals)
            ]
            with use_abstract_mesh(MESH):
                yield f"over {types}", write(case.apply, types)
                moved = [dtypes.is_inexact(a.dtype) for a in types]
                if some is places and any(moved):
                    yield (
                        f"over {types} vjp",
                        dict(differentiate(case.apply, types, moved)).popitem()[1],
                    )


def texts_of(case: Case) -> Iterator[tuple[str, str]]:
    """Yield every text of a row, each with its kind."""
    names = case.dtypes.split()
    firsts = {np.dtype(SHORT[n]).kind: n for n in reversed(names)}.values()
    for name, fun, avals in each_call(case):
        platforms = PLATFORMS if name in names or "times" in name else PLATFORMS[:1]
        yield from ((f"{name} {p}", lower(fun, avals, p)) for p in platforms)
        if name in names:
            yield f"{name} call", write(fun, avals)
        if "times" in name or name in names and name not in firsts:
            continue
        moved = [dtypes.is_inexact(a.dtype) for a in avals]
        sets = [moved]
        if name in names and sum(moved) > 1:
            sets += [[i == k for i in range(len(moved))] for k, m in enumerate(moved) if m]
        for some in sets if any(moved) else ():
            yield from ((f"{name} {what}", s) for what, s in differentiate(fun, avals, some))
        if name == names[0] and any(moved):
            yield f"{name} transpose", transpose(fun, avals, moved)
        choices = (
            batch_dims(case.operands(), every=False) if name == names[0] else [(0,) * len(avals)]
        )
        for dims in choices if avals else ():
            yield f"{name} vmap {dims}", map_along(fun, avals, dims)
    if case.id in ALIKE:
        yield from over_mesh(case)


def describe(case: Case) -> list[str]:
    """Return the number of texts by kind and their digest; then the shown ones."""
    kinds: dict[str, list[str]] = collections.defaultdict(list)
    shown = []
    for what, text in texts_of(case):
        name, kind, *_ = what.split()
        kinds[kind if name in SHORT else "mesh" if name == "over" else "changed"].append(
            f"{what}\n{text}"
        )
        first = name == case.dtypes.split()[0] and len(kinds[kind]) == 1
        if first and kind in ("jvp", "vjp", "vmap") and text.count("\n") < SHORT_TEXT:
            shown += [f"{what}:", *text.splitlines()]
    digests = [
        f"{kind} {len(texts)} {zlib.crc32(chr(10).join(texts).encode()):08x}"
        for kind, texts in kinds.items()
    ]
    return [", ".join(digests), *shown]


def read_blocks(file: Path) -> dict[str, list[str]]:
    blocks = file.read_text().split("== ")[1:] if file.exists() else []
    return {(lines := block.splitlines())[0]: lines[1:] for block in blocks}


FAMILIES = {
    file.stem.removeprefix("cases_"): importlib.import_module(f"tests.primitives.{file.stem}").CASES
    for file in sorted(Path(__file__).parent.glob("cases_*.py"))
}
# One row of those whose primitives have one class, with operands and parameters of the same shapes.
ALIKE = {
    case.id
    for case in {
        (type(c.prim), *(a.shape for a in c.operands()), *c.params, c.fun and c.id): c
        for cases in reversed(FAMILIES.values())
        for c in reversed(cases)
    }.values()
}
KEPT = {name: read_blocks(FOLDER / f"{name}.txt") for name in FAMILIES}


@pytest.mark.parametrize(
    "case", [c for cases in FAMILIES.values() for c in cases], ids=lambda c: c.id
)
def test_what_rules_write(case, monkeypatch):
    """If only a digest differs, compare with the texts before (`git stash`), see above."""
    monkeypatch.setattr(kernels, "load_kernels", lambda: "")
    monkeypatch.setattr("weft.xla.hlo.PATTERNS", {})  # patterns of programs that call kernels
    kept = next(rows[case.id] for rows in KEPT.values() if case.id in rows)
    assert describe(case) == kept, "if meant: python -m tests.primitives.test_rules"


if __name__ == "__main__":
    kernels.load_kernels = lambda: ""
    every = [c for cases in FAMILIES.values() for c in cases]
    if len(sys.argv) > 1:
        shown = [text for c in every if c.id in sys.argv for text in texts_of(c)]
        print(*[f"--- {what}\n{text}" for what, text in shown], sep="\n")
    else:
        for name, cases in FAMILIES.items():
            blocks = [chr(10).join([f"== {c.id}", *describe(c), ""]) for c in cases]
            (FOLDER / f"{name}.txt").write_text("".join(blocks))
