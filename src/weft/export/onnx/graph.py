"""`Graph`, a Builder that writes nodes of ONNX for the operations of StableHLO.

A value of a program is a tensor of its dtype. A scalar that is broadcast, or an array along new
axes, is small until an operator needs all of its elements: operators on each element broadcast.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from weft import dtypes
from weft.core.aval import ShapedArray
from weft.export.dims import Dim, Size, list_products
from weft.export.onnx.kinds import BOOL, I64, wide_dtype
from weft.export.recorder import Recorder, Region, read_numbers
from weft.export.specs import SymbolicScope, read_sizes
from weft.xla.hlo import Value

OPSET = 21
BITS_OPSET = 26  # the first that has BitCast
INDEX = ShapedArray((), I64)
Write = Callable[["Graph", Sequence[Value], Sequence[ShapedArray], dict], Sequence[str]]


class NotInOnnx(Exception):
    """An operation that ONNX cannot compute."""


class Graph(Recorder):
    """Writes nodes, and knows the constants and the sizes of a model.

    Attributes:
      nodes: the nodes of the graph that is being written.
      opset: the version of the operators that the nodes need.
    """

    def __init__(self, onnx: Any, scope: SymbolicScope | None, operations: dict[str, Write]):
        super().__init__()
        self.onnx, self.scope, self.operations = onnx, scope, operations
        self.nodes: list[Any] = []
        self.main = self.nodes
        self.initializers: dict[Any, Any] = {}
        self.opset = OPSET
        self.sizes: dict[Any, str] = {}  # tensors of one element, by size
        # values that are broadcast, by name: the small tensor and its rank
        self.small: dict[str, tuple[str, int]] = {}
        # the full tensors of such values, by name, in each enclosing graph
        self.full: list[dict[str, str]] = [{}]
        self.trail: list[str] = []  # the operations that were written

    # --- nodes and tensors ---

    def new_name(self) -> str:
        """Return a name that no tensor has."""
        self.count += 1
        return f"t{self.count}"

    def value(self, aval: ShapedArray) -> Value:
        """Return a value with a new name."""
        return Value(self.new_name(), aval)

    def node(self, operator: str, *names: str, outs: int = 1, **attrs: Any) -> Any:
        """Write a node; the name of its result, or a list of names."""
        made = [self.new_name() for _ in range(outs)]
        attrs = {k: v for k, v in attrs.items() if v is not None}
        self.nodes.append(self.onnx.helper.make_node(operator, names, made, **attrs))
        return made[0] if outs == 1 else made

    def apply(self, operator: str, dtype: np.dtype, *names: str, out: Any = None, **attrs: Any):
        """Write a node on tensors of a dtype, computed in a wider one if need be.

        `out` is the dtype of the result, by default the dtype of the operands.
        """
        wide = wide_dtype(operator, dtype)
        name = self.node(operator, *[self.cast(n, dtype, wide) for n in names], **attrs)
        return self.cast(name, wide, dtype) if out is None else name

    def cast(self, name: str, dtype: np.dtype, to: np.dtype) -> str:
        """Write a conversion from one dtype to another."""
        if dtype == to:
            return name
        return self.node("Cast", name, to=self.type_number(to))

    def type_number(self, dtype: np.dtype) -> int:
        """Return ONNX's number for a dtype."""
        return self.onnx.helper.np_dtype_to_tensor_dtype(dtype)

    def tensor(self, x: Any, dtype: Any = I64) -> str:
        """Return a constant; equal ones are one."""
        array = np.ascontiguousarray(dtypes.cast_on_host(np.asarray(x), np.dtype(dtype)))
        array = array.reshape(np.shape(x))
        key = (array.dtype, array.shape, array.tobytes())
        found = self.initializers.get(key)
        if found is None:
            found = self.onnx.numpy_helper.from_array(array, f"c{len(self.initializers)}")
            self.initializers[key] = found
        return found.name

    def use(self, x: Value) -> str:
        """Return the tensor with all elements of a value."""
        if x.name not in self.small:
            return x.name
        for names in self.full:
            if x.name in names:
                return names[x.name]
        name, _ = self.small[x.name]
        if x.aval.shape:
            name = self.expand(name, x.aval.dtype, x.aval.shape)
        self.full[-1][x.name] = name
        return name

    def expand(self, name: str, dtype: np.dtype, sizes: Sequence[Size]) -> str:
        """Write a tensor broadcast to a shape."""
        shape, wide = self.shape_tensor(sizes), wide_dtype("Expand", dtype)
        return self.cast(self.node("Expand", self.cast(name, dtype, wide), shape), wide, dtype)

    def broadcastable(self, x: Value) -> str:
        """Return a tensor that operators on each element broadcast to the shape of a value."""
        return self.small[x.name][0] if x.name in self.small else x.name

    def shrink(self, name: str, rank: int, aval: ShapedArray) -> str:
        """Return the name of a value that is a tensor, broadcast to a larger shape."""
        self.count += 1
        made = f"small{self.count}"
        self.small[made] = name, rank
        return made

    @contextlib.contextmanager
    def inner(self) -> Iterator[list]:
        """Write into a nested graph while the context is open; yield its nodes."""
        around, nodes = self.nodes, list[Any]()
        self.nodes = nodes
        self.full.append({})
        try:
            yield nodes
        finally:
            self.full.pop()
            self.nodes = around

    # --- sizes ---

    @contextlib.contextmanager
    def in_main(self) -> Iterator[None]:
        """Write into the outermost graph. Nested graphs can read its tensors."""
        around, self.nodes = self.nodes, self.main
        try:
            yield
        finally:
            self.nodes = around

    def size_tensor(self, size: Size) -> str:
        """Return a tensor of one element that holds a size."""
        if not isinstance(size, Dim):
            return self.tensor([int(size)])
        if size not in self.sizes:
            with self.in_main():
                products = list_products(size, self.size_tensor, self.factor_tensor)
                terms = [self.fold("Mul", parts) for parts in products]
                self.sizes[size] = self.fold("Add", terms)
        return self.sizes[size]

    def fold(self, operator: str, names: Sequence[str]) -> str:
        """Write the sum or the product of tensors."""
        found, *rest = names
        for name in rest:
            found = self.node(operator, found, name)
        return found

    def factor_tensor(self, factor: Any) -> str:
        """Return a variable, or an operation on two sizes, as a tensor of one element."""
        if isinstance(factor, str):
            return self.sizes[factor]
        kind, *operands = factor
        a, b = map(self.size_tensor, operands)
        if kind != "floordiv":
            return self.node({"max": "Max", "min": "Min"}[kind], a, b)
        return self.node("Div", self.node("Sub", a, self.node("Mod", a, b)), b)

    def size_value(self, size: Size) -> Value:
        """Return a size as a scalar."""
        if not isinstance(size, Dim):
            return self.constant(size, INDEX)
        with self.in_main():
            name = self.node("Reshape", self.size_tensor(size), self.tensor([]))
        return Value(name, INDEX)

    def shape_tensor(self, sizes: Sequence[Size]) -> str:
        """Return sizes as a vector."""
        if not any(isinstance(n, Dim) for n in sizes):
            return self.tensor([int(n) for n in sizes])
        key = tuple(sizes)
        if key not in self.sizes:
            with self.in_main():
                parts = [self.size_tensor(n) for n in sizes]
                self.sizes[key] = self.node("Concat", *parts, axis=0)
        return self.sizes[key]

    def read_sizes(self, text: str) -> list:
        """Return the sizes of an attribute."""
        if self.scope is None:
            return list(read_numbers(text))
        inner = text.removeprefix("array<i64").removeprefix("dense<").removeprefix(": ")
        inner = inner.partition(">")[0]
        return read_sizes(inner.replace("[", "").replace("]", ""), self.scope)

    def reshape(self, name: str, sizes: Sequence[Size]) -> str:
        """Write a tensor under another shape."""
        symbolic = [k for k, n in enumerate(sizes) if isinstance(n, Dim)]
        if len(symbolic) == 1 and 0 not in [n for n in sizes if not isinstance(n, Dim)]:
            return self.node(
                "Reshape",
                name,
                self.tensor([-1 if k in symbolic else n for k, n in enumerate(sizes)]),
            )
        return self.node(
            "Reshape", name, self.shape_tensor(sizes), allowzero=1 if 0 in sizes else None
        )

    def unsqueeze(self, name: str, axes: Sequence[int]) -> str:
        """Write a tensor with new axes of size 1 at these places of the result."""
        return self.node("Unsqueeze", name, self.tensor(list(axes))) if axes else name

    def cut(self, name: str, axis: int, low: str, high: str, step: int = 1) -> str:
        """Write a part of a tensor along one axis; its ends are tensors of one element."""
        steps = [self.tensor([step])] if step != 1 else []
        return self.node("Slice", name, low, high, self.tensor([axis]), *steps)

    # --- operations ---

    def constant(self, value: Any, aval: ShapedArray) -> Value:
        """Return a constant."""
        if isinstance(value, Dim):
            return self.spread(self.convert(self.size_value(value), aval.dtype), aval)
        array = np.asarray(dtypes.cast_on_host(value, aval.dtype))
        if array.ndim < aval.ndim:
            return Value(self.shrink(self.tensor(array, aval.dtype), 0, aval), aval)
        scalar = None
        if array.ndim == 0:
            scalar = value[()] if isinstance(value, np.ndarray) else value
        return Value(self.tensor(array, aval.dtype), aval, scalar)

    def spread(self, x: Value, aval: ShapedArray) -> Value:
        """Return a scalar broadcast to a shape."""
        if x.aval.shape == aval.shape:
            return x
        target = aval.update(dtype=x.aval.dtype)
        return Value(self.shrink(self.use(x), 0, target), target)

    def convert(self, x: Value, dtype: np.dtype) -> Value:
        """Return a value in another dtype."""
        if x.aval.dtype == dtype:
            return x
        return self.op("stablehlo.convert", [x], [x.aval.update(dtype=dtype)])[0]

    def op(self, name, /, operands, out_avals, regions=(), discardable=None, **attrs):
        """Write the nodes of an operation."""
        name = name.removeprefix("stablehlo.")
        self.trail.append(name)
        if name == "optimization_barrier":
            return list(operands)
        write = self.operations.get(name)
        if write is None:
            raise NotInOnnx(attrs.get("call_target_name", name).strip('"'))
        if regions:
            attrs["regions"] = regions
        names = write(self, operands, out_avals, attrs)
        return [Value(n, a) for n, a in zip(names, out_avals, strict=True)]

    def elementwise(self, name, operands, aval):
        """Write an operation on each element."""
        return self.op(name, operands, [aval])

    def run_region(self, region: Region, names: Sequence[str]) -> list[str]:
        """Write a region of operations on each element, of tensors in place of scalars."""
        around, self.constants = self.constants, {}
        args = [Value(n, a) for n, a in zip(names, region.avals, strict=True)]
        outs = [self.use(v) for v in region.write(*args)]
        self.constants = around
        return outs

    def name_region(self, region: Region) -> str:
        """Return the only operation of a region of two scalars; "second" for none; else ""."""
        around, self.trail = self.trail, []
        with self.inner():
            made = self.run_region(region, ["a", "b"][: len(region.avals)])
        found, self.trail = self.trail, around
        if len(region.avals) != 2:
            return ""
        if not found:
            return "second" if made == ["b"] else ""
        return found[0] if len(found) == 1 else ""

    # --- loops and branches, by regions ---

    def while_loop(self, values, condition, body, ordered=False):
        """Write a loop."""
        if ordered:
            raise NotInOnnx("a loop with effects")
        avals = [v.aval for v in values]
        on_values = lambda write: (
            lambda *names: [self.use(v) for v in write(*map(Value, names, avals))]
        )
        return self.write_while(
            avals, [self.use(v) for v in values], *map(on_values, (condition, body))
        )

    def case(self, index, branches, out_avals, ordered=False):
        """Write a choice between branches."""
        if ordered:
            raise NotInOnnx("a branch with effects")
        writes = [lambda b=b: [self.use(v) for v in b()] for b in branches]
        return self.write_case(index, writes, out_avals)

    def host_call(self, function, operands, out_avals, effect=None):
        """Refuse a call of Python."""
        raise NotInOnnx("a call of Python")

    def subgraph(self, name: str, avals: Sequence, write: Callable, outs: Sequence) -> Any:
        """Return a graph for a loop or a branch; it may read tensors of the enclosing graphs.

        `avals` are the types of its inputs. `write` takes their names and returns the names of the
        results.
        """
        names = [self.new_name() for _ in avals]
        with self.inner() as nodes:
            made = [self.node("Identity", n) for n in write(*names)]
        typed = self.describe(names, avals), self.describe(made, outs)
        return self.onnx.helper.make_graph(nodes, name, *typed)

    def describe(self, names: Sequence[str], avals: Sequence[ShapedArray]) -> list:
        """Return the types of tensors, as graphs declare them."""
        return [
            self.onnx.helper.make_tensor_value_info(
                n, self.type_number(a.dtype), [d if type(d) is int else str(d) for d in a.shape]
            )
            for n, a in zip(names, avals, strict=True)
        ]

    def write_while(self, avals: Sequence, names: Sequence[str], condition: Any, body: Any) -> list:
        """Write a loop; `condition` and `body` take and give names of tensors."""
        (first,) = condition(*names)
        flag = ShapedArray((), BOOL)

        def step(turn: str, go: str, *state: str) -> list[str]:
            new = body(*state)
            return [*condition(*new), *new]

        graph = self.subgraph("body", [INDEX, flag, *avals], step, [flag, *avals])
        made = self.node("Loop", "", first, *names, outs=len(avals), body=graph)
        made = [made] if len(avals) == 1 else made
        return [Value(n, a) for n, a in zip(made, avals, strict=True)]

    def write_case(self, index: Value, branches: Sequence[Callable], outs: Sequence) -> list:
        """Write a choice by a number, or by a bool; the last branch is for any other number."""

        def choose(k: int) -> list[str]:
            if k == len(branches) - 1:
                return branches[k]()
            if index.aval.dtype == BOOL:
                is_k = self.node("Not", self.use(index))
            else:
                is_k = self.node("Equal", self.use(index), self.tensor(k, index.aval.dtype))
            then = self.subgraph("then", [], branches[k], outs)
            other = self.subgraph("else", [], lambda: choose(k + 1), outs)
            made = self.node("If", is_k, outs=len(outs), then_branch=then, else_branch=other)
            return [made] if len(outs) == 1 else made

        return [Value(n, a) for n, a in zip(choose(0), outs, strict=True)]
