"""Programs on padded arrays, NaN in the padding, equal those on arrays of true sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from tests.conftest import ALL
from tests.padding.programs import PROGRAMS, Program
from tests.padding.rows import fill_up
from weft.core.aval import ShapedArray
from weft.errors import InconclusiveDimensionOperation
from weft.export.specs import SymbolicScope, symbolic_args_specs
from weft.padding.interpret import pad_jaxpr
from weft.padding.sizes import Sizes
from weft.primitives.constant import write_consts
from weft.tree_util import tree_leaves

BUCKET = 8


class Padded:
    """The padded program of a function; a call takes arrays of true sizes."""

    def __init__(
        self,
        fun: Any,
        program: Program,
        constraints: Sequence[str] = (),
        bucket: int = BUCKET,
        values: Mapping[str, int] | None = None,
        zeros: bool = False,
    ):
        self.zeros = zeros
        rng = np.random.default_rng(0)
        args = tuple(program.arrays(rng, n=5, m=5))
        scope = SymbolicScope(constraints)
        scope.values = values
        self.structs = symbolic_args_specs(args, program.shapes, scope=scope)
        closed = weft.make_jaxpr(fun)(*self.structs)
        names = sorted({v for s in self.structs for n in s.shape if not isinstance(n, int)
                        for v in n.variables()})  # fmt: skip
        self.names, buckets = names, tuple([(name, bucket) for name in names])
        closed_jaxpr = write_consts(closed.jaxpr, closed.consts)
        self.outs = closed_jaxpr.out_avals
        padded = pad_jaxpr(closed_jaxpr, buckets, zeros)
        self.run = weft.jit(lambda *xs: padded(*xs))
        self.shapes = Sizes(dict(buckets), {})

    def __call__(self, xs: Sequence[np.ndarray], **sizes: int) -> list[np.ndarray]:
        given = []
        for x, s in zip(xs, self.structs, strict=True):
            shape = self.shapes.pad_type(ShapedArray(s.shape, s.dtype)).shape
            widths = [(0, m - n) for n, m in zip(x.shape, shape, strict=True)]
            given.append(np.pad(x, widths) if self.zeros else fill_up(x, shape))
        outs = self.run(*[np.int32(sizes[n]) for n in self.names], *given)
        shapes = [[n if isinstance(n, int) else n.evaluate(sizes) for n in a.shape]
                  for a in self.outs]  # fmt: skip
        return [np.asarray(y)[tuple(map(slice, s))] for y, s in zip(outs, shapes, strict=True)]


def check(
    fun: Any, program: Program, every: Sequence[dict], constraints: Sequence[str] = (),
    bucket: int = BUCKET, values: Mapping[str, int] | None = None, zeros: bool = False,
):  # fmt: skip
    """Compare a function with its padded program, with garbage in the padding or with zeros.

    If there are `values`, comparisons that depend on sizes have the answer for these sizes.
    """
    padded = Padded(fun, program, constraints, bucket, values, zeros)
    for k, sizes in enumerate(every):
        xs = program.arrays(np.random.default_rng(k), **sizes)
        want, got = tree_leaves(fun(*xs)), padded(xs, **sizes)
        assert len(want) == len(got)
        for w, g in zip(want, got, strict=True):
            np.testing.assert_allclose(g, np.asarray(w), 2e-4, 2e-4, err_msg=f"sizes {sizes}")


SIZES = [{"n": 8, "m": 5}, {"n": 5, "m": 8}, {"n": 1, "m": 1}]


def check_sizes(fun: Any, program: Program) -> None:
    """Compare a function with its padded program, or with one for each answer it asks for."""
    every = SIZES if ALL else SIZES[1:]
    try:
        check(fun, program, every)
        check(fun, program, every[:1], zeros=True)
    except InconclusiveDimensionOperation:
        for sizes in every:
            check(fun, program, [sizes], values=sizes)


@pytest.mark.sample(one_in=16)
@pytest.mark.parametrize("name", PROGRAMS)
def test_padded_programs_equal_plain_ones(name):
    check_sizes(PROGRAMS[name].fun, PROGRAMS[name])


NO_GRADIENT = """
product
take fixed
nonzero
histogram
while
while of each
fori
""".strip().splitlines()


def total(fun: Any) -> Any:
    """The sum of the float results of a function, by weights that differ."""

    def run(*xs: Any) -> Any:
        ys = [y for y in tree_leaves(fun(*xs)) if y.dtype == np.float32]
        return sum((weft.numpy.sin(1.0 + k) * (y * weft.numpy.cos(y)).sum()) for k, y in
                   enumerate(ys))  # fmt: skip

    return run


@pytest.mark.sample(one_in=48)
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in NO_GRADIENT])
def test_padded_gradients_equal_plain_ones(name):
    check_sizes(weft.grad(total(PROGRAMS[name].fun)), PROGRAMS[name])


def test_gradients_of_ranks_go_to_elements_that_are_computed_again():
    """XLA computes x - x.mean(0) anew where it is read, and may round it otherwise each time."""
    program = Program(lambda x: jnp.sin(jnp.median(x - x.mean(0), 0)).sum(), ("n, 3",))
    check(weft.grad(program.fun), program, [{"n": 5}])
