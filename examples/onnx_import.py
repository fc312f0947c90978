"""Read an ONNX model as a function of arrays, which weft differentiates, maps and compiles.

A graph is a list of nodes, each of which names an operator, its operands and its results. Each
operator is a function of arrays in onnx_operators.py. Tensors of the file, and what follows from
them and from shapes, are NumPy arrays, so that operators can read them as sizes and axes; the
function's arguments are arrays of weft.

usage: python examples/onnx_import.py model.onnx
"""

import sys

import numpy as np
import onnx
from onnx_operators import ONNX_DTYPES, OPERATORS, axis_of, concrete

import weft
import weft.numpy as jnp
from weft import lax


def read_model(model):
    """Return the function that an ONNX model (a path or a ModelProto) is.

    It takes the inputs of the graph, in order or by name, and gives a list of its results.

    >>> import onnx.parser
    >>> text = (
    ...     '<ir_version: 10, opset_import: ["" : 21]>'
    ...     'f (float[2] x) => (float[2] y) {y = Mul(x, x)}')
    >>> f = read_model(onnx.parser.parse_model(text))
    >>> weft.grad(lambda x: f(x)[0].sum())(np.float32([3, 4]))
    Array([6., 8.], dtype=float32)
    """
    if not isinstance(model, onnx.ModelProto):
        model = onnx.load(model)
    graph = model.graph
    held = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    names = [i.name for i in graph.input if i.name not in held]
    version = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 21)

    def call(*args, **named):
        env = {"": None, **held, **dict(zip(names, args, strict=False)), **named}
        missing = [name for name in names if name not in env]
        if missing:
            raise TypeError(f"{graph.name}: each input must be given; got none for {missing[0]}.")
        return run_graph(graph, env, version)

    call.__name__ = graph.name or "model"
    return call


def run_graph(graph, env, version):
    """Return the results of a graph whose inputs, and the tensors around it, are in `env`."""
    env = {**env, **{t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}}
    for node in graph.node:
        outs = run_node(node, [env[name] for name in node.input], env, version)
        env.update(zip(node.output, outs, strict=False))
    return [env[o.name] for o in graph.output]


def run_node(node, inputs, env, version):
    """Return the results of a node, as NumPy arrays if its operands are."""
    attrs = {a.name: read_attribute(a) for a in node.attribute}
    if node.op_type in CONTROL:
        return CONTROL[node.op_type](inputs, attrs, env, version)
    if node.op_type not in OPERATORS or node.domain not in ("", "ai.onnx"):
        raise NotImplementedError(
            f"onnx_import: an operator must be one of {len(OPERATORS)} that are written; got "
            f"{node.op_type}."
        )
    operator = OPERATORS[node.op_type]
    code = operator.__code__
    taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    known = {"version": version, "count": len(node.output)}
    attrs.update({name: x for name, x in known.items() if name in taken})
    if all(map(concrete, inputs)):
        with weft.ensure_compile_time_eval():
            outs = as_tuple(operator(*map(float_array, inputs), **attrs))
            return tuple([None if y is None else np.asarray(y) for y in outs])
    return as_tuple(operator(*inputs, **attrs))


def float_array(x):
    """Return floats as an array of weft, whose dtype numbers of Python do not change."""
    held = isinstance(x, np.ndarray) and jnp.issubdtype(x.dtype, np.floating)
    return jnp.asarray(x) if held else x


def as_tuple(outs):
    """Return the results of an operator as a tuple."""
    return tuple(outs) if isinstance(outs, tuple | list) else (outs,)


def read_attribute(attribute):
    """Return the value of an attribute: a number, a text, a list, an array or a graph."""
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, list) and value and isinstance(value[0], bytes):
        return [v.decode() for v in value]
    return value


# --- loops and branches ---


def run_if(inputs, attrs, env, version):
    """One of two graphs: a traced condition is `lax.cond`."""
    (test,) = inputs
    then, other = (
        lambda g=attrs[name]: tuple(run_graph(g, env, version))
        for name in ("then_branch", "else_branch")
    )
    if concrete(test):
        return then() if np.asarray(test).item() else other()
    arrays = lambda branch: lambda: tuple(map(jnp.asarray, branch()))
    return lax.cond(jnp.reshape(test, ()), arrays(then), arrays(other))


def run_loop(inputs, attrs, env, version):
    """A loop: of Python where the number of iterations is known, as `lax.scan` unless it is short.

    A loop that ends by a traced condition is `lax.while_loop`; it has no stacked results.
    """
    limit, test, *state = inputs
    body, n = attrs["body"], len(inputs) - 2
    names = [i.name for i in body.input]

    def step(k, go, state):
        go, *outs = run_graph(body, {**env, **dict(zip(names, [k, go, *state]))}, version)
        return go, outs[:n], outs[n:]

    known = (limit is None or concrete(limit)) and (test is None or concrete(test))
    go = True if test is None else test
    if known:
        rows, k = [], 0
        count = np.inf if limit is None else int(limit)
        while k < count and (go is True or bool(np.asarray(go))):
            go, state, row = step(np.int64(k), np.bool_(True), state)
            rows.append(row)
            k += 1
            if not concrete(go):
                break
        else:
            stacked = [jnp.stack(column) for column in zip(*rows, strict=True)]
            return [*state, *stacked]
        raise NotImplementedError("onnx_import: a Loop must end at a known or a carried condition.")
    if len(body.output) > n + 1:
        raise NotImplementedError("onnx_import: a Loop must have a known length to stack results.")
    most = min(int(limit), ENDLESS) if concrete(limit) and limit is not None else limit
    most = ENDLESS if limit is None else most

    def go_on(carry):
        k, go, _ = carry
        return jnp.logical_and(k < most, go)

    def advance(carry):
        k, go, state = carry
        go, state, _ = step(k, go, state)
        return k + 1, jnp.reshape(go, ()), tuple(map(jnp.asarray, state))

    start = jnp.zeros((), int)
    state = tuple(map(jnp.asarray, state))
    return lax.while_loop(go_on, advance, (start, jnp.reshape(jnp.asarray(go), ()), state))[2]


def run_scan(inputs, attrs, env, version):
    """A loop over rows of arrays: `lax.scan`."""
    body, m = attrs["body"], attrs["num_scan_inputs"]
    if version < 9:
        raise NotImplementedError("onnx_import: Scan must be of opset 9 or later.")
    n = len(inputs) - m
    state, rows = inputs[:n], inputs[n:]
    names = [i.name for i in body.input]
    stacked = len(body.output) - n
    axes = attrs.get("scan_input_axes", [0] * m)
    backward = attrs.get("scan_input_directions", [0] * m)
    move = lambda x, axis, flips: (
        jnp.flip(jnp.moveaxis(x, axis, 0), 0) if flips else jnp.moveaxis(x, axis, 0)
    )
    rows = [move(x, a, d) for x, a, d in zip(rows, axes, backward, strict=True)]

    def step(carry, row):
        outs = run_graph(body, {**env, **dict(zip(names, [*carry, *row]))}, version)
        return tuple(map(jnp.asarray, outs[:n])), tuple(outs[n:])

    state, made = lax.scan(step, tuple(map(jnp.asarray, state)), tuple(rows))
    axes = attrs.get("scan_output_axes", [0] * stacked)
    backward = attrs.get("scan_output_directions", [0] * stacked)
    flipped = [jnp.flip(y, 0) if d else y for y, d in zip(made, backward, strict=True)]
    return [
        *state,
        *[jnp.moveaxis(y, 0, axis_of(a, y)) for y, a in zip(flipped, axes, strict=True)],
    ]


ENDLESS = np.iinfo(np.int32).max  # iterations
CONTROL = {"If": run_if, "Loop": run_loop, "Scan": run_scan}


def main():
    """Print the inputs and the results of a model, and run it on random numbers."""
    model = onnx.load(sys.argv[1])
    function = weft.jit(read_model(model))
    rng = np.random.default_rng(0)
    args = []
    for given in model.graph.input:
        kind = given.type.tensor_type
        shape = [d.dim_value or 1 for d in kind.shape.dim]
        args.append(rng.normal(size=shape).astype(ONNX_DTYPES(kind.elem_type)))
        print("input", given.name, args[-1].dtype, shape)
    for named, y in zip(model.graph.output, function(*args), strict=True):
        print("result", named.name, y.dtype, list(y.shape))


if __name__ == "__main__":
    main()
