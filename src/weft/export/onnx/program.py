"""`to_onnx` and `OnnxProgram`: a function of arrays as an ONNX model."""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import weft
from weft.api.functions import argument_names, check_callable, leaf_names
from weft.api.jit import jit
from weft.api.programs import StagedProgram
from weft.core.aval import ShapedArray, words_of
from weft.core.jaxpr import Jaxpr
from weft.export.onnx.graph import BITS_OPSET, Graph
from weft.export.onnx.kinds import has_kind
from weft.export.onnx.operations import OPERATIONS
from weft.export.onnx.writer import write_program
from weft.export.solving import find_scope, plan_sizes
from weft.export.specs import symbolic_args_specs
from weft.optimize.passes import run_passes
from weft.optimize.simplify import simplify_algebra
from weft.passes.cse import cse_jaxpr
from weft.passes.dce import drop_dead_code
from weft.passes.hoist import hoist_invariants
from weft.util import wraps
from weft.xla.hlo import Value
from weft.xla.lower import make_physical

PASSES = (simplify_algebra, cse_jaxpr, hoist_invariants, drop_dead_code)
IR_VERSION = 10  # the version of the file format for opset 21


@dataclasses.dataclass(frozen=True)
class OnnxReport:
    """The sizes of an ONNX model.

    Attributes:
      opset: the version of its operators.
      model_bytes: the size of its file.
      constant_bytes: the arrays that are part of it.
      operators: the number of nodes by operator, including nodes in loops and branches.
    """

    opset: int
    model_bytes: int
    constant_bytes: int
    operators: Mapping[str, int]

    def __str__(self) -> str:
        listed = ", ".join(f"{n} {name}" for name, n in self.operators.items())
        return (
            f"opset {self.opset}, {self.model_bytes} bytes, constants {self.constant_bytes} bytes, "
            f"{sum(self.operators.values())} nodes: {listed}"
        )


class OnnxProgram:
    """A program as an ONNX model, which `to_onnx` writes.

    Attributes:
      model: the `onnx.ModelProto`.
      inputs: the names of its inputs, in the order of the leaves of the arguments.
      outputs: the names of its results, in the order of the leaves of the pytree.

    >>> program = weft.export.to_onnx(jnp.sin)(jnp.ones(3))  # doctest: +SKIP
    >>> len(program.inputs), len(program.outputs)  # doctest: +SKIP
    (1, 1)
    >>> _ = program.save("sin.onnx")  # doctest: +SKIP
    """

    def __init__(self, model: Any, inputs: Sequence, outputs: Sequence):
        self.model = model
        self._inputs, self._outputs = inputs, outputs
        self.inputs: list[str] = [name for name, _ in inputs]
        self.outputs: list[str] = [name for name, _ in outputs]

    def __repr__(self) -> str:
        listed, results = (
            ", ".join(f"{name}: {aval}" for name, aval in rows)
            for rows in (self._inputs, self._outputs)
        )
        return f"OnnxProgram({self.model.graph.name}: ({listed}) -> ({results}))"

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write the model to a file.

        Args:
          path: the path of the file, which usually ends in `.onnx`.

        Returns:
          The path.
        """
        path = pathlib.Path(path)
        path.write_bytes(self.model.SerializeToString())
        return path

    def report(self) -> OnnxReport:
        """Return the sizes of the model, and how many nodes it has of each operator."""
        graph = self.model.graph
        counts = Counter(node.op_type for node in walk_nodes(graph))
        held = sum(len(t.raw_data) for t in graph.initializer)
        opset = self.model.opset_import[0].version
        listed = dict(sorted(counts.items()))
        return OnnxReport(opset, self.model.ByteSize(), held, listed)


def walk_nodes(graph: Any) -> Iterator[Any]:
    """Iterate over the nodes of a graph, including nodes in its loops and branches."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from walk_nodes(attribute.g)


def import_onnx() -> Any:
    """Return the package `onnx`; ImportError if it is not installed."""
    try:
        importlib.import_module("onnx.numpy_helper")
        return importlib.import_module("onnx")
    except ImportError:
        raise ImportError(
            "to_onnx: the package onnx must be installed; got none. Hint: pip install weft[onnx]."
        ) from None


def to_onnx(fun: Callable) -> Callable[..., OnnxProgram]:
    """Return a function that takes types of arguments, and gives `fun` at these as an ONNX model.

    The model computes what `jit(fun)` does in any runtime of ONNX: derivatives, loops, random
    numbers and steps of optimizers are exported as anything else is. Results agree up to rounding.

    Args:
      fun: a function of arrays, which may be jitted. It must not call Python (`pure_callback`), use
        several devices, or have complex numbers.

    Returns:
      A function of arguments, arrays or `ShapeDtypeStruct`s, that gives an `OnnxProgram`. It takes
      two more arguments by name. `names` gives inputs and results other names: a dict from the
      usual names, such as `params_w` or `result`, to new ones. `dynamic` has the symbolic sizes: a
      text such as "batch, ..." for all arguments, or a pytree prefix of the arguments with texts
      and None, as of `symbolic_args_specs`. Arguments may have symbolic sizes themselves.

    Raises:
      ImportError: the package onnx is not installed (`pip install weft[onnx]`).
      NotImplementedError: ONNX cannot compute an operation; the message names its line.

    >>> def predict(w, x):
    ...     return jnp.tanh(x @ w)
    >>> program = weft.export.to_onnx(predict)(  # doctest: +SKIP
    ...     np.ones((3, 2), np.float32), np.ones((5, 3), np.float32), dynamic=(None, "batch, _"))
    >>> program  # doctest: +SKIP
    OnnxProgram(predict: (w: f32[3,2], x: f32[batch,3]) -> (result: f32[batch,2]))
    """
    check_callable("to_onnx", fun, True)
    jitted = fun if callable(getattr(fun, "trace", None)) else jit(fun)

    @wraps(fun)
    def of_types(
        *args: Any, names: Mapping[str, str] | None = None, dynamic: Any = None, **kwargs: Any
    ) -> OnnxProgram:
        onnx = import_onnx()
        if dynamic is not None:
            args = symbolic_args_specs(args, dynamic)
        program = jitted.trace(*args, **kwargs)._program
        return write_model(onnx, program, names or {})

    del of_types.__wrapped__
    return of_types


def write_model(onnx: Any, program: StagedProgram, names: Mapping[str, str]) -> OnnxProgram:
    """Return the model of a staged program."""
    label = program.spec.name
    if program.stateful:
        raise ValueError(
            f"to_onnx: {label} must be a program of arrays; got a reference. Hint: pass r[...], "
            "and return its new value."
        )
    if any(a.physical is not a for a in program.jaxpr.out_avals):
        raise ValueError(
            f"to_onnx: results of {label} must be arrays of numbers; got random keys. "
            "Hint: return random.key_data(key)."
        )
    jaxpr, consts = make_physical(program.jaxpr, program.consts)
    jaxpr = run_passes(jaxpr, PASSES)
    avals = [a.strong() for a in jaxpr.in_avals[len(consts) :]]
    paths = program.select_visible(argument_names(program.fun(), program.in_tree))
    hidden = program.hidden_results
    outs = [p for k, p in enumerate(leaf_names("result", program.out_tree)) if k not in hidden]
    inputs = list(zip(name_tensors(paths, names), avals, strict=True))
    used = [name for name, _ in inputs]
    outputs = name_tensors(outs, names, used)
    for name, aval in (*inputs, *zip(outputs, jaxpr.out_avals, strict=True)):
        if not has_kind(aval.dtype):
            raise NotImplementedError(
                f"to_onnx: arguments and results of {label} must be of dtypes that operators of "
                f"ONNX compute with; got {aval} for {name}. Hint: real and imaginary parts apart."
            )
    graph = Graph(onnx, find_scope(avals), OPERATIONS)
    find_sizes(graph, label, inputs)
    return OnnxProgram(*build(graph, label, jaxpr, consts, inputs, outputs))


def name_tensors(
    paths: Sequence[str], names: Mapping[str, str], taken: Sequence[str] = ()
) -> list[str]:
    """Return a name for each path: `params['w'][0]` is `params_w_0`."""
    made: list[str] = []
    for path in paths:
        text = "".join(c if c.isalnum() else " " for c in path)
        name = "_".join(text.split()) or "x"
        name = start = names.get(name, names.get(path, name))
        count = 1
        while name in made or name in taken:
            count += 1
            name = f"{start}_{count}"
        made.append(name)
    return made


def find_sizes(graph: Graph, label: str, inputs: Sequence[tuple[str, ShapedArray]]) -> None:
    """Write the symbolic sizes that shapes of inputs have."""
    for step in plan_sizes(f"to_onnx: {label}", [a for _, a in inputs]):
        name, _ = inputs[step.argument]
        size = graph.node("Shape", name, start=step.axis, end=step.axis + 1)
        if step.rest != 0:
            size = graph.node("Sub", size, graph.size_tensor(step.rest))
        if step.count != 1:
            size = graph.node("Div", size, graph.size_tensor(step.count))
        graph.sizes[step.name] = size


def build(
    g: Graph, label: str, jaxpr: Jaxpr, consts: Sequence, inputs: Sequence, outputs: Sequence[str]
) -> tuple[Any, Sequence, Sequence]:
    """Return the model, its inputs and its results with their types."""
    held = [Value(g.tensor(x, x.dtype), ShapedArray(x.shape, x.dtype))
            for x in (np.asarray(words_of(c)) for c in consts)]  # fmt: skip
    given = [Value(name, aval) for name, aval in inputs]
    made = [g.use(v) for v in write_program(g, jaxpr, [*held, *given])]
    avals = [a.strong() for a in jaxpr.out_avals]
    for name, result in zip(made, outputs, strict=True):
        g.nodes.append(g.onnx.helper.make_node("Identity", [name], [result]))
    nodes = drop_unused(g.nodes, outputs)
    read = {name for node in nodes for name in names_in(node)}
    constants = [t for t in g.initializers.values() if t.name in read]
    typed = g.describe([n for n, _ in inputs], [a for _, a in inputs]), g.describe(outputs, avals)
    graph = g.onnx.helper.make_graph(nodes, label, *typed, initializer=constants)
    opset = g.onnx.helper.make_opsetid("", g.opset)
    version = IR_VERSION if g.opset < BITS_OPSET else 13
    model = g.onnx.helper.make_model(
        graph, opset_imports=[opset], ir_version=version, producer_name="weft",
        producer_version=weft.__version__,
    )  # fmt: skip
    return model, inputs, list(zip(outputs, avals, strict=True))


def names_in(node: Any) -> Iterator[str]:
    """Go over the names that a node reads, in its graphs too."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                yield from names_in(inner)


def drop_unused(nodes: Sequence[Any], outputs: Sequence[str]) -> list[Any]:
    """Return the nodes that the results need."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(names_in(node))
            kept.append(node)
    return kept[::-1]
