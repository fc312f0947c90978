"""Loops that run all their steps on a block of elements before those on the next block.

XLA:CPU runs each step on whole arrays. If these are larger than the caches of a core, a step of a
few operations takes as long as to read and write them.
"""

from __future__ import annotations

import math
import os
from functools import partial
from typing import Any, NamedTuple

from weft import dtypes
from weft.control.scan import scan_p, scan_params
from weft.core.aval import typeof
from weft.core.facts import LIGHT
from weft.core.jaxpr import Eqn, Jaxpr
from weft.core.trace import eval_context
from weft.cpu.buffers import choose_buffers, count_bytes, is_plain_body
from weft.cpu.elements import FAMILIES, computes_by_element, fills_with_number
from weft.cpu.in_place import choose_barriers
from weft.cpu.rewriting import Replacement, read_inputs, read_results, restage, write_in_shape
from weft.cpu.scope import Scope
from weft.primitives.constant import stage_whole
from weft.primitives.layout import fill, reshape
from weft.primitives.slicing import pad, slice

MIN_STEPS = 32  # of a loop; dividing and joining the arrays takes as long as several steps
BLOCK_BYTES = 1 << 15  # of all arrays of a block; the first cache of a core has 32 to 48 KiB
# Of all arrays. A loop on smaller ones takes 0.4 to 1.4 of the time, on larger ones 0.2 to 0.5.
MIN_BYTES = 1 << 23
VECTOR = 16  # elements; a block has a multiple of these
MAX_CORES = 2  # one thread walks along the blocks; XLA divides the arrays among all


class Block(NamedTuple):
    """The blocks that the elements of arrays are divided into.

    Attributes:
      size: the elements of an array.
      width: the elements of an array in a block.
      rows: the number of blocks.
    """

    size: int
    width: int
    rows: int

    def divide(self, x: Any) -> Any:
        """Return an array with a row for each block."""
        rest = self.rows * self.width - self.size
        x = pad(reshape(x, (self.size,)), fill((), 0, typeof(x).dtype), [(0, rest, 0)])
        return reshape(x, (self.rows, self.width))

    def join(self, x: Any, shape: tuple[int, ...]) -> Any:
        """Return an array of this shape from its rows; a scalar from its copies."""
        x = reshape(x, (typeof(x).size,))
        return reshape(slice(x, (0,), (self.size if shape else 1,)), shape)


def choose_scan(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Run a loop block by block, or keep XLA from copying the arrays of its carry."""
    return choose_blocks(eqn, scope) or choose_buffers(eqn, scope) or choose_barriers(eqn, scope)


def choose_blocks(eqn: Eqn, scope: Scope) -> Replacement | None:
    """Run a loop of cheap operations on large arrays block by block.

    An outer loop walks along the rows, which are blocks. Scalars of the carry are computed again
    for each block.
    """
    body, params = eqn.params["jaxpr"], eqn.params
    n, m, length = params["num_consts"], params["num_carry"], params["length"]
    if not scope.target.kernels or type(length) is not int or length < MIN_STEPS:
        return None
    shape = find_shape(body, n + m)
    if shape is None or len(body.outvars) != m:
        return None
    sizes = [count_bytes(v) for v in body.invars if v.aval.shape]
    total, size = sum(sizes), math.prod(shape)
    if total < MIN_BYTES or not all(sizes) or (os.cpu_count() or 1) > MAX_CORES:
        return None
    width = -(-size * BLOCK_BYTES // (total * VECTOR)) * VECTOR
    whole = (w for w in range(width, width // 2, -VECTOR) if size % w == 0)
    width = next(whole, width)  # without padding, if possible
    block = Block(size, width, -(-size // width))
    if block.rows < 2:
        return None
    inner = write_block(body, width)
    large = [i for i, v in enumerate(body.invars) if v.aval.shape]
    fixed = [i for i, v in enumerate(body.invars) if not v.aval.shape]

    def run_block(*given: Any) -> list:
        env = dict(zip([*fixed, *large], given, strict=True))
        operands = [env[i] for i in range(len(env))]
        return scan_p.apply(*operands, **scan_params(inner, n, m, params))

    def run(*xs: Any) -> list:
        avals = [*[typeof(xs[i]) for i in fixed], *[inner.in_avals[i] for i in large]]
        with eval_context():
            outer = stage_whole(run_block, avals, body.name)
        operands = [*[xs[i] for i in fixed], *[block.divide(xs[i]) for i in large]]
        walk = {"length": block.rows, "reverse": False, "unroll": 1}
        rows = scan_p.apply(*operands, **scan_params(outer, len(fixed), 0, walk))
        return [block.join(x, a.shape) for x, a in zip(rows, body.out_avals, strict=True)]

    return run


def find_shape(body: Jaxpr, count: int) -> tuple[int, ...] | None:
    """Return the shape of the arrays of a body that computes each element by itself.

    None if there is no such shape. The inputs after the first `count` must be scalars.
    """
    shapes = {a.shape for a in body.in_avals[:count]} - {()}
    if len(shapes) != 1 or not is_plain_body(body):
        return None
    (shape,) = shapes
    avals = [*body.out_avals, *[v.aval for e in body.eqns for v in e.outvars]]
    if any(dtypes.is_extended(a.dtype) for a in (*body.in_avals, *avals)):
        return None
    if any(a.shape for a in body.in_avals[count:]) or not {a.shape for a in avals} <= {(), shape}:
        return None
    for eqn in body.eqns:
        light = eqn.primitive.cost in LIGHT and isinstance(eqn.primitive, FAMILIES)
        if not (light and computes_by_element(eqn)) and not fills_with_number(eqn):
            return None
    return shape


def write_block(body: Jaxpr, width: int) -> Jaxpr:
    """Return the body for a block of this many elements."""
    avals = [a.update(shape=(width,)) if a.shape else a for a in body.in_avals]

    start, finish = partial(read_inputs, body), partial(read_results, body)
    return restage(body, avals, start, partial(write_in_shape, (width,)), finish)
