"""Sums of products: MatMul or Einsum for `dot_general`, Conv for convolutions."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.core.aval import ShapedArray
from weft.export.dims import Dim
from weft.export.onnx.graph import Graph, NotInOnnx
from weft.export.onnx.kinds import F32, wide_dtype
from weft.export.onnx.places import flip, pad_tensor
from weft.export.recorder import read_dims, read_numbers
from weft.xla.hlo import Value


def dot_general(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write sums of products: MatMul where axes are in its order, else Einsum."""
    (x, y), (out,) = xs, outs
    dims = read_dims(attrs["dot_dimension_numbers"])
    sides, kinds = ("lhs", "rhs"), ("batching_dimensions", "contracting_dimensions")
    (a, c), (b, d) = ([dims.get(f"{s}_{k}", ()) for k in kinds] for s in sides)
    wide = wide_dtype("Einsum", out.dtype)
    names = [g.cast(g.use(v), v.aval.dtype, wide) for v in xs]
    m, n = x.aval.ndim, y.aval.ndim
    lead = tuple(range(len(a)))
    batched = lead == tuple(a) == tuple(b) and tuple(c) == (m - 1,)
    if batched and (n == len(b) + 2 and tuple(d) == (n - 2,)) and (m == n or n == 2):
        return [g.cast(g.node("MatMul", *names), wide, out.dtype)]
    if batched and m == n == 2 and tuple(d) == (1,):
        turned = g.node("Transpose", names[1], perm=[1, 0])
        return [g.cast(g.node("MatMul", names[0], turned), wide, out.dtype)]
    letters = iter(string.ascii_letters)
    left = [next(letters) for _ in range(m)]
    right = [""] * n
    for j, k in (*zip(a, b, strict=True), *zip(c, d, strict=True)):
        right[k] = left[j]
    right = [text or next(letters) for text in right]
    shared = {*b, *d}
    result = [left[k] for k in a] + [left[k] for k in range(m) if k not in (*a, *c)]
    result += [right[k] for k in range(n) if k not in shared]
    equation = f"{''.join(left)},{''.join(right)}->{''.join(result)}"
    return [g.cast(g.node("Einsum", *names, equation=equation), wide, out.dtype)]


class Layout:
    """Return the axes of a convolution: batch or outputs, features, then spatial ones."""

    def __init__(self, text: str):
        found = re.search(r"\[(.*?)\]x\[(.*?)\]->\[(.*?)\]", text)
        if found is None:
            raise NotInOnnx(f"a convolution over {text}")
        sides = [s.replace(" ", "").split(",") for s in found.groups()]
        spatial = [str(k) for k in range(len(sides[0]) - 2)]
        order = ("b", "f"), ("o", "i"), ("b", "f")
        rows = zip(sides, order, strict=True)
        self.perms = [[side.index(t) for t in (*lead, *spatial)] for side, lead in rows]


def permute(g: Graph, name: str, perm: Sequence[int]) -> str:
    """Write a tensor with its axes in another order."""
    perm = [int(k) for k in perm]
    return name if perm == sorted(perm) else g.node("Transpose", name, perm=perm)


def convolution(g: Graph, xs: Sequence[Value], outs: Sequence[Any], attrs: dict) -> list[str]:
    """Write a convolution, with its features in the second axis.

    A dilated operand gets zeros between its elements, unless ConvTranspose can dilate it.
    """
    (x, w), (out,) = xs, outs
    layout = Layout(attrs["dimension_numbers"])
    rank = out.ndim - 2
    ones = f"array<i64: {', '.join(['1'] * rank)}>"
    read = lambda name: list(read_numbers(attrs.get(name, ones)))
    strides, spread, between = read("window_strides"), read("lhs_dilation"), read("rhs_dilation")
    groups, batches = (read(f"{k}_group_count")[0] for k in ("feature", "batch"))
    pads = g.read_sizes(attrs["padding"]) if rank else []
    rows = list(zip(pads[::2], pads[1::2], strict=True))
    wide = wide_dtype("Conv", out.dtype)
    left, right = (
        permute(g, g.cast(g.use(v), v.aval.dtype, wide), perm)
        for v, perm in zip(xs, layout.perms, strict=False)
    )
    shape = [x.aval.shape[k] for k in layout.perms[0]]
    kernel = [w.aval.shape[k] for k in layout.perms[1]]
    if "true" in attrs.get("window_reversal", ""):
        right = flip(g, right, range(2, rank + 2))
    if batches > 1:  # each group of the batch meets its own outputs: it is a group of features
        left, shape = batch_to_features(g, left, shape, batches)
        groups = batches
    # what ConvTranspose does: zeros between elements, and no strides
    conv = Convolution(g, wide, shape, kernel, groups)
    if wide == F32 and {*spread} != {1} and {*strides} == {1} and conv.can_transpose(rows, between):
        made = conv.transposed(left, right, rows, spread, between)
    else:
        simple = {*spread} == {1} and not any(isinstance(p, Dim) or p < 0 for p in pads)
        if not simple or wide != F32:
            fill, padding = g.tensor(0, wide), [(p, q, k - 1) for (p, q), k in zip(rows, spread)]
            aval = ShapedArray(shape, wide)
            left = pad_tensor(g, left, aval, fill, [(0, 0, 0), (0, 0, 0), *padding])
            pads = [0] * len(pads)
        sizes = [out.shape[k] for k in layout.perms[2]][2:]
        if wide == F32:
            made = conv.plain(left, right, pads, strides, between)
        else:
            made = conv.by_windows(left, right, sizes, strides, between)
    made = permute(g, made, np.argsort(layout.perms[2]))
    return [g.cast(made, wide, out.dtype)]


def batch_to_features(g: Graph, name: str, shape: list, groups: int) -> tuple[str, list]:
    """Write groups of a batch side by side, as features: (g * b, c, ...) to (b, g * c, ...)."""
    b, c, *space = shape
    name = g.reshape(name, [groups, b // groups, c, *space])
    perm = [1, 0, 2, *range(3, 3 + len(space))]
    shape = [b // groups, groups * c, *space]
    return g.reshape(g.node("Transpose", name, perm=perm), shape), shape


class Convolution:
    """Sums of products over windows of (batch, features, ...); kernels (outputs, inputs, ...)."""

    def __init__(self, g: Graph, dtype: np.dtype, shape: list, kernel: list, groups: int):
        self.g, self.dtype, self.shape, self.kernel, self.groups = g, dtype, shape, kernel, groups

    def plain(self, x: str, w: str, pads: list, strides: list, between: list) -> str:
        """Write Conv."""
        if not self.kernel[2:]:
            x, w = (self.g.unsqueeze(v, [2]) for v in (x, w))
            made = self.g.node("Conv", x, w, group=self.groups)
            return self.g.node("Squeeze", made, self.g.tensor([2]))
        return self.g.node(
            "Conv", x, w, group=self.groups, kernel_shape=self.kernel[2:], strides=strides,
            dilations=between, pads=[*pads[::2], *pads[1::2]],
        )  # fmt: skip

    def can_transpose(self, rows: Sequence, between: Sequence[int]) -> bool:
        """Return True if ConvTranspose, whose padding removes elements, gives the result."""
        reach = [(n - 1) * k for n, k in zip(self.kernel[2:], between, strict=True)]
        return all(
            not isinstance(p, Dim) and p <= r
            for row, r in zip(rows, reach, strict=True)
            for p in row
        )

    def transposed(self, x: str, w: str, rows: Sequence, spread: list, between: list) -> str:
        """Write ConvTranspose: its kernels are reversed, with inputs in front of outputs."""
        g, n, k = self.g, self.groups, self.kernel
        w = flip(g, w, range(2, len(k)))
        # (n * o, i, ...) to (n * i, o, ...)
        w = g.reshape(w, [n, k[0] // n, *k[1:]])
        w = g.node("Transpose", w, perm=[0, 2, 1, *range(3, len(k) + 1)])
        w = g.reshape(w, [n * k[1], k[0] // n, *k[2:]])
        reach = [(m - 1) * b for m, b in zip(k[2:], between, strict=True)]
        low = [r - p for (p, _), r in zip(rows, reach, strict=True)]
        high = [r - p for (_, p), r in zip(rows, reach, strict=True)]
        return g.node(
            "ConvTranspose", x, w, group=n, kernel_shape=k[2:], strides=spread, dilations=between,
            pads=[*low, *high],
        )  # fmt: skip

    def by_windows(self, x: str, w: str, sizes: list, strides: list, between: list) -> str:
        """Write a sum over the elements of windows, in a dtype that Conv does not have."""
        g, n, rank = self.g, self.groups, len(sizes)
        if any(isinstance(k, Dim) for k in sizes):
            raise NotInOnnx("windows along a symbolic axis")
        for axis in reversed(range(rank)):
            starts = np.arange(sizes[axis])[:, None] * strides[axis]
            places = starts + np.arange(self.kernel[2 + axis]) * between[axis]
            x = g.node("Gather", x, g.tensor(places), axis=axis + 2)
        o, i, *space = self.kernel
        b = self.shape[0]
        x = g.reshape(x, [b, n, i, *[k for row in zip(sizes, space) for k in row]])
        w = g.reshape(w, [n, o // n, i, *space])
        out, inner = string.ascii_uppercase[:rank], string.ascii_lowercase[:rank]
        pairs = "".join(p + q for p, q in zip(out, inner, strict=True))
        wide = wide_dtype("Einsum", self.dtype)
        names = (g.cast(v, self.dtype, wide) for v in (x, w))
        made = g.node("Einsum", *names, equation=f"xyz{pairs},ywz{inner}->xyw{out}")
        return g.cast(g.reshape(made, [b, o, *sizes]), wide, self.dtype)


WRITERS: dict[str, Callable] = {"convolution": convolution, "dot_general": dot_general}
