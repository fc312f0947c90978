"""Interpreters of jaxprs: one that evaluates, one that inverts, and one that writes MLIR."""

import io

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jit, lax, vmap
from jax._src import xla_bridge
from jax._src.lib import xla_client
from jax._src.util import safe_map
from jax.extend import core
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func
from jax.extend.mlir.dialects import stablehlo as hlo


def f(x):
    return jnp.exp(jnp.tanh(x))


closed = jax.make_jaxpr(f)(jnp.ones(5))
print(len(closed.jaxpr.eqns), len(closed.literals), [str(e.primitive) for e in closed.eqns])


def evaluate(jaxpr, consts, *args):
    env = {}
    read = lambda var: var.val if type(var) is core.Literal else env[var]
    safe_map(env.__setitem__, jaxpr.invars, args)
    safe_map(env.__setitem__, jaxpr.constvars, consts)
    for eqn in jaxpr.eqns:
        outs = eqn.primitive.bind(*safe_map(read, eqn.invars), **eqn.params)
        outs = outs if eqn.primitive.multiple_results else [outs]
        safe_map(env.__setitem__, eqn.outvars, outs)
    return safe_map(read, jaxpr.outvars)


print(evaluate(closed.jaxpr, closed.literals, jnp.ones(5)))

inverses = {lax.exp_p: jnp.log, lax.tanh_p: jnp.arctanh}


def invert(fun):
    def inverse(x):
        jaxpr = jax.make_jaxpr(fun)(x).jaxpr
        env = dict(zip(jaxpr.outvars, [x]))
        for eqn in jaxpr.eqns[::-1]:
            env[eqn.invars[0]] = inverses[eqn.primitive](env[eqn.outvars[0]])
        return env[jaxpr.invars[0]]

    return inverse


print(invert(f)(f(1.0)), jit(vmap(grad(invert(f))))((jnp.arange(5) + 1.0) / 5))


# A program in MLIR: a function that calls another one, and a sum.
def tensor(*shape):
    return ir.RankedTensorType.get(shape, ir.F32Type.get())


with ir.Context() as context, ir.Location.unknown(context):
    hlo.register_dialect(context)
    module = ir.Module.create()
    table = ir.SymbolTable(module.operation)
    with ir.InsertionPoint(module.body):

        @func.func(tensor(3))
        def inner(x):
            return [hlo.exponential(hlo.tanh(x))]

        @func.func(tensor(3), tensor(3))
        def main(x, y):
            total = hlo.add(func.CallOp(inner.func_op, [x]).results[0], y)
            zero = hlo.constant(ir.DenseElementsAttr.get(np.zeros((), np.float32)))
            axes = ir.DenseI64ArrayAttr.get(np.array((0,)))
            op = hlo.ReduceOp([tensor()], [total], [zero], axes)
            block = op.body.blocks.append(tensor(), tensor())
            with ir.InsertionPoint(block):
                hlo.return_([hlo.AddOp(*block.arguments).result])
            return [op.results[0], total]


text = io.StringIO()
module.operation.print(file=text)
backend = xla_bridge.get_backend(None)
devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
compiled = backend.compile_and_load(text.getvalue(), devices, xla_client.CompileOptions())
args = [jax.device_put(np.float32(x)) for x in ([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])]
for out in compiled.execute(args):
    print(np.asarray(out))
