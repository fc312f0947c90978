"""A toy language for the tests of core: primitives with type rules only, and programs of them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from weft.core.aval import ShapedArray
from weft.core.facts import Runs
from weft.core.jaxpr import ClosedJaxpr, Jaxpr
from weft.core.primitive import Body, Primitive
from weft.core.stage import close_jaxpr, stage
from weft.errors import ShapeError


def f32(*shape: int) -> ShapedArray:
    return ShapedArray(shape, np.float32)


def i32(*shape: int) -> ShapedArray:
    return ShapedArray(shape, np.int32)


def bf16(*shape: int) -> ShapedArray:
    return ShapedArray(shape, ml_dtypes.bfloat16)


class Like(Primitive):
    """The result has the type of the widest operand; `out` is its dtype where that is fixed."""

    def __init__(self, name: str, out: Any = None):
        self.name = name  # type: ignore[misc]
        self.out = out

    def abstract_eval(self, *avals: ShapedArray, **_: Any) -> list[ShapedArray]:
        shape = max((a.shape for a in avals), key=len)
        if any(a.shape not in ((), shape) for a in avals):
            raise ShapeError(f"{self.name}: operands must have equal shapes.")
        dtype = next((a.dtype for a in avals if a.shape == shape), None)
        return [ShapedArray(shape, self.out or dtype)]

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self.apply(*args, **params)[0]


class ReduceSum(Like):
    def abstract_eval(self, x: ShapedArray, *, axes: tuple, **_: Any) -> list[ShapedArray]:
        return [ShapedArray(tuple(d for i, d in enumerate(x.shape) if i not in axes), x.dtype)]


class Convert(Like):
    def abstract_eval(
        self, x: ShapedArray, *, new_dtype: Any, weak_type: bool
    ) -> list[ShapedArray]:
        return [ShapedArray(x.shape, new_dtype, weak_type)]


class Fill(Like):
    def abstract_eval(self, *_: ShapedArray, shape: tuple, **params: Any) -> list[ShapedArray]:
        return [ShapedArray(shape, params.get("dtype", np.float32))]


class Holds(Primitive):
    """Holds programs; `results` says which types come out."""

    memoize_type = False

    def __init__(self, name: str, results: Any):
        self.name = name  # type: ignore[misc]
        self.results = results

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        return self.results(**params)


class Call(Holds):
    """A call like the jit primitive: it prints with the caller's names, is inlined, and prunes."""

    def __init__(self, inline: bool = False):
        super().__init__("jit", lambda name, jaxpr, **_: jaxpr.out_avals)
        self.inline = inline

    def bodies(self, params: dict) -> list[Body]:
        jaxpr = params["jaxpr"]
        operands = range(len(jaxpr.invars))
        return [Body(jaxpr, "jaxpr", Runs.ONCE, operands, inlines=self.inline, names_flow_in=True)]


class Print(Primitive):
    """Has an effect, and no results."""

    name = "print"
    effect = "Print"

    def abstract_eval(self, *_: ShapedArray, **__: Any) -> list[ShapedArray]:
        return []


sin, cos, add, sub, mul, clamp, div = map(Like, ["sin", "cos", "add", "sub", "mul", "clamp", "div"])
ge, lt = Like("ge", np.bool_), Like("lt", np.bool_)
reduce_sum = ReduceSum("reduce_sum")
convert = Convert("convert_element_type")
broadcast_in_dim, iota = Fill("broadcast_in_dim"), Fill("iota")
cond = Holds("cond", lambda branches, **_: branches[0].out_avals)
while_ = Holds("while", lambda body_jaxpr, body_nconsts, **_: body_jaxpr.out_avals)
scan = Holds("scan", lambda jaxpr, num_carry, length, **_: [
    *jaxpr.out_avals[:num_carry],
    *[a.update(shape=(length, *a.shape)) for a in jaxpr.out_avals[num_carry:]],
])  # fmt: skip
pjit = Call()
inlined_pjit = Call(inline=True)
print_ = Print()


def ones(*shape: int) -> Any:
    return broadcast_in_dim(1.0, broadcast_dimensions=(), shape=shape, sharding=None)


def to(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    return convert(x, new_dtype=np.dtype(dtype), weak_type=weak_type)


def make(fun: Any, *avals: ShapedArray, name: str = "") -> Jaxpr:
    """The closed jaxpr of a function of tracers; it may return one value or a tuple."""
    return close_jaxpr(_stage(fun, avals, name)[0])


def make_closed(fun: Any, *avals: ShapedArray) -> ClosedJaxpr:
    """The same with its consts beside it."""
    return ClosedJaxpr(*_stage(fun, avals, ""))


def _stage(fun: Any, avals: Any, name: str) -> tuple[Jaxpr, list]:
    def flat(*args: Any) -> list:
        out = fun(*args)
        return list(out) if isinstance(out, tuple) else [out]

    return stage(flat, avals, name)


def jit(fun: Any, *avals: ShapedArray, name: str = "f", call: Call = pjit) -> Any:
    """`fun` as a call of its jaxpr, made once."""
    jaxpr = make(fun, *avals, name=name)

    def called(*args: Any) -> Any:
        outs = call.apply(*args, name=name, jaxpr=jaxpr)
        return outs[0] if len(outs) == 1 else tuple(outs)

    return called
